//! The expression as it was meant: names resolved, qualifiers inherited, nothing said yet about bytes.
//!
//! Nodes are in one list and refer to each other by number, operands first, so that nothing here is recursive, however deep
//! an expression is nested.

mod explain;
mod notation;
mod tree;

use std::ops::Range;

pub use notation::Notation;

use crate::graph::Operation;
use crate::set::Set;
use crate::set::SetId;

/// A node of [`Ast::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

/// A node of [`Ast::arithmetic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArithId(pub u32);

/// A whole filter.
#[derive(Clone, Debug)]
pub struct Ast {
    /// Operands first.
    pub nodes: Vec<Expr>,
    /// Operands first.
    pub arithmetic: Vec<Arith>,
    /// The terms, in the order of the text.
    pub terms: Vec<Term>,
    /// The sets that terms look into.
    pub sets: Vec<Set>,
    /// The whole; `None`: everything.
    pub root: Option<ExprId>,
}

/// How terms are connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// All of them, asked in this order; two at least.
    And(Vec<ExprId>),
    /// One of them, asked in this order; two at least.
    Or(Vec<ExprId>),
    /// Not this.
    Not(ExprId),
    /// The packet inside of a tunnel (dialect `weir`).
    Inner(ExprId),
    /// One question: its index in [`Ast::terms`].
    Term(u32),
}

/// One question of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Where it stands in the text, in bytes; an inherited qualifier is not part of it.
    pub span: Range<usize>,
    /// What it asks.
    pub primitive: Primitive,
}

/// Protocols that qualify or are asked for, in the words of pcap-filter(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the protocols")]
pub enum Protocol {
    /// `ether`, `fddi`, `tr`, `wlan`, `link`, `slip`: whatever the link layer is.
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

/// Which of the addresses or ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Nothing said: either.
    Default,
    /// `src`.
    Source,
    /// `dst`.
    Destination,
    /// `src or dst`.
    Or,
    /// `src and dst`.
    And,
    /// `addr1` to `addr4` of 802.11, by number.
    Address(u8),
    /// `ra` of 802.11.
    Receiver,
    /// `ta` of 802.11.
    Transmitter,
}

/// An IP network; of a host all bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// Address and mask, which need not be a prefix (`net 10.0.0.1 mask 255.0.255.0`). Bits outside of the mask are zero.
    V4(u32, u32),
    /// Address and mask, most significant word first. Bits outside of the mask are zero.
    V6([u32; 4], [u32; 4]),
}

