//! Checks how an interface changes packets before or after anybody can see them.

use weir::Namespace;
use weir::parts::{self, command};

use super::check::Check;
use crate::devices::Device;

/// Largest MTU with which drivers that use one buffer per packet run XDP: a page minus the headroom for programs (256),
/// the kernel's tail (320), the Ethernet header and a VLAN tag (18), rounded down; drivers differ by some bytes.
const ONE_PAGE_MTU: u32 = 3498;

pub(super) fn checks(device: &Device) -> Vec<Check> {
    let mut checks = vec![state(device), programs(device)];
    checks.extend(xdp(device));
    checks.extend([merging(device), cutting(device), checksums(device), tags(device)]);
    checks.extend(
        [queues(device), ring(device), flow_control(device), spread(device), numa(device)]
            .into_iter()
            .flatten(),
    );
    checks
}

fn state(device: &Device) -> Check {
    const NAME: &str = "state";
    match (device.up, device.carrier) {
        (true, true) => Check::ok(NAME, "up"),
        (true, false) => Check::weak(NAME, "no carrier")
            .why("nothing arrives until the cable or the other end is connected"),
        (false, _) => Check::missing(NAME, "down")
            .why("nothing can be captured on it")
            .remedy(device.command(|name| format!("ip link set {name} up"))),
    }
}

fn programs(device: &Device) -> Check {
    const NAME: &str = "programs";
    let xdp = device.programs.iter().find(|program| program.hook.starts_with("xdp"));
    let list: Vec<String> = device
        .programs
        .iter()
        .map(|program| format!("{} {}", program.hook, program.name.as_deref().unwrap_or("(name unknown)")))
        .collect();
    match xdp {
        Some(xdp) => Check::weak(NAME, list.join(", "))
            .why("another XDP program is attached and weir never replaces it; use tc or af_packet")
            .remedy(xdp.end().unwrap_or_else(|| format!("to see whose it is: {}", page_of(device)))),
        None if list.is_empty() => Check::ok(NAME, "none"),
        None => Check::ok(NAME, list.join(", ")),
    }
}

/// Returns the command that shows the whole interface.
fn page_of(device: &Device) -> String {
    let netns = device.netns.iter().map(|netns| format!("--netns {} ", command::word(netns)));
    format!("weir devices {}{}", netns.collect::<String>(), command::word(&device.name))
}

fn xdp(device: &Device) -> Option<Check> {
    const NAME: &str = "XDP";
    let driver = device.driver.as_ref().map_or("its driver", |driver| driver.name.as_str());
    let xdp = device.xdp?;
    if !xdp.native {
        return Some(
            Check::note(NAME, "not in the driver")
                .why("xdp runs in the stack instead, at about the same cost as tc"),
        );
    }
    if device.mtu > ONE_PAGE_MTU && !xdp.several_buffers {
        return Some(
            Check::weak(
                NAME,
                format!("native in {driver}, but an MTU of {} needs multi-buffer XDP", device.mtu),
            )
            .why("the driver will not attach a program with this MTU")
            .remedy(device.command(|name| format!("ip link set {name} mtu {ONE_PAGE_MTU}"))),
        );
    }
    Some(Check::ok(
        NAME,
        format!("native in {driver}{}", if xdp.zero_copy { ", zero-copy AF_XDP" } else { "" }),
    ))
}

/// The option that undoes offloads in what is captured, and nowhere else.
const SEGMENT: &str = "use --segment";

/// Checks offloads, each given by the kernel's name and ethtool's keyword.
fn offload(device: &Device, name: &'static str, offloads: &[(&str, &str)], off: &str, why: &str) -> Check {
    let words = |fixed: bool| -> Vec<&str> {
        let on = offloads.iter().filter(|(kernel, _)| {
            device.offloads.get(*kernel).is_some_and(|offload| offload.on && offload.fixed == fixed)
        });
        let mut words: Vec<&str> = on.map(|&(_, word)| word).collect();
        words.dedup();
        words
    };
    let (switchable, fixed) = (words(false), words(true));
    if switchable.is_empty() && fixed.is_empty() {
        return Check::ok(name, off);
    }
    let mut found = Vec::new();
    if !switchable.is_empty() {
        found.push(format!("{} on", switchable.join(", ")));
    }
    if !fixed.is_empty() {
        found.push(format!("{} (cannot be turned off)", fixed.join(", ")));
    }
    let check = Check::note(name, found.join("; ")).why(why);
    if switchable.is_empty() {
        return check.remedy(SEGMENT);
    }
    let words: Vec<String> = switchable.iter().map(|word| format!("{word} off")).collect();
    let command = device.command(|name| format!("ethtool -K {name} {}", words.join(" ")));
    check.remedy(format!("{SEGMENT}; or, with more CPU time for all traffic: {command}"))
}

