//! `pcap_findalldevs_ex`: the sources that `pcap_open` opens, devices of this host or files of a directory.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::{fs, ptr};

use super::open::remote;
use super::source::{SourceLocation, told};
use crate::abi::{PCAP_ERROR, PcapIf};
use crate::allocate::{copy, place, release};
use crate::devices::{pcap_findalldevs, pcap_freealldevs};
use crate::guard::{BUG, caught, guard, word};
use crate::stdio::text_of;
use crate::{privileged, savefile};

/// Stores a list of sources for `pcap_freealldevs`: the devices for `rpcap://`, the files of packets in a directory for
/// `file://DIRECTORY/`. Returns 0, or -1 with a text in `error`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_findalldevs_ex(
    source: *const c_char,
    _auth: *mut c_void,
    list: *mut *mut PcapIf,
    error: *mut c_char,
) -> c_int {
    // SAFETY: C1.
    let source = unsafe { word(source) };
    if list.is_null() {
        // SAFETY: C1.
        return unsafe { told(|| Err("A null pointer was supplied for the list".to_owned()), error) };
    }
    // SAFETY: C1, and not null.
    unsafe { list.write(ptr::null_mut()) };
    let find = || {
        let source = source.ok_or("A null pointer was supplied as the source")?;
        match SourceLocation::parse(source.to_bytes())? {
            SourceLocation::File(directory) => {
                privileged::refuse_file(directory)?;
                files(directory).map(Some)
            }
            SourceLocation::Local(b"") => Ok(None),
            SourceLocation::Local(name) => {
                let name = String::from_utf8_lossy(name);
                Err(format!("cannot list {name}: devices are listed by rpcap://, files by file://DIRECTORY/"))
            }
            SourceLocation::Remote { host, .. } => Err(remote(host)),
        }
    };
    guard(PCAP_ERROR, || match caught(Err(BUG.to_owned()), find) {
        // SAFETY: C1, and not null.
        Ok(None) => unsafe { devices(list, error) },
        Ok(Some(files)) => {
            // SAFETY: C1, and not null.
            unsafe { list.write(files) };
            0
        }
        // SAFETY: C1.
        Err(text) => unsafe { told(|| Err(text), error) },
    })
}

/// Lists the devices, each with its source string as its name.
///
/// # Safety
///
/// C1, and `list` is not null.
unsafe fn devices(list: *mut *mut PcapIf, error: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { pcap_findalldevs(list, error) } != 0 {
        return PCAP_ERROR;
    }
    // SAFETY: as above.
    let mut next = unsafe { list.read() };
    // SAFETY: `pcap_findalldevs` has made the list, and C does not have it yet.
    while let Some(device) = unsafe { next.as_mut() } {
        let renamed = caught(false, || {
            // SAFETY: as above.
            let name = unsafe { word(device.name) }.unwrap_or_default();
            // SAFETY: as above.
            let shown = unsafe { word(device.description) }.unwrap_or(name).to_string_lossy();
            let source = SourceLocation::Local(name.to_bytes()).print();
            let about = format!("Network adapter '{shown}' on this host");
            // SAFETY: the name is of malloc, and nobody else uses it.
            let named = unsafe { set(&mut device.name, &source) };
            // SAFETY: as above.
            named && unsafe { set(&mut device.description, about.as_bytes()) }
        });
        if !renamed {
            // SAFETY: the caller's promise.
            let all = unsafe { list.read() };
            // SAFETY: the list is complete, and nobody else has it.
            unsafe { pcap_freealldevs(all) };
            // SAFETY: the caller's promise.
            unsafe { list.write(ptr::null_mut()) };
            // SAFETY: the caller's promise.
            return unsafe { told(|| Err("malloc: Cannot allocate memory".to_owned()), error) };
        }
        next = device.next;
    }
    0
}

/// Replaces a text of C's; returns whether there was memory.
///
/// # Safety
///
/// The old one is null or was allocated with `malloc`, and nobody else uses it.
unsafe fn set(text: &mut *mut c_char, new: &[u8]) -> bool {
    let made = for_c(new);
    if made.is_null() {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe { release(*text) };
    *text = made;
    true
}

fn for_c(text: &[u8]) -> *mut c_char {
    copy(CString::new(text).unwrap_or_default().as_bytes_with_nul()).cast()
}

/// Lists the files of packets in a directory, in the order of their names.
fn files(directory: &[u8]) -> Result<*mut PcapIf, String> {
    let directory = Path::new(OsStr::from_bytes(directory));
    let failed = |error| format!("{}: {}", directory.display(), text_of(&error));
    let entries = fs::read_dir(directory).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(failed)?;
    // Opening a pipe would wait for its writer.
    paths.retain(|path| path.is_file());
    paths.sort();
    let mut list = ptr::null_mut();
    for path in paths.into_iter().rev() {
        let shown = path.display().to_string();
        let Ok(path) = CString::new(path.into_os_string().into_vec()) else { continue };
        if savefile::open(&path, 0).is_err() {
            continue;
        }
        list = entry(&path, &shown, list).ok_or_else(|| {
            // SAFETY: nobody else has the list.
            unsafe { pcap_freealldevs(list) };
            "malloc: Cannot allocate memory".to_owned()
        })?;
    }
    Ok(list)
}

/// Makes C's entry for a file in front of `next`; `None` without memory.
fn entry(path: &CStr, shown: &str, next: *mut PcapIf) -> Option<*mut PcapIf> {
    let name = for_c(&SourceLocation::File(path.to_bytes()).print());
    let description = for_c(format!("Packets in the file {shown}").as_bytes());
    let entry = match name.is_null() || description.is_null() {
        true => ptr::null_mut(),
        false => place(PcapIf { next, name, description, addresses: ptr::null_mut(), flags: 0 }),
    };
    if entry.is_null() {
        // SAFETY: nobody else has it.
        unsafe { release(name) };
        // SAFETY: as above.
        unsafe { release(description) };
        return None;
    }
    Some(entry)
}
