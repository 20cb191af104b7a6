//! Prints packets as JSON, one object per line.
//!
//! Scripts rely on field names: they may be added to, not changed. Fields that a packet does not have are omitted.

use std::borrow::Cow;
use std::io;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::Serialize;
use weir::who::Whose;
use weir::{Direction, FileInterface, Packet};
use weir_dissect::{Dissector, Facts, Options};
use weir_parse::{Found, Reader};

use crate::details::Payload;
use crate::owners::OwnerObject;
use crate::{Printed, Ruling, beneath, json};

/// A packet.
#[derive(Debug, Serialize)]
struct Object<'a> {
    /// Number of the packet from 1, in reading order.
    number: u64,
    /// RFC 3339, UTC, with nanoseconds; omitted if there is no timestamp.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// Seconds since the Unix epoch with nine decimals, as text.
    epoch: String,
    /// Name of the interface, or `#` and its number if it has none in the file. In a file of `any`, that of the interface
    /// that the packet passed, if it was there at the start.
    interface: &'a str,
    /// Number of the interface in the file.
    interface_id: u32,
    /// Index of the interface that the packet passed, in a file of `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ifindex: Option<u32>,
    link_type: u16,
    /// `in` or `out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    /// Length on the wire in bytes.
    length: u32,
    /// Length in the file in bytes.
    captured: usize,
    /// Packets lost on this queue just before this one.
    #[serde(skip_serializing_if = "is_zero")]
    lost_before: u64,
    queue: u32,
    /// Several comments are joined by line feeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<Cow<'a, str>>,
    /// The innermost protocol that was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ethertype: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vlan: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inner_vlan: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proto: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sport: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dport: Option<u16>,
    /// tcpdump's letters: `S`, `S.`, `P.`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_flags: Option<String>,
    /// Absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_sequence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_acknowledgement: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_window: Option<u16>,
    /// Length of the TCP or UDP payload in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_length: Option<usize>,
    /// Name of the rule that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    /// Whether a rule decides that `rule` has learned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_learned: bool,
    /// Whether the rules capture the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<bool>,
    /// What the rules do with the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<&'a str>,
    /// What else the rules do.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    also: &'a [String],
    /// Who has sent it, if that is a process of the host that captured it, or may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<OwnerObject<'a>>,
    /// Who gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<OwnerObject<'a>>,
    #[serde(flatten)]
    payload: Payload<'a>,
    /// The line that `weir read` prints, without the timestamp.
    line: &'a str,
}

/// Packets without an object: more than standard output took.
#[derive(Debug, Serialize)]
struct NotPrinted {
    r#type: &'static str,
    packets: u64,
}

/// Packets that were overwritten before they were read.
#[derive(Debug, Serialize)]
struct NotRead {
    r#type: &'static str,
    /// Size of the packets with their headers; there may have been more.
    bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Prints packets as objects.
#[derive(Debug)]
pub struct Objects {
    dissector: Dissector,
    reader: Reader,
    line: Vec<u8>,
    count: u64,
    interfaces: Vec<Printed>,
    /// Of the next packet.
    ruling: Option<Ruling>,
    whose: Option<Whose>,
}

impl Objects {
    /// `options` apply to the field `line`.
    pub fn new(options: Options) -> Self {
        let dissector = Dissector::new(Options { no_dump: true, ..options });
        let (line, interfaces) = (Vec::new(), Vec::new());
        Self { dissector, reader: Reader::default(), line, count: 0, interfaces, ruling: None, whose: None }
    }

    /// Adds an interface.
    pub(crate) fn interface(&mut self, interface: &FileInterface) {
        let name = interface.name.clone().unwrap_or_else(|| format!("#{}", self.interfaces.len()));
        self.interfaces.push(Printed::new(interface, name));
    }

    /// Adds what rules decide about the next packet.
    pub(crate) fn judged(&mut self, ruling: &Ruling) {
        self.ruling = Some(ruling.clone());
    }

    /// Adds whose the next packet is.
    pub(crate) fn owned(&mut self, whose: &Whose) {
        self.whose = Some(whose.clone());
    }

