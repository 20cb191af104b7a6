//! Flows: both directions of a conversation in one record, in a table of a fixed size whose sums close.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use weir::flows::{Settings, Table, observation};
//! use weir::reader::{Item, Reader};
//!
//! # let file = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101, 1_700_000_000, 5, 28, 28].map(u32::to_ne_bytes).concat();
//! # let mut file = file; file[4..8].copy_from_slice(&[2_u16, 4].map(u16::to_ne_bytes).concat());
//! # file.extend(*b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\x04\0\x08\0\0\x08\0\0");
//! let mut reader = Reader::from_read(Box::new(std::io::Cursor::new(file)), "a.pcap")?;
//! let mut link_types = Vec::new();
//! let mut table = Table::new(&Settings::default())?;
//! let mut flows = Vec::new();
//! while let Some(item) = reader.next()? {
//!     match item {
//!         Item::Packet(packet) => {
//!             let seen = observation(&packet, link_types[packet.interface as usize]);
//!             table.add(&seen, &mut |flow| flows.push(flow));
//!         }
//!         Item::Interface(number) => link_types.push(reader.interfaces()[number as usize].link_type),
//!         _ => {}
//!     }
//! }
//! table.end_all(&mut |flow| flows.push(flow));
//! assert_eq!((flows.len(), flows[0].packets()), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! A table is for one thread. [Steering](crate::Builder::steer) by flow gives each handler all packets of its flows, and so each
//! handler can have a table of its own.

/// Flows as messages of IPFIX, NetFlow v9 and NetFlow v5. No I/O.
pub use weir_flows::export;
pub use weir_flows::{
    Counted, Counts, EndReason, Flow, Icmp, Names, Observation, Rank, Settings, Side, Table, Tcp,
};
pub use weir_packet::Endpoint;

use crate::Packet;

/// Returns what a table needs of a packet. `link_type`: that of its interface (`LINKTYPE_*`).
pub fn observation<'a>(packet: &Packet<'a>, link_type: u16) -> Observation<'a> {
    Observation {
        time: packet.timestamp,
        interface: u16::try_from(packet.interface).unwrap_or(u16::MAX),
        link_type,
        frame: packet.data,
        length: packet.original_len,
    }
}

/// Returns what a table needs of what the kernel has counted.
#[cfg(feature = "live")]
pub(crate) fn counted(tally: &weir_ring::Tally, interface: u16) -> Counted {
    let address = |bytes: [u8; 16]| match bytes {
        [a, b, c, d, ..] if tally.version == 4 => std::net::IpAddr::from([a, b, c, d]),
        _ => std::net::IpAddr::from(bytes),
    };
    let [source, destination] = [(tally.source, 0), (tally.destination, 1)]
        .map(|(bytes, end)| Endpoint { address: address(bytes), port: tally.ports[end] });
    Counted {
        interface,
        source,
        destination,
        protocol: tally.protocol,
        vlan: tally.vlan,
        packets: tally.packets,
        bytes: tally.bytes,
        first: tally.first,
        last: tally.last,
        lengths: tally.lengths,
        ttls: tally.ttls,
        tos: tally.tos,
        flags: tally.flags,
        next: tally.next,
        retransmissions: tally.retransmissions,
        zero_windows: tally.zero_windows,
    }
}
