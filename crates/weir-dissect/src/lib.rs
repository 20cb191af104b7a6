//! Packets as lines of text in tcpdump's format, and their fields as [`Facts`].
//!
//! No I/O, no names except those that the caller knows ([`Resolve`]), no allocation except the caller's buffer and the
//! table of TCP connections. Any input results in a line; if the packet is truncated, the line ends in `[|protocol]`.
//!
//! ```
//! let mut dissector = weir_dissect::Dissector::new(weir_dissect::Options::default());
//! let mut line = Vec::new();
//! dissector.packet(1, &[0; 10], 10, &mut line);
//! assert_eq!(line, b" [|ether]");
//! ```
//!
//! Each protocol adds methods to `Printer`; numbers lead from one to the next in `registry`.
//!
//! | folder | contents |
//! |---|---|
//! | `registry` | which number leads to which parser: link types, EtherTypes, IP protocols, ports and others |
//! | `link` | Ethernet with tags, Linux cooked, loopback, raw IP; 802.2; PPP, HDLC, frame relay; 802.11; what a capture has in front of them |
//! | `switching` | what switches say to each other, and stations to switches: STP, LLDP, CDP, UDLD, LACP, pauses, tests of a link |
//! | `network` | IPv4, IPv6, ARP, ICMP, ICMPv6, IGMP; VRRP and others that share an address |
//! | `transport` | TCP with its options, UDP, SCTP, PGM |
//! | `tunnel` | packets in packets: GRE, VXLAN, Geneve, MPLS, PPPoE, NSH, L2TP, PPTP |
//! | `routing` | what routers say to each other: BGP, OSPF, IS-IS, PIM and others (feature `routing`) |
//! | `security` | keys and logins: IKE, EAP, MACsec, Kerberos |
//! | `application` | what programs say to each other: DNS, DHCP, NTP, NFS, SNMP, RADIUS, OpenFlow; `textual`: HTTP, SIP and others |
//! | `base` | what all of these use: fields, text, names, checksums, TCP connections, [`Facts`], hex dumps |

#![forbid(unsafe_code)]

mod application;
mod base;
mod link;
mod network;
mod registry;
#[cfg(feature = "routing")]
mod routing;
mod security;
mod switching;
mod transport;
mod tunnel;

pub use base::facts::Facts;
pub use base::hex::Dump;
pub use registry::payloads::Payload;

use std::collections::BTreeMap;
use std::net::IpAddr;

use application::nfs::Calls;
use base::bytes::{Bytes, Cut};
use base::streams::Streams;
use security::ike::Exchanges;

/// Nesting depth of headers. Deeper tunnels are only named.
const DEEPEST: u8 = 16;

/// Interface names by index.
pub type Names = BTreeMap<u32, String>;

/// Names to print instead of numbers. They are printed as they are.
pub trait Resolve {
    /// Returns the name of a host.
    fn host(&mut self, address: IpAddr) -> Option<&str>;
    /// Returns the name of a port over `protocol`, which is `tcp`, `udp` or another word in lower case.
    fn service(&mut self, port: u16, protocol: &str) -> Option<&str>;
}

/// Reads a payload, and returns the name of its protocol if that is recognised.
pub type ReadSegment<'a> = dyn FnMut(&weir_parse::Segment<'_>) -> Option<&'static str> + 'a;

/// The format of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Prints the link-layer header as well (tcpdump's `-e`).
    pub link: bool,
    /// 1: prints time to live, identification and payloads, and verifies checksums (`-v`); 2: also the checksums of UDP
    /// over IPv4 (`-vv`); 3: everything (`-vvv`).
    pub verbose: u8,
    /// Prints less of each protocol (`-q`).
    pub quick: bool,
    /// Prints absolute TCP sequence numbers instead of relative ones (`-S`).
    pub absolute: bool,
    /// Verifies no checksums of IPv4, TCP and UDP, for instance because the card computes them (`-K`).
    pub unverified: bool,
    /// Prints numbers of autonomous systems beyond 65535 as `high.low` (`-b`, RFC 5396's asdot).
    pub asdot: bool,
    /// What segments carry, whatever their ports (`-T`).
    pub payload: Option<Payload>,
    /// Prints no hex dump of unknown protocols, for instance because the caller dumps every packet.
    pub no_dump: bool,
}

/// Formats packets as lines. It remembers at most some hundred thousand TCP connections.
#[derive(Debug)]
pub struct Dissector {
    options: Options,
    streams: Streams,
    exchanges: Exchanges,
    calls: Calls,
}

