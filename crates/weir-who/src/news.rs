//! What a register learns from.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{Process, Sighting};

/// Something that a register is told. A file keeps all of it, in this order. Times are nanoseconds since the Unix epoch, namespaces
/// the kernel's numbers of network namespaces, as in a [`Sighting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Something was seen of a socket.
    Sighting(Sighting),
    /// A process runs another program from now on.
    Executed {
        /// When.
        at: u64,
        /// What it is then.
        process: Arc<Process>,
    },
    /// More is known of a process, in all the time that it has this name and user: its program, container, or unit.
    Described(Arc<Process>),
    /// A namespace has this address from now on.
    Address {
        /// When.
        at: u64,
        /// Which namespace.
        namespace: u64,
        /// Its address.
        address: IpAddr,
    },
    /// It has lost the address.
    AddressGone {
        /// When.
        at: u64,
        /// Which namespace.
        namespace: u64,
        /// The address it had.
        address: IpAddr,
    },
    /// An interface is in a namespace.
    Interface {
        /// Its number in the file.
        interface: u32,
        /// The namespace.
        namespace: u64,
    },
    /// Sightings were lost before this, for lack of room between the kernel and the process.
    Lost {
        /// When this was noticed.
        at: u64,
        /// How many were lost.
        sightings: u64,
    },
}

impl News {
    /// Returns the time that it tells, in nanoseconds since the Unix epoch.
    pub fn time(&self) -> Option<u64> {
        match self {
            Self::Sighting(sighting) => Some(sighting.at),
            Self::Executed { at, .. }
            | Self::Address { at, .. }
            | Self::AddressGone { at, .. }
            | Self::Lost { at, .. } => Some(*at),
            Self::Described(_) | Self::Interface { .. } => None,
        }
    }
}
