//! The bytes of a savefile, read in large pieces or exactly.

use std::fs;
use std::io::{self, Read};

use libc::off_t;

use crate::cancel::held;
use crate::stdio::File;

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// A packet that claims to be longer gets its memory as its bytes arrive.
const TRUSTED: usize = 1 << 20;

/// The rest of a file. Fewer bytes than asked for mean that it has ended, or that reading it has failed.
pub(crate) enum Bytes {
    /// Read ahead, from a file that nobody else reads.
    Ahead(Ahead),
    /// Read no further than asked, through a `FILE` that the program may use, too.
    Exactly(Exactly),
}

/// A buffer that is ahead of the packets.
pub(crate) struct Ahead {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that nobody has taken yet.
    from: usize,
    to: usize,
    /// Position of the first byte of `buffer` in the file.
    base: u64,
    ended: bool,
    error: Option<io::Error>,
}

/// A `FILE`, and the bytes that were read last.
pub(crate) struct Exactly {
    file: File,
    buffer: Vec<u8>,
    taken: usize,
    /// Whether its bytes may come late, as those of a pipe.
    late: bool,
}

impl Bytes {
    pub(crate) fn ahead(input: Box<dyn Read + Send>) -> Self {
        let buffer = vec![0; PIECE];
        Self::Ahead(Ahead { input, buffer, from: 0, to: 0, base: 0, ended: false, error: None })
    }

    pub(crate) fn exactly(file: File) -> Self {
        let late = file.duplicate().and_then(|file| fs::File::from(file).metadata());
        let late = late.is_ok_and(|about| !about.is_file());
        Self::Exactly(Exactly { file, buffer: Vec::new(), taken: 0, late })
    }

    /// Returns the file whose next byte may come late.
    #[inline]
    pub(crate) fn awaited(&self) -> Option<File> {
        match self {
            Self::Exactly(Exactly { file, late: true, .. }) => Some(*file),
            _ => None,
        }
    }

    /// Takes the next bytes. They stay until the next call.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> &mut [u8] {
        match self {
            Self::Ahead(ahead) => ahead.take(count),
            Self::Exactly(exactly) => exactly.take(count),
        }
    }

    /// Returns the last `count` of the bytes that were taken last.
    #[inline]
    pub(crate) fn taken(&mut self, count: usize) -> &mut [u8] {
        match self {
            Self::Ahead(ahead) => &mut ahead.buffer[ahead.from - count..ahead.from],
            Self::Exactly(exactly) => &mut exactly.buffer[exactly.taken - count..exactly.taken],
        }
    }

    /// Returns why reading has failed; `None`: it has not.
    pub(crate) fn error(&self) -> Option<io::Error> {
        match self {
            Self::Ahead(ahead) => ahead.error.as_ref().map(again),
            Self::Exactly(exactly) => {
                let error = io::Error::last_os_error();
                exactly.file.failed().then_some(error)
            }
        }
    }

    /// Continues through `file`, the file that was read ahead. The bytes taken last stay.
    pub(crate) fn share(&mut self, file: File) {
        let Self::Ahead(ahead) = self else { return };
        let position = ahead.base + ahead.from as u64;
        // A file whose position cannot be set is of no use to the program; it would have been an error before.
        if off_t::try_from(position).is_ok_and(|position| file.seek(position).is_ok()) {
            if ahead.ended && ahead.from == ahead.to {
                // Meets the end again, which is marked in the file.
                file.read(&mut [0]);
            }
            let buffer = std::mem::take(&mut ahead.buffer);
            *self = Self::Exactly(Exactly { file, buffer, taken: 0, late: false });
        }
    }
}

impl Ahead {
    #[inline]
    fn take(&mut self, count: usize) -> &mut [u8] {
        if self.to - self.from < count {
            self.fetch(count);
        }
        let from = self.from;
        self.from = self.to.min(from + count);
        &mut self.buffer[from..self.from]
    }

    /// Reads until `count` bytes are there, or no more come. Gives up the bytes that were taken.
    #[cold]
    fn fetch(&mut self, count: usize) {
        self.buffer.copy_within(self.from..self.to, 0);
        self.base += self.from as u64;
        self.to -= self.from;
        self.from = 0;
        while self.to < count && !self.ended {
            let wanted = count.min(self.to + TRUSTED).max(PIECE);
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            match held(|| self.input.read(&mut self.buffer[self.to..])) {
                Ok(0) => self.ended = true,
                Ok(bytes) => self.to += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                }
            }
        }
    }
}

impl Exactly {
    fn take(&mut self, count: usize) -> &mut [u8] {
        let mut there = 0;
        while there < count {
            let wanted = count.min(there + TRUSTED);
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            let bytes = held(|| self.file.read(&mut self.buffer[there..wanted]));
            there += bytes;
            if there < wanted {
                break;
            }
        }
        self.taken = there;
        &mut self.buffer[..there]
    }
}

/// Copies an error.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
