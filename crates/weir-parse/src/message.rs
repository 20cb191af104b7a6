//! What a payload says.

use crate::{Dhcp, Dhcp6, Dns, Http, Sip, Tls};

/// A message of one of the protocols that are read.
///
/// Text is as in the packet, with U+FFFD in place of what is not UTF-8: it can contain control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// DNS or mDNS.
    Dns(Dns),
    /// A hello of TLS.
    Tls(Tls),
    /// The head of an HTTP/1 request or response.
    Http(Http),
    /// The head of a SIP request or response.
    Sip(Sip),
    /// DHCP or BOOTP.
    Dhcp(Dhcp),
    /// DHCPv6.
    Dhcp6(Dhcp6),
}

/// A message that was found in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Its protocol: `dns`, `mdns`, `tls`, ...
    pub protocol: &'static str,
    /// What it says.
    pub message: Message,
    /// Where it begins in the packet; the places of its values count from there. `None`: it began in an earlier segment,
    /// and ends in this packet.
    pub at: Option<usize>,
    /// It is read as a whole. Otherwise it goes on in the next segment, or is cut.
    pub whole: bool,
}
