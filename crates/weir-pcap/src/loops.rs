//! Reading packets.
//!
//! A callback may call any function on its handle, or leave by `longjmp`, an exception, or the end of its thread. So while
//! it runs no reference to the handle exists, and no frame of this library has anything to drop (C5). The same frames wait
//! for packets, where the thread may be cancelled (C6).

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::abi::*;
use crate::cancel::{self, Woken, held};
use crate::filter::Filter;
use crate::handle::{
    DUMPING, Handle, NOT_ACTIVATED, Pcap, Source, Step, StepContext, forward, with, with_packets,
};
use crate::live::{self, Live};
use crate::savefile::{self, Packet, Savefile};

/// Packets until a thread that need not wait for the next one notices that it was cancelled.
const UNNOTICED: u32 = 256;

/// Reads the next packet that the filter accepts into `to`. `begun`: packets were already read in this call, so a break
/// stays for the next one.
///
/// The frame is plain: the thread may be cancelled here (C6).
///
/// # Safety
///
/// See [`with`].
#[inline]
pub(crate) unsafe fn step(pcap: *mut Pcap, begun: bool, to: &mut Packet) -> Step {
    // SAFETY: the caller's promise.
    if let Some(pcap) = unsafe { pcap.as_ref() } {
        pcap.steps.set(pcap.steps.get().wrapping_add(1));
        if pcap.steps.get() % UNNOTICED == 0 {
            cancel::point();
        }
    }
    let mut context = StepContext { begun, deadline: None, woken: None };
    loop {
        // SAFETY: the caller's promise.
        let step = unsafe {
            with_packets(pcap, Step::Failed(PCAP_ERROR), |pcap, handle| match handle.special {
                None => accepted(pcap, handle, &mut context, to),
                Some(_) => sampled(pcap, handle, &mut context, to),
            })
        };
        match step {
            Step::Wait(wait) => context.woken = Some(wait.now()),
            // Here, libpcap has asked the kernel for more.
            Step::End | Step::Nothing => {
                cancel::point();
                return step;
            }
            _ => return step,
        }
    }
}

/// Takes another packet, if the handle has one beside those taken before.
///
/// # Safety
///
/// See [`with`].
pub(crate) unsafe fn beside(pcap: *mut Pcap, to: &mut Packet) -> bool {
    let take = |_: &Pcap, handle: &mut Handle| match &mut handle.source {
        Source::Live(live) if handle.special.is_none() => live.beside(handle.filter.as_deref(), to),
        _ => false,
    };
    // SAFETY: the caller's promise.
    unsafe { with_packets(pcap, false, take) }
}

#[inline]
fn accepted(pcap: &Pcap, handle: &mut Handle, context: &mut StepContext, to: &mut Packet) -> Step {
    match &mut handle.source {
        Source::File(file) => next(pcap, file, handle.filter.as_deref(), context, to),
        Source::Live(live) => arrived(pcap, live, handle.filter.as_deref(), context, to),
        Source::Created(_) => Step::Failed(pcap.fail(PCAP_ERROR_NOT_ACTIVATED, NOT_ACTIVATED)),
        Source::Foreign => {
            Step::Failed(pcap.fail(PCAP_ERROR, "the system's libpcap serves this device: use its functions"))
        }
        Source::Dead => {
            let text = "Packets aren't available from a pcap_open_dead pcap_t";
            Step::Failed(pcap.fail(PCAP_ERROR, text))
        }
        Source::Dumping(_) => Step::Failed(pcap.fail(PCAP_ERROR, DUMPING)),
    }
}

/// Reads statistics, or the next packet of a sample.
#[cold]
fn sampled(pcap: &Pcap, handle: &mut Handle, context: &mut StepContext, to: &mut Packet) -> Step {
    if let (Source::Live(live), Some(special)) = (&mut handle.source, &mut handle.special)
        && let Some(statistics) = &mut special.statistics
    {
        return statistics.step(pcap, live, handle.filter.as_deref(), context, to, handle.precision);
    }
    loop {
        let step = accepted(pcap, handle, context, to);
        let Some(special) = &mut handle.special else { return step };
        if !matches!(step, Step::Packet) || special.sampling.takes(pcap, &to.header, handle.precision) {
            return step;
        }
    }
}

/// Reads the next packet of a file, once there are bytes if it is a pipe.
#[inline]
fn next(
    pcap: &Pcap,
    file: &mut Savefile,
    filter: Option<&Filter>,
    context: &mut StepContext,
    to: &mut Packet,
) -> Step {
    loop {
        if context.is_broken(pcap) {
            return Step::Break;
        }
        match context.woken.take() {
            None => {
                if let Some(wait) = file.wait() {
                    return Step::Wait(wait);
                }
            }
            Some(Woken::Events(_)) => {}
            Some(Woken::Failed(errno)) => {
                return Step::Failed(pcap.fail(PCAP_ERROR, &savefile::failed(errno)));
            }
        }
        match file.next(to) {
            Ok(true) if filter.is_none_or(|filter| filter.accepts(&to.seen())) => return Step::Packet,
            Ok(true) => {}
            Ok(false) => return Step::End,
            Err(text) => return Step::Failed(pcap.fail(PCAP_ERROR, &text)),
        }
    }
}

