//! An end of a flow: `192.0.2.7:80`, `[2001:db8::1]:80`, and without a port where the protocol has none.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use weir_filter::Error;
use weir_packet::protocol::has_ports;

use crate::words::Words;

/// Parses the next word, and says where it is.
pub(super) fn next(
    words: &mut Words<'_>,
    protocol: u8,
    what: &str,
) -> Result<(SocketAddr, Range<usize>), Error> {
    let text = words.value(&format!("expected {what}: an address"))?;
    let place = words.span();
    let wrong = |message: String, help: &str| Err(Error::new(message, place.clone()).help(help));
    let ported = has_ports(protocol);
    let found = match text.parse::<SocketAddr>() {
        Ok(SocketAddr::V6(end)) if end.scope_id() != 0 => None,
        Ok(end) => Some((end.ip(), Some(end.port()))),
        Err(_) => address(text).map(|ip| (ip, None)),
    };
    match found {
        None => wrong(
            format!("`{text}` is not an address"),
            if ported { "write 192.0.2.7:80 or [2001:db8::1]:80" } else { "write 192.0.2.7 or 2001:db8::1" },
        ),
        Some((ip, None)) if ported => {
            let text = match ip {
                IpAddr::V4(ip) => format!("write {ip}:80; a rule for a whole address is one of the file"),
                IpAddr::V6(ip) => format!("write [{ip}]:80; a rule for a whole address is one of the file"),
            };
            wrong("expected a port behind the address".to_owned(), &text)
        }
        Some((ip, Some(1..))) if !ported => {
            wrong("unexpected port: the protocol has none".to_owned(), &format!("write {ip}"))
        }
        Some((ip, port)) => Ok((SocketAddr::new(ip, port.unwrap_or(0)), place)),
    }
}

/// Parses an address, of IPv6 with brackets or without.
fn address(text: &str) -> Option<IpAddr> {
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    match inside {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    }
}
