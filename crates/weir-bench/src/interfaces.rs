//! The interfaces that packets go through: two cards, or a private pair.

use std::process::{Child, Command, Stdio};

use serde::Serialize;
use weir_lab::NetNs;
use weir_sys::CallError;
use weir_sys::ethtool::{Channels, Ethtool, Feature, Rings};
use weir_sys::link::Links;

use crate::failure::Failure;
use crate::sample::Lab;

/// Offloads on which it depends what a packet is and what it costs, by the kernel's names.
const OFFLOADS: &str = "rx-gro rx-gro-hw rx-gro-list rx-lro rx-checksum rx-hashing rx-vlan-hw-parse tx-checksum-ipv4 \
    tx-checksum-ip-generic tx-generic-segmentation tx-tcp-segmentation tx-udp-segmentation tx-vlan-hw-insert";

/// What is known of one. Where the driver says nothing there is nothing.
#[derive(Debug, Serialize)]
pub(super) struct Interface {
    name: String,
    driver: String,
    driver_version: String,
    firmware: String,
    bits_per_second: Option<u64>,
    mtu: u32,
    rx_queues: u32,
    tx_queues: u32,
    /// Descriptors of a queue.
    rx_ring: Option<u32>,
    tx_ring: Option<u32>,
    /// Those of [`OFFLOADS`] that are on.
    offloads: Vec<String>,
    /// Whether NAPI runs in threads of its own.
    napi_threads: Option<bool>,
}

/// The interfaces that experiments use: the cards, to send on and to receive on, or else the receiving end of a private
/// pair, whose other end is the same. None without the privileges to make a pair: experiments that need one will say so.
pub(super) fn used(cards: Option<&[String; 2]>) -> Result<Vec<Interface>, Failure> {
    let Some(cards) = cards else {
        let Ok(lab) = Lab::new() else { return Ok(Vec::new()) };
        let port = &lab.pair().rx;
        return Ok(vec![describe(&port.netns, &port.name)?]);
    };
    let here = NetNs::current().map_err(Failure::new)?;
    are_free(cards)?;
    cards.iter().map(|name| describe(&here, name)).collect()
}

/// Whether two cards may be taken from their host.
fn are_free([tx, rx]: &[String; 2]) -> Result<(), Failure> {
    if tx == rx {
        return Err(refused(
            tx,
            "it cannot be both --rx and --tx",
            "two interfaces with a cable between them",
        ));
    }
    let links = Links::open().map_err(Failure::new)?;
    let (all, addresses) = (links.all().map_err(Failure::new)?, links.addresses().map_err(Failure::new)?);
    for name in [tx, rx] {
        let Some(link) = all.iter().find(|link| link.name == *name) else {
            return Err(refused(name, "there is no such interface", "weir devices"));
        };
        if !link.is_up() {
            return Err(refused(name, "it is down", &format!("ip link set {name} up")));
        }
        if !link.has_carrier() {
            return Err(refused(name, "it has no carrier", "a cable between --tx and --rx"));
        }
        if link.master.is_some() {
            let advice = format!("ip link set {name} nomaster");
            return Err(refused(name, "it is part of a bridge or bond", &advice));
        }
        if addresses.iter().any(|address| address.interface == link.index && address.is_beyond_link()) {
            let why = "it has IP addresses, which it would lose";
            return Err(refused(name, why, "an interface that the host does not need"));
        }
    }
    Ok(())
}

fn refused(name: &str, why: &str, advice: &str) -> Failure {
    Failure::new(format_args!("cannot measure on {name}: {why}; try {advice}"))
}

fn describe(netns: &NetNs, name: &str) -> Result<Interface, Failure> {
    let found = netns.run(|| Ok::<_, CallError>((Links::open()?.get(name)?, Ethtool::new()?)));
    let (link, ethtool) = found.map_err(Failure::new)?;
    let driver = ethtool.driver_info(name).unwrap_or_default();
    let channels = ethtool.channels(name);
    let queues = |mine: fn(&Channels) -> u32, all: u32| {
        channels.map(|channels| mine(&channels) + channels.combined).filter(|&used| used > 0).unwrap_or(all)
    };
    let ring = |of: fn(&Rings) -> u32| ethtool.rings(name).map(|rings| of(&rings)).filter(|&size| size > 0);
    let is_shown = |feature: &Feature| feature.on && OFFLOADS.split(' ').any(|name| name == feature.name);
    Ok(Interface {
        name: name.to_owned(),
        driver: driver.name,
        driver_version: driver.version,
        firmware: driver.firmware,
        bits_per_second: ethtool.speed(name),
        mtu: link.mtu,
        rx_queues: queues(|channels| channels.rx, link.rx_queues),
        tx_queues: queues(|channels| channels.tx, link.tx_queues),
        rx_ring: ring(|rings| rings.rx),
        tx_ring: ring(|rings| rings.tx),
        offloads: ethtool.features(name).into_iter().filter(is_shown).map(|feature| feature.name).collect(),
        napi_threads: napi_threads(netns, name),
    })
}

/// `/sys` is that of a namespace only for those who are in it.
fn napi_threads(netns: &NetNs, name: &str) -> Option<bool> {
    let mut cat = Command::new("cat");
    cat.arg(format!("/sys/class/net/{name}/threaded"));
    cat.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = netns.spawn(&mut cat).and_then(Child::wait_with_output).ok()?;
    output.status.success().then(|| output.stdout.trim_ascii() != b"0")
}
