//! The side of the helper process, and what it is asked.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_sys::fork::end_with;
use weir_sys::privilege;
use weir_sys::user::User;

use super::folders::Folders;
use crate::broker::wire::{receive, send};
use crate::confine::{Needs, confine_user};

/// Longest time to finish work after the program ends.
const GRACE: Duration = Duration::from_millis(500);

/// Names are bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Begin { name: Vec<u8> },
    Finish { name: Vec<u8> },
    Discard { name: Vec<u8> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// Also the first message: the process is confined. Comes with the file that was begun.
    Done,
    /// The kernel's error.
    Errno(i32),
    /// Any other.
    Refused(String),
}

/// Fills the directory until the program ends.
pub(super) fn keep(folders: &Folders, user: Option<&User>, socket: &OwnedFd) {
    user.into_iter().for_each(privilege::become_nobody_as);
    // Even accessing the directory may take time.
    let ends = end_with(socket, GRACE).map_err(|error| error.to_string());
    let confined = || {
        confine_user(&Needs::to_fill(folders.directory()), user).map(drop).map_err(|error| error.to_string())
    };
    let first = match ends.and_then(|()| confined()) {
        Err(why) => Answer::Refused(why),
        Ok(()) => folders.check().map_or_else(|error| no(&error), |()| Answer::Done),
    };
    let begins = matches!(first, Answer::Done);
    if send(socket, &first, None).is_err() || !begins {
        return;
    }
    while let Ok(Some((ask, _))) = receive(socket) {
        let name = |name| PathBuf::from(OsString::from_vec(name));
        let done = match ask {
            Ask::Begin { name: of } => folders.begin(&name(of)).map(Some),
            Ask::Finish { name: of } => folders.finish(&name(of)).map(|()| None),
            Ask::Discard { name: of } => folders.discard(&name(of)).map(|()| None),
        };
        let sent = match done {
            Ok(file) => send(socket, &Answer::Done, file.as_ref().map(|file| file.as_fd())),
            Err(error) => send(socket, &no(&error), None),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn no(error: &io::Error) -> Answer {
    error.raw_os_error().map_or_else(|| Answer::Refused(error.to_string()), Answer::Errno)
}
