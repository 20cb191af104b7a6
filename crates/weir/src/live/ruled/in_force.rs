//! The rules in force, and what they and those before them have counted.

use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use weir_bpf::rules::{self as engine, RuleCount as Counted};
use weir_sys::CallError;
use weir_sys::bpf::grace::Grace;

use super::ahead::Ahead;
use super::loader::Loaded;
use super::process::InProcess;
use super::site::Placed;
use crate::live::rules::exact::{Added, Table};
use crate::live::rules::{
    Action, Count, ExactEntry, ExactError, ExactFlow, ExactRule, FateCounts, LoggedPacket, Reading,
    RuleCount, RuleInfo, Rules, Unkept,
};
use crate::{Error, Unsupported};

/// Rules in force.
#[derive(Debug)]
pub(crate) struct InForce {
    /// In the kernel; `None`: they are off, or in this process.
    placed: Option<Placed>,
    in_process: Option<InProcess>,
    /// The rules in force, or that were.
    pub(crate) rules: Vec<RuleInfo>,
    /// What rules had counted by [key] that were replaced by the same ones.
    before: HashMap<Key, Counted>,
    /// What others had counted. It never becomes less: rules that return count anew.
    replaced: Replaced,
    /// What had met no rule by then, or an exact one that was added.
    before_none: Counted,
    /// What rules could not remember that are no longer in force.
    unkept_before: Unkept,
    /// Packets that they could not log.
    log_lost_before: u64,
    /// What they have logged.
    logged_before: Vec<LoggedPacket>,
    /// Exact rules that were added.
    added: Added,
    /// When the tables were last tidied up.
    swept: Instant,
    ahead: Ahead,
    grace: Grace,
    began: Instant,
    ended: Option<Instant>,
    /// The rules have stayed in force when the guard was stopped.
    pub(crate) stay: bool,
}

impl InForce {
    pub(crate) fn new(placed: Placed) -> Self {
        let rules = placed.loaded.rules.clone();
        Self { placed: Some(placed), ..Self::idle(rules) }
    }

    /// Takes rules that this process asks.
    pub(crate) fn in_process(in_process: InProcess, rules: &Rules) -> Self {
        Self { in_process: Some(in_process), ..Self::idle(rules.described()) }
    }

    fn idle(rules: Vec<RuleInfo>) -> Self {
        Self {
            rules,
            placed: None,
            in_process: None,
            before: HashMap::new(),
            replaced: Replaced::default(),
            before_none: Counted::default(),
            unkept_before: Unkept::default(),
            log_lost_before: 0,
            logged_before: Vec::new(),
            added: Added::default(),
            swept: Instant::now(),
            ahead: Ahead::now(),
            grace: Grace::new(),
            began: Instant::now(),
            ended: None,
            stay: false,
        }
    }

    pub(crate) fn replace(&mut self, name: &str, rules: &Rules) -> Result<(), Error> {
        let unsupported =
            |cause, otherwise| Error::Unsupported { name: name.to_owned(), cause, sources: &[], otherwise };
        if let Some(in_process) = &self.in_process {
            let (counts, unkept) = in_process.replace(rules)?;
            self.keep(&counts, unkept);
            self.rules = rules.described();
            self.retire();
            return Ok(());
        }
        let Some(placed) = &self.placed else { return Err(unsupported(Unsupported::RulesOff, "")) };
        if placed.site.is_fixed() {
            return Err(unsupported(Unsupported::Replacement, "end the guard, and start another one"));
        }
        let loaded = placed.loader.load(rules, !self.added.is_empty())?;
        self.added.copy(&placed.table(), &placed.loader.table(&loaded))?;
        placed.site.exchange(&loaded.programs, &placed.loaded.programs)?;
        // From here on no packet meets the old rules, so their numbers are final.
        let waited = self.grace.wait();
        let added = match &placed.loaded.programs.memory.exact {
            Some(exact) => self.added.keep(exact),
            None => Ok(()),
        };
        let kept = counted(&placed.loaded).map(|(counts, unkept)| self.keep(&counts, unkept));
        self.rules.clone_from(&loaded.rules);
        self.retire();
        let mut logged = Ok(());
        if let Some(placed) = &mut self.placed {
            let mut old = std::mem::replace(&mut placed.loaded, loaded);
            logged = self.keep_logged(&mut old);
        }
        Ok(kept.and(added).and(waited).and(logged)?)
    }

