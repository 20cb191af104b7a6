//! Messages in a file (RFC 5655): one after the other, whole ones only.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use weir::parts::{FileBroker as _, LocalBroker, Purpose, Refusal};

use super::line::{Line, LineCounts, News, State};

/// A file of messages.
#[derive(Debug)]
pub(super) struct Written {
    file: File,
    /// Where the last whole message ends.
    end: u64,
    is_new: bool,
    /// It has half a message that cannot be removed.
    is_over: bool,
    news: Option<News>,
}

impl Written {
    /// Creates the file, readable by its owner only; what it had is gone.
    ///
    /// # Errors
    ///
    /// If it cannot be written, or belongs to somebody else, or is no regular file.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let opened = LocalBroker::default().open(path, Purpose::Any).map_err(|refusal| match refusal {
            Refusal::Io(error) => error,
            _ => io::Error::new(io::ErrorKind::PermissionDenied, "it, or a link to it, is another user's"),
        })?;
        if !opened.file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        opened.file.set_len(0)?;
        Ok(Self { file: opened.file, end: 0, is_new: true, is_over: false, news: None })
    }
}

impl Line for Written {
    fn state(&mut self) -> State {
        if self.is_over {
            State::Over
        } else if std::mem::take(&mut self.is_new) {
            State::Anew
        } else {
            State::Open
        }
    }

    fn send(&mut self, message: &[u8]) -> bool {
        match self.file.write_all(message) {
            Ok(()) if !self.is_over => self.end += message.len() as u64,
            Ok(()) => return false,
            Err(error) => {
                // What follows can be read only if nothing is left of this one.
                let cut = self.file.set_len(self.end);
                self.is_over = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.end))).is_err();
                self.news = Some(News::Unsent(error));
                return false;
            }
        }
        true
    }

    fn is_down(&self) -> bool {
        self.is_over
    }

    fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    fn counts(&self) -> LineCounts {
        LineCounts::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::*;

    #[test]
    fn a_message_that_is_not_written_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("flows.ipfix");
        fs::write(&path, "something older").expect("room");
        let mut written = Written::create(&path).expect("a file");
        assert_eq!((written.state(), written.state()), (State::Anew, State::Open));
        assert!(written.send(b"first") && written.take_news().is_none());
        drop(written);
        assert_eq!(fs::read(&path).expect("a file"), b"first");

        // As on a full disk: half a message fits.
        let file = File::from(memfd_create("full", MemfdFlags::ALLOW_SEALING).expect("memory"));
        let mut written = Written { file, end: 0, is_new: false, is_over: false, news: None };
        assert!(written.send(b"first"));
        written.file.write_all(b"sec").expect("memory");
        fcntl_add_seals(&written.file, SealFlags::GROW).expect("a seal");
        assert!(!written.send(b"second") && written.take_news().is_some());
        assert_eq!((written.state(), written.file.metadata().expect("memory").len()), (State::Open, 5));

        // A device cannot be cut: nothing more is written.
        written.file = File::options().write(true).open("/dev/full").expect("a device");
        assert!(!written.send(b"second"));
        assert!(matches!(written.take_news(), Some(News::Unsent(error)) if error.raw_os_error() == Some(28)));
        assert_eq!(written.state(), State::Over);
        assert!(!written.send(b"third"));
        assert!(Written::create(Path::new("/dev/null")).is_err(), "no regular file");
        assert!(Written::create(&directory.path().join("no/such")).is_err());
    }
}
