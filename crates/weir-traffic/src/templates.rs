//! Frames of others, sent in turn.

use std::error::Error;
use std::fmt;

use weir_packet::ethertype::{IPV4, IPV6};
use weir_packet::protocol::{ICMP, ICMPV6, TCP, UDP};

use crate::checksum::sum;
use crate::layout::{Layout, network};
use crate::rewrite::Change;
use crate::{SIGNATURE_LENGTH, Signature};

/// Frames that are sent in turn, as they are or with a [`Signature`] at the beginning of their payload.
///
/// Checksums change with the bytes that the signature replaces: right ones stay right.
#[derive(Clone, Debug)]
pub struct Templates {
    frames: Vec<Vec<u8>>,
    /// Where the signature begins in each; none without signatures.
    signatures: Vec<usize>,
    /// Frames without room for one, and the first of them.
    unsigned: Option<(usize, Unsigned)>,
}

/// Why a frame can have no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsigned {
    /// Which one it is, from 0.
    pub frame: usize,
    /// Bytes of its payload; `None`: it is no packet of TCP, UDP or ICMP, or its headers are not all there.
    pub payload: Option<usize>,
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.frame + 1;
        match self.payload {
            Some(bytes) => write!(
                f,
                "the payload of template {number} has {bytes} bytes, a signature {SIGNATURE_LENGTH}"
            ),
            None => write!(f, "template {number} is no packet of TCP, UDP or ICMP with all of its headers"),
        }
    }
}

impl Error for Unsigned {}

impl Templates {
    /// Takes frames as they are.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn new(frames: Vec<Vec<u8>>) -> Self {
        assert!(!frames.is_empty(), "a template");
        Self { frames, signatures: Vec::new(), unsigned: None }
    }

    /// Gives each frame room for a signature, and leaves out those that have none. `link_type` is that of capture files.
    ///
    /// # Errors
    ///
    /// The first frame, if none has room.
    pub fn signed(mut self, link_type: u16) -> Result<Self, Unsigned> {
        self.signatures.clear();
        let (signatures, unsigned) = (&mut self.signatures, &mut self.unsigned);
        let mut frame = 0;
        self.frames.retain_mut(|bytes| {
            let place = sign(link_type, bytes);
            match place {
                Ok(place) => signatures.push(place),
                Err(payload) => unsigned.get_or_insert((0, Unsigned { frame, payload })).0 += 1,
            }
            frame += 1;
            place.is_ok()
        });
        match self.unsigned {
            Some((_, first)) if self.frames.is_empty() => Err(first),
            _ => Ok(self),
        }
    }

    /// Returns how many frames were left out as they have no room for a signature, and the first of them.
    pub fn unsigned(&self) -> Option<(usize, Unsigned)> {
        self.unsigned
    }

    /// Returns the frames, before they are signed.
    pub fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }

    /// Returns the size of frame `sequence`.
    pub fn size(&self, sequence: u64) -> u32 {
        u32::try_from(self.frames[self.place(sequence)].len()).unwrap_or(u32::MAX)
    }

    /// Writes frame `sequence` over what `frame` has. `time`: see [`Signature`].
    pub fn write(&self, sequence: u64, time: u64, stream: u16, frame: &mut Vec<u8>) {
        let place = self.place(sequence);
        frame.clear();
        frame.extend_from_slice(&self.frames[place]);
        if let Some(&at) = self.signatures.get(place) {
            let signature = Signature { stream, sequence, time }.to_bytes();
            frame[at..at + SIGNATURE_LENGTH].copy_from_slice(&signature);
        }
    }

    fn place(&self, sequence: u64) -> usize {
        usize::try_from(sequence % self.frames.len() as u64).expect("less than the frames")
    }
}

/// Puts a signature into the payload, with the checksum that any signature leaves right, and returns where it begins.
/// Otherwise returns the bytes of the payload, if there is one.
fn sign(link_type: u16, frame: &mut [u8]) -> Result<usize, Option<usize>> {
    let (IPV4 | IPV6, network) = network(link_type, frame).ok_or(None)? else { return Err(None) };
    let packet = frame.get_mut(network..).ok_or(None)?;
    let layout = Layout::of(packet).filter(|layout| !layout.is_later()).ok_or(None)?;
    let transport = &mut packet[layout.transport.clone()];
    let header = match layout.protocol {
        UDP => 8,
        ICMP if !layout.is_ipv6 => 8,
        ICMPV6 if layout.is_ipv6 => 8,
        TCP => transport
            .get(12)
            .map(|offset| usize::from(offset >> 4) * 4)
            .filter(|&bytes| bytes >= 20)
            .ok_or(None)?,
        _ => return Err(None),
    };
    let payload = transport.get_mut(header..).ok_or(None)?;
    let room = payload.len();
    let place = payload.get_mut(..SIGNATURE_LENGTH).ok_or(Some(room))?;
    let change = Change::of(place, |place| {
        place.copy_from_slice(&Signature { stream: 0, sequence: 0, time: 0 }.to_bytes());
    });
    debug_assert_eq!(sum(&[place]), u16::MAX, "a signature sums up to 0");
    change.adjust(transport, layout.checksum().ok_or(None)?, layout.protocol == UDP);
    Ok(network + layout.transport.start + header)
}