    pub(crate) fn read(&mut self) -> Result<Reading, Error> {
        let (counts, unkept) = match (&self.placed, &self.in_process) {
            (Some(placed), _) => counted(&placed.loaded)?,
            (None, Some(in_process)) => in_process.counted(),
            (None, None) => (Vec::new(), engine::Unkept::default()),
        };
        self.ahead.follow();
        let nothing = Counted::default();
        let mut rules = Vec::new();
        for (number, info) in self.rules.iter().enumerate() {
            let now = counts.get(number).unwrap_or(&nothing);
            let count = sum(self.before.get(&key(info)).unwrap_or(&nothing), now);
            rules.push(RuleCount::new(info.clone(), self.ahead.counts(&count), count.captured, over(&count)));
        }
        let mut fates = self.replaced.fates;
        rules.iter().for_each(|rule| fates.add(&rule.action, [rule.count, rule.learned], rule.over));
        let captured: u64 = rules.iter().map(RuleCount::all_captured).sum();
        let none = sum(&self.before_none, counts.get(self.rules.len()).unwrap_or(&nothing));
        let [no_rule, exact] = self.ahead.counts(&none);
        fates.add_none([no_rule, exact]);
        Ok(Reading {
            elapsed: self.ended.unwrap_or_else(Instant::now) - self.began,
            rules,
            replaced: self.ahead.count(&self.replaced.counted),
            captured: captured + self.replaced.captured,
            exact,
            no_rule,
            fates,
            unkept: with(self.unkept_before, unkept),
            log_lost: self.log_lost_before + unkept.logged,
        })
    }

    /// Makes room for what rules learn and limit, about once a second.
    pub(crate) fn sweep(&mut self) -> Result<(), Error> {
        const PERIOD: Duration = Duration::from_secs(1);
        if let Some(placed) = &self.placed
            && self.swept.elapsed() >= PERIOD
        {
            self.swept = Instant::now();
            placed.loaded.programs.memory.sweep()?;
            self.added.sweep(&placed.table())?;
        }
        Ok(())
    }

    /// Adds an exact rule.
    pub(crate) fn add(&mut self, rule: &ExactRule) -> Result<(), ExactError> {
        /// What a full table is worth looking for room in again.
        const PAUSE: Duration = Duration::from_millis(100);
        let Some(placed) = &self.placed else { return Err(ExactError::NoTable) };
        let table = placed.table();
        match self.added.add(&table, rule) {
            Err(ExactError::Full(_)) if self.swept.elapsed() >= PAUSE => {
                self.swept = Instant::now();
                placed.loaded.programs.memory.sweep()?;
                self.added.add(&table, rule)
            }
            done => done,
        }
    }

    /// Removes an exact rule; returns whether there was one.
    pub(crate) fn remove(&mut self, flow: &ExactFlow) -> Result<bool, ExactError> {
        let placed = self.placed.as_ref().ok_or(ExactError::NoTable)?;
        self.added.remove(&placed.table(), flow)
    }

    /// Removes all exact rules; returns how many there were.
    pub(crate) fn flush(&mut self) -> Result<usize, ExactError> {
        match &self.placed {
            Some(placed) => self.added.flush(&placed.table()),
            None => Ok(0),
        }
    }

    /// Returns all exact rules in force.
    pub(crate) fn exact(&mut self) -> Result<Vec<ExactEntry>, ExactError> {
        let Some(placed) = &self.placed else { return Ok(Vec::new()) };
        self.ahead.follow();
        self.added.list(&placed.table(), &self.rules, |counted| self.ahead.counts(counted)[0])
    }

    /// Sees to it that rules which were on trial stay when the process ends, or do not.
    pub(crate) fn accept(&mut self) -> Result<(), Error> {
        self.placed.as_mut().map_or(Ok(()), |placed| placed.site.accept())
    }

    /// Takes the rules off, unless they stay. `gone`: the interface is.
    pub(crate) fn stop(&mut self, gone: bool) -> Result<(), Error> {
        if let Some(in_process) = self.in_process.take() {
            self.ended = Some(Instant::now());
            let (counts, unkept) = in_process.counted();
            self.keep(&counts, unkept);
            return Ok(());
        }
        let Some(Placed { mut site, mut loaded, .. }) = self.placed.take() else { return Ok(()) };
        self.stay = site.stay() && !gone;
        let detached = site.end(gone);
        let waited = self.grace.wait();
        self.ended = Some(Instant::now());
        let kept = counted(&loaded).map(|(counts, unkept)| self.keep(&counts, unkept));
        let logged = self.keep_logged(&mut loaded);
        Ok(detached.and(waited).and(kept).and(logged)?)
    }

