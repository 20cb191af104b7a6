//! Handles of devices: what is set before `pcap_activate`.

use std::ffi::{c_char, c_int};
use std::os::fd::AsRawFd as _;
use std::ptr;
use std::sync::atomic::Ordering;

use crate::abi::*;
use crate::foreign::{Foreign, theirs};
use crate::guard::{guard, tell, word};
use crate::handle::{Handle, Pcap, Source, forward, pcap_close, pcap_geterr, with};
use crate::lists::give;
use crate::live::{self, Live};
use crate::settings::Settings;
use crate::text::{known_status, pcap_free_tstamp_types};

/// The answer to what can only be set before activation.
const ACTIVATED: &str = "can't perform  operation on activated capture";

/// Creates a handle for a device; null is `any`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_create(device: *const c_char, error: *mut c_char) -> *mut Pcap {
    guard(ptr::null_mut(), || {
        // SAFETY: C1.
        let device = unsafe { word(device) }.unwrap_or(c"any");
        let foreign = match live::serves(device) {
            true => None,
            // SAFETY: C1.
            false => unsafe { Foreign::create(device, error) },
        };
        let settings = Settings {
            device: device.to_owned(),
            snapshot: 0,
            promiscuous: false,
            monitor: false,
            timeout: 0,
            immediate: false,
            buffer: 0,
            protocol: 0,
            nonblocking: false,
        };
        let handle = Handle {
            source: Source::Created(Box::new(settings)),
            link_type: 0,
            link_type_ext: 0,
            snapshot: 0,
            precision: PCAP_TSTAMP_PRECISION_MICRO,
            filter: None,
            special: None,
        };
        Pcap::allocate_with(handle, foreign)
    })
}

/// Defines functions that set something before activation.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident = |$settings:ident, $value:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// C1.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(pcap: *mut Pcap, $value: c_int) -> c_int {
            forward!($name(pcap, $value));
            // SAFETY: C1.
            unsafe {
                with(pcap, PCAP_ERROR, |pcap, handle| match &mut handle.source {
                    Source::Created($settings) => $body,
                    _ => pcap.fail(PCAP_ERROR_ACTIVATED, ACTIVATED),
                })
            }
        }
    )*};
}

setters! {
    /// Sets the snap length.
    pcap_set_snaplen = |settings, value| { settings.snapshot = value; 0 };
    /// Sets promiscuous mode.
    pcap_set_promisc = |settings, value| { settings.promiscuous = value != 0; 0 };
    /// Sets monitor mode.
    pcap_set_rfmon = |settings, value| { settings.monitor = value != 0; 0 };
    /// Sets how long packets may wait for others, in milliseconds.
    pcap_set_timeout = |settings, value| { settings.timeout = value; 0 };
    /// Delivers each packet at once.
    pcap_set_immediate_mode = |settings, value| { settings.immediate = value != 0; 0 };
    /// Sets the size of the buffer in bytes; sizes below 1 change nothing.
    pcap_set_buffer_size = |settings, value| { if value > 0 { settings.buffer = value } 0 };
    /// Sets the type of timestamps.
    pcap_set_tstamp_type = |_settings, value| match value {
        PCAP_TSTAMP_HOST => 0,
        _ => PCAP_WARNING_TSTAMP_TYPE_NOTSUP,
    };
    /// Captures only packets of this protocol, an EtherType.
    pcap_set_protocol_linux = |settings, value| { settings.protocol = value; 0 };
}

/// Sets the precision of timestamps.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_set_tstamp_precision(pcap: *mut Pcap, precision: c_int) -> c_int {
    forward!(pcap_set_tstamp_precision(pcap, precision));
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, handle| match (&handle.source, precision) {
            (Source::Created(_), PCAP_TSTAMP_PRECISION_MICRO | PCAP_TSTAMP_PRECISION_NANO) => {
                handle.precision = precision;
                0
            }
            (Source::Created(_), _) => PCAP_ERROR_TSTAMP_PRECISION_NOTSUP,
            _ => pcap.fail(PCAP_ERROR_ACTIVATED, ACTIVATED),
        })
    }
}

