//! Several measurements of one thing.

use std::fmt;

/// Median and range. The mean of two in the middle where there is no one in the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// Of finite values; none, if there are none.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// The median of finite values; NaN, if there are none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

/// Of sorted values, the one that this share of them does not exceed.
pub(super) fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// The median, and the range behind it; with a precision.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self { median, min, max }, digits) = (self, f.precision().unwrap_or(2));
        write!(f, "{median:.digits$} ({min:.digits$}..{max:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<u32> = (1..=200).collect();
        let at = |percent| percentile(&values, percent);
        assert_eq!((at(50), at(99), at(100)), (100, 198, 200));
        assert_eq!(percentile(&values[..1], 99), 1);
        assert_eq!(percentile::<u32>(&[], 50), 0);
    }

    #[test]
    fn the_middle_and_the_ends() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(spread(&[3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(spread(&[9.0, -1.0, 2.0]), Some(Spread { median: 2.0, min: -1.0, max: 9.0 }));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }
}