impl Dissector {
    /// Creates a dissector that knows no connections yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            streams: Streams::default(),
            exchanges: Exchanges::default(),
            calls: Calls::default(),
        }
    }

    /// Appends the line of a packet to `line`, without timestamp and line feed. There is more than one line with
    /// [`Options::verbose`], as in tcpdump, and for unknown protocols, unless [`Options::no_dump`] is set.
    ///
    /// `link_type`: `LINKTYPE_*` (tcpdump.org/linktypes.html); `original_len`: length on the wire.
    pub fn packet(&mut self, link_type: u16, data: &[u8], original_len: u32, line: &mut Vec<u8>) -> Facts {
        self.packet_among(&Names::new(), link_type, data, original_len, line)
    }

    /// Does what [`packet`](Self::packet) does, with names for the interface indices in packets
    /// (`LINKTYPE_LINUX_SLL2`).
    pub fn packet_among(
        &mut self,
        names: &Names,
        link_type: u16,
        data: &[u8],
        original_len: u32,
        line: &mut Vec<u8>,
    ) -> Facts {
        self.packet_named(None, names, link_type, data, original_len, line)
    }

    /// Does what [`packet_among`](Self::packet_among) does, with names for addresses, ports and IP protocols where tcpdump
    /// prints names without its `-n`; `None`: numbers.
    pub fn packet_named(
        &mut self,
        resolve: Option<&mut dyn Resolve>,
        names: &Names,
        link_type: u16,
        data: &[u8],
        original_len: u32,
        line: &mut Vec<u8>,
    ) -> Facts {
        self.read(resolve, names, link_type, Bytes::new(data, original_len as usize), line, None)
    }

    /// Does what [`packet_among`](Self::packet_among) does, and hands out the payloads of TCP and UDP that it finds, the
    /// outermost first. `read` returns the protocol that it recognises; [`Facts::protocol`] can be one that no line names.
    pub fn packet_with_segments(
        &mut self,
        names: &Names,
        link_type: u16,
        data: &[u8],
        original_len: u32,
        line: &mut Vec<u8>,
        read: &mut ReadSegment<'_>,
    ) -> Facts {
        self.read(None, names, link_type, Bytes::new(data, original_len as usize), line, Some(read))
    }

    fn read(
        &mut self,
        resolve: Option<&mut dyn Resolve>,
        names: &Names,
        link_type: u16,
        bytes: Bytes<'_>,
        line: &mut Vec<u8>,
        segments: Option<&mut ReadSegment<'_>>,
    ) -> Facts {
        let mut printer = Printer {
            line,
            options: self.options,
            names,
            resolve: resolve.map(|resolve| resolve as &mut dyn Resolve),
            streams: &mut self.streams,
            exchanges: &mut self.exchanges,
            calls: &mut self.calls,
            facts: Facts::default(),
            segments: segments.map(|read| read as &mut ReadSegment<'_>),
            protocol: "link",
            depth: 0,
        };
        if let Err(Cut) = printer.link(link_type, bytes) {
            printer.truncated();
        }
        printer.facts
    }
}

/// The line so far, and what is known about the packet. Each protocol adds a method.
struct Printer<'a> {
    line: &'a mut Vec<u8>,
    options: Options,
    names: &'a Names,
    resolve: Option<&'a mut dyn Resolve>,
    streams: &'a mut Streams,
    exchanges: &'a mut Exchanges,
    calls: &'a mut Calls,
    facts: Facts,
    /// Who reads payloads.
    segments: Option<&'a mut ReadSegment<'a>>,
    /// The current protocol, named at the end of a truncated line.
    protocol: &'static str,
    depth: u8,
}

impl Printer<'_> {
    /// Says that the packet ends before the current protocol does.
    fn truncated(&mut self) {
        self.text(" [|");
        self.text(self.protocol);
        self.text("]");
    }

    /// Says that `rest`, which is not read on, cannot be right.
    fn invalid(&mut self, rest: Bytes<'_>) -> Result<(), Cut> {
        self.text(" (invalid)");
        rest.get(0, rest.len).map(drop)
    }

    /// Reads the payload of a tunnel or extension, unless headers are nested too deep.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Cut>) -> Result<(), Cut> {
        if self.depth == DEEPEST {
            self.text("[nested too deep]");
            return Ok(());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}
