//! The handle, `pcap_t`: what it reads from, and its error text.

mod dump;
mod sampling;
mod special;
mod statistics;
mod step;
pub(crate) mod theirs;

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32};

pub(crate) use self::dump::{Dump, Ended};
pub(crate) use self::special::{Shared, Special};
pub(crate) use self::statistics::Statistics;
pub(crate) use self::step::{Step, StepContext};
pub(crate) use self::theirs::forward;
use crate::abi::*;
use crate::filter::Filter;
use crate::foreign::Foreign;
use crate::guard::{guard, guard_packets, tell};
use crate::live::Live;
use crate::savefile::{Packet, Savefile};
use crate::settings::Settings;
use crate::stdio;

/// Text for what only an activated handle can do.
pub(crate) const NOT_ACTIVATED: &str = "This handle hasn't been activated yet";

/// Text for what cannot be done meanwhile.
pub(crate) const DUMPING: &str = "pcap_live_dump is writing the packets to a file";

/// `pcap_t`. C has pointers into the cells, and `stop` is also set beside other functions (C4), so each is a field of
/// its own, of which nobody has a lasting reference.
pub struct Pcap {
    /// Set by `pcap_breakloop`.
    pub(crate) stop: AtomicBool,
    /// The descriptor that wakes a sleeping reader; negative: nobody sleeps.
    pub(crate) notifier: AtomicI32,
    /// How often a packet was asked for.
    pub(crate) steps: Cell<u32>,
    /// What `pcap_geterr` returns.
    error: UnsafeCell<[c_char; PCAP_ERRBUF_SIZE + 1]>,
    /// The packet of `pcap_next` and `pcap_next_ex`, which returns a pointer to its header.
    pub(crate) packet: UnsafeCell<Packet>,
    /// What WinPcap's extensions give C.
    pub(crate) shared: Shared,
    state: UnsafeCell<Handle>,
    /// The handle that serves instead of this one, if the device is not ours.
    pub(crate) foreign: Option<Foreign>,
}

/// What the functions of one handle share.
pub(crate) struct Handle {
    pub(crate) source: Source,
    /// `DLT_` number.
    pub(crate) link_type: c_int,
    /// The upper bits of the link type in a file, such as the length of the frame check sequence.
    pub(crate) link_type_ext: u32,
    pub(crate) snapshot: c_int,
    /// `PCAP_TSTAMP_PRECISION_`.
    pub(crate) precision: c_int,
    pub(crate) filter: Option<Box<Filter>>,
    /// `None`: it is read packet by packet.
    pub(crate) special: Option<Box<Special>>,
}

/// Where the packets of a handle come from.
pub(crate) enum Source {
    /// A device, before `pcap_activate`.
    Created(Box<Settings>),
    /// Nowhere: for compiling and dumping.
    Dead,
    /// A file.
    File(Box<Savefile>),
    /// A device.
    Live(Box<Live>),
    /// A device, while `pcap_live_dump` has its packets.
    Dumping(Box<Dump>),
    /// A device that is not ours, active.
    Foreign,
}

impl Pcap {
    /// Allocates a handle for C, released by `pcap_close`.
    pub(crate) fn allocate(handle: Handle) -> *mut Self {
        Self::allocate_with(handle, None)
    }

    /// Allocates a handle that `foreign` serves.
    pub(crate) fn allocate_with(handle: Handle, foreign: Option<Foreign>) -> *mut Self {
        Box::into_raw(Box::new(Self {
            stop: AtomicBool::new(false),
            notifier: AtomicI32::new(-1),
            steps: Cell::new(0),
            error: UnsafeCell::new([0; PCAP_ERRBUF_SIZE + 1]),
            packet: UnsafeCell::new(Packet::NONE),
            shared: Shared::new(),
            state: UnsafeCell::new(handle),
            foreign,
        }))
    }

    /// Sets the error text; returns `code`.
    pub(crate) fn fail(&self, code: c_int, text: &str) -> c_int {
        // SAFETY: the buffer is larger than needed, and only C has pointers to it.
        unsafe { tell(self.error.get().cast(), text) };
        code
    }
}

impl Handle {
    pub(crate) fn file(&self) -> Option<&Savefile> {
        match &self.source {
            Source::File(file) => Some(file),
            _ => None,
        }
    }

    /// Returns the capture on a device.
    pub(crate) fn live(&self) -> Option<&Live> {
        match &self.source {
            Source::Live(live) => Some(live),
            _ => None,
        }
    }

