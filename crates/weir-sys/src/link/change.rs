//! Finding an interface by name, and changing it (rtnetlink(7)), like `ip link set`, `ip address add` and
//! `ip neighbour add`.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::{
    IFF_NOARP, IFINFOMSG, IFLA_IFNAME, Link, LinkMonitor, Links, RTM_GETLINK, RTM_NEWADDR, RTM_NEWLINK,
    parse_link,
};
use crate::CallError;
use crate::netlink::{CREATE, Request};

const RTM_NEWNEIGH: u16 = 28;
const IFF_UP: u32 = 1;
const IFLA_NET_NS_FD: u16 = 28;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// No duplicate address detection (IPv6): the address can be used at once.
const IFA_F_NODAD: u8 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;

impl Links {
    /// Returns the interface `name`. Newer kernels update its carrier state first (seen on Linux 6.18).
    ///
    /// # Errors
    ///
    /// `ENODEV`: no such interface.
    pub fn get(&self, name: &str) -> Result<Link, CallError> {
        let mut link = None;
        let request = named(Request::new(RTM_GETLINK, 0, &[0; IFINFOMSG]), name);
        let asked = self.ask(&request, RTM_NEWLINK, |message| link = parse_link(message));
        let found = asked.and_then(|()| link.ok_or_else(|| Errno::NODEV.into()));
        found.map_err(|error| CallError::new(format!("query interface {name}"), error))
    }

    /// Brings the interface `name` up.
    ///
    /// # Errors
    ///
    /// `ENODEV`: no such interface. `EPERM` without `CAP_NET_ADMIN`.
    pub fn bring_up(&self, name: &str) -> Result<(), CallError> {
        self.set(name, &flags(IFF_UP, IFF_UP), &format!("bring {name} up"))
    }

    /// Brings the interface `name` up without address resolution: it neither asks for hardware addresses nor joins the
    /// multicast groups in which others ask for its own (`ip link set NAME arp off up`).
    ///
    /// # Errors
    ///
    /// The errors of [`bring_up`](Self::bring_up).
    pub fn bring_up_silent(&self, name: &str) -> Result<(), CallError> {
        let both = IFF_UP | IFF_NOARP;
        self.set(name, &flags(both, both), &format!("bring {name} up without address resolution"))
    }

    /// Brings the interface `name` down.
    ///
    /// # Errors
    ///
    /// The errors of [`bring_up`](Self::bring_up).
    pub fn take_down(&self, name: &str) -> Result<(), CallError> {
        self.set(name, &flags(0, IFF_UP), &format!("bring {name} down"))
    }

    /// Brings the interface `name` up or down, with or without address resolution.
    ///
    /// # Errors
    ///
    /// The errors of [`bring_up`](Self::bring_up).
    pub fn set_up(&self, name: &str, up: bool, resolves: bool) -> Result<(), CallError> {
        let on = if up { IFF_UP } else { 0 } | if resolves { 0 } else { IFF_NOARP };
        self.set(name, &flags(on, IFF_UP | IFF_NOARP), &format!("bring {name} up or down, as it was"))
    }

    /// Moves the interface `name` to another namespace, where it is down.
    ///
    /// # Errors
    ///
    /// The errors of [`bring_up`](Self::bring_up), for both namespaces. `EEXIST`: the name is taken there.
    pub fn move_to(&self, netns: BorrowedFd<'_>, name: &str) -> Result<(), CallError> {
        let request = Request::new(RTM_NEWLINK, 0, &flags(0, 0));
        let request = request.attribute(IFLA_NET_NS_FD, &netns.as_raw_fd().to_ne_bytes());
        self.change(&named(request, name), &format!("move {name} into another namespace"))
    }

