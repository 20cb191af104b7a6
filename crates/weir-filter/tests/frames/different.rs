//! Where the dialects differ on purpose (docs/filter.md).

/// Words by which the dialects differ, and what libpcap forgets: to ask for the header of an operand on the right.
const DIFFERENT: [&str; 12] = [
    "vlan",
    "mpls",
    "pppoe",
    "geneve",
    "vxlan",
    "multicast",
    "vrrp",
    "carp",
    "tcp[",
    "udp[",
    "sctp[",
    " ip[",
];

pub(crate) fn is_different(text: &str) -> bool {
    DIFFERENT.iter().any(|word| text.contains(word))
}
