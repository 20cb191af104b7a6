//! What is changed, as text.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::ranges::{Addresses, Ports};

/// A network that takes the place of another: addresses keep the bits that the new prefix leaves open. As text:
/// `10.0.0.0/8=192.168.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkMap {
    from: Addresses,
    to: Addresses,
}

impl NetworkMap {
    /// Returns the address that takes the place of this one; `None`: it is of another network.
    pub fn map(&self, address: IpAddr) -> Option<IpAddr> {
        self.from.contains(address).then(|| self.to.with_host_of(address))
    }

    /// Whether several addresses become one, as the network is larger than the one that takes its place.
    pub fn merges(&self) -> bool {
        self.from.more() > self.to.more()
    }

    /// Returns what takes the place of a prefix of so many bits; `None`: it has addresses of another network.
    pub(crate) fn map_prefix(&self, prefix: Ipv6Addr, bits: u8) -> Option<IpAddr> {
        let hosts = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
        let last = Ipv6Addr::from_bits(prefix.to_bits() | hosts);
        self.map(last.into()).and_then(|_| self.map(prefix.into())).filter(|_| bits > 0)
    }
}

impl FromStr for NetworkMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed: two networks or addresses, such as 10.0.0.0/8=192.168.0.0/16";
        let network = |text: &str| match text.parse::<Addresses>() {
            Ok(network) if !text.contains('-') => Ok(network),
            Ok(_) => Err(format!("`{text}` is a range; {ALLOWED}")),
            Err(_) => Err(format!("`{text}` is no network; {ALLOWED}")),
        };
        let (from, to) = text.split_once('=').ok_or_else(|| format!("no `=`; {ALLOWED}"))?;
        let (from, to) = (network(from)?, network(to)?);
        if from.is_ipv6() != to.is_ipv6() {
            return Err(format!("one network is of IPv4, the other of IPv6; {ALLOWED}"));
        }
        Ok(Self { from, to })
    }
}

/// Ports that take the place of others. As text: `80=8080`, `8000-8100=80` (all become 80), `8000-8100=9000-9100` or
/// `1-1023=+10000` (each keeps its place).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMap {
    from: Ports,
    to: Ports,
}

impl PortMap {
    /// Returns the port that takes the place of this one; `None`: it is another one.
    pub fn map(&self, port: u16) -> Option<u16> {
        let place = self.from.place(port)?;
        Some(self.to.at(if self.to.more() == 0 { 0 } else { place }))
    }
}

impl FromStr for PortMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed: 80=8080, 8000-8100=80, 8000-8100=9000-9100, 1-1023=+10000";
        let refused = |why: String| format!("{why}; {ALLOWED}");
        let (from, to) = text.split_once('=').ok_or_else(|| refused("no `=`".to_owned()))?;
        let ports = |text: &str| {
            text.parse::<Ports>().map_err(|_| refused(format!("`{text}` is no port, and no range of ports")))
        };
        let from = ports(from)?;
        let to = match to
            .strip_prefix('+')
            .map(|offset| (offset, false))
            .or_else(|| to.strip_prefix('-').map(|offset| (offset, true)))
        {
            None => ports(to)?,
            Some((offset, down)) => {
                let digits = offset.bytes().all(|digit| digit.is_ascii_digit());
                let offset = offset.parse().ok().filter(|_: &u16| digits);
                let offset = offset.ok_or_else(|| refused(format!("`{to}` is no number of ports")))?;
                let moved = if down { from.down(offset) } else { from.up(offset) };
                moved.ok_or_else(|| refused(format!("`{text}` leads beyond the ports from 0 to 65535")))?
            }
        };
        if to.more() > 0 && to.more() != from.more() {
            return Err(refused(format!("`{text}` has ranges of different lengths")));
        }
        Ok(Self { from, to })
    }
}

