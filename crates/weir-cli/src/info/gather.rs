//! Reads a file once and collects its properties, in bounded memory.

use std::path::Path;

use serde::Serialize;
use weir::reader::{ByteOrder, FileKind, InterfaceStatistics, Item, ReadError, Reader, Section, TimeUnit};
use weir::{FileInterface, Packet};
use weir_render::{Beneath, rfc3339};

use super::timeline::Timeline;
use crate::failure::Failure;
use crate::read::{Piped, Progress, failure};

/// Upper limits of the size classes, in bytes on the wire; the last class has no limit.
pub(crate) const SIZES: [u32; 7] = [63, 127, 255, 511, 1023, 1518, 9000];

/// The properties of a file. Scripts rely on field names: they may be added to, not changed.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) file: String,
    /// `pcap` or `pcapng`.
    pub(crate) format: &'static str,
    /// `little` or `big`.
    pub(crate) byte_order: &'static str,
    /// Unit of timestamps in seconds, such as `1e-9`.
    pub(crate) resolution: Option<String>,
    pub(crate) compression: String,
    /// Size of the file in bytes; absent for a pipe.
    pub(crate) size: Option<u64>,
    pub(crate) packets: u64,
    /// Total length of all packets on the wire, in bytes.
    pub(crate) bytes: u64,
    /// Total length of all packets in the file, in bytes.
    pub(crate) captured_bytes: u64,
    /// Time of the earliest packet, in RFC 3339.
    pub(crate) first: Option<String>,
    /// Time of the latest packet.
    pub(crate) last: Option<String>,
    pub(crate) duration_seconds: Option<f64>,
    pub(crate) average_size: Option<f64>,
    /// Average over the whole time; absent if that is 0, as for a single packet.
    pub(crate) packets_per_second: Option<f64>,
    pub(crate) bits_per_second: Option<f64>,
    /// Whether no packet is earlier than the previous one.
    pub(crate) ordered: bool,
    /// Packets earlier than the previous one.
    pub(crate) out_of_order: u64,
    /// Longest time by which a packet is behind an earlier one, in seconds.
    pub(crate) farthest_back_seconds: f64,
    /// Packets that are shorter in the file than on the wire.
    pub(crate) cut_packets: u64,
    /// Packets by size on the wire: up to 63 bytes, 127, 255, 511, 1023, 1518, 9000, and above.
    pub(crate) sizes: [u64; SIZES.len() + 1],
    pub(crate) comments: Vec<String>,
    pub(crate) packet_comments: u64,
    pub(crate) written_by: Option<String>,
    pub(crate) sections: usize,
    pub(crate) interfaces: Vec<InterfaceSummary>,
    /// Events during the capture, in particular filter changes, as recorded in the file, earliest first.
    pub(crate) events: Vec<Event>,
    /// Number of further events, beyond the limit.
    pub(crate) events_left_out: u64,
    /// `none`, `some`, or `unknown` if the file does not say it of every interface, up to the end.
    pub(crate) loss: Loss,
    /// Packets lost, according to the file; absent if this is unknown. An unfinished capture may have lost more.
    pub(crate) lost: Option<u64>,
    /// Why losses, or further ones, may be missing.
    #[serde(skip)]
    pub(crate) doubt: Option<Doubt>,
    /// Whether statistics count packets that are not in the file. It is then a part of a capture, and no loss percentage
    /// is given.
    pub(crate) partial: bool,
    /// Whether a program that ends its captures with statistics, weir or dumpcap, has not ended this one: it was killed, or is
    /// still writing.
    pub(crate) unfinished: bool,
    /// Why it could not be read to the end.
    pub(crate) damage: Option<String>,
    pub(crate) warnings: Vec<String>,
    #[serde(skip)]
    pub(crate) times: Option<(u64, u64)>,
    #[serde(skip)]
    pub(crate) traffic: Timeline,
    #[serde(skip)]
    pub(crate) error: Option<ReadError>,
}

/// Most events of a file that are kept.
const MOST_EVENTS: usize = 1000;

/// An event from the comment of interface statistics.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    /// Time of the event, in RFC 3339.
    pub(crate) time: Option<String>,
    #[serde(skip)]
    pub(crate) timestamp: u64,
    pub(crate) text: String,
    /// Numbers of the interfaces concerned.
    pub(crate) interfaces: Vec<u32>,
}

