//! An interface as described by the kernel and its driver, for output as a line, a page or JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Serialize;
use weir::forward::Pinned;
use weir::guard::KeptRules;
use weir::link::Link;
use weir::parts::{self, command, holders};
use weir::{Namespace, SourceKind};
use weir_sys::bpf::query;
use weir_sys::ethtool::{Channels, Ethtool, Rings};
use weir_sys::netdev::{self, XdpAbilities};
use weir_sys::{address, link, packet};

use super::programs::{self, AttachedProgram, Owner};
use crate::advice;
use crate::failure::Failure;

/// An interface. Values that the kernel or the driver does not report are null.
#[derive(Debug, Serialize)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// Its network namespace, by the user's name for it; `None`: that of this process.
    #[serde(skip)]
    pub(crate) netns: Option<String>,
    pub(crate) index: u32,
    /// Its kind, if it is implemented in software: `veth`, `bridge`, ...
    pub(crate) kind: Option<String>,
    pub(crate) up: bool,
    pub(crate) carrier: bool,
    pub(crate) loopback: bool,
    pub(crate) speed_bits: Option<u64>,
    pub(crate) full_duplex: Option<bool>,
    pub(crate) mtu: u32,
    pub(crate) mac: Option<String>,
    /// With prefix length.
    pub(crate) addresses: Vec<String>,
    pub(crate) driver: Option<Driver>,
    pub(crate) numa_node: Option<u32>,
    pub(crate) queues: Queues,
    pub(crate) rings: Option<RingSizes>,
    pub(crate) rss: Option<Spread>,
    /// Null before Linux 6.3.
    pub(crate) xdp: Option<Xdp>,
    pub(crate) programs: Vec<AttachedProgram>,
    pub(crate) time_stamping: Option<Stamps>,
    pub(crate) flow_control: Option<FlowControl>,
    /// Offloads by the kernel's names.
    pub(crate) offloads: BTreeMap<String, Offload>,
    /// The bridge or bond that it belongs to.
    pub(crate) master: Option<String>,
    /// Number of users of promiscuous mode.
    pub(crate) promiscuity: u32,
    /// The network namespace, as shown by `readlink /proc/self/ns/net`.
    pub(crate) namespace: Option<String>,
    /// Most bytes for filters of a packet socket (`net.core.optmem_max`); null if not readable in this namespace.
    pub(crate) filter_room: Option<u64>,
    pub(crate) auto: Auto,
    /// Information that this user may not see, and the privileges that are required to see it.
    pub(crate) not_told: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Driver {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) firmware: String,
    /// The bus of the device, if any: `pci`, `virtio`, `usb`, ...
    pub(crate) bus: Option<String>,
    /// Name of the device on the bus.
    pub(crate) bus_device: Option<String>,
    /// Bus address according to the driver; may be empty.
    pub(crate) bus_address: String,
}

/// Numbers of receive and transmit queues; combined queues count as both.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Queues {
    pub(crate) rx: u32,
    pub(crate) tx: u32,
    /// Queues for both directions.
    pub(crate) combined: u32,
    /// Null if the driver does not report it.
    pub(crate) max_rx: Option<u32>,
    pub(crate) max_tx: Option<u32>,
    pub(crate) max_combined: Option<u32>,
}

/// Numbers of descriptors in each queue's ring.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RingSizes {
    pub(crate) rx: u32,
    pub(crate) max_rx: u32,
    pub(crate) tx: u32,
    pub(crate) max_tx: u32,
}

