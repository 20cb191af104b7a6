//! The reference semantics: what becomes of a packet.
//!
//! 1. A learned rule in force for the packet decides, and no other rule is asked.
//! 2. Otherwise the rules are asked in order. One that `continue`s counts the packet, and the next are asked, too; the first
//!    other one that matches decides.
//! 3. If none does, the packet is not captured, and passes.
//!
//! What a packet teaches is in force from the next packet on. Where a table has no room for what a packet needs, the capture
//! gets rather too many packets, and rather too few are blocked: `first N of each flow` captures the packet, a limit is not
//! exceeded, and nothing is learned. [`Unkept`] counts these.

use std::ops::AddAssign;
use std::time::Duration;

use weir_filter::interpret::Packet;

use crate::action::{CaptureAction, Fate, Over};
use crate::programs::Programs;
use crate::rule_set::RuleSet;
use crate::state::buckets::{Buckets, Limited};
use crate::state::flows::Flows;
use crate::state::key::{Exact, LimitKey};
use crate::state::learned::{Learned, Taught};

/// The sizes of the tables, in entries.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Flows that are counted, for `first N of each flow`.
    pub flows: usize,
    /// Learned rules in force; one for both directions counts twice.
    pub learned: usize,
    /// Addresses and flows that have a limit.
    pub buckets: usize,
    /// After such a silence a flow begins anew.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { flows: 1 << 20, learned: 1 << 20, buckets: 1 << 20, idle: Duration::from_secs(300) }
    }
}

/// What becomes of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The rule that decides; `None`: no rule matches.
    pub rule: Option<usize>,
    /// Whether an exact rule decides, which `rule` has learned.
    pub by_learned: bool,
    /// Whether the packet is captured.
    pub capture: bool,
    /// What happens to it.
    pub fate: Fate,
    /// The rule that has learned an exact rule from it.
    pub learned: Option<usize>,
    /// The rules with `continue` that match.
    pub continued: Vec<usize>,
    /// The rules that log it.
    pub logged: Vec<usize>,
}

/// Packets, and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, packet: &Packet<'_>) {
        *self += Self { packets: 1, bytes: packet.length.into() };
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What a rule has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Packets that matched the rule itself. If it `continue`s, another one has them, too.
    pub matched: Count,
    /// Packets that exact rules decided on, which it has learned.
    pub by_learned: Count,
    /// The captured ones among those that `matched`.
    pub captured: Count,
    /// Time of the last packet, in nanoseconds since the epoch.
    pub last: Option<u64>,
}

/// Packets for which something could not be remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unkept {
    /// Captured without being counted: no room for their flow.
    pub flows: u64,
    /// Taught nothing: no room for the rule, or not for both of its directions.
    pub learned: u64,
    /// Taught nothing: they belong to no flow, since they are not IP.
    pub no_flow: u64,
    /// Taken to be within a limit: no room for their bucket.
    pub buckets: u64,
}

/// Decides about packets.
#[derive(Debug)]
pub struct Evaluator {
    rules: RuleSet,
    limits: Limits,
    counts: Vec<RuleCount>,
    unmatched: Count,
    unkept: Unkept,
    flows: Flows,
    learned: Learned,
    buckets: Buckets,
}

/// A packet on its way through the rules.
struct Arrival<'p> {
    packet: &'p Packet<'p>,
    time: u64,
    exact: Option<Exact>,
}

impl Evaluator {
    /// Begins with empty tables.
    pub fn new(rules: RuleSet, limits: Limits) -> Self {
        Self {
            counts: vec![RuleCount::default(); rules.rules.len()],
            unmatched: Count::default(),
            unkept: Unkept::default(),
            flows: Flows::new(limits.flows, limits.idle),
            learned: Learned::new(limits.learned),
            buckets: Buckets::new(limits.buckets),
            rules,
            limits,
        }
    }

    /// Forgets everything.
    pub fn restart(&mut self) {
        *self = Self::new(std::mem::take(&mut self.rules), self.limits);
    }

    /// Returns the rules.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Returns what each rule has seen.
    pub fn counts(&self) -> &[RuleCount] {
        &self.counts
    }

    /// Returns the packets that no rule has decided on.
    pub fn unmatched(&self) -> Count {
        self.unmatched
    }

    /// Returns the packets for which something could not be remembered.
    pub fn unkept(&self) -> Unkept {
        self.unkept
    }

