//! Encodes everything in a file except chunks, and converts chunks to classic pcap.

use weir_savefile::pcap::{self, Resolution};
use weir_savefile::pcapng::{self, InterfaceDescription, InterfaceStatistics, SectionHeader};
use weir_savefile::record::{self, Malformed, RecordHeader, Records};

use super::counts::{Count, Counts};
use super::{Format, WriteError, WriterOptions, names};
use crate::file_interface::os;
use crate::reader::Section;
use crate::{Direction, FileInterface, Packet, reader};

/// Offset of the snap length in the header of a pcap file.
const PCAP_SNAP: u64 = 16;
/// Offset of the snap length in an Interface Description Block.
pub(super) const DESCRIPTION_SNAP: u64 = 12;

/// The header of a file, up to the first packet.
pub(super) fn start(interfaces: &[FileInterface], options: &WriterOptions) -> Result<Vec<u8>, WriteError> {
    match options.format.pcap() {
        None => Ok(pcapng_start(interfaces, options)),
        Some(resolution) => pcap_start(interfaces, resolution),
    }
}

fn pcapng_start(interfaces: &[FileInterface], options: &WriterOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let here =
        Section { hardware: Some(std::env::consts::ARCH.to_owned()), os: Some(os()), ..Default::default() };
    let section = options.section.as_ref().unwrap_or(&here);
    let application = Some(&options.user_application).filter(|name| !name.is_empty());
    let application = application.map(|name| match options.rotation.rotates() {
        true => format!("{name}{}", names::OF_A_RING),
        false => name.clone(),
    });
    SectionHeader {
        hardware: section.hardware.as_deref(),
        os: section.os.as_deref(),
        user_application: application.as_deref(),
        comment: options.comment.as_deref().or(section.comment.as_deref()),
        more: &section.more,
    }
    .append_to(&mut out);
    for each in interfaces {
        interface(each, &mut out);
    }
    out
}

/// Appends the description of an interface.
pub(super) fn interface(interface: &FileInterface, out: &mut Vec<u8>) {
    InterfaceDescription {
        link_type: interface.link_type,
        snap_len: interface.snap_len,
        name: interface.name.as_deref(),
        description: interface.description.as_deref(),
        mac: interface.mac,
        speed_bits: interface.speed_bits,
        filter: interface.filter.as_deref(),
        os: interface.os.as_deref(),
        hardware: interface.hardware.as_deref(),
        fcs_len: interface.fcs_len,
        comment: interface.comment.as_deref(),
        more: &interface.more,
    }
    .append_to(out);
}

fn pcap_start(interfaces: &[FileInterface], resolution: Resolution) -> Result<Vec<u8>, WriteError> {
    let link_type = one_link_type(interfaces)?;
    let fcs_len = interfaces.first().and_then(|interface| interface.fcs_len);
    let fcs_len = fcs_len.filter(|len| interfaces.iter().all(|interface| interface.fcs_len == Some(*len)));
    Ok(pcap::file_header(resolution, pcap_snap_len(interfaces), link_type, fcs_len).to_vec())
}

/// The snap length in the header of a pcap file with these interfaces; 0: unlimited.
pub(super) fn pcap_snap_len(interfaces: &[FileInterface]) -> u32 {
    let lengths = interfaces.iter().map(|interface| interface.snap_len);
    if lengths.clone().any(|len| len == 0) { 0 } else { lengths.max().unwrap_or_default() }
}

/// Offsets of the snap lengths in the header of a file: one in pcap, one per interface in pcapng.
pub(super) fn snap_places(format: Format, start: &[u8]) -> Vec<u64> {
    if format != Format::Pcapng {
        return vec![PCAP_SNAP];
    }
    let (mut places, mut at) = (Vec::new(), 0);
    while let Some((head, _)) = start[at..].split_first_chunk::<8>() {
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if word(0) == pcapng::INTERFACE_DESCRIPTION {
            places.push(at as u64 + DESCRIPTION_SNAP);
        }
        at += word(4) as usize;
    }
    places
}

/// The link type of all `interfaces`; Ethernet if there are none.
pub(super) fn one_link_type(interfaces: &[FileInterface]) -> Result<u16, WriteError> {
    const ETHERNET: u16 = 1;
    let link_type = interfaces.first().map_or(ETHERNET, |interface| interface.link_type);
    if interfaces.iter().any(|interface| interface.link_type != link_type) {
        let name = |i: &FileInterface| i.name.clone().unwrap_or_else(|| "an unnamed interface".to_owned());
        let each: Vec<_> = interfaces.iter().map(|i| format!("{} has {}", name(i), i.link_type)).collect();
        return Err(WriteError::LinkTypes { each: each.join(", ") });
    }
    Ok(link_type)
}

