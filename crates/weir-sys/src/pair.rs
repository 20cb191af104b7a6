//! Two network namespaces, connected by a pair of virtual Ethernet interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::{fs, io};

use crate::CallError;
use crate::ethtool::Ethtool;
use crate::link::Links;
use crate::netns::NetNs;
use crate::veth::{self, End};

/// The configuration of a veth pair. Both ends are the same.
///
/// By default a pair is silent: the kernel sends nothing of its own through it, so counts are exact. IPv6 is off, or
/// runs without autoconfiguration, and neighbours are set in advance instead of being resolved.
#[derive(Clone, Debug)]
pub struct Veth {
    /// Receive and transmit queues of each end.
    pub queues: u32,
    /// The largest layer-3 packet, in bytes.
    pub mtu: u32,
    macs: Option<([u8; 6], [u8; 6])>,
    ipv4: bool,
    ipv6: bool,
    chatter: bool,
    features: Vec<(String, bool)>,
}

impl Default for Veth {
    /// One queue, an MTU of 1500, no IP addresses, the kernel's default offloads, and GRO: without GRO or an XDP
    /// program on the receiving end, veth refuses the generator's frames.
    fn default() -> Self {
        let features = vec![("gro".to_owned(), true)];
        Self { queues: 1, mtu: 1500, macs: None, ipv4: false, ipv6: false, chatter: false, features }
    }
}

impl Veth {
    /// Sets the number of receive and transmit queues of each end. A generator's frames sent on CPU `c` arrive on queue
    /// `c` modulo this number; the stack's frames are assigned by flow hash.
    #[must_use]
    pub fn queues(self, queues: u32) -> Self {
        Self { queues, ..self }
    }

    /// Sets the largest layer-3 packet, 68 to 65535 bytes.
    #[must_use]
    pub fn mtu(self, mtu: u32) -> Self {
        Self { mtu, ..self }
    }

    /// Sets the hardware addresses of the `tx` and `rx` ends, by default 02:77:00:00:NN:01 and :02 (NN: the pair's
    /// number).
    #[must_use]
    pub fn macs(self, tx: [u8; 6], rx: [u8; 6]) -> Self {
        Self { macs: Some((tx, rx)), ..self }
    }

    /// Assigns 10.77.NN.1/24 and 10.77.NN.2/24 to the ends.
    #[must_use]
    pub fn ipv4(self) -> Self {
        Self { ipv4: true, ..self }
    }

    /// Assigns fd77:NN::1/64 and fd77:NN::2/64 to the ends.
    #[must_use]
    pub fn ipv6(self) -> Self {
        Self { ipv6: true, ..self }
    }

    /// Keeps the kernel's defaults for IPv6 autoconfiguration, address resolution and multicast reports.
    #[must_use]
    pub fn chatter(self) -> Self {
        Self { chatter: true, ..self }
    }

    /// Switches an offload of both ends by its ethtool name: `gro`, `tso`, `tx`, `rxvlan`, ...
    #[must_use]
    pub fn feature(mut self, name: &str, on: bool) -> Self {
        self.features.retain(|(known, _)| known != name);
        self.features.push((name.to_owned(), on));
        self
    }

    /// Switches off the offloads that let packets larger than the MTU or without a checksum reach the receiver.
    #[must_use]
    pub fn wire_packets(self) -> Self {
        self.feature("tso", false).feature("gso", false).feature("tx", false)
    }

    /// Creates pair `number` between the namespaces, `txNN` and `rxNN`, and waits until it is up.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_NET_ADMIN`), or the kernel rejects the settings.
    pub fn connect(&self, tx: &Arc<NetNs>, rx: &Arc<NetNs>, number: u8) -> Result<Pair, CallError> {
        let macs = self.macs.unwrap_or(([2, 0x77, 0, 0, number, 1], [2, 0x77, 0, 0, number, 2]));
        let port = |netns: &Arc<NetNs>, name, mac, host: u8| Port {
            netns: Arc::clone(netns),
            name,
            index: 0,
            mac,
            ipv4: self.ipv4.then(|| Ipv4Addr::new(10, 77, number, host)),
            ipv6: self.ipv6.then(|| Ipv6Addr::new(0xfd77, number.into(), 0, 0, 0, 0, 0, host.into())),
            queues: self.queues,
        };
        let mut tx = port(tx, format!("tx{number}"), macs.0, 1);
        let mut rx = port(rx, format!("rx{number}"), macs.1, 2);

        tx.netns.run(|| veth::create_ends(&end(&tx, self), &end(&rx, self)))?;
        for (port, peer) in [(&tx, &rx), (&rx, &tx)] {
            configure(port, peer, self)?;
        }
        for port in [&mut tx, &mut rx] {
            port.index = port.netns.run(|| veth::with_carrier(&port.name))?.index;
        }
        Ok(Pair { tx, rx })
    }
}

