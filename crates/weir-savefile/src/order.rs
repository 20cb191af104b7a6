//! The byte order of a file, set by the machine that wrote it.

/// The order of the bytes in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByteOrder {
    /// Lowest byte first: x86, ARM.
    Little,
    /// Highest byte first: old SPARC, PowerPC, network equipment.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    /// Returns the opposite byte order.
    pub const fn swapped(self) -> Self {
        match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        }
    }

    /// Decodes a 16-bit number.
    #[inline]
    pub const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Decodes a 32-bit number.
    #[inline]
    pub const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Decodes a 64-bit number.
    #[inline]
    pub const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Decodes the number at `at`; `None` if the bytes end before it does.
    #[inline]
    pub(crate) fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        bytes.get(at..)?.first_chunk().map(|chunk| self.u16(*chunk))
    }

    /// Decodes the number at `at`; `None` if the bytes end before it does.
    #[inline]
    pub(crate) fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        bytes.get(at..)?.first_chunk().map(|chunk| self.u32(*chunk))
    }

    /// Decodes a pcapng timestamp, high half first; `None` if the bytes end before it does.
    #[inline]
    pub(crate) fn time_at(self, bytes: &[u8], at: usize) -> Option<u64> {
        Some(u64::from(self.u32_at(bytes, at)?) << 32 | u64::from(self.u32_at(bytes, at + 4)?))
    }
}

impl std::fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Little => "little endian",
            Self::Big => "big endian",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_reads_its_own_numbers() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let little = ByteOrder::Little;
        assert_eq!((little.u16([1, 2]), little.u32([1, 2, 3, 4])), (0x0201, 0x0403_0201));
        assert_eq!(little.u64([1, 2, 3, 4, 5, 6, 7, 8]), 0x0807_0605_0403_0201);
        assert_eq!(little.time_at(&bytes, 1), Some(0x0504_0302_0908_0706));
        let big = ByteOrder::Big;
        assert_eq!((big.u16([1, 2]), big.u32([1, 2, 3, 4])), (0x0102, 0x0102_0304));
        assert_eq!(big.u64([1, 2, 3, 4, 5, 6, 7, 8]), 0x0102_0304_0506_0708);
        assert_eq!(big.time_at(&bytes, 1), Some(0x0203_0405_0607_0809));
        assert_eq!((big.u16_at(&bytes, 7), big.u16_at(&bytes, 8)), (Some(0x0809), None));
        assert_eq!(
            (big.u32_at(&bytes, 5), big.u32_at(&bytes, 6), big.u32_at(&bytes, 10)),
            (Some(0x0607_0809), None, None)
        );
        assert_eq!(big.time_at(&bytes, 2), None);
        assert_eq!((big.swapped(), little.swapped()), (little, big));
        assert_eq!([big, little].map(|order| order.to_string()), ["big endian", "little endian"]);
    }
}
