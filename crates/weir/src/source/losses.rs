//! Where among the captured packets the lost ones are missing.

use std::collections::VecDeque;

/// Packets that the kernel has dropped, and the place where that is to be told: the number of a block of `TPACKET_V3`, or of
/// a frame of an AF_XDP socket, which in the following is a block as well.
///
/// AF_XDP drops while the kernel has no empty frame: between the last one that it filled and the next.
///
/// `TPACKET_V3` drops between two blocks: while all of them are full, and, if more than three quarters are
/// (`__packet_rcv_has_room`), sometimes in the moment in which it closes one. When it closes a block it marks it if its
/// counter of drops is not zero; a reading makes it zero. So what a reading finds was dropped before the first marked block
/// of those that were closed since the reading before; if none is marked, before the block that was open then.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Packets since the beginning.
    total: u64,
    /// Those not yet told: the block before which packets were dropped, and how many. In order, and no more entries than
    /// the ring has blocks.
    untold: VecDeque<(u64, u64)>,
    /// Number of the block that was open at the last reading: marks of earlier ones have been followed.
    open: u64,
}

impl Losses {
    /// None so far, in a ring in which there are so many places at most.
    pub(super) fn new(blocks: u32) -> Self {
        Self { untold: VecDeque::with_capacity(blocks as usize + 1), ..Self::default() }
    }

    /// The first block of which a mark would say something new.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Takes in what the kernel's counter says. Before the counter was read, block `open` was open, and of those closed
    /// since the reading before, `marked` was the first that is marked.
    pub(super) fn read(&mut self, total: u64, marked: Option<u64>, open: u64) {
        let fresh = total.saturating_sub(self.total);
        self.total += fresh;
        self.open = open;
        let before = marked.unwrap_or(open);
        match self.untold.back_mut() {
            _ if fresh == 0 => {}
            Some((last, packets)) if *last >= before => *packets += fresh,
            _ => self.untold.push_back((before, fresh)),
        }
    }

    /// All of them.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// How many to tell in the record of a packet of block `number`.
    #[inline]
    pub(super) fn to_tell(&self, number: u64) -> Option<u64> {
        let due =
            self.untold.iter().take_while(|&&(before, _)| before <= number).map(|&(_, packets)| packets);
        Some(due.sum()).filter(|&packets| packets > 0)
    }

    /// Those have been told.
    pub(super) fn told(&mut self, number: u64) {
        while self.untold.front().is_some_and(|&(before, _)| before <= number) {
            self.untold.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_in_the_block_behind_them() {
        let mut losses = Losses::new(4);
        losses.read(0, None, 2);
        // One was dropped before block 3, which tells by its mark; many while block 5 could not be opened.
        losses.read(1, Some(3), 5);
        losses.read(7, None, 5);
        losses.read(9, None, 5);
        losses.read(9, None, 5);
        assert_eq!([2, 3, 4, 5].map(|number| losses.to_tell(number)), [None, Some(1), Some(1), Some(9)]);
        losses.told(4);
        assert_eq!([4, 5].map(|number| losses.to_tell(number)), [None, Some(8)]);
        losses.told(5);
        assert_eq!((losses.to_tell(9), losses.total(), losses.open()), (None, 9, 5));
    }
}
