//! The data that the program leaves before each packet, and the conversion of both to a record.

use rustix::time::{ClockId, clock_gettime};
use weir_bpf::af_xdp;
use weir_savefile::record::{self, RecordHeader};
use weir_sys::xsk::Frame;

use crate::live::source::pumped::{first, with_tag};

/// Length of a tag in bytes.
const TAG: usize = 4;

/// What is known about a packet beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Nanoseconds since the Unix epoch; 0 if there is no timestamp.
    timestamp: u64,
    /// The VLAN tag stripped by the device, as on the wire.
    tag: Option<[u8; TAG]>,
    /// Length of the packet in bytes as seen by the program; `None` if it had no room to say so.
    length: Option<u32>,
}

impl Arrival {
    /// Takes the data before `frame`, which would otherwise count as the next packet's, too, if the driver leaves the
    /// program no room. Without data, the clock is read here, if `stamped`.
    #[inline]
    pub(super) fn take(frame: &mut Frame<'_>, stamped: bool) -> Self {
        if let Some(left) = frame.in_front(af_xdp::Arrival::BYTES).and_then(af_xdp::Arrival::take) {
            return Self { timestamp: left.timestamp, tag: left.tag, length: Some(left.length) };
        }
        Self { timestamp: if stamped { now() } else { 0 }, tag: None, length: None }
    }

    /// Whether `packet` is what the program saw, if that is known. A driver may deliver a packet in more pieces than it
    /// declares, or in fewer.
    #[inline]
    pub(super) fn is_whole(&self, packet: &[Frame<'_>]) -> bool {
        let bytes = || packet.iter().map(Frame::len).sum::<usize>();
        self.length.is_none_or(|length| length as usize == bytes())
    }
}

/// Returns the nanoseconds since the Unix epoch.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    let nanoseconds = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    u64::try_from(nanoseconds).unwrap_or(0)
}

/// Settings shared by all records of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordEncoder {
    /// Number of the interface in the capture.
    pub(super) interface: u32,
    /// Bytes kept of each packet.
    pub(super) snap_len: u32,
    /// Whether each record contains the direction of its packet.
    pub(super) directions: bool,
}

impl RecordEncoder {
    /// Writes a packet as a record to the start of `room`, with a stripped tag reinserted. Returns the size of the
    /// record in bytes, and the packet's length before anything was stripped or cut. Returns `None` if there is not
    /// enough room.
    #[inline]
    pub(super) fn encode(
        &self,
        room: &mut [u8],
        packet: &[Frame<'_>],
        arrival: Arrival,
        lost: Option<u64>,
    ) -> Option<(usize, u32)> {
        let bytes = packet.iter().map(Frame::len).sum::<usize>() + arrival.tag.map_or(0, |tag| tag.len());
        let original_len = u32::try_from(bytes).ok()?;
        let header = RecordHeader {
            interface: self.interface,
            timestamp: arrival.timestamp,
            original_len,
            flags: self.directions.then_some(record::INBOUND),
            dropcount: lost,
            ..RecordHeader::default()
        };
        let mut left = self.snap_len as usize;
        let bytes = match (packet, &arrival.tag) {
            ([frame], None) => record::encode(room, &header, &[first(frame.bytes(), &mut left)]),
            (frames, tag) => {
                let mut parts: Vec<&[u8]> = frames.iter().map(Frame::bytes).collect();
                if let (Some(tag), Some(&begin)) = (tag, parts.first()) {
                    // The kernel fills every frame except the last.
                    parts.splice(..1, with_tag(begin, tag));
                }
                parts.iter_mut().for_each(|part| *part = first(part, &mut left));
                record::encode(room, &header, &parts)
            }
        };
        Some((bytes?, original_len))
    }
}

#[cfg(test)]
mod tests {
    use weir_savefile::record::Records;
    use weir_sys::xsk::{FrameSize, Umem, UmemOptions};

    use super::*;

