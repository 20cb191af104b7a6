//! Frames that are a pure function of their number.
//!
//! Frames are test traffic of weir-traffic: Ethernet (with an optional VLAN tag), IPv4 and UDP, with a signature of stream 0
//! without a time, a pattern, and the number once more at the end. From any frame a receiver can tell whether it is intact
//! and which one it is; a partial copy, or a mix of two frames, is detected.
//!
//! Flows differ in source port (1024 + the low 15 bits) and source address (198.18.0.0 + the other bits).

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};

use weir_traffic::{Addresses, Description, Order, Payload, Ports, Sizes, Tables};

use crate::{Error, Pair};

/// A description of generated traffic: the size of its frames, its flows and its addresses.
#[derive(Clone, Debug)]
pub struct Traffic {
    size: u32,
    /// Whether sizes vary, up to that one.
    imix: bool,
    flows: u32,
    scattered: bool,
    vlan: Option<u16>,
    macs: [[u8; 6]; 2],
    destination: (Ipv4Addr, u16),
    /// Made when they are first needed.
    tables: OnceLock<Arc<Tables>>,
}

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
const TAG: usize = 4;
/// Longest frame in bytes: the longest IPv4 packet in an Ethernet frame.
const LONGEST: usize = ETHERNET + 65535;
/// Flows of one source address.
const PORTS: u32 = 1 << 15;
const FIRST_PORT: u16 = 1024;
/// Where the number ends in a signature.
const NUMBERED: usize = 10;

impl Traffic {
    /// Describes one flow of UDP in frames of `size` bytes, 60 to 65549, from the destination address to the end of the
    /// payload.
    ///
    /// The destination is port 9 of 198.19.0.1, an unused benchmark address: a network stack counts each packet in
    /// `IpInReceives`, drops it and sends no reply.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn new(size: usize) -> Result<Self, Error> {
        Error::check_range("frame size", size as u64, 60, LONGEST as u64)?;
        Ok(Self {
            size: u32::try_from(size).expect("checked"),
            imix: false,
            flows: 1,
            scattered: false,
            vlan: None,
            macs: [[2, 0x77, 0, 0, 0, 2], [2, 0x77, 0, 0, 0, 1]],
            destination: (Ipv4Addr::new(198, 19, 0, 1), 9),
            tables: OnceLock::new(),
        })
    }

    /// Describes one flow of UDP in frames of 60, 590 and 1514 bytes, 7 to 4 to 1, the mix that is called Simple IMIX.
    /// Zeros follow their signatures, since patterns are for frames of one size.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn imix() -> Result<Self, Error> {
        Ok(Self { imix: true, ..Self::new(1514)? })
    }

    /// Uses the hardware addresses of a pair.
    #[must_use]
    pub fn between(self, pair: &Pair) -> Self {
        Self { macs: [pair.rx.mac, pair.tx.mac], tables: OnceLock::new(), ..self }
    }

    /// Sets the destination address and port.
    #[must_use]
    pub fn to(self, address: Ipv4Addr, port: u16) -> Self {
        Self { destination: (address, port), tables: OnceLock::new(), ..self }
    }

    /// Sets the number of flows, 1 to 2^20. Frame `n` belongs to flow `n` modulo `flows`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn flows(self, flows: u32) -> Result<Self, Error> {
        Error::check_range("number of flows", flows.into(), 1, 1 << 20)?;
        Ok(Self { flows, tables: OnceLock::new(), ..self })
    }

    /// Sends the flows in pseudo-random order instead of in turn.
    #[must_use]
    pub fn scattered(self) -> Self {
        Self { scattered: true, tables: OnceLock::new(), ..self }
    }

    /// Puts an 802.1Q tag with this control information (priority, DEI and ID) into each frame. The frame size does not
    /// change and must be at least 64.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for the size.
    pub fn vlan(self, tci: u16) -> Result<Self, Error> {
        Error::check_range("tagged frame size", self.size.into(), 64, LONGEST as u64)?;
        Ok(Self { vlan: Some(tci), tables: OnceLock::new(), ..self })
    }

    /// Returns the size of each frame in bytes, or of the longest.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns the number of flows.
    pub fn flow_count(&self) -> u32 {
        self.flows
    }

    /// Returns whether frames have a VLAN tag.
    pub fn is_tagged(&self) -> bool {
        self.vlan.is_some()
    }

    /// Returns the flow of frame `sequence`.
    pub fn flow(&self, sequence: u64) -> u32 {
        if self.flows == 1 {
            return 0;
        }
        let order = &self.tables().order;
        order[usize::try_from(sequence % order.len() as u64).expect("a place in a table")]
    }

    /// Returns the offset of the IPv4 header.
    pub fn ip_offset(&self) -> usize {
        ETHERNET + if self.vlan.is_some() { TAG } else { 0 }
    }

    /// Returns the tables from which frames are written.
    pub fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Arc::new(self.make_tables()))
    }

    fn make_tables(&self) -> Tables {
        let [destination_mac, source_mac] = self.macs;
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0));
        let last = first + (self.flows - 1) / PORTS;
        let range = |first: u32, last: u32| {
            Addresses::new(IpAddr::V4(first.into()), IpAddr::V4(last.into())).expect("a range")
        };
        let (to, port) = (u32::from(self.destination.0), self.destination.1);
        let description = Description {
            macs: [source_mac, destination_mac],
            vlans: self.vlan.iter().map(|_| 0).collect(),
            sources: range(first, last),
            source_ports: Ports::new(FIRST_PORT, FIRST_PORT + 0x7fff).expect("a range"),
            destinations: range(to, to),
            destination_ports: Ports::new(port, port).expect("a range"),
            flows: self.flows,
            order: if self.scattered { Order::Random } else { Order::Turn },
            sizes: Some(if self.imix { Sizes::Imix } else { Sizes::Fixed(self.size) }),
            payload: if self.imix { Payload::Zeros } else { Payload::Pattern },
            ..Description::new(false)
        };
        let mut tables = Tables::new(&description).expect("sizes and flows were checked");
        if let Some(tci) = self.vlan {
            for head in &mut tables.heads {
                head.bytes[ETHERNET..ETHERNET + 2].copy_from_slice(&tci.to_be_bytes());
            }
        }
        tables
    }

    /// Returns frame `sequence` (of its number, the low 48 bits count).
    pub fn frame(&self, sequence: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        self.tables().write(sequence, 0, 0, &mut frame);
        frame
    }

    /// Returns the frames with these numbers.
    pub fn frames(&self, sequences: std::ops::Range<u64>) -> Vec<Vec<u8>> {
        sequences.map(|sequence| self.frame(sequence)).collect()
    }
}

