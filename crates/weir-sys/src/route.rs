//! Where this host sends packets to (rtnetlink(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::CallError;
use crate::netlink::{DUMP, ROUTE, Request, ask, attribute, word};

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// `struct rtmsg`: family, lengths of both prefixes in bits, type of service, table, protocol, scope, type, flags.
const HEADER: usize = 12;
const RTN_UNICAST: u8 = 1;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_MULTIPATH: u16 = 9;

/// A network, or a host, that is reached through interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where to; unspecified, with a prefix of 0 bits: everywhere else.
    pub to: IpAddr,
    /// Length of the network prefix in bits.
    pub prefix: u8,
    /// Indices of the interfaces: several if packets are spread over them.
    pub through: Vec<u32>,
}

/// Returns the routes to other hosts in all tables of this thread's network namespace.
///
/// # Errors
///
/// The error of the netlink socket.
pub fn routes() -> Result<Vec<Route>, CallError> {
    let mut routes = Vec::new();
    let request = Request::new(RTM_GETROUTE, DUMP, &[0; HEADER]);
    ask(ROUTE, &request, RTM_NEWROUTE, |message| routes.extend(parse(message)))
        .map_err(|error| CallError::new("list routes (rtnetlink)", error))?;
    Ok(routes)
}

fn parse(message: &[u8]) -> Option<Route> {
    let (header, rest) = message.split_at_checked(HEADER)?;
    if header[7] != RTN_UNICAST {
        return None;
    }
    let to = match (i32::from(header[0]), attribute(rest, RTA_DST)) {
        (libc::AF_INET, None) => Ipv4Addr::UNSPECIFIED.into(),
        (libc::AF_INET6, None) => Ipv6Addr::UNSPECIFIED.into(),
        (libc::AF_INET, Some(to)) => <[u8; 4]>::try_from(to).ok()?.into(),
        (libc::AF_INET6, Some(to)) => <[u8; 16]>::try_from(to).ok()?.into(),
        // Routes of multicast have families of their own.
        _ => return None,
    };
    let one = attribute(rest, RTA_OIF).map(word);
    let several = attribute(rest, RTA_MULTIPATH).into_iter().flat_map(hops);
    Some(Route { to, prefix: header[1], through: one.into_iter().chain(several).collect() })
}

/// Iterates over the interfaces in a run of `struct rtnexthop`: length, flags, weight, interface, attributes.
fn hops(mut rest: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let hop = rest.get(..length).filter(|hop| hop.len() >= 8)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(word(&hop[4..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a message of `family` with a prefix, a type and attributes.
    fn message(family: i32, prefix: u8, kind: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let header = [u8::try_from(family).expect("small"), prefix, 0, 0, 254, 4, 0, kind, 0, 0, 0, 0];
        let mut message = header.to_vec();
        for (kind, value) in attributes {
            message.extend(u16::try_from(4 + value.len()).expect("short").to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(*value);
        }
        message
    }

    #[test]
    fn messages_are_read_with_care() {
        let seven = 7_u32.to_ne_bytes();
        let through = (RTA_OIF, &seven[..]);
        let host = message(libc::AF_INET, 32, RTN_UNICAST, &[(RTA_DST, &[10, 0, 0, 2]), through]);
        let route = Route { to: [10, 0, 0, 2].into(), prefix: 32, through: vec![7] };
        assert_eq!(parse(&host), Some(route));
        for shorter in 0..host.len() {
            assert_ne!(parse(&host[..shorter]).map(|route| route.through), Some(vec![7]), "{shorter}");
        }
        let others = message(libc::AF_INET6, 0, RTN_UNICAST, &[through]);
        assert_eq!(
            parse(&others).map(|route| (route.to, route.prefix)),
            Some((Ipv6Addr::UNSPECIFIED.into(), 0))
        );
        // This host's own address, and a family without addresses.
        assert_eq!(parse(&message(libc::AF_INET, 32, 2, &[(RTA_DST, &[10, 0, 0, 1]), through])), None);
        assert_eq!(parse(&message(libc::AF_UNIX, 0, RTN_UNICAST, &[through])), None);
    }

    #[test]
    fn each_of_several_ways_is_found() {
        let hop = |length: u16, interface: u32| {
            let mut hop = [&length.to_ne_bytes()[..], &[0, 0], &interface.to_ne_bytes()].concat();
            hop.resize(usize::from(length).next_multiple_of(4), 0);
            hop
        };
        let ways = [hop(8, 3), hop(16, 4), hop(8, 5)].concat();
        let route = parse(&message(
            libc::AF_INET,
            24,
            RTN_UNICAST,
            &[(RTA_DST, &[10, 0, 0, 0]), (RTA_MULTIPATH, &ways)],
        ));
        assert_eq!(route.expect("a route").through, [3, 4, 5]);
        // A length that no hop has.
        assert_eq!(hops(&hop(8, 3)[..7]).count(), 0);
        assert_eq!(hops(&[4, 0, 0, 0, 3, 0, 0, 0]).count(), 0);
    }
}
