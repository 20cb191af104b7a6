//! An interface of a capture, described for files and people.

pub(crate) mod event;
pub(crate) mod monitored;
mod peer;
pub(crate) mod queues;
pub(crate) mod warning;

use std::sync::Arc;

use weir_bpf::writers::{Chosen, Driven};
use weir_sys::bpf::probe;
use weir_sys::ethtool::{Ethtool, Stripping};
use weir_sys::link::{Address, Link, Links};
use weir_sys::netdev::{XdpAbilities, xdp_abilities};

use self::peer::Peer;
use crate::file_interface;
use crate::filter::{Compiled, Filter, Receiver};
use crate::live::error::command;
use crate::live::request::Wanted;
use crate::live::request::sampling::Sample;
use crate::live::settings::{Mode, SourceChoice};
use crate::{Error, FileInterface, InterfaceWarning, ModeKind, SourceKind, TagUse, Unsupported};

/// An interface of a capture.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Interface {
    /// Number in the capture and in its file, from 0.
    pub id: u32,
    /// Name; `NAMESPACE/NAME` if the capture names a namespace.
    pub name: String,
    /// For `any`, the interfaces at the start of the capture, as packets contain only indexes: `1 lo, 2 eth0`.
    pub description: Option<String>,
    /// `LINKTYPE_*`: 1 Ethernet, 101 raw IP, 276 Linux cooked v2.
    pub link_type: u16,
    /// Bytes kept of each packet.
    pub snap_len: u32,
    /// Bits per second, if the driver reports it.
    pub speed_bits: Option<u64>,
    /// Hardware address.
    pub mac: Option<[u8; 6]>,
    /// The source that captures.
    pub source: SourceKind,
    /// What happens to its packets after they are captured.
    pub mode: ModeKind,
    /// How the source runs, in words: attachment, pool.
    pub detail: String,
    /// Why this source was chosen.
    pub why: String,
    /// Number of queues, each with its own pool.
    pub queues: u32,
    /// Number of targets, if packets are steered.
    pub targets: Option<u32>,
    /// The filter, as shown to people and written to files.
    pub filter: Option<String>,
    /// Which of the packets that match the filter are captured, if not all.
    pub sample: Option<Sample>,
    /// Whether the filter with which the capture started can never match.
    pub filter_is_never: bool,
    /// What is worse than it could be, and why: a slower source than the preferred one, missing VLAN tags.
    pub warnings: Vec<InterfaceWarning>,
    /// Whether VLAN tags stripped by the device are missing.
    pub tags_lost: bool,
}

impl From<&Interface> for FileInterface {
    fn from(interface: &Interface) -> Self {
        Self {
            link_type: interface.link_type,
            snap_len: interface.snap_len,
            name: Some(interface.name.clone()),
            description: interface.description.clone(),
            mac: interface.mac,
            filter: interface.filter.clone(),
            comment: interface.sample.map(|sample| sample.describe()),
            speed_bits: interface.speed_bits,
            os: Some(file_interface::os()),
            ..Self::default()
        }
    }
}

/// What is known about an interface before a source is opened on it.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    /// Contains the capture's name for the interface.
    pub(crate) link: Link,
    pub(crate) driver: Option<String>,
    pub(crate) rx_queues: u32,
    /// The only receive queues to capture on; `None`: all.
    pub(crate) chosen: Option<Chosen>,
    pub(crate) speed_bits: Option<u64>,
    pub(crate) tags: Tags,
    /// The other end, for veth.
    pub(crate) peer: Option<Peer>,
    /// `None`: the kernel cannot report them (before 6.3).
    pub(crate) abilities: Option<XdpAbilities>,
    /// What is known of who uses it.
    pub(crate) usage: Usage,
    /// Netmask of the first IPv4 address, if there is one.
    pub(crate) netmask: Option<u32>,
    /// It stands for all interfaces of its namespace.
    pub(crate) any: bool,
    pub(crate) description: Option<String>,
    /// The filter, compiled for its packets.
    pub(crate) filter: Option<Arc<Compiled>>,
}

