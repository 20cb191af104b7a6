//! Everything known about an interface, with a line for each subject.

use weir_sys::packet;

use super::Device;
use super::device::{Driver, Queues, Stamps, Xdp};
use super::programs::AttachedProgram;
use crate::style::{Paint, wrap};
use crate::units;

/// Offloads that change what a capture sees, and those that users look for.
const SHOWN: [&str; 12] = [
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "rx-checksum",
    "rx-hashing",
    "rx-vlan-hw-parse",
    "tx-vlan-hw-insert",
    "tx-checksum-ip-generic",
    "tx-tcp-segmentation",
    "tx-generic-segmentation",
    "tx-udp-segmentation",
    "hw-tc-offload",
];

/// Width of the subject column.
const INDENT: usize = 16;

/// Returns the page, wrapped at `columns` between words.
pub(super) fn page(device: &Device, columns: usize, paint: Paint) -> String {
    let not_told = || "not reported by the driver".to_owned();
    let mut lines = vec![
        ("hardware", hardware(device)),
        ("addresses", or_none(&device.addresses.join(", "))),
        ("driver", device.driver.as_ref().map_or_else(|| "none".to_owned(), driver)),
        ("queues", queues(&device.queues)),
        (
            "rings",
            device.rings.map_or_else(not_told, |rings| {
                format!("receive {} of {}, transmit {} of {}", rings.rx, rings.max_rx, rings.tx, rings.max_tx)
            }),
        ),
        ("RSS", rss(device)),
        (
            "XDP",
            device.xdp.map_or_else(|| "not reported by this kernel (requires Linux 6.3)".to_owned(), xdp),
        ),
        ("timestamps", device.time_stamping.map_or_else(not_told, stamps)),
        (
            "flow control",
            device.flow_control.map_or_else(not_told, |control| {
                match (control.rx, control.tx) {
                    (false, false) => "off",
                    (true, false) => "obeys pause frames",
                    (false, true) => "sends pause frames",
                    (true, true) => "obeys and sends pause frames",
                }
                .to_owned()
            }),
        ),
        ("offloads", offloads(device)),
        ("programs", programs(&device.programs)),
        (
            "promiscuous",
            match device.promiscuity {
                0 => "no".to_owned(),
                1 => "yes (1 user)".to_owned(),
                more => format!("yes ({more} users)"),
            },
        ),
    ];
    if let Some(master) = &device.master {
        lines.push(("master", master.clone()));
    }
    if let Some(node) = device.numa_node {
        lines.push(("NUMA node", node.to_string()));
    }
    if let Some(namespace) = &device.namespace {
        lines.push(("namespace", namespace.clone()));
    }
    if let Some(room) = device.filter_room.filter(|&room| room < packet::ENOUGH_ROOM) {
        let room = format!(
            "{} in a packet socket; with af_packet, larger filters run in the process; to raise the limit: {}",
            units::bytes(room),
            device.command(|_| format!("sysctl -w net.core.optmem_max={}", packet::ENOUGH_ROOM))
        );
        lines.push(("filter room", room));
    }
    let auto = match device.auto.source {
        Some(source) => format!("{source}: {}", device.auto.why),
        None => device.auto.why.clone(),
    };
    lines.push(("auto takes", auto));

    let mut text = format!("{}: {}\n", paint.bold(&device.name), state(device));
    for (subject, words) in lines {
        let lines = words.lines().flat_map(|line| wrap(line, columns.clamp(60, 120) - INDENT));
        let mut words = lines.collect::<Vec<_>>().into_iter();
        text.push_str(&format!(
            "  {}  {}\n",
            paint.cyan(format!("{subject:<12}")),
            words.next().unwrap_or_default()
        ));
        for line in words {
            text.push_str(&format!("  {:<12}  {line}\n", ""));
        }
    }
    if !device.not_told.is_empty() {
        let not_told = format!("  not visible to this user: {}", device.not_told.join(", "));
        text.push_str(&paint.dim(not_told));
        text.push('\n');
    }
    text
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

fn state(device: &Device) -> String {
    let mut words = vec![
        match (device.up, device.carrier) {
            (false, _) => "down",
            (true, false) => "up, no carrier: nothing arrives",
            (true, true) => "up",
        }
        .to_owned(),
    ];
    if let Some(speed) = device.speed_bits {
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let speed = units::scaled(speed as f64);
        words.push(format!("{speed}bit/s"));
    }
    if let Some(full) = device.full_duplex {
        words.push(if full { "full duplex" } else { "half duplex" }.to_owned());
    }
    words.join(", ")
}

fn hardware(device: &Device) -> String {
    let kind = match (&device.kind, device.loopback) {
        (_, true) => "loopback, ",
        (Some(kind), _) => &format!("{kind}, "),
        (None, _) => "",
    };
    let mac = device.mac.as_ref().map(|mac| format!("{mac}, ")).unwrap_or_default();
    format!("{kind}{mac}MTU {}, index {}", device.mtu, device.index)
}

fn driver(driver: &Driver) -> String {
    let mut text = format!("{} {}", driver.name, driver.version).trim_end().to_owned();
    if !driver.firmware.is_empty() && driver.firmware != "N/A" {
        text.push_str(&format!(", firmware {}", driver.firmware));
    }
    match (&driver.bus, &driver.bus_device) {
        (Some(bus), Some(device)) => text.push_str(&format!(", {bus} {device}")),
        _ if driver.bus_address.is_empty() => {}
        _ => text.push_str(&format!(", at {}", driver.bus_address)),
    }
    text
}

fn queues(queues: &Queues) -> String {
    let of = |max: Option<u32>| max.map(|max| format!(" of {max}")).unwrap_or_default();
    if queues.combined > 0 && queues.combined == queues.rx && queues.rx == queues.tx {
        return format!("{}{} combined", queues.combined, of(queues.max_combined));
    }
    format!("receive {}{}, transmit {}{}", queues.rx, of(queues.max_rx), queues.tx, of(queues.max_tx))
}

fn rss(device: &Device) -> String {
    match &device.rss {
        None if device.queues.rx <= 1 => "one queue only".to_owned(),
        None => "not reported by the driver".to_owned(),
        Some(rss) => format!(
            "over {} queue{}, table of {} entries; {}",
            rss.queues,
            if rss.queues == 1 { "" } else { "s" },
            rss.table_entries,
            if rss.symmetric {
                "symmetric"
            } else {
                "not symmetric: the directions of a flow use different queues"
            }
        ),
    }
}

fn xdp(xdp: Xdp) -> String {
    if !xdp.native {
        return "generic only: no driver support".to_owned();
    }
    let all = [
        (true, "native"),
        (xdp.redirect, "redirect"),
        (xdp.redirect_target, "redirect target"),
        (xdp.several_buffers, "multi-buffer"),
        (xdp.zero_copy, "zero-copy AF_XDP"),
        (xdp.offload, "hardware offload"),
        (xdp.tells_time_stamp, "reports timestamps"),
        (xdp.tells_hash, "reports hashes"),
        (xdp.tells_vlan_tag, "reports VLAN tags"),
    ];
    let (can, cannot): (Vec<_>, Vec<_>) = all.into_iter().partition(|&(can, _)| can);
    let list = |all: &[(bool, &str)]| all.iter().map(|&(_, what)| what).collect::<Vec<_>>().join(", ");
    if cannot.is_empty() { list(&can) } else { format!("{}\nnot: {}", list(&can), list(&cannot)) }
}

fn stamps(stamps: Stamps) -> String {
    let clock = stamps.clock.map(|clock| format!(", clock /dev/ptp{clock}")).unwrap_or_default();
    match (stamps.hardware_rx, stamps.all_packets) {
        (false, _) => format!("by the kernel only{clock}"),
        (true, false) => format!("by the card, for PTP packets{clock}"),
        (true, true) => format!("by the card, for every packet{clock}"),
    }
}

fn offloads(device: &Device) -> String {
    let on: Vec<&str> = SHOWN.into_iter().filter(|name| device.has(name)).collect();
    or_none(&on.join(", "))
}

fn programs(programs: &[AttachedProgram]) -> String {
    let lines: Vec<String> = programs.iter().map(program).collect();
    or_none(&lines.join("\n"))
}

fn program(program: &AttachedProgram) -> String {
    let name = program.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("(name unknown)");
    let id = program.id.map(|id| format!(" (id {id})")).unwrap_or_default();
    let owners: Vec<String> =
        program.owners.iter().map(|owner| format!("{} {}", owner.command, owner.pid)).collect();
    let owners = if owners.is_empty() { String::new() } else { format!(", held by {}", owners.join(", ")) };
    let end = program.end().map(|end| format!("; {end}")).unwrap_or_default();
    format!("{}: {name}{id}{owners}{end}", program.hook)
}
