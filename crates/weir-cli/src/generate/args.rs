//! The command line of `weir gen`.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir::Namespace;
use weir::send::{Destination, Pace};
use weir_traffic::{
    Addresses, Description, DescriptionField, Framing, Order, Payload, Ports, Protocol, Sizes, Vxlan,
};

use super::frames::{Frames, Template};
use super::schedule::{Burst, Schedule, Speed};
use crate::args::{ConfineArgs, MORE};
use crate::failure::Failure;
use crate::sending::{SendingArgs, Snapped, mac, rate};
use crate::{interfaces, units};

const EXAMPLES: &str = "\
Examples:
  weir gen -i eth1 -c 1000000
        Send a million frames of 60 bytes, UDP over IPv4, as fast as possible.
  weir gen -i eth1 --size imix --rate 2Gbps --duration 1m
        Send frames of 60, 590 and 1514 bytes in proportions 7:4:1, for a minute.
  weir gen -i eth1 --flows 1000 --order zipf:1.2 --rate 500kpps
        Send a thousand flows, of which few have most of the frames, so that receive queues are
        loaded unequally.
  weir gen -i eth1 --burst 100/10ms
        Send a hundred frames at once every 10 ms.
  weir gen -i eth1 --proto tcp:syn --flows 65536 --src 10.0.0.0/8 --dst 10.99.0.1 --dport 443 --drawn
        Send SYNs to one server from random addresses and ports.
  weir gen -i eth1 -6 --vlan 7 --proto icmp --size 100-1500
        Send ICMPv6 echo requests of all these sizes in VLAN 7.
  weir gen -i eth1 --vxlan 42 --flows 100
        Send flows in a VXLAN tunnel.
  weir gen -i eth1 --template trace.pcapng --sign -c 1000000 --rate 100kpps
        Send the packets of a file in turn, with a signature in each.
  weir gen -i eth1 --template hex:ffffffffffff0200000000010806 -c 1
        Send a frame of these bytes.
  weir gen -w frames.pcapng --flows 10 -c 100
        Look at the frames first; needs no privileges.