    /// Returns what is logged, in order: all of earlier rules, and about `most` packets of those in force.
    pub(crate) fn logged(&mut self, most: usize) -> Result<Vec<LoggedPacket>, CallError> {
        let mut packets = take(&mut self.logged_before);
        if let Some(placed) = &mut self.placed {
            self.ahead.follow();
            packets.extend(logged(&mut placed.loaded, most, &self.ahead)?);
        }
        Ok(packets)
    }

    /// Returns whether rules that are no longer in force have logged something.
    pub(crate) fn has_logged(&self) -> bool {
        !self.logged_before.is_empty()
    }

    /// Returns what is readable when rules in force have logged something.
    pub(crate) fn log_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.placed.as_ref()?.loaded.programs.log.as_ref()?.as_fd())
    }

    /// Keeps what rules have logged that were in force.
    fn keep_logged(&mut self, loaded: &mut Loaded) -> Result<(), CallError> {
        self.ahead.follow();
        self.logged_before.extend(logged(loaded, usize::MAX, &self.ahead)?);
        Ok(())
    }

    /// Keeps the final numbers of the rules that were in force.
    fn keep(&mut self, counts: &[Counted], unkept: engine::Unkept) {
        self.unkept_before = with(self.unkept_before, unkept);
        self.log_lost_before += unkept.logged;
        for (rule, count) in self.rules.iter().zip(counts) {
            let before = self.before.entry(key(rule)).or_default();
            *before = sum(before, count);
        }
        if let Some(none) = counts.get(self.rules.len()) {
            self.before_none = sum(&self.before_none, none);
        }
    }
}

impl InForce {
    /// Sums up what rules have counted that are gone.
    fn retire(&mut self) {
        let there: HashSet<Key> = self.rules.iter().map(key).collect();
        let gone = self.before.extract_if(|key, _| !there.contains(key));
        for ((_, action), count) in gone {
            let replaced = &mut self.replaced;
            replaced.fates.add(&action, self.ahead.counts(&count), over(&count));
            replaced.captured += count.captured;
            if action.learn.as_ref().is_some_and(|learn| learn.capture) {
                replaced.captured += count.learned_packets;
            }
            // The packets of a rule that continued are those of others.
            let own = match action.continues {
                true => Counted { packets: 0, bytes: 0, ..count },
                false => count,
            };
            replaced.counted = sum(&replaced.counted, &own);
        }
    }
}

/// What rules had counted that are gone.
#[derive(Debug, Default)]
struct Replaced {
    counted: Counted,
    fates: FateCounts,
    captured: u64,
}

impl Placed {
    fn table(&self) -> Table<'_> {
        self.loader.table(&self.loaded)
    }
}

/// The name of a rule, and what it does: with another action it is another rule, though its name is the same.
type Key = (String, Action);

fn key(rule: &RuleInfo) -> Key {
    (rule.name.clone(), rule.action.clone())
}

/// Returns what loaded rules have counted, and what they could not remember.
fn counted(loaded: &Loaded) -> Result<(Vec<Counted>, engine::Unkept), CallError> {
    Ok((loaded.programs.counters.counts()?, loaded.programs.memory.unkept()?))
}

/// Returns what loaded rules have logged.
fn logged(loaded: &mut Loaded, most: usize, ahead: &Ahead) -> Result<Vec<LoggedPacket>, CallError> {
    let Some(log) = &mut loaded.log else { return Ok(Vec::new()) };
    let records = log.take(most)?.into_iter();
    Ok(records.map(|record| LoggedPacket::new(record, &loaded.rules, ahead.0)).collect())
}

fn with(one: Unkept, other: engine::Unkept) -> Unkept {
    Unkept {
        learned: one.learned + other.learned,
        no_flow: one.no_flow + other.no_flow,
        buckets: one.buckets + other.buckets,
        flows: one.flows + other.flows,
    }
}

fn sum(one: &Counted, other: &Counted) -> Counted {
    Counted {
        packets: one.packets + other.packets,
        bytes: one.bytes + other.bytes,
        learned_packets: one.learned_packets + other.learned_packets,
        learned_bytes: one.learned_bytes + other.learned_bytes,
        captured: one.captured + other.captured,
        over_packets: one.over_packets + other.over_packets,
        over_bytes: one.over_bytes + other.over_bytes,
        last: one.last.max(other.last),
    }
}

/// Returns the packets beyond a rule's limit. When the last one of them came is not known.
fn over(counted: &Counted) -> Count {
    Count { packets: counted.over_packets, bytes: counted.over_bytes, last: None }
}
