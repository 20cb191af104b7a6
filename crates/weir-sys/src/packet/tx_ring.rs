//! The mapped slots of a packet socket that sends: `PACKET_TX_RING` with `TPACKET_V2` (the kernel's
//! `Documentation/networking/packet_mmap.rst` and `tpacket_snd` in `net/packet/af_packet.c`).
//!
//! The status word of each slot tells whose it is:
//!
//! ```text
//!          we write a frame           send(2): the kernel takes it            the driver is done
//!   free ------------------> wanted ------------------------------> sending ------------------> free
//!        status = SEND_REQUEST            status = SENDING                  status = AVAILABLE
//! ```
//!
//! The kernel takes slots in order and stops at the first frame that it does not send. It leaves that one and those
//! behind it `wanted`, or `WRONG_FORMAT`; so the number of frames sent is always known.
//!
//! Each `SAFETY` comment names the rules that it relies on:
//!
//! - **T1** A slot with the status `AVAILABLE` is ours: the kernel reads none of its bytes until we store
//!   `SEND_REQUEST`, and then it only reads.
//! - **T2** The mapping has `slots * slot_bytes` bytes, is page-aligned and lives as long as its `TxRing`. Slots are a
//!   power of two of at least 64 bytes long, so that none crosses a block, and status words are aligned.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{SendFlags, send};

use super::sender::Sender;
use super::socket::set;
use crate::CallError;

/// Where the length and the bytes of a frame are in its slot (`struct tpacket2_hdr`). The bytes begin where the header
/// ends, since `PACKET_TX_HAS_OFF` is not set.
const LENGTH: usize = 4;
const DATA: usize = size_of::<libc::tpacket2_hdr>();
/// The kernel's block is this long, or as long as a slot. It needs contiguous memory, of which there may be little.
const BLOCK: usize = 64 << 10;
/// The least memory of a ring.
const RING: usize = 2 << 20;

/// A packet socket with slots for frames to send.
#[derive(Debug)]
pub struct TxRing {
    socket: Sender,
    base: NonNull<u8>,
    slots: u32,
    slot_bytes: usize,
    /// The first slot whose frame we have not seen taken, where the kernel is too.
    first: u32,
    /// Slots from `first` on that are wanted.
    wanted: u32,
}

// SAFETY: a ring is an address range and numbers, not tied to a thread.
unsafe impl Send for TxRing {}