/// Whether packets were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Loss {
    /// None, according to the file.
    #[default]
    None,
    /// Some packets were lost.
    Some,
    /// The file does not say.
    Unknown,
}

/// Why a file does not say what was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// pcap files do not record losses.
    Pcap,
    /// The file has no statistics.
    NoStatistics,
    /// The file has no statistics of these interfaces.
    Uncounted(Vec<String>),
    /// The capture has not ended.
    Unfinished,
}

/// The properties of an interface.
#[derive(Debug, Serialize)]
pub(crate) struct InterfaceSummary {
    pub(crate) id: usize,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) link_type: u16,
    pub(crate) snap_len: u32,
    pub(crate) filter: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// The same by the interfaces that packets passed, in a file of `any`.
    pub(crate) beneath: Vec<Passed>,
    /// Sum of the drop counts in its packets.
    pub(crate) lost_by_records: u64,
    /// Packets received and dropped, according to the last statistics.
    pub(crate) received: Option<u64>,
    pub(crate) dropped: Option<u64>,
    /// Packets delivered to the program that wrote the file, according to the last statistics.
    pub(crate) delivered: Option<u64>,
    #[serde(skip)]
    pub(crate) losses: Timeline,
    /// Value of `lost_by_records` at the time of the last statistics.
    #[serde(skip)]
    told: u64,
    /// Packets have followed the last statistics.
    #[serde(skip)]
    goes_on: bool,
    #[serde(skip)]
    others: Beneath,
}

/// Packets that passed an interface, in a file of `any`.
#[derive(Debug, Serialize)]
pub(crate) struct Passed {
    /// 0: further interfaces, beyond the limit.
    pub(crate) ifindex: u32,
    /// Absent if the interface was not there at the start of the capture.
    pub(crate) name: Option<String>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Most interfaces of a file of `any` that are told apart; any packet can name another one.
const MOST_PASSED: usize = 1000;

impl InterfaceSummary {
    fn new(id: usize, interface: &FileInterface) -> Self {
        Self {
            id,
            name: interface.name.clone(),
            description: interface.description.clone(),
            link_type: interface.link_type,
            snap_len: interface.snap_len,
            filter: interface.filter.clone(),
            os: interface.os.clone(),
            comment: interface.comment.clone(),
            packets: 0,
            bytes: 0,
            beneath: Vec::new(),
            lost_by_records: 0,
            received: None,
            dropped: None,
            delivered: None,
            losses: Timeline::default(),
            told: 0,
            goes_on: true,
            others: Beneath::of(interface),
        }
    }

    /// Counts a packet of a file of `any` by the interface that it passed.
    fn passed(&mut self, index: u32, bytes: u64) {
        let place = |passed: &[Passed], index| passed.binary_search_by_key(&index, |passed| passed.ifindex);
        let at = match place(&self.beneath, index) {
            Err(_) if self.beneath.len() >= MOST_PASSED => place(&self.beneath, 0),
            found => found,
        };
        let at = at.unwrap_or_else(|at| {
            let ifindex = if self.beneath.len() >= MOST_PASSED { 0 } else { index };
            let name = self.others.name(ifindex).map(str::to_owned);
            self.beneath.insert(at, Passed { ifindex, name, packets: 0, bytes: 0 });
            at
        });
        self.beneath[at].packets += 1;
        self.beneath[at].bytes += bytes;
    }

    /// Returns the number of packets lost. Statistics include losses on the card and after the last packet; a truncated
    /// capture only has the records.
    pub(crate) fn lost(&self) -> u64 {
        self.lost_by_records.max(self.dropped.unwrap_or(0))
    }

    /// Returns whether the file has fewer packets than its statistics count, because some were left out.
    fn is_part(&self) -> bool {
        self.delivered.is_some_and(|delivered| delivered > self.packets)
    }

