//! Syntax tree: names are resolved and qualifiers inherited, but nothing is said yet about bytes.
//!
//! Nodes are in one list, operands first, and refer to each other by index. Nothing here is recursive, however deeply
//! an expression is nested.

mod explain;
mod joined;
mod notation;
mod tree;
pub(crate) mod words;

use std::ops::Range;

pub use joined::Joined;
pub use notation::Notation;

use crate::graph::Operation;
use crate::set::Set;
use crate::set::SetId;

/// An index into [`Ast::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

/// An index into [`Ast::arithmetic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArithId(pub u32);

/// A parsed expression.
#[derive(Clone, Debug, Default)]
pub struct Ast {
    /// Expression nodes, operands first.
    pub nodes: Vec<Expr>,
    /// Arithmetic nodes, operands first.
    pub arithmetic: Vec<Arith>,
    /// Terms, in source order.
    pub terms: Vec<Term>,
    /// Sets that terms look up.
    pub sets: Vec<Set>,
    /// Root node; `None` for an empty expression, which matches everything.
    pub root: Option<ExprId>,
}

/// An expression node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// True if all operands are true; tested in this order, at least two.
    And(Vec<ExprId>),
    /// True if any operand is true; tested in this order, at least two.
    Or(Vec<ExprId>),
    /// Negation.
    Not(ExprId),
    /// Applies to the packet inside a tunnel (dialect `weir`).
    Inner(ExprId),
    /// A term: an index into [`Ast::terms`].
    Term(u32),
}

/// A term of the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Byte range in the source, without inherited qualifiers.
    pub span: Range<usize>,
    /// The condition it tests.
    pub primitive: Primitive,
}

/// Protocols that qualify a term or are one, in the words of pcap-filter(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the protocols")]
pub enum Protocol {
    /// `ether`, `fddi`, `tr`, `wlan`, `link`, `slip`: the link layer, whatever its type.
    Link,
    Ip,
    Ip6,
    Arp,
    Rarp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
    Igmp,
    Igrp,
    Pim,
    Vrrp,
    Carp,
    Ah,
    Esp,
    /// `atalk`.
    AppleTalk,
    Aarp,
    DecNet,
    Lat,
    /// `sca`.
    Sca,
    Moprc,
    Mopdl,
    Iso,
    Esis,
    Isis,
    Clnp,
    Stp,
    Ipx,
    /// `netbeui`.
    NetBeui,
    /// `l1`.
    IsisL1,
    /// `l2`.
    IsisL2,
    /// `iih`.
    IsisIih,
    /// `lsp`.
    IsisLsp,
    /// `snp`.
    IsisSnp,
    /// `csnp`.
    IsisCsnp,
    /// `psnp`.
    IsisPsnp,
    /// `radio`.
    Radio,
}

/// The address or port that a term applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Unspecified: either.
    Default,
    /// `src`.
    Source,
    /// `dst`.
    Destination,
    /// `src or dst`.
    Or,
    /// `src and dst`.
    And,
    /// `addr1` to `addr4` of 802.11.
    Address(u8),
    /// `ra` of 802.11.
    Receiver,
    /// `ta` of 802.11.
    Transmitter,
}

/// An IP network; a host is a network with a full mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// Address and mask. The mask need not be contiguous (`net 10.0.0.1 mask 255.0.255.0`). Address bits outside it are
    /// zero.
    V4(u32, u32),
    /// Address and mask, most significant word first. Address bits outside the mask are zero.
    V6([u32; 4], [u32; 4]),
}