/// Returns whether the device has monitor mode.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_can_set_rfmon(pcap: *mut Pcap) -> c_int {
    forward!(pcap_can_set_rfmon(pcap));
    // SAFETY: C1.
    unsafe {
        with(pcap, PCAP_ERROR, |pcap, handle| match handle.source {
            Source::Created(_) | Source::File(_) | Source::Live(_) | Source::Dumping(_) | Source::Foreign => {
                0
            }
            Source::Dead => pcap.fail(PCAP_ERROR, "Rfmon mode doesn't apply on a pcap_open_dead pcap_t"),
        })
    }
}

/// Lists the types of timestamps; returns how many there are.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_list_tstamp_types(pcap: *mut Pcap, to: *mut *mut c_int) -> c_int {
    let types = |pcap: &Pcap, _: &Handle| {
        let Some(foreign) = &pcap.foreign else { return Ok(vec![PCAP_TSTAMP_HOST]) };
        let list = theirs!(foreign.library, pcap_list_tstamp_types(pcap, to));
        let numbers = foreign.numbers(list, theirs!(foreign.library, pcap_free_tstamp_types(to)));
        numbers.map_err(|status| pcap.fail(status, &foreign.error()))
    };
    // SAFETY: C1.
    unsafe { give(pcap, to, types) }
}

/// Activates a handle.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_activate(pcap: *mut Pcap) -> c_int {
    let activate = |pcap: &Pcap, handle: &mut Handle| {
        if let Some(foreign) = &pcap.foreign {
            return handle.activate_theirs(pcap, foreign);
        }
        let Source::Created(settings) = &handle.source else {
            return pcap.fail(PCAP_ERROR_ACTIVATED, ACTIVATED);
        };
        let begun = match Live::begin(settings, handle.precision == PCAP_TSTAMP_PRECISION_NANO) {
            Ok(begun) => begun,
            Err(refusal) => return pcap.fail(refusal.code, &refusal.text),
        };
        // Release, paired with the load in `ring`.
        pcap.notifier.store(begun.live.notifier().as_raw_fd(), Ordering::Release);
        (handle.link_type, handle.snapshot) = (begun.link_type, begun.snapshot);
        handle.source = Source::Live(Box::new(begun.live));
        let (status, text) = begun.warning.unwrap_or_default();
        pcap.fail(status, &text)
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, activate) }
}

/// Opens a device: creates and activates a handle.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_open_live(
    device: *const c_char,
    snapshot: c_int,
    promiscuous: c_int,
    timeout: c_int,
    error: *mut c_char,
) -> *mut Pcap {
    // SAFETY: C1.
    let pcap = unsafe { pcap_create(device, error) };
    // SAFETY: C1, and a new handle.
    unsafe { pcap_set_snaplen(pcap, snapshot) };
    // SAFETY: as above.
    unsafe { pcap_set_promisc(pcap, promiscuous) };
    // SAFETY: as above.
    unsafe { pcap_set_timeout(pcap, timeout) };
    // SAFETY: C1, and a new handle.
    unsafe { activated(pcap, device, error) }
}

/// Activates a handle of this device; closes it if that fails, with a text in `error`, which also gets a warning.
///
/// # Safety
///
/// C1; the handle is new.
pub(crate) unsafe fn activated(pcap: *mut Pcap, device: *const c_char, error: *mut c_char) -> *mut Pcap {
    guard(ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let status = unsafe { pcap_activate(pcap) };
        if status >= 0 && status != PCAP_WARNING {
            return pcap;
        }
        // SAFETY: C1.
        let why = unsafe { pcap_geterr(pcap) };
        // SAFETY: the text of the handle.
        let why = unsafe { word(why) }.unwrap_or_default().to_string_lossy().into_owned();
        if status == PCAP_WARNING {
            // SAFETY: C1.
            unsafe { tell(error, &why) };
            return pcap;
        }
        // SAFETY: C1.
        let device = unsafe { word(device) }.unwrap_or(c"any").to_string_lossy();
        let said = known_status(status).unwrap_or_default().to_string_lossy();
        let text = match status {
            PCAP_ERROR => format!("{device}: {why}"),
            PCAP_ERROR_NO_SUCH_DEVICE | PCAP_ERROR_PERM_DENIED | PCAP_ERROR_PROMISC_PERM_DENIED => {
                format!("{device}: {said} ({why})")
            }
            _ => format!("{device}: {said}"),
        };
        // SAFETY: C1.
        unsafe { tell(error, &text) };
        // SAFETY: nobody has this handle.
        unsafe { pcap_close(pcap) };
        ptr::null_mut()
    })
}
