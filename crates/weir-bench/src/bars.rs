//! What has to be reached, and whether it is.
//!
//! Rates and times are judged by their median over the rounds, each round compared with itself; losses and memory by the
//! worst of all.

use std::fmt;

use super::sample::Sample;
use super::spread::Spread;

/// One thing to be reached.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    /// Bytes of the frames, where it depends on them.
    pub(super) size: Option<usize>,
    pub(super) wanted: Wanted,
    /// None where what is compared was not measured.
    pub(super) measured: Option<Spread>,
    /// Of that, what is held against what is wanted: the median, or the worst.
    pub(super) judged: Option<f64>,
    pub(super) unit: &'static str,
    /// The same from the processor time that a packet takes in the kernel: what the rates would be if nobody else used
    /// the processor.
    pub(super) undisturbed: Option<Spread>,
    pub(super) met: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(limit) => write!(f, ">= {limit}"),
            Self::AtMost(limit) => write!(f, "<= {limit}"),
        }
    }
}

impl Bar {
    /// Judged by the median.
    pub(super) fn new(
        name: &str,
        size: Option<usize>,
        wanted: Wanted,
        unit: &'static str,
        measured: Option<Spread>,
    ) -> Self {
        let judged = measured.map(|measured| measured.median);
        let met = judged.map(|value| match wanted {
            Wanted::AtLeast(limit) => value >= limit,
            Wanted::AtMost(limit) => value <= limit,
        });
        Self { name: name.to_owned(), size, wanted, measured, judged, unit, undisturbed: None, met }
    }

    /// Nothing may be more than `most`.
    pub(super) fn worst(
        name: &str,
        size: Option<usize>,
        most: f64,
        unit: &'static str,
        measured: Option<Spread>,
    ) -> Self {
        let judged = measured.map(|measured| measured.max);
        let met = judged.map(|value| value <= most);
        Self { judged, met, ..Self::new(name, size, Wanted::AtMost(most), unit, measured) }
    }
}

/// All bars, for all sizes of frames that were measured.
pub(super) fn judge(samples: &[Sample]) -> Vec<Bar> {
    let mut sizes: Vec<usize> = samples.iter().map(|sample| sample.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut bars: Vec<Bar> = sizes.iter().flat_map(|&size| Round { samples, size }.bars()).collect();
    let memory = samples.iter().filter_map(|sample| sample.beyond_pool).map(|bytes| bytes as f64 / MIB);
    bars.push(Bar::worst("memory beyond the pool", None, 64.0, "MiB", Spread::of(memory)));
    bars
}

const MIB: f64 = (1 << 20) as f64;

/// The samples of one size, compared round by round.
struct Round<'a> {
    samples: &'a [Sample],
    size: usize,
}

