//! What the host would lose if a capture in exclusive mode took all that an interface receives: traffic for its own
//! addresses, the login that started the program, and what it forwards to others.

use std::env;
use std::net::IpAddr;

use crate::CallError;
use crate::address::{self, Address};
use crate::link::{self, Link};
use crate::route::{self, Route};

/// Returns what this host reaches, or is reached at, through `interface`, each described: its addresses; without any,
/// the bridge it belongs to, and routes. Empty: it would lose nothing. Looks in the network namespace of this thread.
///
/// # Errors
///
/// The kernel does not list links, addresses or routes.
pub fn lost(interface: &str) -> Result<Vec<String>, CallError> {
    let login = env::var("SSH_CONNECTION").ok().as_deref().and_then(login);
    let links = link::links()?;
    let through = through(interface, &links);
    let addresses = own(&through, &address::addresses()?, login);
    if !addresses.is_empty() {
        return Ok(addresses.iter().map(|address| said(address, interface, login)).collect());
    }
    Ok([bridges(&through), routed(&through, &route::routes()?)].concat())
}

/// Returns this host's address from `SSH_CONNECTION`: client, its port, server, its port.
fn login(connection: &str) -> Option<IpAddr> {
    let server = connection.split_whitespace().nth(2)?;
    // A link-local address may be followed by its interface.
    let address: IpAddr = server.split('%').next()?.parse().ok()?;
    Some(address.to_canonical())
}

/// Returns `interface` and those on top of it.
fn through<'a>(interface: &str, links: &'a [Link]) -> Vec<&'a Link> {
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
    through
}

/// Returns the addresses of interfaces, and whose they are. Every IPv6 interface has a link-local address, which counts
/// only if a login uses it.
fn own<'a>(through: &[&'a Link], addresses: &[Address], login: Option<IpAddr>) -> Vec<(&'a str, IpAddr)> {
    let counts = |ip: IpAddr| !is_link_local(ip) || Some(ip) == login;
    let of = |link: &&'a Link| {
        let (name, index) = (link.name.as_str(), link.index);
        let own = addresses.iter().filter(move |address| address.interface == index);
        own.filter(|address| counts(address.ip)).map(move |address| (name, address.ip))
    };
    through.iter().flat_map(of).collect()
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Returns the bridges among interfaces: those of Linux, and the one of Open vSwitch, to which all of its ports belong.
fn bridges(through: &[&Link]) -> Vec<String> {
    let is_bridge = |link: &&&Link| matches!(link.kind.as_deref(), Some("bridge" | "openvswitch"));
    through.iter().filter(is_bridge).map(|bridge| format!("bridge {}", bridge.name)).collect()
}

/// Returns what interfaces without addresses have routes to.
fn routed(through: &[&Link], routes: &[Route]) -> Vec<String> {
    const NAMED: usize = 3;
    let uses = |route: &&Route| {
        !is_link_local(route.to) && through.iter().any(|link| route.through.contains(&link.index))
    };
    let (named, others): (Vec<_>, Vec<_>) =
        routes.iter().filter(uses).enumerate().partition(|&(at, _)| at < NAMED);
    let mut said: Vec<String> = named.into_iter().map(|(_, route)| destination(route)).collect();
    match others.len() {
        0 => {}
        1 => said.push("1 more route".to_owned()),
        more => said.push(format!("{more} more routes")),
    }
    said
}

/// Returns the destination of a route, as ip-route(8) writes it.
fn destination(route: &Route) -> String {
    let whole = if route.to.is_ipv4() { 32 } else { 128 };
    match route.prefix {
        0 => "the default route".to_owned(),
        bits if bits == whole => format!("the route to {}", route.to),
        bits => format!("the route to {}/{bits}", route.to),
    }
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

    #[test]
    fn what_has_no_address_may_belong_to_a_bridge() {
        let link = |index, name: &str, kind: &str, master| Link {
            index,
            name: name.to_owned(),
            kind: Some(kind.to_owned()),
            master,
            ..Link::default()
        };
        let links = [
            link(1, "tap0", "tun", Some(3)),
            link(2, "br0", "bridge", None),
            link(3, "ovs-system", "openvswitch", None),
            link(4, "tap1", "tun", Some(5)),
            link(5, "bond0", "bond", Some(2)),
        ];
        assert_eq!(bridges(&through("tap0", &links)), ["bridge ovs-system"]);
        assert_eq!(bridges(&through("tap1", &links)), ["bridge br0"]);
        assert_eq!(bridges(&through("br0", &links)), ["bridge br0"]);
    }

    #[test]
    fn what_has_no_address_may_have_routes() {
        let link = |index, name: &str| Link { index, name: name.to_owned(), ..Link::default() };
        let (links, tap) = ([link(1, "tap0"), link(2, "eth0")], 1);
        let route = |to: &str, prefix, through: &[u32]| Route {
            to: to.parse().expect("an address"),
            prefix,
            through: through.to_vec(),
        };
        let through = through("tap0", &links);
        let routes = [
            route("fe80::", 64, &[tap]),
            route("192.0.2.0", 24, &[2]),
            route("10.0.0.2", 32, &[tap]),
            route("2001:db8::", 64, &[2, tap]),
            route("0.0.0.0", 0, &[tap]),
        ];
        assert_eq!(
            routed(&through, &routes),
            ["the route to 10.0.0.2", "the route to 2001:db8::/64", "the default route"]
        );
        assert_eq!(routed(&through, &routes[..2]), [""; 0]);
        let more: Vec<Route> = (0..5).map(|net| route(&format!("10.{net}.0.0"), 16, &[tap])).collect();
        assert_eq!(routed(&through, &more)[2..], ["the route to 10.2.0.0/16", "2 more routes"]);
        assert_eq!(routed(&through, &more[..4])[3..], ["1 more route"]);
    }
}