/// Who uses an interface, as far as its settings and counters tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// The host: it has an IP address of more than link scope, belongs to a bridge or bond, or carries other interfaces.
    Host,
    /// Whatever made it, for traffic in both directions: veth, tun, macvlan, a VLAN, ...
    Software,
    /// Nobody known: a card that has sent packets, or not received enough to tell.
    Unknown,
    /// A mirror port: a card that only receives.
    Mirror,
}

impl Usage {
    /// Judges `link`, one of `links`, that has these addresses.
    fn of(link: &Link, links: &[Link], addresses: &[&Address]) -> Self {
        // Neighbour discovery, LLDP and the like go out on any port that is up.
        const ENOUGH: u64 = 1000;
        // The lower link of a veth is its peer.
        let is_on_it =
            |other: &Link| other.lower == Some(link.index) && other.kind.as_deref() != Some("veth");
        if link.master.is_some()
            || addresses.iter().any(|address| address.is_beyond_link())
            || links.iter().any(is_on_it)
        {
            Self::Host
        } else if link.kind.is_some() {
            Self::Software
        } else if link.rx_packets >= ENOUGH && link.tx_packets <= link.rx_packets / ENOUGH {
            Self::Mirror
        } else {
            Self::Unknown
        }
    }
}

/// All interfaces of a namespace, as the kernel lists them: once for a capture, however many it is on.
#[derive(Debug)]
pub(crate) struct Census {
    links: Vec<Link>,
    addresses: Vec<Address>,
    /// Empty if the kernel cannot report them.
    abilities: Vec<XdpAbilities>,
}

impl Census {
    /// Lists the interfaces of this thread's namespace.
    pub(crate) fn take() -> Result<Self, Error> {
        let table = Links::open()?;
        let (links, addresses) = (table.all()?, table.addresses()?);
        Ok(Self { links, addresses, abilities: xdp_abilities()?.unwrap_or_default() })
    }
}

/// Where the outer VLAN tags of received packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tags {
    /// In the frames, as on the wire.
    InFrame,
    /// The device strips these, and its driver reports them to XDP.
    Told(Stripping),
    /// The device strips these, and its driver does not report them.
    Unreported(Stripping),
}

impl Tags {
    /// Returns where a device with this driver leaves VLAN tags; `stripping` is what its own features say. On veth
    /// these do not matter: tags are beside the frame if its other end puts them there. `peer` says which ones it does;
    /// without it, assume all. A program that asks the driver for tags must be bound to the device, which the kernel
    /// does not allow with constant blinding (`blinded`).
    fn of(
        stripping: Stripping,
        driver: Option<&str>,
        peer: Option<&Peer>,
        abilities: Option<XdpAbilities>,
        blinded: bool,
    ) -> Self {
        const ALL: Stripping = Stripping { customer: true, service: true };
        let stripping = match driver {
            Some("veth") => peer.map_or(ALL, |peer| peer.inserts),
            _ => stripping,
        };
        if stripping == Stripping::default() {
            Self::InFrame
        } else if abilities.is_some_and(|can| can.vlan_tag()) && !blinded {
            Self::Told(stripping)
        } else {
            Self::Unreported(stripping)
        }
    }
}

/// Returns the error for the interface with this name, where the command `keep` keeps the tags that XDP does not get.
pub(crate) fn tags_needed(name: String, keep: String, needed: TagUse, mode: Mode) -> Error {
    Error::Unsupported {
        name,
        cause: Unsupported::Tags { needed, keep },
        sources: match mode {
            Mode::Pass => &[SourceChoice::Tc],
            Mode::Exclusive => &[],
        },
        otherwise: match mode {
            Mode::Pass => "keep the tags",
            Mode::Exclusive => "keep the tags, or use the tc source, which leaves packets to the host",
        },
    }
}