/// Recognises intact frames of a [`Traffic`].
#[derive(Clone, Debug)]
pub struct Checker {
    traffic: Traffic,
    /// What the frame is compared with.
    frame: Vec<u8>,
}

/// An error in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// It has the wrong length.
    #[error("{found} bytes instead of {expected}")]
    Length {
        /// Length of the traffic's frames in bytes.
        expected: usize,
        /// Length of this frame in bytes.
        found: usize,
    },
    /// A byte is wrong.
    #[error("byte {offset} is {found:#04x} instead of {expected:#04x}, if this is frame {sequence}")]
    Byte {
        /// The number in the frame.
        sequence: u64,
        /// Offset of the first wrong byte.
        offset: usize,
        /// The byte in frame `sequence`.
        expected: u8,
        /// The byte in this frame.
        found: u8,
    },
    /// The frame is intact, but its number was not sent.
    #[error("frame {sequence} was never sent")]
    Unsent {
        /// The number.
        sequence: u64,
    },
}

impl Checker {
    /// Prepares to check frames of this traffic.
    pub fn new(traffic: &Traffic) -> Self {
        traffic.tables();
        Self { traffic: traffic.clone(), frame: Vec::new() }
    }

    /// Returns the number of a frame, if all of its bytes are right.
    ///
    /// # Errors
    ///
    /// The first error in the frame.
    pub fn check(&mut self, frame: &[u8]) -> Result<u64, Corrupt> {
        let size = self.traffic.size();
        if frame.len() != size {
            return Err(Corrupt::Length { expected: size, found: frame.len() });
        }
        self.compare(frame)
    }

    /// Returns the number of a truncated frame, if its bytes are right. It must contain at least the headers and 10 more
    /// bytes.
    ///
    /// # Errors
    ///
    /// The first error in the frame.
    pub fn check_cut(&mut self, start: &[u8]) -> Result<u64, Corrupt> {
        let least = self.traffic.tables().head_length + NUMBERED;
        let size = self.traffic.size();
        if start.len() < least || start.len() > size {
            return Err(Corrupt::Length { expected: size, found: start.len() });
        }
        self.compare(start)
    }

