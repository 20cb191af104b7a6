//! Long headers (RFC 9000, section 17.2; RFC 9369, section 3.2).

use weir_parse::bytes::{Bytes, Cut};

const LONG: u8 = 0x80;
/// Set in all packets of these versions.
const FIXED: u8 = 0x40;
/// The longest ID of a connection.
const LONGEST_ID: usize = 20;

/// Versions that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

impl Version {
    fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            0x6b33_43cf => Some(Self::Two),
            _ => None,
        }
    }

    /// The types of Initial and Retry.
    fn kinds(self) -> [u8; 2] {
        match self {
            Self::One => [0, 3],
            Self::Two => [1, 0],
        }
    }
}

/// A packet with a long header and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) version: Version,
    /// It is one of the first, with a hello.
    pub(super) is_initial: bool,
    /// The ID of who gets it.
    pub(super) destination: &'a [u8],
    /// Where its number begins, which is encrypted.
    pub(super) number: usize,
    /// Where the packet ends.
    pub(super) end: usize,
}

impl<'a> Header<'a> {
    /// Returns whether these bytes begin with an Initial of a version that is known.
    pub(super) fn is_initial(packet: &[u8]) -> bool {
        let Some(&[first, a, b, c, d]) = packet.first_chunk() else { return false };
        let version = Version::of(u32::from_be_bytes([a, b, c, d]));
        version.is_some_and(|version| {
            first & (LONG | FIXED) == LONG | FIXED && first >> 4 & 3 == version.kinds()[0]
        })
    }

    /// Reads a header, whose packet is there to its end.
    pub(super) fn read(packet: &'a [u8]) -> Result<Self, Cut> {
        let all = Bytes::new(packet, packet.len());
        let first = all.u8(0)?;
        let version = Version::of(all.u32(1)?).ok_or(Cut)?;
        let [initial, retry] = version.kinds();
        let kind = first >> 4 & 3;
        if first & (LONG | FIXED) != LONG | FIXED || kind == retry {
            return Err(Cut);
        }
        let mut rest = all.from(5);
        let destination = id(&mut rest)?;
        id(&mut rest)?;
        if kind == initial {
            let token = usize::try_from(varint(&mut rest)?).map_err(|_| Cut)?;
            rest.get(0, token)?;
            rest = rest.from(token);
        }
        let length = usize::try_from(varint(&mut rest)?).map_err(|_| Cut)?;
        rest.get(0, length)?;
        Ok(Self { version, is_initial: kind == initial, destination, number: rest.at, end: rest.at + length })
    }
}

/// Takes the ID of a connection.
fn id<'a>(bytes: &mut Bytes<'a>) -> Result<&'a [u8], Cut> {
    let length = usize::from(bytes.u8(0)?);
    if length > LONGEST_ID {
        return Err(Cut);
    }
    let id = bytes.get(1, length)?;
    *bytes = bytes.from(1 + length);
    Ok(id)
}

/// Takes a number whose first two bits say how long it is (RFC 9000, section 16).
pub(super) fn varint(bytes: &mut Bytes<'_>) -> Result<u64, Cut> {
    let first = bytes.u8(0)?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1, length - 1)?;
    let number = rest.iter().fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte));
    *bytes = bytes.from(length);
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 9000, appendix A.1.
    #[test]
    fn numbers_say_how_long_they_are() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, number) in examples {
            for end in 0..bytes.len() {
                assert_eq!(varint(&mut Bytes::new(&bytes[..end], end)), Err(Cut));
            }
            let mut bytes = Bytes::new(bytes, bytes.len());
            assert_eq!((varint(&mut bytes), bytes.len), (Ok(number), 0));
        }
    }
}