fn merging(device: &Device) -> Check {
    const OFFLOADS: [(&str, &str); 3] = [("rx-gro", "gro"), ("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")];
    const WHY: &str = "tc and af_packet see received packets merged, up to 64 KiB";
    offload(device, "merging", &OFFLOADS, "off: received packets are as on the wire", WHY)
}

fn cutting(device: &Device) -> Check {
    const OFFLOADS: [(&str, &str); 3] = [
        ("tx-tcp-segmentation", "tso"),
        ("tx-generic-segmentation", "gso"),
        ("tx-udp-segmentation", "tx-udp-segmentation"),
    ];
    const WHY: &str = "packets this host sends are captured before they are segmented";
    offload(device, "cutting", &OFFLOADS, "off: sent packets are as on the wire", WHY)
}

fn checksums(device: &Device) -> Check {
    const OFFLOADS: [(&str, &str); 3] =
        [("tx-checksum-ip-generic", "tx"), ("tx-checksum-ipv4", "tx"), ("tx-checksum-ipv6", "tx")];
    const WHY: &str = "packets this host sends are captured with incomplete checksums";
    offload(device, "checksums", &OFFLOADS, "complete before packets are captured", WHY)
}

fn tags(device: &Device) -> Check {
    const NAME: &str = "VLAN tags";
    const OFFLOADS: [&str; 2] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];
    let namespace = device.netns.as_deref().map(Namespace::find).transpose();
    let tag_unknown = namespace.and_then(|namespace| parts::tag_unknown(namespace.as_ref(), &device.name));
    match tag_unknown {
        Ok(Some(remedy)) => Check::weak(NAME, "stripped, and not reported to XDP")
            .why("xdp captures packets without them; tc and af_packet restore them")
            .remedy(remedy),
        Ok(None) if OFFLOADS.iter().any(|feature| device.has(feature)) => {
            Check::ok(NAME, "stripped by the device, restored by weir")
        }
        Ok(None) => Check::ok(NAME, "left in packets"),
        Err(error) => Check::unknown(NAME, error.to_string()),
    }
}

fn queues(device: &Device) -> Option<Check> {
    const NAME: &str = "queues";
    let queues = device.queues;
    let processors =
        u32::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap_or(u32::MAX);
    let max = queues.max_rx?;
    let found = format!("{} of {max} for receiving, {processors} processors", queues.rx);
    let wanted = max.min(processors);
    if queues.rx >= wanted {
        return Some(Check::ok(NAME, found));
    }
    let kind = if queues.combined > 0 { "combined" } else { "rx" };
    Some(
        Check::weak(NAME, found)
            .why("more CPUs could share the receive load")
            .remedy(device.command(|name| format!("ethtool -L {name} {kind} {wanted}"))),
    )
}

fn ring(device: &Device) -> Option<Check> {
    const NAME: &str = "ring";
    let rings = device.rings?;
    let found = format!("{} of {} descriptors for receiving", rings.rx, rings.max_rx);
    if rings.rx >= rings.max_rx {
        return Some(Check::ok(NAME, found));
    }
    Some(
        Check::weak(NAME, found)
            .why("packets wait there while the CPU is busy, or are lost as rx_missed")
            .remedy(device.command(|name| format!("ethtool -G {name} rx {}", rings.max_rx))),
    )
}

fn flow_control(device: &Device) -> Option<Check> {
    const NAME: &str = "flow control";
    let control = device.flow_control?;
    if !control.tx {
        return Some(Check::ok(NAME, "off: the sender is never paused"));
    }
    Some(
        Check::note(NAME, "pauses the sender when buffers are full")
            .why("a slow capture can throttle the traffic it watches, and the switch drops packets uncounted")
            .remedy(device.command(|name| format!("ethtool -A {name} rx off tx off"))),
    )
}

fn spread(device: &Device) -> Option<Check> {
    const NAME: &str = "RSS";
    let rss = device.rss.as_ref()?;
    if rss.symmetric {
        let found = if rss.queues > 1 { "symmetric" } else { "one queue" };
        return Some(Check::ok(NAME, found));
    }
    Some(
        Check::note(NAME, format!("over {} queues, not symmetric", rss.queues))
            .why("the two directions of a connection arrive on different queues and are not sorted against each other")
            .remedy(device.command(|name| format!("ethtool -X {name} xfrm symmetric-xor"))),
    )
}

fn numa(device: &Device) -> Option<Check> {
    let node = device.numa_node?;
    let path = format!("/sys/devices/system/node/node{node}/cpulist");
    let near = super::kernel::read(&path).unwrap_or_default();
    Some(Check::ok("NUMA", format!("node {node}, close to CPUs {near}")))
}
