//! Interfaces, as rtnetlink(7) describes them.

use crate::CallError;
use crate::netlink::{DUMP, ROUTE, Request, ask, attribute, attributes, long, text, word};

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
    /// Transmit queues allocated.
    pub tx_queues: u32,
    /// What makes it, if that is software: `bridge`, `bond`, `vlan`, `veth`, ... .
    pub kind: Option<String>,
    /// How many ask for promiscuous mode.
    pub promiscuity: u32,
    /// The bus that the device sits on, and its name there: `pci` and `0000:01:00.0`.
    pub parent: Option<(String, String)>,
    /// Id of an attached XDP program: the first that a packet meets.
    pub xdp_program: Option<u32>,
    /// Ids of attached XDP programs, by where they run.
    pub xdp: XdpPrograms,
    /// Packets that the device had no room for (`rx_missed_errors`).
    pub rx_missed: u64,
    /// Packets lost to FIFO overruns (`rx_fifo_errors`).
    pub rx_fifo_errors: u64,
    /// Packets dropped in the stack for want of resources (`rx_dropped`).
    pub rx_dropped: u64,
}

/// Ids of the XDP programs of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpPrograms {
    /// On the card.
    pub offload: Option<u32>,
    /// In the driver.
    pub native: Option<u32>,
    /// In the stack.
    pub generic: Option<u32>,
}

impl Link {
    /// Administratively up.
    pub fn is_up(&self) -> bool {
        self.flags & 0x1 != 0
    }

    /// Up, and the layer below is too: the cable is in, the other end is there.
    pub fn has_carrier(&self) -> bool {
        const IFF_LOWER_UP: u32 = 0x1_0000;
        self.flags & IFF_LOWER_UP != 0
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
const IFINFOMSG: usize = 16;
const IFADDRMSG: usize = 8;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_STATS64: u16 = 23;
const IFLA_PROMISCUITY: u16 = 30;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;
const IFLA_XDP_HW_PROG_ID: u16 = 7;
const IFLA_PARENT_DEV_NAME: u16 = 56;
const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
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
    let request = Request::new(RTM_GETLINK, DUMP, &[0; IFINFOMSG]);
    ask(ROUTE, &request, RTM_NEWLINK, |message| links.extend(parse_link(message)))
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
    let request = Request::new(RTM_GETLINK, 0, &header);
    match ask(ROUTE, &request, RTM_NEWLINK, |message| link = parse_link(message)) {
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
    let request = Request::new(RTM_GETADDR, DUMP, &[0; IFADDRMSG]);
    ask(ROUTE, &request, RTM_NEWADDR, |message| {
        let index = message.get(4..8).map(word);
        if message.get(SCOPE).is_some_and(|&scope| scope < RT_SCOPE_LINK) {
            indices.extend(index);
        }
    })
    .map_err(|error| CallError::new("list addresses (rtnetlink)", error))?;
    Ok(indices)
}

fn parse_link(message: &[u8]) -> Option<Link> {
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
            IFLA_MASTER => link.master = Some(word(value)),
            IFLA_NUM_RX_QUEUES => link.rx_queues = word(value),
            IFLA_GSO_MAX_SIZE => link.gso_max_size = word(value),
            IFLA_NUM_TX_QUEUES => link.tx_queues = word(value),
            IFLA_PROMISCUITY => link.promiscuity = word(value),
            IFLA_LINKINFO => link.kind = attribute(value, IFLA_INFO_KIND).map(text),
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
                link.rx_dropped = at(STATS_RX_DROPPED);
                link.rx_fifo_errors = at(STATS_RX_FIFO_ERRORS);
                link.rx_missed = at(STATS_RX_MISSED);
            }
            _ => {}
        }
    }
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
        assert!(lo.mtu >= 65536 && lo.rx_queues >= 1 && lo.gso_max_size >= 65536, "{lo:?}");
    }

    #[test]
    fn one_interface_is_found_by_its_index_and_an_absent_one_is_not() {
        assert_eq!(link(1).unwrap().map(|link| link.name), Some("lo".to_owned()));
        assert_eq!(link(u32::MAX >> 1).unwrap(), None);
    }
}
