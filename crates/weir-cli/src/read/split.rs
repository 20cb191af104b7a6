//! Assigns packets to files (`--split-by`), and names the files.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir::{FileInterface, Packet};
use weir_dissect::{Dissector, Facts, Options};
use weir_packet::{Endpoint, Flow};
use weir_render::Beneath;

use crate::{protocol, units};

/// The criterion for splitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// This much time per file, counted from the first packet.
    Time(Duration),
    /// At most this many bytes per file, uncompressed, but at least one packet.
    Size(u64),
    /// This many packets per file.
    Count(u64),
    /// One file for both directions of each conversation.
    Flow,
    /// One file for each interface; from a file of `any`, for each that packets passed.
    Interface,
}

/// Parses `time:1h`, `size:100MB`, `count:N`, `flow`, `interface`.
pub(crate) fn parse(text: &str) -> Result<Split, String> {
    let (what, value) = text.split_once(':').map_or((text, None), |(what, value)| (what, Some(value)));
    match (what, value) {
        ("time", Some(value)) => units::duration(value).map(Split::Time),
        ("size", Some(value)) => units::size_with_unit(value).map(Split::Size),
        ("count", Some(value)) => units::count(value).map(Split::Count),
        ("flow", None) => Ok(Split::Flow),
        ("interface", None) => Ok(Split::Interface),
        _ => Err("allowed: time:1h, size:100MB, count:1000, flow, interface".to_owned()),
    }
}

/// Assigns packets to files numbered from 0, and labels the files.
#[derive(Debug)]
pub(crate) struct Sorter {
    split: Split,
    /// For files that follow each other: the current file, its number of packets, and the time of its first packet.
    current: usize,
    packets: u64,
    began: Option<u64>,
    dissector: Dissector,
    line: Vec<u8>,
    /// Files by flow; `None`: that of all packets that are not IP.
    flows: HashMap<Option<Flow>, usize>,
    /// Flows by file number.
    ends: Vec<Option<Flow>>,
    /// Labels of interfaces, by number, and the interfaces that one of them may stand for.
    interfaces: Vec<(String, Beneath)>,
    /// Files by interface, and by the index of the one that packets passed.
    places: HashMap<(u32, Option<u32>), usize>,
    /// Labels of these files, by number.
    labels: Vec<String>,
    /// Labels in use, each with the last number that was appended to it.
    taken: HashMap<String, u32>,
}

impl Sorter {
    pub(crate) fn new(split: Split) -> Self {
        let dissector = Dissector::new(Options { quick: true, no_dump: true, ..Options::default() });
        Self {
            split,
            current: 0,
            packets: 0,
            began: None,
            dissector,
            line: Vec::new(),
            flows: HashMap::new(),
            ends: Vec::new(),
            interfaces: Vec::new(),
            places: HashMap::new(),
            labels: Vec::new(),
            taken: HashMap::new(),
        }
    }

    /// Adds an interface, with a unique label.
    pub(crate) fn interface(&mut self, interface: &FileInterface) {
        let label = match interface.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => safe(name),
            None => format!("interface{}", self.interfaces.len()),
        };
        let label = self.own(label);
        self.interfaces.push((label, Beneath::of(interface)));
    }

    /// Returns the file of the interface that a packet passed.
    fn interface_of(&mut self, packet: &Packet<'_>) -> usize {
        let interface = self.interfaces.get(packet.interface as usize);
        let index = interface.and_then(|(_, beneath)| beneath.index(packet.data));
        if let Some(file) = self.places.get(&(packet.interface, index)) {
            return *file;
        }
        let label = match (interface, index) {
            (Some((label, beneath)), Some(index)) => {
                let label = beneath.name(index).map_or_else(|| format!("{label}-{index}"), safe);
                self.own(label)
            }
            (Some((label, _)), None) => label.clone(),
            (None, _) => format!("interface{}", packet.interface),
        };
        self.places.insert((packet.interface, index), self.labels.len());
        self.labels.push(label);
        self.labels.len() - 1
    }

    /// Returns a unique label: this one, or with a number appended.
    fn own(&mut self, label: String) -> String {
        let mut own = label.clone();
        while self.taken.contains_key(&own) {
            let number = self.taken.entry(label.clone()).or_insert(1);
            *number += 1;
            own = format!("{label}-{number}");
        }
        self.taken.insert(own.clone(), 1);
        own
    }

    /// Returns the most files, unless the user says: a scan has a flow for each of its packets.
    pub(crate) fn usual_most(&self) -> u64 {
        if self.one_after_another() { u64::MAX } else { 1000 }
    }

    /// Returns whether a file is finished as soon as another has begun.
    pub(crate) fn one_after_another(&self) -> bool {
        !matches!(self.split, Split::Flow | Split::Interface)
    }

    /// Returns the file of a packet. `size`: size of the current file with this packet.
    pub(crate) fn file_of(
        &mut self,
        packet: &Packet<'_>,
        link_type: u16,
        size: impl FnOnce() -> u64,
    ) -> usize {
        let full = match self.split {
            Split::Interface => return self.interface_of(packet),
            Split::Flow => return self.flow_of(packet, link_type),
            Split::Count(most) => self.packets == most,
            Split::Size(most) => self.packets > 0 && size() > most,
            Split::Time(length) => {
                let began = *self.began.get_or_insert(packet.timestamp);
                let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
                // An earlier packet goes to the current file; empty intervals create no files.
                let after = packet.timestamp.saturating_sub(began) / length;
                self.began = Some(began + after * length);
                after > 0
            }
        };
        if full {
            self.current += 1;
            self.packets = 0;
        }
        self.packets += 1;
        self.current
    }

    fn flow_of(&mut self, packet: &Packet<'_>, link_type: u16) -> usize {
        let flow = Flow::outer(link_type, packet.data).map(|(flow, _)| flow).or_else(|| {
            // The dissector looks behind more: LLC, MACsec that does not encrypt, NSH.
            self.line.clear();
            flow(&self.dissector.packet(link_type, packet.data, packet.original_len, &mut self.line))
        });
        *self.flows.entry(flow).or_insert_with(|| {
            self.ends.push(flow);
            self.ends.len() - 1
        })
    }

    /// Returns the label in the name of a file.
    pub(crate) fn label(&self, file: usize) -> String {
        let number = format!("{:05}", file + 1);
        match self.split {
            Split::Interface => self.labels.get(file).cloned().unwrap_or(number),
            Split::Flow => {
                let Some(Some(Flow { protocol, ends })) = self.ends.get(file) else {
                    return format!("{number}-other");
                };
                let protocol =
                    protocol::name(*protocol).map_or_else(|| format!("ip{protocol}"), str::to_owned);
                let mut label = format!("{number}-{protocol}");
                for Endpoint { address, port } in ends {
                    let _cannot_fail = write!(label, "-{address}");
                    if *port > 0 {
                        let _cannot_fail = write!(label, ".{port}");
                    }
                }
                safe(&label)
            }
            _ => number,
        }
    }
}