/// Returns whether a pcapng file can record that `packet` has no timestamp. That takes a Simple Packet Block, which
/// only holds packets of the first interface that are not cut except at its snap length.
pub(super) fn can_omit_timestamp(packet: &Packet<'_>, data: &[u8], snap_len: u32) -> bool {
    let limit = if snap_len == 0 { u32::MAX } else { snap_len };
    packet.notes.is_timeless()
        && (packet.timestamp, packet.interface, packet.queue, packet.lost_before) == (0, 0, 0, 0)
        && packet.direction.is_none()
        && packet.comment.is_none()
        && data.len() == packet.original_len.min(limit) as usize
}

/// Appends a packet with these bytes as a record; `None`: it is too long. `snap_len`: that of its interface.
#[inline]
pub(super) fn packet(
    format: Format,
    packet: &Packet<'_>,
    data: &[u8],
    snap_len: u32,
    out: &mut Vec<u8>,
) -> Option<()> {
    let Some(resolution) = format.pcap() else {
        if packet.notes.is_timeless() && can_omit_timestamp(packet, data, snap_len) {
            return pcapng::append_simple_packet(out, packet.original_len, data);
        }
        let flags = packet.direction.and_then(|direction| match direction {
            Direction::In => Some(record::INBOUND),
            Direction::Out => Some(record::OUTBOUND),
            Direction::Both => None,
        });
        let header = RecordHeader {
            interface: packet.interface,
            timestamp: packet.timestamp,
            original_len: packet.original_len,
            flags,
            dropcount: Some(packet.lost_before).filter(|&lost| lost > 0),
            // Without a queue, a record reads as queue 0.
            queue: Some(packet.queue).filter(|&queue| queue > 0),
        };
        return record::append(out, &header, data, packet.comment, &packet.notes);
    };
    let captured = u32::try_from(data.len()).ok()?;
    out.extend_from_slice(&pcap::record_header(resolution, packet.timestamp, captured, packet.original_len));
    out.extend_from_slice(data);
    Some(())
}

/// The reason for writing counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion<'a> {
    /// On request.
    Now,
    /// The end of the file; another may follow.
    End,
    /// The end of the last file.
    Close,
    /// An event, described by this text.
    Event(&'a str),
}

/// Appends an Interface Statistics Block for each interface in `now`: the counters since `before`, and what `of_file` returns
/// for it, the packets in the file, and those since `before` that the disk had no room for. Times are nanoseconds since the
/// Unix epoch.
pub(super) fn statistics(
    (before, began): (&Counts, u64),
    (counts, now): (&Counts, u64),
    of_file: impl Fn(u32) -> (u64, u64),
    occasion: Occasion<'_>,
    out: &mut Vec<u8>,
) {
    for (interface, count) in counts.iter() {
        let before = before.get(interface);
        let since = |of: fn(Count) -> u64| of(count).saturating_sub(of(before));
        let (delivered, without_room) = of_file(interface);
        InterfaceStatistics {
            interface,
            timestamp: now,
            start: Some(began),
            end: matches!(occasion, Occasion::End | Occasion::Close).then_some(now),
            received: Some(since(Count::received)),
            dropped: Some(since(Count::dropped) + without_room),
            accepted: Some(since(Count::accepted)),
            delivered: Some(delivered),
            comment: if let Occasion::Event(said) = occasion { Some(said) } else { None },
            ..Default::default()
        }
        .append_to(out);
    }
}

/// Appends counters read from another file.
pub(super) fn interface_statistics(statistics: &reader::InterfaceStatistics, out: &mut Vec<u8>) {
    InterfaceStatistics {
        interface: statistics.interface,
        timestamp: statistics.timestamp,
        start: statistics.start,
        end: statistics.end,
        received: statistics.received,
        dropped: statistics.dropped,
        accepted: statistics.accepted,
        dropped_by_os: statistics.dropped_by_os,
        delivered: statistics.delivered,
        comment: statistics.comment.as_deref(),
    }
    .append_to(out);
}

/// Converts a run of records to pcap records.
pub(super) fn to_pcap(resolution: Resolution, records: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    // A pcap record is never longer than the pcapng record of the same packet.
    out.reserve(records.len());
    for record in Records::new(records) {
        let record = record?;
        let captured = u32::try_from(record.data.len()).expect("a record's length is 32 bits wide");
        out.extend_from_slice(&pcap::record_header(
            resolution,
            record.timestamp,
            captured,
            record.original_len,
        ));
        out.extend_from_slice(record.data);
    }
    Ok(())
}
