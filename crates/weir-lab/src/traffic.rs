//! Frames that are a pure function of their number.
//!
//! Each frame is Ethernet (with an optional VLAN tag), IPv4 and UDP. The payload begins with the frame's number (64
//! bits) and its flow (32 bits). Filler follows, which depends only on its position in the payload. The last four bytes
//! are the low half of the number XOR the flow. All numbers are in network byte order. From any frame a receiver can
//! tell whether it is intact and which one it is; a partial copy, or a mix of two frames, is detected.
//!
//! Flows differ in source port (1024 + the low 15 bits) and source address (198.18.0.0 + the other bits).

use std::net::Ipv4Addr;

use crate::{Error, Pair};

/// A description of generated traffic: the size of its frames, its flows and its addresses.
#[derive(Clone, Debug)]
pub struct Traffic {
    size: usize,
    flows: u32,
    scattered: bool,
    vlan: Option<u16>,
    macs: [[u8; 6]; 2],
    destination: (Ipv4Addr, u16),
}

const MACS: usize = 12;
const TAG: usize = 4;
const TYPE: usize = 2;
const IPV4: usize = 20;
const UDP: usize = 8;
const SEQUENCE: usize = 8;
const FLOW: usize = 4;
const TAIL: usize = 4;
/// Longest IPv4 packet in bytes.
const LONGEST: usize = 65535;

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
        Error::check_range("frame size", size as u64, 60, (MACS + TYPE + LONGEST) as u64)?;
        let macs = [[2, 0x77, 0, 0, 0, 2], [2, 0x77, 0, 0, 0, 1]];
        let destination = (Ipv4Addr::new(198, 19, 0, 1), 9);
        Ok(Self { size, flows: 1, scattered: false, vlan: None, macs, destination })
    }

    /// Uses the hardware addresses of a pair.
    #[must_use]
    pub fn between(self, pair: &Pair) -> Self {
        Self { macs: [pair.rx.mac, pair.tx.mac], ..self }
    }

    /// Sets the destination address and port.
    #[must_use]
    pub fn to(self, address: Ipv4Addr, port: u16) -> Self {
        Self { destination: (address, port), ..self }
    }

    /// Sets the number of flows, 1 to 2^31. Frame `n` belongs to flow `n` modulo `flows`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub fn flows(self, flows: u32) -> Result<Self, Error> {
        Error::check_range("number of flows", flows.into(), 1, 1 << 31)?;
        Ok(Self { flows, ..self })
    }

    /// Sends the flows in pseudo-random order instead of in turn.
    #[must_use]
    pub fn scattered(self) -> Self {
        Self { scattered: true, ..self }
    }

    /// Puts an 802.1Q tag with this control information (priority, DEI and ID) into each frame. The frame size does not
    /// change and must be at least 64.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for the size.
    pub fn vlan(self, tci: u16) -> Result<Self, Error> {
        Error::check_range("tagged frame size", self.size as u64, 64, (MACS + TAG + TYPE + LONGEST) as u64)?;
        Ok(Self { vlan: Some(tci), ..self })
    }

    /// Returns the size of each frame in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of flows.
    pub fn flow_count(&self) -> u32 {
        self.flows
    }

    /// Returns whether flows come in pseudo-random order.
    pub fn is_scattered(&self) -> bool {
        self.scattered
    }

    /// Returns whether frames have a VLAN tag.
    pub fn is_tagged(&self) -> bool {
        self.vlan.is_some()
    }

    /// Returns the flow of frame `sequence`.
    pub fn flow(&self, sequence: u64) -> u32 {
        let flow = if self.scattered {
            ((scatter(sequence) >> 32) * u64::from(self.flows)) >> 32
        } else {
            sequence % u64::from(self.flows)
        };
        u32::try_from(flow).expect("less than the number of flows")
    }

    /// Returns the offset of the IPv4 header.
    pub fn ip_offset(&self) -> usize {
        MACS + TYPE + if self.vlan.is_some() { TAG } else { 0 }
    }

    /// Builds frame `sequence` byte by byte: slow, but simple enough to be right. It is the reference for everything
    /// else.
    pub fn frame(&self, sequence: u64) -> Vec<u8> {
        let flow = self.flow(sequence);
        let host = u16::try_from(flow >> 15).expect("at most 2^31 flows");
        let source_port = 1024 + u16::try_from(flow & 0x7fff).expect("15 bits");
        let length = |bytes: usize| u16::try_from(bytes).expect("the size was checked").to_be_bytes();

        let mut frame = Vec::with_capacity(self.size);
        frame.extend(self.macs.concat());
        if let Some(tci) = self.vlan {
            frame.extend([0x81, 0x00]);
            frame.extend(tci.to_be_bytes());
        }
        frame.extend([0x08, 0x00]);

        let ip = frame.len();
        frame.extend([0x45, 0]);
        frame.extend(length(self.size - ip));
        // Its sum with the source address is constant: see lab.bpf.c.
        frame.extend((0xffff - host).to_be_bytes());
        frame.extend([0, 0, 64, 17, 0, 0]);
        frame.extend([198, 18]);
        frame.extend(host.to_be_bytes());
        frame.extend(self.destination.0.octets());
        let checksum = internet_checksum(&frame[ip..]);
        frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());

        let udp = frame.len();
        frame.extend(source_port.to_be_bytes());
        frame.extend(self.destination.1.to_be_bytes());
        frame.extend(length(self.size - udp));
        frame.extend([0, 0]); // no checksum

        let payload = frame.len();
        frame.extend(sequence.to_be_bytes());
        frame.extend(flow.to_be_bytes());
        while frame.len() < self.size - TAIL {
            frame.push(filler(frame.len() - payload));
        }
        frame.extend((low_half(sequence) ^ flow).to_be_bytes());
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
    template: Vec<u8>,
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
        Self { traffic: traffic.clone(), template: traffic.frame(0) }
    }

    /// Returns the number of a frame, if all of its bytes are right.
    ///
    /// # Errors
    ///
    /// The first error in the frame.
    pub fn check(&self, frame: &[u8]) -> Result<u64, Corrupt> {
        let size = self.traffic.size;
        if frame.len() != size {
            return Err(Corrupt::Length { expected: size, found: frame.len() });
        }
        let (ip, template) = (self.traffic.ip_offset(), &self.template[..]);
        let payload = ip + IPV4 + UDP;
        let sequence = self.sequence(frame);
        let flow = self.traffic.flow(sequence);
        let [.., host_high, host_low] = (flow >> 15).to_be_bytes();
        let [.., port_high, port_low] = (1024 + (flow & 0x7fff)).to_be_bytes();
        let same = |from: usize, to: usize| frame[from..to] == template[from..to];
        let whole = same(0, ip + 4)
            && frame[ip + 4..ip + 6] == [!host_high, !host_low]
            && same(ip + 6, ip + 14)
            && frame[ip + 14..ip + 16] == [host_high, host_low]
            && same(ip + 16, ip + 20)
            && frame[ip + 20..ip + 22] == [port_high, port_low]
            && same(ip + 22, payload)
            && frame[payload + SEQUENCE..payload + SEQUENCE + FLOW] == flow.to_be_bytes()
            && same(payload + SEQUENCE + FLOW, size - TAIL)
            && frame[size - TAIL..] == (low_half(sequence) ^ flow).to_be_bytes();
        if whole { Ok(sequence) } else { Err(self.difference(sequence, frame)) }
    }

    /// Returns the number of a truncated frame, if its bytes are right. It must contain at least the headers and 8 more
    /// bytes.
    ///
    /// # Errors
    ///
    /// The first error in the frame.
    pub fn check_cut(&self, start: &[u8]) -> Result<u64, Corrupt> {
        let least = self.traffic.ip_offset() + IPV4 + UDP + SEQUENCE;
        if start.len() < least || start.len() > self.traffic.size {
            return Err(Corrupt::Length { expected: self.traffic.size, found: start.len() });
        }
        let sequence = self.sequence(start);
        if self.traffic.frame(sequence).starts_with(start) {
            Ok(sequence)
        } else {
            Err(self.difference(sequence, start))
        }
    }

    /// Returns the number in a frame, right or wrong.
    fn sequence(&self, frame: &[u8]) -> u64 {
        let payload = self.traffic.ip_offset() + IPV4 + UDP;
        let number = frame[payload..].first_chunk().expect("frames are long enough for their numbers");
        u64::from_be_bytes(*number)
    }

    /// Returns the first byte in which `frame` differs from frame `sequence`.
    fn difference(&self, sequence: u64, frame: &[u8]) -> Corrupt {
        let expected = self.traffic.frame(sequence);
        let mut pairs = expected.into_iter().zip(frame.iter().copied()).enumerate();
        let (offset, (expected, found)) = pairs.find(|(_, (a, b))| a != b).expect("they differ");
        Corrupt::Byte { sequence, offset, expected, found }
    }
}

