//! What the host would lose if a capture in exclusive mode took all that an interface receives: traffic for its own
//! addresses, the login that started the program, and what it forwards to others.

use std::net::{IpAddr, SocketAddr};
use std::{env, fs};

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

/// The connection of a login by SSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login {
    /// Where the user is.
    pub client: SocketAddr,
    /// This host.
    pub server: SocketAddr,
}

impl Login {
    /// Reads `SSH_CONNECTION`: client, its port, server, its port.
    fn read(connection: &str) -> Option<Self> {
        let words: Vec<&str> = connection.split_whitespace().collect();
        let [client, client_port, server, server_port] = words[..] else { return None };
        // A link-local address may be followed by its interface.
        let ip = |text: &str| Some(text.split('%').next()?.parse::<IpAddr>().ok()?.to_canonical());
        let at = |text, port: &str| Some(SocketAddr::new(ip(text)?, port.parse().ok()?));
        Some(Self { client: at(client, client_port)?, server: at(server, server_port)? })
    }

    /// Finds the login that this process belongs to: its own, or that of the process that started it, and so on. sudo(8) and
    /// su(1) hide the variable from those that they start.
    fn find() -> Option<Self> {
        const VARIABLE: &str = "SSH_CONNECTION";
        if let Ok(connection) = env::var(VARIABLE) {
            return Self::read(&connection);
        }
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let here = namespace("self")?;
        let mut process = std::os::unix::process::parent_id();
        while process > 1 && namespace(&process.to_string())? == here {
            let variables = fs::read(format!("/proc/{process}/environ")).ok()?;
            let value = |one: &[u8]| {
                let value = one.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"=")?;
                Some(String::from_utf8_lossy(value).into_owned())
            };
            if let Some(connection) = variables.split(|&byte| byte == 0).find_map(value) {
                return Self::read(&connection);
            }
            // Behind the name, which may have anything in it: state, parent.
            let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            process = status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        }
        None
    }
}

/// Returns the login by SSH that this process belongs to, if its packets use `interface`: this host's address is there, or the
/// route to the client leads there. Looks in the network namespace of this thread.
///
/// # Errors
///
/// The kernel does not list links, addresses or routes.
pub fn login_through(interface: &str) -> Result<Option<Login>, CallError> {
    let Some(login) = Login::find() else { return Ok(None) };
    let links = link::links()?;
    let through = through(interface, &links);
    let is_through = |index: u32| through.iter().any(|link| link.index == index);
    let addresses = address::addresses()?;
    let mut at = addresses.iter().filter(|address| address.ip == login.server.ip()).peekable();
    // Otherwise it was inherited from another namespace.
    let is_here = at.peek().is_some();
    let uses = at.any(|address| is_through(address.interface))
        || (is_here && towards(login.client.ip(), &route::routes()?).iter().any(|&index| is_through(index)));
    Ok(uses.then_some(login))
}

/// Returns the interfaces of the most specific routes to an address.
fn towards(client: IpAddr, routes: &[Route]) -> Vec<u32> {
    let holds = |route: &&Route| match (route.to, client) {
        (IpAddr::V4(to), IpAddr::V4(ip)) => {
            has_prefix(to.to_bits().into(), ip.to_bits().into(), 32 - route.prefix.min(32))
        }
        (IpAddr::V6(to), IpAddr::V6(ip)) => {
            has_prefix(to.to_bits(), ip.to_bits(), 128 - route.prefix.min(128))
        }
        _ => false,
    };
    let longest = routes.iter().filter(holds).map(|route| route.prefix).max();
    let best = routes.iter().filter(holds).filter(|route| Some(route.prefix) == longest);
    best.flat_map(|route| route.through.iter().copied()).collect()
}

/// Returns whether two addresses are the same, but for the last `rest` bits.
fn has_prefix(one: u128, other: u128, rest: u8) -> bool {
    (one ^ other).checked_shr(rest.into()).unwrap_or(0) == 0
}

/// Returns this host's address from `SSH_CONNECTION`.
fn login(connection: &str) -> Option<IpAddr> {
    Login::read(connection).map(|login| login.server.ip())
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
    fn packets_to_a_client_take_the_most_specific_route() {
        let route = |to: &str, prefix, index| Route {
            to: to.parse().expect("an address"),
            prefix,
            through: vec![index],
        };
        let routes = [
            route("0.0.0.0", 0, 1),
            route("10.0.0.0", 8, 2),
            route("10.9.0.0", 16, 3),
            route("10.9.0.0", 16, 4),
            route("::", 0, 5),
            route("2001:db8::", 32, 6),
        ];
        let table: [(&str, &[u32]); 5] = [
            ("192.0.2.1", &[1]),
            ("10.1.2.3", &[2]),
            ("10.9.1.1", &[3, 4]),
            ("2001:db9::1", &[5]),
            ("2001:db8::1", &[6]),
        ];
        for (client, through) in table {
            assert_eq!(towards(client.parse().expect("an address"), &routes), through, "{client}");
        }
        assert_eq!(towards("192.0.2.1".parse().expect("an address"), &routes[1..]), [0; 0]);
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
