//! What is said between a capture and the processes beside it: JSON, a message each, with a descriptor where one goes along.

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
use weir::writer::Opening;

/// Longest message: a path of 4096 bytes, each as a number and a comma.
const LONGEST: usize = 32 << 10;

/// How often a message is tried again.
const PATIENCE: usize = 100;

/// What a capture wants. Paths are bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Open {
        path: Vec<u8>,
        opening: Opening,
    },
    Remove {
        path: Vec<u8>,
    },
    Directory {
        path: Vec<u8>,
    },
    List,
    /// With a pipe for the answer, so that several can run.
    Run {
        path: Vec<u8>,
    },
    /// The capture ends in order: its sockets go.
    Leave,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The first, before any question: it is confined, or why it ends.
    Began { refused: Option<String> },
    /// With the file.
    Opened { created: bool, inherited: bool },
    /// With what holds its blocks, where it was there.
    Removed,
    /// With the directory.
    Directory,
    /// One of several.
    Found { path: Vec<u8>, bytes: u64, modified: Duration, locked: bool, ours: bool },
    /// There are no more.
    ThatIsAll,
    /// The kernel's answer.
    Errno(i32),
    /// [`weir::writer::Refusal::Link`]
    Link { owner: u32 },
    /// [`weir::writer::Refusal::Foreign`]
    Foreign { owner: u32 },
    /// [`weir::writer::Refusal::Unread`]
    Unread,
    /// It is no file of this capture.
    NotOurs,
}

pub(super) fn send(
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

/// Asks again where memory was short for a moment: who is beside a capture ends with it, and not before.
fn insist<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    for _ in 0..PATIENCE {
        match retry_on_intr(&mut call) {
            Err(Errno::NOMEM | Errno::NOBUFS) => thread::sleep(Duration::from_millis(1)),
            done => return done,
        }
    }
    retry_on_intr(call)
}

/// `None`: the other side has ended.
pub(super) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Option<OwnedFd>)>> {
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