/// The condition that a term tests.
///
/// `protocol` is the qualifier in front, if any: `tcp` in `tcp port 80`, `ether` in `ether host`. The parser has
/// checked which qualifiers each primitive accepts, except where that depends on the link type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `host`, `net`, or a bare address. A name may have several addresses; any may match.
    Host {
        /// `ip`, `arp`, `ip6`, ...
        protocol: Option<Protocol>,
        /// Which addresses to compare.
        direction: Direction,
        /// Whether it is `net`. For ARP, DECnet and others, `net` equals `host`.
        net: bool,
        /// Networks to match.
        networks: Vec<Network>,
    },
    /// `ether host` and similar: MAC addresses.
    Mac {
        /// Which addresses to compare.
        direction: Direction,
        /// Addresses to match.
        addresses: Vec<[u8; 6]>,
    },
    /// `$ab`: an ARCNET address.
    ArcNet {
        /// Which addresses to compare.
        direction: Direction,
        /// Address to match.
        address: u8,
    },
    /// `decnet host 1.2`.
    DecNetHost {
        /// Which addresses to compare.
        direction: Direction,
        /// Area and node, encoded as in the header.
        address: u16,
    },
    /// `host in {…}`, `net in @file`: addresses of either family. If the set has no members of a family, no packet of
    /// that family matches.
    HostIn {
        /// `ip`, `arp`, `ip6`, ...
        protocol: Option<Protocol>,
        /// Which addresses to compare.
        direction: Direction,
        /// The IPv4 members, [`crate::set::Contents::Ipv4`].
        ipv4: SetId,
        /// The IPv6 members, [`crate::set::Contents::Ipv6`].
        ipv6: SetId,
    },
    /// `ether host in {…}`.
    MacIn {
        /// Which addresses to compare.
        direction: Direction,
        /// The members, [`crate::set::Contents::Macs`].
        set: SetId,
    },
    /// `port in {…}`.
    PortIn {
        /// `tcp`, `udp` or `sctp`; `None` for any of the three.
        protocol: Option<Protocol>,
        /// Which ports to compare.
        direction: Direction,
        /// The members, [`crate::set::Contents::Numbers`].
        set: SetId,
    },
    /// `vlan in {…}`.
    VlanIn {
        /// The members, [`crate::set::Contents::Numbers`].
        set: SetId,
    },
    /// `port` and `portrange`.
    Port {
        /// `tcp`, `udp` or `sctp`; `None` for any of the three. A service name may imply it.
        protocol: Option<Protocol>,
        /// Which ports to compare.
        direction: Direction,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
        /// Whether it was written as `portrange`, which libpcap compiles differently from `port`.
        range: bool,
    },
    /// `ip proto 6`, `ether proto 0x800`, `iso proto 0x83`; without a qualifier `proto 6`.
    Proto {
        /// Protocol whose header holds the number.
        protocol: Option<Protocol>,
        /// Protocol number in that header.
        number: u32,
    },
    /// `ip protochain 6`.
    ProtoChain {
        /// `ip`, `ip6`, or both.
        protocol: Option<Protocol>,
        /// Protocol number to find in the chain of headers.
        number: u32,
    },
    /// A bare protocol: `tcp`, `arp`, `l1`.
    Protocol(Protocol),
    /// `gateway NAME`: the host's MAC address matches, but none of its IP addresses does.
    Gateway {
        /// The qualifier in front.
        protocol: Option<Protocol>,
        /// MAC addresses of the host.
        macs: Vec<[u8; 6]>,
        /// IP addresses of the host.
        addresses: Vec<Network>,
    },
    /// `broadcast`, `ether broadcast`, `ip broadcast`.
    Broadcast(Option<Protocol>),
    /// `multicast`, `ip multicast`, `ip6 multicast`.
    Multicast(Option<Protocol>),
    /// `less N`: packets of at most N bytes.
    Less(u32),
    /// `greater N`: packets of at least N bytes.
    Greater(u32),
    /// `byte INDEX OP VALUE` (undocumented in pcap-filter(7)).
    Byte {
        /// Offset in the packet.
        index: u32,
        /// `=`, `<`, `>`, `&`, `|`.
        operator: ByteOperator,
        /// Number to compare with.
        value: u32,
    },
    /// `inbound`.
    Inbound,
    /// `outbound`.
    Outbound,
    /// `ifindex N`.
    IfIndex(u32),
    /// `vlan [ID]`.
    Vlan(Option<u32>),
    /// `mpls [LABEL]`.
    Mpls(Option<u32>),
    /// `pppoed`.
    PppoeDiscovery,
    /// `pppoes [SESSION]`.
    PppoeSession(Option<u32>),
    /// `geneve [VNI]`.
    Geneve(Option<u32>),
    /// `vxlan [VNI]`.
    Vxlan(Option<u32>),
    /// `tunnel`: the packet carries another packet (dialect `weir`).
    Tunnel,
    /// `llc`, `llc TYPE`.
    Llc(LlcKind),
    /// `type …`, `type … subtype …`, `subtype …` of 802.11: `frame_control & mask == value` on the first byte.
    WlanType {
        /// Expected value of the bits in `mask`.
        value: u32,
        /// Bits to compare.
        mask: u32,
    },
    /// `dir nods|tods|fromds|dstods|N` of 802.11: the lowest two bits of the second byte.
    WlanDirection(u32),
    /// ATM and signalling: `vpi`, `vci`, and the keywords for particular values of them.
    Atm(AtmKind),
    /// SS7: `fisu`, `lssu`, `msu`, `sio`, `opc`, `dpc`, `sls` and their `h` forms.
    Mtp(MtpKind),
    /// A comparison of two arithmetic expressions.
    Relation {
        /// Left operand.
        left: ArithId,
        /// Comparison operator.
        comparison: Comparison,
        /// Right operand.
        right: ArithId,
    },
}

