//! What is said between a capture and the processes beside it: JSON, a message each, with a descriptor where one goes along.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest message: a path of 4096 bytes, each as a number and a comma.
const LONGEST: usize = 32 << 10;

/// What a capture wants. Paths are bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Open {
        path: Vec<u8>,
        new: bool,
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
    /// With the file.
    Opened { created: bool },
    /// With what holds its blocks, where it was there.
    Removed,
    /// With the directory.
    Directory,
    /// One of several.
    Found { path: Vec<u8>, bytes: u64, modified: Duration, locked: bool },
    /// There are no more.
    ThatIsAll,
    /// The kernel's answer.
    Errno(i32),
    /// [`weir::writer::Refusal::Link`]
    Link { owner: u32 },
    /// [`weir::writer::Refusal::Foreign`]
    Foreign { owner: u32 },
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
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// `None`: the other side has ended.
pub(super) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut text = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
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
