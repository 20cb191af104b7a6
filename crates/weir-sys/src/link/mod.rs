//! Interfaces, as described by rtnetlink(7).

mod change;
mod monitor;

use std::io;

pub use self::change::wait_for_carrier;
pub use self::monitor::{LinkChange, LinkMonitor};
use crate::CallError;
use crate::netlink::{DUMP, ROUTE, Request, Socket, ask, attribute, attributes, long, text, word};

/// An interface, as reported by the kernel.
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
    /// Largest layer-3 packet, in bytes.
    pub mtu: u32,
    /// Hardware address, empty if it has none.
    pub address: Vec<u8>,
    /// Index of the bridge or bond that it belongs to.
    pub master: Option<u32>,
    /// Index of the lower interface (the card of a VLAN, the peer in a veth pair), if it is in the same namespace.
    pub lower: Option<u32>,
    /// The lower interface if it is in another namespace: its index there, and the number of that namespace here
    /// ([`NetNs::number_here`](crate::netns::NetNs::number_here)).
    pub far: Option<(u32, i32)>,
    /// `MACVLAN_MODE_*` of a macvlan or macvtap.
    pub macvlan_mode: Option<u32>,
    /// Largest packet for segmentation offload, in bytes.
    pub gso_max_size: u32,
    /// Largest packet that the stack assembles from received ones (GRO), in bytes.
    pub gro_max_size: u32,
    /// Receive queues allocated, not necessarily all in use.
    pub rx_queues: u32,
    /// Transmit queues allocated.
    pub tx_queues: u32,
    /// Kind of a software interface: `bridge`, `bond`, `vlan`, `veth`, ... .
    pub kind: Option<String>,
    /// Number of requests for promiscuous mode.
    pub promiscuity: u32,
    /// The device's bus, and its name there: `pci` and `0000:01:00.0`.
    pub parent: Option<(String, String)>,
    /// ID of the first attached XDP program that a packet meets.
    pub xdp_program: Option<u32>,
    /// IDs of attached XDP programs, by where they run.
    pub xdp: XdpPrograms,
    /// Packets that the device had no room for (`rx_missed_errors`).
    pub rx_missed: u64,
    /// Packets lost to FIFO overruns (`rx_fifo_errors`).
    pub rx_fifo_errors: u64,
    /// Packets dropped in the stack for lack of resources (`rx_dropped`).
    pub rx_dropped: u64,
    /// Packets received (`rx_packets`), as far as the driver has counted them: some cards do so once a second.
    pub rx_packets: u64,
    /// Packets sent (`tx_packets`), likewise.
    pub tx_packets: u64,
    /// Outgoing packets that could not be sent (`tx_errors`).
    pub tx_errors: u64,
    /// Outgoing packets that were dropped (`tx_dropped`).
    pub tx_dropped: u64,
}

/// IDs of an interface's XDP programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpPrograms {
    /// On the card.
    pub offload: Option<u32>,
    /// In the driver.
    pub native: Option<u32>,
    /// In the stack.
    pub generic: Option<u32>,
}

/// An IP address of an interface, as reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of the interface.
    pub interface: u32,
    /// IPv4 rather than IPv6.
    pub ipv4: bool,
    /// Length of the network prefix in bits.
    pub prefix: u8,
    /// `RT_SCOPE_*`: 0 the universe, 253 the link, 254 the host.
    pub scope: u8,
}

impl Address {
    /// Returns whether the address is valid beyond the link.
    pub fn is_beyond_link(&self) -> bool {
        const RT_SCOPE_LINK: u8 = 253;
        self.scope < RT_SCOPE_LINK
    }

    /// Returns the netmask of an IPv4 address.
    pub fn netmask(&self) -> Option<u32> {
        let host = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
        self.ipv4.then_some(!host)
    }
}

impl Link {
    /// Returns whether the interface is administratively up.
    pub fn is_up(&self) -> bool {
        self.flags & 0x1 != 0
    }

    /// Returns whether a user has set promiscuous mode, apart from other requests for it.
    pub fn is_promiscuous(&self) -> bool {
        self.flags & IFF_PROMISC != 0
    }

    /// Returns whether the interface resolves addresses (ARP, and neighbour discovery of IPv6).
    pub fn resolves(&self) -> bool {
        self.flags & IFF_NOARP == 0
    }

    /// Returns whether this is the loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.flags & 0x8 != 0
    }

    /// Returns whether the interface and the layer below are up: the cable is plugged in, the other end is there.
    pub fn has_carrier(&self) -> bool {
        const IFF_LOWER_UP: u32 = 0x1_0000;
        self.flags & IFF_LOWER_UP != 0
    }
}

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const IFF_NOARP: u32 = 0x80;
const IFF_PROMISC: u32 = 0x100;
const IFINFOMSG: usize = 16;
const IFADDRMSG: usize = 8;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
/// An attribute in a macvlan's `IFLA_INFO_DATA`.
const IFLA_MACVLAN_MODE: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_PROMISCUITY: u16 = 30;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_XDP: u16 = 43;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
const IFLA_PARENT_DEV_NAME: u16 = 56;
const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
/// Positions in `struct rtnl_link_stats64`, in words.
const STATS_RX_PACKETS: usize = 0;
const STATS_TX_PACKETS: usize = 1;
const STATS_TX_ERRORS: usize = 5;
const STATS_RX_DROPPED: usize = 6;
const STATS_TX_DROPPED: usize = 7;
const STATS_RX_FIFO_ERRORS: usize = 14;
const STATS_RX_MISSED: usize = 15;

