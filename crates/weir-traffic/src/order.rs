//! The order of flows.

use std::str::FromStr;

use crate::random::Random;

/// Frames of a table in random order: at least so many, and for each flow so many on average.
const ENOUGH: usize = 1 << 16;
const PER_FLOW: usize = 8;
const COMMON: f64 = 1.1;
const STEEPEST: f64 = 10.0;

/// Which flow comes next. As text: `turn`, `random`, `zipf` (an exponent of 1.1) or `zipf:EXPONENT`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// One after the other.
    Turn,
    /// Each equally often, in random order.
    Random,
    /// In random order, and the second flow has 1/2^s of the frames of the first, the third 1/3^s, and so on (Zipf's
    /// law). Flows that would get none of the frames before the order repeats get none at all.
    Zipf(f64),
}

impl Order {
    /// Returns the flows in their order.
    pub(crate) fn table(&self, flows: u32, random: &mut Random) -> Vec<u32> {
        let exponent = match *self {
            Self::Turn => return (0..flows).collect(),
            Self::Random => 0.0,
            Self::Zipf(exponent) => exponent,
        };
        let rounds = ENOUGH.div_ceil(flows as usize).max(PER_FLOW);
        let length = flows as usize * rounds;
        // How much of everything the flows up to each one have.
        let mut whole = 0.0;
        let shares: Vec<f64> = (1..=flows)
            .map(|rank| {
                whole += f64::from(rank).powf(-exponent);
                whole
            })
            .collect();
        let mut flow = 0;
        let mut table = Vec::with_capacity(length);
        for place in 0..length {
            // The middle of the place's part of everything.
            let middle = (float(place) + 0.5) / float(length) * whole;
            while shares[flow] < middle && flow + 1 < shares.len() {
                flow += 1;
            }
            table.push(u32::try_from(flow).expect("less than the flows"));
        }
        random.shuffle(&mut table);
        table
    }

    /// Returns what is wrong with the exponent.
    pub(crate) fn mistake(&self) -> Option<String> {
        let Self::Zipf(exponent) = *self else { return None };
        let possible = exponent > 0.0 && exponent <= STEEPEST;
        (!possible).then(|| format!("{exponent} is no exponent above 0 and up to {STEEPEST}"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "tables have less than 2^53 entries")]
fn float(number: usize) -> f64 {
    number as f64
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "allowed: turn, random, zipf or zipf:1.1";
        let order = match text.split_once(':') {
            None if text == "turn" => Self::Turn,
            None if text == "random" => Self::Random,
            None if text == "zipf" => Self::Zipf(COMMON),
            Some(("zipf", exponent)) => {
                let number = exponent.parse().map_err(|_| format!("`{exponent}` is no number; {ALLOWED}"));
                Self::Zipf(number?)
            }
            _ => return Err(format!("`{text}` is no order; {ALLOWED}")),
        };
        order.mistake().map_or(Ok(order), |why| Err(format!("{why}; {ALLOWED}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of each flow.
    fn frames(order: Order, flows: u32) -> Vec<usize> {
        let mut frames = vec![0; flows as usize];
        for flow in order.table(flows, &mut Random::new(7)) {
            frames[flow as usize] += 1;
        }
        frames
    }

    #[test]
    fn orders_as_text() {
        for (text, order) in [
            ("turn", Order::Turn),
            ("random", Order::Random),
            ("zipf", Order::Zipf(1.1)),
            ("zipf:0.5", Order::Zipf(0.5)),
        ] {
            assert_eq!(text.parse(), Ok(order), "{text}");
        }
        for (text, why) in [
            ("", "no order"),
            ("turns", "no order"),
            ("zipf:", "no number"),
            ("zipf:0", "no exponent"),
            ("zipf:-1", "no exponent"),
            ("zipf:NaN", "no exponent"),
            ("zipf:inf", "no exponent"),
        ] {
            let error = text.parse::<Order>().expect_err(text);
            assert!(error.contains(why) && error.contains("allowed: "), "{text}: {error}");
        }
    }

    #[test]
    fn every_flow_gets_its_share() {
        assert_eq!(Order::Turn.table(3, &mut Random::new(1)), [0, 1, 2]);
        assert!(frames(Order::Random, 1000).iter().all(|&frames| frames == 66));
        let zipf = frames(Order::Zipf(1.0), 100);
        // 1 + 1/2 + ... + 1/100
        let all: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank)).sum();
        for (rank, frames) in zipf.iter().enumerate() {
            let expected = 65_600.0 / float(rank + 1) / all;
            assert!((float(*frames) - expected).abs() <= 1.0, "{rank}: {frames}, not {expected}");
        }
    }

    #[test]
    fn random_orders_depend_on_the_seed_only() {
        let table = |seed| Order::Random.table(100, &mut Random::new(seed));
        assert_eq!(table(1), table(1));
        assert_ne!(table(1), table(2));
        assert_ne!(table(1)[..3], [0, 1, 2]);
    }
}
