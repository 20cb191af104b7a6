//! IP addresses of interfaces (rtnetlink(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::CallError;
use crate::netlink::{DUMP, ROUTE, Request, ask, attribute, word};

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
/// `struct ifaddrmsg`: family, prefix length, flags, scope, and the interface's index.
const HEADER: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface's index.
    pub interface: u32,
    /// The address.
    pub ip: IpAddr,
    /// Length of the network prefix in bits.
    pub prefix: u8,
}

/// Returns all addresses in this thread's network namespace.
///
/// # Errors
///
/// The error of the netlink socket.
pub fn addresses() -> Result<Vec<Address>, CallError> {
    let mut addresses = Vec::new();
    let request = Request::new(RTM_GETADDR, DUMP, &[0; HEADER]);
    ask(ROUTE, &request, RTM_NEWADDR, |message| addresses.extend(parse(message)))
        .map_err(|error| CallError::new("list addresses (rtnetlink)", error))?;
    Ok(addresses)
}

fn parse(message: &[u8]) -> Option<Address> {
    let (header, rest) = message.split_at_checked(HEADER)?;
    // On a point-to-point link, the interface's own address is the local one.
    let value = attribute(rest, IFA_LOCAL).or_else(|| attribute(rest, IFA_ADDRESS))?;
    let ip = match value.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?)),
        _ => return None,
    };
    Some(Address { interface: word(&header[4..]), ip, prefix: header[1] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_with_care() {
        let mut message = vec![2, 24, 0, 0, 7, 0, 0, 0];
        assert_eq!(parse(&message), None);
        message.extend([8, 0, 1, 0, 10, 0, 0, 1, 8, 0, 2, 0, 10, 0, 0, 2]);
        let address = parse(&message).expect("an address");
        assert_eq!(address, Address { interface: 7, ip: [10, 0, 0, 2].into(), prefix: 24 });
        assert_eq!(parse(&message[..7]), None);
    }
}
