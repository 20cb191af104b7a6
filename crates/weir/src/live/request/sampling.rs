//! Sampling: of the packets that match the filter, only some are captured.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::str::FromStr;

use weir_bpf::pool::{self, SampleBy};

use crate::{Error, Setting};

/// Which of the packets that match the filter are captured. As text, `1/100`, `p=0.01` or `flow:1/100`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sample {
    /// One in so many packets: of each queue, the first one and then every n-th. A queue belongs to a receive queue or a
    /// CPU ([`crate::QueueStats::queue`]); with k of them up to k packets more are captured. Regular traffic may be in
    /// step with the count; [`Probability`](Self::Probability) never is.
    OneIn(NonZeroU32),
    /// Each packet with this probability, above 0 and up to 1, independent of all others. It is applied in units of
    /// 2^-32.
    Probability(f64),
    /// All packets of one in so many flows, in both directions; which flows is drawn for each capture. A flow is what
    /// [`Steer::Flow`](crate::Steer::Flow) says, or [`Steer::Inner`](crate::Steer::Inner) if packets are steered by that.
    /// All interfaces of a capture select the same flows, except that af_packet's selection differs from that of the other
    /// sources.
    FlowsOneIn(NonZeroU32),
}

/// Numbers that a hash, or a random number, can have.
const ALL: f64 = 4_294_967_296.0;

impl Sample {
    /// Describes the sample in words. Files contain this as a comment on the interface.
    pub fn describe(self) -> String {
        match self {
            Self::OneIn(n) => format!("sample {self}: one in {n} packets of each queue"),
            Self::Probability(p) => format!("sample {self}: each packet with probability {p}"),
            Self::FlowsOneIn(n) => format!("sample {self}: the packets of one in {n} flows"),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneIn(n) => write!(f, "1/{n}"),
            Self::Probability(p) => write!(f, "p={p}"),
            Self::FlowsOneIn(n) => write!(f, "flow:1/{n}"),
        }
    }
}

impl FromStr for Sample {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |why: String| Err(Error::setting(Setting::Sample, why));
        let (form, number) = match (text.strip_prefix("p="), text.strip_prefix("flow:")) {
            (Some(p), _) => {
                return match p.parse().map(Self::Probability) {
                    Ok(sample) => Sampling::new(sample).check().map(|()| sample),
                    Err(_) => refused(format!("cannot read the probability `{p}`: not a number; try p=0.01")),
                };
            }
            (None, Some(flows)) => (Self::FlowsOneIn as fn(NonZeroU32) -> Self, flows),
            (None, None) => (Self::OneIn as fn(NonZeroU32) -> Self, text),
        };
        let prefix = &text[..text.len() - number.len()];
        let Some(n) = number.strip_prefix("1/") else {
            // Somebody who writes 100 or 3/100 probably means a share.
            let digits =
                number.rsplit('/').next().filter(|n| n.parse::<NonZeroU32>().is_ok()).unwrap_or("100");
            let try_this = match prefix {
                "" if digits == "100" => "1/100, p=0.01 or flow:1/100".to_owned(),
                _ => format!("{prefix}1/{digits}"),
            };
            return refused(format!("cannot sample `{text}`: it is not one in N; try {try_this}"));
        };
        match n.parse::<u32>().map(NonZeroU32::new) {
            Ok(Some(n)) => Ok(form(n)),
            Ok(None) => refused(format!("cannot sample `{text}`: one in 0 is none; try {prefix}1/100")),
            Err(_) => refused(format!(
                "cannot sample `{text}`: `{n}` is not a whole number from 1 to {}; try {prefix}1/100",
                u32::MAX
            )),
        }
    }
}

/// The requested sampling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    pub(crate) sample: Sample,
    /// Shared by all interfaces of a capture, so that the same flows are selected on each.
    seed: u64,
}

impl Sampling {
    pub(crate) fn new(sample: Sample) -> Self {
        Self { sample, seed: RandomState::new().hash_one(0) }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let Sample::Probability(p) = self.sample else { return Ok(()) };
        let why = if p.is_nan() || p <= 0.0 {
            "nothing would be captured"
        } else if p > 1.0 {
            "a probability is at most 1"
        } else if below(p) == 0 {
            "it is less than 2^-32"
        } else {
            return Ok(());
        };
        Err(Error::setting(Setting::Sample, format!("cannot sample with probability {p}: {why}; try p=0.01")))
    }

    pub(crate) fn is_by_flow(&self) -> bool {
        matches!(self.sample, Sample::FlowsOneIn(_))
    }

    /// Converts the settings for programs and pumps.
    pub(crate) fn for_program(self) -> pool::Sampling {
        let by = match self.sample {
            Sample::OneIn(n) => SampleBy::Turns(n),
            Sample::Probability(p) => SampleBy::Chance(below(p)),
            Sample::FlowsOneIn(n) => SampleBy::Flows((1 << 32) / u64::from(n.get())),
        };
        pool::Sampling { by, seed: self.seed }
    }
}

/// Returns how many of 2^32 numbers have the probability `p` together.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 2^32, or checked before"
)]
fn below(p: f64) -> u64 {
    (p * ALL).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_sample_and_text_again() {
        let n = |n| NonZeroU32::new(n).unwrap();
        for (text, sample) in [
            ("1/100", Sample::OneIn(n(100))),
            ("1/1", Sample::OneIn(n(1))),
            ("p=0.25", Sample::Probability(0.25)),
            ("p=1", Sample::Probability(1.0)),
            ("flow:1/4294967295", Sample::FlowsOneIn(n(u32::MAX))),
        ] {
            assert_eq!(text.parse::<Sample>().unwrap(), sample);
            assert_eq!(sample.to_string(), text);
        }
    }

    #[test]
    fn other_text_is_refused_with_a_remedy() {
        for (text, why) in [
            ("1/0", "cannot sample `1/0`: one in 0 is none; try 1/100"),
            ("flow:1/0", "cannot sample `flow:1/0`: one in 0 is none; try flow:1/100"),
            ("flow:3", "cannot sample `flow:3`: it is not one in N; try flow:1/3"),
            ("50", "cannot sample `50`: it is not one in N; try 1/50"),
            ("", "cannot sample ``: it is not one in N; try 1/100, p=0.01 or flow:1/100"),
            ("5/x", "cannot sample `5/x`: it is not one in N; try 1/100, p=0.01 or flow:1/100"),
            ("1/-3", "cannot sample `1/-3`: `-3` is not a whole number from 1 to 4294967295; try 1/100"),
            ("p=2", "cannot sample with probability 2: a probability is at most 1; try p=0.01"),
            ("p=0", "cannot sample with probability 0: nothing would be captured; try p=0.01"),
            ("p=NaN", "cannot sample with probability NaN: nothing would be captured; try p=0.01"),
            ("p=-1", "cannot sample with probability -1: nothing would be captured; try p=0.01"),
            ("p=1e-11", "cannot sample with probability 0.00000000001: it is less than 2^-32; try p=0.01"),
            ("p=1%", "cannot read the probability `1%`: not a number; try p=0.01"),
        ] {
            assert_eq!(text.parse::<Sample>().unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn shares_become_numbers_of_2_to_the_32() {
        let by = |text: &str| Sampling::new(text.parse().unwrap()).for_program().by;
        assert_eq!(by("p=1"), SampleBy::Chance(1 << 32));
        assert_eq!(by("p=0.25"), SampleBy::Chance(1 << 30));
        assert_eq!(by("flow:1/1"), SampleBy::Flows(1 << 32));
        assert_eq!(by("flow:1/4294967295"), SampleBy::Flows(1));
    }
}
