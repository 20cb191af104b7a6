//! Pairs of virtual Ethernet interfaces (veth(4), rtnetlink(7)), for experiments in a private namespace.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::CallError;
use crate::link::{Link, Links, wait_for_carrier};
use crate::netlink::{CREATE, ROUTE, Request, ask};

const RTM_NEWLINK: u16 = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
/// The peer in veth's `IFLA_INFO_DATA` (linux/veth.h): an `ifinfomsg` and attributes, as for a separate interface.
const VETH_INFO_PEER: u16 = 1;
/// `struct ifinfomsg`.
const IFINFOMSG: usize = 16;

/// Longest wait for a carrier: veth normally needs none, network cards need seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The settings of one end of a pair. The kernel chooses those that are `None`.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Name.
    pub name: &'a str,
    /// Hardware address.
    pub address: Option<[u8; 6]>,
    /// Largest layer-3 packet, in bytes.
    pub mtu: Option<u32>,
    /// Number of receive queues, and of transmit queues.
    pub queues: Option<u32>,
    /// Namespace, if not the calling thread's.
    pub netns: Option<BorrowedFd<'a>>,
}

impl<'a> End<'a> {
    /// Creates an end with this name; the kernel chooses the rest.
    pub fn named(name: &'a str) -> Self {
        Self { name, address: None, mtu: None, queues: None, netns: None }
    }

    fn add_to(&self, request: Request) -> Request {
        let Self { name, address, mtu, queues, netns } = self;
        let queues = queues.map(u32::to_ne_bytes);
        let netns = netns.map(|netns| netns.as_raw_fd().to_ne_bytes());
        let all = [
            (IFLA_IFNAME, Some([name.as_bytes(), &[0]].concat())),
            (IFLA_ADDRESS, address.map(Vec::from)),
            (IFLA_MTU, mtu.map(|mtu| mtu.to_ne_bytes().to_vec())),
            (IFLA_NUM_TX_QUEUES, queues.map(Vec::from)),
            (IFLA_NUM_RX_QUEUES, queues.map(Vec::from)),
            (IFLA_NET_NS_FD, netns.map(Vec::from)),
        ];
        let said = all.into_iter().filter_map(|(kind, value)| Some((kind, value?)));
        said.fold(request, |request, (kind, value)| request.attribute(kind, &value))
    }
}

/// Creates a pair of interfaces with these names in this thread's network namespace, and returns once packets pass it.
/// They disappear with the namespace, and each with the other.
///
/// # Errors
///
/// The errors of [`create_down`] and [`bring_up`].
pub fn create(name: &str, peer: &str) -> Result<(), CallError> {
    create_down(name, peer)?;
    bring_up([name, peer]).map(drop)
}

/// Like [`create`], with both interfaces down.
///
/// # Errors
///
/// The errors of [`create_ends`].
pub fn create_down(name: &str, peer: &str) -> Result<(), CallError> {
    create_ends(&End::named(name), &End::named(peer))
}

/// Brings both ends of a pair up and returns them once packets pass it. One that is sent earlier is lost uncounted.
///
/// # Errors
///
/// There is no such interface, or packets do not pass within half a minute.
pub fn bring_up(ends: [&str; 2]) -> Result<[Link; 2], CallError> {
    // Not at creation: an end can only be brought up once its peer exists.
    let links = Links::open()?;
    ends.into_iter().try_for_each(|name| links.bring_up(name))?;
    let [one, other] = ends.map(with_carrier);
    Ok([one?, other?])
}

/// Waits until packets can pass the interface and returns it.
///
/// # Errors
///
/// There is no such interface, or it does not come up within half a minute.
pub fn with_carrier(name: &str) -> Result<Link, CallError> {
    let link = wait_for_carrier(name, PATIENCE)?;
    link.ok_or_else(|| CallError::new(format!("bring up {name}"), io::ErrorKind::TimedOut))
}

/// Creates a pair with these settings, both ends down.
///
/// # Errors
///
/// `EPERM` without `CAP_NET_ADMIN` in the namespaces, `EOPNOTSUPP` on a kernel without veth, `EEXIST` if a name is
/// taken, `EINVAL` for an invalid MTU or number of queues.
pub fn create_ends(end: &End<'_>, other: &End<'_>) -> Result<(), CallError> {
    let request = end.add_to(Request::new(RTM_NEWLINK, CREATE, &[0; IFINFOMSG]));
    let request = request.nested(IFLA_LINKINFO, &[], |info| {
        info.attribute(IFLA_INFO_KIND, b"veth").nested(IFLA_INFO_DATA, &[], |data| {
            data.nested(VETH_INFO_PEER, &[0; IFINFOMSG], |peer| other.add_to(peer))
        })
    });
    ask(ROUTE, &request, RTM_NEWLINK, |_| {}).map_err(|error| {
        let wish =
            [end.mtu.map(|mtu| format!("mtu {mtu}")), end.queues.map(|number| format!("{number} queues"))];
        let wish: String = wish.into_iter().flatten().map(|wish| format!(", {wish}")).collect();
        CallError::new(format!("create the veth pair {} and {}{wish}", end.name, other.name), error)
    })
}
