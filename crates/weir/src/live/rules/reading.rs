//! What rules have counted.

use std::time::Duration;

use super::action::{Action, Fate};
use super::given::RuleInfo;

/// What was counted since the start. Each packet is counted once: for the rule that decided about it, for exact rules that were added, or for none; and
/// for rules that continue, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Time since the start, until the end.
    pub elapsed: Duration,
    /// The packets of each rule in force, in order, in both directions together.
    pub rules: Vec<RuleCount>,
    /// The packets of rules that were replaced by others with other names or actions.
    pub replaced: Count,
    /// All packets that a capture was to take, those of replaced rules included; it may have lost some.
    pub captured: u64,
    /// The packets that [added](crate::Guard::add_exact) exact rules have decided about.
    pub exact: Count,
    /// The packets that met no rule, and passed.
    pub no_rule: Count,
    /// All packets, by what has happened to them.
    pub fates: FateCounts,
    /// Packets for which something could not be remembered.
    pub unkept: Unkept,
    /// Packets that are missing in the [log](crate::guard::GuardBuilder::log): there was no room.
    pub log_lost: u64,
}

/// All packets since the start by what has happened to them, those of rules that were replaced included; in a
/// [dry run](crate::guard::GuardBuilder::dry_run) by what would have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FateCounts {
    /// They have gone on.
    pub passed: Count,
    /// They have gone no further.
    pub blocked: Count,
    /// They have gone back.
    pub bounced: Count,
    /// They have left through another interface.
    pub reflected: Count,
    /// Those that [added](crate::Guard::add_exact) exact rules have decided about.
    pub exact: Count,
}

impl FateCounts {
    /// Adds the packets of a rule, of those that it has learned, and of its own those beyond its limit.
    pub(crate) fn add(&mut self, action: &Action, [own, learned]: [Count; 2], over: Count) {
        if let Some(learn) = &action.learn {
            self.of(&learn.fate, learned);
        }
        match action.over {
            _ if action.continues => {}
            Some(_) => {
                self.of(&action.fate, over);
                self.of(&Fate::Pass, own.without(over));
            }
            None => self.of(&action.fate, own),
        }
    }

    fn of(&mut self, fate: &Fate, count: Count) {
        let sum = match fate {
            Fate::Pass => &mut self.passed,
            Fate::Block => &mut self.blocked,
            Fate::Bounce => &mut self.bounced,
            Fate::Reflect(_) => &mut self.reflected,
        };
        *sum = sum.and(count);
    }

    /// Adds packets that met no rule, and those of exact rules that were added.
    pub(crate) fn add_none(&mut self, [none, exact]: [Count; 2]) {
        self.of(&Fate::Pass, none);
        self.exact = self.exact.and(exact);
    }
}

/// Packets for which something could not be remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Unkept {
    /// No exact rule was made of them, or only for one direction: there was no room.
    pub learned: u64,
    /// No exact rule was made of them: they belong to no flow, since they are not IP.
    pub no_flow: u64,
    /// They were taken to be within a limit: there was no room for their address or flow.
    pub buckets: u64,
    /// They were captured without being counted among the first of their flow: there was no room for it.
    pub flows: u64,
}

impl Reading {
    /// Returns all packets.
    pub fn total(&self) -> Count {
        // Another rule has those of one that continues, too.
        let own = |rule: &RuleCount| if rule.action.continues { Count::default() } else { rule.count };
        let rules = self.rules.iter().flat_map(|rule| [own(rule), rule.learned]);
        rules.chain([self.replaced, self.exact, self.no_rule]).fold(Count::default(), Count::and)
    }
}

/// What a rule has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCount {
    /// Its name.
    pub name: String,
    /// Its filter, as shown to people.
    pub filter: String,
    /// What it does with its packets; in a [dry run](crate::guard::GuardBuilder::dry_run), what it would do.
    pub action: Action,
    /// The packets that it has decided about.
    pub count: Count,
    /// The packets that exact rules have decided about, which it has learned.
    pub learned: Count,
    /// Those of `count` that a capture was to take; it may have lost some.
    pub captured: u64,
    /// Those of `count` beyond the rule's [limit](Action::over), which have its fate; the others have passed. Nothing without a limit.
    pub over: Count,
}

impl RuleCount {
    /// Returns all that a capture was to take, by the rule and by what it has learned.
    pub(crate) fn all_captured(&self) -> u64 {
        let learns = self.action.learn.as_ref().is_some_and(|learn| learn.capture);
        self.captured + if learns { self.learned.packets } else { 0 }
    }

    pub(crate) fn new(
        RuleInfo { name, filter, action }: RuleInfo,
        [count, learned]: [Count; 2],
        captured: u64,
        over: Count,
    ) -> Self {
        Self { name, filter, action, count, learned, captured, over }
    }
}

/// Packets, their bytes, and the time of the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Count {
    /// Packets. A super-frame built by offloads counts as one.
    pub packets: u64,
    /// Their bytes: whole frames without checksum.
    pub bytes: u64,
    /// When the last one came, to a few milliseconds, in nanoseconds since the Unix epoch.
    pub last: Option<u64>,
}

impl Count {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            last: self.last.max(other.last),
        }
    }

    /// Returns the others of these packets.
    fn without(self, some: Self) -> Self {
        Self { packets: self.packets - some.packets, bytes: self.bytes - some.bytes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::super::action::{Learn, Limit, LimitKey};
    use super::*;

    #[test]
    fn packets_are_summed_by_what_has_happened_to_them() {
        let count = |packets| Count { packets, bytes: 60 * packets, last: None };
        let second = Duration::from_secs(1);
        let block = Action::from(Fate::Block);
        let limited = block.clone().over(Limit::new(1, second, LimitKey::Flow));
        let learns = Action::from(Fate::Bounce).learn(Learn::new(Fate::Reflect("a".to_owned()), second));
        let mut fates = FateCounts::default();
        for (action, own, learned) in
            [(&block, 1, 0), (&block, 2, 0), (&learns, 8, 16), (&Action::continuing(), 32, 0)]
        {
            fates.add(action, [count(own), count(learned)], count(0));
        }
        fates.add(&limited, [count(260), count(0)], count(4));
        fates.add_none([count(64), count(128)]);
        let expected = FateCounts {
            passed: count(64 + 256),
            blocked: count(3 + 4),
            bounced: count(8),
            reflected: count(16),
            exact: count(128),
        };
        assert_eq!(fates, expected);
    }

    #[test]
    fn the_rows_add_up() {
        let count = |packets, last| Count { packets, bytes: 60 * packets, last };
        let rule = |name: &str, count| RuleCount {
            name: name.to_owned(),
            filter: String::new(),
            action: Fate::Block.into(),
            count,
            learned: Count { packets: 16, bytes: 16 * 60, last: None },
            captured: 0,
            over: Count::default(),
        };
        let continues = RuleCount {
            action: Action::continuing(),
            learned: Count::default(),
            ..rule("c", count(1000, None))
        };
        let reading = Reading {
            rules: vec![rule("a", count(1, Some(5))), rule("b", count(2, None)), continues],
            replaced: count(4, Some(3)),
            exact: count(32, Some(7)),
            no_rule: count(8, Some(9)),
            ..Reading::default()
        };
        assert_eq!(reading.total(), count(15 + 2 * 16 + 32, Some(9)));
    }
}
