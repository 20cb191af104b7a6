//! What was requested: interfaces and settings.

pub(crate) mod counting;
pub(crate) mod memory;
pub(crate) mod sampling;
pub(crate) mod steering;

use std::num::NonZeroU32;
use std::ops::{ControlFlow, RangeInclusive};
use std::time::Duration;

use weir_bpf::writers::Chosen;

use self::counting::Counting;
use self::sampling::Sampling;
use self::steering::Steering;
use crate::live::namespace::promiscuity::Promiscuity;
use crate::live::rules::Rules;
use crate::live::settings::{Delivery, Mode, PoolSize, SourceChoice, Timestamps, Window};
use crate::{DEFAULT_SNAP_LEN, Direction, Error, Filter, Namespace, Setting};

/// The longest [`Window`] accepted: more than any source needs.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);

/// An interface that is about to be opened; see [`Builder::open_telling`](crate::Builder::open_telling).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// How many interfaces are open already; others are being opened.
    pub before: usize,
    /// How many interfaces were requested.
    pub all: usize,
}

impl Opening<'_> {
    /// Tells `tell`, which may end the start.
    pub(crate) fn told(self, tell: &mut impl FnMut(Opening<'_>) -> ControlFlow<()>) -> Result<(), Error> {
        let Self { before: open, all, .. } = self;
        match tell(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted { open, all }),
        }
    }
}

/// A requested interface.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// `None`: the calling thread's namespace.
    pub(crate) namespace: Option<Namespace>,
    pub(crate) name: String,
    /// `None`: all receive queues.
    pub(crate) queues: Option<RangeInclusive<u32>>,
}

impl Wanted {
    /// Returns the name used in accounts, files and errors.
    pub(crate) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/{}", namespace.name(), self.name),
            None => self.name.clone(),
        }
    }

    /// Finds the requested receive queues among the `all` that the interface has.
    pub(crate) fn chosen(&self, all: u32) -> Result<Option<Chosen>, Error> {
        let Some(queues) = &self.queues else { return Ok(None) };
        let (first, last, name) = (*queues.start(), *queues.end(), self.label());
        let why = if last >= all {
            let (plural, range) =
                if all == 1 { ("", "0".to_owned()) } else { ("s", format!("0-{}", all - 1)) };
            format!(
                "cannot capture on queue {last} of `{name}`: it has {all} receive queue{plural}; try {range}"
            )
        } else if first > last {
            format!("cannot capture on queues {first}-{last} of `{name}`: there are none; try {last}-{first}")
        } else {
            return Ok(Some(Chosen { first, count: last - first + 1 }));
        };
        Err(Error::setting(Setting::Queues, why))
    }

    /// Whether this stands for all interfaces of the namespace.
    pub(crate) fn is_any(&self) -> bool {
        self.name == ANY
    }
}

/// The name that stands for all interfaces of a namespace.
const ANY: &str = "any";

/// Everything a source needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) source: SourceChoice,
    pub(crate) mode: Mode,
    pub(crate) timestamps: Timestamps,
    pub(crate) snap_len: u32,
    pub(crate) pool: PoolSize,
    pub(crate) direction: Direction,
    pub(crate) direction_in_records: bool,
    pub(crate) promiscuous: bool,
    /// What makes interfaces of the same namespace promiscuous.
    pub(crate) shared_promiscuity: Promiscuity,
    /// The cookie of a socket whose packets are left out.
    pub(crate) left_out: Option<u64>,
    /// The mark of packets that count as filtered.
    pub(crate) left_out_mark: Option<NonZeroU32>,
    pub(crate) stacked: bool,
    pub(crate) delivery: Delivery,
    pub(crate) by_time: Option<Window>,
    pub(crate) or_unsorted: bool,
    pub(crate) segment: bool,
    pub(crate) tc_filters: bool,
    pub(crate) filter: Option<Filter>,
    /// Rules instead of a filter.
    pub(crate) rules: Option<Rules>,
    /// The namespace of the interface, in which rules name others.
    pub(crate) namespace: Option<Namespace>,
    pub(crate) steering: Option<Steering>,
    pub(crate) sampling: Option<Sampling>,
    /// Flows are counted in the kernel.
    pub(crate) counting: Option<Counting>,
}

