#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! ```text
//! frame -> segment -> application -> parser -> message
//!             |                        ^
//!             `------> reader ---------'   what several segments say together
//! ```
//!
//! - `segment`: the payloads of TCP and UDP in a packet, the outermost first.
//! - `application`: which protocol a port stands for: the one list of ports, which printed lines use, too.
//! - `parser`: what reads a payload: a [`Parser`] for each protocol, and who gets which segment.
//! - `reader`: keeps the beginning of a message until its end comes.
//! - `message`: what they read; `dns`, `tls`, `http`, `sip`, `dhcp`, `dhcp6`: a type and a function for each.
//! - `offer`: what a client of TLS offers, for fingerprints.
//! - `placed`, `reading`: where a value is written; whether a message is there to its end.
//! - `head`: what HTTP and SIP have in common.
//! - `bytes`: fields of packets that may end early.

#![forbid(unsafe_code)]

pub mod application;
pub mod bytes;
mod dhcp;
mod dhcp6;
pub mod dns;
mod head;
mod http;
mod message;
mod offer;
mod parser;
mod placed;
mod reader;
mod reading;
mod segment;
mod sip;
mod tls;

pub use self::application::Application;
pub use self::dhcp::Dhcp;
pub use self::dhcp6::{Dhcp6, Prefix};
pub use self::dns::{Dns, DnsRecord};
pub use self::http::Http;
pub use self::message::{Found, Message};
pub use self::offer::Offer;
pub use self::parser::{Parser, parser};
pub use self::placed::Placed;
pub use self::reader::Reader;
pub use self::reading::Reading;
pub use self::segment::{Segment, segments};
pub use self::sip::Sip;
pub use self::tls::Tls;