Frames are real packets: other hosts act on them. The defaults are a destination MAC address that no device has, and \
IP addresses for benchmarks (198.18.0.0/15, 2001:2::/48). Set --dst-mac where there are switches or routers between \
here and the receiver.
Behind its headers each frame has a signature (18 bytes: stream, number, time), then zeros or a pattern. Checksums are right. The \
same options give the same frames, but for the time. A size counts the frame without its check sequence.
Exit status: 0 success (also after Ctrl-C), 1 error, with what was sent before, 2 usage error.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct GenArgs {
    /// Interface to send on; NAMESPACE/IF for one in another network namespace.
    #[arg(short, long, value_name = "IF", required_unless_present = "write", allow_hyphen_values = true)]
    interface: Option<String>,

    /// Write the frames to FILE instead; - is standard output.
    ///
    /// The file is pcapng, or pcap if its name ends so; with .gz, .zst or .lz4 behind that, compressed.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["interface", "netns"])]
    pub(super) write: Option<PathBuf>,

    /// Find the interface in this network namespace.
    ///
    /// NS is a name known to `ip netns` or Docker, the PID of a process in the namespace, or a path.
    #[arg(long, value_name = "NS")]
    netns: Option<String>,

    /// Stop after N frames.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, allow_hyphen_values = true)]
    #[arg(help_heading = "Stop conditions")]
    pub(super) count: Option<u64>,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Stop conditions")]
    duration: Option<Duration>,

    /// Send the packets of a capture file, or a frame in hexadecimal: FILE, hex:ff0a...
    ///
    /// They are sent in turn, as they are; -c counts packets. May be given several times. Between bytes,
    /// hex: allows spaces, colons, dots and hyphens. --dst-mac and --src-mac replace addresses, but for
    /// groups; packets without an Ethernet header (`-i any`, raw IP) get one from --dst-mac.
    #[arg(long, value_name = "FILE|hex:BYTES", help_heading = "Frames", conflicts_with_all = [
        "size", "payload", "proto", "ipv6", "vlan", "vxlan", "flows", "order", "src", "dst",
        "sport", "dport", "drawn", "seed",
    ])]
    pub(super) template: Vec<Template>,

    /// Put a signature at the beginning of the payload of each template.
    ///
    /// It replaces 18 bytes behind the header of TCP, UDP or ICMP; the checksum changes accordingly. Templates that are
    /// too short for it are left out, and weir says how many.
    #[arg(long, requires = "template", help_heading = "Frames")]
    pub(super) sign: bool,

    /// What to do with packets of templates of which the capture kept only the first bytes.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "HOW",
        value_enum,
        default_value_t,
        requires = "template"
    )]
    #[arg(help_heading = "Frames")]
    snapped: Snapped,

    /// Bytes of each frame: 60, 60-1514, imix.
    ///
    /// A range has each size equally often, in random order. imix: 60, 590 and 1514 bytes in proportions
    /// 7:4:1; headers that need more than 60 get the shortest frame that is possible. Default: the
    /// shortest frame that is possible.
    #[arg(long, value_name = "SIZE", help_heading = "Frames", allow_hyphen_values = true)]
    size: Option<Sizes>,

    /// What follows the signature: zeros or pattern.
    ///
    /// pattern: bytes without a period, and the number of the frame at the end, so that a receiver can
    /// notice any that were changed. Needs frames of one size.
    #[arg(long, value_name = "BYTES", default_value = "zeros", hide_default_value = true)]
    #[arg(hide_short_help = true, help_heading = "Frames")]
    payload: Payload,

    /// Protocol: udp, icmp (echo requests), tcp, or tcp with flags, such as tcp:syn,ack.
    ///
    /// Flags: fin, syn, rst, psh, ack, urg, ece, cwr, or none. Default: ack.
    #[arg(long, value_name = "PROTO", default_value = "udp", hide_default_value = true)]
    #[arg(help_heading = "Frames")]
    proto: Protocol,

    /// Send IPv6; implied by addresses of IPv6.
    #[arg(short = '6', long, help_heading = "Frames")]
    ipv6: bool,

    /// Tag frames with this VLAN ID; 7,8: two tags, the outer one first.
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = "Frames")]
    vlan: Vec<u16>,

    /// Put frames into a VXLAN tunnel with this network identifier.
    #[arg(long, value_name = "VNI", help_heading = "Frames")]
    vxlan: Option<u32>,

    /// Source address of the tunnel. Default: 198.18.0.1.
    #[arg(hide_short_help = true, long, value_name = "ADDR", requires = "vxlan", help_heading = "Frames")]
    tunnel_src: Option<Ipv4Addr>,

    /// Destination address of the tunnel. Default: 198.19.0.1.
    #[arg(hide_short_help = true, long, value_name = "ADDR", requires = "vxlan", help_heading = "Frames")]
    tunnel_dst: Option<Ipv4Addr>,

    /// Source MAC address. Default: that of the interface.
    #[arg(id = "src_mac", long = "src-mac", value_name = "MAC", value_parser = mac, help_heading = "Frames")]
    pub(super) source_mac: Option<[u8; 6]>,

    /// Destination MAC address. Default: 02:00:00:00:00:02, which no device should have.
    #[arg(id = "dst_mac", long = "dst-mac", value_name = "MAC", value_parser = mac, help_heading = "Frames")]
    destination_mac: Option<[u8; 6]>,

    /// Number of flows.
    ///
    /// No two flows have the same addresses and ports.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Flows")]
    flows: u32,

    /// Order of flows: turn, random, zipf or zipf:EXPONENT.
    ///
    /// turn: one after the other; random: each equally often; zipf: the second has 1/2^s of the frames of
    /// the first, the third 1/3^s, and so on; s is 1.1 by default.
    #[arg(long, value_name = "ORDER", default_value = "turn", hide_default_value = true)]
    #[arg(help_heading = "Flows")]
    order: Order,

    /// Source addresses: ADDR, CIDR or FIRST-LAST.
    ///
    /// Each flow has the next address of its range, and the next port, and begins anew at the end. Default:
    /// 198.18.0.1-198.18.255.254, or 2001:2::1-2001:2::ffff.
    #[arg(long, value_name = "ADDR", help_heading = "Flows")]
    src: Option<Addresses>,

    /// Destination addresses. Default: 198.19.0.1, or 2001:2:0:1::1.
    #[arg(long, value_name = "ADDR", help_heading = "Flows")]
    dst: Option<Addresses>,

    /// Source ports: PORT or FIRST-LAST; with icmp, identifiers. Default: 50000-65535.
    #[arg(long, value_name = "PORT", help_heading = "Flows", allow_hyphen_values = true)]
    sport: Option<Ports>,

    /// Destination ports; with icmp, sequence numbers. Default: 9 (discard).
    #[arg(long, value_name = "PORT", help_heading = "Flows", allow_hyphen_values = true)]
    dport: Option<Ports>,

    /// Draw addresses and ports of each flow from their ranges, instead of counting.
    #[arg(long, help_heading = "Flows")]
    drawn: bool,

    /// Number that determines all that is random.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Flows")]
    seed: u64,

    /// Number of the stream in signatures, which tells several generators apart.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Flows")]
    pub(super) stream: u16,

    /// Send evenly, at this rate: 500kpps, 2Gbps. Default: as fast as possible.
    ///
    /// Packets per second: pps, kpps, Mpps. Bits per second: bps, kbps, Mbps, Gbps; they count frames
    /// without check sequence, preamble and gap.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Pace", allow_hyphen_values = true)]
    rate: Option<Pace>,

    /// Send N frames at once, every T: 100/10ms.
    #[arg(long, value_name = "N/T", value_parser = burst, conflicts_with = "rate", help_heading = "Pace")]
    #[arg(allow_hyphen_values = true)]
    burst: Option<Burst>,

    /// Print the summary as one JSON object on standard output.
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Print only errors (and the JSON summary).
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) sending: SendingArgs,

    #[command(flatten)]
    pub(super) confine: ConfineArgs,
}

