//! Timestamps of pcapng in the precision that the program wants.

use std::ffi::c_int;

use super::ticks;

/// The unit of an interface's timestamps when it does not say.
const MICROSECONDS: u8 = 6;
/// The bit of `if_tsresol` for powers of 2 instead of 10.
const BINARY: u8 = 0x80;

/// The clock of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Ticks per second.
    per_second: u64,
    /// Seconds to add.
    offset: u64,
    scale: Scale,
}

/// What makes a fraction of a second, in ticks, one in the wanted unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Keep,
    Times(u64),
    Over(u64),
    /// Both units: for powers of 2.
    Ratio {
        wanted: u64,
    },
}

impl Clock {
    pub(super) fn new(resolution: Option<u8>, offset: u64, precision: c_int) -> Result<Self, String> {
        let resolution = resolution.unwrap_or(MICROSECONDS);
        let (power, binary) = (u32::from(resolution & !BINARY), resolution & BINARY != 0);
        let base: u64 = if binary { 2 } else { 10 };
        let Some(per_second) = base.checked_pow(power) else {
            return Err(format!(
                "Interface Description Block if_tsresol option resolution {base}^-{power} is too high"
            ));
        };
        let wanted = u64::from(ticks(precision));
        let scale = match (per_second, binary) {
            _ if per_second == wanted => Scale::Keep,
            (_, true) => Scale::Ratio { wanted },
            (..) if per_second > wanted => Scale::Over(per_second / wanted),
            (..) => Scale::Times(wanted / per_second),
        };
        Ok(Self { per_second, offset, scale })
    }

    /// Returns seconds and the fraction of a second.
    #[inline]
    pub(super) fn read(&self, ticks: u64) -> (u64, u64) {
        let (seconds, fraction) = match self.per_second {
            // Constants are divided by much faster.
            1_000_000 => (ticks / 1_000_000, ticks % 1_000_000),
            1_000_000_000 => (ticks / 1_000_000_000, ticks % 1_000_000_000),
            other => (ticks / other, ticks % other),
        };
        let fraction = match self.scale {
            Scale::Keep => fraction,
            Scale::Times(factor) => fraction * factor,
            Scale::Over(1000) => fraction / 1000,
            Scale::Over(divisor) => fraction / divisor,
            // Overflows for the finest units, as in libpcap.
            Scale::Ratio { wanted } => fraction.wrapping_mul(wanted) / self.per_second,
        };
        (seconds.wrapping_add(self.offset), fraction)
    }
}
