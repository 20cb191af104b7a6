//! Pairs of virtual Ethernet interfaces (veth(4), rtnetlink(7)), for experiments in a private namespace.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::CallError;
use crate::link::Links;
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

/// Creates a pair of interfaces with these names in this thread's network namespace, both up. They disappear with the
/// namespace, and each with the other.
///
/// # Errors
///
/// The errors of [`create_down`].
pub fn create(name: &str, peer: &str) -> Result<(), CallError> {
    create_down(name, peer)?;
    // Not at creation: an end can only be brought up once its peer exists.
    let links = Links::open()?;
    [name, peer].into_iter().try_for_each(|name| links.bring_up(name))
}

/// Like [`create`], with both interfaces down.
///
/// # Errors
///
/// The errors of [`create_ends`].
pub fn create_down(name: &str, peer: &str) -> Result<(), CallError> {
    create_ends(&End::named(name), &End::named(peer))
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
