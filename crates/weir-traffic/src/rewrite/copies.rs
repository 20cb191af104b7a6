//! How far addresses have to shift so that copies of flows are flows of their own.

use std::collections::HashSet;
use std::net::IpAddr;

use weir_packet::ethertype::{IPV4, IPV6};

use super::{LAST, destination, source};
use crate::layout::network;

/// The flows of a capture, as pairs of addresses.
#[derive(Debug, Default)]
pub struct Copies {
    pairs: HashSet<Pair>,
    same: u64,
}

/// Two hosts, seen from one of them: what does not change when both shift, and the place that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Pair {
    /// What shifts go around in.
    ring: u64,
    /// The bits of both hosts that shifts leave alone.
    still: [u128; 2],
    distance: u64,
    place: u64,
}

/// An address that shifts: the bits that stay, its place, and how many places there are.
fn place(address: IpAddr) -> Option<(u128, u64, u64)> {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            (1..=LAST).contains(&bits).then(|| (u128::MAX, u64::from(bits - 1), LAST.into()))
        }
        IpAddr::V6(address) if address.is_multicast() || address.is_unspecified() => None,
        IpAddr::V6(address) => {
            let [.., a, b, c, d] = address.octets();
            Some((address.to_bits() >> 32, u32::from_be_bytes([a, b, c, d]).into(), 1 << 32))
        }
    }
}

impl Copies {
    /// Adds the flow of a packet. `link_type` is that of capture files.
    pub fn add(&mut self, link_type: u16, frame: &[u8]) {
        let Some((IPV4 | IPV6, _)) = network(link_type, frame) else { return };
        let ends = source(link_type, frame).zip(destination(link_type, frame));
        let Some((source, destination)) = ends else {
            self.same += 1;
            return;
        };
        match (place(source), place(destination)) {
            (None, None) => self.same += 1,
            (Some((still, place, ring)), None) => self.add_one(still, place, ring, destination),
            (None, Some((still, place, ring))) => self.add_one(still, place, ring, source),
            (Some(from), Some(to)) => {
                // Seen from the same end in both directions. From both, where none is before the other.
                let ring = from.2;
                let ahead = |from: (u128, u64, u64), to: (u128, u64, u64)| (to.1 + ring - from.1) % ring;
                for (from, to) in [(from, to), (to, from)] {
                    let distance = ahead(from, to);
                    if from.0 < to.0 || (from.0 == to.0 && distance <= ring - distance) {
                        self.pairs.insert(Pair { ring, still: [from.0, to.0], distance, place: from.1 });
                    }
                }
            }
        }
    }

    /// Adds a flow of which only one end shifts.
    fn add_one(&mut self, still: u128, place: u64, ring: u64, other: IpAddr) {
        let other = match other {
            IpAddr::V4(other) => other.to_bits().into(),
            IpAddr::V6(other) => other.to_bits(),
        };
        // No distance between two hosts is that long.
        self.pairs.insert(Pair { ring, still: [still, other], distance: u64::MAX, place });
    }

    /// Returns how many packets have no address that shifts, so that they are the same in all copies.
    pub fn same(&self) -> u64 {
        self.same
    }

    /// Returns a step by which addresses shift from one of so many copies to the next, so that no flow is that of another
    /// copy: 1 if possible. `None`: there are not enough addresses.
    pub fn step(&self, copies: u64) -> Option<u32> {
        let most = copies.saturating_sub(1);
        // Each time by half: the search is short, and the step less than twice what it has to be.
        let candidates = std::iter::successors(Some(1_u32), |step| step.checked_add(step / 2 + 1));
        let fits = |step: &u32| most.checked_mul((*step).into()).is_some_and(|way| way < u64::from(LAST));
        candidates.take_while(fits).find(|&step| self.differ(step.into(), most))
    }