fn flow(facts: &Facts) -> Option<Flow> {
    let end = |address, port: Option<u16>| Endpoint { address, port: port.unwrap_or(0) };
    let source = end(facts.source?, facts.source_port);
    let destination = end(facts.destination?, facts.destination_port);
    Some(Flow::between(facts.ip_protocol?, source, destination).0)
}

/// Makes text safe for a file name: no directories, and no special characters for shells or `scp`.
fn safe(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    text.chars().map(keep).collect()
}

/// Inserts a label into a path: `dir/trace.pcapng.zst` becomes `dir/trace-LABEL.pcapng.zst`.
pub(crate) fn name(pattern: &Path, label: &str) -> PathBuf {
    let file = pattern.file_name().unwrap_or_default().to_string_lossy();
    let end = [".pcapng", ".pcap", ".ntar", ".cap"].iter().find_map(|suffix| file.rfind(suffix));
    let (stem, suffix) = file.split_at(end.unwrap_or(file.len()));
    pattern.with_file_name(format!("{stem}-{label}{suffix}"))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn ways_to_split() {
        assert_eq!(parse("time:1h"), Ok(Split::Time(Duration::from_secs(3600))));
        assert_eq!(parse("size:100MB"), Ok(Split::Size(100_000_000)));
        assert_eq!(parse("count:7"), Ok(Split::Count(7)));
        assert_eq!(parse("flow"), Ok(Split::Flow));
        assert_eq!(parse("interface"), Ok(Split::Interface));
        for text in ["", "time", "time:5", "size:100", "count:0", "flow:tcp", "hour"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_files() {
        for (pattern, expected) in [
            ("trace.pcapng", "trace-1.pcapng"),
            ("/tmp/a.pcap/trace.pcap.zst", "/tmp/a.pcap/trace-1.pcap.zst"),
            ("trace", "trace-1"),
            ("a.b.pcap", "a.b-1.pcap"),
        ] {
            assert_eq!(name(Path::new(pattern), "1"), Path::new(expected), "{pattern}");
        }
        assert_eq!(safe("../../etc/eth0:1"), ".._.._etc_eth0_1");
    }

    fn packet(interface: u32, data: &[u8]) -> Packet<'_> {
        weir::with!(Packet::new(0, data), original_len = 60, interface)
    }

    #[test]
    fn packets_of_any_go_to_the_file_of_the_interface_that_they_passed() {
        let mut sorter = Sorter::new(Split::Interface);
        let any = weir::with!(
            FileInterface::new(276),
            name = Some("any".to_owned()),
            description = Some("1 lo, 12 eth0".to_owned())
        );
        sorter.interface(&any);
        sorter.interface(&weir::with!(FileInterface::default(), name = Some("lo".to_owned())));
        let mut label = |interface, bytes: &[u8]| {
            let file = sorter.file_of(&packet(interface, bytes), 0, || 0);
            sorter.label(file)
        };
        let cooked = |index: u8| [8, 0, 0, 0, 0, 0, 0, index, 0, 1];
        for (interface, bytes, expected) in [
            (0, &cooked(12)[..], "eth0"),
            (0, &cooked(1), "lo-2"),
            (1, &cooked(12), "lo"),
            (0, &cooked(13), "any-13"),
            (0, &cooked(12), "eth0"),
            (0, &cooked(12)[..7], "any"),
        ] {
            assert_eq!(label(interface, bytes), expected);
        }
    }

    #[test]
    fn each_interface_has_a_name_of_its_own() {
        let mut sorter = Sorter::new(Split::Interface);
        let names = ["eth0", "a/b", "interface3", "", "eth0", "a:b", "eth0", "eth0-2", "eth0.2"];
        for name in names {
            sorter.interface(&weir::with!(FileInterface::default(), name = Some(name.to_owned())));
        }
        let mut labels = Vec::new();
        for interface in 0..9 {
            let file = sorter.file_of(&packet(interface, &[]), 0, || 0);
            assert_eq!(file, sorter.file_of(&packet(interface, &[1; 60]), 0, || 0));
            labels.push(sorter.label(file));
        }
        let expected =
            ["eth0", "a_b", "interface3", "interface3-2", "eth0-2", "a_b-2", "eth0-3", "eth0-2-2", "eth0.2"];
        assert_eq!(labels, expected);
    }
}