/// Turns promiscuous mode on or off for the interface with index `index` in this thread's network namespace, like
/// `ip link set promisc`. It stays that way until changed.
///
/// # Errors
///
/// `ENODEV`: no such interface. `EPERM` without `CAP_NET_ADMIN`.
pub fn set_promiscuous(index: u32, on: bool) -> Result<(), CallError> {
    let mut header = [0; IFINFOMSG];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&(if on { IFF_PROMISC } else { 0 }).to_ne_bytes());
    header[12..16].copy_from_slice(&IFF_PROMISC.to_ne_bytes());
    let what =
        if on { "enable promiscuous mode on interface" } else { "disable promiscuous mode on interface" };
    ask(ROUTE, &Request::new(RTM_NEWLINK, 0, &header), RTM_NEWLINK, |_| {})
        .map_err(|error| CallError::new(format!("{what} {index}"), error))
}

/// Returns all interfaces in this thread's network namespace, by index.
///
/// # Errors
///
/// The error of the netlink socket.
pub fn links() -> Result<Vec<Link>, CallError> {
    Links::open()?.all()
}

/// A source of interface information about the namespace in which it was opened, wherever it is used.
#[derive(Debug)]
pub struct Links {
    socket: Socket,
}

impl Links {
    /// Opens the socket, in this thread's network namespace.
    ///
    /// # Errors
    ///
    /// The error of `socket(2)`.
    pub fn open() -> Result<Self, CallError> {
        let socket = Socket::open(ROUTE)
            .map_err(|error| CallError::new("open a socket for interfaces (rtnetlink)", error))?;
        Ok(Self { socket })
    }

    /// Returns all interfaces, by index.
    ///
    /// # Errors
    ///
    /// The error of the netlink socket.
    pub fn all(&self) -> Result<Vec<Link>, CallError> {
        let mut links = Vec::new();
        let request = Request::new(RTM_GETLINK, DUMP, &[0; IFINFOMSG]);
        self.ask(&request, RTM_NEWLINK, |message| links.extend(parse_link(message)))
            .map_err(|error| CallError::new("list interfaces (rtnetlink)", error))?;
        Ok(links)
    }

    /// Returns the IP addresses of all interfaces, in each interface's own order.
    ///
    /// # Errors
    ///
    /// The error of the netlink socket.
    pub fn addresses(&self) -> Result<Vec<Address>, CallError> {
        let mut addresses = Vec::new();
        let request = Request::new(RTM_GETADDR, DUMP, &[0; IFADDRMSG]);
        self.ask(&request, RTM_NEWADDR, |message| addresses.extend(parse_address(message)))
            .map_err(|error| CallError::new("list addresses (rtnetlink)", error))?;
        Ok(addresses)
    }

    fn ask(&self, request: &Request, answer: u16, each: impl FnMut(&[u8])) -> io::Result<()> {
        self.socket.ask(request, answer, each)
    }
}

fn parse_address(message: &[u8]) -> Option<Address> {
    const AF_INET: u8 = 2;
    let &[family, prefix, _flags, scope, ..] = message else { return None };
    let interface = word(message.get(4..IFADDRMSG)?);
    Some(Address { interface, ipv4: family == AF_INET, prefix, scope })
}

