//! The byte order of a file, which is that of the machine that wrote it.

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByteOrder {
    /// The lowest: x86, ARM.
    Little,
    /// The highest: old SPARC, PowerPC, network equipment.
    Big,
}

impl ByteOrder {
    /// That of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };

    /// The other one.
    pub const fn swapped(self) -> Self {
        match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        }
    }

    /// The number that these bytes are.
    #[inline]
    pub const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The number that these bytes are.
    #[inline]
    pub const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The number that these bytes are.
    #[inline]
    pub const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The number at `at`; `None`: the bytes end before it does.
    #[inline]
    pub(crate) fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        bytes.get(at..)?.first_chunk().map(|chunk| self.u16(*chunk))
    }

    /// The number at `at`; `None`: the bytes end before it does.
    #[inline]
    pub(crate) fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        bytes.get(at..)?.first_chunk().map(|chunk| self.u32(*chunk))
    }

    /// A time stamp of pcapng, high half first; `None`: the bytes end before it does.
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