    /// Compares the frame with that of its number, right or wrong.
    fn compare(&mut self, frame: &[u8]) -> Result<u64, Corrupt> {
        let tables = self.traffic.tables();
        let end = tables.head_length + NUMBERED;
        let number: &[u8; 8] = frame[end - 8..].first_chunk().expect("frames are long enough");
        let sequence = u64::from_be_bytes(*number) & ((1 << 48) - 1);
        tables.write(sequence, 0, 0, &mut self.frame);
        if self.frame.starts_with(frame) { Ok(sequence) } else { Err(self.difference(sequence, frame)) }
    }

    /// Returns the first byte in which `frame` differs from frame `sequence`.
    fn difference(&self, sequence: u64, frame: &[u8]) -> Corrupt {
        let mut pairs = self.frame.iter().copied().zip(frame.iter().copied()).enumerate();
        let (offset, (expected, found)) = pairs.find(|(_, (a, b))| a != b).expect("they differ");
        Corrupt::Byte { sequence, offset, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn traffic() -> impl Strategy<Value = Traffic> {
        (64..1600usize, prop_oneof![1..=70u32, 1..=1u32 << 17], any::<bool>(), any::<Option<u16>>()).prop_map(
            |(size, flows, scattered, tci)| {
                let traffic = Traffic::new(size).expect("size").flows(flows).expect("flows");
                let traffic = if scattered { traffic.scattered() } else { traffic };
                match tci {
                    Some(tci) => traffic.vlan(tci).expect("size"),
                    None => traffic,
                }
            },
        )
    }

    proptest! {
        // Each fills tables of tens of thousands of flows, which takes longer than all else.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_frame_is_whole(traffic in traffic(), sequence in 0..1u64 << 48) {
            let (frame, mut checker) = (traffic.frame(sequence), Checker::new(&traffic));
            prop_assert_eq!(frame.len(), traffic.size());
            prop_assert_eq!(checker.check(&frame), Ok(sequence));
        }

        #[test]
        fn every_changed_byte_is_found(traffic in traffic(), sequence in 0..1u64 << 48, place: prop::sample::Index, flip in 1..=255u8) {
            let (mut frame, mut checker) = (traffic.frame(sequence), Checker::new(&traffic));
            frame[place.index(traffic.size())] ^= flip;
            prop_assert!(checker.check(&frame).is_err());
        }

        #[test]
        fn flows_are_all_below_their_number(traffic in traffic(), sequence in 0..1u64 << 48) {
            prop_assert!(traffic.flow(sequence) < traffic.flow_count());
        }

        #[test]
        fn a_cut_frame_is_known_by_its_number(traffic in traffic(), sequence in 0..1u64 << 48, place: prop::sample::Index) {
            let (frame, mut checker) = (traffic.frame(sequence), Checker::new(&traffic));
            let kept = &frame[..place.index(traffic.size()) + 1];
            let enough = kept.len() >= traffic.ip_offset() + 28 + NUMBERED;
            prop_assert_eq!(checker.check_cut(kept).ok(), enough.then_some(sequence));
        }

        #[test]
        fn a_frame_that_ends_as_another_is_found(size in 68..1600usize, sequence in 0..1u64 << 48, other in 0..1u64 << 48) {
            prop_assume!(sequence & 0xffff_ffff != other & 0xffff_ffff);
            let traffic = Traffic::new(size).expect("size");
            let (mut frame, mut checker) = (traffic.frame(sequence), Checker::new(&traffic));
            frame[size - 8..].copy_from_slice(&traffic.frame(other)[size - 8..]);
            prop_assert!(checker.check(&frame).is_err());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let traffic = Traffic::new(60).expect("size");
        let (mut frame, mut checker) = (traffic.frame(7), Checker::new(&traffic));
        assert_eq!(checker.check(&frame[..59]), Err(Corrupt::Length { expected: 60, found: 59 }));
        frame[55] = !frame[55];
        let (expected, found) = (traffic.frame(7)[55], frame[55]);
        assert_eq!(checker.check(&frame), Err(Corrupt::Byte { sequence: 7, offset: 55, expected, found }));
    }

    #[test]
    fn twelve_frames_of_the_mix_have_its_three_sizes() {
        let frames = Traffic::imix().expect("sizes").frames(0..12);
        let mut sizes: Vec<usize> = frames.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [vec![60; 7], vec![590; 4], vec![1514]].concat());
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        assert!(Traffic::new(59).is_err() && Traffic::new(65550).is_err());
        assert!(Traffic::new(60).expect("size").vlan(5).is_err());
        assert!(Traffic::new(60).expect("size").flows(0).is_err());
        assert_eq!(Traffic::new(65549).expect("size").frame(3).len(), 65549);
    }
}
