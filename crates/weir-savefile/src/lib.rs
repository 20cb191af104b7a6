//! The formats of capture files: pcapng ([draft-ietf-opsawg-pcapng]) and classic pcap.
//!
//! Nothing here does I/O. Encoders append to a `Vec<u8>` or fill a slice, in native byte order; decoders borrow from a
//! slice and return a value or an error for any input.
//!
//! - [`record`]: the Enhanced Packet Block, one packet. A chunk of the pool is a sequence of these.
//! - [`pcapng`]: the blocks around the packets: section header, interface description, interface statistics.
//! - [`options`]: the list of options that may end any pcapng block.
//! - [`pcap`]: the classic format.
//! - [`decode`]: a decoder for files of either format and any byte order.
//! - [`link_types`]: the names and numbers of link types.
//!
//! [draft-ietf-opsawg-pcapng]: https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/

#![forbid(unsafe_code)]

pub mod decode;
pub mod link_types;
pub mod options;
pub mod pcap;
pub mod pcapng;
pub mod record;

mod notes;
mod order;

pub use notes::Notes;
pub use order::ByteOrder;

/// Returns the number of zero bytes that pad `len` bytes of data or option value to a multiple of four.
#[inline]
const fn padding(len: usize) -> usize {
    len.wrapping_neg() & 3
}
