//! Flows that are counted in the kernel: most of their packets are not captured.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use weir_bpf::xdp::{self, WAYS};

use super::Settings;
use crate::live::settings::SourceChoice;
use crate::{Error, Setting};

/// Packets of each direction of a flow that are captured: a [`Table`](crate::flows::Table) reads so many for names.
const COPIES: u32 = 8;
/// The silence after which another flow may get the place of one.
const REST: Duration = Duration::from_secs(1);
/// Directions of flows of an interface: more would not fit in the memory that a map has.
const MOST: u32 = 1 << 24;

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    ways: u32,
    idle: Duration,
    seed: u64,
}

impl Counting {
    #[cfg_attr(not(feature = "flows"), expect(dead_code, reason = "`Builder::count_flows` asks for it"))]
    pub(crate) fn new(ways: u32, idle: Duration) -> Self {
        Self { ways, idle, seed: RandomState::new().hash_one(ways) }
    }

    /// Returns the same for a program, whose ways are divided among so many writers.
    pub(crate) fn for_program(self, writers: u32) -> xdp::Counting {
        let buckets = self.ways.clamp(1, MOST).div_ceil(WAYS * writers).next_power_of_two();
        let idle = u64::try_from(self.idle.as_nanos()).unwrap_or(u64::MAX);
        let rest = u64::try_from(REST.as_nanos()).unwrap_or(u64::MAX);
        xdp::Counting { buckets, writers, idle, rest, copies: COPIES, seed: self.seed }
    }
}

/// Returns the source that these settings lead to: flows are counted by xdp alone.
pub(super) fn source(settings: &Settings) -> Result<SourceChoice, Error> {
    if settings.counting.is_none() {
        return Ok(settings.source);
    }
    let refused = |other, why: &str| Err(Error::conflict(Setting::CountFlows, other, why));
    if settings.sampling.is_some() {
        return refused(Setting::Sample, "cannot count flows of which only a sample is seen");
    }
    if settings.steering.is_some() {
        return refused(
            Setting::Steer,
            "packets that are counted in the kernel are not steered: try one handler",
        );
    }
    match settings.source {
        SourceChoice::Auto | SourceChoice::Xdp => Ok(SourceChoice::Xdp),
        source => refused(Setting::Source(source), "only the xdp source counts flows in the kernel"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_divided_among_writers() {
        let counting = Counting::new(1000, Duration::from_secs(15));
        for (writers, buckets) in [(1, 256), (2, 128), (3, 128), (256, 1), (5000, 1)] {
            assert_eq!(counting.for_program(writers).buckets, buckets, "{writers}");
        }
        assert_eq!(Counting::new(0, Duration::MAX).for_program(1).idle, u64::MAX);
        assert_eq!(Counting::new(u32::MAX, Duration::ZERO).for_program(1).buckets * WAYS, MOST);
    }
}
