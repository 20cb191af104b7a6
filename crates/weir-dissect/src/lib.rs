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
//! | module | contents |
//! |---|---|
//! | `link` | Ethernet with tags, Linux cooked v1 and v2, BSD loopback, raw IP; `llc` 802.2 |
//! | `ppp`, `ppp_control`, `ppp_options`, `hdlc`, `ppi` | PPP and its options, Cisco's HDLC, PPI |
//! | `frame_relay` and its signalling, `q933`; `nflog` | frame relay; packets from netfilter |
//! | `radiotap`, `wlan`, `wlan_management`, `wlan_codes` | 802.11, with what the radio knows in front of it |
//! | `ip4`, `ip6` | the network layer, and IP payloads: `ip` |
//! | `tcp` with `tcp_options` and `mptcp`, `udp`, `sctp`, `icmp`, `icmp6`, `igmp`, `arp`, `pgm`, `rpl`, `renumbering` | one protocol each |
//! | `payload`, `named` | payloads that the caller names, because no port does: `rtp`, `zmtp` and others |
//! | `ports` | which port identifies which of the modules for TCP and UDP payloads: `textual` (HTTP, SIP and others), `dns`, `dhcp`, `ike`, `kerberos`, `nfs`, `sflow`, ... |
//! | `bgp`, `bgp_update`, `ospf`, `ospf_states`, `ospf3`, `bfd`, `stp`, `pim`, `eapol`, `rip`, `isis`, `isis_fields`, `eigrp`, `ldp`, `redundancy`, `slow`, `cdp`, `neighbours`, `lldp`, `lldp_organizations`, `lldp_bridges`, `udld`, `babel`, `lisp`, `lsp_ping` | what switches and routers say to each other |
//! | `details`: `dns_facts`, `dns_service`, `tls`, `http` | what payloads say, for programs: [`Details`] |
//! | `openflow` with `openflow_codes`, `openflow10`, `openflow13` | what controllers and switches say to each other |
//! | `ptp`, `macsec`, `mpcp`, `ctp`, `aoe` | what clocks say to each other; MACsec; pauses; frames that stations send back; ATA over Ethernet |
//! | `tunnel`, `nsh`, `l2tp`, `pptp` | GRE, VXLAN, Geneve, MPLS, PPPoE; NSH; L2TP; PPTP's control connection |

#![forbid(unsafe_code)]

mod aoe;
mod arp;
mod babel;
mod bfd;
mod bgp;
mod bgp_update;
mod bytes;
mod cdp;
mod checksum;
mod ctp;
mod details;
mod dhcp;
mod dhcp6;
mod dhcp6_options;
mod dhcp_options;
mod dns;
mod dns_facts;
mod dns_service;
mod eapol;
mod edns;
mod eigrp;
mod facts;
mod frame_relay;
mod hdlc;
mod hex;
mod http;
mod icmp;
mod icmp6;
mod igmp;
mod ike;
mod ike2;
mod ip;
mod ip4;
mod ip4_options;
mod ip6;
mod isakmp;
mod isis;
mod isis_fields;
mod kerberos;
mod l2tp;
mod ldp;
mod link;
mod lisp;
mod llc;
mod lldp;
mod lldp_bridges;
mod lldp_organizations;
mod lsp_ping;
mod macsec;
mod mpcp;
mod mptcp;
mod named;
mod names;
mod neighbour_options;
mod neighbours;
mod nflog;
mod nfs;
mod node_information;
mod nsh;
mod ntp;
mod openflow;
mod openflow10;
mod openflow13;
mod openflow_codes;
mod ospf;
mod ospf3;
mod ospf_states;
mod payload;
mod pgm;
mod pim;
mod ports;
mod ppi;
mod ppp;
mod ppp_control;
mod ppp_options;
mod pptp;
mod protocols;
mod ptp;
mod q933;
mod radiotap;
mod radius;
mod radius_attributes;
mod radius_values;
mod redundancy;
mod renumbering;
mod resp;
mod rip;
mod rpl;
mod rtp;
mod rx;
mod sctp;
mod segment;
mod sflow;
mod slow;
mod snmp;
mod snmp3;
mod stp;
mod streams;
mod syslog;
mod tcp;
mod tcp_options;
mod telnet;
mod text;
mod textual;
mod tftp;
mod tls;
mod tunnel;
mod udld;
mod udp;
mod wlan;
mod wlan_codes;
mod wlan_management;
mod zmtp;

pub use details::{Details, Dns, DnsRecord, Http, Tls};
pub use facts::Facts;
pub use hex::Dump;
pub use payload::Payload;

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::{Bytes, Cut};
use ike::Exchanges;
use nfs::Calls;
use streams::Streams;

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

    /// Does what [`packet_among`](Self::packet_among) does, and also reads payloads. The line stays the same;
    /// [`Facts::protocol`] can be one that only details recognise.
    pub fn packet_in_detail(
        &mut self,
        names: &Names,
        link_type: u16,
        data: &[u8],
        original_len: u32,
        line: &mut Vec<u8>,
    ) -> (Facts, Details) {
        let mut details = Details::default();
        let bytes = Bytes::new(data, original_len as usize);
        (self.read(None, names, link_type, bytes, line, Some(&mut details)), details)
    }

    fn read(
        &mut self,
        resolve: Option<&mut dyn Resolve>,
        names: &Names,
        link_type: u16,
        bytes: Bytes<'_>,
        line: &mut Vec<u8>,
        details: Option<&mut Details>,
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
            details,
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
    /// Where what payloads say is left, if it is asked for.
    details: Option<&'a mut Details>,
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
