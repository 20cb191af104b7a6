//! The mapped blocks of a packet socket, and our position in them. Rules P1 and P2: see [`super`].

use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::block::{Cursor, Packet, STATUS};

/// A block that the kernel has finished with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Number of blocks that the kernel had finished before this one.
    pub number: u64,
    /// The block was closed because of its age, not because it was full.
    pub aged: bool,
    /// When the block was closed, packets had been dropped that [`statistics`](super::PacketRing::statistics) had not
    /// yet reported.
    pub losing: bool,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The block has been given back.
    Done {
        /// Packets that the block's header counted, but that could not be parsed.
        damaged: u32,
    },
    /// The walk stopped at a packet, with which the next walk begins; or no block is ready.
    Stopped,
}

/// The mapped blocks, and our position in them.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    blocks: u32,
    block_bytes: u32,
    /// The block that we get next. The kernel fills them in order.
    next: u32,
    /// Blocks given back so far.
    pub(super) returned: u64,
    /// Our position in the next block, once we have begun with it.
    cursor: Option<Cursor>,
}

// SAFETY: a ring is an address range and numbers, not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn map(socket: &OwnedFd, blocks: u32, block_bytes: u32) -> io::Result<Self> {
        let length = blocks as usize * block_bytes as usize;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                socket,
                0,
            )
        }?;
        Ok(Self::over(base.cast(), blocks, block_bytes))
    }

    /// Creates a ring that takes over the mapping at `base`.
    fn over(base: *mut u8, blocks: u32, block_bytes: u32) -> Self {
        let base = NonNull::new(base).expect("mmap never maps the null page without being told to");
        Self { base, blocks, block_bytes, next: 0, returned: 0, cursor: None }
    }

    /// Returns the status word of the block `ahead` blocks after the next one.
    #[inline]
    fn status_word(&self, ahead: u32) -> &AtomicU32 {
        let block = (self.next as usize + ahead as usize) % self.blocks as usize;
        let at = block * self.block_bytes as usize + STATUS;
        // SAFETY: P2; `block` is below `blocks`.
        let word = unsafe { self.base.add(at) };
        // SAFETY: P2; aligned, since blocks begin on pages. Both sides access this word as a whole.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    #[inline]
    pub(super) fn status(&self) -> u32 {
        // Acquire, paired with the smp_wmb in prb_close_block before prb_flush_block stores the status: the packets are
        // complete.
        self.status_word(0).load(Ordering::Acquire)
    }

    pub(super) fn look_ahead(&self, from: u64) -> (Option<u64>, u64) {
        let mut marked = None;
        for (number, ahead) in (self.returned..).zip(0..self.blocks) {
            // Relaxed: nothing else in the block is read.
            let status = self.status_word(ahead).load(Ordering::Relaxed);
            if status & libc::TP_STATUS_USER == 0 {
                return (marked, number);
            }
            if status & libc::TP_STATUS_LOSING != 0 && number >= from {
                marked = marked.or(Some(number));
            }
        }
        (marked, self.returned + u64::from(self.blocks))
    }

    /// Returns the bytes of the next block, if it is ours.
    #[inline]
    fn block(&self) -> Option<&[u8]> {
        if self.status() & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let at = self.next as usize * self.block_bytes as usize;
        // SAFETY: P2; `next` is below `blocks`.
        let first = unsafe { self.base.add(at) };
        // SAFETY: P2 for the range; P1 for the bytes, which do not change while `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts(first.as_ptr(), self.block_bytes as usize) })
    }

    pub(super) fn walk(&mut self, mut each: impl FnMut(&Packet<'_>) -> ControlFlow<()>) -> Walk {
        let Some(block) = self.block() else { return Walk::Stopped };
        let mut cursor = self.cursor.unwrap_or_else(|| Cursor::new(block));
        while let Some((packet, behind)) = cursor.packet(block) {
            if each(&packet).is_break() {
                self.cursor = Some(cursor);
                return Walk::Stopped;
            }
            cursor = behind;
        }
        self.give_back();
        Walk::Done { damaged: cursor.left() }
    }

    fn give_back(&mut self) {
        // Release, paired with the kernel's load of the status in prb_dispatch_next_block and prb_curr_blk_in_use: it
        // writes to the block only after it has seen this, and all our reads precede it.
        self.status_word(0).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.cursor = None;
        self.returned += 1;
        self.next = (self.next + 1) % self.blocks;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = self.blocks as usize * self.block_bytes as usize;
        // SAFETY: P2, and no slice of the mapping outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use rustix::mm::mmap_anonymous;

    use super::super::block::fake::{BLOCK_HEAD, Sample, fill, set};
    use super::*;

    const BLOCK: u32 = 4096;

    /// Creates a ring in anonymous memory, where the test plays the kernel.
    fn ring(blocks: u32) -> Ring {
        let length = (blocks * BLOCK) as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `Ring::map`.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE) };
        Ring::over(base.unwrap().cast(), blocks, BLOCK)
    }

    /// Returns block `number`, for the kernel to write.
    fn bytes(ring: &mut Ring, number: u32) -> &mut [u8] {
        assert!(number < ring.blocks);
        // SAFETY: P2.
        let first = unsafe { ring.base.add((number * BLOCK) as usize) };
        // SAFETY: P2, and `ring` is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), BLOCK as usize) }
    }

    fn close(ring: &mut Ring, number: u32, data: &[&[u8]], status: u32) {
        let block = bytes(ring, number);
        fill(block, &data.iter().map(|data| Sample::of(data)).collect::<Vec<_>>());
        set(block, STATUS, status);
    }

    fn collect(ring: &mut Ring, most: usize) -> (Vec<Vec<u8>>, Walk) {
        let mut packets = Vec::new();
        let walk = ring.walk(|packet| {
            if packets.len() == most {
                return ControlFlow::Break(());
            }
            packets.push(packet.data.to_vec());
            ControlFlow::Continue(())
        });
        (packets, walk)
    }

    #[test]
    fn blocks_come_in_order_and_go_back() {
        let mut ring = ring(3);
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Stopped));
        for turn in 0..7u8 {
            let number = u32::from(turn) % 3;
            close(&mut ring, number, &[&[turn; 60], &[turn; 90]], libc::TP_STATUS_USER);
            let (packets, walk) = collect(&mut ring, 9);
            assert_eq!(packets, [vec![turn; 60], vec![turn; 90]]);
            assert_eq!(walk, Walk::Done { damaged: 0 });
            let status = bytes(&mut ring, number)[STATUS..STATUS + 4].to_vec();
            assert_eq!(status, libc::TP_STATUS_KERNEL.to_ne_bytes());
            assert_eq!(ring.returned, u64::from(turn) + 1);
        }
        assert_eq!(ring.status(), 0);
    }

    #[test]
    fn a_walk_goes_on_where_it_stopped() {
        let mut ring = ring(1);
        close(&mut ring, 0, &[&[1], &[2], &[3]], libc::TP_STATUS_USER | libc::TP_STATUS_BLK_TMO);
        assert_eq!(collect(&mut ring, 0), (vec![], Walk::Stopped));
        assert_eq!(collect(&mut ring, 2), (vec![vec![1], vec![2]], Walk::Stopped));
        assert_eq!(ring.returned, 0);
        assert_eq!(collect(&mut ring, 2), (vec![vec![3]], Walk::Done { damaged: 0 }));
        assert_eq!(collect(&mut ring, 2), (vec![], Walk::Stopped));
    }

    #[test]
    fn a_damaged_or_empty_block_goes_back_too() {
        let mut ring = ring(2);
        close(&mut ring, 0, &[&[1; 60], &[2; 60], &[3; 60]], libc::TP_STATUS_USER);
        set(bytes(&mut ring, 0), BLOCK_HEAD, 0); // the first packet's step
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Done { damaged: 3 }));
        close(&mut ring, 1, &[], libc::TP_STATUS_USER);
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Done { damaged: 0 }));
        // A block that is not ours is not read, whatever else the status says.
        close(&mut ring, 0, &[&[1]], !libc::TP_STATUS_USER);
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Stopped));
    }

    #[test]
    fn the_first_marked_and_the_open_block_are_found() {
        const LOSING: u32 = libc::TP_STATUS_USER | libc::TP_STATUS_LOSING;
        let mut ring = ring(4);
        assert_eq!(ring.look_ahead(0), (None, 0));
        for (number, status) in [(0, 1), (1, LOSING), (2, LOSING), (3, libc::TP_STATUS_LOSING)] {
            close(&mut ring, number, &[&[1]], status);
        }
        assert_eq!(
            [0, 1, 2, 3].map(|from| ring.look_ahead(from)),
            [(Some(1), 3), (Some(1), 3), (Some(2), 3), (None, 3)]
        );
        close(&mut ring, 3, &[&[1]], libc::TP_STATUS_USER);
        assert_eq!(ring.look_ahead(0), (Some(1), 4));
        collect(&mut ring, 9);
        collect(&mut ring, 9);
        assert_eq!(ring.look_ahead(0), (Some(2), 4));
    }
}