impl Device {
    /// Returns the error for an interface whose tags XDP does not get, but must.
    pub(crate) fn tags_needed(&self, needed: TagUse, mode: Mode) -> Error {
        tags_needed(self.link.name.clone(), self.leave_tags(), needed, mode)
    }

    /// Describes the device for a program that runs in its driver. veth never runs a program for another interface.
    pub(crate) fn driven(&self) -> Driven {
        Driven { index: self.link.index, hands_on: self.driver.as_deref() != Some("veth") }
    }

    /// Returns the number of the first receive queue to capture on, and how many there are.
    pub(crate) fn queues(&self) -> (u32, u32) {
        self.chosen.map_or((0, self.rx_queues), |Chosen { first, count }| (first, count))
    }

    /// Returns the command that leaves VLAN tags in the frames, where XDP sees them.
    pub(crate) fn leave_tags(&self) -> String {
        if self.driver.as_deref() == Some("veth") {
            return self.peer_with("txvlan off tx-vlan-stag-hw-insert off");
        }
        let (inside, name) = command::place(&self.link.name);
        match self.tags {
            Tags::Told(Stripping { service: true, customer })
            | Tags::Unreported(Stripping { service: true, customer }) => {
                let both = if customer { "rxvlan off " } else { "" };
                format!("{inside}ethtool -K {name} {both}rx-vlan-stag-hw-parse off")
            }
            _ => format!("{inside}ethtool -K {name} rxvlan off"),
        }
    }

    /// Returns whether the driver takes redirected packets. `None`: not known. Before 6.3 the kernel does not tell; of veth,
    /// its other end tells if it is found.
    pub(crate) fn takes_redirected(&self) -> Option<bool> {
        let told = self.abilities.map(|can| can.redirect_target());
        told.or_else(|| self.peer.as_ref().map(|peer| peer.gro))
    }

    /// Returns the command that sets features of the other end of a veth: `ethtool -K v1 gro on`.
    pub(crate) fn peer_with(&self, features: &str) -> String {
        match &self.peer {
            Some(peer) => {
                let (inside, name) = command::place(&peer.label);
                format!("{inside}ethtool -K {name} {features}")
            }
            None => format!("ethtool -K PEER {features}, on its other end"),
        }
    }

    /// Finds an interface in this thread's namespace.
    pub(crate) fn find(wanted: &Wanted) -> Result<Self, Error> {
        Self::find_in(&Census::take()?, wanted)
    }

    /// Finds an interface in this thread's namespace, from which `census` is.
    pub(crate) fn find_in(census: &Census, wanted: &Wanted) -> Result<Self, Error> {
        let links = &census.links;
        if wanted.is_any() {
            return Ok(Self::any(wanted, links));
        }
        let name = &wanted.name;
        let Some(link) = links.iter().find(|link| link.name == *name) else {
            return Err(unknown(wanted, links));
        };
        let ethtool = Ethtool::new()?;
        let of_link = |address: &&Address| address.interface == link.index;
        let addresses: Vec<&Address> = census.addresses.iter().filter(of_link).collect();
        let driver = ethtool.driver(name);
        let abilities = census.abilities.iter().find(|one| one.interface == link.index).copied();
        // Without the privilege to find out, loading such a program fails too, with an error that says so.
        let blinded = probe::blinds_constants().unwrap_or(false);
        let peer =
            (driver.as_deref() == Some("veth")).then(|| Peer::of(link, links, &wanted.label())).flatten();
        let rx_queues = ethtool.rx_queues(name).unwrap_or(link.rx_queues).max(1);
        Ok(Self {
            tags: Tags::of(ethtool.stripping(name), driver.as_deref(), peer.as_ref(), abilities, blinded),
            peer,
            driver,
            rx_queues,
            chosen: wanted.chosen(rx_queues)?,
            speed_bits: ethtool.speed(name),
            abilities,
            usage: Usage::of(link, links, &addresses),
            netmask: addresses.iter().find_map(|address| address.netmask()),
            any: false,
            description: None,
            filter: None,
            link: Link { name: wanted.label(), ..link.clone() },
        })
    }

