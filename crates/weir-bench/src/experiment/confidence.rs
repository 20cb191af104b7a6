//! What a handful of values says, and how surely.
//!
//! No distribution is assumed: the true median lies between the k-th smallest and the k-th largest of n values unless
//! fewer than k of them fall on one side of it, as n tossed coins do.

use serde::{Deserialize, Serialize};

/// The confidence asked for. With five rounds the whole range has 0.9375, with six 0.969.
const WANTED: f64 = 0.95;
/// With less, there is no telling a difference.
pub(crate) const LEAST: f64 = 0.9;
/// Smaller differences are the machine's noise, however surely they were measured.
pub(crate) const NOISE: f64 = 0.02;

/// A median, and the interval in which that of endless rounds lies. In a file it is a list of its fields.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The interval's probability: 0 to 1.
    pub(crate) confidence: f64,
}

impl Estimate {
    /// Estimates from finite values; `None` without any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        let middle = count / 2;
        let upper = *values.get(middle)?;
        let median = if count % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) };
        // The narrowest interval that is sure enough, or else the widest.
        let cut = (0..middle).rev().find(|&cut| confidence(count, cut) >= WANTED).unwrap_or(0);
        let (low, high) = (values[cut], values[count - 1 - cut]);
        Some(Self { median, low, high, confidence: confidence(count, cut) })
    }

    /// Whether the two differ: both are sure enough, do not overlap, and are farther apart than noise.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        let sure = self.confidence >= LEAST && other.confidence >= LEAST;
        let apart = self.low > other.high || self.high < other.low;
        sure && apart
            && (self.median - other.median).abs() > NOISE * self.median.abs().max(other.median.abs())
    }
}

impl From<[f64; 4]> for Estimate {
    fn from([median, low, high, confidence]: [f64; 4]) -> Self {
        Self { median, low, high, confidence }
    }
}

impl From<Estimate> for [f64; 4] {
    fn from(Estimate { median, low, high, confidence }: Estimate) -> Self {
        [median, low, high, confidence]
    }
}

/// The probability that the median lies between the values that remain when `cut` are cut off at each end.
fn confidence(count: usize, cut: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut outside = 0.0;
    for heads in 0..=cut {
        outside += term;
        term *= (count - heads) as f64 / (heads + 1) as f64;
    }
    (1.0 - 2.0 * outside).max(0.0)
}

/// Who is ahead of whom, by ratios within rounds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Our values divided by theirs.
    pub(crate) ratio: Estimate,
    pub(crate) ahead: Option<Side>,
}

/// Of a comparison.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Ours,
    Theirs,
}

impl Comparison {
    /// Compares rounds that both have; `None` if there is no such round, or if all values are 0. `higher`: more is
    /// better.
    pub(crate) fn of(ours: &[(u32, f64)], theirs: &[(u32, f64)], higher: bool) -> Option<Self> {
        let ratios = ours.iter().filter_map(|&(round, value)| {
            let (_, other) = theirs.iter().find(|(number, _)| *number == round)?;
            // Nothing against nothing is the same; nothing against something is less by any measure.
            Some(if value == *other { 1.0 } else { value / other.max(f64::MIN_POSITIVE) })
        });
        let ratio = Estimate::of(ratios.map(|ratio| ratio.min(1e9)))?;
        let sure = ratio.confidence >= LEAST;
        let ahead = match ratio {
            Estimate { low, .. } if sure && low > 1.0 + NOISE => Some(higher),
            Estimate { high, .. } if sure && high < 1.0 - NOISE => Some(!higher),
            _ => None,
        };
        Some(Self { ratio, ahead: ahead.map(|ours| if ours { Side::Ours } else { Side::Theirs }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confidence_is_that_of_coins() {
        for (count, cut, expected) in
            [(1, 0, 0.0), (2, 0, 0.5), (5, 0, 0.9375), (6, 0, 0.96875), (10, 1, 0.978_515_625)]
        {
            assert!(
                (confidence(count, cut) - expected).abs() < 1e-12,
                "{count} {cut}: {}",
                confidence(count, cut)
            );
        }
    }

    #[test]
    fn the_median_and_where_it_may_lie() {
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([f64::NAN]), None);
        let of = |values: &[f64]| Estimate::of(values.iter().copied()).expect("values");
        assert_eq!(of(&[3.0]), Estimate { median: 3.0, low: 3.0, high: 3.0, confidence: 0.0 });
        let five = of(&[5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!((five.median, five.low, five.high), (3.0, 1.0, 5.0));
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!((of(&ten).median, of(&ten).low, of(&ten).high), (5.5, 2.0, 9.0));
    }

    /// As often as it says: the interval of coins holds the true median, whatever the distribution.
    #[test]
    fn it_is_as_sure_as_it_says() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let trials = 20_000;
        let hits = (0..trials)
            .filter(|_| {
                let values: Vec<f64> = (0..7).map(|_| -random().ln()).collect();
                let estimate = Estimate::of(values).expect("values");
                (estimate.low..=estimate.high).contains(&std::f64::consts::LN_2)
            })
            .count();
        let share = hits as f64 / f64::from(trials);
        assert!((share - confidence(7, 0)).abs() < 0.006, "{share} against {}", confidence(7, 0));
    }

    #[test]
    fn the_one_ahead_is_so_in_every_round() {
        let rounds = |values: &[f64]| (1..).zip(values.iter().copied()).collect::<Vec<(u32, f64)>>();
        let ours = rounds(&[2.0, 2.2, 2.4, 2.1, 2.0]);
        let theirs = rounds(&[1.0, 1.1, 1.2, 1.0, 1.0]);
        let ahead = |ours, theirs, higher| Comparison::of(ours, theirs, higher).expect("rounds").ahead;
        assert_eq!(ahead(&ours, &theirs, true), Some(Side::Ours));
        assert_eq!(ahead(&ours, &theirs, false), Some(Side::Theirs));
        assert_eq!(ahead(&theirs, &ours, true), Some(Side::Theirs));
        assert_eq!(ahead(&ours, &ours, true), None);
        assert_eq!(ahead(&ours[..3], &theirs[..3], true), None, "too few rounds");
        let mixed = rounds(&[1.0, 1.1, 1.2, 2.0, 1.0]);
        assert_eq!(ahead(&mixed, &theirs, true), None);
        assert_eq!(Comparison::of(&ours[..1], &theirs[1..], true), None);
        let none = rounds(&[0.0; 5]);
        assert_eq!(ahead(&none, &theirs, false), Some(Side::Ours), "no loss against some");
        assert_eq!(ahead(&none, &none, false), None);
    }

    #[test]
    fn two_runs_differ_where_their_intervals_have_nothing_in_common() {
        let of = |values: &[f64]| Estimate::of(values.iter().copied()).expect("values");
        let slow = of(&[1.0, 1.01, 1.02, 1.0, 1.0]);
        assert!(slow.differs_from(&of(&[1.2, 1.21, 1.2, 1.22, 1.2])));
        assert!(!slow.differs_from(&of(&[1.0, 1.21, 1.2, 1.22, 1.2])));
        assert!(!slow.differs_from(&of(&[1.2, 1.21, 1.2])), "three rounds are not enough");
        assert!(!of(&[1.0; 5]).differs_from(&of(&[1.01; 5])), "noise");
    }
}