/// One end of a pair.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its namespace.
    pub netns: Arc<NetNs>,
    /// Interface name.
    pub name: String,
    /// Interface index.
    pub index: u32,
    /// Hardware address.
    pub mac: [u8; 6],
    /// IPv4 address, if configured.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address, if configured.
    pub ipv6: Option<Ipv6Addr>,
    /// Number of receive queues.
    pub queues: u32,
}

/// Two connected interfaces.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The end that sends in experiments.
    pub tx: Port,
    /// The end that receives, where captures run.
    pub rx: Port,
}

fn end<'a>(port: &'a Port, veth: &Veth) -> End<'a> {
    End {
        address: Some(port.mac),
        mtu: Some(veth.mtu),
        queues: Some(veth.queues),
        netns: Some(port.netns.as_fd()),
        ..End::named(&port.name)
    }
}

/// Configures an existing end. A silent interface neither resolves hardware addresses nor joins the multicast groups
/// for the resolution of its own, so the peer's address is set.
fn configure(port: &Port, peer: &Port, veth: &Veth) -> Result<(), CallError> {
    let (links, ethtool) = port.netns.run(|| Ok::<_, CallError>((Links::open()?, Ethtool::new()?)))?;
    let name = &port.name;
    if veth.chatter {
        links.bring_up(name)?;
    } else {
        silence(&port.netns, name, veth.ipv6)?;
        links.bring_up_silent(name)?;
    }
    let index = links.get(name)?.index;
    for (ip, prefix) in addresses(port) {
        links.add_address(index, ip, prefix)?;
    }
    for (ip, _) in addresses(peer).filter(|_| !veth.chatter) {
        links.add_neighbour(index, ip, peer.mac)?;
    }
    // This comes after bringing the interface up: GRO that is enabled earlier does not make the peer a redirection
    // target (Linux 6.18).
    let features: Vec<_> = veth.features.iter().map(|(feature, on)| (feature.as_str(), *on)).collect();
    ethtool.set_features(name, &features)
}

/// Returns the addresses of a port with their prefix lengths.
fn addresses(port: &Port) -> impl Iterator<Item = (IpAddr, u8)> {
    let (v4, v6) = (port.ipv4.map(|ip| (ip.into(), 24)), port.ipv6.map(|ip| (ip.into(), 64)));
    v4.into_iter().chain(v6)
}

/// Stops IPv6 from sending on its own, or disables it. Kernels without IPv6 need neither.
///
/// # Errors
///
/// A setting cannot be written.
pub fn silence(netns: &NetNs, name: &str, ipv6: bool) -> Result<(), CallError> {
    let settings: &[(&str, &str)] = if ipv6 {
        &[("addr_gen_mode", "1"), ("accept_ra", "0"), ("accept_dad", "0"), ("router_solicitations", "0")]
    } else {
        &[("disable_ipv6", "1")]
    };
    netns.run(|| {
        for (setting, value) in settings {
            let path = format!("/proc/sys/net/ipv6/conf/{name}/{setting}");
            match fs::write(&path, value) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(CallError::new(format!("write {value} to {path}"), error));
                }
                _ => {}
            }
        }
        Ok(())
    })
}

/// Returns advice on an error of making a network, to follow its text; empty, if there is none.
pub fn remedy(error: &CallError) -> &'static str {
    match error.errno() {
        libc::EPERM => ": run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN",
        libc::ENOSPC if error.operation.contains("namespace") => ": see /proc/sys/user/max_net_namespaces",
        libc::EOPNOTSUPP if error.operation.contains("veth pair") => ": load the module veth",
        _ if error.operation.starts_with("switch feature") => ": `ethtool -k` has what can be switched",
        _ => "",
    }
}