/// Operator of `byte`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the signs")]
pub enum ByteOperator {
    Equal,
    Less,
    Greater,
    And,
    Or,
}

/// Comparison operator between two arithmetic expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the signs")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// The kind of LLC frame that `llc` tests for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LlcKind {
    /// `llc`: any LLC header.
    Any,
    /// `llc i`.
    Information,
    /// `llc s`.
    Supervisory,
    /// `llc u`.
    Unnumbered,
    /// `llc rr`, `rnr`, `rej`: a supervisory function.
    SupervisoryKind(u8),
    /// `llc ui`, `sabme`, `disc`, ...: an unnumbered function.
    UnnumberedKind(u8),
}

/// ATM terms.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of pcap-filter(7)")]
pub enum AtmKind {
    /// `vpi N` or comparisons, any of which may hold.
    Vpi(Vec<(Comparison, u32)>),
    /// `vci N` or comparisons, any of which may hold.
    Vci(Vec<(Comparison, u32)>),
    Lane,
    Llc,
    Metac,
    Bcc,
    Oam,
    Oamf4,
    Oamf4sc,
    Oamf4ec,
    Sc,
    Ilmic,
    Connectmsg,
    Metaconnect,
}

/// SS7 terms.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of pcap-filter(7)")]
pub enum MtpKind {
    Fisu {
        high_speed: bool,
    },
    Lssu {
        high_speed: bool,
    },
    Msu {
        high_speed: bool,
    },
    /// `sio`, `opc`, `dpc`, `sls`, and their `h` forms; any of the comparisons may hold.
    Field {
        field: MtpField,
        high_speed: bool,
        values: Vec<(Comparison, u32)>,
    },
}

/// An SS7 field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of pcap-filter(7)")]
pub enum MtpField {
    Sio,
    Opc,
    Dpc,
    Sls,
}

/// A node of an arithmetic expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arith {
    /// A number.
    Number(u32),
    /// `len`.
    Length,
    /// `proto[index:size]`.
    Accessor {
        /// Protocol whose header `index` counts from.
        protocol: Protocol,
        /// Offset in bytes.
        index: ArithId,
        /// Width in bytes: 1, 2 or 4.
        size: u8,
    },
    /// `-x`.
    Negate(ArithId),
    /// `left operation right`.
    Binary {
        /// Operator.
        operation: Operation,
        /// Left operand.
        left: ArithId,
        /// Right operand.
        right: ArithId,
    },
}
