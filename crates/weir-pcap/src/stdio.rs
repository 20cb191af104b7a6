//! C's `FILE`, which programs give to libpcap and take from it.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use libc::{FILE, off_t, size_t};

unsafe extern "C" {
    static stdin: *mut FILE;
    static stdout: *mut FILE;
    static stderr: *mut FILE;
    fn fread_unlocked(to: *mut u8, size: size_t, count: size_t, file: *mut FILE) -> size_t;
}

// Where a thread may be cancelled while it waits for the file: see `cancel`.
unsafe extern "C-unwind" {
    fn fwrite_unlocked(from: *const u8, size: size_t, count: size_t, file: *mut FILE) -> size_t;
    fn fflush(file: *mut FILE) -> c_int;
    fn fclose(file: *mut FILE) -> c_int;
    fn fprintf(file: *mut FILE, form: *const c_char, ...) -> c_int;
    fn getc_unlocked(file: *mut FILE) -> c_int;
    fn ungetc(byte: c_int, file: *mut FILE) -> c_int;
}

/// An open `FILE`: one of the program, or one that this library opened. It is closed by [`File::close`], not by drop.
///
/// It is used without its lock: who gives a file to libpcap leaves it alone while libpcap uses it (C4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File(NonNull<FILE>);

// SAFETY: any thread may use a FILE; who has it sees to it that they take turns (C4).
unsafe impl Send for File {}

impl File {
    /// Takes a file of the program; `None` for null.
    ///
    /// # Safety
    ///
    /// The file is open until [`File::close`], or until C no longer uses what the file was given for (C1).
    pub(crate) unsafe fn new(file: *mut FILE) -> Option<Self> {
        NonNull::new(file).map(Self)
    }

    pub(crate) fn open(name: &CStr, mode: &CStr) -> io::Result<Self> {
        // SAFETY: two terminated strings.
        let file = unsafe { libc::fopen(name.as_ptr(), mode.as_ptr()) };
        NonNull::new(file).map(Self).ok_or_else(io::Error::last_os_error)
    }

    pub(crate) fn standard_input() -> Option<Self> {
        // SAFETY: glibc sets the variable before any program runs.
        NonNull::new(unsafe { stdin }).map(Self)
    }

    pub(crate) fn standard_output() -> Option<Self> {
        // SAFETY: as above.
        NonNull::new(unsafe { stdout }).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut FILE {
        self.0.as_ptr()
    }

    /// Reads into the buffer; fewer bytes only at the end, or after an error.
    pub(crate) fn read(self, buffer: &mut [u8]) -> usize {
        // SAFETY: the file is open, and the buffer has this length.
        unsafe { fread_unlocked(buffer.as_mut_ptr(), 1, buffer.len(), self.as_ptr()) }
    }

    /// Writes all bytes; returns whether it did.
    pub(crate) fn write(self, bytes: &[u8]) -> bool {
        // SAFETY: the file is open, and `bytes` has this length.
        unsafe { fwrite_unlocked(bytes.as_ptr(), 1, bytes.len(), self.as_ptr()) == bytes.len() }
    }

    /// Waits for a byte, and leaves it there; an error is `errno`. At the end there is none.
    pub(crate) fn peek(self) -> Result<(), c_int> {
        // SAFETY: the file is open.
        let byte = unsafe { getc_unlocked(self.as_ptr()) };
        if byte != libc::EOF {
            // SAFETY: as above; the byte was read last.
            unsafe { ungetc(byte, self.as_ptr()) };
            return Ok(());
        }
        let error = errno();
        if self.failed() { Err(error) } else { Ok(()) }
    }

    /// Returns whether reading or writing has failed.
    pub(crate) fn failed(self) -> bool {
        // SAFETY: the file is open.
        unsafe { libc::ferror(self.as_ptr()) != 0 }
    }

    /// Returns -1 if the file has no position.
    pub(crate) fn position(self) -> off_t {
        // SAFETY: the file is open.
        unsafe { libc::ftello(self.as_ptr()) }
    }

    /// Moves to `position`, which clears the mark that says that the end was met.
    pub(crate) fn seek(self, position: off_t) -> io::Result<()> {
        // SAFETY: the file is open.
        match unsafe { libc::fseeko(self.as_ptr(), position, libc::SEEK_SET) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Moves behind the last byte.
    pub(crate) fn seek_end(self) -> io::Result<()> {
        // SAFETY: the file is open.
        match unsafe { libc::fseeko(self.as_ptr(), 0, libc::SEEK_END) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns whether all was written.
    pub(crate) fn flush(self) -> bool {
        // SAFETY: the file is open.
        unsafe { fflush(self.as_ptr()) == 0 }
    }

    /// Sets the size of the buffer. The file was just opened and not yet used.
    pub(crate) fn set_buffer(self, size: usize) {
        // SAFETY: the file is open; with null, stdio allocates the buffer and releases it.
        unsafe { libc::setvbuf(self.as_ptr(), std::ptr::null_mut(), libc::_IOFBF, size) };
    }

    pub(crate) fn descriptor(self) -> c_int {
        // SAFETY: the file is open.
        unsafe { libc::fileno(self.as_ptr()) }
    }

    /// Returns a second descriptor of the same open file.
    pub(crate) fn duplicate(self) -> io::Result<OwnedFd> {
        let descriptor = self.descriptor();
        if descriptor < 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // SAFETY: the file is open, so its descriptor is.
        unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()
    }

    /// Closes the file, which nothing uses afterwards.
    pub(crate) fn close(self) {
        // SAFETY: the file is open.
        unsafe { fclose(self.as_ptr()) };
    }
}

/// Prints `prefix: text` and a line feed on standard error, by C's stdio.
///
/// # Safety
///
/// Both are terminated strings.
pub(crate) unsafe fn print_error(prefix: *const c_char, text: *const c_char) {
    // SAFETY: glibc sets the variable before any program runs.
    let file = unsafe { stderr };
    // SAFETY: two strings for two conversions.
    unsafe { fprintf(file, c"%s: %s\n".as_ptr(), prefix, text) };
}

/// Returns the thread's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: each thread has one.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { errno.read() }
}

/// Returns the system's text for an error, as C programs show it.
pub(crate) fn text_of(error: &io::Error) -> String {
    let Some(number) = error.raw_os_error() else { return error.to_string() };
    // SAFETY: strerror takes any number; glibc's text stays until this thread asks again.
    let text = unsafe { libc::strerror(number) };
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