    /// Returns the capture on a device, to do something with it.
    pub(crate) fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.source {
            Source::Live(live) => Some(live),
            _ => None,
        }
    }

    /// Returns the answer of an operation that only captures on devices have, without such a capture.
    pub(crate) fn refuse(&self, pcap: &Pcap, dead: &str, file: &str) -> c_int {
        match self.source {
            Source::Created(_) => pcap.fail(PCAP_ERROR_NOT_ACTIVATED, NOT_ACTIVATED),
            Source::Dead => pcap.fail(PCAP_ERROR, dead),
            Source::File(_) | Source::Live(_) | Source::Foreign => pcap.fail(PCAP_ERROR, file),
            Source::Dumping(_) => pcap.fail(PCAP_ERROR, DUMPING),
        }
    }
}

/// Runs a function of a handle; returns `failed` for null, and after a panic.
///
/// # Safety
///
/// `pcap` is null or an open handle, and no other function but `pcap_breakloop` uses it (C1, C4, C5).
pub(crate) unsafe fn with<T: Copy>(
    pcap: *mut Pcap,
    failed: T,
    body: impl FnOnce(&Pcap, &mut Handle) -> T,
) -> T {
    // SAFETY: the caller's promise.
    guard(failed, || unsafe { on(pcap, failed, body) })
}

/// Like [`with`], for what takes packets: see [`guard_packets`].
///
/// # Safety
///
/// See [`with`].
#[inline]
pub(crate) unsafe fn with_packets<T: Copy>(
    pcap: *mut Pcap,
    failed: T,
    body: impl FnOnce(&Pcap, &mut Handle) -> T,
) -> T {
    // SAFETY: the caller's promise.
    guard_packets(failed, || unsafe { on(pcap, failed, body) })
}

/// Calls a function on a handle, unless it is null.
///
/// # Safety
///
/// See [`with`].
#[inline]
unsafe fn on<T>(pcap: *mut Pcap, failed: T, body: impl FnOnce(&Pcap, &mut Handle) -> T) -> T {
    // SAFETY: the caller's promise.
    let Some(pcap) = (unsafe { pcap.as_ref() }) else { return failed };
    // SAFETY: no other function uses the handle, so there is no other reference.
    let handle = unsafe { &mut *pcap.state.get() };
    body(pcap, handle)
}

/// Returns the text of the handle's last error; the next error replaces it.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_geterr(pcap: *mut Pcap) -> *mut c_char {
    // SAFETY: C1.
    match unsafe { pcap.as_ref() } {
        Some(pcap) => pcap.error.get().cast(),
        None => c"A null pointer was supplied as the handle".as_ptr().cast_mut(),
    }
}

/// Prints the text of the handle's last error on standard error.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_perror(pcap: *mut Pcap, prefix: *const c_char) {
    // SAFETY: C1.
    let text = unsafe { pcap_geterr(pcap) };
    let prefix = if prefix.is_null() { c"".as_ptr() } else { prefix };
    // SAFETY: C1, and our own text.
    unsafe { stdio::print_error(prefix, text) };
}

/// Opens a handle without packets, for compiling and dumping.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_open_dead(link_type: c_int, snapshot: c_int) -> *mut Pcap {
    pcap_open_dead_with_tstamp_precision(link_type, snapshot, 0)
}

/// Like `pcap_open_dead`; files that are written with this handle have timestamps of this precision.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pcap_open_dead_with_tstamp_precision(
    link_type: c_int,
    snapshot: c_int,
    precision: u32,
) -> *mut Pcap {
    guard(std::ptr::null_mut(), || {
        // Another number is microseconds, as in libpcap.
        let precision = if precision == 1 { PCAP_TSTAMP_PRECISION_NANO } else { PCAP_TSTAMP_PRECISION_MICRO };
        Pcap::allocate(Handle {
            source: Source::Dead,
            link_type,
            link_type_ext: 0,
            snapshot,
            precision,
            filter: None,
            special: None,
        })
    })
}

/// Closes a handle, and its file.
///
/// # Safety
///
/// C1; nothing uses the handle afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_close(pcap: *mut Pcap) {
    let end_dump = |_: &Pcap, handle: &mut Handle| {
        if let Source::Dumping(_) = handle.source {
            handle.source = Source::Dead;
        }
    };
    // The thread of a dump uses the handle until it ends.
    // SAFETY: C1.
    unsafe { with(pcap, (), end_dump) };
    guard((), || {
        if !pcap.is_null() {
            // SAFETY: handles are made by `Pcap::allocate`, and this is the last use.
            drop(unsafe { Box::from_raw(pcap) });
        }
    });
}

impl std::fmt::Debug for Pcap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pcap").finish_non_exhaustive()
    }
}