    /// Sets the filter.
    pub(crate) fn want(&mut self, filter: &Filter) -> Result<(), Error> {
        let compiled = filter.compile(self.receiver()?).map_err(|error| error.on(&self.link.name))?;
        self.filter = Some(Arc::new(compiled));
        Ok(())
    }

    /// Returns what a filter is compiled for. Filters for `any` see packets as they are saved; for other interfaces the
    /// kernel also provides metadata.
    pub(crate) fn receiver(&self) -> Result<Receiver, Error> {
        let link_type = self.link_type()?;
        Ok(Receiver {
            link_type,
            metadata: !self.any,
            swapped: false,
            netmask: self.netmask,
            tags_lost: false,
        })
    }

    /// Returns the device that stands for all interfaces, with the dimensions of the largest.
    fn any(wanted: &Wanted, links: &[Link]) -> Self {
        const IFF_UP: u32 = 1;
        let all: Vec<_> = links.iter().map(|link| format!("{} {}", link.index, link.name)).collect();
        let largest = |of: fn(&Link) -> u32| links.iter().map(of).max().unwrap_or_default();
        let link = Link {
            name: wanted.label(),
            flags: IFF_UP,
            mtu: largest(|link| link.mtu),
            gso_max_size: largest(|link| link.gso_max_size),
            ..Link::default()
        };
        Self {
            link,
            driver: None,
            rx_queues: 1,
            chosen: wanted.queues.as_ref().map(|_| Chosen { first: 0, count: 1 }),
            speed_bits: None,
            tags: Tags::InFrame,
            peer: None,
            abilities: None,
            usage: Usage::Host,
            netmask: None,
            any: true,
            description: Some(all.join(file_interface::LIST)),
            filter: None,
        }
    }

    /// Returns the `LINKTYPE_*` of its frames, if they can be captured.
    pub(crate) fn link_type(&self) -> Result<u16, Error> {
        const LINKTYPE_LINUX_SLL2: u16 = 276;
        if self.any {
            return Ok(LINKTYPE_LINUX_SLL2);
        }
        link_type(self.link.hardware).ok_or_else(|| Error::Unsupported {
            name: self.link.name.clone(),
            cause: Unsupported::LinkLayer { hardware: self.link.hardware },
            sources: &[],
            otherwise: "capture on an Ethernet, loopback or tun interface",
        })
    }

    /// Whether frames begin with an Ethernet header.
    pub(crate) fn is_ethernet(&self) -> bool {
        self.link_type().is_ok_and(|link_type| link_type == 1)
    }

    /// Returns the largest possible frame in bytes: a whole packet of an offload, in either direction, or the MTU, with
    /// an Ethernet or cooked header and two VLAN tags.
    pub(crate) fn largest_frame(&self) -> u32 {
        const HEADERS: u32 = 20 + 8;
        self.link.mtu.max(self.link.gso_max_size).max(self.link.gro_max_size).saturating_add(HEADERS)
    }
}

/// Maps the kernel's `ARPHRD_*` to the `LINKTYPE_*` of the frames that a packet socket receives and sends.
pub(crate) fn link_type(hardware: u16) -> Option<u16> {
    const ARPHRD_ETHER: u16 = 1;
    const ARPHRD_LOOPBACK: u16 = 772;
    const ARPHRD_NONE: u16 = 0xfffe;
    const LINKTYPE_ETHERNET: u16 = 1;
    const LINKTYPE_RAW: u16 = 101;
    match hardware {
        ARPHRD_ETHER | ARPHRD_LOOPBACK => Some(LINKTYPE_ETHERNET),
        ARPHRD_NONE => Some(LINKTYPE_RAW),
        _ => None,
    }
}

