//! Messages between a program and its helper processes: one JSON value each, with an optional descriptor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir::parts::Purpose;

/// Longest message: a path of 4096 bytes, each a number and a comma.
const LONGEST: usize = 32 << 10;

/// Number of attempts to send or receive a message.
const ATTEMPTS: usize = 100;

/// A request of a capture. Paths are bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Open {
        path: Vec<u8>,
        purpose: Purpose,
    },
    Remove {
        path: Vec<u8>,
    },
    Directory {
        path: Vec<u8>,
    },
    List,
    /// Comes with a pipe for the answer, so that several can run at once.
    Run {
        path: Vec<u8>,
    },
    /// The capture ends normally: remove its sockets.
    Leave,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The first message, before any request: the process is confined, or why it ends.
    Began { refused: Option<String> },
    /// Comes with the file.
    Opened { created: bool, inherited: bool },
    /// If the file existed, comes with a descriptor that keeps its blocks.
    Removed,
    /// Comes with the directory.
    Directory,
    /// One of several files.
    Found { path: Vec<u8>, bytes: u64, modified: Duration, locked: bool, ours: bool },
    /// The end of the list.
    ThatIsAll,
    /// The kernel's error.
    Errno(i32),
    /// [`weir::parts::Refusal::Link`]
    Link { owner: u32 },
    /// [`weir::parts::Refusal::Foreign`]
    Foreign { owner: u32 },
    /// [`weir::parts::Refusal::Unread`]
    Unread,
    /// The path is not a file of this capture.
    NotOurs,
}

pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > LONGEST {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = descriptor.into_iter().collect();
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    insist(|| sendmsg(&socket, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Retries when memory is short for a moment, because a helper process must live exactly as long as the capture.
fn insist<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 0..ATTEMPTS {
        match retry_on_intr(&mut call) {
            Err(Errno::NOMEM | Errno::NOBUFS) => thread::sleep(Duration::from_millis(1)),
            done => return done,
        }
    }
    retry_on_intr(call)
}

/// Receives a message. `None`: the peer has ended.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut text = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received =
        insist(|| recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut beside, RecvFlags::CMSG_CLOEXEC))?;
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let descriptor = rights.flatten().next();
    match text.get(..received.bytes) {
        None | Some([]) => Ok(None),
        Some(text) => Ok(Some((serde_json::from_slice(text)?, descriptor))),
    }
}
