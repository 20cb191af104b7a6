//! `--handlers`: several threads process packets independently, and what each does with them.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use weir::{Builder, DEFAULT_THRESHOLD, Order, Plan, Share, Steer};
use weir_service::Budget;

use super::load::{Load, LoadFindings};
use crate::check::Check;

#[derive(Debug, Args)]
#[command(next_help_heading = "Handlers")]
pub(crate) struct HandlersArgs {
    /// Process packets with N threads.
    ///
    /// Thread q modulo N takes the packets of queue q. Queues are numbered across all interfaces,
    /// in order.
    #[arg(long, value_name = "N")]
    handlers: Option<usize>,

    /// Pin the threads to these CPUs, one each: 0,1.
    #[arg(long, value_name = "CPUS", value_delimiter = ',', requires = "handlers")]
    pin: Vec<u32>,

    /// Let idle threads help busy queues.
    ///
    /// Packets of a flow may then be handled at the same time and out of order, unless --order flow
    /// is given.
    #[arg(long, requires = "handlers")]
    advanced: bool,

    /// With --advanced, help queues fuller than PERCENT: 1% to 99%.
    ///
    /// PERCENT refers to the chunks that can wait in the queue. Default: 50.
    #[arg(long, value_name = "PERCENT", requires = "advanced")]
    threshold: Option<Percent>,

    /// Let only the threads of these queues help one another: 0-3 or 0,2,5-7.
    ///
    /// May be repeated. By default, all queues form one group.
    #[arg(hide_short_help = true, long = "group", value_name = "QUEUES", requires = "advanced")]
    groups: Vec<QueueList>,

    /// Spread packets over the threads in the kernel (sources xdp and tc).
    ///
    /// Useful if a device has a single queue or cannot see the flow. Each receive queue (with tc,
    /// each CPU) then has a pool for each thread.
    #[arg(long, value_name = "BY", value_enum, requires = "handlers")]
    steer: Option<SteerArg>,

    /// Steer to TARGETS targets, a multiple of the number of threads.
    ///
    /// Thread t modulo N takes the packets of target t. Default: one target per thread.
    #[arg(hide_short_help = true, long, value_name = "TARGETS", requires = "steer")]
    targets: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SteerArg {
    /// By flow, both directions together; later fragments follow the first.
    Flow,
    /// By the flow inside VXLAN, Geneve, GTP-U, GRE or IP-in-IP, up to two levels deep.
    Inner,
    /// In turn.
    RoundRobin,
    /// By the outermost VLAN ID, modulo N.
    Vlan,
}

impl From<SteerArg> for Steer {
    fn from(steer: SteerArg) -> Self {
        match steer {
            SteerArg::Flow => Self::Flow,
            SteerArg::Inner => Self::Inner,
            SteerArg::RoundRobin => Self::RoundRobin,
            SteerArg::Vlan => Self::Vlan,
        }
    }
}

impl HandlersArgs {
    /// Returns whether there are handlers, and whether they help each other.
    pub(crate) fn wanted(&self) -> (bool, bool) {
        (self.handlers.is_some(), self.advanced)
    }

    /// Configures steering as requested.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        let Some((by, handlers)) = self.steer.zip(self.handlers) else { return builder };
        // A number beyond u32 is too large in any case, and the engine rejects it.
        let targets = self.targets.unwrap_or_else(|| u32::try_from(handlers).unwrap_or(u32::MAX));
        builder.steer(by.into(), targets)
    }

    /// Returns the plan for the handlers; `None`: one thread does everything.
    pub(crate) fn plan(&self, order: Order) -> Option<Plan> {
        let plan = Plan::new(self.handlers?).pin(self.pin.iter().copied()).order(order);
        let percent = self.threshold.map_or(DEFAULT_THRESHOLD, |threshold| threshold.0);
        let plan = if self.advanced { plan.advanced(percent) } else { plan };
        Some(self.groups.iter().fold(plan, |plan, group| plan.group(group.0.iter().copied())))
    }
}

/// A percentage, `60%` or `60`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Percent(u8);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.parse() {
            Ok(percent @ 1..=99) => Ok(Self(percent)),
            _ => Err("allowed: 1% to 99%".into()),
        }
    }
}

/// A list of queues, such as `0-3,6`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueueList(Vec<usize>);

impl FromStr for QueueList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// Most queues; no device has more.
        const MOST: usize = 1 << 16;
        let wrong = || format!("allowed: queue numbers below {MOST}, such as 0-3 or 0,2,5-7");
        let mut queues = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = match (first.parse(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last && last < MOST => (first, last),
                _ => return Err(wrong()),
            };
            queues.extend(first..=last);
        }
        Ok(Self(queues))
    }
}

/// The work of one thread on packets, with its results.
#[derive(Debug)]
pub(super) struct Work {
    budget: Budget,
    /// `None`: no work is simulated.
    load: Option<Load>,
    /// With the link type of each interface. `None`: packets are not checked.
    pub(super) check: Option<(Check, Vec<u16>)>,
    /// Packets processed.
    pub(super) handled: u64,
}

impl Work {
    pub(super) fn new(budget: Budget, load: Option<Load>) -> Self {
        Self { budget, load, check: None, handled: 0 }
    }

    /// Returns the combined results of this and `others`.
    pub(super) fn finish(self, others: impl IntoIterator<Item = Self>) -> (u64, Option<LoadFindings>) {
        let first = (self.handled, self.load.map(Load::finish));
        others.into_iter().fold(first, |(handled, found), other| {
            let both = found.zip(other.load.map(Load::finish));
            (handled + other.handled, both.map(|(one, other)| one.and(other)))
        })
    }
}

impl crate::workers::Work for Work {
    fn take(&mut self, mut share: Share) {
        share.keep_first(self.budget.take(share.len()));
        self.handled += share.len() as u64;
        if let Some(load) = &mut self.load {
            share.packets().for_each(|packet| load.packet(&packet));
        }
        if let Some((check, link_types)) = &mut self.check {
            share.packets().for_each(|packet| check.packet(link_types[packet.interface as usize], &packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_lists_of_ranges() {
        let list = |text: &str| text.parse().map(|QueueList(queues)| queues);
        assert_eq!(list("0-3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(list("0,2,5-6"), Ok(vec![0, 2, 5, 6]));
        for text in ["", "-", "3-1", "a", "1,", "0-65536", "99999999999999999999"] {
            assert!(list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_threshold_is_a_percentage_that_can_be_exceeded() {
        assert_eq!(("60%".parse(), "60".parse()), (Ok(Percent(60)), Ok(Percent(60))));
        for text in ["0", "0%", "100%", "101%", "-1", "x", "%", "256"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }
}
