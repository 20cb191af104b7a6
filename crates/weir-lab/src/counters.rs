//! Kernel counters, which prove that the network stack still received every packet.

use std::collections::HashMap;
use std::fs;

use weir_sys::netns::NetNs;

use crate::{Error, Port};

/// The protocol counters of one namespace, `/proc/net/snmp` and `/proc/net/netstat`.
#[derive(Clone, Debug)]
pub struct StackCounters {
    counters: HashMap<String, u64>,
}

impl StackCounters {
    /// Reads the counters.
    ///
    /// # Errors
    ///
    /// `/proc` is not available.
    pub fn read(netns: &NetNs) -> Result<Self, Error> {
        let file = |name| read(netns, &format!("/proc/thread-self/net/{name}"));
        let text = file("snmp")? + &file("netstat")?;
        let lines: Vec<&str> = text.lines().collect();
        let mut counters = HashMap::new();
        // Lines come in pairs: `Udp: InDatagrams ...` and `Udp: 17 ...`.
        for pair in lines.chunks_exact(2) {
            let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            let mut both = names.zip(values);
            let Some((protocol, _)) = both.next() else { continue };
            for (name, value) in both {
                // Some are settings, which may be negative.
                let Ok(value) = value.parse() else { continue };
                counters.insert(format!("{}{name}", protocol.trim_end_matches(':')), value);
            }
        }
        Ok(Self { counters })
    }

    /// Returns a counter by its name in `nstat`: `IpInReceives`, `UdpInDatagrams`, `IpExtInOctets`, ...
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    pub fn get(&self, name: &str) -> u64 {
        *self.counters.get(name).unwrap_or_else(|| panic!("the kernel has no counter {name}"))
    }
}

/// The counters of one interface, `/proc/net/dev`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received, including those that an XDP program dropped.
    pub rx_packets: u64,
    /// Bytes of these packets.
    pub rx_bytes: u64,
    /// Packets received but dropped for lack of space.
    pub rx_dropped: u64,
    /// Packets sent that the peer accepted.
    pub tx_packets: u64,
    /// Bytes of these packets.
    pub tx_bytes: u64,
    /// Packets sent that the peer dropped for lack of space.
    pub tx_dropped: u64,
}

impl LinkCounters {
    /// Reads the counters.
    ///
    /// # Errors
    ///
    /// `/proc` is not available.
    ///
    /// # Panics
    ///
    /// Panics if the interface no longer exists.
    pub fn read(port: &Port) -> Result<Self, Error> {
        let text = read(&port.netns, "/proc/thread-self/net/dev")?;
        let counters = text.lines().find_map(|line| line.trim().strip_prefix(&port.name)?.strip_prefix(':'));
        let counters = counters.expect("the interface lives as long as its namespace");
        let numbers: Vec<u64> =
            counters.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [rx_bytes, rx_packets, _, rx_dropped, _, _, _, _, tx_bytes, tx_packets, _, tx_dropped, ..] =
            numbers[..]
        else {
            panic!("the kernel's format has changed: {text}")
        };
        Ok(Self { rx_packets, rx_bytes, rx_dropped, tx_packets, tx_bytes, tx_dropped })
    }
}

fn read(netns: &NetNs, path: &str) -> Result<String, Error> {
    netns.run(|| fs::read_to_string(path)).map_err(Error::io(format!("read {path}")))
}