impl TxRing {
    /// Adds slots for frames of up to `longest` bytes to a socket.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: no memory for the ring.
    pub fn new(socket: Sender, longest: usize) -> Result<Self, CallError> {
        let slot_bytes = (DATA + longest).next_power_of_two().max(2048);
        let block_bytes = slot_bytes.max(BLOCK);
        let blocks = (RING / block_bytes).max(8);
        let slots = blocks * (block_bytes / slot_bytes);
        let number = |value: usize| u32::try_from(value).map_err(|_| too_large(longest));
        let request = libc::tpacket_req {
            tp_block_size: number(block_bytes)?,
            tp_block_nr: number(blocks)?,
            tp_frame_size: number(slot_bytes)?,
            tp_frame_nr: number(slots)?,
        };
        let failed = |error: io::Error| CallError::new("set up a ring for sending", error);
        let version = i32::try_from(libc::tpacket_versions::TPACKET_V2 as u32).expect("a small number");
        set(&socket.0, libc::SOL_PACKET, libc::PACKET_VERSION, &version).map_err(failed)?;
        set(&socket.0, libc::SOL_PACKET, libc::PACKET_TX_RING, &request).map_err(failed)?;
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let base =
            unsafe { mmap(std::ptr::null_mut(), slots * slot_bytes, flags, MapFlags::SHARED, &socket.0, 0) };
        let base = base.map_err(|error| failed(error.into()))?;
        let base = NonNull::new(base.cast()).expect("mmap never maps the null page without being told to");
        Ok(Self { socket, base, slots: number(slots)?, slot_bytes, first: 0, wanted: 0 })
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the start of the slot `ahead` slots after the first wanted one.
    fn slot(&self, ahead: u32) -> NonNull<u8> {
        let slot = (self.first as usize + ahead as usize) % self.slots as usize;
        // SAFETY: T2; `slot` is below `slots`.
        unsafe { self.base.add(slot * self.slot_bytes) }
    }

    fn status(&self, ahead: u32) -> &AtomicU32 {
        // SAFETY: T2; aligned, and at the start of a slot. Both sides access this word as a whole.
        unsafe { AtomicU32::from_ptr(self.slot(ahead).as_ptr().cast()) }
    }

    /// Copies a frame to the next slot. Returns whether there was a free one.
    ///
    /// # Panics
    ///
    /// If the frame is longer than the slots were made for.
    pub fn put(&mut self, frame: &[u8]) -> bool {
        assert!(frame.len() <= self.slot_bytes - DATA, "{} bytes are too many for a slot", frame.len());
        // Acquire, paired with the smp_wmb before __packet_set_status in tpacket_destruct_skb: the kernel has read the
        // frame that was here.
        if self.wanted == self.slots
            || self.status(self.wanted).load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE
        {
            return false;
        }
        let slot = self.slot(self.wanted);
        let length = u32::try_from(frame.len()).expect("slots are small");
        // SAFETY: T2: within the slot.
        let at = unsafe { slot.add(LENGTH) };
        // SAFETY: T1, and aligned.
        unsafe { at.cast::<u32>().write(length) };
        // SAFETY: T2: within the slot.
        let at = unsafe { slot.add(DATA) };
        // SAFETY: T1; the frame fits, and is not in the ring, which has no slices.
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), at.as_ptr(), frame.len()) };
        // Release, paired with the kernel's load of the status in packet_current_frame: the frame is complete.
        self.status(self.wanted).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.wanted += 1;
        true
    }

    /// Sends the frames that were put; returns how many of them were sent, in this order. The others stay, for another
    /// call or to be [forgotten](Self::forget).
    ///
    /// `wait`: until the driver is done with them, so that all slots are free.
    ///
    /// # Errors
    ///
    /// As [`Sender::send`]; also `EAGAIN` without `wait`, if the driver has too many frames already.
    pub fn send(&mut self, wait: bool) -> (u32, rustix::io::Result<()>) {
        let flags = if wait { SendFlags::empty() } else { SendFlags::DONTWAIT };
        let answer = send(&self.socket.0, &[], flags);
        // Relaxed: no bytes of the slots are read.
        let taken = |status: &AtomicU32| {
            matches!(status.load(Ordering::Relaxed), libc::TP_STATUS_AVAILABLE | libc::TP_STATUS_SENDING)
        };
        let sent = (0..self.wanted).take_while(|&ahead| taken(self.status(ahead)));
        let sent = u32::try_from(sent.count()).expect("no more than slots");
        self.first = (self.first + sent) % self.slots;
        self.wanted -= sent;
        if self.wanted > 0 {
            // Lets the next call find a frame again that this one has marked as wrong. Release: as in `put`.
            self.status(0).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        }
        match answer {
            // The call does not say what stopped it, if it sent some frames before.
            Ok(_) if self.wanted > 0 => (sent, Err(Errno::AGAIN)),
            answer => (sent, answer.map(|_| ())),
        }
    }

    /// Takes back the frames that were put and not sent.
    pub fn forget(&mut self) {
        for ahead in 0..self.wanted {
            // Relaxed: the kernel looks at them in `send` only, in this thread.
            self.status(ahead).store(libc::TP_STATUS_AVAILABLE, Ordering::Relaxed);
        }
        self.wanted = 0;
    }
}

fn too_large(longest: usize) -> CallError {
    let error = io::Error::from_raw_os_error(libc::EINVAL);
    CallError::new(format!("set up a ring for frames of {longest} bytes"), error)
}

impl Drop for TxRing {
    fn drop(&mut self) {
        let length = self.slots as usize * self.slot_bytes;
        // SAFETY: T2, and no reference to the mapping outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), length) };
    }
}

// As in linux/if_packet.h.
const _: () = assert!(DATA == 32 && size_of::<libc::tpacket_req>() == 16);
