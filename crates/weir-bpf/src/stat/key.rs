//! Keys, by which packets are counted (`key.h`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

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

    /// Returns its bit in `key.h`.
    pub(super) fn bit(self) -> u8 {
        match self {
            Self::Source => 1,
            Self::Destination => 2,
            Self::SourcePort => 4,
            Self::DestinationPort => 8,
            Self::Port => 16,
            Self::Protocol => 32,
            Self::Vlan => 64,
        }
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

/// Size of `struct key`.
pub(super) const KEY_BYTES: u32 = 44;

impl Key {
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
        let bytes: &[u8; KEY_BYTES as usize] = bytes.try_into().expect("the size of a key");
        let has = |field: KeyField| bytes[41] & field.bit() != 0;
        let ip6 = bytes[42] != 0;
        let address = |at: usize| match ip6 {
            true => IpAddr::from(Ipv6Addr::from(*bytes[at..].first_chunk::<16>().expect("inside"))),
            false => IpAddr::from(Ipv4Addr::from(*bytes[at..].first_chunk::<4>().expect("inside"))),
        };
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            source: has(KeyField::Source).then(|| address(0)),
            destination: has(KeyField::Destination).then(|| address(16)),
            source_port: has(KeyField::SourcePort).then(|| number(32)),
            destination_port: has(KeyField::DestinationPort).then(|| number(34)),
            port: has(KeyField::Port).then(|| number(36)),
            vlan: has(KeyField::Vlan).then(|| number(38)),
            protocol: has(KeyField::Protocol).then_some(bytes[40]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Key::from_bytes(&[0; KEY_BYTES as usize]), Key::default());
        let mut bytes = [0; KEY_BYTES as usize];
        bytes[..4].copy_from_slice(&[10, 0, 0, 1]);
        bytes[34..36].copy_from_slice(&53_u16.to_ne_bytes());
        bytes[41] = 1 | 8;
        let key = Key { source: Some([10, 0, 0, 1].into()), destination_port: Some(53), ..Key::default() };
        assert_eq!(Key::from_bytes(&bytes), key);
        let texts = KeyField::ALL.map(|field| key.field(field).unwrap_or_else(|| "-".to_owned()));
        assert_eq!(texts.join(" "), "10.0.0.1 - - 53 - - -");
    }
}
