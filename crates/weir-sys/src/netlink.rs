//! Netlink (netlink(7)): requests, answers, and their attributes.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// Protocol of links, addresses and queueing disciplines.
pub(crate) const ROUTE: u32 = libc::NETLINK_ROUTE.cast_unsigned();
/// Protocol of the families with a name instead of a number.
pub(crate) const GENERIC: u32 = libc::NETLINK_GENERIC.cast_unsigned();

/// Protocol of tables of sockets.
pub(crate) const SOCK_DIAG: u32 = libc::NETLINK_SOCK_DIAG.cast_unsigned();

/// Flags that request all objects instead of one.
pub(crate) const DUMP: u16 = 0x300;
/// Flags that create the object, which must not exist yet.
pub(crate) const CREATE: u16 = 0x400 | 0x200;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
const SEQUENCE: std::ops::Range<usize> = 8..12;
const NLA_F_NESTED: u16 = 0x8000;

/// One message to the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Creates a message of type `kind` with the family's own `header` and no attributes.
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        Self::with_flags(kind, NLM_F_ACK | flags, header)
    }

    /// Creates a message that the kernel answers only if it cannot do what it says.
    #[cfg(feature = "lab")]
    pub(crate) fn unanswered(kind: u16, header: &[u8]) -> Self {
        Self::with_flags(kind, 0, header)
    }

    fn with_flags(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; 4]; // length: set when it is sent
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.resize(HEADER, 0); // sequence number: set when it is sent; port: the kernel's
        bytes.extend_from_slice(header);
        Self { bytes }
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.begin(kind, value.len());
        self.bytes.extend_from_slice(value);
        self.pad()
    }

    /// Adds an attribute that contains `header` and then what `inner` adds.
    pub(crate) fn nested(mut self, kind: u16, header: &[u8], inner: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.begin(kind | NLA_F_NESTED, 0);
        self.bytes.extend_from_slice(header);
        let mut whole = inner(self);
        let length = u16::try_from(whole.bytes.len() - start).expect("requests are small");
        whole.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        whole.pad()
    }

    fn begin(&mut self, kind: u16, value: usize) {
        let length = u16::try_from(4 + value).expect("requests are small");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
    }

    fn pad(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Returns the finished message.
    pub(crate) fn message(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let length = u32::try_from(bytes.len()).expect("requests are small");
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[SEQUENCE].copy_from_slice(&sequence.to_ne_bytes());
        bytes
    }
}

/// A socket to the kernel. It stays in the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    sequence: Cell<u32>,
}

impl Socket {
    /// Opens a socket in this thread's network namespace.
    pub(crate) fn open(protocol: u32) -> io::Result<Self> {
        let protocol = rustix::net::RawProtocol::new(protocol).map(rustix::net::Protocol::from_raw);
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Ok(Self { fd, sequence: Cell::new(0) })
    }

    /// Sends `request`, passes the payload of each answer of type `answer` to `each`, and waits for the last one.
    pub(crate) fn ask(&self, request: &Request, answer: u16, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let sequence = self.sequence.get().wrapping_add(1);
        self.sequence.set(sequence);
        // A message without an address goes to the kernel.
        let message = request.message(sequence);
        retry_on_intr(|| send(&self.fd, &message, SendFlags::empty()))?;
        // The kernel's dumps come in datagrams of at most 32 KiB (netlink_dump, net/netlink/af_netlink.c).
        let mut buffer = vec![0; 64 << 10];
        loop {
            let (_, received) = retry_on_intr(|| recv(&self.fd, buffer.as_mut_slice(), RecvFlags::empty()))?;
            let mut rest = buffer.get(..received).unwrap_or_default();
            while let Some((message, next)) = split(rest) {
                rest = next;
                // Left over from an earlier request that ended early.
                if message.sequence != sequence {
                    continue;
                }
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return outcome(message.payload),
                    kind if kind == answer => each(message.payload),
                    _ => {}
                }
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes one request, over a socket opened for it.
pub(crate) fn ask(protocol: u32, request: &Request, answer: u16, each: impl FnMut(&[u8])) -> io::Result<()> {
    Socket::open(protocol)?.ask(request, answer, each)
}

/// Returns the result in a `struct nlmsgerr`; 0 is success.
pub(crate) fn outcome(payload: &[u8]) -> io::Result<()> {
    match i32::from_ne_bytes(payload.get(..4).map_or([0; 4], |b| b.try_into().expect("four bytes"))) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
    }
}

/// One message from the kernel.
pub(crate) struct Message<'a> {
    /// The message type.
    pub(crate) kind: u16,
    /// The sequence number of the answered request.
    pub(crate) sequence: u32,
    /// The family's own header, and the attributes.
    pub(crate) payload: &'a [u8],
}

/// Splits off the first message of a run.
pub(crate) fn split(messages: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let length = u32::from_ne_bytes(messages.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(messages.get(4..6)?.try_into().ok()?);
    let sequence = u32::from_ne_bytes(messages.get(SEQUENCE)?.try_into().ok()?);
    let payload = messages.get(HEADER..length)?;
    let rest = messages.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((Message { kind, sequence, payload }, rest))
}

/// Iterates over a run of attributes: type without flags, and value.
pub(crate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NLA_TYPE_MASK: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?) & NLA_TYPE_MASK;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the value of the first attribute of this type.
pub(crate) fn attribute(all: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(all).find(|&(kind, _)| kind == wanted).map(|(_, value)| value)
}

/// Reads a 32-bit value; 0 if there are fewer bytes.
pub(crate) fn word(value: &[u8]) -> u32 {
    value.get(..4).map_or(0, |b| u32::from_ne_bytes(b.try_into().expect("four bytes")))
}

/// Reads a 64-bit value; 0 if there are fewer bytes.
pub(crate) fn long(value: &[u8]) -> u64 {
    value.get(..8).map_or(0, |b| u64::from_ne_bytes(b.try_into().expect("eight bytes")))
}

/// Reads a string, which the kernel terminates with a zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_off_messages_end_the_walk() {
        assert!(split(&[]).is_none());
        assert!(split(&[255, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[0; 7]).count(), 0);
        assert_eq!(attributes(&[8, 0, 1, 0, 1, 2, 3, 4]).count(), 1);
    }

    #[test]
    fn requests_are_read_back_as_they_were_built() {
        let request = Request::new(16, CREATE, &[7; 16])
            .attribute(3, b"veth0\0")
            .nested(18, &[], |inside| inside.attribute(1, b"veth").nested(2, &[9; 4], |data| data));
        let bytes = request.message(5);
        let (message, rest) = split(&bytes).expect("a message");
        assert_eq!((message.kind, message.sequence, rest.len()), (16, 5, 0));
        assert_eq!(message.payload[..16], [7; 16]);
        let all: Vec<(u16, &[u8])> = attributes(&message.payload[16..]).collect();
        assert_eq!(all[0], (3, b"veth0\0".as_slice()));
        let inside: Vec<(u16, &[u8])> = attributes(all[1].1).collect();
        assert_eq!(inside, [(1, b"veth".as_slice()), (2, [9; 4].as_slice())]);
    }
}
