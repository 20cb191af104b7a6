//! The words of the language: names only if escaped with `\`.

use crate::Dialect;
use crate::ast::Protocol;

/// Protocols with all their names, sorted.
pub(crate) const PROTOCOLS: &[(&str, Protocol)] = &[
    ("aarp", Protocol::Aarp),
    ("ah", Protocol::Ah),
    ("arp", Protocol::Arp),
    ("atalk", Protocol::AppleTalk),
    ("carp", Protocol::Carp),
    ("clnp", Protocol::Clnp),
    ("csnp", Protocol::IsisCsnp),
    ("decnet", Protocol::DecNet),
    ("es-is", Protocol::Esis),
    ("esis", Protocol::Esis),
    ("esp", Protocol::Esp),
    ("ether", Protocol::Link),
    ("fddi", Protocol::Link),
    ("icmp", Protocol::Icmp),
    ("icmp6", Protocol::Icmp6),
    ("igmp", Protocol::Igmp),
    ("igrp", Protocol::Igrp),
    ("iih", Protocol::IsisIih),
    ("ip", Protocol::Ip),
    ("ip6", Protocol::Ip6),
    ("ipx", Protocol::Ipx),
    ("is-is", Protocol::Isis),
    ("isis", Protocol::Isis),
    ("iso", Protocol::Iso),
    ("l1", Protocol::IsisL1),
    ("l2", Protocol::IsisL2),
    ("lat", Protocol::Lat),
    ("link", Protocol::Link),
    ("lsp", Protocol::IsisLsp),
    ("mopdl", Protocol::Mopdl),
    ("moprc", Protocol::Moprc),
    ("netbeui", Protocol::NetBeui),
    ("pim", Protocol::Pim),
    ("ppp", Protocol::Link),
    ("psnp", Protocol::IsisPsnp),
    ("radio", Protocol::Radio),
    ("rarp", Protocol::Rarp),
    ("sca", Protocol::Sca),
    ("sctp", Protocol::Sctp),
    ("slip", Protocol::Link),
    ("snp", Protocol::IsisSnp),
    ("stp", Protocol::Stp),
    ("tcp", Protocol::Tcp),
    ("tr", Protocol::Link),
    ("udp", Protocol::Udp),
    ("vrrp", Protocol::Vrrp),
    ("wlan", Protocol::Link),
];

/// All other keywords, sorted.
const WORDS: &[&str] = &[
    "action",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "address1",
    "address2",
    "address3",
    "address4",
    "and",
    "bcc",
    "broadcast",
    "byte",
    "connectmsg",
    "dir",
    "direction",
    "dpc",
    "dst",
    "fisu",
    "gateway",
    "geneve",
    "greater",
    "hdpc",
    "hfisu",
    "hlssu",
    "hmsu",
    "hopc",
    "host",
    "hsio",
    "hsls",
    "ifindex",
    "ifname",
    "ilmic",
    "inbound",
    "lane",
    "len",
    "length",
    "less",
    "llc",
    "lssu",
    "lsu",
    "mask",
    "metac",
    "metaconnect",
    "mpls",
    "msu",
    "multicast",
    "net",
    "not",
    "oam",
    "oamf4",
    "oamf4ec",
    "oamf4sc",
    "on",
    "opc",
    "or",
    "outbound",
    "port",
    "portrange",
    "pppoed",
    "pppoes",
    "proto",
    "protochain",
    "ra",
    "reason",
    "rnr",
    "rset",
    "rulenum",
    "ruleset",
    "sc",
    "sio",
    "sls",
    "src",
    "srnr",
    "subrulenum",
    "subtype",
    "ta",
    "type",
    "vci",
    "vlan",
    "vpi",
    "vxlan",
];

/// Keywords that the dialect `weir` adds, sorted.
const ADDED: &[&str] = &["in", "inner", "let", "tunnel"];

