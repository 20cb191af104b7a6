//! The memory that packets are received into.

use crate::CallError;

use super::mapping::Mapping;

/// Bytes of one frame. The kernel keeps the first 256 for itself; a longer packet than the rest is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// 2048 bytes: packets up to 1792.
    TwoKib,
    /// 4096 bytes: packets up to 3840.
    FourKib,
}

/// Frames that a socket receives packets into.
#[derive(Debug)]
pub struct Umem {
    mapping: Mapping,
    frames: u32,
    shift: u32,
}

impl Umem {
    /// Maps memory for `frames` frames, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
    pub fn new(frames: u32, size: FrameSize) -> Result<Self, CallError> {
        let shift = match size {
            FrameSize::TwoKib => 11,
            FrameSize::FourKib => 12,
        };
        let short = || CallError::new(format!("map {frames} AF_XDP frames"), std::io::ErrorKind::OutOfMemory);
        let frames = frames.checked_next_power_of_two().ok_or_else(short)?;
        let mapping = Mapping::anonymous((frames as usize) << shift)
            .map_err(|e| CallError::new(format!("map {frames} AF_XDP frames"), e))?;
        Ok(Self { mapping, frames, shift })
    }

    /// How many.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Where it begins in this process.
    pub(super) fn start(&self) -> u64 {
        self.mapping.base().addr() as u64
    }

    /// Bytes.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.frames) << self.shift
    }

    pub(super) fn frame_size(&self) -> u32 {
        1 << self.shift
    }

    /// Where `frame` begins, as the rings count: in bytes from the beginning.
    pub(super) fn address(&self, frame: u32) -> u64 {
        u64::from(frame) << self.shift
    }

    /// The beginning of the frame that `address` lies in, if it lies in one.
    pub(super) fn frame_of(&self, address: u64) -> Option<u64> {
        (address < self.len()).then(|| address >> self.shift << self.shift)
    }

    /// The `length` bytes at `address`, if they lie in one frame.
    ///
    /// # Safety
    ///
    /// Nobody writes to that frame while the slice lives (X3).
    pub(super) unsafe fn packet(&self, address: u64, length: u32) -> Option<&[u8]> {
        let frame = self.frame_of(address)?;
        if u64::from(length) > u64::from(self.frame_size()) - (address - frame) {
            return None;
        }
        // In range: below `len`, which is what was mapped.
        let (offset, length) = (usize::try_from(address).ok()?, usize::try_from(length).ok()?);
        // SAFETY: Inside of the mapping by the checks above.
        let first = unsafe { self.mapping.base().add(offset) };
        // SAFETY: As above to its end; initialised, since the kernel maps zeros; unchanged, as the caller promises.
        Some(unsafe { std::slice::from_raw_parts(first, length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a descriptor leads to. Nobody writes to the memory here.
    fn length(umem: &Umem, address: u64, length: u32) -> Option<usize> {
        // SAFETY: There is no kernel in this test.
        unsafe { umem.packet(address, length) }.map(<[u8]>::len)
    }

    #[test]
    fn only_what_lies_in_one_frame_is_a_packet() {
        for (size, bytes) in [(FrameSize::TwoKib, 2048), (FrameSize::FourKib, 4096)] {
            let umem = Umem::new(3, size).unwrap();
            assert_eq!((umem.frames(), umem.len()), (4, 4 * u64::from(bytes)));
            assert_eq!(length(&umem, 0, 0), Some(0));
            assert_eq!(length(&umem, 256, 60), Some(60));
            assert_eq!(length(&umem, umem.address(3) + 256, bytes - 256), Some(bytes as usize - 256));
            assert_eq!(length(&umem, 256, bytes - 255), None);
            assert_eq!(length(&umem, 0, u32::MAX), None);
            assert_eq!(length(&umem, umem.len(), 0), None);
            assert_eq!(length(&umem, u64::MAX, 1), None);
            assert_eq!(length(&umem, u64::MAX - 59, 60), None);
        }
    }

    #[test]
    fn an_address_belongs_to_the_frame_it_lies_in() {
        let umem = Umem::new(4, FrameSize::TwoKib).unwrap();
        assert_eq!(umem.frame_of(2047), Some(0));
        assert_eq!(umem.frame_of(2048 + 256), Some(2048));
        assert_eq!(umem.frame_of(umem.address(3) + 2047), Some(umem.address(3)));
        assert_eq!(umem.frame_of(umem.len()), None);
        assert_eq!(umem.frame_of(u64::MAX), None);
    }

    #[test]
    fn more_frames_than_there_can_be_are_an_error() {
        assert!(Umem::new(u32::MAX, FrameSize::FourKib).is_err());
    }
}
