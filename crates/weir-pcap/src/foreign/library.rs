//! The system's libpcap, loaded beside this library.
//!
//! Both have the same soname and export the same names. So it is loaded by its path, and finds its own functions and
//! those of its libraries first (`RTLD_DEEPBIND`). One of them is `malloc`, and a program may have another: what the
//! system's library allocates is released there.

use std::env::consts::ARCH;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::guard::word;
use crate::version::MARK;

/// Defines the table of functions; `theirs!` and `functions` know their types.
macro_rules! library {
    ($($name:ident,)*) => {
        /// The functions of the system's library that are called.
        pub(crate) struct Library {
            $(pub(crate) $name: NonNull<c_void>,)*
            _loaded: Loaded,
        }

        impl Library {
            fn new(loaded: Loaded) -> Result<Self, String> {
                Ok(Self { $($name: loaded.function(concat!(stringify!($name), "\0"))?,)* _loaded: loaded })
            }
        }
    };
}

library! {
    pcap_activate,
    pcap_breakloop,
    pcap_bufsize,
    pcap_can_set_rfmon,
    pcap_close,
    pcap_create,
    pcap_datalink,
    pcap_datalink_ext,
    pcap_dispatch,
    pcap_fileno,
    pcap_findalldevs,
    pcap_free_datalinks,
    pcap_free_tstamp_types,
    pcap_freealldevs,
    pcap_get_required_select_timeout,
    pcap_get_selectable_fd,
    pcap_get_tstamp_precision,
    pcap_geterr,
    pcap_getnonblock,
    pcap_inject,
    pcap_is_swapped,
    pcap_list_datalinks,
    pcap_list_tstamp_types,
    pcap_loop,
    pcap_major_version,
    pcap_minor_version,
    pcap_next,
    pcap_next_ex,
    pcap_sendpacket,
    pcap_set_buffer_size,
    pcap_set_datalink,
    pcap_set_immediate_mode,
    pcap_set_promisc,
    pcap_set_protocol_linux,
    pcap_set_rfmon,
    pcap_set_snaplen,
    pcap_set_timeout,
    pcap_set_tstamp_precision,
    pcap_set_tstamp_type,
    pcap_setdirection,
    pcap_setfilter,
    pcap_setnonblock,
    pcap_snapshot,
    pcap_stats,
}

// SAFETY: the pointers are those of functions; they may be called in any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The library, once it was needed, or why it cannot be used. It stays loaded as long as this one, or as handles of it.
static LIBRARY: Mutex<Option<Result<Arc<Library>, String>>> = Mutex::new(None);

impl Library {
    /// Returns the system's library, loaded now if it is not yet. The answer stays the same.
    ///
    /// # Errors
    ///
    /// The text says why it cannot be used.
    pub(crate) fn get() -> Result<Arc<Self>, String> {
        let mut library = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
        library.get_or_insert_with(|| Loaded::find().and_then(Self::new).map(Arc::new)).clone()
    }

    /// Returns the system's library if it is loaded.
    pub(crate) fn loaded() -> Option<Arc<Self>> {
        LIBRARY.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.as_ref().ok().cloned()
    }
}

/// Called by the dynamic loader before it unloads this library, and when the process ends. Other threads may still use
/// the system's library then; they keep it.
extern "C" fn unload() {
    match LIBRARY.try_lock() {
        Ok(mut library) => *library = None,
        Err(TryLockError::Poisoned(error)) => *error.into_inner() = None,
        Err(TryLockError::WouldBlock) => {}
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_THE_END: extern "C" fn() = unload;

/// A library that is loaded until this is dropped.
struct Loaded(NonNull<c_void>);

impl Loaded {
    /// Loads the first libpcap in the directories of the system that is not weir's.
    fn find() -> Result<Self, String> {
        // The sanitizers do not know libraries that find their own functions first, and end the process.
        // SAFETY: the name is terminated.
        if !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__sanitizer_set_report_path".as_ptr()) }.is_null() {
            return Err("this process runs with a sanitizer".to_owned());
        }
        let multiarch = format!("/usr/lib/{ARCH}-linux-gnu");
        let mut why = None;
        for directory in [&*multiarch, "/usr/lib64", "/usr/lib"] {
            // The sonames of Debian, and of all others.
            for name in ["libpcap.so.0.8", "libpcap.so.1"] {
                let path = Path::new(directory).join(name);
                if !path.exists() {
                    continue;
                }
                match Self::load(&path) {
                    Ok(loaded) if !loaded.is_ours() => return Ok(loaded),
                    Ok(_) => {}
                    Err(text) => why = Some(text),
                }
            }
        }
        Err(why.unwrap_or_else(|| "it is not installed".to_owned()))
    }

    fn load(path: &Path) -> Result<Self, String> {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
        // SAFETY: the name is terminated; what the libraries do when they are loaded, they do in other programs.
        let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
        NonNull::new(library).map(Self).ok_or_else(failure)
    }

    /// Returns the function with a name, which ends with a 0.
    fn function(&self, name: &str) -> Result<NonNull<c_void>, String> {
        let name = CStr::from_bytes_with_nul(name.as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the library is loaded.
        let function = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        NonNull::new(function).ok_or_else(failure)
    }

    /// Returns whether this is weir's library under the system's name: this one, or a copy.
    fn is_ours(&self) -> bool {
        let Ok(version) = self.function("pcap_lib_version\0") else { return false };
        // SAFETY: all versions of libpcap have this type for it.
        let version: extern "C" fn() -> *const c_char = unsafe { std::mem::transmute(version) };
        // SAFETY: the text is terminated and static.
        unsafe { word(version()) }.is_some_and(|text| text.to_string_lossy().contains(MARK))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: it was loaded, and nothing uses its functions any more.
        let _unloaded: c_int = unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

/// Returns the text of the dynamic loader's last error.
fn failure() -> String {
    // SAFETY: glibc keeps the text for this thread alone.
    let text = unsafe { libc::dlerror() };
    // SAFETY: null, or terminated.
    unsafe { word(text) }.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}
