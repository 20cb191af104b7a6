//! How a packet of the kernel's ring becomes a record.

use weir_savefile::record::{self, RecordHeader};
use weir_sys::packet::Packet;

/// Bytes of the two addresses that a VLAN tag stands behind.
const ADDRESSES: usize = 12;
/// Bytes of a tag.
const TAG: u32 = 4;

/// What all records of a source have in common.
#[derive(Debug)]
pub(super) struct Form {
    /// Number of the interface in the capture.
    pub(super) interface: u32,
    /// Bytes kept of a packet.
    pub(super) snap_len: usize,
    /// Whether each record tells the direction of its packet.
    pub(super) directions: bool,
}

impl Form {
    /// Lays `packet` down at the start of `room`, a tag that was stripped in its place again. Gives the record's bytes and
    /// the packet's length before anything was stripped or cut. `None`: there is not enough room.
    #[inline]
    pub(super) fn lay(
        &self,
        room: &mut [u8],
        packet: &Packet<'_>,
        lost: Option<u64>,
    ) -> Option<(usize, u32)> {
        let original_len = packet.original_len.saturating_add(if packet.tag.is_some() { TAG } else { 0 });
        let header = RecordHeader {
            interface: self.interface,
            timestamp: packet.timestamp,
            original_len,
            flags: self.directions.then_some(if packet.sent { record::OUTBOUND } else { record::INBOUND }),
            dropcount: lost,
            queue: None,
        };
        let mut left = self.snap_len;
        let bytes = match &packet.tag {
            None => record::encode(room, &header, &[first(packet.data, &mut left)]),
            Some(tag) => {
                let (addresses, behind) = packet.data.split_at(packet.data.len().min(ADDRESSES));
                let parts = [addresses, tag, behind].map(|part| first(part, &mut left));
                record::encode(room, &header, &parts)
            }
        };
        Some((bytes?, original_len))
    }
}

/// As much of `bytes` as there is room `left` for.
#[inline]
fn first<'a>(bytes: &'a [u8], left: &mut usize) -> &'a [u8] {
    let bytes = &bytes[..bytes.len().min(*left)];
    *left -= bytes.len();
    bytes
}

#[cfg(test)]
mod tests {
    use weir_savefile::record::Records;

    use super::*;

    #[test]
    fn a_record_says_what_the_ring_does() {
        let data: Vec<u8> = (0..20).collect();
        let packet = Packet { data: &data, original_len: 60, timestamp: 99, tag: None, sent: true };
        let tagged = Packet { tag: Some([0x81, 0, 0, 7]), sent: false, ..packet };
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
                let form = Form { interface: 2, snap_len, directions };
                let (bytes, original_len) = form.lay(&mut room, &packet, lost).unwrap();
                assert_eq!(original_len, if packet.tag.is_some() { 64 } else { 60 });
                let record = Records::new(&room[..bytes]).next().unwrap().unwrap();
                assert_eq!(record.data, expected);
                assert_eq!((record.interface, record.timestamp, record.original_len), (2, 99, original_len));
                assert_eq!(record.dropcount, lost.unwrap_or(0));
                let direction = if packet.sent { record::OUTBOUND } else { record::INBOUND };
                assert_eq!(record.flags, directions.then_some(direction));
            }
        }
        assert_eq!(
            Form { interface: 0, snap_len: 20, directions: false }.lay(&mut room[..51], &packet, None),
            None
        );
    }
}
