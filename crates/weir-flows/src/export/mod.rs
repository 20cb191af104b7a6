//! How flows are exported: as messages of IPFIX, NetFlow v9 or NetFlow v5. Bytes only: sockets and files are yours.
//!
//! ```text
//! Fields -> Settings -> Encoder -> messages, to your socket or file
//!    |                    |
//!    '- element           '- ipfix, netflow9, netflow5
//!       what can be told       '- record   a flow as the values of one record
//!                              '- outbox   the message that grows, and counts
//!                              '- uptime   the times of NetFlow
//!                              '- repeat   when templates are sent again
//! ```
//!
//! | | IPFIX | NetFlow v9 | NetFlow v5 |
//! |---|---|---|---|
//! | records of a flow | one, or one per direction | one per direction | one per direction, more beyond 32 bits |
//! | times | milliseconds or nanoseconds | milliseconds | milliseconds |
//! | IPv6, fields to choose, interface names | yes | yes | no |
//! | sampling | yes | yes | up to one in 16383 |
//! | account | all | what was exported | no |
//!
//! With a record per direction, both have the times of the flow, of its first packet and its last, whoever sent them, and
//! the type of ICMP of its first packet.
//!
//! ```
//! use weir_flows::export::{Encoder, Format, Settings};
//!
//! let settings = Settings { fields: "basic,applicationName".parse()?, ..Settings::default() };
//! let mut encoder = Encoder::new(Format::Ipfix, &settings)?;
//! let mut file = Vec::new();
//! let mut send = |message: &[u8]| {
//!     file.extend_from_slice(message);
//!     true
//! };
//! // For each flow that a table hands out: encoder.add(&flow, now, &mut send);
//! encoder.account(&Default::default(), 0, &mut send);
//! encoder.flush(0, &mut send);
//! assert_eq!(encoder.exported().sent.octets, file.len() as u64);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod element;
mod encoder;
mod fields;
mod ipfix;
mod netflow5;
mod netflow9;
mod outbox;
mod record;
mod repeat;
mod settings;
mod uptime;

pub use self::element::{Element, NTOP, REVERSE};
pub use self::encoder::{Encoder, Format};
pub use self::fields::{Fields, NoSuchField};
pub use self::ipfix::Ipfix;
pub use self::netflow5::Netflow5;
pub use self::netflow9::Netflow9;
pub use self::outbox::{Exported, Sum};
pub use self::settings::{Account, Error, Interface, Missed, Sampling, Settings};
