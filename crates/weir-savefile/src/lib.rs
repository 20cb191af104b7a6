//! The bytes of capture files: pcapng ([draft-ietf-opsawg-pcapng]) and classic pcap.
//!
//! Nothing here does I/O. Encoders append to a `Vec<u8>` or fill a slice, in native byte order; decoders borrow from a
//! slice and answer any input with a value or an error.
//!
//! - [`record`]: the Enhanced Packet Block, one packet. A chunk of the pool is a run of these.
//! - [`pcapng`]: the blocks around the packets: section header, interface description, interface statistics.
//! - [`options`]: the list of options that any pcapng block may end with.
//! - [`pcap`]: the classic format.
//! - [`decode`]: files of either format, from whatever machine, byte by byte.
//!
//! [draft-ietf-opsawg-pcapng]: https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/

#![forbid(unsafe_code)]

pub mod decode;
pub mod options;
pub mod pcap;
pub mod pcapng;
pub mod record;

mod notes;
mod order;

pub use notes::Notes;
pub use order::ByteOrder;

/// Bytes of zeros that follow `len` bytes up to the next multiple of four, as pcapng aligns data and option values.
#[inline]
const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}
