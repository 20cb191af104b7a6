//! Ethernet addresses: as text, of hosts, and in files like ethers(5).

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int};
use std::ptr;

use weir_sys::names;

use crate::allocate::copy;
use crate::guard::{guard, word};

/// Bytes of a name, with the closing 0.
const NAME: usize = 122;

/// `struct pcap_etherent`: a line of a file.
#[repr(C)]
#[derive(Debug)]
pub struct PcapEtherent {
    /// The address.
    pub addr: [u8; 6],
    /// The host's name.
    pub name: [u8; NAME],
}

thread_local! {
    /// The thread's last entry. Only C has a pointer to it (C3).
    static ENTRY: UnsafeCell<PcapEtherent> =
        const { UnsafeCell::new(PcapEtherent { addr: [0; 6], name: [0; NAME] }) };
}

/// Returns the address that a text means, in memory for `free`. A byte has one or two digits; between bytes may be one
/// of `:`, `.` and `-`. What is beyond six bytes does not count, and what is missing is 0.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_ether_aton(text: *const c_char) -> *mut u8 {
    guard(ptr::null_mut(), || {
        // SAFETY: C1.
        unsafe { word(text) }.map_or(ptr::null_mut(), |text| copy(&parse(text.to_bytes())))
    })
}

/// Returns the address of a host (ethers(5)), in memory for `free`; null if it is not known.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_ether_hostton(name: *const c_char) -> *mut u8 {
    guard(ptr::null_mut(), || {
        // SAFETY: C1.
        let name = unsafe { word(name) }.and_then(|name| name.to_str().ok());
        name.and_then(names::ethernet).map_or(ptr::null_mut(), |address| copy(&address))
    })
}

/// Returns the next entry of a file like /etc/ethers, valid until the thread's next call; null at the end.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_next_etherent(file: *mut libc::FILE) -> *mut PcapEtherent {
    guard(ptr::null_mut(), || {
        if file.is_null() {
            return ptr::null_mut();
        }
        let Some(read) = (Entries { file }).next_entry() else { return ptr::null_mut() };
        ENTRY.with(|entry| {
            // SAFETY: this thread's own, without references.
            unsafe { entry.get().write(read) };
            entry.get()
        })
    })
}

fn parse(mut text: &[u8]) -> [u8; 6] {
    let mut address = [0; 6];
    for byte in &mut address {
        if let [b':' | b'.' | b'-', rest @ ..] = text {
            text = rest;
        }
        let [first, rest @ ..] = text else { break };
        (*byte, text) = (digit(*first), rest);
        if let [second, rest @ ..] = text
            && second.is_ascii_hexdigit()
        {
            (*byte, text) = (*byte << 4 | digit(*second), rest);
        }
    }
    address
}

/// Returns the value of a digit. Other letters go on counting, as in libpcap.
fn digit(letter: u8) -> u8 {
    match letter {
        b'0'..=b'9' => letter - b'0',
        b'a'..=b'f' => letter - b'a' + 10,
        _ => letter.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// A file that is open for reading (C1).
struct Entries {
    file: *mut libc::FILE,
}

impl Entries {
    /// Reads up to the end of the next entry's line. Lines that do not begin with an address and a space are not
    /// entries; nor is a last line without an end.
    fn next_entry(&self) -> Option<PcapEtherent> {
        let mut entry = PcapEtherent { addr: [0; 6], name: [0; NAME] };
        loop {
            let first = self.after_blanks()?;
            if first == b'\n' {
                continue;
            }
            if !first.is_ascii_hexdigit() {
                self.skip_line()?;
                continue;
            }
            if !is_space(self.address(first, &mut entry.addr)?) {
                self.skip_line()?;
                continue;
            }
            match self.after_blanks()? {
                b'\n' => {}
                b'#' => self.skip_line()?,
                first => {
                    if self.name(first, &mut entry.name)? != b'\n' {
                        // The entry counts even if its line has no end.
                        _ = self.skip_line();
                    }
                    return Some(entry);
                }
            }
        }
    }

    /// Reads the bytes of an address, after each of which may be a colon; returns the letter after it.
    fn address(&self, first: u8, address: &mut [u8; 6]) -> Option<u8> {
        let mut letter = first;
        for byte in address {
            let value = digit(letter);
            *byte = value;
            letter = self.next()?;
            if letter.is_ascii_hexdigit() {
                *byte = value << 4 | digit(letter);
                letter = self.next()?;
            }
            if letter != b':' {
                break;
            }
            letter = self.next()?;
        }
        Some(letter)
    }

    /// Reads a name, shortened to fit; returns the letter after it.
    fn name(&self, first: u8, name: &mut [u8; NAME]) -> Option<u8> {
        let mut letter = first;
        for byte in &mut name[..NAME - 1] {
            *byte = letter;
            letter = self.next()?;
            if is_space(letter) {
                break;
            }
        }
        Some(letter)
    }

    fn after_blanks(&self) -> Option<u8> {
        loop {
            let letter = self.next()?;
            if !is_space(letter) || letter == b'\n' {
                return Some(letter);
            }
        }
    }

    fn skip_line(&self) -> Option<()> {
        while self.next()? != b'\n' {}
        Some(())
    }

    fn next(&self) -> Option<u8> {
        // SAFETY: the file is open.
        let letter: c_int = unsafe { libc::fgetc(self.file) };
        u8::try_from(letter).ok()
    }
}

/// Whether isspace(3) holds.
fn is_space(letter: u8) -> bool {
    matches!(letter, b' ' | b'\t'..=b'\r')
}