impl Round<'_> {
    fn bars(&self) -> Vec<Bar> {
        use Wanted::{AtLeast, AtMost};
        let size = Some(self.size);
        let times = |name, wanted, of, over| Bar {
            undisturbed: self.ratio(over, of, |sample| sample.kernel_ns),
            ..Bar::new(name, size, wanted, "times", self.ratio(of, over, |sample| sample.rate))
        };
        let cost = |name, of, without| Bar::new(name, size, AtMost(0.5), "times", self.added(of, without));
        let mut bars = vec![
            times("exclusive, no stamps / XDP drop", AtLeast(0.65), "weir-exclusive", "limit"),
            times("exclusive, no stamps / XDP that writes", AtLeast(0.95), "weir-exclusive", "limit-write"),
            times("exclusive, no stamps / tcpdump", AtLeast(3.3), "weir-exclusive", "tcpdump"),
            times("exclusive, kernel stamps / tcpdump", AtLeast(2.5), "weir-exclusive-kernel", "tcpdump"),
            cost("pass, no stamps: added ns / tcpdump's", "weir-pass", "limit-pass"),
            cost("pass, kernel stamps: added ns / tcpdump's", "weir-pass-kernel", "limit-pass"),
            cost("tc, kernel stamps: added ns / tcpdump's", "weir-tc", "stack"),
            times("pass, no stamps / tcpdump", AtLeast(1.15), "weir-pass", "tcpdump"),
            times("pass, kernel stamps / tcpdump", AtLeast(1.15), "weir-pass-kernel", "tcpdump"),
            times("tc, kernel stamps / tcpdump", AtLeast(1.0), "weir-tc", "tcpdump"),
            times("file, kernel stamps / tcpdump", AtLeast(2.5), "weir-file", "tcpdump-file"),
            times("af_packet / tcpdump", AtLeast(1.0), "weir-af-packet", "tcpdump"),
            times("af_xdp, no stamps / AF_XDP's bare loop", AtLeast(0.9), "weir-af-xdp", "af-xdp"),
        ];
        let mut never = |name, contestants, packets: fn(&Sample) -> u64| {
            let those = |s: &&Sample| s.size == self.size && s.contestant.starts_with(contestants);
            let packets = self.samples.iter().filter(those).map(|sample| packets(sample) as f64);
            bars.push(Bar::worst(name, size, 0.0, "packets", Spread::of(packets)));
        };
        never("exclusive: lost", "weir-exclusive", |sample| sample.lost);
        never("pass: lost", "weir-pass", |sample| sample.lost);
        never("pass: not seen by the stack", "weir-pass", |sample| sample.accepted.abs_diff(sample.stack));
        never("file: lost", "weir-file", |sample| sample.lost);
        never("tc: lost", "weir-tc", |sample| sample.lost);
        never("tc: not seen by the stack", "weir-tc", |sample| sample.accepted.abs_diff(sample.stack));
        never("af_packet: lost", "weir-af-packet", |sample| sample.lost);
        bars
    }

    fn of(&self, contestant: &str, round: u32) -> Option<&Sample> {
        self.samples.iter().find(|s| s.contestant == contestant && s.size == self.size && s.round == round)
    }

    /// One value for each round in which all that it needs was measured.
    fn rounds(&self, value: impl Fn(u32) -> Option<f64>) -> Option<Spread> {
        let last = self.samples.iter().map(|sample| sample.round).max()?;
        Spread::of((1..=last).filter_map(value))
    }

    /// How many times as much.
    fn ratio(&self, contestant: &str, other: &str, value: fn(&Sample) -> f64) -> Option<Spread> {
        self.rounds(|round| Some(value(self.of(contestant, round)?) / value(self.of(other, round)?)))
    }

    /// What a capture adds to a packet in the kernel, over the same way `without` one, as a share of what tcpdump adds over
    /// the stack alone. Nothing can be said of a round in which tcpdump added nothing.
    fn added(&self, contestant: &str, without: &str) -> Option<Spread> {
        self.rounds(|round| {
            let cost =
                |with, without| Some(self.of(with, round)?.kernel_ns - self.of(without, round)?.kernel_ns);
            let (ours, theirs) = (cost(contestant, without)?, cost("tcpdump", "stack")?);
            (theirs > 0.0).then_some(ours / theirs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(contestant: &'static str, round: u32, rate: f64, kernel_ns: f64) -> Sample {
        Sample { rate, kernel_ns, accepted: 100, delivered: 100, ..Sample::empty(contestant, 60, round) }
    }

    fn bar<'a>(bars: &'a [Bar], name: &str) -> &'a Bar {
        bars.iter().find(|bar| bar.name == name).expect("there is such a bar")
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        let samples = [
            sample("weir-exclusive", 1, 10.0, 80.0),
            sample("limit", 1, 20.0, 40.0),
            sample("weir-exclusive", 2, 7.0, 80.0),
            sample("limit", 2, 10.0, 40.0),
            // Somebody else took most of the processor in round 3, and the limit has failed in round 4.
            sample("weir-exclusive", 3, 3.2, 80.0),
            sample("limit", 3, 4.0, 20.0),
            sample("weir-exclusive", 4, 10.0, 80.0),
        ];
        let bars = judge(&samples);
        let bar = bar(&bars, "exclusive, no stamps / XDP drop");
        assert_eq!(bar.measured, Some(Spread { median: 0.7, min: 0.5, max: 0.8 }));
        assert_eq!(bar.undisturbed, Spread::of([0.5, 0.5, 0.25]));
        assert_eq!((bar.met, bar.size, bar.wanted.to_string().as_str()), (Some(true), Some(60), ">= 0.65"));
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        let bars = judge(&[sample("weir-exclusive", 1, 10.0, 0.0)]);
        let bar = bar(&bars, "exclusive, no stamps / tcpdump");
        assert_eq!((bar.measured, bar.met), (None, None));
    }

    #[test]
    fn added_cost_is_over_the_same_way_without_a_capture() {
        let round = |round, tcpdump| {
            [
                sample("limit-pass", round, 1.0, 200.0),
                sample("weir-pass-kernel", round, 1.0, 260.0),
                sample("stack", round, 1.0, 210.0),
                sample("tcpdump", round, 1.0, tcpdump),
            ]
        };
        let judged = |samples: &[Sample]| {
            let bars = judge(samples);
            let bar = bar(&bars, "pass, kernel stamps: added ns / tcpdump's");
            (bar.measured.map(|measured| measured.median), bar.met)
        };
        assert_eq!(judged(&round(1, 360.0)), (Some(0.4), Some(true)));
        assert_eq!(judged(&round(1, 310.0)), (Some(0.6), Some(false)));
        assert_eq!(judged(&[round(1, 360.0), round(2, 205.0)].concat()), (Some(0.4), Some(true)), "noise");
        assert_eq!(judged(&round(1, 205.0)), (None, None));
    }

    #[test]
    fn one_loss_is_a_loss() {
        let mut samples = [
            sample("weir-pass", 1, 1.0, 0.0),
            sample("weir-file", 2, 1.0, 0.0),
            sample("tcpdump", 1, 1.0, 0.0),
        ];
        samples.iter_mut().for_each(|sample| sample.stack = 100);
        samples[2].lost = 50;
        let met = |samples: &[Sample]| {
            let bars = judge(samples);
            ["pass: lost", "file: lost", "pass: not seen by the stack", "af_packet: lost"]
                .map(|name| bar(&bars, name).met)
        };
        assert_eq!(met(&samples), [Some(true), Some(true), Some(true), None]);
        samples[1].lost = 1;
        samples[0].stack = 99;
        assert_eq!(met(&samples), [Some(true), Some(false), Some(false), None]);
    }
}
