//! What the system's files say about names: hosts(5) and resolv.conf(5).

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use super::dns;

/// Most that is read of a file.
const MOST: u64 = 16 << 20;

/// Port of DNS servers.
const DNS: u16 = 53;

/// Most servers that are asked, as in the C library.
const SERVERS: usize = 3;

/// Returns the names in /etc/hosts.
pub(super) fn hosts() -> HashMap<IpAddr, String> {
    hosts_in(&text("/etc/hosts"))
}

/// Returns the servers in /etc/resolv.conf.
pub(super) fn servers() -> Vec<SocketAddr> {
    servers_in(&text("/etc/resolv.conf"))
}

/// Returns the text of a file; nothing if it cannot be read.
fn text(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
}

/// The first name in the first line of an address counts.
fn hosts_in(text: &str) -> HashMap<IpAddr, String> {
    let mut hosts = HashMap::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(name)) = (words.next().and_then(|word| word.parse().ok()), words.next())
        else {
            continue;
        };
        if dns::is_host_name(name) {
            hosts.entry(IpAddr::to_canonical(&address)).or_insert_with(|| name.to_owned());
        }
    }
    hosts
}

/// Without any, it is the one on this host.
fn servers_in(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        let word = words.next()?;
        // With its interface (`fe80::1%eth0`), an address is for the C library to read. It is no name to be looked up.
        word.split('%').next()?.parse::<IpAddr>().ok()?;
        (word, DNS).to_socket_addrs().ok()?.next()
    };
    let servers: Vec<SocketAddr> = text.lines().filter_map(server).take(SERVERS).collect();
    if servers.is_empty() { vec![(Ipv4Addr::LOCALHOST, DNS).into()] } else { servers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_hosts() {
        let hosts = hosts_in(
            "# 10.0.0.9 comment\n10.0.0.1\tone.example one # ten\n10.0.0.1 second\n::1 localhost\n\
             ::ffff:10.0.0.2 two\n10.0.0.3\nten 10.0.0.4\n10.0.0.5 \u{1b}[31m\n10.0.0.6#x\n",
        );
        let mut found: Vec<String> =
            hosts.iter().map(|(address, name)| format!("{address} {name}")).collect();
        found.sort();
        assert_eq!(found, ["10.0.0.1 one.example", "10.0.0.2 two", "::1 localhost"]);
    }

    #[test]
    fn lines_of_resolv_conf() {
        let servers = |text| servers_in(text).iter().map(SocketAddr::to_string).collect::<Vec<_>>();
        assert_eq!(servers("search example\n#nameserver 1.1.1.1\n"), ["127.0.0.1:53"]);
        assert_eq!(
            servers("nameserver fe80::1%lo\nnameserver fe80::1%no-such-interface\n"),
            ["[fe80::1%1]:53"]
        );
        let four = "nameserver 10.0.0.1\nnameserver  fd00::1 # it\nnameserver x\nnameserver 10.0.0.3\nnameserver 10.0.0.4";
        assert_eq!(servers(four), ["10.0.0.1:53", "[fd00::1]:53", "10.0.0.3:53"]);
    }
}
