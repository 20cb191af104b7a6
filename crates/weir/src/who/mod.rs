//! Whose packets are: process, user and container.
//!
//! A capture with owners keeps what was seen of sockets in its file ([`Writer::who`](crate::writer::Writer::who)), in blocks of
//! their own ([`weir_savefile::pcapng::WhoBlock`]). [`Owners`] joins them with packets again. While packets are captured, a `Tracker`
//! follows the sockets of this host.
//!
//! ```no_run
//! use weir::reader::{Item, Reader};
//! use weir::who::Owners;
//!
//! # fn main() -> Result<(), weir::reader::ReadError> {
//! let path = "a.pcapng".as_ref();
//! // Packets may be in the file before what is known of their sockets, so read that first.
//! let (mut first, mut owners) = (Reader::open(path)?, Owners::default());
//! while let Some(item) = first.next()? {
//!     if let Item::Block { kind, body } = item {
//!         owners.learn(kind, body);
//!     }
//! }
//! let mut reader = Reader::open(path)?;
//! while let Some(packet) = reader.next_packet()? {
//!     for owner in owners.whose(&packet, 1).owners() {
//!         println!("{:?} {:?}", owner.certainty, owner.processes);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub(crate) mod owners;

pub use weir_who::{
    Cause, Certainty, Container, Counts, News, Owner, Placed, Process, ProcessId, Question, Register,
    Settings, Side, Sighting, SocketKind, Whose, decode, encode,
};

pub(crate) use self::owners::renumbered;
pub use self::owners::{Owners, outbound};
#[cfg(feature = "live")]
pub use crate::live::who::{HookState, Tracker, TrackerSettings};

/// Returns which run of the system this is (`/proc/sys/kernel/random/boot_id`); zeros if it cannot be read. The numbers of
/// sockets and processes are only told from each other within one.
pub fn boot() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_run_of_the_system_has_a_number_of_its_own() {
        assert_eq!(super::boot(), super::boot());
        assert_ne!(super::boot(), [0; 16]);
    }
}