    /// Returns the name, or the number.
    fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("interface {}", self.id))
    }

    /// Adds statistics. Losses that are missing from records are assigned to their time.
    fn statistics(&mut self, statistics: &InterfaceStatistics) {
        let dropped = match (statistics.dropped, statistics.dropped_by_os) {
            (None, other) | (other, None) => other,
            // dumpcap puts the sum into the first field, others keep them apart; the result is at least as large as
            // each.
            (Some(dropped), Some(by_os)) => Some(dropped.max(by_os)),
        };
        self.goes_on = false;
        self.received = statistics.received.or(self.received);
        let arrived = statistics.accepted.or(statistics.received);
        let arrived = arrived.map(|arrived| arrived.saturating_sub(dropped.unwrap_or(0)));
        self.delivered = statistics.delivered.or(arrived).or(self.delivered);
        if let Some(dropped) = dropped {
            let grown = dropped.saturating_sub(self.dropped.unwrap_or(0));
            let beyond = grown.saturating_sub(self.lost_by_records - self.told);
            if beyond > 0 {
                self.losses.add(statistics.timestamp, beyond);
            }
            self.told = self.lost_by_records;
            self.dropped = Some(dropped);
        }
    }
}

impl Summary {
    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// Nothing of the file can be read. Damage after the start is recorded in [`Summary::error`].
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let mut piped = Piped::begin(&[path])?;
        let mut reader = Reader::open(path).map_err(failure)?.pausing();
        let progress = Progress::new(vec![reader.meter()], reader.size(), false);
        let mut gathered = Gathered::default();
        let error = loop {
            if piped.as_mut().is_some_and(|piped| !piped.goes_on()) {
                break None;
            }
            let described = match reader.next() {
                Ok(Some(Item::Packet(packet))) => {
                    gathered.packet(&packet);
                    None
                }
                Ok(Some(Item::Interface(number))) => Some(number),
                Ok(Some(Item::Statistics(statistics))) => {
                    gathered.statistics(&statistics);
                    None
                }
                Ok(Some(Item::Pause)) => {
                    piped.iter_mut().for_each(Piped::pause);
                    None
                }
                Ok(Some(Item::Block { .. })) => None,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            if let Some(interface) = described.and_then(|number| reader.interfaces().get(number as usize)) {
                gathered.interfaces.push(InterfaceSummary::new(gathered.interfaces.len(), interface));
            }
        };
        drop(progress);
        Ok(gathered.into_summary(&reader, error))
    }
}

/// The state of reading a file.
#[derive(Debug, Default)]
struct Gathered {
    packets: u64,
    bytes: u64,
    captured: u64,
    cut: u64,
    sizes: [u64; SIZES.len() + 1],
    comments: u64,
    /// Earliest and latest.
    times: Option<(u64, u64)>,
    previous: u64,
    out_of_order: u64,
    farthest_back: u64,
    traffic: Timeline,
    interfaces: Vec<InterfaceSummary>,
    events: Vec<Event>,
    events_left_out: u64,
}

impl Gathered {
    fn packet(&mut self, packet: &Packet<'_>) {
        self.packets += 1;
        let len = u64::from(packet.original_len);
        self.bytes += len;
        self.captured += packet.data.len() as u64;
        self.cut += u64::from((packet.data.len() as u64) < len);
        let class = SIZES.iter().position(|&end| packet.original_len <= end).unwrap_or(SIZES.len());
        self.sizes[class] += 1;
        self.comments += u64::from(packet.comment.is_some());
        let time = packet.timestamp;
        if !packet.notes.is_timeless() {
            let (first, last) = self.times.get_or_insert((time, time));
            if time < self.previous {
                self.out_of_order += 1;
                self.farthest_back = self.farthest_back.max(*last - time);
            }
            (*first, *last) = ((*first).min(time), (*last).max(time));
            self.previous = time;
            self.traffic.add(time, 1);
        }
        if let Some(interface) = self.interfaces.get_mut(packet.interface as usize) {
            interface.packets += 1;
            interface.goes_on = true;
            interface.bytes += len;
            if let Some(index) = interface.others.index(packet.data) {
                interface.passed(index, len);
            }
            if packet.lost_before > 0 {
                interface.lost_by_records += packet.lost_before;
                interface.losses.start_at(self.times.map_or(time, |(first, _)| first));
                interface.losses.add(time, packet.lost_before);
            }
        }
    }

    fn statistics(&mut self, statistics: &InterfaceStatistics) {
        if let Some(interface) = self.interfaces.get_mut(statistics.interface as usize) {
            if let Some((first, _)) = self.times {
                interface.losses.start_at(first);
            }
            interface.statistics(statistics);
        }
        if let Some(text) = &statistics.comment {
            self.event(statistics.interface, statistics.timestamp, text);
        }
    }