/// What becomes of VLAN tags. As text: an ID, two of them (`7,8`), or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The outer tag gets this ID, and keeps its priority; a frame without a tag gets one (802.1Q).
    Id(u16),
    /// These two take the place of all tags, the outer one first (802.1ad). Each keeps the priority of the tag in its
    /// place; the inner one has that of the outer if there was no inner.
    Two(u16, u16),
    /// All tags are removed.
    None,
}

impl FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self::None);
        }
        let id = |text: &str| text.parse().ok().filter(|&id: &u16| id <= 4094);
        let tag = match text.split_once(',') {
            None => id(text).map(Self::Id),
            Some((outer, inner)) => id(outer).zip(id(inner)).map(|(outer, inner)| Self::Two(outer, inner)),
        };
        tag.ok_or_else(|| {
            format!("`{text}` is no VLAN; allowed: an ID from 0 to 4094, two as in 7,8, or none")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_keep_their_place_in_the_new_network() {
        for (map, from, to) in [
            ("10.0.0.0/8=192.168.0.0/16", "10.1.2.3", Some("192.168.2.3")),
            ("10.0.0.0/8=192.168.0.0/16", "11.1.2.3", None),
            ("10.1.0.0/16=20.0.0.0/8", "10.1.2.3", Some("20.1.2.3")),
            ("10.0.0.1=10.0.0.9", "10.0.0.1", Some("10.0.0.9")),
            ("0.0.0.0/0=1.2.3.4", "9.9.9.9", Some("1.2.3.4")),
            ("2001:db8::/32=fd00::/64", "2001:db8:7::5", Some("fd00::5")),
            ("2001:db8::/32=fd00::/64", "10.0.0.1", None),
        ] {
            let map: NetworkMap = map.parse().expect("a map");
            let parsed = |text: &str| text.parse::<IpAddr>().expect("an address");
            assert_eq!(map.map(parsed(from)), to.map(parsed), "{map:?} {from}");
        }
    }

    #[test]
    fn ports_become_one_or_keep_their_place() {
        for (map, from, to) in [
            ("80=8080", 80, Some(8080)),
            ("80=8080", 81, None),
            ("8000-8100=80", 8100, Some(80)),
            ("8000-8100=9000-9100", 8042, Some(9042)),
            ("1-1023=+10000", 1023, Some(11_023)),
            ("1-1023=+10000", 1024, None),
            ("10001-11023=-10000", 10_001, Some(1)),
            ("0-65535=+0", 7, Some(7)),
        ] {
            assert_eq!(map.parse::<PortMap>().expect("a map").map(from), to, "{map} {from}");
        }
        for (text, why) in [
            ("80", "no `=`"),
            ("80=65536", "`65536` is no port"),
            ("=1", "`` is no port"),
            ("9-8=1", "`9-8` is no port"),
            ("1-3=1-2", "different lengths"),
            ("1=2-3", "different lengths"),
            ("1-60000=+10000", "leads beyond"),
            ("5=-6", "leads beyond"),
            ("5=++6", "no number"),
            ("5=-", "no number"),
        ] {
            let error = text.parse::<PortMap>().expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{text}: {error}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("10.0.0.0/8", "no `=`"),
            ("10.0.0.0/33=10.0.0.0/8", "`10.0.0.0/33` is no network"),
            ("10.0.0.0/8=host", "`host` is no network"),
            ("10.0.0.1-10.0.0.9=10.0.0.0/8", "is a range"),
            ("10.0.0.0/8=fd00::/64", "the other of IPv6"),
        ] {
            let error = text.parse::<NetworkMap>().expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{text}: {error}");
        }
        assert_eq!(["7", "none", "NONE"].map(str::parse), [Ok(Tag::Id(7)), Ok(Tag::None), Ok(Tag::None)]);
        assert_eq!("7,8".parse(), Ok(Tag::Two(7, 8)));
        for text in ["", "4095", "-1", "7,", "7,8,9", "7,4095"] {
            assert!(text.parse::<Tag>().expect_err(text).contains("allowed: "), "{text}");
        }
    }
}
