//! Rules for live packets, which the kernel applies: translated for [`weir::Guard`] and [`weir::Capture`], and asked about single packets before they
//! are in force.

use std::path::Path;

use weir::Filter;
use weir::guard::{Action, CaptureAction as Taken, Fate, Learn, Limit, LimitKey, LogAction, Rules};
use weir_filter::interpret::{Metadata, Packet};
use weir_filter::{Beside, Dialect, Options};
use weir_rules::{Actions, CaptureAction, Evaluator, Key, Limits, Over, Programs, RuleSet};

use super::file::RuleFile;
use super::names::SetFile;
use crate::failure::Failure;
use crate::style;

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;

/// Rules that the kernel can apply.
#[derive(Debug)]
pub(crate) struct LiveRules {
    file: RuleFile,
    set: RuleSet,
    rules: Rules,
    programs: Programs,
    /// The rules that no received packet matches.
    sent: Vec<usize>,
}

/// A frame, and whether the host sends it.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: bool,
}

impl LiveRules {
    /// Reads a file with rules and all that they name.
    pub(crate) fn read(path: &Path, sets: &[SetFile]) -> Result<Self, Failure> {
        // As a wrong filter does, wrong rules make the command line wrong.
        let usage = |failure: Failure| failure.status(2);
        let file = RuleFile::read(path, sets).map_err(usage)?;
        let options = Options {
            dialect: Dialect::Weir,
            link_type: ETHERNET,
            snap_len: weir::DEFAULT_SNAP_LEN,
            metadata: Beside::All,
            swapped: false,
            others: &[],
            // The guard puts in that of its interface.
            netmask: Some(u32::MAX << 8),
            names: &file.names,
        };
        let (set, compiled) = RuleSet::parse_and(&file.text, |set| set.compile_behind_fields(&options))
            .map_err(|mistakes| usage(file.failure(&mistakes)))?;
        let rules = set.rules.iter().fold(Rules::new(), |rules, rule| {
            let filter = Filter::new(&rule.expression).names(file.names.clone());
            rules.rule(&rule.name, filter, action(&rule.actions))
        });
        file.warn_of_sets();
        let sent =
            (0..).zip(&compiled).filter(|(_, rule)| rule.is_for_sent()).map(|(rule, _)| rule).collect();
        Ok(Self { set, rules, programs: Programs::behind_fields(compiled), sent, file })
    }

    /// Warns of rules that match sent packets only, on an interface with this name on which only received packets meet them.
    pub(crate) fn warn_of_sent(&self, interface: &str, why: &str) {
        let Some(first) = self.sent.first().map(|rule| &self.set.rules[*rule]) else { return };
        let place = format!("`{}` ({}:{})", first.name, self.file.name, first.line);
        let which = match self.sent.len() {
            1 => format!("{place} is for sent ones, and never matches"),
            more => format!("{place} and {} more are for sent ones, and never match", more - 1),
        };
        let warning = style::stderr().yellow("warning");
        style::say(format_args!("{warning}: {interface}: {why}; {which}"));
    }

    /// Returns them for the library.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.set.rules.len()
    }

    /// Returns whether a rule wants packets to be captured.
    pub(crate) fn captures(&self) -> bool {
        let captures = |learn: &weir_rules::Learn| learn.shortcut.decisions().0;
        self.set.rules.iter().any(|rule| {
            rule.actions.capture != CaptureAction::Ignore || rule.actions.learn.as_ref().is_some_and(captures)
        })
    }

    /// Returns whether a rule logs packets.
    pub(crate) fn logs(&self) -> bool {
        self.set.rules.iter().any(|rule| rule.actions.log.is_some())
    }

    /// Returns the rule that does not let one of these frames pass, or learns not to, if there is one, with its place: `` `bad`
    /// (a.rules:3)``. Limits count as not exceeded.
    pub(crate) fn stopping(&self, frames: &[Frame]) -> Option<String> {
        let few = Limits { flows: 1, learned: 100, buckets: 100, ..Limits::default() };
        let mut evaluator = Evaluator::new(self.set.clone(), few);
        frames.iter().find_map(|Frame { bytes, sent }| {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let packet = Packet { data: bytes, length, meta: Metadata::of_direction(Some(*sent)) };
            let decision = evaluator.decide(&self.programs, &packet, 0);
            let rule = &self.set.rules[decision.rule.filter(|_| decision.fate != weir_rules::Fate::Pass)?];
            Some(format!("`{}` ({}:{})", rule.name, self.file.name, rule.line))
        })
    }
}

fn action(actions: &Actions) -> Action {
    let mut action = match actions.continues {
        true => Action::continuing(),
        false => Action::from(fate(&actions.fate)),
    };
    action.capture = match actions.capture {
        CaptureAction::Ignore => Taken::Ignore,
        CaptureAction::Capture => Taken::Capture,
        CaptureAction::Sample(every) => Taken::Sample(every),
        CaptureAction::First(most) => Taken::First(most),
    };
    action.over = actions.fate_over.map(limit);
    action.log = actions.log.map(|log| weir::with!(LogAction::new(), over = log.over.map(limit)));
    action.learn = actions.learn.as_ref().map(|learn| {
        let (capture, then) = learn.shortcut.decisions();
        weir::with!(
            Learn::new(fate(&then), learn.lasting),
            capture = capture,
            idle = learn.idle,
            both = learn.both,
            over = learn.over.map(limit)
        )
    });
    action
}

fn limit(over: Over) -> Limit {
    let by = match over.key {
        Key::Source => LimitKey::Source,
        Key::Destination => LimitKey::Destination,
        Key::Flow => LimitKey::Flow,
    };
    Limit::new(over.rate.packets, over.rate.period, by)
}

fn fate(fate: &weir_rules::Fate) -> Fate {
    match fate {
        weir_rules::Fate::Pass => Fate::Pass,
        weir_rules::Fate::Block => Fate::Block,
        weir_rules::Fate::Bounce => Fate::Bounce,
        weir_rules::Fate::Reflect(interface) => Fate::Reflect(interface.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rules_say_whether_they_capture_and_log() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.rules");
        let read = |text: &str| {
            fs::write(&path, text).expect("a file");
            LiveRules::read(&path, &[])
        };
        let over = read("a: ip -> continue, log if over 5/min by dst").expect("possible");
        let log = over.rules().described()[0].action.log.expect("it logs");
        assert_eq!(log.over.expect("a limit").to_string(), "5/min by dst");
        assert!(over.logs() && !over.captures());
        let rules = read("a: ip -> capture, block\nb: -> reflect eth1").expect("possible");
        assert!(rules.captures() && rules.count() == 2);
        assert!(!read("-> block").expect("possible").captures());
        let sent = read(
            "outbound and udp -> block\ninbound or tcp -> block\nnot inbound -> continue, log\ninbound and outbound -> log",
        );
        assert_eq!(sent.expect("possible").sent, [0, 2]);
    }
}
