//! What carries another packet.

use crate::bytes::{be16, be32, byte};
use crate::link::{Payload, by_version};
use crate::numbers::{ethertype, most, port, protocol};

/// The tunnels that a walk enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tunnel {
    /// IP in IP (RFC 2003, 2473, 4213).
    Ip,
    /// GRE, version 0 (RFC 2784, 2890).
    Gre,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
    /// A user's packet in GTP-U, version 1 (3GPP TS 29.281).
    GtpU,
}

/// The entry of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What kind of tunnel it is.
    pub tunnel: Tunnel,
    /// Its number: a network (VXLAN, Geneve: 24 bits), an end of the tunnel (GTP-U), or a key (GRE, if it has one).
    pub number: Option<u32>,
    /// The packet inside. [`ethertype::BRIDGED`]: it begins with an Ethernet header.
    pub inside: Payload,
}

/// Returns the tunnel that a payload of IP enters, if it is one. `protocol` is that of `bytes` from `at` on, which is no
/// later fragment.
#[inline]
pub fn enter(protocol: u8, bytes: &[u8], at: usize) -> Option<Entry> {
    match protocol {
        protocol::IPV4 => Some(in_ip(ethertype::IPV4, at)),
        protocol::IPV6 => Some(in_ip(ethertype::IPV6, at)),
        protocol::GRE => gre(bytes, at),
        protocol::UDP => match be16(bytes, at + 2)? {
            port::VXLAN | port::LINUX_VXLAN => vxlan(bytes, at + 8),
            port::GENEVE => geneve(bytes, at + 8),
            port::GTP_U => gtp_u(bytes, at + 8),
            _ => None,
        },
        _ => None,
    }
}

fn in_ip(kind: u16, at: usize) -> Entry {
    Entry { tunnel: Tunnel::Ip, number: None, inside: Payload { kind, at } }
}

fn gre(bytes: &[u8], at: usize) -> Option<Entry> {
    let flags = be16(bytes, at)?;
    // No routing, no other version.
    if flags & 0x4007 != 0 {
        return None;
    }
    let four = |bit: u16| if flags & bit != 0 { 4 } else { 0 };
    let (checksum, key, number) = (four(0x8000), four(0x2000), four(0x1000));
    Some(Entry {
        tunnel: Tunnel::Gre,
        number: if key > 0 { be32(bytes, at + 4 + checksum) } else { None },
        inside: Payload { kind: be16(bytes, at + 2)?, at: at + 4 + checksum + key + number },
    })
}

/// The upper three bytes of the four at `at`.
fn network(bytes: &[u8], at: usize) -> Option<u32> {
    be32(bytes, at).map(|field| field >> 8)
}

fn vxlan(bytes: &[u8], at: usize) -> Option<Entry> {
    // The flag says that there is a number.
    if byte(bytes, at)? & 8 == 0 {
        return None;
    }
    let inside = Payload { kind: ethertype::BRIDGED, at: at + 8 };
    Some(Entry { tunnel: Tunnel::Vxlan, number: Some(network(bytes, at + 4)?), inside })
}

fn geneve(bytes: &[u8], at: usize) -> Option<Entry> {
    let first = byte(bytes, at)?;
    if first & 0xc0 != 0 {
        return None;
    }
    let options = usize::from(first & 0x3f) * 4;
    let inside = Payload { kind: be16(bytes, at + 2)?, at: at + 8 + options };
    Some(Entry { tunnel: Tunnel::Geneve, number: Some(network(bytes, at + 4)?), inside })
}

fn gtp_u(bytes: &[u8], at: usize) -> Option<Entry> {
    const USERS_PACKET: u8 = 255;
    let flags = byte(bytes, at)?;
    // Version 1, not GTP'.
    if flags >> 4 != 3 || byte(bytes, at + 1)? != USERS_PACKET {
        return None;
    }
    let number = be32(bytes, at + 4)?;
    let mut inside = at + 8;
    if flags & 7 != 0 {
        // Sequence number, N-PDU number and the type of the first extension take four bytes, even if only one is there.
        inside += 4;
        let mut next = byte(bytes, inside - 1)?;
        if flags & 4 == 0 {
            next = 0;
        }
        for _ in 0..most::GTP_EXTENSIONS {
            if next == 0 {
                break;
            }
            // The length counts units of four bytes, and is never 0; the last byte is the type of the next.
            inside += 4 * usize::from(byte(bytes, inside).filter(|units| *units > 0)?);
            next = byte(bytes, inside - 1)?;
        }
        if next != 0 {
            return None;
        }
    }
    Some(Entry { tunnel: Tunnel::GtpU, number: Some(number), inside: by_version(bytes, inside)? })
}
