//! Units and origins of timestamps.

use std::fmt;

const NANOS: u64 = 1_000_000_000;

/// The unit and origin of an interface's timestamps: pcapng's `if_tsresol` and `if_tsoffset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeUnit {
    /// `if_tsresol`: the highest bit selects 2^-n instead of 10^-n seconds; the other bits are n.
    resolution: u8,
    /// `if_tsoffset`: seconds to add.
    offset: i64,
    scale: Scale,
}

/// The conversion from ticks to nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Times(u64),
    Over(u64),
    /// 2^-n seconds.
    Binary(u8),
    /// Ticks so short that 2^64 of them are less than a nanosecond.
    Nothing,
}

impl TimeUnit {
    /// 10^-6 seconds: pcapng's default unit.
    pub const MICROSECONDS: Self = Self::new(6, 0);
    /// 10^-9 seconds: the unit that weir writes.
    pub const NANOSECONDS: Self = Self::new(9, 0);

    /// Creates a unit from the values of `if_tsresol` and `if_tsoffset`.
    pub const fn new(resolution: u8, offset: i64) -> Self {
        let scale = match resolution {
            0..=9 => Scale::Times(10u64.pow(9 - resolution as u32)),
            10..=28 => Scale::Over(10u64.pow(resolution as u32 - 9)),
            29..=127 => Scale::Nothing,
            _ => Scale::Binary(resolution & 0x7f),
        };
        Self { resolution, offset, scale }
    }

    /// Returns whether ticks are nanoseconds since the Unix epoch.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self == Self::NANOSECONDS
    }

    /// Returns whether ticks are shorter than a nanosecond, so that [`nanoseconds`](Self::nanoseconds) truncates.
    pub fn is_finer(self) -> bool {
        match self.scale {
            Scale::Times(_) => false,
            Scale::Over(_) | Scale::Nothing => true,
            Scale::Binary(bits) => bits > 29,
        }
    }

    /// Returns the value of `if_tsresol`.
    pub fn resolution(self) -> u8 {
        self.resolution
    }

    /// Converts ticks to nanoseconds since the Unix epoch, truncated. `Err`: the time is before 1970 or after 2554; the
    /// value is the nearest possible one.
    #[inline]
    pub fn nanoseconds(self, ticks: u64) -> Result<u64, u64> {
        let ticks = u128::from(ticks);
        let nanos = match self.scale {
            Scale::Times(factor) => ticks * u128::from(factor),
            Scale::Over(divisor) => ticks / u128::from(divisor),
            Scale::Binary(bits) => (ticks * u128::from(NANOS)) >> bits,
            Scale::Nothing => 0,
        };
        if self.offset == 0 {
            return u64::try_from(nanos).map_err(|_| u64::MAX);
        }
        // At most 2^64 * 10^9 + 2^63 * 10^9, well within i128.
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX / 2);
        let since_epoch = nanos + i128::from(self.offset) * i128::from(NANOS);
        u64::try_from(since_epoch).map_err(|_| if since_epoch < 0 { 0 } else { u64::MAX })
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.resolution, self.resolution & 0x7f) {
            (0, _) => f.write_str("seconds"),
            (3, _) => f.write_str("milliseconds"),
            (6, _) => f.write_str("microseconds"),
            (9, _) => f.write_str("nanoseconds"),
            (12, _) => f.write_str("picoseconds"),
            (128.., bits) => write!(f, "2^-{bits} seconds"),
            (digits, _) => write!(f, "10^-{digits} seconds"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        let second = 1_700_000_000u64;
        for (resolution, ticks) in [
            (0, second),
            (6, second * 1_000_000),
            (9, second * NANOS),
            (10, second * 10_000_000_000),
            (0x80, second),
            (0x80 | 20, second << 20),
            (0x80 | 30, second << 30),
        ] {
            assert_eq!(
                TimeUnit::new(resolution, 0).nanoseconds(ticks),
                Ok(second * NANOS),
                "{resolution:#x}"
            );
        }
        assert_eq!(TimeUnit::new(0x80 | 1, 0).nanoseconds(3), Ok(1_500_000_000));
        assert_eq!(TimeUnit::new(28, 0).nanoseconds(u64::MAX), Ok(1));
        for resolution in 0..=255 {
            // No resolution causes an overflow.
            let unit = TimeUnit::new(resolution, i64::MIN);
            assert_eq!(unit.nanoseconds(0), Err(0), "{unit}");
            let unit = TimeUnit::new(resolution, i64::MAX);
            assert_eq!(unit.nanoseconds(u64::MAX), Err(u64::MAX), "{unit}");
        }
    }

    #[test]
    fn units_have_names() {
        for (resolution, name) in [
            (0, "seconds"),
            (3, "milliseconds"),
            (6, "microseconds"),
            (9, "nanoseconds"),
            (12, "picoseconds"),
            (5, "10^-5 seconds"),
            (127, "10^-127 seconds"),
            (128, "2^-0 seconds"),
            (128 + 20, "2^-20 seconds"),
        ] {
            let unit = TimeUnit::new(resolution, 1);
            assert_eq!((unit.to_string().as_str(), unit.resolution()), (name, resolution));
        }
    }

    #[test]
    fn units_below_a_nanosecond_are_finer() {
        for (resolution, finer) in
            [(9, false), (10, true), (28, true), (29, true), (128 + 29, false), (128 + 30, true)]
        {
            assert_eq!(TimeUnit::new(resolution, 0).is_finer(), finer, "{resolution}");
        }
        assert_eq!(TimeUnit::new(29, 0).nanoseconds(u64::MAX), Ok(0));
    }

    #[test]
    fn offsets_and_ends() {
        assert_eq!(TimeUnit::new(9, 2).nanoseconds(5), Ok(2_000_000_005));
        assert_eq!(TimeUnit::new(9, -2).nanoseconds(2_000_000_005), Ok(5));
        assert_eq!(TimeUnit::new(9, -3).nanoseconds(2_000_000_005), Err(0));
        assert_eq!(TimeUnit::MICROSECONDS.nanoseconds(u64::MAX), Err(u64::MAX));
        // The last tick of each unit that is a time, and the one behind it.
        let last = u64::MAX / NANOS;
        for (unit, ticks) in [(0, last), (6, u64::MAX / 1000), (9, u64::MAX), (10, u64::MAX), (0x80, last)] {
            assert!(TimeUnit::new(unit, 0).nanoseconds(ticks).is_ok(), "{unit}");
            let beyond = ticks.checked_add(1).map(|ticks| TimeUnit::new(unit, 0).nanoseconds(ticks));
            assert!(beyond.is_none_or(|beyond| beyond == Err(u64::MAX)), "{unit}");
        }
        let seconds = i64::try_from(last).unwrap();
        assert_eq!(TimeUnit::new(9, seconds).nanoseconds(u64::MAX % NANOS), Ok(u64::MAX));
        assert_eq!(TimeUnit::new(9, seconds).nanoseconds(u64::MAX % NANOS + 1), Err(u64::MAX));
        // The first moment of 1970, and the one before.
        assert_eq!(TimeUnit::new(9, -1).nanoseconds(NANOS), Ok(0));
        assert_eq!(TimeUnit::new(9, -1).nanoseconds(NANOS - 1), Err(0));
        assert!(TimeUnit::new(12, 0).is_finer() && !TimeUnit::NANOSECONDS.is_finer());
    }
}
