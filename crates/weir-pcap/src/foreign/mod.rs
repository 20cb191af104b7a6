//! Devices that only the system's libpcap serves: USB, Bluetooth, netfilter, D-Bus, RDMA.
//!
//! A handle of such a device contains a handle of the system's libpcap, to which `handle::forward!` passes its calls on.
//! Expressions are compiled and files are written here, as for all handles.

mod functions;
mod library;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use self::functions::{Create, Done, Find, Free, Make, Number, Set, Text};
pub(crate) use self::library::Library;
use crate::abi::PcapIf;
use crate::guard::word;

/// Returns a function of the system's library. It has the type of ours with this name and number of arguments.
macro_rules! theirs {
    ($library:expr, $function:ident($($argument:expr),*)) => {{
        let ours: unsafe extern "C-unwind" fn($($crate::foreign::theirs!(@type $argument)),*) -> _ = $function;
        // SAFETY: both have the type of pcap.h.
        unsafe { $crate::foreign::typed_as(ours, $library.$function) }
    }};
    (@type $argument:expr) => { _ };
}
pub(crate) use theirs;

/// Calls a function of the system's library.
macro_rules! call {
    ($library:expr, $function:ident($($argument:expr),*) as $kind:ty) => {{
        // SAFETY: `functions` has the types of pcap.h.
        let function = unsafe { typed::<$kind>($library.$function) };
        // SAFETY: handles and lists are of this library, and open; other pointers are to what pcap.h says.
        unsafe { function($($argument),*) }
    }};
}

/// Gives a function of the system's library its type.
///
/// # Safety
///
/// `F` is the type of a function, and that of `theirs`.
unsafe fn typed<F: Copy>(theirs: NonNull<c_void>) -> F {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute_copy(&theirs) }
}

/// Gives a function of the system's library the type of ours.
///
/// # Safety
///
/// As for [`typed`].
pub(crate) unsafe fn typed_as<F: Copy>(_ours: F, theirs: NonNull<c_void>) -> F {
    // SAFETY: the caller's promise.
    unsafe { typed(theirs) }
}

/// `pcap_t` of the system's library. Nothing is known of what is there.
pub(crate) enum Theirs {}

/// A handle of the system's library.
pub(crate) struct Foreign {
    pub(crate) library: Arc<Library>,
    pub(crate) handle: NonNull<Theirs>,
}

impl Foreign {
    /// Creates a handle for a device that is not ours; `None`: the system's library is not there, or has none and says
    /// why in `error`.
    ///
    /// # Safety
    ///
    /// C1.
    pub(crate) unsafe fn create(device: &CStr, error: *mut c_char) -> Option<Self> {
        let library = Library::get().ok()?;
        let handle = call!(library, pcap_create(device.as_ptr(), error) as Create<Theirs>);
        NonNull::new(handle).map(|handle| Self { library, handle })
    }

    /// Ends the loop that runs, in a signal handler, too.
    pub(crate) fn break_loop(&self) {
        call!(self.library, pcap_breakloop(self.handle.as_ptr()) as Done<Theirs>);
    }

    /// Returns the text of the last error.
    pub(crate) fn error(&self) -> String {
        let text = call!(self.library, pcap_geterr(self.handle.as_ptr()) as Text<Theirs>);
        // SAFETY: the text is terminated, and stays until the next call.
        unsafe { word(text) }.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Activates the handle; returns the status.
    pub(crate) fn activate(&self) -> c_int {
        call!(self.library, pcap_activate(self.handle.as_ptr()) as Number<Theirs>)
    }

    /// Sets the link type; returns the status.
    pub(crate) fn set_datalink(&self, dlt: c_int) -> c_int {
        call!(self.library, pcap_set_datalink(self.handle.as_ptr(), dlt) as Set<Theirs>)
    }

    /// Returns the link type, the snap length and the precision of timestamps.
    pub(crate) fn description(&self) -> (c_int, c_int, c_int) {
        let of = self.handle.as_ptr();
        (
            call!(self.library, pcap_datalink(of) as Number<Theirs>),
            call!(self.library, pcap_snapshot(of) as Number<Theirs>),
            call!(self.library, pcap_get_tstamp_precision(of) as Number<Theirs>),
        )
    }

    /// Returns a list of numbers, from a function that makes such a list and one that releases it, or the status.
    pub(crate) fn numbers<H>(
        &self,
        make: Make<H>,
        release: unsafe extern "C-unwind" fn(*mut c_int),
    ) -> Result<Vec<c_int>, c_int> {
        let mut list = ptr::null_mut();
        // SAFETY: the handle is open, and the list is written to.
        let length = unsafe { make(self.handle.as_ptr().cast(), &raw mut list) };
        let number = usize::try_from(length).map_err(|_negative| length)?;
        let numbers = match list.is_null() {
            true => Vec::new(),
            // SAFETY: the list has as many numbers.
            false => unsafe { slice::from_raw_parts(list, number) }.to_vec(),
        };
        // SAFETY: the list is from this library, and not used again.
        unsafe { release(list) };
        Ok(numbers)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        call!(self.library, pcap_close(self.handle.as_ptr()) as Done<Theirs>);
    }
}

/// Calls the system's `pcap_findalldevs`, if the library is there.
///
/// # Safety
///
/// As for the function.
pub(crate) unsafe fn find_all_devices(list: *mut *mut PcapIf, error: *mut c_char) -> Option<c_int> {
    let library = Library::get().ok()?;
    Some(call!(library, pcap_findalldevs(list, error) as Find))
}

/// Calls the system's `pcap_freealldevs`, if the library was there; returns whether it was.
///
/// # Safety
///
/// As for the function.
pub(crate) unsafe fn free_all_devices(list: *mut PcapIf) -> bool {
    let library = Library::loaded();
    if let Some(library) = &library {
        call!(library, pcap_freealldevs(list) as Free);
    }
    library.is_some()
}

/// Returns why a device that only the system's library serves cannot be opened; `None` for other names.
pub(crate) fn missing(device: &CStr) -> Option<String> {
    /// How the names of such devices begin. Those of RDMA adapters can have any name.
    const BEGINS: [&[u8]; 5] = [b"bluetooth", b"dbus-", b"nflog", b"nfqueue", b"usbmon"];
    let name = device.to_bytes();
    let why = BEGINS.iter().any(|begin| name.starts_with(begin)).then(|| Library::get().err())??;
    Some(format!("only the system's libpcap captures on this device, and it cannot be used: {why}"))
}