    /// Decides about a packet that came at `time`, in nanoseconds since the epoch. `programs` are those of the rules for its
    /// link type.
    ///
    /// # Panics
    ///
    /// If `programs` are not as many as there are rules.
    pub fn decide(&mut self, programs: &Programs, packet: &Packet<'_>, time: u64) -> Decision {
        assert_eq!(programs.matches.len(), self.rules.rules.len(), "programs of other rules");
        let exact = Exact::of(programs.link_type, packet);
        let arrival = Arrival { packet, time, exact };
        if let Some(rule) =
            exact.filter(|_| !self.learned.is_empty()).and_then(|exact| self.learned.find(&exact, time))
        {
            return self.decide_as_learned(rule, &arrival);
        }
        let mut decision = Decision::default();
        for rule in 0..self.rules.rules.len() {
            if !(programs.matches[rule])(packet) {
                continue;
            }
            let count = &mut self.counts[rule];
            count.matched.add(packet);
            count.last = Some(time);
            self.learn(rule, &arrival, &mut decision);
            self.log(rule, &arrival, &mut decision);
            if self.rules.rules[rule].actions.continues {
                decision.continued.push(rule);
                continue;
            }
            decision.rule = Some(rule);
            decision.capture = self.is_captured(rule, &arrival);
            decision.fate = self.fate(rule, &arrival);
            if decision.capture {
                self.counts[rule].captured.add(packet);
            }
            return decision;
        }
        self.unmatched.add(packet);
        decision
    }

    fn decide_as_learned(&mut self, rule: usize, arrival: &Arrival<'_>) -> Decision {
        let learn = self.rules.rules[rule].actions.learn.as_ref();
        let (capture, fate) = learn.map(|learn| learn.shortcut.decisions()).unwrap_or_default();
        let count = &mut self.counts[rule];
        count.by_learned.add(arrival.packet);
        count.last = Some(arrival.time);
        Decision { rule: Some(rule), by_learned: true, capture, fate, ..Decision::default() }
    }

    /// Decides whether a packet that matches a rule is captured.
    fn is_captured(&mut self, rule: usize, arrival: &Arrival<'_>) -> bool {
        match self.rules.rules[rule].actions.capture {
            CaptureAction::Ignore => false,
            CaptureAction::Capture => true,
            // It is counted already.
            CaptureAction::Sample(every) => (self.counts[rule].matched.packets - 1).is_multiple_of(every),
            // All packets of no flow are captured.
            CaptureAction::First(most) => arrival.exact.is_none_or(|exact| {
                let before = self.flows.count(rule, exact.flow(), arrival.time);
                self.unkept.flows += u64::from(before.is_none());
                before.is_none_or(|before| before < most)
            }),
        }
    }

    fn fate(&mut self, rule: usize, arrival: &Arrival<'_>) -> Fate {
        let over = self.rules.rules[rule].actions.fate_over;
        match self.is_over(rule, Limited::Fate, over, arrival) {
            true => self.rules.rules[rule].actions.fate.clone(),
            false => Fate::Pass,
        }
    }

    fn log(&mut self, rule: usize, arrival: &Arrival<'_>, decision: &mut Decision) {
        let Some(log) = self.rules.rules[rule].actions.log else { return };
        if self.is_over(rule, Limited::Log, log.over, arrival) {
            decision.logged.push(rule);
        }
    }

    fn learn(&mut self, rule: usize, arrival: &Arrival<'_>, decision: &mut Decision) {
        let Some(learn) = &self.rules.rules[rule].actions.learn else { return };
        let (lasting, idle, both, over) = (learn.lasting, learn.idle, learn.both, learn.over);
        if !self.is_over(rule, Limited::Learn, over, arrival) {
            return;
        }
        let Some(exact) = arrival.exact else {
            self.unkept.no_flow += 1;
            return;
        };
        let lasting = u64::try_from(lasting.as_nanos()).unwrap_or(u64::MAX);
        let mut add = |exact| self.learned.add(exact, rule, arrival.time, lasting, idle);
        let taught = [add(exact), if both { add(exact.reversed()) } else { Taught::Known }];
        if taught[0] == Taught::New {
            decision.learned = Some(rule);
        }
        self.unkept.learned += u64::from(taught.contains(&Taught::NoRoom));
    }

    /// Returns whether an action applies: it has no limit, or the packet is beyond it.
    fn is_over(&mut self, rule: usize, limited: Limited, over: Option<Over>, arrival: &Arrival<'_>) -> bool {
        let Some(Over { rate, key }) = over else { return true };
        let key = LimitKey::of(key, arrival.exact);
        let is_over = self.buckets.is_over(rule, limited, key, rate, arrival.time);
        self.unkept.buckets += u64::from(is_over.is_none());
        is_over.unwrap_or(false)
    }
}