impl GenArgs {
    /// Checks what clap does not.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !self.template.is_empty() && self.sending.is_live() {
            let message = "cannot send templates by --backend live: the kernel makes its frames itself";
            return Err(Failure::usage(message).hint("try --backend ring"));
        }
        let Some(path) = &self.write else { return Ok(()) };
        if self.count.is_none() && self.duration.is_none() {
            return Err(Failure::usage("cannot write frames without end: they would fill the disk")
                .hint("try -c 1000"));
        }
        if self.json && path.as_os_str() == "-" {
            return Err(Failure::usage("-w - and --json both need standard output"));
        }
        Ok(())
    }

    /// Reads the templates, for a destination or a file. `sender`: who sends packets that do not say.
    pub(super) fn read_templates(
        &self,
        to: Option<&Destination>,
        sender: [u8; 6],
    ) -> Result<Frames, Failure> {
        let (destination, source) = (self.destination_mac, self.source_mac);
        let framing = Framing { destination, source, sender };
        let framing = (destination.is_some() || source.is_some()).then_some(framing);
        Frames::read(&self.template, to, self.sign, framing, self.snapped)
    }

    /// Returns what frames are wanted.
    pub(super) fn description(&self) -> Result<Description, Failure> {
        let named = self.src.or(self.dst);
        if self.ipv6 && named.is_some_and(|addresses| !addresses.is_ipv6()) {
            return Err(Failure::usage("-6 contradicts addresses of IPv4").hint("leave out one of them"));
        }
        let default = Description::new(self.ipv6 || named.is_some_and(|addresses| addresses.is_ipv6()));
        let vxlan = self.vxlan.map(|vni| {
            let Vxlan { ends: [source, destination], .. } = Vxlan::new(vni);
            let ends = [self.tunnel_src.unwrap_or(source), self.tunnel_dst.unwrap_or(destination)];
            Vxlan { vni, ends }
        });
        Ok(Description {
            macs: [
                self.source_mac.unwrap_or(default.macs[0]),
                self.destination_mac.unwrap_or(default.macs[1]),
            ],
            vlans: self.vlan.clone(),
            vxlan,
            protocol: self.proto,
            sources: self.src.unwrap_or(default.sources),
            destinations: self.dst.unwrap_or(default.destinations),
            source_ports: self.sport.unwrap_or(default.source_ports),
            destination_ports: self.dport.unwrap_or(default.destination_ports),
            flows: self.flows,
            drawn: self.drawn,
            order: self.order,
            sizes: self.size,
            payload: self.payload,
            seed: self.seed,
        })
    }

    /// Returns the files to read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.template.iter().filter_map(Template::file).map(PathBuf::from).collect()
    }

    pub(super) fn schedule(&self) -> Schedule {
        let speed = match (self.burst, self.rate) {
            (Some(burst), _) => Speed::Bursts(burst),
            (None, Some(Pace::PacketsPerSecond(rate))) => Speed::PacketsPerSecond(rate),
            (None, Some(Pace::BitsPerSecond(rate))) => Speed::BitsPerSecond(rate),
            (None, _) => Speed::Top,
        };
        Schedule::new(speed, self.count, self.duration)
    }

    /// Returns where to send.
    pub(super) fn place(&self) -> Result<(Option<Namespace>, String), Failure> {
        let name = self.interface.as_deref().unwrap_or_default();
        match &self.netns {
            Some(namespace) => Ok((Some(Namespace::find(namespace)?), name.to_owned())),
            None => interfaces::place(name),
        }
    }
}

/// Returns the option for a part of a description.
pub(super) fn option(field: DescriptionField) -> &'static str {
    match field {
        DescriptionField::Vlans => "--vlan",
        DescriptionField::Vxlan => "--vxlan",
        DescriptionField::Destinations => "--dst",
        DescriptionField::Flows => "--flows",
        DescriptionField::Order => "--order",
        DescriptionField::Sizes => "--size",
        DescriptionField::Payload => "--payload",
    }
}

/// Parses `--burst`.
fn burst(text: &str) -> Result<Burst, String> {
    const ALLOWED: &str = "allowed: frames and a time, such as 100/10ms";
    let (frames, every) = text.split_once('/').ok_or_else(|| format!("no `/`; {ALLOWED}"))?;
    let frames = units::count(frames).map_err(|why| format!("{why}; {ALLOWED}"))?;
    let every = units::duration(every).map_err(|why| format!("{why}; {ALLOWED}"))?;
    Ok(Burst { frames, every })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_addresses() {
        assert_eq!(burst("100/10ms"), Ok(Burst { frames: 100, every: Duration::from_millis(10) }));
        for (text, why) in [("100", "no `/`"), ("0/1s", "allowed"), ("5/0s", "zero"), ("5/10", "unit")] {
            let error = burst(text).expect_err(text);
            assert!(error.contains(why) && error.contains("100/10ms"), "{text}: {error}");
        }
        assert_eq!(mac("02:0a:ff:00:00:01"), Ok([2, 10, 255, 0, 0, 1]));
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:01",
            "2:0:0:0:0:1",
            "02:00:00:00:00:0g",
            "+2:00:00:00:00:00",
        ] {
            assert!(mac(text).expect_err(text).contains("allowed"), "{text}");
        }
    }
}