/// Words for numbers (header offsets and field values), sorted.
const NUMBERS: &[(&str, u32)] = &[
    ("icmp-echo", 8),
    ("icmp-echoreply", 0),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreply", 18),
    ("icmp-maskreq", 17),
    ("icmp-paramprob", 12),
    ("icmp-redirect", 5),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-sourcequench", 4),
    ("icmp-timxceed", 11),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-unreach", 3),
    ("icmp6-certpathadvert", 149),
    ("icmp6-certpathsolicit", 148),
    ("icmp6-destinationunreach", 1),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-homeagentdiscoveryreply", 145),
    ("icmp6-homeagentdiscoveryrequest", 144),
    ("icmp6-ineighbordiscoveryadvert", 142),
    ("icmp6-ineighbordiscoverysolicit", 141),
    ("icmp6-mobileprefixadvert", 147),
    ("icmp6-mobileprefixsolicit", 146),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerreportv2", 143),
    ("icmp6-multicastrouteradvert", 151),
    ("icmp6-multicastroutersolicit", 152),
    ("icmp6-multicastrouterterm", 153),
    ("icmp6-neighboradvert", 136),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-nodeinformationquery", 139),
    ("icmp6-nodeinformationresponse", 140),
    ("icmp6-packettoobig", 2),
    ("icmp6-parameterproblem", 4),
    ("icmp6-redirect", 137),
    ("icmp6-routeradvert", 134),
    ("icmp6-routerrenum", 138),
    ("icmp6-routersolicit", 133),
    ("icmp6-timeexceeded", 3),
    ("icmp6code", 1),
    ("icmp6type", 0),
    ("icmpcode", 1),
    ("icmptype", 0),
    ("tcp-ack", 0x10),
    ("tcp-cwr", 0x80),
    ("tcp-ece", 0x40),
    ("tcp-fin", 0x01),
    ("tcp-push", 0x08),
    ("tcp-rst", 0x04),
    ("tcp-syn", 0x02),
    ("tcp-urg", 0x20),
    ("tcpflags", 13),
];

/// Named values.
pub(crate) type Names = &'static [(&'static str, u32)];

/// Supervisory functions of LLC (ISO 8802-2, 5.4.2.3), as encoded in the control field.
pub(crate) const SUPERVISORY: Names = &[("rr", 0x01), ("rnr", 0x05), ("rej", 0x09)];

/// Unnumbered functions of LLC, as encoded in the control field without the poll bit.
pub(crate) const UNNUMBERED: Names = &[
    ("ui", 0x03),
    ("ua", 0x63),
    ("disc", 0x43),
    ("dm", 0x0f),
    ("sabme", 0x6f),
    ("test", 0xe3),
    ("xid", 0xaf),
    ("frmr", 0x87),
];

/// Returns the protocol that a word names.
pub(crate) fn protocol(word: &str) -> Option<Protocol> {
    let index = PROTOCOLS.binary_search_by_key(&word, |entry| entry.0).ok()?;
    Some(PROTOCOLS[index].1)
}

/// Returns the number that a word names.
pub(crate) fn number(word: &str) -> Option<u32> {
    let index = NUMBERS.binary_search_by_key(&word, |entry| entry.0).ok()?;
    Some(NUMBERS[index].1)
}

/// Returns the word from the tables, if it is a keyword and not a number.
pub(crate) fn reserved(word: &str, dialect: Dialect) -> Option<&'static str> {
    let in_table = |table: &[&'static str]| table.binary_search(&word).ok().map(|index| table[index]);
    let protocol =
        || PROTOCOLS.binary_search_by_key(&word, |entry| entry.0).ok().map(|index| PROTOCOLS[index].0);
    let added = || if dialect == Dialect::Weir { in_table(ADDED) } else { None };
    in_table(WORDS).or_else(protocol).or_else(added)
}

/// Returns the name of a value.
pub(crate) fn name_of(names: Names, value: u32) -> &'static str {
    names.iter().find(|entry| entry.1 == value).map_or("?", |entry| entry.0)
}

/// Returns every word of the dialect, including numbers, as candidates for suggestions.
pub(crate) fn all(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let added = if dialect == Dialect::Weir { ADDED } else { &[] };
    let words = WORDS.iter().chain(added).copied();
    words.chain(PROTOCOLS.iter().map(|entry| entry.0)).chain(NUMBERS.iter().map(|entry| entry.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(WORDS.is_sorted() && ADDED.is_sorted());
        assert!(PROTOCOLS.is_sorted_by_key(|entry| entry.0));
        assert!(NUMBERS.is_sorted_by_key(|entry| entry.0));
    }
}