    /// Adds an event. The same event follows for each interface in turn.
    fn event(&mut self, interface: u32, timestamp: u64, text: &str) {
        let last = self.events.last_mut();
        if let Some(last) = last.filter(|last| last.timestamp == timestamp && last.text == text) {
            last.interfaces.push(interface);
        } else if self.events.len() < MOST_EVENTS {
            let (time, text) = (rfc3339(timestamp), text.to_owned());
            self.events.push(Event { time, timestamp, text, interfaces: vec![interface] });
        } else {
            self.events_left_out += 1;
        }
    }

    /// Returns why losses may be missing, if they may.
    fn doubt(&self, pcapng: bool, unfinished: bool) -> Option<Doubt> {
        let uncounted: Vec<_> =
            self.interfaces.iter().filter(|interface| interface.dropped.is_none()).collect();
        match uncounted.len() {
            _ if !pcapng => Some(Doubt::Pcap),
            _ if unfinished => Some(Doubt::Unfinished),
            all if all == self.interfaces.len() => Some(Doubt::NoStatistics),
            0 => None,
            _ => Some(Doubt::Uncounted(uncounted.into_iter().map(InterfaceSummary::label).collect())),
        }
    }

    fn into_summary(mut self, reader: &Reader, error: Option<ReadError>) -> Summary {
        self.events.sort_by_key(|event| event.timestamp);
        let format = reader.format();
        let pcapng = format.kind == FileKind::Pcapng;
        let written_by = reader.sections().iter().find_map(|section| section.user_application.clone());
        let ends = |by: &String| ["weir ", "Dumpcap"].iter().any(|name| by.starts_with(name));
        // Other files of theirs, such as copies of pcap files, may have no statistics at all.
        let is_open = |interface: &InterfaceSummary| interface.goes_on && interface.os.is_some();
        let unfinished = self.interfaces.iter().any(is_open) && written_by.as_ref().is_some_and(ends);
        let doubt = self.doubt(pcapng, unfinished);
        let lost: u64 = self.interfaces.iter().map(InterfaceSummary::lost).sum();
        let loss = match (lost, &doubt) {
            (0, None) => Loss::None,
            (0, Some(_)) => Loss::Unknown,
            _ => Loss::Some,
        };
        let partial = self.interfaces.iter().any(InterfaceSummary::is_part);
        let seconds = |nanoseconds: u64| std::time::Duration::from_nanos(nanoseconds).as_secs_f64();
        let duration = self.times.map(|(first, last)| seconds(last - first));
        let per_second =
            |count: u64| duration.filter(|&duration| duration > 0.0).map(|duration| float(count) / duration);
        Summary {
            file: reader.name().to_owned(),
            format: if pcapng { "pcapng" } else { "pcap" },
            byte_order: match format.byte_order {
                ByteOrder::Little => "little",
                ByteOrder::Big => "big",
            },
            resolution: format.resolution.map(unit),
            compression: format.compression.to_string(),
            size: reader.size(),
            packets: self.packets,
            bytes: self.bytes,
            captured_bytes: self.captured,
            first: self.times.and_then(|(first, _)| rfc3339(first)),
            last: self.times.and_then(|(_, last)| rfc3339(last)),
            duration_seconds: duration,
            average_size: (self.packets > 0).then(|| float(self.bytes) / float(self.packets)),
            packets_per_second: per_second(self.packets),
            bits_per_second: per_second(self.bytes * 8),
            ordered: self.out_of_order == 0,
            out_of_order: self.out_of_order,
            farthest_back_seconds: seconds(self.farthest_back),
            cut_packets: self.cut,
            sizes: self.sizes,
            comments: reader.sections().iter().flat_map(Section::comments).map(str::to_owned).collect(),
            packet_comments: self.comments,
            written_by,
            unfinished,
            sections: reader.sections().len(),
            interfaces: self.interfaces,
            events: self.events,
            events_left_out: self.events_left_out,
            loss,
            lost: (loss != Loss::Unknown).then_some(lost),
            doubt,
            partial,
            damage: error.as_ref().map(ToString::to_string),
            warnings: reader.warnings().iter().map(ToString::to_string).collect(),
            times: self.times,
            traffic: self.traffic,
            error,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates and averages are shown with three digits")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// Returns the unit of timestamps in seconds, according to `if_tsresol`.
fn unit(unit: TimeUnit) -> String {
    match unit.resolution() {
        decimal @ 0..0x80 => format!("1e-{decimal}"),
        binary => format!("2^-{}", binary & 0x7f),
    }
}
