//! Messages over a Unix socket: a four-byte length, then JSON. Descriptors accompany the first byte.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message: as many addresses as a set that can change has room for, or an account of some thousand queues.
const LONGEST: usize = 8 << 20;
/// Longest time for a whole message, in any number of pieces.
const WHOLE: Duration = Duration::from_secs(5);
/// Most descriptors per message (`SCM_MAX_FD` is 253).
const MOST_DESCRIPTORS: usize = 128;

/// A stream with a deadline for the current message.
struct Timed<'a> {
    stream: &'a UnixStream,
    until: Instant,
}

impl<'a> Timed<'a> {
    fn new(stream: &'a UnixStream) -> Self {
        Self { stream, until: Instant::now() + WHOLE }
    }

    fn still(&self) -> io::Result<&'a UnixStream> {
        if Instant::now() < self.until { Ok(self.stream) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.still()?.read(bytes)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.still()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends a message.
pub(super) fn send(
    stream: &UnixStream,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > LONGEST || descriptors.len() > MOST_DESCRIPTORS {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message that is too long"));
    }
    let length = u32::try_from(text.len()).expect("at most LONGEST").to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    let sent = retry_on_intr(|| sendmsg(stream, &[IoSlice::new(&length)], &mut beside, SendFlags::NOSIGNAL))?;
    let mut timed = Timed::new(stream);
    timed.write_all(&length[sent..])?;
    timed.write_all(&text)
}

/// Receives a message. `None`: the peer has closed the connection.
pub(super) fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut length)];
    // Where there is a timeout, the kernel interrupts a wait whenever the process goes on after a stop (signal(7)).
    let received =
        retry_on_intr(|| recvmsg(stream.as_fd(), &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC))?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(wrong("too many descriptors in a message"));
    }
    let mut timed = Timed::new(stream);
    timed.read_exact(&mut length[received.bytes..])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(wrong("a message that is too long"));
    }
    let mut text = Vec::new();
    // Memory is allocated for the bytes that arrive, not for the announced length.
    timed.take(length as u64).read_to_end(&mut text)?;
    if text.len() < length {
        return Err(wrong("a truncated message"));
    }
    Ok(Some((serde_json::from_slice(&text)?, descriptors)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (one, other) = UnixStream::pair().expect("a pair");
        let file = File::open("/dev/null").expect("a file");
        send(&one, &vec![7, 8], &[file.as_fd(), file.as_fd()]).expect("sends");
        send(&one, &"x".repeat(100_000), &[]).expect("sends");
        let (numbers, descriptors) = receive::<Vec<u32>>(&other).expect("receives").expect("a message");
        assert_eq!((numbers, descriptors.len()), (vec![7, 8], 2));
        let (text, descriptors) = receive::<String>(&other).expect("receives").expect("a message");
        assert_eq!((text.len(), descriptors.len()), (100_000, 0));
        drop(one);
        assert!(receive::<String>(&other).expect("the end").is_none());
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for bytes in [&[1, 0, 0][..], &[255; 4], &[4, 0, 0, 0, b'"'], &[2, 0, 0, 0, b'}', b'}']] {
            let (mut one, other) = UnixStream::pair().expect("a pair");
            one.write_all(bytes).expect("writes");
            drop(one);
            assert!(receive::<String>(&other).is_err(), "{bytes:?}");
        }
    }
}