/// splitmix64's finaliser, which maps each number to a pseudo-random one. Same as `scatter` in scatter.h.
fn scatter(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the filler byte at `place` in a payload. The filler has no period, so shifted bytes are detected.
fn filler(place: usize) -> u8 {
    scatter(place as u64).to_be_bytes()[0]
}

fn low_half(sequence: u64) -> u32 {
    u32::try_from(sequence & 0xffff_ffff).expect("32 bits")
}

/// Returns the Internet checksum (RFC 1071).
fn internet_checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn traffic() -> impl Strategy<Value = Traffic> {
        (64..1600usize, 1..=1u32 << 31, any::<bool>(), any::<Option<u16>>()).prop_map(
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
        #[test]
        fn a_frame_is_whole(traffic in traffic(), sequence: u64) {
            let (frame, checker) = (traffic.frame(sequence), Checker::new(&traffic));
            prop_assert_eq!(frame.len(), traffic.size());
            prop_assert_eq!(checker.check(&frame), Ok(sequence));
        }

        #[test]
        fn every_changed_byte_is_found(traffic in traffic(), sequence: u64, place: prop::sample::Index, flip in 1..=255u8) {
            let (mut frame, checker) = (traffic.frame(sequence), Checker::new(&traffic));
            frame[place.index(traffic.size())] ^= flip;
            prop_assert!(checker.check(&frame).is_err());
        }

        #[test]
        fn the_ip_checksum_is_right_in_every_flow(traffic in traffic(), sequence: u64) {
            let ip = traffic.ip_offset();
            let frame = traffic.frame(sequence);
            prop_assert_eq!(internet_checksum(&frame[ip..ip + IPV4]), 0);
            // As in the kernel program, the checksum is the template's.
            prop_assert_eq!(&frame[ip + 10..ip + 12], &traffic.frame(0)[ip + 10..ip + 12]);
        }

        #[test]
        fn flows_are_all_below_their_number(traffic in traffic(), sequence: u64) {
            prop_assert!(traffic.flow(sequence) < traffic.flow_count());
        }

        #[test]
        fn a_cut_frame_is_known_by_its_number(traffic in traffic(), sequence: u64, place: prop::sample::Index) {
            let (frame, checker) = (traffic.frame(sequence), Checker::new(&traffic));
            let kept = &frame[..place.index(traffic.size()) + 1];
            let enough = kept.len() >= traffic.ip_offset() + IPV4 + UDP + SEQUENCE;
            prop_assert_eq!(checker.check_cut(kept).ok(), enough.then_some(sequence));
        }

        #[test]
        fn a_frame_that_ends_in_another_is_found(traffic in traffic(), sequence: u64, other: u64) {
            prop_assume!(low_half(sequence) ^ traffic.flow(sequence) != low_half(other) ^ traffic.flow(other));
            let (mut frame, checker) = (traffic.frame(sequence), Checker::new(&traffic));
            let tail = traffic.size() - 4;
            frame[tail..].copy_from_slice(&traffic.frame(other)[tail..]);
            prop_assert!(checker.check(&frame).is_err());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let traffic = Traffic::new(60).expect("size");
        let (mut frame, checker) = (traffic.frame(7), Checker::new(&traffic));
        assert_eq!(checker.check(&frame[..59]), Err(Corrupt::Length { expected: 60, found: 59 }));
        frame[55] = !frame[55];
        let (expected, found) = (traffic.frame(7)[55], frame[55]);
        assert_eq!(checker.check(&frame), Err(Corrupt::Byte { sequence: 7, offset: 55, expected, found }));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        assert!(Traffic::new(59).is_err() && Traffic::new(65550).is_err());
        assert!(Traffic::new(60).expect("size").vlan(5).is_err());
        assert!(Traffic::new(60).expect("size").flows(0).is_err());
        assert_eq!(Traffic::new(65549).expect("size").frame(3).len(), 65549);
    }
}
