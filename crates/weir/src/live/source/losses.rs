//! Where losses lie among the captured packets.

use std::collections::VecDeque;

/// Packets dropped by the kernel, with the block after the gap, whose first record reports them. A block is one of
/// `TPACKET_V3`, or a frame of an AF_XDP socket.
///
/// AF_XDP drops packets while the kernel has no empty frame: between the last one that it filled and the next.
///
/// `TPACKET_V3` drops packets between two blocks: while all blocks are full and, if more than three quarters are
/// (`__packet_rcv_has_room`), sometimes at the moment when it closes one. The kernel marks a block that it closes if
/// its counter of drops is not zero, and reading the counter resets it. So the drops in a reading happened before the
/// first marked block among those closed since the previous reading or, if none is marked, before the block that was
/// open at the time.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Packets dropped since the start.
    total: u64,
    /// Losses not reported yet: the block after the gap, and the number of packets. In order, with no more entries than
    /// the ring has blocks.
    unreported: VecDeque<(u64, u64)>,
    /// Number of the block that was open at the last reading. Marks of earlier blocks have been handled.
    open: u64,
}

impl Losses {
    /// Starts without losses, for a ring with this many blocks.
    pub(super) fn new(blocks: u32) -> Self {
        Self { unreported: VecDeque::with_capacity(blocks as usize + 1), ..Self::default() }
    }

    /// Returns the first block whose mark has not been handled.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// Processes a reading of the kernel's counter. Before it, block `open` was open, and `marked` was the first marked
    /// block among those closed since the previous reading.
    pub(super) fn read(&mut self, total: u64, marked: Option<u64>, open: u64) {
        let fresh = total.saturating_sub(self.total);
        self.total += fresh;
        self.open = open;
        let before = marked.unwrap_or(open);
        match self.unreported.back_mut() {
            _ if fresh == 0 => {}
            Some((last, packets)) if *last >= before => *packets += fresh,
            _ => self.unreported.push_back((before, fresh)),
        }
    }

    /// Returns all losses so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the losses to report in the record of a packet of block `number`.
    #[inline]
    pub(super) fn to_tell(&self, number: u64) -> Option<u64> {
        let due =
            self.unreported.iter().take_while(|&&(before, _)| before <= number).map(|&(_, packets)| packets);
        Some(due.sum()).filter(|&packets| packets > 0)
    }

    /// Notes that the losses up to block `number` are reported.
    pub(super) fn told(&mut self, number: u64) {
        while self.unreported.front().is_some_and(|&(before, _)| before <= number) {
            self.unreported.pop_front();
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
        // One packet was dropped before block 3, as its mark says; several more while block 5 could not be opened.
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
