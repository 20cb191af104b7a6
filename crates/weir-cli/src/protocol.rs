//! Names of the usual protocols over IP.

/// Returns the name of a protocol, or its number.
pub(crate) fn shown(number: u8) -> String {
    name(number).map_or_else(|| number.to_string(), str::to_owned)
}

/// Returns the name of an IP protocol, as filters have it.
pub(crate) fn name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        58 => "icmp6",
        132 => "sctp",
        _ => return None,
    })
}
