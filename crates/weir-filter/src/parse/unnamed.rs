//! IP protocols that are no keywords, as people write them.

/// Names and numbers (RFC 5237, IANA "Protocol Numbers"), sorted.
const PROTOCOLS: [(&str, u8); 11] = [
    ("dccp", 33),
    ("eigrp", 88),
    ("etherip", 97),
    ("gre", 47),
    ("hip", 139),
    ("ipcomp", 108),
    ("ipencap", 4),
    ("ipip", 4),
    ("ospf", 89),
    ("rsvp", 46),
    ("udplite", 136),
];

/// Returns the number of a protocol.
pub(super) fn number(name: &str) -> Option<u8> {
    PROTOCOLS.iter().find(|entry| entry.0.eq_ignore_ascii_case(name)).map(|entry| entry.1)
}
