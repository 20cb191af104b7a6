//! Netfilter queues: packets that a rule hands to this process, which decides about them (linux/netfilter/nfnetlink_queue.h).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use crate::CallError;
use crate::netlink::{self, NLMSG_ERROR, Request, Socket};

const NETFILTER: u32 = libc::NETLINK_NETFILTER.cast_unsigned();
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const CONFIG: u16 = SUBSYSTEM | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM | 3;
const NFQA_PACKET_HDR: u16 = 1;
const NFQA_VERDICT_HDR: u16 = 2;
const NFQA_PAYLOAD: u16 = 10;
const NFQA_CFG_CMD: u16 = 1;
const NFQA_CFG_PARAMS: u16 = 2;
const NFQA_CFG_QUEUE_MAXLEN: u16 = 3;
const NFQNL_CFG_CMD_BIND: u8 = 1;
const NFQNL_COPY_PACKET: u8 = 2;
const NF_ACCEPT: u32 = 1;
/// Size of `struct nfgenmsg`.
const NFGENMSG: usize = 4;
/// A message with the longest packet fits.
const LONGEST: usize = 72 << 10;
const WHOLE: u32 = 0xffff;

/// A queue that this process serves. The kernel drops its packets when this is dropped or the process dies.
#[derive(Debug)]
pub struct Queue {
    socket: Socket,
    number: u16,
    buffer: Vec<u8>,
    /// Packets without a verdict: the highest number among them.
    open: Option<u32>,
}

impl Queue {
    /// Takes over queue `number` of this thread's network namespace, which may hold `length` packets, with `memory` bytes
    /// for those on their way to this process. Make the rule that fills it afterwards: packets that arrive before this
    /// returns are lost.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_NET_ADMIN`; `EBUSY`: another process serves the queue; `EPROTONOSUPPORT` or `EINVAL`: a kernel
    /// without such queues.
    pub fn open(number: u16, length: u32, memory: usize) -> Result<Self, CallError> {
        let open = || {
            let socket = Socket::open(NETFILTER)?;
            sockopt::set_socket_recv_buffer_size_force(&socket, memory)?;
            let configure = |kind, value: &[u8]| {
                let request = Request::new(CONFIG, 0, &header(number)).attribute(kind, value);
                socket.ask(&request, PACKET, |_| {})
            };
            configure(NFQA_CFG_CMD, &[NFQNL_CFG_CMD_BIND, 0, 0, 0])?;
            let [a, b, c, d] = WHOLE.to_be_bytes();
            configure(NFQA_CFG_PARAMS, &[a, b, c, d, NFQNL_COPY_PACKET])?;
            configure(NFQA_CFG_QUEUE_MAXLEN, &length.to_be_bytes())?;
            Ok(Self { socket, number, buffer: vec![0; LONGEST], open: None })
        };
        open().map_err(|error: io::Error| CallError::new(format!("serve netfilter queue {number}"), error))
    }

    /// Returns the next packet, from its network header on, without waiting; `None`: there is none yet.
    ///
    /// # Errors
    ///
    /// The socket's own errors. What the kernel could not deliver is no error: see [`dropped`](Self::dropped).
    pub fn take(&mut self) -> Result<Option<&[u8]>, CallError> {
        let received = loop {
            match retry_on_intr(|| recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::DONTWAIT)) {
                Ok((_, received)) => break received.min(self.buffer.len()),
                Err(Errno::AGAIN) => return Ok(None),
                // The socket was full: the kernel has counted and dropped a packet.
                Err(Errno::NOBUFS) => {}
                Err(error) => return Err(CallError::new("receive from a netfilter queue", error)),
            }
        };
        let packet = read(&self.buffer[..received]);
        let (number, payload) =
            packet.map_err(|error| CallError::new("receive from a netfilter queue", error))?;
        self.open = Some(number);
        Ok(Some(payload))
    }

    /// Lets all packets that [`take`](Self::take) has returned go on.
    ///
    /// # Errors
    ///
    /// The socket's own errors.
    pub fn accept(&mut self) -> Result<(), CallError> {
        let Some(number) = self.open.take() else { return Ok(()) };
        let [verdict, number] = [NF_ACCEPT, number].map(u32::to_be_bytes);
        let request = Request::unanswered(VERDICT_BATCH, &header(self.number));
        let message = request.attribute(NFQA_VERDICT_HDR, &[verdict, number].concat()).message(0);
        let sent = retry_on_intr(|| send(&self.socket, &message, SendFlags::empty()));
        sent.map(drop).map_err(|error| CallError::new("give a verdict to a netfilter queue", error))
    }

    /// Returns how many packets the kernel has dropped because the queue or the socket was full.
    ///
    /// # Errors
    ///
    /// `/proc` is not available, or the thread is in another network namespace than the queue.
    pub fn dropped(&self) -> Result<u64, CallError> {
        const PATH: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";
        let failed = |error| CallError::new(format!("read {PATH}"), error);
        let text = std::fs::read_to_string(PATH).map_err(failed)?;
        dropped(&text, self.number).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))
    }
}

/// Readable when there is a packet.
impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the number and the bytes of a packet.
fn read(message: &[u8]) -> io::Result<(u32, &[u8])> {
    let message = netlink::split(message).map(|(message, _)| message);
    if let Some(error) = message.as_ref().filter(|message| message.kind == NLMSG_ERROR) {
        netlink::outcome(error.payload)?;
    }
    let packet = message.filter(|message| message.kind == PACKET).and_then(|message| {
        let attributes = message.payload.get(NFGENMSG..)?;
        let number = netlink::attribute(attributes, NFQA_PACKET_HDR)?.first_chunk()?;
        Some((u32::from_be_bytes(*number), netlink::attribute(attributes, NFQA_PAYLOAD)?))
    });
    packet.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// `struct nfgenmsg` (linux/netfilter/nfnetlink.h): any family, version 0, the queue.
fn header(number: u16) -> [u8; NFGENMSG] {
    let [high, low] = number.to_be_bytes();
    [0, 0, high, low]
}

/// Sums the drops of a full queue and those of a full socket: the sixth and the seventh column of its line.
fn dropped(text: &str, number: u16) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        let ours = words.next()?? == u64::from(number);
        let [full, lost] = [words.nth(4)??, words.next()??];
        ours.then_some(full + lost)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_and_anything_else_is_an_error() {
        let header = [0, 0, 0, 7, 8, 0, 3];
        let packet = Request::unanswered(PACKET, &super::header(0)).attribute(NFQA_PACKET_HDR, &header);
        let whole = packet.clone().attribute(NFQA_PAYLOAD, &[0x45, 1, 2]).message(0);
        assert_eq!(read(&whole).expect("a packet"), (7, [0x45, 1, 2].as_slice()));
        assert!((0..whole.len() - 1).all(|length| read(&whole[..length]).is_err()));
        assert_eq!(read(&packet.message(0)).expect_err("no bytes").kind(), io::ErrorKind::InvalidData);
        let refused = Request::unanswered(NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes()).message(0);
        assert_eq!(read(&refused).expect_err("an error").raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn drops_are_those_of_the_queue() {
        let text = "    0  29261     0 2 65531     3     4       12  1\n    7  29262     1 2 65531    50   600       13  1\n";
        assert_eq!((dropped(text, 0), dropped(text, 7), dropped(text, 1)), (Some(7), Some(650), None));
        assert_eq!(dropped("0 1\n", 0), None);
    }
}