    fn umem() -> Umem {
        let options =
            UmemOptions { frames: 4, frame_size: FrameSize::TwoKib, zero_copy: false, segments: true };
        Umem::new(options).unwrap()
    }

    fn frames<'u>(umem: &'u Umem, parts: &[&[u8]]) -> Vec<Frame<'u>> {
        let mut frames = Vec::new();
        umem.take(parts.len(), &mut frames);
        for (frame, part) in frames.iter_mut().zip(parts) {
            frame.grow_tail(part.len()).unwrap().copy_from_slice(part);
        }
        frames
    }

    fn leave(frame: &mut Frame<'_>, timestamp: u64, tag: Option<[u8; 4]>) {
        let place = frame.in_front(af_xdp::Arrival::BYTES).unwrap();
        af_xdp::Arrival { timestamp, tag, length: 6 }.leave(place);
    }

    fn nothing() -> Arrival {
        Arrival { timestamp: 0, tag: None, length: None }
    }

    #[test]
    fn what_the_program_left_is_taken_once() {
        let umem = umem();
        let frame = &mut frames(&umem, &[b"packet"])[0];
        let tag = Some([0x81, 0, 0x20, 5]);
        leave(frame, 99, tag);
        assert_eq!(Arrival::take(frame, true), Arrival { timestamp: 99, tag, length: Some(6) });
        assert_eq!(Arrival::take(frame, false), nothing());
        let before = now();
        assert!(Arrival::take(frame, true).timestamp >= before);
        leave(frame, 0, None);
        assert_eq!(Arrival::take(frame, true), Arrival { length: Some(6), ..nothing() });
        // A packet at the very start of its frame.
        frame.grow_head(frame.headroom()).unwrap();
        assert_eq!(Arrival::take(frame, false), nothing());
    }

    #[test]
    fn a_part_of_a_packet_is_not_taken_for_a_packet() {
        let umem = umem();
        let mut parts = frames(&umem, &[b"pac", b"ket", b"s"]);
        leave(&mut parts[0], 99, None);
        let arrival = Arrival::take(&mut parts[0], false);
        assert!(arrival.is_whole(&parts[..2]));
        assert!(!arrival.is_whole(&parts[..1]) && !arrival.is_whole(&parts));
        assert!(nothing().is_whole(&parts[..1]), "nobody has said what it was");
    }

    #[test]
    fn a_record_says_what_came() {
        let data: Vec<u8> = (0..40).collect();
        let tag = [0x81, 0, 0, 7];
        let tagged = [&data[..12], &tag, &data[12..]].concat();
        let umem = umem();
        let mut room = [0xee; 200];
        let one = frames(&umem, &[&data]);
        let three = frames(&umem, &[&data[..20], &data[20..30], &data[30..]]);
        for packet in [&one, &three] {
            for (tag, wire) in [(None, &data), (Some(tag), &tagged)] {
                for snap_len in [3, 12, 14, 16, 25, 40, 44, 100] {
                    for (lost, directions) in [(None, false), (Some(3), false), (None, true), (Some(3), true)]
                    {
                        let encoder = RecordEncoder { interface: 2, snap_len, directions };
                        let arrival = Arrival { timestamp: 99, tag, length: None };
                        let (bytes, original_len) = encoder.encode(&mut room, packet, arrival, lost).unwrap();
                        let record = Records::new(&room[..bytes]).next().unwrap().unwrap();
                        assert_eq!(record.data, &wire[..wire.len().min(snap_len as usize)]);
                        assert_eq!((original_len as usize, record.original_len), (wire.len(), original_len));
                        assert_eq!((record.interface, record.timestamp), (2, 99));
                        assert_eq!(record.dropcount, lost.unwrap_or(0));
                        assert_eq!(record.flags, directions.then_some(record::INBOUND));
                    }
                }
            }
        }
        let encoder = RecordEncoder { interface: 0, snap_len: 100, directions: false };
        assert_eq!(encoder.encode(&mut room[..71], &one, nothing(), None), None);
    }
}
