//! Exact rules that are added while a guard runs, and those that its rules have learned.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::io::Errno;
use weir_bpf::rules::{self as engine, ExactRules};
use weir_sys::{CallError, clock};

use super::action::Fate;
use super::given::RuleInfo;
use super::reading::Count;

/// The size of the table of exact rules, unless another one is asked for.
pub(crate) const USUAL: u32 = 1 << 16;

/// The largest one. Its memory, about 170 bytes for each rule, is taken at once.
pub(crate) const MOST: u32 = 1 << 24;

/// Packets of one direction of a flow, in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExactFlow {
    /// Where they come from. The port is 0 if the protocol has none, and for fragments after the first.
    pub from: SocketAddr,
    /// Where they go: an address of the same kind.
    pub to: SocketAddr,
    /// Protocol of the outermost IP packet, behind extension headers.
    pub protocol: u8,
    /// ID of the outermost VLAN tag; `None`: packets without a tag.
    pub vlan: Option<u16>,
}

impl ExactFlow {
    /// Packets of `protocol` without a VLAN tag.
    pub fn new(protocol: u8, from: SocketAddr, to: SocketAddr) -> Self {
        Self { from, to, protocol, vlan: None }
    }

    /// Packets with this VLAN ID; `None`: without a tag.
    #[must_use]
    pub fn vlan(self, vlan: Option<u16>) -> Self {
        Self { vlan, ..self }
    }

    fn engine(&self) -> engine::Exact {
        let &Self { from, to, protocol, vlan } = self;
        engine::Exact { vlan, protocol, from, to }
    }

    fn of(engine::Exact { vlan, protocol, from, to }: engine::Exact) -> Self {
        Self { from, to, protocol, vlan }
    }
}

/// What happens to the packets of a flow. Exact rules are asked before all others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExactRule {
    /// Which packets.
    pub flow: ExactFlow,
    /// What happens to them: they pass, are blocked, or bounced.
    pub fate: Fate,
    /// How long; `None`: without end.
    pub lasting: Option<Duration>,
    /// Whether that time begins anew with each of its packets, so that the rule ends when there was none for so long.
    #[cfg_attr(feature = "serde", serde(default))]
    pub idle: bool,
}

impl ExactRule {
    /// A rule for a time; `None`: without end.
    pub fn new(flow: ExactFlow, fate: Fate, lasting: Option<Duration>) -> Self {
        Self { flow, fate, lasting, idle: false }
    }

    /// Has it end when no packet has met it for its time, instead of that time after it was added. One without end has none then, either.
    #[must_use]
    pub fn idle(self) -> Self {
        Self { idle: true, ..self }
    }
}

/// An exact rule in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExactEntry {
    /// Which packets.
    pub flow: ExactFlow,
    /// What happens to them; in a [dry run](crate::guard::GuardBuilder::dry_run), what would happen.
    pub fate: Fate,
    /// The name of the rule that has learned it; `None`: it was added.
    pub by: Option<String>,
    /// Its packets, if it was added; those of others are counted for the rule that has learned it.
    pub count: Option<Count>,
    /// How long it stays in force; `None`: without end.
    pub left: Option<Duration>,
    /// It stays in force until it has had no packet for so long: the next one makes [`left`](Self::left) that again. `None`: its packets make no
    /// difference.
    #[cfg_attr(feature = "serde", serde(default))]
    pub idle: Option<Duration>,
}

/// Why an exact rule is not added, or cannot be looked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExactError {
    /// The guard has no table of exact rules ([`GuardBuilder::exact`](crate::guard::GuardBuilder::exact)), or is off.
    #[error("this guard has no table of exact rules")]
    NoTable,
    /// The table is full; it has room for this many.
    #[error("the table of {0} exact rules is full")]
    Full(u32),
    /// Exact rules that are added do not reflect.
    #[error("an exact rule that is added cannot reflect")]
    Reflects,
    /// The addresses are of two kinds.
    #[error("an IPv4 address and an IPv6 address make no flow")]
    TwoKinds,
    /// The kernel refuses it.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// What is known of the rules that were added, besides what the kernel has.
