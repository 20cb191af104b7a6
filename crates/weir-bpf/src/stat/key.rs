//! Keys, by which packets are counted (`key.h`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::xdp::skeleton::types::key;
use crate::layout::{get, key_field};

/// A field of a packet by which packets are counted: of its outermost IP header, behind VLAN tags, MPLS labels and PPPoE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyField {
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The source port of TCP, UDP, UDP-Lite, SCTP or DCCP. Fragments after the first have no ports.
    SourcePort,
    /// The destination port.
    DestinationPort,
    /// The lower of the two ports, which is usually that of the service. Both directions of a connection have the same.
    Port,
    /// The protocol in or behind the IP header, after extension headers of IPv6.
    Protocol,
    /// The ID of the outermost VLAN tag, 0 for a priority tag.
    Vlan,
}

impl KeyField {
    /// All fields, in the order in which keys show them.
    pub const ALL: [Self; 7] = [
        Self::Source,
        Self::SourcePort,
        Self::Destination,
        Self::DestinationPort,
        Self::Port,
        Self::Protocol,
        Self::Vlan,
    ];

    /// Returns the field's name: `src`, `sport`, `dst`, `dport`, `port`, `proto` or `vlan`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "src",
            Self::Destination => "dst",
            Self::SourcePort => "sport",
            Self::DestinationPort => "dport",
            Self::Port => "port",
            Self::Protocol => "proto",
            Self::Vlan => "vlan",
        }
    }

    /// Returns its bit.
    pub(super) fn bit(self) -> u32 {
        let bit = match self {
            Self::Source => key_field::BY_SOURCE,
            Self::Destination => key_field::BY_DESTINATION,
            Self::SourcePort => key_field::BY_SOURCE_PORT,
            Self::DestinationPort => key_field::BY_DESTINATION_PORT,
            Self::Port => key_field::BY_PORT,
            Self::Protocol => key_field::BY_PROTOCOL,
            Self::Vlan => key_field::BY_VLAN,
        };
        bit.0
    }
}

impl fmt::Display for KeyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for KeyField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|field| field.as_str() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("cannot count by `{text}`: it is no field of packets; try one of {names}")
        })
    }
}

/// The fields of a packet by which it is counted. A field is `None` if it was not asked for, or if the packet lacks it:
/// only IP packets have addresses, only some protocols have ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// [`KeyField::Source`].
    pub source: Option<IpAddr>,
    /// [`KeyField::SourcePort`].
    pub source_port: Option<u16>,
    /// [`KeyField::Destination`].
    pub destination: Option<IpAddr>,
    /// [`KeyField::DestinationPort`].
    pub destination_port: Option<u16>,
    /// [`KeyField::Port`].
    pub port: Option<u16>,
    /// [`KeyField::Protocol`].
    pub protocol: Option<u8>,
    /// [`KeyField::Vlan`].
    pub vlan: Option<u16>,
}

impl Key {
    /// Size of a `struct key`.
    #[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
    pub(super) const BYTES: u32 = size_of::<key>() as u32;

    /// Returns the field as text, if the packet has it.
    pub fn field(&self, field: KeyField) -> Option<String> {
        let number = |number: Option<u16>| number.map(|number| number.to_string());
        match field {
            KeyField::Source => self.source.map(|address| address.to_string()),
            KeyField::Destination => self.destination.map(|address| address.to_string()),
            KeyField::SourcePort => number(self.source_port),
            KeyField::DestinationPort => number(self.destination_port),
            KeyField::Port => number(self.port),
            KeyField::Protocol => number(self.protocol.map(u16::from)),
            KeyField::Vlan => number(self.vlan),
        }
    }

    /// Reads a `struct key`.
    ///
    /// # Panics
    ///
    /// If it has another size.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), size_of::<key>(), "the size of a key");
        let has = |field: KeyField| u32::from(get!(bytes, key.there)) & field.bit() != 0;
        let address = |long: [u8; 16]| match long {
            [a, b, c, d, ..] if get!(bytes, key.ip6) == 0 => IpAddr::from(Ipv4Addr::new(a, b, c, d)),
            long => IpAddr::from(Ipv6Addr::from(long)),
        };
        Self {
            source: has(KeyField::Source).then(|| address(get!(bytes, key.source))),
            destination: has(KeyField::Destination).then(|| address(get!(bytes, key.destination))),
            source_port: has(KeyField::SourcePort).then(|| get!(bytes, key.source_port)),
            destination_port: has(KeyField::DestinationPort).then(|| get!(bytes, key.destination_port)),
            port: has(KeyField::Port).then(|| get!(bytes, key.port)),
            vlan: has(KeyField::Vlan).then(|| get!(bytes, key.vlan)),
            protocol: has(KeyField::Protocol).then(|| get!(bytes, key.protocol)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::set;

    #[test]
    fn fields_are_found_by_their_names() {
        for field in KeyField::ALL {
            assert_eq!(field.as_str().parse(), Ok(field));
        }
        let error = "host".parse::<KeyField>().expect_err("no field");
        assert!(error.contains("`host`") && error.contains("try one of src, sport, dst"), "{error}");
    }

    #[test]
    fn fields_that_are_not_there_are_none() {
        let mut bytes = [0; size_of::<key>()];
        assert_eq!(Key::from_bytes(&bytes), Key::default());
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[10, 0, 0, 1]);
        set!(&mut bytes, key.source = address);
        set!(&mut bytes, key.destination_port = 53);
        set!(&mut bytes, key.there = 1 | 8);
        let key = Key { source: Some([10, 0, 0, 1].into()), destination_port: Some(53), ..Key::default() };
        assert_eq!(Key::from_bytes(&bytes), key);
        let texts = KeyField::ALL.map(|field| key.field(field).unwrap_or_else(|| "-".to_owned()));
        assert_eq!(texts.join(" "), "10.0.0.1 - - 53 - - -");
    }
}