/// The distribution of packets over receive queues.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spread {
    /// Number of queues in the table.
    pub(crate) queues: usize,
    pub(crate) table_entries: usize,
    /// Whether both directions of a flow arrive on the same queue.
    pub(crate) symmetric: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Xdp {
    pub(crate) native: bool,
    pub(crate) redirect: bool,
    pub(crate) redirect_target: bool,
    pub(crate) several_buffers: bool,
    pub(crate) zero_copy: bool,
    pub(crate) offload: bool,
    pub(crate) tells_time_stamp: bool,
    pub(crate) tells_hash: bool,
    pub(crate) tells_vlan_tag: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Stamps {
    pub(crate) hardware_rx: bool,
    pub(crate) hardware_tx: bool,
    pub(crate) all_packets: bool,
    /// `/dev/ptpN`.
    pub(crate) clock: Option<u32>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct FlowControl {
    /// Whether it stops sending at the neighbour's request.
    pub(crate) rx: bool,
    /// Whether it asks the neighbour to stop when it runs out of space.
    pub(crate) tx: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Offload {
    pub(crate) on: bool,
    pub(crate) fixed: bool,
}

/// The first choice of `--source auto`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Auto {
    /// Null if no source can capture on it.
    pub(crate) source: Option<SourceKind>,
    pub(crate) why: String,
}

impl Device {
    /// Returns a command for this interface, to be run from here. `command` receives the interface name.
    pub(crate) fn command(&self, command: impl FnOnce(&str) -> String) -> String {
        let label = self.netns.iter().chain([&self.name]).map(String::as_str).collect::<Vec<_>>().join("/");
        let (inside, name) = command::place(&label);
        format!("{inside}{}", command(&name))
    }

    /// Returns whether the offload is enabled.
    pub(crate) fn has(&self, offload: &str) -> bool {
        self.offloads.get(offload).is_some_and(|offload| offload.on)
    }
}

/// Information that is queried once for all interfaces of the namespace.
#[derive(Debug)]
pub(crate) struct Survey {
    links: Vec<Link>,
    addresses: Vec<address::Address>,
    abilities: Option<Vec<XdpAbilities>>,
    ethtool: Ethtool,
    namespace: Option<String>,
    netns: Option<Namespace>,
}

impl Survey {
    /// Queries this thread's network namespace, which is `netns`.
    pub(crate) fn take(netns: Option<&Namespace>) -> Result<Self, Failure> {
        let failed = |error: weir_sys::CallError| Failure::new(error);
        let namespace = fs::read_link("/proc/thread-self/ns/net").ok();
        Ok(Self {
            links: link::links().map_err(failed)?,
            addresses: address::addresses().map_err(failed)?,
            abilities: netdev::xdp_abilities().map_err(failed)?,
            ethtool: Ethtool::new().map_err(failed)?,
            namespace: namespace.map(|link| link.to_string_lossy().into_owned()),
            netns: netns.cloned(),
        })
    }

    /// Returns the named interfaces, or all if there are no names.
    pub(crate) fn devices(&self, names: &[&str]) -> Result<Vec<Device>, Failure> {
        let mut chosen = Vec::new();
        for name in names {
            let link = self.links.iter().find(|link| link.name == *name);
            chosen.push(link.ok_or_else(|| self.unknown(name))?);
        }
        if names.is_empty() {
            chosen.extend(&self.links);
        }
        let mut devices: Vec<Device> = chosen.into_iter().map(|link| self.device(link)).collect();
        identify(&mut devices);
        Ok(devices)
    }

    fn unknown(&self, name: &str) -> Failure {
        let names: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
        Failure::new(format_args!("no interface named `{name}`"))
            .hint(format!("available: {}", names.join(", ")))
    }

    fn device(&self, link: &Link) -> Device {
        let name = &link.name;
        let settings = self.ethtool.settings(name);
        let mut not_told = Vec::new();
        let abilities = self.abilities.as_ref().map(|all| {
            let own = all.iter().find(|abilities| abilities.interface == link.index);
            own.copied().unwrap_or_default()
        });
        let driver = self.ethtool.driver_info(name).map(|driver| Driver {
            name: driver.name,
            version: driver.version,
            firmware: driver.firmware,
            bus: link.parent.as_ref().map(|(bus, _)| bus.clone()),
            bus_device: link.parent.as_ref().map(|(_, device)| device.clone()),
            bus_address: driver.bus,
        });
        let features = self.ethtool.features(name).into_iter();
        Device {
            name: name.clone(),
            netns: self.netns.as_ref().map(|netns| netns.name().to_owned()),
            index: link.index,
            kind: link.kind.clone(),
            up: link.is_up(),
            carrier: link.has_carrier(),
            loopback: link.is_loopback(),
            speed_bits: settings.speed,
            full_duplex: settings.full_duplex,
            mtu: link.mtu,
            mac: mac(&link.address),
            addresses: self.addresses_of(link.index),
            numa_node: numa_node(link),
            queues: Queues::of(link, self.ethtool.channels(name)),
            rings: self.ethtool.rings(name).map(RingSizes::from).filter(|rings| rings.max_rx > 0),
            rss: self.ethtool.rss(name).map(|rss| Spread {
                queues: rss.queues(),
                table_entries: rss.table.len(),
                symmetric: rss.is_symmetric(),
            }),
            xdp: abilities.map(Xdp::from),
            programs: programs::attached(link, &mut not_told),
            time_stamping: self.ethtool.stamping(name).map(|stamping| Stamps {
                hardware_rx: stamping.hardware_rx,
                hardware_tx: stamping.hardware_tx,
                all_packets: stamping.all_packets,
                clock: stamping.clock,
            }),
            flow_control: self
                .ethtool
                .pause(name)
                .map(|pause| FlowControl { rx: pause.obeys, tx: pause.asks }),
            offloads: features
                .map(|feature| (feature.name, Offload { on: feature.on, fixed: feature.fixed }))
                .collect(),
            master: link.master.and_then(|master| {
                self.links.iter().find(|link| link.index == master).map(|link| link.name.clone())
            }),
            promiscuity: link.promiscuity,
            namespace: self.namespace.clone(),
            filter_room: packet::filter_room(),
            auto: Auto::of(self.netns.as_ref(), name),
            driver,
            not_told,
        }
    }

    fn addresses_of(&self, interface: u32) -> Vec<String> {
        let own = self.addresses.iter().filter(|address| address.interface == interface);
        own.map(|address| format!("{}/{}", address.ip, address.prefix)).collect()
    }
}

impl Auto {
    fn of(netns: Option<&Namespace>, name: &str) -> Self {
        match parts::choice(netns, name) {
            Ok(choice) => Self { source: Some(choice.source), why: choice.why },
            Err(error) => {
                let hint = advice::hint(&error).map(|hint| format!("; {hint}")).unwrap_or_default();
                Self { source: None, why: format!("{error}{hint}") }
            }
        }
    }
}

impl Queues {
    fn of(link: &Link, channels: Option<Channels>) -> Self {
        // If a driver reports no queues, the kernel's number of allocated queues is used.
        let told = channels.filter(|told| told.rx + told.tx + told.combined > 0);
        let max = |number: fn(&Channels) -> u32| told.as_ref().map(number).filter(|&max| max > 0);
        Self {
            rx: told.map_or(link.rx_queues, |told| told.rx + told.combined),
            tx: told.map_or(link.tx_queues, |told| told.tx + told.combined),
            combined: told.map_or(0, |told| told.combined),
            max_rx: max(|told| told.max_rx + told.max_combined),
            max_tx: max(|told| told.max_tx + told.max_combined),
            max_combined: max(|told| told.max_combined),
        }
    }
}

impl From<Rings> for RingSizes {
    fn from(rings: Rings) -> Self {
        Self { rx: rings.rx, max_rx: rings.max_rx, tx: rings.tx, max_tx: rings.max_tx }
    }
}

impl From<XdpAbilities> for Xdp {
    fn from(abilities: XdpAbilities) -> Self {
        Self {
            native: abilities.native(),
            redirect: abilities.redirect(),
            redirect_target: abilities.redirect_target(),
            several_buffers: abilities.several_buffers(),
            zero_copy: abilities.zero_copy(),
            offload: abilities.offload(),
            tells_time_stamp: abilities.time_stamp(),
            tells_hash: abilities.hash(),
            tells_vlan_tag: abilities.vlan_tag(),
        }
    }
}

fn mac(address: &[u8]) -> Option<String> {
    let bytes: Vec<String> = address.iter().map(|byte| format!("{byte:02x}")).collect();
    (!bytes.is_empty()).then(|| bytes.join(":"))
}

/// Returns the NUMA node of the card; `None` if the machine has only one. `/sys` may show another network namespace, in
/// which a card of this name has another index.
fn numa_node(link: &Link) -> Option<u32> {
    let read = |file: &str| fs::read_to_string(format!("/sys/class/net/{}/{file}", link.name)).ok();
    let index: u32 = read("ifindex")?.trim().parse().ok()?;
    if index != link.index {
        return None;
    }
    read("device/numa_node")?.trim().parse().ok()
}

/// Adds names and owners for all devices at once, because searching `/proc` takes time.
fn identify(devices: &mut [Device]) {
    let programs = devices.iter().flat_map(|device| &device.programs);
    let ids: BTreeSet<u32> = programs.filter_map(|program| program.id).collect();
    if ids.is_empty() {
        return;
    }
    let owners = holders(&ids);
    for device in devices {
        let kept = KeptRules::on(device.index);
        let kept_programs = kept.as_ref().and_then(|kept| kept.programs().ok()).unwrap_or_default();
        for program in &mut device.programs {
            if program.id.is_some_and(|id| kept_programs.contains(&id)) {
                program.guard = kept.as_ref().map(|kept| kept.directory().to_owned());
            }
            if program.hook == programs::NATIVE {
                let forward = Pinned::receiving_on(device.index);
                program.forward = forward.map(|forward| forward.directory().to_owned());
            }
            let Some(id) = program.id else { continue };
            program.owners = owners.get(&id).into_iter().flatten().map(Owner::from).collect();
            match query::program(id) {
                Ok(info) => program.name = info.map(|info| info.name).or_else(|| program.name.take()),
                Err(_) => {
                    let what = "names of programs (CAP_SYS_ADMIN)";
                    if !device.not_told.iter().any(|told| told == what) {
                        device.not_told.push(what.to_owned());
                    }
                }
            }
        }
    }
}