/// Reads a frame from hexadecimal digits; spaces, colons, dots and hyphens between bytes do not count.
///
/// # Errors
///
/// What is wrong, and where.
pub fn hex(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut half = None;
    for (at, letter) in text.chars().enumerate() {
        let place = at + 1;
        if letter.is_whitespace() || matches!(letter, ':' | '.' | '-') {
            if half.is_some() {
                return Err(format!("half a byte before character {place}; two digits are a byte"));
            }
            continue;
        }
        let digit = letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let digit = digit.ok_or_else(|| {
            format!("`{}` at character {place} is no hexadecimal digit", letter.escape_default())
        })?;
        match half.take() {
            None => half = Some(digit),
            Some(high) => bytes.push(high << 4 | digit),
        }
    }
    if half.is_some() {
        return Err(format!("half a byte at the end, behind {}; two digits are a byte", bytes.len()));
    }
    if bytes.is_empty() { Err("no bytes".to_owned()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Integrity, integrity};
    use crate::{Description, Protocol, Sizes, Tables};

    /// A frame whose payload is no signature, with right checksums.
    fn frame(v6: bool, protocol: Protocol, size: u32) -> Vec<u8> {
        let sizes = Some(Sizes::Fixed(size));
        let tables = Tables::new(&Description { protocol, sizes, ..Description::new(v6) }).expect("possible");
        let mut frame = Vec::new();
        tables.write(0, 0, 0, &mut frame);
        // The sum stays the same.
        frame[tables.head_length..].reverse();
        frame[tables.head_length..].rotate_left(1);
        frame
    }

    #[test]
    fn signatures_leave_checksums_right() {
        for v6 in [false, true] {
            for protocol in [Protocol::Udp, Protocol::Tcp(2), Protocol::Icmp] {
                let plain = frame(v6, protocol, 120);
                assert_eq!(integrity(1, &plain), Integrity::Sound, "{protocol:?}");
                assert_eq!(Signature::find(&plain, 0), None);
                let templates = Templates::new(vec![plain.clone()]).signed(1).expect("there is room");
                let mut signed = Vec::new();
                templates.write(7, 1 << 40, 5, &mut signed);
                assert_eq!(integrity(1, &signed), Integrity::Sound, "{protocol:?}");
                let found = Signature::find(&signed, 0).expect("it is there");
                assert_eq!(found.signature, Signature { stream: 5, sequence: 7, time: 1 << 40 });
                assert_eq!(signed.len(), plain.len());
                assert_eq!(
                    signed[found.offset + SIGNATURE_LENGTH..],
                    plain[found.offset + SIGNATURE_LENGTH..]
                );
            }
        }
    }

    #[test]
    fn frames_come_in_turn_as_they_are() {
        let templates = Templates::new(vec![vec![1; 14], vec![2; 60], vec![3; 20]]);
        let mut frame = Vec::new();
        for sequence in 0..7 {
            templates.write(sequence, 9, 9, &mut frame);
            assert_eq!(frame, templates.frames()[usize::try_from(sequence % 3).expect("small")]);
            assert_eq!(templates.size(sequence) as usize, frame.len());
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_and_named() {
        let long = frame(false, Protocol::Udp, 60);
        let mut short = long[..59].to_vec();
        short[17] -= 1;
        let signed = |frames: Vec<Vec<u8>>| Templates::new(frames).signed(1);
        let templates = signed(vec![short.clone(), long.clone(), short.clone()]).expect("one has room");
        assert_eq!(templates.unsigned(), Some((2, Unsigned { frame: 0, payload: Some(17) })));
        let mut frame = Vec::new();
        for sequence in 0..3 {
            templates.write(sequence, 1, 5, &mut frame);
            let found = Signature::find(&frame, 0).expect("it is there");
            assert_eq!((found.signature.sequence, frame.len()), (sequence, 60));
        }
        assert_eq!(signed(vec![long.clone()]).expect("room").unsigned(), None);
        assert_eq!(
            signed(vec![short.clone(), short]).expect_err("none"),
            Unsigned { frame: 0, payload: Some(17) }
        );
        for other in [vec![0xff; 60], long[..40].to_vec(), vec![]] {
            let (left_out, first) =
                signed(vec![long.clone(), other]).expect("one has room").unsigned().expect("the other");
            assert_eq!((left_out, first), (1, Unsigned { frame: 1, payload: None }));
            assert!(first.to_string().starts_with("template 2 is no packet"), "{first}");
        }
    }

    #[test]
    fn hexadecimal_text() {
        for text in ["0aFf10", "0a:ff:10", "0a ff\n10", " 0aff-10 ", "0aff.10"] {
            assert_eq!(hex(text), Ok(vec![0x0a, 0xff, 0x10]), "{text}");
        }
        for (text, why) in [
            ("0a0", "half a byte at the end, behind 1"),
            ("0a 0 ff", "half a byte before character 5"),
            ("0a:0g", "`g` at character 5"),
            ("0x0a", "`x` at character 2"),
            ("0ä", "`\\u{e4}` at character 2"),
            ("", "no bytes"),
            (" : ", "no bytes"),
        ] {
            let error = hex(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