    /// Appends the object of a packet.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>, text: &mut Vec<u8>) -> io::Result<()> {
        self.count += 1;
        let unknown = Printed::default();
        let Printed { link_type, name, others } =
            self.interfaces.get(packet.interface as usize).unwrap_or(&unknown);
        self.line.clear();
        let (data, line) = (packet.data, &mut self.line);
        let (reader, mut found) = (&mut self.reader, None);
        let facts = self.dissector.packet_with_segments(
            others,
            *link_type,
            data,
            packet.original_len,
            line,
            &mut |segment| {
                // Of nested packets, the outermost that says something.
                if found.is_some() {
                    return None;
                }
                found = reader.read(segment);
                found.as_ref().map(|Found { protocol, .. }| *protocol)
            },
        );
        let ifindex = beneath::index(*link_type, data);
        let ruling = self.ruling.take();
        let ruling = ruling.as_ref();
        let whose = self.whose.take().unwrap_or_default();
        let object = Object {
            number: self.count,
            time: time(packet.timestamp).filter(|_| !packet.notes.is_timeless()),
            epoch: epoch(packet.timestamp),
            interface: ifindex.and_then(|index| others.get(&index)).unwrap_or(name),
            interface_id: packet.interface,
            ifindex,
            link_type: *link_type,
            direction: match packet.direction {
                Some(Direction::In) => Some("in"),
                Some(Direction::Out) => Some("out"),
                _ => None,
            },
            length: packet.original_len,
            captured: packet.data.len(),
            lost_before: packet.lost_before,
            queue: packet.queue,
            comment: comment(packet),
            protocol: facts.protocol,
            src_mac: facts.mac_source.map(mac),
            dst_mac: facts.mac_destination.map(mac),
            ethertype: facts.ethertype,
            vlan: facts.vlan,
            inner_vlan: facts.inner_vlan,
            src: facts.source,
            dst: facts.destination,
            ttl: facts.ttl,
            proto: facts.ip_protocol,
            sport: facts.source_port,
            dport: facts.destination_port,
            tcp_flags: flags(&facts),
            tcp_sequence: facts.tcp_sequence,
            tcp_acknowledgement: facts.tcp_acknowledgement,
            tcp_window: facts.tcp_window,
            payload_length: facts.payload_len,
            rule: ruling.and_then(|ruling| ruling.rule.as_deref()),
            by_learned: ruling.is_some_and(|ruling| ruling.by_learned),
            capture: ruling.map(|ruling| ruling.capture),
            fate: ruling.map(|ruling| ruling.fate.as_str()),
            also: ruling.map_or(&[], |ruling| &ruling.also),
            sender: whose.sender.as_ref().map(OwnerObject::new),
            receiver: whose.receiver.as_ref().map(OwnerObject::new),
            payload: Payload::new(found.as_ref()),
            line: std::str::from_utf8(&self.line).unwrap_or_default(),
        };
        json::to_writer(&mut *text, &object)?;
        text.push(b'\n');
        Ok(())
    }

    /// Appends an object that stands for packets without one.
    pub(crate) fn not_printed(&mut self, packets: u64, text: &mut Vec<u8>) -> io::Result<()> {
        self.count += packets;
        json::to_writer(&mut *text, &NotPrinted { r#type: "not_printed", packets })?;
        text.push(b'\n');
        Ok(())
    }

    /// Appends an object that stands for at least `bytes` bytes of a file.
    pub(crate) fn not_read(bytes: u64, text: &mut Vec<u8>) -> io::Result<()> {
        json::to_writer(&mut *text, &NotRead { r#type: "not_read", bytes })?;
        text.push(b'\n');
        Ok(())
    }
}

/// Returns all comments of a packet.
fn comment<'a>(packet: &Packet<'a>) -> Option<Cow<'a, str>> {
    let several = packet.notes.comments().nth(1).is_some();
    if several {
        return Some(Cow::Owned(packet.notes.comments().collect::<Vec<_>>().join("\n")));
    }
    packet.comment.map(Cow::Borrowed)
}

/// Returns a time in RFC 3339; `None` if it is outside the calendar.
pub fn time(timestamp: u64) -> Option<String> {
    let instant = Timestamp::from_nanosecond(timestamp.into()).ok()?;
    Some(format!("{instant:.9}"))
}

/// Returns seconds with nine decimals, as text because a JSON number is not precise enough.
fn epoch(timestamp: u64) -> String {
    format!("{}.{:09}", timestamp / 1_000_000_000, timestamp % 1_000_000_000)
}

fn mac(address: [u8; 6]) -> String {
    let [a, b, c, d, e, f] = address;
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn flags(facts: &Facts) -> Option<String> {
    let flags = facts.tcp_flags?;
    let letters = "FSRP.UEW".chars().enumerate();
    Some(letters.filter(|(bit, _)| flags >> bit & 1 != 0).map(|(_, letter)| letter).collect())
}
