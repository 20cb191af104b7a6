//! Send queues: packets with their times, sent by one call.
//!
//! The buffer of a queue holds each packet's `struct pcap_pkthdr`, and its bytes behind it, without gaps.

use std::ffi::{c_char, c_int, c_uint};
use std::hint::spin_loop;
use std::ptr;
use std::slice;
use std::time::{Duration, Instant};

use crate::abi::*;
use crate::allocate::{place, release};
use crate::cancel::{self, Wait};
use crate::guard::guard;
use crate::handle::{Handle, Pcap, with};

/// `struct pcap_send_queue`.
#[repr(C)]
#[derive(Debug)]
pub struct PcapSendQueue {
    /// Size of the buffer.
    pub maxlen: c_uint,
    /// Bytes that are in use.
    pub len: c_uint,
    /// The packets, allocated with `malloc`.
    pub buffer: *mut c_char,
}

/// Bytes of a `struct pcap_pkthdr`.
const HEADER: usize = size_of::<PcapPkthdr>();
/// The end of a wait, for which a thread stays awake: the kernel may wake a sleeping one as much too late.
const AWAKE: Duration = Duration::from_micros(150);

/// Allocates a queue for this many bytes of packets and their headers; null without memory.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_sendqueue_alloc(size: c_uint) -> *mut PcapSendQueue {
    guard(ptr::null_mut(), || {
        // SAFETY: malloc takes any size.
        let buffer: *mut c_char = unsafe { libc::malloc((size as usize).max(1)) }.cast();
        if buffer.is_null() {
            return ptr::null_mut();
        }
        let queue = place(PcapSendQueue { maxlen: size, len: 0, buffer });
        if queue.is_null() {
            // SAFETY: nobody else has it.
            unsafe { release(buffer) };
        }
        queue
    })
}

/// Releases a queue.
///
/// # Safety
///
/// The queue is null or from [`pcap_sendqueue_alloc`], and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_sendqueue_destroy(queue: *mut PcapSendQueue) {
    // SAFETY: C1.
    let Some(buffer) = (unsafe { queue.as_ref() }).map(|queue| queue.buffer) else { return };
    // SAFETY: allocated by `pcap_sendqueue_alloc`, and this is the last use.
    unsafe { release(buffer) };
    // SAFETY: as above.
    unsafe { release(queue) };
}

/// Adds a packet; returns 0, or -1 if there is no room.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_sendqueue_queue(
    queue: *mut PcapSendQueue,
    header: *const PcapPkthdr,
    data: *const u8,
) -> c_int {
    // SAFETY: C1.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return PCAP_ERROR };
    // SAFETY: C1.
    let Some(packet) = (unsafe { header.as_ref() }) else { return PCAP_ERROR };
    let (used, bytes) = (queue.len as usize, packet.caplen as usize);
    let end = used.checked_add(HEADER).and_then(|at| at.checked_add(bytes));
    let end = end.filter(|&end| end <= queue.maxlen as usize).and_then(|end| c_uint::try_from(end).ok());
    let Some(end) = end.filter(|_| !queue.buffer.is_null() && !data.is_null()) else { return PCAP_ERROR };
    // SAFETY: the buffer has `maxlen` bytes, and the new end is within them.
    let to = unsafe { queue.buffer.add(used) };
    // SAFETY: as above; C's header is not in the queue.
    unsafe { ptr::copy_nonoverlapping(header.cast(), to, HEADER) };
    // SAFETY: as above.
    let to = unsafe { to.add(HEADER) };
    // SAFETY: C1: the packet has as many bytes.
    unsafe { ptr::copy_nonoverlapping(data.cast(), to, bytes) };
    queue.len = end;
    0
}

/// Sends the packets of a queue: as fast as possible, or, if `sync` is not 0, as far apart as their times are. Returns
/// the bytes of the queue that were sent: all of them, unless there is an error in the handle.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_sendqueue_transmit(
    pcap: *mut Pcap,
    queue: *mut PcapSendQueue,
    sync: c_int,
) -> c_uint {
    cancel::point();
    // SAFETY: C1.
    let bytes = unsafe { queue.as_ref() }.and_then(|queue| unsafe { used(queue) });
    let mut sending = Sending { sent: 0, begun: None };
    let mut transmit = |pcap: &Pcap, handle: &mut Handle| match bytes {
        None => {
            pcap.fail(PCAP_ERROR, "cannot send a queue: a null pointer, or one with more bytes than room");
            None
        }
        Some(bytes) => sending.go_on(pcap, handle, bytes, sync != 0),
    };
    // SAFETY: C1.
    while let Some(moment) = unsafe { with(pcap, None, &mut transmit) } {
        // The thread may be cancelled here: a plain frame (C6).
        Wait::until(moment).now();
    }
    // As many as a 32-bit number has counted.
    c_uint::try_from(sending.sent).unwrap_or(c_uint::MAX)
}

/// Returns the bytes of a queue that are in use, if they can be.
///
/// # Safety
///
/// The queue is from [`pcap_sendqueue_alloc`], and stays as it is while the function of C's call runs.
unsafe fn used(queue: &PcapSendQueue) -> Option<&[u8]> {
    let possible = !queue.buffer.is_null() && queue.len <= queue.maxlen;
    // SAFETY: the caller's promise, and not null.
    possible.then(|| unsafe { slice::from_raw_parts(queue.buffer.cast(), queue.len as usize) })
}

/// What of a queue was sent.
#[derive(Clone, Copy)]
struct Sending {
    /// Bytes of packets and their headers.
    sent: usize,
    /// When the first packet was sent, and the time that it has.
    begun: Option<(Instant, i128)>,
}

impl Sending {
    /// Sends packets; returns the moment to sleep until, unless that was all.
    fn go_on(&mut self, pcap: &Pcap, handle: &Handle, bytes: &[u8], sync: bool) -> Option<Instant> {
        let Some(live) = handle.live() else {
            handle.needs_device(pcap, "send packets");
            return None;
        };
        let nanoseconds = handle.precision == PCAP_TSTAMP_PRECISION_NANO;
        while self.sent < bytes.len() {
            let Some((stamp, packet, rest)) = packet(&bytes[self.sent..], nanoseconds) else {
                pcap.fail(PCAP_ERROR, "cannot send a queue: it ends within a packet");
                break;
            };
            let (begun, begin) = *self.begun.get_or_insert_with(|| (Instant::now(), stamp));
            if let (true, Ok(since)) = (sync, u64::try_from(stamp - begin)) {
                let due = begun + Duration::from_nanos(since);
                if due > Instant::now() + AWAKE {
                    return due.checked_sub(AWAKE);
                }
                while Instant::now() < due {
                    spin_loop();
                }
            }
            if let Err(text) = live.send(packet) {
                pcap.fail(PCAP_ERROR, &text);
                break;
            }
            self.sent = bytes.len() - rest.len();
        }
        None
    }
}

/// Splits the first packet off: its time in nanoseconds, its bytes, and what is behind them.
fn packet(bytes: &[u8], nanoseconds: bool) -> Option<(i128, &[u8], &[u8])> {
    let (seconds, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_first_chunk()?;
    let (caplen, rest) = rest.split_first_chunk()?;
    let (_len, rest) = rest.split_first_chunk::<4>()?;
    let (packet, rest) = rest.split_at_checked(u32::from_ne_bytes(*caplen) as usize)?;
    let tick = if nanoseconds { 1 } else { 1000 };
    let stamp = i128::from(i64::from_ne_bytes(*seconds)) * 1_000_000_000
        + i128::from(i64::from_ne_bytes(*part)) * tick;
    Some((stamp, packet, rest))
}
