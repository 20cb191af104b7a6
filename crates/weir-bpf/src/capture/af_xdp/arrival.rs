//! What the program leaves in front of a packet.

use crate::layout::{arrival, get, mark, set};

const MARK: u32 = mark::ARRIVAL.0;

/// What the program knows about a packet (`struct arrival`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Nanoseconds since the Unix epoch; 0: none taken.
    pub timestamp: u64,
    /// The VLAN tag stripped by the device, as on the wire.
    pub tag: Option<[u8; 4]>,
    /// Length of the packet in bytes, in all its buffers.
    pub length: u32,
}

impl Arrival {
    /// Its bytes, which end where the packet begins.
    pub const BYTES: usize = size_of::<arrival>();

    /// Reads what the program left in [`BYTES`](Self::BYTES) bytes, and clears its mark there; `None` if it left nothing
    /// since.
    ///
    /// # Panics
    ///
    /// If there are fewer bytes.
    #[inline]
    pub fn take(bytes: &mut [u8]) -> Option<Self> {
        let bytes: &mut [u8; Self::BYTES] = bytes.first_chunk_mut().expect("all of it");
        if get!(bytes, arrival.mark) != MARK {
            return None;
        }
        set!(bytes, arrival.mark = !MARK);
        // Both are in the byte order of the wire.
        let [p0, p1] = get!(bytes, arrival.protocol).to_ne_bytes();
        let [t0, t1] = get!(bytes, arrival.tci).to_ne_bytes();
        Some(Self {
            timestamp: get!(bytes, arrival.timestamp),
            tag: Some([p0, p1, t0, t1]).filter(|_| [p0, p1] != [0, 0]),
            length: get!(bytes, arrival.length),
        })
    }

    /// Leaves it in `bytes`, as the program does.
    ///
    /// # Panics
    ///
    /// If there are fewer than [`BYTES`](Self::BYTES).
    pub fn leave(&self, bytes: &mut [u8]) {
        let [p0, p1, t0, t1] = self.tag.unwrap_or_default();
        set!(bytes, arrival.timestamp = self.timestamp);
        set!(bytes, arrival.protocol = u16::from_ne_bytes([p0, p1]));
        set!(bytes, arrival.tci = u16::from_ne_bytes([t0, t1]));
        set!(bytes, arrival.mark = MARK);
        set!(bytes, arrival.length = self.length);
        set!(bytes, arrival.unused = 0);
    }
}