#[derive(Debug, Default)]
pub(crate) struct Added(HashMap<ExactFlow, One>);

#[derive(Clone, Debug)]
struct One {
    fate: Fate,
    /// As [`engine::ExactRule::until`]. The kernel may have put it off.
    until: u64,
    /// As [`engine::ExactRule::idle`].
    idle: Option<u64>,
    /// What it has counted in tables before this one.
    before: engine::RuleCount,
}

/// What a guard has at the moment.
pub(crate) struct Table<'a> {
    /// `None`: there is none.
    pub(crate) exact: Option<&'a ExactRules>,
    pub(crate) size: u32,
}

impl Added {
    /// Returns whether a table is needed for them.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a rule, or replaces the one for these packets.
    pub(crate) fn add(&mut self, table: &Table<'_>, rule: &ExactRule) -> Result<(), ExactError> {
        let exact = table.exact.ok_or(ExactError::NoTable)?;
        let lasting = rule.lasting.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let one = One {
            fate: rule.fate.clone(),
            until: lasting.map_or(u64::MAX, |time| clock::monotonic().saturating_add(time)),
            idle: lasting.filter(|_| rule.idle),
            before: engine::RuleCount::default(),
        };
        let kernel = one.kernel().ok_or(ExactError::Reflects)?;
        match exact.insert(&rule.flow.engine(), &kernel) {
            Ok(()) => {
                self.0.insert(rule.flow, one);
                Ok(())
            }
            Err(error) if error.errno() == Errno::TOOBIG.raw_os_error() => Err(ExactError::Full(table.size)),
            Err(_) if rule.flow.from.is_ipv6() != rule.flow.to.is_ipv6() => Err(ExactError::TwoKinds),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a rule, added or learned; returns whether there was one.
    pub(crate) fn remove(&mut self, table: &Table<'_>, flow: &ExactFlow) -> Result<bool, ExactError> {
        let removed = table.exact.ok_or(ExactError::NoTable)?.remove(&flow.engine());
        self.0.remove(flow);
        Ok(removed?)
    }

    /// Removes all rules; returns how many were in force.
    pub(crate) fn flush(&mut self, table: &Table<'_>) -> Result<usize, ExactError> {
        let Some(exact) = table.exact else { return Ok(0) };
        let (mut removed, now) = (0, clock::monotonic());
        for (flow, entry) in exact.list()? {
            let was_there = exact.remove(&flow)?;
            removed += usize::from(was_there && entry.rule.until > now);
        }
        self.0.clear();
        Ok(removed)
    }

    /// Forgets those whose time is over.
    pub(crate) fn sweep(&mut self, table: &Table<'_>) -> Result<(), CallError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (now, mut failed) = (clock::monotonic(), None);
        self.forget(now, |flow| {
            let entry = table.exact.map_or(Ok(None), |exact| exact.get(&flow.engine()));
            let entry = entry.unwrap_or_else(|error| {
                failed = Some(error);
                None
            });
            entry.filter(|entry| entry.by.is_none()).map(|entry| entry.rule.until)
        });
        failed.map_or(Ok(()), Err)
    }

    /// Forgets those whose time is over. `put_off`: says until when the kernel has put off the end of one; `None`: it is gone.
    fn forget(&mut self, now: u64, mut put_off: impl FnMut(&ExactFlow) -> Option<u64>) {
        self.0.retain(|flow, one| {
            if one.until <= now && one.idle.is_some() {
                one.until = put_off(flow).unwrap_or(0);
            }
            one.until > now
        });
    }

    /// Returns all rules in force, in the order of their flows. `count`: makes a count of what the kernel has counted.
    pub(crate) fn list(
        &self,
        table: &Table<'_>,
        rules: &[RuleInfo],
        count: impl Fn(&engine::RuleCount) -> Count,
    ) -> Result<Vec<ExactEntry>, ExactError> {
        let Some(exact) = table.exact else { return Ok(Vec::new()) };
        let now = clock::monotonic();
        let all = exact.list()?;
        let in_force = all.into_iter().filter(|(_, entry)| entry.rule.until > now);
        let entry = |(flow, entry): (engine::Exact, engine::ExactEntry)| {
            let flow = ExactFlow::of(flow);
            let added = self.0.get(&flow).filter(|_| entry.by.is_none());
            let learned = entry.by.and_then(|rule| rules.get(rule));
            let fate = added.map(|one| &one.fate);
            let fate = fate.or_else(|| Some(&learned?.action.learn.as_ref()?.fate));
            let mut counted = added.map(|one| one.before).unwrap_or_default();
            follow(&mut counted, &entry);
            let left = entry.rule.until - now;
            ExactEntry {
                flow,
                fate: fate.cloned().unwrap_or(Fate::Pass),
                by: learned.map(|rule| rule.name.clone()),
                count: entry.by.is_none().then(|| count(&counted)),
                left: (entry.rule.until != u64::MAX).then(|| Duration::from_nanos(left)),
                idle: entry.rule.idle.map(Duration::from_nanos),
            }
        };
        let mut entries: Vec<_> = in_force.map(entry).collect();
        entries.sort_unstable_by_key(|entry| entry.flow);
        Ok(entries)
    }

    /// Puts them into a new table, too. The time of those that end when they are idle begins anew: packets may put off their ends in
    /// the old table until it is no longer asked.
    pub(crate) fn copy(&mut self, from: &Table<'_>, to: &Table<'_>) -> Result<(), CallError> {
        let Some(exact) = to.exact else { return Ok(()) };
        self.sweep(from)?;
        let now = clock::monotonic();
        for (flow, one) in &mut self.0 {
            if let Some(idle) = one.idle {
                one.until = now.saturating_add(idle);
            }
            if let Some(rule) = one.kernel() {
                exact.insert(&flow.engine(), &rule)?;
            }
        }
        Ok(())
    }

    /// Adds what they have counted in a table that is no longer asked.
    pub(crate) fn keep(&mut self, from: &ExactRules) -> Result<(), CallError> {
        if self.0.is_empty() {
            return Ok(());
        }
        for (flow, entry) in from.list()? {
            if let Some(one) = self.0.get_mut(&ExactFlow::of(flow)).filter(|_| entry.by.is_none()) {
                follow(&mut one.before, &entry);
            }
        }
        Ok(())
    }
}

impl One {
    /// Returns the rule as the kernel has it; `None`: it has no such fate.
    fn kernel(&self) -> Option<engine::ExactRule> {
        let fate = match &self.fate {
            Fate::Reflect(_) => return None,
            Fate::Pass => engine::Fate::Pass,
            Fate::Block => engine::Fate::Block,
            Fate::Bounce => engine::Fate::Bounce,
        };
        Some(engine::ExactRule { fate, capture: false, until: self.until, idle: self.idle })
    }
}

/// Adds what an entry has counted.
fn follow(counted: &mut engine::RuleCount, entry: &engine::ExactEntry) {
    counted.packets += entry.packets;
    counted.bytes += entry.bytes;
    counted.last = counted.last.max(entry.last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_ends_when_it_is_idle_is_forgotten_when_the_kernel_has_not_put_off_its_end() {
        let flow = |port: u16| ExactFlow::new(17, ([192, 0, 2, 1], port).into(), ([192, 0, 2, 2], 53).into());
        let one = |until, idle| One { fate: Fate::Block, until, idle, before: engine::RuleCount::default() };
        let all = [
            (1, one(10, None)),
            (2, one(11, None)),
            (3, one(10, Some(5))),
            (4, one(9, Some(5))),
            (5, one(8, Some(5))),
        ];
        let mut added = Added(all.into_iter().map(|(port, one)| (flow(port), one)).collect());
        let mut asked = Vec::new();
        added.forget(10, |flow| {
            asked.push(flow.from.port());
            match flow.from.port() {
                3 => Some(14),
                4 => Some(9),
                _ => None,
            }
        });
        asked.sort_unstable();
        assert_eq!(asked, [3, 4, 5]);
        let mut left: Vec<_> = added.0.iter().map(|(flow, one)| (flow.from.port(), one.until)).collect();
        left.sort_unstable();
        assert_eq!(left, [(2, 11), (3, 14)]);
    }
}
