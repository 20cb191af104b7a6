//! A middlebox between two interfaces: it redirects TCP and UDP from one port to another, and changes the answers back.
//!
//! ```text
//! middlebox IN OUT 8080 80
//! ```
//!
//! Packets that arrive on IN for port 8080 leave through OUT for port 80. Packets that arrive on OUT from port 80 leave
//! through IN as if from port 8080. All others pass unchanged. Checksums are updated incrementally (RFC 1624), so a
//! packet that was damaged before stays detectably damaged. Besides `weir` it needs the crate `weir-packet`.
#![allow(clippy::print_stdout, reason = "it is how it tells")]

use std::env;
use std::error::Error;
use std::time::Duration;

use weir::Forward;
use weir::forward::{ForwardHandler, ForwardLane, ForwardPacket, Verdict};
use weir_packet::bytes::be16;
use weir_packet::{link, link_type, protocol};

/// Changes a port of packets in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewrite {
    /// Whether this is the destination port rather than the source port.
    pub(crate) of_destination: bool,
    /// The original port.
    pub(crate) from: u16,
    /// The new port.
    pub(crate) to: u16,
}

impl ForwardHandler for Rewrite {
    fn packet(&mut self, packet: &mut ForwardPacket<'_, '_>) -> Verdict {
        if let Some((ports, checksum)) = transport(packet.data()) {
            let port = if self.of_destination { ports + 2 } else { ports };
            if be16(packet.data(), port) == Some(self.from) {
                put(packet.data_mut(), port, self.to);
                match (be16(packet.data(), checksum.at), checksum.optional) {
                    (None, _) | (Some(0), true) => {} // there is none
                    (Some(sum), optional) => {
                        let sum = updated(sum, self.from, self.to);
                        // If 0 means "no checksum", a checksum of 0 is written in its other form.
                        put(packet.data_mut(), checksum.at, if sum == 0 && optional { !0 } else { sum });
                    }
                }
            }
        }
        Verdict::Forward
    }
}

/// The position of a checksum, and whether 0 means that there is none.
pub(crate) struct Checksum {
    at: usize,
    optional: bool,
}

/// Returns the position of the ports, and the checksum, for TCP and UDP in the outermost IP packet. `None` for everything
/// else, including later fragments.
pub(crate) fn transport(data: &[u8]) -> Option<(usize, Checksum)> {
    let outer = link::outermost_ip(link_type::ETHERNET, data)?;
    let (ip, packet) = outer.ip(data)?;
    ip.ports(packet)?;
    let transport = outer.at + ip.payload;
    match ip.protocol {
        protocol::TCP => Some((transport, Checksum { at: transport + 16, optional: false })),
        protocol::UDP => Some((transport, Checksum { at: transport + 6, optional: true })),
        _ => None,
    }
}

/// Updates a checksum for a changed word (RFC 1624, equation 3).
fn updated(sum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).expect("all carries were added")
}

fn put(data: &mut [u8], at: usize, value: u16) {
    data[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[allow(dead_code, reason = "tests take the rest of this file")]
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [from, to, outer, inner] = args.as_slice() else {
        return Err("usage: middlebox IN OUT PORT PORT-BEHIND".into());
    };
    let (outer, inner) = (outer.parse()?, inner.parse()?);
    let rewrite = move |lane: ForwardLane| match lane.direction {
        0 => Rewrite { of_destination: true, from: outer, to: inner },
        _ => Rewrite { of_destination: false, from: inner, to: outer },
    };
    let mut forward = Forward::between(from, to).both(true).open_with(rewrite)?;
    loop {
        for event in forward.wait(Duration::from_secs(1))? {
            println!("{event}");
        }
        let total = forward.stats()?.total();
        println!("{} forwarded, {} of them changed, {} lost", total.forwarded, total.changed, total.lost());
    }
}