    /// Whether all copies differ. Two pairs with the same distance meet if the step leads from one to the other.
    fn differ(&self, step: u64, most: u64) -> bool {
        // Each place twice, as shifts go around; once at most.
        let places = self.pairs.iter().flat_map(|pair| {
            [pair.place, pair.place + pair.ring]
                .map(|place| (Pair { place: 0, ..*pair }, place % step, place))
        });
        let mut places: Vec<_> = places.collect();
        places.sort_unstable();
        places.windows(2).all(|two| {
            let [(pair, rest, place), (next, next_rest, next_place)] = [two[0], two[1]];
            (pair, rest) != (next, next_rest) || (next_place - place) / step > most
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rewrite::shifted;

    fn packet(from: IpAddr, to: IpAddr) -> Vec<u8> {
        match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => [&[0x45; 12][..], &from.octets(), &to.octets()].concat(),
            (IpAddr::V6(from), IpAddr::V6(to)) => [&[0x60; 8][..], &from.octets(), &to.octets()].concat(),
            _ => Vec::new(),
        }
    }

    /// Checks that no flow is in two copies, by making all of them, in both directions; returns the step.
    fn checked(flows: &[(IpAddr, IpAddr)], copies: u32) -> Option<u32> {
        let mut all = Copies::default();
        for (from, to) in flows {
            all.add(101, &packet(*from, *to));
            all.add(101, &packet(*to, *from));
        }
        let step = all.step(copies.into())?;
        let mut seen: HashMap<[IpAddr; 2], u32> = HashMap::new();
        for copy in 0..copies {
            for (from, to) in flows {
                let mut ends = [from, to].map(|end| shifted(*end, copy * step));
                ends.sort();
                assert_eq!(*seen.entry(ends).or_insert(copy), copy, "{from} > {to}, step {step}");
            }
        }
        Some(step)
    }

    fn flows(pairs: &[(&str, &str)]) -> Vec<(IpAddr, IpAddr)> {
        let parsed = |text: &str| text.parse().expect("an address");
        pairs.iter().map(|(from, to)| (parsed(from), parsed(to))).collect()
    }

    #[test]
    fn no_flow_is_in_two_copies() {
        let ten = |from: &str, to: &str| {
            let pairs: Vec<_> =
                (1..=10).map(|host| (format!("{from}{host}"), format!("{to}{host}"))).collect();
            let pairs: Vec<_> = pairs.iter().map(|(from, to)| (&**from, &**to)).collect();
            flows(&pairs)
        };
        assert_eq!(checked(&ten("10.0.0.", "10.1.0."), 10), Some(11));
        assert_eq!(checked(&ten("2001:db8::", "2001:db8:1::"), 10), Some(17), "10 is 16 there");
        assert_eq!(checked(&ten("10.0.0.", "224.0.0."), 10), Some(1));
        for (pairs, copies, step) in [
            (&[("10.0.0.1", "10.0.0.2"), ("192.168.0.1", "192.168.0.2")][..], 1000, 1),
            (&[("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.3")], 100, 2),
            (&[("10.0.0.1", "224.0.0.1"), ("10.0.0.3", "224.0.0.1")], 2, 1),
            (&[("10.0.0.1", "224.0.0.1"), ("10.0.0.3", "224.0.0.1")], 3, 4),
            // Around the end.
            (&[("223.255.255.254", "223.255.255.255"), ("0.0.0.1", "0.0.0.2")], 9, 4),
            (&[("0.0.0.1", "112.0.0.0"), ("112.0.0.1", "223.255.255.255")], 9, 1),
            (&[("2001:db8::ffff:ffff", "2001:db8::7fff:ffff"), ("2001:db8::8000:0", "2001:db8::")], 9, 2),
        ] {
            assert_eq!(checked(&flows(pairs), copies), Some(step), "{pairs:?}");
        }
        let pair = flows(&[("10.0.0.1", "10.0.0.2")]);
        assert_eq!(checked(&pair, 1), Some(1));
        let mut all = Copies::default();
        all.add(101, &packet(pair[0].0, pair[0].1));
        assert_eq!((all.step(u64::from(LAST)), all.step(u64::from(LAST) + 1)), (Some(1), None));
    }

    #[test]
    fn packets_that_cannot_differ_are_counted() {
        let mut all = Copies::default();
        for (from, to) in
            flows(&[("0.0.0.0", "255.255.255.255"), ("::", "ff02::1"), ("10.0.0.1", "224.0.0.1")])
        {
            all.add(101, &packet(from, to));
        }
        all.add(101, &[0x45; 9]);
        all.add(1, &[0; 60]);
        assert_eq!(all.same(), 3);
    }
}