/// Parses a message of type `RTM_NEWLINK` or `RTM_DELLINK`. Returns `None` also for a bridge's messages about its
/// ports, which have the same types: an interface that leaves a bridge is not gone.
fn parse_link(message: &[u8]) -> Option<Link> {
    const AF_UNSPEC: u8 = 0;
    if *message.first()? != AF_UNSPEC {
        return None;
    }
    let mut elsewhere = None;
    let mut link = Link {
        hardware: u16::from_ne_bytes(message.get(2..4)?.try_into().ok()?),
        index: word(message.get(4..8)?),
        flags: word(message.get(8..12)?),
        ..Link::default()
    };
    let (mut parent_bus, mut parent_name) = (None, None);
    for (kind, value) in attributes(message.get(IFINFOMSG..)?) {
        match kind {
            IFLA_ADDRESS => link.address = value.to_vec(),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = word(value),
            IFLA_LINK => link.lower = Some(word(value)),
            IFLA_LINK_NETNSID => elsewhere = Some(word(value).cast_signed()),
            IFLA_MASTER => link.master = Some(word(value)),
            IFLA_NUM_RX_QUEUES => link.rx_queues = word(value),
            IFLA_GSO_MAX_SIZE => link.gso_max_size = word(value),
            IFLA_GRO_MAX_SIZE => link.gro_max_size = word(value),
            IFLA_NUM_TX_QUEUES => link.tx_queues = word(value),
            IFLA_PROMISCUITY => link.promiscuity = word(value),
            IFLA_LINKINFO => {
                link.kind = attribute(value, IFLA_INFO_KIND).map(text);
                if let Some("macvlan" | "macvtap") = link.kind.as_deref() {
                    let data = attribute(value, IFLA_INFO_DATA).unwrap_or_default();
                    link.macvlan_mode = attribute(data, IFLA_MACVLAN_MODE).map(word);
                }
            }
            IFLA_PARENT_DEV_NAME => parent_name = Some(text(value)),
            IFLA_PARENT_DEV_BUS_NAME => parent_bus = Some(text(value)),
            IFLA_XDP => {
                link.xdp = XdpPrograms {
                    offload: attribute(value, IFLA_XDP_HW_PROG_ID).map(word),
                    native: attribute(value, IFLA_XDP_DRV_PROG_ID).map(word),
                    generic: attribute(value, IFLA_XDP_SKB_PROG_ID).map(word),
                };
            }
            IFLA_STATS64 => {
                let at = |place: usize| value.get(place * 8..).map_or(0, long);
                link.rx_packets = at(STATS_RX_PACKETS);
                link.rx_dropped = at(STATS_RX_DROPPED);
                link.rx_fifo_errors = at(STATS_RX_FIFO_ERRORS);
                link.rx_missed = at(STATS_RX_MISSED);
                link.tx_packets = at(STATS_TX_PACKETS);
                link.tx_errors = at(STATS_TX_ERRORS);
                link.tx_dropped = at(STATS_TX_DROPPED);
            }
            _ => {}
        }
    }
    // An index in another namespace would be mistaken for one in ours.
    link.far = link.lower.zip(elsewhere);
    link.lower = link.lower.filter(|&lower| elsewhere.is_none() && lower != 0 && lower != link.index);
    link.parent = parent_bus.zip(parent_name);
    link.xdp_program = link.xdp.offload.or(link.xdp.native).or(link.xdp.generic);
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
        assert!(
            lo.mtu >= 65536 && lo.rx_queues >= 1 && lo.gso_max_size.min(lo.gro_max_size) >= 65536,
            "{lo:?}"
        );
    }

    #[test]
    fn an_address_tells_its_network() {
        let parsed = |family: u8, prefix: u8, scope: u8| {
            parse_address(&[family, prefix, 0, scope, 7, 0, 0, 0]).expect("it is one")
        };
        for (prefix, mask) in [(0, 0), (8, 0xff00_0000), (23, 0xffff_fe00), (32, u32::MAX)] {
            assert_eq!(parsed(2, prefix, 0).netmask(), Some(mask));
        }
        let link_local = parsed(10, 64, 253);
        assert_eq!((link_local.netmask(), link_local.is_beyond_link()), (None, false));
        assert_eq!(parse_address(&[2, 8, 0, 0, 7, 0]), None);
        let lo = Links::open().unwrap().addresses().unwrap();
        assert!(lo.iter().all(|address| address.interface > 0), "{lo:?}");
    }

    /// Builds a padded attribute.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn link(family: u8, attributes: &[Vec<u8>]) -> Option<Link> {
        let mut payload = vec![0; IFINFOMSG];
        payload[0] = family;
        payload[4] = 7;
        payload.extend(attributes.concat());
        parse_link(&payload)
    }

    #[test]
    fn a_stacked_interface_tells_what_is_below() {
        let lower = attribute(IFLA_LINK, &3u32.to_ne_bytes());
        let mode = attribute(IFLA_MACVLAN_MODE, &4u32.to_ne_bytes());
        let info = [attribute(IFLA_INFO_KIND, b"macvlan\0"), attribute(IFLA_INFO_DATA, &mode)].concat();
        let info = attribute(IFLA_LINKINFO, &info);
        let told = link(0, &[lower.clone(), info]).unwrap();
        assert_eq!((told.index, told.lower, told.kind.as_deref()), (7, Some(3), Some("macvlan")));
        assert_eq!(told.macvlan_mode, Some(4));
        // An index in the other namespace is meaningless here.
        let elsewhere = attribute(IFLA_LINK_NETNSID, &0u32.to_ne_bytes());
        let told = link(0, &[lower, elsewhere]).unwrap();
        assert_eq!((told.lower, told.far), (None, Some((3, 0))));
    }

    #[test]
    fn what_a_bridge_tells_of_a_port_is_no_interface() {
        const AF_BRIDGE: u8 = 7;
        assert_eq!(link(AF_BRIDGE, &[]), None);
        assert_eq!(link(0, &[]).unwrap().index, 7);
        assert_eq!(parse_link(&[0; 15]), None);
    }
}