/// A question about a packet.
///
/// `protocol` is the qualifier in front, `None` if there is none: `tcp` in `tcp port 80`, `ether` in `ether host`. Which
/// qualifiers may stand before which primitive the parser has checked, as far as it does not depend on the link type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `host`, `net`, or an address alone. A name may have several; any of them will do.
    Host {
        /// `ip`, `arp`, `ip6`, ...
        protocol: Option<Protocol>,
        /// Which address.
        direction: Direction,
        /// `net`: in ARP, DECnet and others the same as `host`.
        net: bool,
        /// What to compare with.
        networks: Vec<Network>,
    },
    /// `ether host` and its kin: MAC addresses.
    Mac {
        /// Which address.
        direction: Direction,
        /// What to compare with.
        addresses: Vec<[u8; 6]>,
    },
    /// `$ab`: an address of ARCNET.
    ArcNet {
        /// Which address.
        direction: Direction,
        /// What to compare with.
        address: u8,
    },
    /// `decnet host 1.2`.
    DecNetHost {
        /// Which address.
        direction: Direction,
        /// Area and node, as in the header.
        address: u16,
    },
    /// `host in {…}`, `net in @file`: addresses of either family. A set that has no member of a family matches none of it.
    HostIn {
        /// `ip`, `arp`, `ip6`, ...
        protocol: Option<Protocol>,
        /// Which address.
        direction: Direction,
        /// The IPv4 members, [`crate::set::Contents::Ipv4`].
        ipv4: SetId,
        /// The IPv6 members, [`crate::set::Contents::Ipv6`].
        ipv6: SetId,
    },
    /// `ether host in {…}`.
    MacIn {
        /// Which address.
        direction: Direction,
        /// [`crate::set::Contents::Macs`].
        set: SetId,
    },
    /// `port in {…}`.
    PortIn {
        /// `tcp`, `udp`, `sctp`; else any of the three.
        protocol: Option<Protocol>,
        /// Which port.
        direction: Direction,
        /// [`crate::set::Contents::Numbers`].
        set: SetId,
    },
    /// `vlan in {…}`.
    VlanIn {
        /// [`crate::set::Contents::Numbers`].
        set: SetId,
    },
    /// `port` and `portrange`.
    Port {
        /// `tcp`, `udp`, `sctp`; else any of the three. A service's name may have set it.
        protocol: Option<Protocol>,
        /// Which port.
        direction: Direction,
        /// The lowest.
        first: u16,
        /// The highest.
        last: u16,
        /// Written as `portrange`, which libpcap compiles otherwise than `port`.
        range: bool,
    },
    /// `ip proto 6`, `ether proto 0x800`, `iso proto 0x83`; without a qualifier `proto 6`.
    Proto {
        /// In which header.
        protocol: Option<Protocol>,
        /// Its number there.
        number: u32,
    },
    /// `ip protochain 6`.
    ProtoChain {
        /// `ip`, `ip6`, or both.
        protocol: Option<Protocol>,
        /// What is looked for in the chain.
        number: u32,
    },
    /// A protocol alone: `tcp`, `arp`, `l1`.
    Protocol(Protocol),
    /// `gateway NAME`: to or from its MAC address, and neither to nor from its IP addresses.
    Gateway {
        /// The qualifier in front.
        protocol: Option<Protocol>,
        /// MAC addresses of the name.
        macs: Vec<[u8; 6]>,
        /// IP addresses of the name.
        addresses: Vec<Network>,
    },
    /// `broadcast`, `ether broadcast`, `ip broadcast`.
    Broadcast(Option<Protocol>),
    /// `multicast`, `ip multicast`, `ip6 multicast`.
    Multicast(Option<Protocol>),
    /// `less N`: the packet has N bytes or fewer.
    Less(u32),
    /// `greater N`: the packet has N bytes or more.
    Greater(u32),
    /// `byte INDEX OP VALUE` (undocumented in pcap-filter(7)).
    Byte {
        /// Offset in the packet.
        index: u32,
        /// `=`, `<`, `>`, `&`, `|`.
        operator: ByteOperator,
        /// What to compare with.
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
    /// `tunnel`: the packet carries another (dialect `weir`).
    Tunnel,
    /// `llc`, `llc TYPE`.
    Llc(LlcKind),
    /// `type …`, `type … subtype …`, `subtype …` of 802.11: `frame_control & mask == value` on the first byte.
    WlanType {
        /// The bits that were asked for.
        value: u32,
        /// Which bits count.
        mask: u32,
    },
    /// `dir nods|tods|fromds|dstods|N` of 802.11: the lowest two bits of the second byte.
    WlanDirection(u32),
    /// ATM and signalling: `vpi`, `vci` and what stands for one of its values.
    Atm(AtmKind),
    /// SS7: `fisu`, `lssu`, `msu`, `sio`, `opc`, `dpc`, `sls` and their `h` forms.
    Mtp(MtpKind),
    /// Two arithmetic expressions, compared.
    Relation {
        /// On the left.
        left: ArithId,
        /// The sign.
        comparison: Comparison,
        /// On the right.
        right: ArithId,
    },
}

/// What `byte` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the signs")]
pub enum ByteOperator {
    Equal,
    Less,
    Greater,
    And,
    Or,
}

/// The sign between two arithmetic expressions.
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

/// What `llc` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LlcKind {
    /// `llc`: an LLC header at all.
    Any,
    /// `llc i`.
    Information,
    /// `llc s`.
    Supervisory,
    /// `llc u`.
    Unnumbered,
    /// `llc rr`, `rnr`, `rej`: the supervisory function.
    SupervisoryKind(u8),
    /// `llc ui`, `sabme`, `disc`, ...: the unnumbered function.
    UnnumberedKind(u8),
}

/// Questions of ATM.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of pcap-filter(7)")]
pub enum AtmKind {
    /// `vpi N`, or a comparison: any of these.
    Vpi(Vec<(Comparison, u32)>),
    /// `vci N`, or a comparison: any of these.
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

/// Questions of SS7.
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
    /// `sio`, `opc`, `dpc`, `sls`, and their `h` forms: any of these.
    Field {
        field: MtpField,
        high_speed: bool,
        values: Vec<(Comparison, u32)>,
    },
}

/// A field of SS7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of pcap-filter(7)")]
pub enum MtpField {
    Sio,
    Opc,
    Dpc,
    Sls,
}

/// An arithmetic expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arith {
    /// A number.
    Number(u32),
    /// `len`.
    Length,
    /// `proto[index:size]`.
    Accessor {
        /// Whose header `index` counts from.
        protocol: Protocol,
        /// Bytes from there.
        index: ArithId,
        /// 1, 2 or 4.
        size: u8,
    },
    /// `-x`.
    Negate(ArithId),
    /// `left operation right`.
    Binary {
        /// Which.
        operation: Operation,
        /// On the left.
        left: ArithId,
        /// On the right.
        right: ArithId,
    },
}
