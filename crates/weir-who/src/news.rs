//! What a register learns from.

use std::net::IpAddr;

use crate::Sighting;

/// Something that a register is told. A file keeps all of it, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Something was seen of a socket.
    Sighting(Sighting),
    /// More is known of a process than when it was last told: its program, container, or unit.
    Described(std::sync::Arc<crate::Process>),
    /// A namespace has this address from now on.
    Address { at: u64, namespace: u64, address: IpAddr },
    /// It has lost the address.
    AddressGone { at: u64, namespace: u64, address: IpAddr },
    /// An interface, by its number in the file, is in this namespace.
    Interface { interface: u32, namespace: u64 },
    /// This many sightings were lost before this, for lack of room between the kernel and the process.
    Lost { at: u64, sightings: u64 },
}
