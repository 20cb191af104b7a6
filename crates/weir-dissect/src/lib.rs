//! Packets as lines of text, in tcpdump's words, and what programs want to know of them as [`Facts`].
//!
//! Bytes in, text out: no I/O, no names looked up, no allocation but the caller's buffer and the table of TCP
//! connections. Whatever the bytes are, there is a line; where the packet ends too early the line ends in `[|protocol]`.
//!
//! ```
//! let mut dissector = weir_dissect::Dissector::new(weir_dissect::Options::default());
//! let mut line = Vec::new();
//! dissector.packet(1, &[0; 10], 10, &mut line);
//! assert_eq!(line, b" [|ether]");
//! ```
//!
//! | module | what it reads |
//! |---|---|
//! | `link` | Ethernet with tags and 802.2, Linux cooked v1 and v2, BSD loopback, raw IP, PPP |
//! | `ip4`, `ip6` | the network layer, and what an IP packet carries: `ip` |
//! | `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, `igmp`, `arp` | one protocol each |
//! | `dns`, `application` | what TCP and UDP carry, where a line gains by it |
//! | `tunnel` | GRE, VXLAN, Geneve, MPLS, PPPoE |

#![forbid(unsafe_code)]

mod application;
mod arp;
mod bytes;
mod checksum;
mod dns;
mod facts;
mod hex;
mod icmp;
mod icmp6;
mod igmp;
mod ip;
mod ip4;
mod ip6;
mod link;
mod names;
mod sctp;
mod streams;
mod tcp;
mod text;
mod tunnel;
mod udp;

pub use facts::Facts;
pub use hex::Dump;

use std::collections::BTreeMap;

use bytes::{Bytes, Cut};
use streams::Streams;

/// Headers in headers that are looked into; tunnels beyond are only named.
const DEEPEST: u8 = 16;

/// Interfaces by index.
pub type Names = BTreeMap<u32, String>;

/// How a packet becomes a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The link-layer header, too (tcpdump's `-e`).
    pub link: bool,
    /// Time to live, identification, and whether checksums are right (`-v`).
    pub verbose: bool,
    /// Less of each protocol (`-q`).
    pub quick: bool,
    /// TCP sequence numbers as they are; else relative to the connection's first (`-S`).
    pub absolute: bool,
    /// No hexadecimal lines where a protocol is unknown, for instance because the caller dumps each packet.
    pub no_dump: bool,
}

/// Makes lines of packets. It remembers TCP connections, at most some hundred thousand of them.
#[derive(Debug)]
pub struct Dissector {
    options: Options,
    streams: Streams,
}

impl Dissector {
    /// One that knows no connection yet.
    pub fn new(options: Options) -> Self {
        Self { options, streams: Streams::default() }
    }

    /// Appends the line of a packet, without time and without line feed, to `line`. More than one line comes with
    /// [`Options::verbose`], as from tcpdump, and for unknown protocols, unless [`Options::no_dump`].
    ///
    /// `link_type`: `LINKTYPE_*` (tcpdump.org/linktypes.html); `original_len`: bytes on the wire.
    pub fn packet(&mut self, link_type: u16, data: &[u8], original_len: u32, line: &mut Vec<u8>) -> Facts {
        self.packet_among(&Names::new(), link_type, data, original_len, line)
    }

    /// The same of a packet that may be of any of these interfaces, which it names by index (`LINKTYPE_LINUX_SLL2`).
    pub fn packet_among(
        &mut self,
        names: &Names,
        link_type: u16,
        data: &[u8],
        original_len: u32,
        line: &mut Vec<u8>,
    ) -> Facts {
        let mut printer = Printer {
            line,
            options: self.options,
            names,
            streams: &mut self.streams,
            facts: Facts::default(),
            protocol: "link",
            depth: 0,
        };
        let bytes = Bytes::new(data, original_len as usize);
        if let Err(Cut) = printer.link(link_type, bytes) {
            printer.text(" [|");
            printer.text(printer.protocol);
            printer.text("]");
        }
        printer.facts
    }
}

/// The line that grows, and what is known so far. Each protocol adds a method.
struct Printer<'a> {
    line: &'a mut Vec<u8>,
    options: Options,
    names: &'a Names,
    streams: &'a mut Streams,
    facts: Facts,
    /// The protocol that is being read: what a line that ends early names.
    protocol: &'static str,
    depth: u8,
}

impl Printer<'_> {
    /// Reads what a tunnel or an extension carries, unless headers are nested too deep.
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
