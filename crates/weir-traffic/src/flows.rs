//! Addresses and ports of the flows.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::description::{Description, DescriptionField, Refusal};
use crate::random::Random;

/// The most flows: their headers take 140 MB.
const MOST: u32 = 1 << 20;

/// Addresses and ports of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
}

impl Flow {
    /// Returns a dynamic port by which network devices tell the flows in a tunnel apart (RFC 7348, section 5).
    pub(crate) fn entropy(&self) -> u16 {
        let octets = |address| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let ports = [self.source_port, self.destination_port].map(u16::to_be_bytes).concat();
        let bytes = [octets(self.source), octets(self.destination), ports].concat();
        // FNV-1a
        let hash = bytes
            .iter()
            .fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        0xc000 | u16::try_from(hash >> 18).expect("14 bits")
    }
}

/// Returns the flows, no two the same.
pub(crate) fn flows(description: &Description, random: &mut Random) -> Result<Vec<Flow>, Refusal> {
    let Description { sources, destinations, source_ports, destination_ports, flows, .. } = description;
    let more = [sources.more(), destinations.more(), source_ports.more(), destination_ports.more()];
    let counts = more.map(|more| more.saturating_add(1));
    let possible = counts.iter().fold(1, |all: u128, &count| all.saturating_mul(count));
    let refused = |why: String, remedy: &str| {
        Err(Refusal { field: DescriptionField::Flows, why, remedy: remedy.to_owned() })
    };
    match *flows {
        0 => return refused("there is no traffic without a flow".to_owned(), "1 or more"),
        flows if flows > MOST => return refused(format!("the most are {MOST}"), "fewer"),
        flows if u128::from(flows) > possible => {
            let why = format!("addresses and ports give {possible}");
            return refused(why, "fewer, or larger ranges of addresses or ports");
        }
        _ => {}
    }
    if description.drawn {
        let mut taken = HashSet::new();
        let mut draw = || Flow {
            source: sources.draw(random),
            destination: destinations.draw(random),
            source_port: source_ports.draw(random),
            destination_port: destination_ports.draw(random),
        };
        let new = std::iter::from_fn(|| Some(draw())).filter(|flow| taken.insert(*flow));
        return Ok(new.take(*flows as usize).collect());
    }
    let walk = |number| {
        let [source, destination, source_port, destination_port] = steps(number, counts);
        Flow {
            source: sources.at(source),
            destination: destinations.at(destination),
            source_port: source_ports.at(source_port),
            destination_port: destination_ports.at(destination_port),
        }
    };
    Ok((0..*flows).map(walk).collect())
}

/// Returns how far each of four ranges of these lengths has advanced at flow `number`: by one with each flow, and by one
/// more wherever ranges would repeat what they had together. No combination comes twice before all came.
fn steps(number: u32, counts: [u128; 4]) -> [u128; 4] {
    let mut steps = [0; 4];
    // Among the combinations of the ranges up to this one, the place that is reached.
    let mut place = u128::from(number);
    for at in (0..4).rev() {
        let before = counts[..at].iter().fold(1, |all: u128, &count| all.saturating_mul(count));
        steps[at] = (place + place / least_common_multiple(before, counts[at])) % counts[at];
        place %= before;
    }
    steps
}

fn least_common_multiple(one: u128, other: u128) -> u128 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor).saturating_mul(other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_combination_comes_twice(counts in [1..9_u128, 1..9_u128, 1..9_u128, 1..9_u128]) {
            let all = u32::try_from(counts.iter().product::<u128>()).expect("few");
            let steps: HashSet<_> = (0..all).map(|number| steps(number, counts)).collect();
            prop_assert_eq!(steps.len(), all as usize);
            prop_assert!(steps.iter().all(|steps| steps.iter().zip(counts).all(|(step, count)| *step < count)));
        }
    }

    #[test]
    fn all_ranges_advance_with_each_flow() {
        assert_eq!(steps(0, [1 << 16, 1, 1 << 14, 1]), [0; 4]);
        assert_eq!(steps(5, [1 << 16, 1, 4, 1]), [5, 0, 1, 0]);
        assert_eq!(steps(5, [u128::MAX, u128::MAX, 4, 3]), [5, 5, 1, 2]);
        assert_eq!(
            [0, 1, 2, 3].map(|number| steps(number, [2, 2, 1, 1])),
            [[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0],]
        );
    }

    fn refusal(change: impl FnOnce(&mut Description)) -> Refusal {
        let mut description = Description::new(false);
        change(&mut description);
        flows(&description, &mut Random::new(1)).expect_err("refused")
    }

    #[test]
    fn only_flows_that_there_are() {
        let few = |description: &mut Description| {
            description.sources = "10.0.0.0/24".parse().expect("a range");
            description.source_ports = "7-9".parse().expect("a range");
            description.flows = 768;
        };
        for drawn in [false, true] {
            let mut description = Description { drawn, ..Description::new(false) };
            few(&mut description);
            let flows = flows(&description, &mut Random::new(1)).expect("possible");
            assert_eq!(flows.iter().collect::<HashSet<_>>().len(), 768);
        }
        let refused = refusal(|description| {
            few(description);
            description.flows = 769;
        });
        assert!(refused.field == DescriptionField::Flows && refused.why.contains("give 768"), "{refused}");
        assert!(refusal(|description| description.flows = 0).to_string().contains("try 1 or more"));
        assert!(refusal(|description| description.flows = MOST + 1).why.contains("1048576"));
    }
}
