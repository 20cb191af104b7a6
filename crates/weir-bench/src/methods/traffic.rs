//! What is intercepted: frames whose bytes are known, and iperf3.

use serde_json::Value;
use weir_lab::Pair;
use weir_traffic::{Addresses, Description, Payload, Protocol, Sizes, Tables};

use super::judge::Ends;
use crate::failure::{Failure, failed};
use crate::iperf;

/// Bytes of the known frames, whose last words have 1 to 8 bytes.
const SIZES: [u32; 8] = [72, 73, 78, 128, 595, 1000, 1513, 1514];

/// How to run iperf3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) count: u32,
    pub(super) seconds: u32,
    /// Seconds per reported rate.
    pub(super) interval: f64,
}

/// Known frames of TCP between the ends, each different: so many of each size. `macs`: source and destination.
pub(super) fn frames(macs: [[u8; 6]; 2], ends: Ends, count: u64) -> Result<Vec<Vec<u8>>, Failure> {
    let mut frames = Vec::new();
    for (size, first) in SIZES.into_iter().zip((0..).step_by(usize::try_from(count).unwrap_or(1))) {
        let tables = tables(macs, ends, size).map_err(failed("make frames"))?;
        for sequence in first..first + count {
            let mut frame = Vec::new();
            tables.write(sequence, 0, 0, &mut frame);
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn tables(macs: [[u8; 6]; 2], ends: Ends, size: u32) -> Result<Tables, String> {
    let one = |address| Addresses::new(address, address).ok_or("no range of addresses");
    let description = Description {
        macs,
        protocol: Protocol::Tcp(0x10),
        sources: one(ends.source.into())?,
        destinations: one(ends.destination.into())?,
        sizes: Some(Sizes::Fixed(size)),
        payload: Payload::Pattern,
        ..Description::new(false)
    };
    Tables::new(&description).map_err(|refusal| refusal.to_string())
}

/// The result of iperf3.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) bytes: f64,
    pub(super) rates: Rates,
}

/// Rates of the receiver, by interval: bits a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) count: usize,
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// The sample's standard deviation; 0 for a single value.
    pub(super) sd: f64,
}

impl Rates {
    fn of(rates: &[f64]) -> Option<Self> {
        let count = rates.len();
        let mean = rates.iter().sum::<f64>() / count as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let sd = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let (min, max) = (rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?);
        Some(Self { count, mean, min, max, sd })
    }

    /// Whether there are values that have these statistics: half of them at one end and half at the other have the
    /// greatest deviation.
    pub(super) fn are_possible(&self) -> bool {
        let greatest = match self.count {
            0 => return false,
            1 => 0.0,
            count => (self.max - self.min) / 2.0 * (count as f64 / (count - 1) as f64).sqrt(),
        };
        (self.min..=self.max).contains(&self.mean) && self.sd <= greatest * (1.0 + 1e-9)
    }
}

/// Has the pair's `tx` send to `rx`.
pub(super) fn run(pair: &Pair, streams: Streams) -> Result<Received, Failure> {
    let Streams { count, seconds, interval } = streams;
    let words = [count.to_string(), seconds.to_string()];
    let words = ["-P", &words[0], "-t", &words[1]];
    let reports = iperf::run(&pair.rx, &pair.tx, &interval.to_string(), &words)?;
    received(&reports.server, interval)
        .ok_or_else(|| Failure::new("cannot read the report of iperf3's server: it has no intervals"))
}

/// From a receiver's report. The rest at the end, much shorter than an interval, has no rate of its own.
fn received(report: &Value, interval: f64) -> Option<Received> {
    let bytes = report.pointer("/end/sum_received/bytes")?.as_f64()?;
    let number = |sum: &Value, name: &str| sum.get(name).and_then(Value::as_f64);
    let sums = report.get("intervals")?.as_array()?.iter().filter_map(|one| one.get("sum"));
    let whole = sums.filter(|sum| number(sum, "seconds").is_some_and(|seconds| seconds >= interval / 2.0));
    let rates: Vec<f64> = whole.filter_map(|sum| number(sum, "bits_per_second")).collect();
    Some(Received { bytes, rates: Rates::of(&rates)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rates_are_those_of_whole_intervals() {
        let sum = |seconds, rate| json!({"sum": {"seconds": seconds, "bits_per_second": rate}});
        let report = json!({
            "intervals": [sum(0.5, 1.0), sum(0.49, 3.0), sum(0.01, 9.0)],
            "end": {"sum_received": {"bytes": 7}},
        });
        let received = received(&report, 0.5).expect("a report");
        let Rates { count, mean, min, max, sd } = received.rates;
        assert_eq!((received.bytes, count, mean, min, max, sd), (7.0, 2, 2.0, 1.0, 3.0, 2_f64.sqrt()));
        assert!(received.rates.are_possible());
        let empty = json!({"intervals": [], "end": {"sum_received": {"bytes": 7}}});
        assert!(super::received(&empty, 0.5).is_none());
    }

    /// As published, in Gbit/s. Two values have the greatest deviation of all.
    #[test]
    fn published_deviations_are_possible_or_not() {
        let of = |[mean, min, max, sd]: [f64; 4], count| Rates { count, mean, min, max, sd };
        for (figures, possible) in [
            ([9.33, 9.25, 9.54, 0.25], false),
            ([9.15, 9.09, 9.39, 0.33], false),
            ([8.01, 7.02, 9.3, 0.95], true),
            ([2.11, 1.25, 2.44, 1.1], false),
        ] {
            assert_eq!(of(figures, 2).are_possible(), possible, "{figures:?}");
        }
        assert!(!of([3.0, 1.0, 2.0, 0.0], 2).are_possible(), "a mean out of the range");
        let [a, b] = [1.0, 2.0];
        assert!(Rates::of(&[a, b, a, b]).expect("values").are_possible());
        assert_eq!(Rates::of(&[]), None);
        assert!(Rates::of(&[5.0]).expect("a value").are_possible());
    }
}