    /// Adds an address with a network prefix of `prefix` bits to the interface with index `index`. It can be used at
    /// once.
    ///
    /// # Errors
    ///
    /// `ENODEV`: no such interface. `EEXIST`: it already has the address. `EPERM` without `CAP_NET_ADMIN`. `EACCES`:
    /// IPv6 is disabled for the interface.
    pub fn add_address(&self, index: u32, ip: IpAddr, prefix: u8) -> Result<(), CallError> {
        let (family, address) = parts(ip);
        let flags = if ip.is_ipv6() { IFA_F_NODAD } else { 0 };
        // struct ifaddrmsg: family, prefix length, flags, scope (0: the universe), index.
        let header = [&[family, prefix, flags, 0], &index.to_ne_bytes()[..]].concat();
        let request = Request::new(RTM_NEWADDR, CREATE, &header);
        let request = request.attribute(IFA_LOCAL, &address).attribute(IFA_ADDRESS, &address);
        self.change(&request, &format!("add address {ip}/{prefix} to interface {index}"))
    }

    /// Adds a permanent neighbour entry, with its hardware address, to the interface with index `index`.
    ///
    /// # Errors
    ///
    /// `ENODEV`: no such interface. `EEXIST`: there already is an entry. `EPERM` without `CAP_NET_ADMIN`.
    pub fn add_neighbour(&self, index: u32, ip: IpAddr, hardware: [u8; 6]) -> Result<(), CallError> {
        let (family, address) = parts(ip);
        // struct ndmsg (linux/neighbour.h): family, padding, index, state, flags, type.
        let mut header = [0; 12];
        header[0] = family;
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        header[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
        let request = Request::new(RTM_NEWNEIGH, CREATE, &header);
        let request = request.attribute(NDA_DST, &address).attribute(NDA_LLADDR, &hardware);
        self.change(&request, &format!("add neighbour {ip} to interface {index}"))
    }

    fn set(&self, name: &str, header: &[u8], what: &str) -> Result<(), CallError> {
        self.change(&named(Request::new(RTM_NEWLINK, 0, header), name), what)
    }

    fn change(&self, request: &Request, what: &str) -> Result<(), CallError> {
        self.ask(request, RTM_NEWLINK, |_| {}).map_err(|error| CallError::new(what, error))
    }
}

/// Waits until packets can pass the interface `name` in this thread's namespace, for at most `patience`, and returns
/// the interface. Until then, the kernel drops outgoing packets: it may notice a new carrier, and set up the queueing
/// discipline, up to a second late (net/core/link_watch.c). `None`: it has no carrier.
///
/// # Errors
///
/// `ENODEV`: no such interface.
pub fn wait_for_carrier(name: &str, patience: Duration) -> Result<Option<Link>, CallError> {
    let deadline = Instant::now() + patience;
    let links = Links::open()?;
    let mut link = links.get(name)?;
    if link.passes() {
        return Ok(Some(link));
    }
    // Listen first, then query again, so that no change in between is missed.
    let mut monitor = LinkMonitor::open()?;
    loop {
        link = links.get(name)?;
        if link.passes() {
            return Ok(Some(link));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&monitor, PollFlags::IN)], left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => monitor.changes(|_| {})?,
            Err(error) => return Err(CallError::new("wait for interfaces (rtnetlink)", error)),
        }
    }
}

impl Link {
    /// Returns whether there is a carrier and the kernel has noticed it (`IFF_RUNNING`).
    fn passes(&self) -> bool {
        const IFF_RUNNING: u32 = 0x40;
        self.has_carrier() && self.flags & IFF_RUNNING != 0
    }
}

/// Builds a `struct ifinfomsg` that sets the flags in `mask`.
fn flags(flags: u32, mask: u32) -> [u8; IFINFOMSG] {
    let mut header = [0; IFINFOMSG];
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&mask.to_ne_bytes());
    header
}

fn named(request: Request, name: &str) -> Request {
    request.attribute(IFLA_IFNAME, format!("{name}\0").as_bytes())
}

/// Returns the `AF_*` family and the bytes of an address.
fn parts(ip: IpAddr) -> (u8, Vec<u8>) {
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    match ip {
        IpAddr::V4(ip) => (AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, ip.octets().to_vec()),
    }
}
