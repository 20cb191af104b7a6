//! Devices that only the system's libpcap serves: USB, Bluetooth, netfilter, D-Bus, RDMA.
//!
//! A handle of such a device has one of the system's library inside, and `forward!` passes its calls on. Expressions
//! are compiled and files are written here, as for all handles.

mod library;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

pub(crate) use self::library::Library;
use crate::abi::PcapIf;
use crate::created::{pcap_activate, pcap_create};
use crate::datalinks::pcap_set_datalink;
use crate::devices::{pcap_findalldevs, pcap_freealldevs};
use crate::guard::word;
use crate::handle::{Handle, Pcap, Source, pcap_close, pcap_geterr};
use crate::loops::pcap_breakloop;
use crate::properties::{pcap_datalink, pcap_get_tstamp_precision, pcap_snapshot};

/// Returns a function of the system's library. It has the type of ours with this name and number of arguments.
macro_rules! theirs {
    ($library:expr, $function:ident($($argument:expr),*)) => {
        $crate::foreign::theirs!($library, "C" $function($($argument),*))
    };
    ($library:expr, $abi:literal $function:ident($($argument:expr),*)) => {{
        let ours: unsafe extern $abi fn($($crate::foreign::theirs!(@type $argument)),*) -> _ = $function;
        // SAFETY: both have the type of pcap.h.
        unsafe { $crate::foreign::like(ours, $library.$function) }
    }};
    (@type $argument:expr) => { _ };
}
pub(crate) use theirs;

/// Passes this call on if the handle is one of the system's library: returns its answer.
macro_rules! forward {
    ($function:ident($($arguments:tt)*)) => {
        $crate::foreign::forward!("C" $function($($arguments)*))
    };
    ($abi:literal $function:ident($pcap:expr $(, $argument:expr)*)) => {
        // SAFETY: C1.
        if let Some(foreign) = unsafe { $crate::foreign::of($pcap) } {
            let function = $crate::foreign::theirs!(foreign.library, $abi $function($pcap $(, $argument)*));
            // SAFETY: C1: what the caller promises us, it promises them.
            let answer = unsafe { function(foreign.handle.as_ptr() $(, $argument)*) };
            if $crate::foreign::Answer::failed(&answer) {
                // SAFETY: C1.
                unsafe { $crate::foreign::repeat($pcap) };
            }
            return answer;
        }
    };
}
pub(crate) use forward;

/// The answer of a function.
pub(crate) trait Answer {
    /// Returns whether it may have left an error text.
    fn failed(&self) -> bool;
}

impl Answer for c_int {
    fn failed(&self) -> bool {
        *self < 0
    }
}

impl<T> Answer for *mut T {
    fn failed(&self) -> bool {
        self.is_null()
    }
}

impl<T> Answer for *const T {
    fn failed(&self) -> bool {
        self.is_null()
    }
}

impl Answer for () {
    fn failed(&self) -> bool {
        false
    }
}

/// Calls a function of the system's library.
macro_rules! call {
    ($library:expr, $function:ident($($argument:expr),*)) => {{
        let function = theirs!($library, $function($($argument),*));
        // SAFETY: handles and lists are of this library, and open; other pointers are to what pcap.h says.
        unsafe { function($($argument),*) }
    }};
}

/// Gives a function of the system's library the type of ours.
///
/// # Safety
///
/// `F` is the type of a function, and that of `theirs`.
pub(crate) unsafe fn like<F: Copy>(_ours: F, theirs: NonNull<c_void>) -> F {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute_copy(&theirs) }
}

/// Returns the handle of the system's library, if this has one.
///
/// # Safety
///
/// C1; it stays as long as the handle.
pub(crate) unsafe fn of<'a>(pcap: *mut Pcap) -> Option<&'a Foreign> {
    // SAFETY: the caller's promise.
    unsafe { pcap.as_ref() }?.foreign.as_ref()
}

/// Repeats the error text of the system's handle as that of ours.
///
/// # Safety
///
/// C1.
pub(crate) unsafe fn repeat(pcap: *mut Pcap) {
    // SAFETY: C1.
    if let Some(pcap) = unsafe { pcap.as_ref() }
        && let Some(foreign) = &pcap.foreign
    {
        pcap.fail(0, &foreign.error());
    }
}

/// A handle of the system's library.
pub(crate) struct Foreign {
    pub(crate) library: Arc<Library>,
    /// Nothing is known of what is there: it is not ours.
    pub(crate) handle: NonNull<Pcap>,
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
        NonNull::new(call!(library, pcap_create(device.as_ptr(), error)))
            .map(|handle| Self { library, handle })
    }

    /// Ends the loop that runs, in a signal handler, too.
    pub(crate) fn break_loop(&self) {
        call!(self.library, pcap_breakloop(self.handle.as_ptr()));
    }

    fn error(&self) -> String {
        let text = call!(self.library, pcap_geterr(self.handle.as_ptr()));
        // SAFETY: the text is terminated, and stays until the next call.
        unsafe { word(text) }.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Activates the handle; `pcap` and `handle` are ours.
    pub(crate) fn activate(&self, pcap: &Pcap, handle: &mut Handle) -> c_int {
        let status = call!(self.library, pcap_activate(self.handle.as_ptr()));
        if status >= 0 {
            handle.source = Source::Foreign;
            self.describe(handle);
        }
        pcap.fail(status, &self.error())
    }

    pub(crate) fn set_datalink(&self, pcap: &Pcap, handle: &mut Handle, dlt: c_int) -> c_int {
        let status = call!(self.library, pcap_set_datalink(self.handle.as_ptr(), dlt));
        self.describe(handle);
        pcap.fail(status, &self.error())
    }

    /// Stores what compiling expressions and writing files needs to know.
    fn describe(&self, handle: &mut Handle) {
        let of = self.handle.as_ptr();
        handle.link_type = call!(self.library, pcap_datalink(of));
        handle.snapshot = call!(self.library, pcap_snapshot(of));
        handle.precision = call!(self.library, pcap_get_tstamp_precision(of));
    }

    /// Returns a list of numbers, from a function that makes such a list and one that releases it.
    pub(crate) fn numbers(
        &self,
        pcap: &Pcap,
        make: Make,
        release: unsafe extern "C" fn(*mut c_int),
    ) -> Result<Vec<c_int>, c_int> {
        let mut list = ptr::null_mut();
        // SAFETY: the handle is open, and the list is written to.
        let length = unsafe { make(self.handle.as_ptr(), &raw mut list) };
        let number = usize::try_from(length).map_err(|_negative| pcap.fail(length, &self.error()))?;
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

/// A function that lists numbers of a handle.
type Make = unsafe extern "C" fn(*mut Pcap, *mut *mut c_int) -> c_int;

impl Drop for Foreign {
    fn drop(&mut self) {
        call!(self.library, pcap_close(self.handle.as_ptr()));
    }
}

/// Calls the system's `pcap_findalldevs`, if the library is there.
///
/// # Safety
///
/// As for the function.
pub(crate) unsafe fn find_all_devices(list: *mut *mut PcapIf, error: *mut c_char) -> Option<c_int> {
    let library = Library::get().ok()?;
    Some(call!(library, pcap_findalldevs(list, error)))
}

/// Calls the system's `pcap_freealldevs`, if the library was there; returns whether it was.
///
/// # Safety
///
/// As for the function.
pub(crate) unsafe fn free_all_devices(list: *mut PcapIf) -> bool {
    let library = Library::loaded();
    if let Some(library) = &library {
        call!(library, pcap_freealldevs(list));
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
