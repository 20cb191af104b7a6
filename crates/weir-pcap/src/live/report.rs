//! Where the line goes that a user asks for by `WEIR_REPORT`.
//!
//! Standard error may be a pipe that the parent of this program parses, as tshark does with that of dumpcap. So `weir run`
//! gives its own standard error to all its children under another descriptor, and says which file that is.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::fs::{FileType, Stat, fstat};

/// A request for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// `1`: on standard error.
    Here,
    /// `FD:DEV:INO`: on this descriptor, if it still is this file.
    There { descriptor: RawFd, device: u64, inode: u64 },
}

impl Report {
    /// Reads the value of `WEIR_REPORT`; `None`: no line.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text == "1" {
            return Some(Self::Here);
        }
        let mut parts = text.split(':');
        let descriptor = parts.next()?.parse().ok().filter(|&descriptor| descriptor >= 0)?;
        let mut number = || parts.next()?.parse().ok();
        let (device, inode) = (number()?, number()?);
        Some(Self::There { descriptor, device, inode })
    }

    /// Prints the line, unless it could disturb another program.
    pub(super) fn print(self, line: &str) {
        let Some(descriptor) = self.descriptor() else { return };
        // SAFETY: C's business; a program that has closed it gets no line.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let _ = rustix::io::write(file, line.as_bytes());
    }

    fn descriptor(self) -> Option<RawFd> {
        let Self::There { descriptor, device, inode } = self else { return Some(libc::STDERR_FILENO) };
        let is_it = |file: &Stat| (file.st_dev, file.st_ino) == (device, inode);
        if stat(descriptor).is_some_and(|file| is_it(&file)) {
            return Some(descriptor);
        }
        // The program has closed it, or uses the number for another file. Nobody parses a terminal or a log.
        let unparsed = |file: &Stat| {
            matches!(FileType::from_raw_mode(file.st_mode), FileType::CharacterDevice | FileType::RegularFile)
        };
        stat(libc::STDERR_FILENO).filter(|file| is_it(file) || unparsed(file)).map(|_| libc::STDERR_FILENO)
    }
}

fn stat(descriptor: RawFd) -> Option<Stat> {
    // SAFETY: the kernel refuses a number without a file.
    fstat(unsafe { BorrowedFd::borrow_raw(descriptor) }).ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_line_goes_only_to_the_file_that_was_meant() {
        assert_eq!(Report::read("1"), Some(Report::Here));
        for none in ["", "0", "yes", "9", "9:1", "-1:2:3", "9:x:1"] {
            assert_eq!(Report::read(none), None, "{none}");
        }
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        let file = fstat(&writer).expect("a file");
        let descriptor = writer.as_raw_fd();
        let text = format!("{descriptor}:{}:{}", file.st_dev, file.st_ino);
        let report = Report::read(&text).expect("a request");
        report.print("weir: a line\n");
        let mut line = [0; 32];
        let read = rustix::io::read(&reader, &mut line).expect("a line");
        assert_eq!(&line[..read], b"weir: a line\n");
        // The number now belongs to another file.
        let other = Report::There { descriptor, device: file.st_dev, inode: file.st_ino + 1 };
        assert_ne!(other.descriptor(), Some(descriptor));
    }
}