/// Takes a packet of a device, or tells how to wait for it, unless some were already read in this call.
#[inline]
fn arrived(
    pcap: &Pcap,
    live: &mut Live,
    filter: Option<&Filter>,
    context: &mut StepContext,
    to: &mut Packet,
) -> Step {
    let found = match context.woken.take() {
        Some(woken) => held(|| live.woken(woken)),
        None => Ok(()),
    };
    if found.is_ok() && context.is_broken(pcap) {
        return Step::Break;
    }
    match found.and_then(|()| live.next(filter, to)) {
        Ok(true) => return Step::Packet,
        Ok(false) => {}
        Err(text) => return Step::Failed(pcap.fail(PCAP_ERROR, &text)),
    }
    if context.begun {
        return Step::Nothing;
    }
    if context.deadline.is_none() {
        context.deadline = live.deadline();
    }
    if !live.nonblocking && context.deadline.is_none_or(|deadline| Instant::now() < deadline) {
        return Step::Wait(live.sleep(context.deadline));
    }
    match held(|| live.health()) {
        Ok(()) => Step::Nothing,
        Err(text) => Step::Failed(pcap.fail(PCAP_ERROR, &text)),
    }
}

/// Calls `callback` for at most `count` packets, or for all if `count` is not positive; returns how many there were.
///
/// # Safety
///
/// C1; `callback` may do as C5 says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_dispatch(
    pcap: *mut Pcap,
    count: c_int,
    callback: PcapHandler,
    user: *mut u8,
) -> c_int {
    forward!(pcap_dispatch(pcap, count, callback, user));
    // SAFETY: the caller's promise.
    unsafe { read(pcap, count, callback, user) }.0
}

/// Does what `pcap_dispatch` does; also returns whether there may be more packets.
///
/// # Safety
///
/// As for `pcap_dispatch`.
#[inline]
unsafe fn read(pcap: *mut Pcap, count: c_int, callback: PcapHandler, user: *mut u8) -> (c_int, bool) {
    let Some(callback) = callback else { return (no_callback(pcap), false) };
    let mut done = 0;
    let mut packet = Packet::NONE;
    loop {
        // SAFETY: C1, C4.
        match unsafe { step(pcap, done > 0, &mut packet) } {
            Step::Packet => {
                // SAFETY: the callback takes a packet; the header lives in this frame, the bytes in the handle.
                unsafe { callback(user, &raw const packet.header, packet.data) };
            }
            Step::End => return (done, false),
            Step::Nothing | Step::Wait(_) => return (done, true),
            Step::Break if done > 0 => return (done, true),
            Step::Break => return (PCAP_ERROR_BREAK, false),
            Step::Failed(code) => return (code, false),
        }
        done += 1;
        // A number that C can hold: libpcap stops here, too.
        if done == count || done == c_int::MAX {
            return (done, true);
        }
    }
}

/// Calls `callback` for `count` packets, or until the end if `count` is not positive; returns 0.
///
/// # Safety
///
/// C1; `callback` may do as C5 says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_loop(
    pcap: *mut Pcap,
    count: c_int,
    callback: PcapHandler,
    user: *mut u8,
) -> c_int {
    forward!(pcap_loop(pcap, count, callback, user));
    let mut left = count;
    loop {
        // SAFETY: the caller's promise.
        let (done, more) = unsafe { read(pcap, left, callback, user) };
        if done < 0 || done == 0 && !more {
            return done;
        }
        if count > 0 {
            left -= done;
            if left <= 0 {
                return 0;
            }
        }
    }
}

#[cold]
fn no_callback(pcap: *mut Pcap) -> c_int {
    // SAFETY: C1, C4.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, _| pcap.fail(PCAP_ERROR, "A null pointer was supplied as the callback"))
    }
}

/// Returns the next packet, or null at the end and after an error.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_next(pcap: *mut Pcap, header: *mut PcapPkthdr) -> *const u8 {
    forward!(pcap_next(pcap, header));
    // SAFETY: C1.
    let Some(handle) = (unsafe { pcap.as_ref() }) else { return ptr::null() };
    // SAFETY: C has pointers to the last packet, which it gave up with this call (C3).
    let packet = unsafe { &mut *handle.packet.get() };
    // SAFETY: C1, C4.
    let Step::Packet = (unsafe { step(pcap, false, packet) }) else { return ptr::null() };
    if !header.is_null() {
        // SAFETY: C1.
        unsafe { header.write(packet.header) };
    }
    packet.data
}

/// Gives the next packet; returns 1, or a status code: `PCAP_ERROR_BREAK` at the end of a file.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_next_ex(
    pcap: *mut Pcap,
    header: *mut *mut PcapPkthdr,
    data: *mut *const u8,
) -> c_int {
    forward!(pcap_next_ex(pcap, header, data));
    // SAFETY: C1.
    let Some(handle) = (unsafe { pcap.as_ref() }) else { return PCAP_ERROR };
    // SAFETY: C has pointers to the last packet, which it gave up with this call (C3).
    let packet = unsafe { &mut *handle.packet.get() };
    if !header.is_null() {
        // Also without a packet, as in libpcap.
        // SAFETY: C1.
        unsafe { header.write(&raw mut packet.header) };
    }
    // SAFETY: C1, C4.
    match unsafe { step(pcap, false, packet) } {
        Step::Packet => {
            if !data.is_null() {
                // SAFETY: C1.
                unsafe { data.write(packet.data) };
            }
            1
        }
        Step::Nothing | Step::Wait(_) => 0,
        Step::End | Step::Break => PCAP_ERROR_BREAK,
        Step::Failed(code) => code,
    }
}

/// Ends the loop that runs, or the next one.
///
/// # Safety
///
/// C1; this function may run in a signal handler and beside any other but `pcap_close` (C4).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_breakloop(pcap: *mut Pcap) {
    // SAFETY: C1.
    if let Some(pcap) = unsafe { pcap.as_ref() } {
        pcap.stop.store(true, Ordering::Relaxed);
        live::ring(&pcap.notifier);
        if let Some(foreign) = &pcap.foreign {
            foreign.break_loop();
        }
    }
}
