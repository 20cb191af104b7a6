//! The side of the capture: requests of its writer to the helper processes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use rustix::pipe::{PipeFlags, pipe_with};
use weir::writer::{Found, Handed, Keeper, Opening, Refusal, Template};
use weir_sys::fork::Forked;

use super::Helpers;
use super::wire::{Answer, Ask, receive, send};

impl Helpers {
    fn files(&self) -> MutexGuard<'_, Forked> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: &Ask) -> io::Result<(Answer, Option<OwnedFd>)> {
        let files = self.files();
        send(files.socket(), ask, None).map_err(|_| gone())?;
        receive(files.socket())?.ok_or_else(gone)
    }
}

fn gone() -> io::Error {
    io::Error::other("the helper process that opens files (weir-files) has ended")
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Converts a negative or unexpected answer to an error.
fn refused(answer: Answer) -> Refusal {
    match answer {
        Answer::Errno(errno) => Refusal::Io(io::Error::from_raw_os_error(errno)),
        Answer::Link { owner } => Refusal::Link { owner },
        Answer::Foreign { owner } => Refusal::Foreign { owner },
        Answer::Unread => Refusal::Unread,
        Answer::NotOurs => Refusal::Io(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not one of the files declared by this capture",
        )),
        _ => Refusal::Io(io::ErrorKind::InvalidData.into()),
    }
}

fn error(answer: Answer) -> io::Error {
    match refused(answer) {
        Refusal::Io(error) => error,
        _ => io::ErrorKind::PermissionDenied.into(),
    }
}

impl Keeper for Helpers {
    fn open(&self, path: &Path, opening: Opening) -> Result<Handed, Refusal> {
        match self.ask(&Ask::Open { path: bytes(path), opening })? {
            (Answer::Opened { created, inherited }, Some(file)) => {
                Ok(Handed { file: file.into(), created, inherited })
            }
            (answer, _) => Err(refused(answer)),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        match self.ask(&Ask::Remove { path: bytes(path) })? {
            (Answer::Removed, held) => Ok(held),
            (answer, _) => Err(error(answer)),
        }
    }

    fn directory(&self, path: &Path) -> io::Result<File> {
        match self.ask(&Ask::Directory { path: bytes(path) })? {
            (Answer::Directory, Some(directory)) => Ok(directory.into()),
            (answer, _) => Err(error(answer)),
        }
    }

    /// The process already has the same template.
    fn list(&self, _template: &Template) -> io::Result<Vec<Found>> {
        let files = self.files();
        send(files.socket(), &Ask::List, None).map_err(|_| gone())?;
        let mut found = Vec::new();
        loop {
            match receive(files.socket())?.ok_or_else(gone)?.0 {
                Answer::Found { path, bytes, modified, locked, ours } => {
                    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
                    found.push(Found { path, bytes, modified: UNIX_EPOCH + modified, locked, ours });
                }
                Answer::ThatIsAll => return Ok(found),
                answer => return Err(error(answer)),
            }
        }
    }

    fn run(&self, _command: &OsStr, path: &Path) -> Result<(), String> {
        let said = || -> io::Result<String> {
            let runner = self.runner.as_ref().ok_or(io::ErrorKind::NotFound)?;
            let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
            {
                let runner = runner.lock().unwrap_or_else(PoisonError::into_inner);
                send(runner.socket(), &Ask::Run { path: bytes(path) }, Some(to.as_fd()))?;
            }
            drop(to);
            let mut said = String::new();
            File::from(from).read_to_string(&mut said)?;
            Ok(said)
        };
        match said() {
            Ok(said) if said == super::answer::WELL => Ok(()),
            Ok(said) if said.is_empty() => {
                Err("the helper process that runs it (weir-run) has ended".to_owned())
            }
            Ok(said) => Err(said),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let _it_may_be_gone = send(self.files().socket(), &Ask::Leave, None);
        if let Some(sockets) = &self.sockets {
            let _it_may_be_gone = send(sockets.socket(), &Ask::Leave, None);
        }
    }
}
