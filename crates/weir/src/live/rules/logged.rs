//! Packets that the guard logs, for whoever writes them down.

use weir_bpf::rules::{Fate as Decided, LogRecord};

use super::action::Fate;
use super::given::RuleInfo;
use crate::Direction;

/// The most bytes that are kept of a packet: a jumbo frame has room.
pub(crate) const SNAP_LEN: u32 = 9216;

/// A packet that a rule has logged, or that did not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedPacket {
    /// The name of the rule that logs it, or has decided about it; empty if an exact rule has that was added.
    pub rule: String,
    /// Whether an exact rule has decided about it, which `rule` has learned.
    pub by_learned: bool,
    /// What happens to it by this rule; in a [dry run](crate::guard::GuardBuilder::dry_run), what would happen. By a rule that continues it is
    /// [`Pass`](Fate::Pass), whatever later ones decide.
    pub fate: Fate,
    /// Whether it was received or is sent.
    pub direction: Direction,
    /// When it came, in nanoseconds since the Unix epoch.
    pub timestamp: u64,
    /// Its length on the wire in bytes.
    pub original_len: u32,
    /// Its bytes from the Ethernet header on, at most the first 9216.
    pub data: Vec<u8>,
}

impl LoggedPacket {
    /// Makes one of a record of these rules, with a clock that is so many nanoseconds ahead of the record's.
    pub(crate) fn new(record: LogRecord, rules: &[RuleInfo], ahead: u64) -> Self {
        let rule = record.rule.and_then(|number| rules.get(number));
        let learned = rule.and_then(|rule| rule.action.learn.as_ref()).filter(|_| record.by_learned);
        let action = learned.map(|learn| &learn.fate).or_else(|| rule.map(|rule| &rule.action.fate));
        let fate = match (record.fate, action) {
            (Decided::Reflect(_), Some(fate)) => fate.clone(),
            (Decided::Block, _) => Fate::Block,
            (Decided::Bounce, _) => Fate::Bounce,
            _ => Fate::Pass,
        };
        let mut data = record.bytes;
        // A tag that was beside it makes it longer.
        data.truncate(SNAP_LEN as usize);
        Self {
            rule: rule.map(|rule| rule.name.clone()).unwrap_or_default(),
            by_learned: record.by_learned,
            fate,
            direction: if record.sent { Direction::Out } else { Direction::In },
            timestamp: record.time.saturating_add(ahead),
            original_len: record.length,
            data,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::action::{Action, Learn};
    use super::*;

    #[test]
    fn a_record_has_the_fate_and_the_name_of_its_rule() {
        let second = Duration::from_secs(1);
        let to = |name: &str| Fate::Reflect(name.to_owned());
        let action = Action::from(to("a")).learn(Learn::new(to("b"), second));
        let rules = [RuleInfo { name: "r".to_owned(), filter: String::new(), action }];
        let record = |fate, by_learned| LogRecord {
            rule: Some(0),
            by_learned,
            fate,
            sent: true,
            time: 5,
            length: 10_000,
            bytes: vec![7; SNAP_LEN as usize + 4],
        };
        let logged = |fate, by_learned| LoggedPacket::new(record(fate, by_learned), &rules, 100);
        let table = [
            (Decided::Reflect(3), false, to("a")),
            (Decided::Reflect(3), true, to("b")),
            (Decided::Pass, false, Fate::Pass),
            (Decided::Block, false, Fate::Block),
            (Decided::Bounce, true, Fate::Bounce),
        ];
        for (decided, by_learned, fate) in table {
            let found = logged(decided, by_learned);
            assert_eq!((found.fate, found.by_learned), (fate, by_learned));
            assert_eq!((found.rule.as_str(), found.direction, found.timestamp), ("r", Direction::Out, 105));
            assert_eq!((found.original_len, found.data.len()), (10_000, SNAP_LEN as usize));
        }
    }
}
