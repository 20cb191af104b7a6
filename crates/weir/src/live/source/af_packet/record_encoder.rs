//! Conversion of a packet in the kernel's ring to a record.

use weir_savefile::record::{self, RecordHeader};
use weir_sys::packet::Packet;
use weir_sys::packet::cooked;

use crate::live::source::pumped::{first, with_tag};

/// Length of a tag in bytes.
const TAG: u32 = 4;
/// Length of a cooked header in bytes.
const COOKED: u32 = 20;
const _: () = assert!(COOKED as usize == cooked::HEADER);

/// Settings shared by all records of a source.
#[derive(Debug)]
pub(super) struct RecordEncoder {
    /// Number of the interface in the capture.
    pub(super) interface: u32,
    /// Bytes kept of each packet.
    pub(super) snap_len: usize,
    /// Whether each record contains the direction of its packet.
    pub(super) directions: bool,
    /// Whether packets get a cooked header in place of their link-layer header.
    pub(super) cooked: bool,
}

impl RecordEncoder {
    /// Writes `packet` as a record to the start of `room`, with a stripped tag reinserted. Returns the size of the
    /// record in bytes, and the packet's length before anything was stripped or cut. Returns `None` if there is not
    /// enough room.
    #[inline]
    pub(super) fn encode(
        &self,
        room: &mut [u8],
        packet: &Packet<'_>,
        lost: Option<u64>,
    ) -> Option<(usize, u32)> {
        let cooked = self.cooked.then(|| cooked(packet));
        let original_len = original_len(packet, cooked.as_ref());
        let header = RecordHeader {
            interface: self.interface,
            timestamp: packet.timestamp,
            original_len,
            flags: self.directions.then_some(if packet.sent() { record::OUTBOUND } else { record::INBOUND }),
            dropcount: lost,
            queue: None,
        };
        let mut left = self.snap_len;
        let bytes = match (&cooked, &packet.tag) {
            (Some(cooked), _) => {
                let parts = cooked.all().map(|part| first(part, &mut left));
                record::encode(room, &header, &parts)
            }
            (None, None) => record::encode(room, &header, &[first(packet.data, &mut left)]),
            (None, Some(tag)) => {
                let parts = with_tag(packet.data, tag).map(|part| first(part, &mut left));
                record::encode(room, &header, &parts)
            }
        };
        Some((bytes?, original_len))
    }
}

/// Writes the whole packet with a cooked header to `out`, and returns its length on the wire.
pub(super) fn whole(packet: &Packet<'_>, out: &mut Vec<u8>) -> u32 {
    let cooked = cooked(packet);
    out.clear();
    cooked.all().iter().for_each(|part| out.extend_from_slice(part));
    original_len(packet, Some(&cooked))
}

/// Returns the packet's length before anything was stripped or cut.
#[inline]
fn original_len(packet: &Packet<'_>, cooked: Option<&Cooked<'_>>) -> u32 {
    let tag = if packet.tag.is_some() { TAG } else { 0 };
    let length = packet.original_len.saturating_add(tag);
    let Some(cooked) = cooked else { return length };
    let header = packet.data.len() - cooked.rest.len();
    length.saturating_sub(u32::try_from(header).unwrap_or(u32::MAX)).saturating_add(COOKED)
}

/// The parts of a packet that gets a cooked header.
struct Cooked<'a> {
    head: [u8; cooked::HEADER],
    /// The part of a stripped tag that follows the header. The tag begins with the protocol in the header that
    /// announces it, and ends with the protocol after it.
    tag: Option<[u8; TAG as usize]>,
    rest: &'a [u8],
}

impl Cooked<'_> {
    fn all(&self) -> [&[u8]; 3] {
        [&self.head, self.tag.as_slice().as_flattened(), self.rest]
    }
}

fn cooked<'a>(packet: &Packet<'a>) -> Cooked<'a> {
    let (inner, rest) = cooked::behind_link_layer(packet);
    let (outer, tag) = match packet.tag {
        None => (inner, None),
        Some([first, second, high, low]) => ([first, second], Some([high, low, inner[0], inner[1]])),
    };
    Cooked { head: cooked::header(&packet.origin, outer), tag, rest }
}

#[cfg(test)]
mod tests {
    use weir_savefile::record::Records;
    use weir_sys::packet::Origin;

    use super::*;

    fn origin(kind: u8) -> Origin {
        Origin::new(3, kind, 0x0800, 1, [2, 0, 0, 0, 0, 1])
    }

    #[test]
    fn a_cooked_packet_keeps_its_tag() {
        let encoder = RecordEncoder { interface: 0, snap_len: 100, directions: false, cooked: true };
        let mut room = [0; 200];
        let mut lay = |tag| {
            let data = &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 9, 9, 9, 9, 9, 9];
            let origin = origin(0);
            let packet = Packet { data, link_header: 14, original_len: 74, timestamp: 99, tag, origin };
            let (bytes, original_len) = encoder.encode(&mut room, &packet, None).unwrap();
            let record = Records::new(&room[..bytes]).next().unwrap().unwrap();
            (record.data.to_vec(), original_len)
        };
        let header = [0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        assert_eq!(lay(None), ([&[8, 0][..], &header, &[9; 6]].concat(), 80));
        let tagged = [&[0x81, 0][..], &header, &[0, 7, 8, 0], &[9; 6]].concat();
        assert_eq!(lay(Some([0x81, 0, 0, 7])), (tagged, 84));
    }

    #[test]
    fn a_record_says_what_the_ring_does() {
        let data: Vec<u8> = (0..20).collect();
        let origin_of = origin(4);
        let packet = Packet {
            data: &data,
            link_header: 14,
            original_len: 60,
            timestamp: 99,
            tag: None,
            origin: origin_of,
        };
        let tagged = Packet { tag: Some([0x81, 0, 0, 7]), origin: origin(0), ..packet };
        let mut room = [0xee; 200];
        for (packet, snap_len, lost, expected) in [
            (packet, 100, None, data.clone()),
            (packet, 5, Some(3), data[..5].to_vec()),
            (tagged, 24, None, [&data[..12], &[0x81, 0, 0, 7], &data[12..]].concat()),
            (tagged, 23, Some(1), [&data[..12], &[0x81, 0, 0, 7], &data[12..19]].concat()),
            (tagged, 14, None, [&data[..12], &[0x81, 0]].concat()),
            (tagged, 3, None, data[..3].to_vec()),
        ] {
            for directions in [false, true] {
                let encoder = RecordEncoder { interface: 2, snap_len, directions, cooked: false };
                let (bytes, original_len) = encoder.encode(&mut room, &packet, lost).unwrap();
                assert_eq!(original_len, if packet.tag.is_some() { 64 } else { 60 });
                let record = Records::new(&room[..bytes]).next().unwrap().unwrap();
                assert_eq!(record.data, expected);
                assert_eq!((record.interface, record.timestamp, record.original_len), (2, 99, original_len));
                assert_eq!(record.dropcount, lost.unwrap_or(0));
                let direction = if packet.sent() { record::OUTBOUND } else { record::INBOUND };
                assert_eq!(record.flags, directions.then_some(direction));
            }
        }
        assert_eq!(
            RecordEncoder { interface: 0, snap_len: 20, directions: false, cooked: false }.encode(
                &mut room[..51],
                &packet,
                None
            ),
            None
        );
    }
}
