//! What the host would lose if a capture in exclusive mode took all that an interface receives: traffic for its own
//! addresses, and the login that started the program.

use std::env;
use std::net::IpAddr;

use crate::CallError;
use crate::address::{self, Address};
use crate::link::{self, Link};

/// Returns the addresses of this host that are reached through `interface`, each described; empty: it would lose nothing.
/// Looks in the network namespace of this thread.
///
/// # Errors
///
/// The kernel does not list links or addresses.
pub fn lost(interface: &str) -> Result<Vec<String>, CallError> {
    let login = env::var("SSH_CONNECTION").ok().as_deref().and_then(login);
    let (links, addresses) = (link::links()?, address::addresses()?);
    let lost = cut_off(interface, &links, &addresses, login);
    Ok(lost.iter().map(|lost| said(lost, interface, login)).collect())
}

/// Returns this host's address from `SSH_CONNECTION`: client, its port, server, its port.
fn login(connection: &str) -> Option<IpAddr> {
    let server = connection.split_whitespace().nth(2)?;
    // A link-local address may be followed by its interface.
    let address: IpAddr = server.split('%').next()?.parse().ok()?;
    Some(address.to_canonical())
}

/// Returns the addresses reached through `interface`, and the interfaces that have them: itself and those on top of it.
/// Every IPv6 interface has a link-local address, which counts only if a login uses it.
fn cut_off<'a>(
    interface: &str,
    links: &'a [Link],
    addresses: &[Address],
    login: Option<IpAddr>,
) -> Vec<(&'a str, IpAddr)> {
    let mut through: Vec<&Link> = links.iter().filter(|link| link.name == interface).collect();
    let mut looked_at = 0;
    while let Some(&below) = through.get(looked_at) {
        looked_at += 1;
        for link in links {
            // The lower link of a veth interface is its peer.
            let stands_on = link.lower == Some(below.index) && link.kind.as_deref() != Some("veth");
            let above = stands_on || below.master == Some(link.index);
            if above && through.iter().all(|one| one.index != link.index) {
                through.push(link);
            }
        }
    }
    let counts = |ip: IpAddr| match ip {
        IpAddr::V6(v6) => !v6.is_unicast_link_local() || Some(ip) == login,
        IpAddr::V4(_) => true,
    };
    let of = |link: &'a Link| {
        let own = addresses.iter().filter(move |address| address.interface == link.index);
        own.filter(|address| counts(address.ip)).map(move |address| (link.name.as_str(), address.ip))
    };
    through.into_iter().flat_map(of).collect()
}

/// Returns the description of an address.
fn said(&(name, ip): &(&str, IpAddr), interface: &str, login: Option<IpAddr>) -> String {
    let place = if name == interface { String::new() } else { format!(" on {name}") };
    let own = if Some(ip) == login { " (used by this login)" } else { "" };
    format!("{ip}{place}{own}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_is_found_in_what_sshd_says() {
        let table = [
            ("192.0.2.9 50000 192.0.2.1 22", Some("192.0.2.1")),
            ("2001:db8::9 50000 2001:db8::1 22", Some("2001:db8::1")),
            ("fe80::9%eth0 50000 fe80::1%eth0 22", Some("fe80::1")),
            ("192.0.2.9 50000 ::ffff:192.0.2.1 22", Some("192.0.2.1")),
            ("192.0.2.9 50000", None),
            ("UNKNOWN 65535 UNKNOWN 65535", None),
        ];
        for (connection, server) in table {
            assert_eq!(login(connection), server.map(|ip| ip.parse().expect("an address")), "{connection}");
        }
    }
}
