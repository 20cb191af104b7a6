//! What the capture contest has to reach, and whether it does.
//!
//! Rates and times are judged by their median over the rounds, each round compared with itself; losses and memory by the
//! worst of all.

use std::collections::BTreeSet;

use super::experiment::{Judged, Outcome};
use super::wanted::Wanted;

/// All targets of the capture contest, for all sizes of frames that were measured.
pub(super) fn judge(outcome: &Outcome) -> Vec<Judged> {
    let sizes = outcome.places().into_iter().flatten();
    let mut bars: Vec<Judged> = sizes.flat_map(|size| OfSize { outcome, size }.bars()).collect();
    let memory = outcome.values.iter().filter(|value| value.measure == "memory" && value.round > 0);
    bars.push(Judged::worst("memory beyond the pool", 64.0, "MiB", memory.map(|value| value.value)));
    bars
}

/// What was measured with frames of one size.
struct OfSize<'a> {
    outcome: &'a Outcome,
    size: f64,
}

impl OfSize<'_> {
    fn bars(&self) -> Vec<Judged> {
        use Wanted::{AtLeast, AtMost};
        let (outcome, at) = (self.outcome, Some(self.size));
        let named = |name: &str| format!("{name}, {} B", self.size);
        let times = |name, wanted, of, over| {
            let judged = Judged::new(&named(name), wanted, "times", outcome.ratios([of, over], "rate", at));
            judged.by_cpu_time(outcome.ratios([over, of], "kernel", at))
        };
        // Over the same way `without` a capture, as a share of what tcpdump adds over the stack alone.
        let cost = |name, of, without| {
            let shares = outcome.shares([of, without], ["tcpdump", "stack"], "kernel", at);
            Judged::new(&named(name), AtMost(0.5), "times", shares)
        };
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
        let mut never = |name, contestants, packets: fn(&Self, &str) -> Vec<f64>| {
            let values = outcome.values.iter().map(|value| value.series.as_str());
            let those: BTreeSet<&str> = values.filter(|series| series.starts_with(contestants)).collect();
            let packets = those.into_iter().flat_map(|series| packets(self, series));
            bars.push(Judged::worst(&named(name), 0.0, "packets", packets));
        };
        never("exclusive: lost", "weir-exclusive", Self::lost);
        never("pass: lost", "weir-pass", Self::lost);
        never("pass: not seen by the stack", "weir-pass", Self::unseen);
        never("file: lost", "weir-file", Self::lost);
        never("tc: lost", "weir-tc", Self::lost);
        never("tc: not seen by the stack", "weir-tc", Self::unseen);
        never("af_packet: lost", "weir-af-packet", Self::lost);
        bars
    }

    fn lost(&self, series: &str) -> Vec<f64> {
        self.of(series, "lost")
    }

    /// Packets of which the stack has got too few or too many.
    fn unseen(&self, series: &str) -> Vec<f64> {
        let (sent, stack) = (self.of(series, "sent"), self.of(series, "stack"));
        sent.into_iter().zip(stack).map(|(sent, stack)| (sent - stack).abs()).collect()
    }

    fn of(&self, series: &str, measure: &str) -> Vec<f64> {
        self.outcome.values_of(series, measure, Some(self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of 60-byte frames: series, measure, round, value.
    fn outcome(values: &[(&str, &str, u32, f64)]) -> Outcome {
        let mut outcome = Outcome::default();
        for &(series, measure, round, value) in values {
            outcome.put(series, measure, Some(60.0), round, value);
        }
        outcome
    }

    fn bar(outcome: &Outcome, name: &str) -> Judged {
        let name = format!("{name}, 60 B");
        judge(outcome).into_iter().find(|bar| bar.name == name).expect("there is such a bar")
    }

    #[test]
    fn rounds_are_compared_with_themselves() {
        let (ours, limit) = ("weir-exclusive", "limit");
        let mut values = Vec::new();
        // Somebody else took most of the processor in round 3, and the limit has failed in round 4.
        for (round, rates) in (1..).zip([[10.0, 20.0], [7.0, 10.0], [3.2, 4.0]]) {
            values.extend([(ours, "rate", round, rates[0]), (limit, "rate", round, rates[1])]);
            values.extend([(ours, "kernel", round, 80.0), (limit, "kernel", round, 40.0)]);
        }
        values.push((ours, "rate", 4, 10.0));
        let outcome = outcome(&values);
        let judged = bar(&outcome, "exclusive, no stamps / XDP drop");
        assert_eq!((judged.measured, judged.by_cpu_time), (Some([0.7, 0.5, 0.8]), Some(0.5)));
        assert_eq!((judged.met, judged.wanted.as_str()), (Some(true), ">= 0.65"));
        let other = bar(&outcome, "exclusive, no stamps / tcpdump");
        assert_eq!((other.measured, other.met), (None, None), "what was not measured is not judged");
    }

    #[test]
    fn added_cost_is_over_the_same_way_without_a_capture() {
        let round = |round, tcpdump| {
            let times =
                [("limit-pass", 200.0), ("weir-pass-kernel", 260.0), ("stack", 210.0), ("tcpdump", tcpdump)];
            times.map(|(series, time)| (series, "kernel", round, time))
        };
        let judged = |values: &[(&str, &str, u32, f64)]| {
            let bar = bar(&outcome(values), "pass, kernel stamps: added ns / tcpdump's");
            (bar.measured.map(|[median, ..]| median), bar.met)
        };
        assert_eq!(judged(&round(1, 360.0)), (Some(0.4), Some(true)));
        assert_eq!(judged(&round(1, 310.0)), (Some(0.6), Some(false)));
        assert_eq!(judged(&[round(1, 360.0), round(2, 205.0)].concat()), (Some(0.4), Some(true)), "noise");
        assert_eq!(judged(&round(1, 205.0)), (None, None));
    }

    #[test]
    fn one_loss_is_a_loss() {
        let met = |lost, stack| {
            let values = [
                ("weir-pass", "lost", 1, 0.0),
                ("weir-pass", "sent", 1, 100.0),
                ("weir-pass", "stack", 1, stack),
                ("weir-file", "lost", 2, lost),
                ("tcpdump", "lost", 1, 50.0),
            ];
            let names = ["pass: lost", "file: lost", "pass: not seen by the stack", "af_packet: lost"];
            names.map(|name| bar(&outcome(&values), name).met)
        };
        assert_eq!(met(0.0, 100.0), [Some(true), Some(true), Some(true), None]);
        assert_eq!(met(1.0, 99.0), [Some(true), Some(false), Some(false), None]);
    }
}
