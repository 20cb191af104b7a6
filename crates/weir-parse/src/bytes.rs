//! The bytes of a packet, which may be truncated.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The packet ends before the field that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut;

/// Returns text from a packet, with U+FFFD in place of what is not UTF-8.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns text without the zeros that fill its field, and what is behind them.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The captured bytes of a header and everything after it, and their length on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// What was captured.
    pub data: &'a [u8],
    /// Length on the wire: `data.len()` or more.
    pub len: usize,
    /// Where they begin in the packet that they are part of.
    pub at: usize,
}

impl<'a> Bytes<'a> {
    /// Begins with a packet. `len`: its length on the wire; at least that of `data` counts.
    pub fn new(data: &'a [u8], len: usize) -> Self {
        Self { data, len: len.max(data.len()), at: 0 }
    }

    /// Returns the bytes from `at` on.
    pub fn from(self, at: usize) -> Self {
        Self {
            data: self.data.get(at..).unwrap_or_default(),
            len: self.len.saturating_sub(at),
            at: self.at.saturating_add(at),
        }
    }

    /// Returns at most `len` bytes, the number in a length field, without the padding after them.
    pub fn first(self, len: usize) -> Self {
        Self { data: &self.data[..self.data.len().min(len)], len: self.len.min(len), at: self.at }
    }

    /// Returns the bytes of something that is `len` bytes long on the wire, as its header says: without padding, and with
    /// what is missing.
    pub fn sized(self, len: usize) -> Self {
        Self { len, ..self.first(len) }
    }

    /// Returns whether all bytes were captured.
    pub fn whole(self) -> bool {
        self.data.len() == self.len
    }

    /// Returns `len` bytes at `at`.
    pub fn get(self, at: usize, len: usize) -> Result<&'a [u8], Cut> {
        self.data.get(at..).and_then(|rest| rest.get(..len)).ok_or(Cut)
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Cut> {
        self.get(at, N)?.try_into().map_err(|_| Cut)
    }

    /// Reads a byte.
    pub fn u8(self, at: usize) -> Result<u8, Cut> {
        self.data.get(at).copied().ok_or(Cut)
    }

    /// Reads 16 bits in network byte order, which all use but those that begin with `le`.
    pub fn u16(self, at: usize) -> Result<u16, Cut> {
        self.array(at).map(u16::from_be_bytes)
    }

    /// Reads 24 bits.
    pub fn u24(self, at: usize) -> Result<u32, Cut> {
        let [a, b, c] = self.array(at)?;
        Ok(u32::from_be_bytes([0, a, b, c]))
    }

    /// Reads 32 bits.
    pub fn u32(self, at: usize) -> Result<u32, Cut> {
        self.array(at).map(u32::from_be_bytes)
    }

    /// Reads 48 bits.
    pub fn u48(self, at: usize) -> Result<u64, Cut> {
        Ok(u64::from(self.u16(at)?) << 32 | u64::from(self.u32(at + 2)?))
    }

    /// Reads 64 bits.
    pub fn u64(self, at: usize) -> Result<u64, Cut> {
        self.array(at).map(u64::from_be_bytes)
    }

    /// Reads 16 bits, the lowest byte first.
    pub fn le16(self, at: usize) -> Result<u16, Cut> {
        self.array(at).map(u16::from_le_bytes)
    }

    /// Reads 32 bits, the lowest byte first.
    pub fn le32(self, at: usize) -> Result<u32, Cut> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Reads 64 bits, the lowest byte first.
    pub fn le64(self, at: usize) -> Result<u64, Cut> {
        self.array(at).map(u64::from_le_bytes)
    }

    /// Reads a hardware address.
    pub fn mac(self, at: usize) -> Result<[u8; 6], Cut> {
        self.array(at)
    }

    /// Reads an IPv4 address.
    pub fn ip4(self, at: usize) -> Result<Ipv4Addr, Cut> {
        self.array::<4>(at).map(Ipv4Addr::from)
    }

    /// Reads an IPv6 address.
    pub fn ip6(self, at: usize) -> Result<Ipv6Addr, Cut> {
        self.array::<16>(at).map(Ipv6Addr::from)
    }
}
