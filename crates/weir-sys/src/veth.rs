//! Making a pair of virtual Ethernet interfaces (rtnetlink(7), kind `veth`), for trying things in a private namespace.

use crate::CallError;
use crate::netlink::{CREATE, ROUTE, Request, ask};

const RTM_NEWLINK: u16 = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
/// `struct ifinfomsg`: the flags and which of them to set are its last two words.
const IFINFOMSG: usize = 16;
const IFF_UP: u32 = 1;

/// Makes a pair of interfaces with these names in this thread's network namespace, both up. They go with the namespace,
/// or either with the other.
///
/// # Errors
///
/// Those of [`create_down`].
pub fn create(name: &str, peer: &str) -> Result<(), CallError> {
    create_down(name, peer)?;
    // Not as it is made: an end can only be opened once it has its other.
    [name, peer].into_iter().try_for_each(bring_up)
}

/// Brings an interface of this thread's namespace up.
pub(crate) fn bring_up(name: &str) -> Result<(), CallError> {
    let mut up = DOWN;
    up[8..12].copy_from_slice(&IFF_UP.to_ne_bytes());
    up[12..16].copy_from_slice(&IFF_UP.to_ne_bytes());
    ask(ROUTE, &named(Request::new(RTM_NEWLINK, 0, &up), name), RTM_NEWLINK, |_| {})
        .map_err(|error| CallError::new(format!("bring {name} up"), error))
}

/// The same, both down.
///
/// # Errors
///
/// `EPERM` without `CAP_NET_ADMIN` over the namespace, `EOPNOTSUPP` on a kernel without veth, `EEXIST` where a name is
/// taken.
pub fn create_down(name: &str, peer: &str) -> Result<(), CallError> {
    let request = named(Request::new(RTM_NEWLINK, CREATE, &DOWN), name).nested(IFLA_LINKINFO, &[], |info| {
        info.attribute(IFLA_INFO_KIND, b"veth").nested(IFLA_INFO_DATA, &[], |data| {
            data.nested(VETH_INFO_PEER, &DOWN, |inner| named(inner, peer))
        })
    });
    ask(ROUTE, &request, RTM_NEWLINK, |_| {})
        .map_err(|error| CallError::new(format!("make the veth pair {name} and {peer}"), error))
}

const DOWN: [u8; IFINFOMSG] = [0; IFINFOMSG];

fn named(request: Request, name: &str) -> Request {
    request.attribute(IFLA_IFNAME, format!("{name}\0").as_bytes())
}
