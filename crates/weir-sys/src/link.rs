//! Interfaces, as rtnetlink(7) describes them.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::CallError;

/// What the kernel tells of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Interface index in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `ARPHRD_*`: 1 Ethernet, 772 loopback, 65534 none.
    pub hardware: u16,
    /// `IFF_*`.
    pub flags: u32,
    /// Largest layer-3 packet, bytes.
    pub mtu: u32,
    /// Hardware address, empty if it has none.
    pub address: Vec<u8>,
    /// Index of the bridge or bond that it belongs to.
    pub master: Option<u32>,
    /// Largest packet that segmentation offload builds, bytes.
    pub gso_max_size: u32,
    /// Receive queues allocated; not all need be in use.
    pub rx_queues: u32,
    /// Id of an attached XDP program.
    pub xdp_program: Option<u32>,
    /// Packets that the device had no room for (`rx_missed_errors`).
    pub rx_missed: u64,
    /// Packets lost to FIFO overruns (`rx_fifo_errors`).
    pub rx_fifo_errors: u64,
    /// Packets dropped in the stack for want of resources (`rx_dropped`).
    pub rx_dropped: u64,
}

impl Link {
    /// Administratively up.
    pub fn is_up(&self) -> bool {
        self.flags & 0x1 != 0
    }

    /// Loopback.
    pub fn is_loopback(&self) -> bool {
        self.flags & 0x8 != 0
    }
}

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER: usize = 16;
const IFINFOMSG: usize = 16;
const IFADDRMSG: usize = 8;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_STATS64: u16 = 23;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
/// Places in `struct rtnl_link_stats64`, in words.
const STATS_RX_DROPPED: usize = 6;
const STATS_RX_FIFO_ERRORS: usize = 14;
const STATS_RX_MISSED: usize = 15;

/// All interfaces of this thread's network namespace, by index.
///
/// # Errors
///
/// What the netlink socket says.
pub fn links() -> Result<Vec<Link>, CallError> {
    let mut links = Vec::new();
    ask(RTM_GETLINK, &[0; IFINFOMSG], Ask::All, RTM_NEWLINK, |message| links.extend(parse_link(message)))
        .map_err(|error| CallError::new("list interfaces (rtnetlink)", error))?;
    Ok(links)
}

/// The interface with this index, if this thread's network namespace has it.
///
/// # Errors
///
/// What the netlink socket says.
pub fn link(index: u32) -> Result<Option<Link>, CallError> {
    let mut header = [0; IFINFOMSG];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut link = None;
    match ask(RTM_GETLINK, &header, Ask::One, RTM_NEWLINK, |message| link = parse_link(message)) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(error) => Err(CallError::new(format!("look up interface {index} (rtnetlink)"), error)),
        Ok(()) => Ok(link),
    }
}

/// Indices of the interfaces that have an IP address of more than link scope.
///
/// # Errors
///
/// What the netlink socket says.
pub fn addressed() -> Result<Vec<u32>, CallError> {
    const SCOPE: usize = 3;
    const RT_SCOPE_LINK: u8 = 253;
    let mut indices = Vec::new();
    ask(RTM_GETADDR, &[0; IFADDRMSG], Ask::All, RTM_NEWADDR, |message| {
        let index = message.get(4..8).map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes")));
        if message.get(SCOPE).is_some_and(|&scope| scope < RT_SCOPE_LINK) {
            indices.extend(index);
        }
    })
    .map_err(|error| CallError::new("list addresses (rtnetlink)", error))?;
    Ok(indices)
}

enum Ask {
    All,
    One,
}