impl Settings {
    /// Whether records carry the direction. `both` says whether both directions are captured.
    pub(crate) fn tells_direction(&self, both: bool) -> bool {
        both || self.direction_in_records
    }

    /// Returns the number of queues that `writers` writers fill: one per writer, or one per writer and target.
    pub(crate) fn queues_of(&self, writers: u32) -> u32 {
        writers.saturating_mul(self.targets().unwrap_or(1))
    }

    /// Returns what makes the interface promiscuous, if that was requested.
    pub(crate) fn promiscuity(&self) -> Option<&Promiscuity> {
        self.promiscuous.then_some(&self.shared_promiscuity)
    }

    /// Returns the number of targets, if packets are steered.
    pub(crate) fn targets(&self) -> Option<u32> {
        self.steering.map(|steering| steering.targets)
    }
}

impl Settings {
    pub(crate) fn checked(mut self) -> Result<Self, Error> {
        self.source = counting::source(&self)?;
        if let Some(Window::Of(window)) = self.by_time
            && window > LONGEST_WINDOW
        {
            let longest = LONGEST_WINDOW.as_secs();
            let why = format!("packets can be held back for at most {longest} s");
            return Err(Error::setting(Setting::Window, why));
        }
        if self.by_time.is_some() && self.timestamps == Timestamps::None {
            let why = "sorting by time requires timestamps";
            return Err(Error::conflict(Setting::ByTime, Setting::Timestamps, why));
        }
        if self.pool.chunks.is_some() && self.pool.memory.is_some() {
            let why = "choose either a number of chunks or a total amount of memory";
            return Err(Error::conflict(Setting::Chunks, Setting::Memory, why));
        }
        if self.snap_len == 0 {
            return Err(Error::setting(Setting::SnapLen, "the snap length must be at least 1"));
        }
        if let Some(rules) = &self.rules {
            rules.check()?;
            if self.filter.is_some() {
                let why = "cannot use a filter beside rules, which take its place: try a first rule such as `not (FILTER) -> ignore`";
                return Err(Error::conflict(Setting::Filter, Setting::Rules, why));
            }
            if self.sampling.is_some() {
                let why =
                    "cannot sample beside rules, which say what is captured: try `sample 1/N` in the rules";
                return Err(Error::conflict(Setting::Sample, Setting::Rules, why));
            }
            if self.mode == Mode::Exclusive {
                rules.check_exclusive()?;
            }
        }
        self.steering.iter().try_for_each(Steering::check)?;
        self.sampling.iter().try_for_each(Sampling::check)?;
        Ok(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: SourceChoice::default(),
            mode: Mode::default(),
            timestamps: Timestamps::default(),
            snap_len: DEFAULT_SNAP_LEN,
            pool: PoolSize::default(),
            direction: Direction::default(),
            direction_in_records: false,
            promiscuous: true,
            shared_promiscuity: Promiscuity::default(),
            left_out: None,
            left_out_mark: None,
            stacked: false,
            delivery: Delivery::default(),
            by_time: None,
            or_unsorted: false,
            segment: false,
            tc_filters: false,
            filter: None,
            rules: None,
            namespace: None,
            steering: None,
            sampling: None,
            counting: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_are_not_there_are_told_with_those_that_are() {
        let chosen = |first, last, all| {
            let queues = Some(RangeInclusive::new(first, last));
            Wanted { namespace: None, name: "eth0".into(), queues }.chosen(all)
        };
        assert_eq!(chosen(1, 3, 4).unwrap(), Some(Chosen { first: 1, count: 3 }));
        for (first, last, all, text) in [
            (2, 4, 4, "cannot capture on queue 4 of `eth0`: it has 4 receive queues; try 0-3"),
            (1, 1, 1, "cannot capture on queue 1 of `eth0`: it has 1 receive queue; try 0"),
            (3, 1, 4, "cannot capture on queues 3-1 of `eth0`: there are none; try 1-3"),
        ] {
            assert_eq!(chosen(first, last, all).unwrap_err().to_string(), text);
        }
    }
}
