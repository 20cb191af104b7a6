#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//!
//! ```text
//! frame -> link (EtherType, LLC, VLAN tags, MPLS, PPPoE) -> ip (extension headers, fragments) -> tunnel -> ... -> rest
//! ```
//!
//! - `numbers`: protocols, EtherTypes, ports, and how far a walk goes; the C header with all of them.
//! - `link`, `ip`, `tunnel`: one step each; a reader that needs one layer asks for that alone. A link type whose packet is
//!   at no fixed place has a file in `link/`.
//! - `walk`: all layers, one after the other.
//! - `flow`: the key of a flow, in either direction, of the outermost or the innermost packet.
//! - `transport`: the header behind the outermost IP header, and its payload.
//! - `bytes`: fields in network byte order.
//!
//! Nothing here copies, allocates or keeps state: fragments say which datagram they belong to, and a reader remembers.

#![forbid(unsafe_code)]

pub mod bytes;
mod flow;
mod ip;
pub mod link;
mod numbers;
mod transport;
mod tunnel;
mod walk;

#[cfg(test)]
mod tests;

pub use self::flow::{Endpoint, Flow, FlowDirection};
pub use self::ip::{Extension, Extensions, Extent, Fragment, Ip, Version, address, is_extension};
pub use self::link::{Payload, Tag};
pub use self::numbers::{c_header, ethertype, link_type, most, port, ppp, protocol};
pub use self::transport::Transport;
pub use self::tunnel::{Entry, Tunnel, enter};
pub use self::walk::{Layer, Walk, What};
