//! Durations, rates and other numbers with a unit, as people write them.

use std::time::Duration;

/// One year, the longest duration that makes sense.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// Units of a duration in nanoseconds.
const DURATION_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a duration with a mandatory unit, because seconds and milliseconds are both common.
///
/// # Errors
///
/// Says what is allowed.
pub fn duration(text: &str) -> Result<Duration, String> {
    const ALLOWED: &str = "allowed: a time above 0, such as 500ms, 10s, 1.5m or 1h";
    let (number, unit) = split(text).map_err(|what| format!("{what}; {ALLOWED}"))?;
    if unit.is_empty() {
        return Err(format!("the unit is missing; write {0}s for seconds or {0}ms", text.trim()));
    }
    let factor = lookup(&DURATION_UNITS, unit)
        .ok_or_else(|| format!("unknown unit `{unit}`; allowed: us, ms, s, m, h, d"))?;
    let duration =
        scale(number, factor).map(Duration::from_nanos).map_err(|what| format!("{what}; {ALLOWED}"))?;
    if duration > LONGEST { Err("too long; allowed: up to 365d".to_owned()) } else { Ok(duration) }
}

/// Units of a rate, and whether it counts bits.
const RATE_UNITS: [(&str, u64, bool); 14] = [
    ("pps", 1, false),
    ("kpps", 1_000, false),
    ("Mpps", 1_000_000, false),
    ("Gpps", 1_000_000_000, false),
    ("bps", 1, true),
    ("kbps", 1_000, true),
    ("Mbps", 1_000_000, true),
    ("Gbps", 1_000_000_000, true),
    ("Tbps", 1_000_000_000_000, true),
    ("bit/s", 1, true),
    ("kbit/s", 1_000, true),
    ("Mbit/s", 1_000_000, true),
    ("Gbit/s", 1_000_000_000, true),
    ("Tbit/s", 1_000_000_000_000, true),
];

/// Parses a rate in packets or bits per second, and whether it is in bits.
///
/// # Errors
///
/// Says what is allowed.
pub fn rate(text: &str) -> Result<(f64, bool), String> {
    const ALLOWED: &str = "allowed: a rate above 0, such as 1000pps, 500kpps, 100Mbps or 2.5Gbps";
    let (number, unit) = split(text).map_err(|what| format!("{what}; {ALLOWED}"))?;
    if unit.is_empty() {
        let number = text.trim();
        return Err(format!(
            "the unit is missing; write {number}pps for packets or {number}Mbps for megabits per second"
        ));
    }
    let known = RATE_UNITS.iter().find(|(name, ..)| unit.eq_ignore_ascii_case(name));
    let &(_, factor, bits) = known.ok_or_else(|| format!("unknown unit `{unit}`; {ALLOWED}"))?;
    let value = number.times(factor);
    if value > 0.0 { Ok((value, bits)) } else { Err(format!("zero; {ALLOWED}")) }
}

#[expect(clippy::cast_precision_loss, reason = "exact enough for a rate")]
fn float(value: u64) -> f64 {
    value as f64
}

/// An exact decimal number: `whole + fraction / 10^digits`.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    whole: u64,
    fraction: u64,
    digits: u32,
}

impl Decimal {
    /// Returns the number in another unit.
    pub fn times(&self, factor: u64) -> f64 {
        let fraction = float(self.fraction) / float(10_u64.pow(self.digits));
        (float(self.whole) + fraction) * float(factor)
    }
}

/// Splits `1.5GiB` into number and unit.
///
/// # Errors
///
/// Says what is wrong with the number.
pub fn split(text: &str) -> Result<(Decimal, &str), String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err("negative".to_owned());
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err("not a number".to_owned());
    }
    if fraction.len() > 9 {
        return Err("more than nine decimals".to_owned());
    }
    let whole = whole.parse().map_err(|_| "too large".to_owned())?;
    let digits = u32::try_from(fraction.len()).map_err(|_| "too many decimals".to_owned())?;
    let fraction =
        if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| "not a number".to_owned())? };
    Ok((Decimal { whole, fraction, digits }, unit))
}

/// Returns the factor of a unit, whose case does not matter.
pub fn lookup(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)).map(|&(_, factor)| factor)
}

/// Returns a number of the smallest unit, rounded down, unless the text itself is in that unit.
///
/// # Errors
///
/// Says what is wrong with the number: zero, too large, or a fraction of the smallest unit.
pub fn scale(number: Decimal, factor: u64) -> Result<u64, String> {
    if factor == 1 && number.fraction > 0 {
        return Err("must be a whole number in this unit".to_owned());
    }
    let fraction = u128::from(number.fraction) * u128::from(factor) / 10_u128.pow(number.digits);
    let value = u128::from(number.whole) * u128::from(factor) + fraction;
    match u64::try_from(value) {
        Ok(0) => Err("zero".to_owned()),
        Ok(value) => Ok(value),
        Err(_) => Err("too large".to_owned()),
    }
}
