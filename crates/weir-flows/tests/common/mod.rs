//! Frames for tests.

/// One of TCP or UDP over IPv4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) time: u64,
    pub(crate) from: (u8, u16),
    pub(crate) to: (u8, u16),
    pub(crate) protocol: u8,
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) window: u16,
    pub(crate) payload: u16,
}

impl Made {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let header = if self.protocol == 6 { 20 } else { 8 };
        let length = 20 + header + self.payload;
        let mut frame = vec![2, 0, 0, 0, 0, self.to.0, 2, 0, 0, 0, 0, self.from.0, 8, 0];
        frame.extend([0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64 - self.from.0 % 3, self.protocol, 0, 0]);
        frame.extend([10, 0, 0, self.from.0, 10, 0, 0, self.to.0]);
        frame.extend(self.from.1.to_be_bytes());
        frame.extend(self.to.1.to_be_bytes());
        if self.protocol == 6 {
            frame.extend(self.sequence.to_be_bytes());
            frame.extend([0, 0, 0, 0, 0x50, self.flags]);
            frame.extend(self.window.to_be_bytes());
            frame.extend([0; 4]);
        } else {
            frame.extend((8 + self.payload).to_be_bytes());
            frame.extend([0; 2]);
        }
        frame.resize(14 + usize::from(length), 0);
        frame
    }
}
