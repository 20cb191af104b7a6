//! Names for tests: what this machine's files say, as libpcap reads them.

use std::fs::read_to_string;
use std::net::{IpAddr, Ipv4Addr};

use weir_filter::names::{Names, Service};
use weir_filter::{Beside, Dialect, Options};

/// Services, protocols and networks of this machine; `localhost` for the hosts.
#[derive(Debug)]
pub(crate) struct Files {
    services: Vec<Vec<String>>,
    protocols: Vec<Vec<String>>,
    networks: Vec<Vec<String>>,
}

impl Files {
    pub(crate) fn read() -> Self {
        let table = |path: &str| {
            let text = read_to_string(path).unwrap_or_default();
            let line = |line: &str| -> Vec<String> {
                line.split('#').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
            };
            text.lines().map(line).filter(|words: &Vec<String>| words.len() > 1).collect()
        };
        let (services, protocols) = (table("/etc/services"), table("/etc/protocols"));
        Self { services, protocols, networks: table("/etc/networks") }
    }
}

/// The second word of the line that has `name` anywhere else, and for which `fits`.
fn second<'a>(table: &'a [Vec<String>], name: &str, fits: impl Fn(&str) -> bool) -> Option<&'a str> {
    let named = |words: &&Vec<String>| words[0] == name || words[2..].iter().any(|alias| alias == name);
    table.iter().filter(named).map(|words| words[1].as_str()).find(|second| fits(second))
}

impl Names for Files {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        match name {
            "localhost" => vec![IpAddr::from([127, 0, 0, 1])],
            "both" => vec![IpAddr::from([10, 1, 2, 3]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])],
            _ => Vec::new(),
        }
    }

    fn network(&self, name: &str) -> Option<u32> {
        let address: Ipv4Addr = second(&self.networks, name, |_| true)?.parse().ok()?;
        Some(address.to_bits())
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        (name == "both").then_some([2, 0, 0, 0, 0, 1])
    }

    fn service(&self, name: &str) -> Service {
        let port = |over: &str| {
            let second = second(&self.services, name, |second| second.ends_with(over))?;
            second.split('/').next()?.parse().ok()
        };
        Service { tcp: port("/tcp"), udp: port("/udp"), sctp: port("/sctp") }
    }

    fn services(&self) -> Vec<String> {
        self.services.iter().map(|words| words[0].clone()).collect()
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        second(&self.protocols, name, |_| true)?.parse().ok()
    }

    fn set(&self, name: &str) -> Result<String, String> {
        match name {
            "bad" => Ok("10.0.0.0/8 # all of it\n192.168.1.1, fe80::/10\n".to_owned()),
            "broken" => Ok("10.0.0.1\n\n10.0.0.300\n".to_owned()),
            _ => Err(format!("no file for the set `@{name}`")),
        }
    }
}

/// For packets of `link_type`, from a file.
pub(crate) fn options(dialect: Dialect, link_type: u16, names: &dyn Names) -> Options<'_> {
    Options {
        dialect,
        link_type,
        snap_len: 262_144,
        metadata: Beside::Nothing,
        swapped: false,
        others: &[],
        netmask: Some(0xffff_ff00),
        names,
    }
}