/// Returns the error of an interface that is not among these.
pub(crate) fn unknown(wanted: &Wanted, links: &[Link]) -> Error {
    let name = &wanted.name;
    let others: Vec<String> = links.iter().map(|link| link.name.clone()).collect();
    let nearest = others.iter().min_by_key(|other| distance(name, other)).cloned();
    let nearest = nearest.filter(|other| distance(name, other) <= name.len().div_ceil(2));
    Error::NoSuchInterface { name: wanted.label(), nearest, others }
}

/// Returns the number of edits that turn one word into the other (Levenshtein distance).
pub fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &b) in to.iter().enumerate() {
            let edit = (diagonal + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], edit);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_card_that_hardly_sends_is_a_mirror_port() {
        let address = |interface, scope| Address { interface, ipv4: true, prefix: 24, scope };
        let card = Link { index: 7, rx_packets: 5_000_000, tx_packets: 5000, ..Link::default() };
        let used =
            |link: Link, other: Link, address: Address| Usage::of(&link, &[link.clone(), other], &[&address]);
        let alone = |link: Link| used(link, Link { index: 8, ..Link::default() }, address(7, 253));
        assert_eq!(alone(card.clone()), Usage::Mirror);
        assert_eq!(alone(Link { tx_packets: 5001, ..card.clone() }), Usage::Unknown);
        assert_eq!(alone(Link { rx_packets: 999, tx_packets: 0, ..card.clone() }), Usage::Unknown);
        for kind in ["veth", "tun", "macvlan", "vlan", "vrf", "ipvlan"] {
            assert_eq!(alone(Link { kind: Some(kind.into()), ..card.clone() }), Usage::Software);
        }
        assert_eq!(
            alone(Link { master: Some(8), ..card.clone() }),
            Usage::Host,
            "a port of a bridge or bond"
        );
        let above = Link { index: 8, lower: Some(7), ..Link::default() };
        assert_eq!(used(card.clone(), above, address(7, 253)), Usage::Host, "a VLAN or macvlan is on it");
        let peer =
            |index, lower| Link { index, lower: Some(lower), kind: Some("veth".into()), ..Link::default() };
        assert_eq!(used(peer(7, 8), peer(8, 7), address(7, 253)), Usage::Software, "its peer is not on it");
        assert_eq!(used(card, Link::default(), address(7, 0)), Usage::Host);
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, edits) in [("eth0", "eth0", 0), ("eht0", "eth0", 2), ("", "lo", 2), ("eth", "eth0", 1)]
        {
            assert_eq!(distance(from, to), edits, "{from} {to}");
        }
    }

    #[test]
    fn an_unknown_interface_is_answered_with_the_known_ones() {
        let wanted = Wanted { namespace: None, name: "lo0".into(), queues: None };
        let Err(Error::NoSuchInterface { nearest, others, .. }) = Device::find(&wanted) else {
            panic!("there is no lo0");
        };
        assert_eq!(nearest.as_deref(), Some("lo"));
        assert!(others.contains(&"lo".to_owned()));
    }

    #[test]
    fn tags_of_veth_are_where_its_other_end_leaves_them() {
        let of = |customer, service| Stripping { customer, service };
        let peer = |inserts| Some(Peer { label: "far/v1".into(), inserts, checksums: true, gro: false });
        let tags = |driver, own, peer: Option<Peer>| Tags::of(own, Some(driver), peer.as_ref(), None, false);
        assert_eq!(tags("veth", of(true, true), peer(of(false, false))), Tags::InFrame);
        assert_eq!(tags("veth", of(false, false), peer(of(true, true))), Tags::Unreported(of(true, true)));
        assert_eq!(tags("veth", of(false, false), peer(of(false, true))), Tags::Unreported(of(false, true)));
        assert_eq!(tags("veth", of(false, false), None), Tags::Unreported(of(true, true)), "nobody can tell");
        assert_eq!(tags("igb", of(false, false), None), Tags::InFrame);
        assert_eq!(tags("igb", of(true, false), None), Tags::Unreported(of(true, false)));
    }
}