/// Sends one request, whose own header is `header`, and gives the payload of each answer of type `answer` to `each`.
fn ask(request: u16, header: &[u8], ask: Ask, answer: u16, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    // Protocol 0 of this family is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let flags = match ask {
        Ask::All => NLM_F_REQUEST | NLM_F_DUMP,
        Ask::One => NLM_F_REQUEST,
    };
    let length = u32::try_from(HEADER + header.len()).expect("a few bytes");
    let mut message = Vec::with_capacity(HEADER + header.len());
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&request.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    message.resize(HEADER, 0); // sequence and port: zeros
    message.extend_from_slice(header);
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // The kernel's dumps come in datagrams of at most 32 KiB (netlink_dump, net/netlink/af_netlink.c).
    let mut buffer = vec![0; 64 << 10];
    loop {
        let (_, received) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut rest = buffer.get(..received).unwrap_or_default();
        while let Some((kind, payload, next)) = split(rest) {
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let errno =
                        payload.get(..4).map_or(0, |b| i32::from_ne_bytes(b.try_into().expect("four bytes")));
                    return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
                }
                _ if kind == answer => each(payload),
                _ => {}
            }
            rest = next;
        }
        if matches!(ask, Ask::One) {
            return Ok(());
        }
    }
}

/// The first message of a run: its type, its payload, and what follows.
fn split(messages: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(messages.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(messages.get(4..6)?.try_into().ok()?);
    let payload = messages.get(HEADER..length)?;
    Some((kind, payload, messages.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The attributes of a run: type without flags, and value.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NLA_TYPE_MASK: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?) & NLA_TYPE_MASK;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn parse_link(message: &[u8]) -> Option<Link> {
    let word =
        |bytes: &[u8]| bytes.get(..4).map_or(0, |b| u32::from_ne_bytes(b.try_into().expect("four bytes")));
    let mut link = Link {
        hardware: u16::from_ne_bytes(message.get(2..4)?.try_into().ok()?),
        index: word(message.get(4..8)?),
        flags: word(message.get(8..12)?),
        ..Link::default()
    };
    for (kind, value) in attributes(message.get(IFINFOMSG..)?) {
        match kind {
            IFLA_ADDRESS => link.address = value.to_vec(),
            IFLA_IFNAME => link.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            IFLA_MTU => link.mtu = word(value),
            IFLA_MASTER => link.master = Some(word(value)),
            IFLA_NUM_RX_QUEUES => link.rx_queues = word(value),
            IFLA_GSO_MAX_SIZE => link.gso_max_size = word(value),
            IFLA_XDP => {
                link.xdp_program = attributes(value)
                    .find(|&(kind, _)| kind == IFLA_XDP_PROG_ID)
                    .map(|(_, value)| word(value));
            }
            IFLA_STATS64 => {
                let at = |place: usize| {
                    value
                        .get(place * 8..place * 8 + 8)
                        .map_or(0, |b| u64::from_ne_bytes(b.try_into().expect("eight bytes")))
                };
                link.rx_dropped = at(STATS_RX_DROPPED);
                link.rx_fifo_errors = at(STATS_RX_FIFO_ERRORS);
                link.rx_missed = at(STATS_RX_MISSED);
            }
            _ => {}
        }
    }
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_as_it_is() {
        let links = links().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").expect("each namespace has a loopback");
        assert_eq!((lo.index, lo.hardware, lo.is_loopback()), (1, 772, true));
        assert!(lo.mtu >= 65536 && lo.rx_queues >= 1 && lo.gso_max_size >= 65536, "{lo:?}");
    }

    #[test]
    fn one_interface_is_found_by_its_index_and_an_absent_one_is_not() {
        assert_eq!(link(1).unwrap().map(|link| link.name), Some("lo".to_owned()));
        assert_eq!(link(u32::MAX >> 1).unwrap(), None);
    }

    #[test]
    fn cut_off_messages_end_the_walk() {
        assert!(split(&[]).is_none());
        assert!(split(&[255, 0, 0, 0, 1, 0, 0, 0]).is_none());
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[0; 7]).count(), 0);
        assert_eq!(attributes(&[8, 0, 1, 0, 1, 2, 3, 4]).count(), 1);
    }
}
