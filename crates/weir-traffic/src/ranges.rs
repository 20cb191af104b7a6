//! Ranges of addresses and ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::random::Random;

/// IP addresses from a first to a last one. As text: `ADDRESS`, `FIRST-LAST`, or `ADDRESS/BITS`, all addresses with these
/// first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    first: IpAddr,
    last: IpAddr,
}

/// Ports from a first to a last one. As text: `PORT` or `FIRST-LAST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Addresses {
    /// Returns a range. `None`: the last address is before the first, or of another version.
    pub fn new(first: IpAddr, last: IpAddr) -> Option<Self> {
        (first.is_ipv4() == last.is_ipv4() && first <= last).then_some(Self { first, last })
    }

    /// Returns whether these are addresses of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.first.is_ipv6()
    }

    /// Returns how many addresses follow the first.
    pub(crate) fn more(&self) -> u128 {
        number(self.last) - number(self.first)
    }

    /// Returns the address that comes `step` after the first. It must be in the range.
    pub(crate) fn at(&self, step: u128) -> IpAddr {
        like(self.first, number(self.first) + step)
    }

    /// Returns whether the range has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4() && (self.first..=self.last).contains(&address)
    }

    /// Returns the address of this network that has the host part of the other one.
    pub(crate) fn with_host_of(&self, other: IpAddr) -> IpAddr {
        like(self.first, number(self.first) | (number(other) & self.more()))
    }

    pub(crate) fn draw(&self, random: &mut Random) -> IpAddr {
        self.at(random.up_to(self.more()))
    }
}

impl Ports {
    /// Returns a range. `None`: the last port is before the first.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// Returns how many ports follow the first.
    pub(crate) fn more(&self) -> u128 {
        u128::from(self.last - self.first)
    }

    /// Returns the port that comes `step` after the first. It must be in the range.
    pub(crate) fn at(&self, step: u128) -> u16 {
        self.first + u16::try_from(step).expect("in the range")
    }

    /// Returns how far a port is from the first; `None`: it is not in the range.
    pub(crate) fn place(&self, port: u16) -> Option<u128> {
        (self.first..=self.last).contains(&port).then(|| u128::from(port - self.first))
    }

    /// Returns the range that comes so much later; `None`: there is none.
    pub(crate) fn up(&self, by: u16) -> Option<Self> {
        Some(Self { first: self.first.checked_add(by)?, last: self.last.checked_add(by)? })
    }

    /// Returns the range that comes so much earlier; `None`: there is none.
    pub(crate) fn down(&self, by: u16) -> Option<Self> {
        Some(Self { first: self.first.checked_sub(by)?, last: self.last.checked_sub(by)? })
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u16 {
        self.at(random.up_to(self.more()))
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns the address of this number, of the same version as `other`.
fn like(other: IpAddr, number: u128) -> IpAddr {
    match other {
        IpAddr::V4(_) => Ipv4Addr::from_bits(u32::try_from(number).expect("in the range")).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
    }
}

impl FromStr for Addresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str =
            "allowed: 198.18.0.1, 198.18.0.0/16, 198.18.0.1-198.18.0.9, or the same of IPv6";
        let address =
            |text: &str| text.parse::<IpAddr>().map_err(|_| format!("`{text}` is no IP address; {ALLOWED}"));
        if let Some((network, bits)) = text.split_once('/') {
            let network = address(network)?;
            let width = if network.is_ipv4() { 32 } else { 128_u32 };
            let bits = bits.parse::<u32>().ok().filter(|&bits| bits <= width);
            let bits = bits.ok_or_else(|| format!("a prefix has 0 to {width} bits; {ALLOWED}"))?;
            // Of 128 bits, those that vary.
            let varying = u128::MAX.checked_shr(128 - (width - bits)).unwrap_or(0);
            let base = number(network) & !varying;
            return Ok(Self { first: like(network, base), last: like(network, base | varying) });
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (address(first)?, address(last)?);
        if first.is_ipv4() != last.is_ipv4() {
            return Err(format!("one address is of IPv4, the other of IPv6; {ALLOWED}"));
        }
        Self::new(first, last).ok_or_else(|| format!("the last address is before the first; {ALLOWED}"))
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed: a port, or FIRST-LAST, from 0 to 65535";
        let port = |text: &str| text.parse().map_err(|_| format!("`{text}` is no port; {ALLOWED}"));
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ports = Self::new(port(first)?, port(last)?);
        ports.ok_or_else(|| format!("the last port is before the first; {ALLOWED}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_read() {
        for (text, first, last) in [
            ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
            ("10.0.0.7/24", "10.0.0.0", "10.0.0.255"),
            ("10.0.0.7/32", "10.0.0.7", "10.0.0.7"),
            ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
            ("10.0.0.250-10.0.1.5", "10.0.0.250", "10.0.1.5"),
            ("2001:2::/126", "2001:2::", "2001:2::3"),
            ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:2::5-2001:2::9", "2001:2::5", "2001:2::9"),
        ] {
            let range: Addresses = text.parse().expect(text);
            assert_eq!(
                (range.at(0), range.at(range.more())),
                (first.parse().unwrap(), last.parse().unwrap())
            );
        }
        let ports: Ports = "1000-1003".parse().expect("ports");
        assert_eq!((ports.at(0), ports.at(ports.more())), (1000, 1003));
        assert_eq!("9".parse::<Ports>().expect("a port").more(), 0);
    }

    #[test]
    fn ranges_that_are_refused_say_what_is_allowed() {
        for (text, why) in [
            ("", "`` is no IP address"),
            ("10.0.0", "`10.0.0` is no IP address"),
            ("10.0.0.0/33", "0 to 32 bits"),
            ("::/129", "0 to 128 bits"),
            ("10.0.0.0/x", "0 to 32 bits"),
            ("10.0.0.2-10.0.0.1", "before the first"),
            ("10.0.0.2-::1", "the other of IPv6"),
            ("10.0.0.2-", "`` is no IP address"),
        ] {
            let error = text.parse::<Addresses>().expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{text}: {error}");
        }
        for (text, why) in [("65536", "no port"), ("-1", "no port"), ("5-4", "before"), ("1-2-3", "no port")]
        {
            let error = text.parse::<Ports>().expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{text}: {error}");
        }
    }
}
