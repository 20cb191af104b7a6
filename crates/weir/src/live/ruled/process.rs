//! Rules in this process, for sources whose packets are copies: they say what is captured, and every packet goes on.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_bpf::rules as engine;
use weir_filter::interpret::Packet;
use weir_rules::{Actions, Evaluator, Key, Limits, Matches, Over, Programs, Rate, RuleSet, Shortcut};

use super::ahead::Ahead;
use crate::filter::{Matcher, Receiver};
use crate::live::rules::{Action, Fate, Limit, LimitKey, Rule, Rules};
use crate::{Error, Setting};

/// Rules, which the thread of a source asks, and others read.
#[derive(Clone, Debug)]
pub(crate) struct InProcess {
    name: String,
    receiver: Receiver,
    decider: Arc<Mutex<Decider>>,
}

/// Decides about packets.
pub(crate) struct Decider {
    evaluator: Evaluator,
    programs: Programs,
    /// When the last packet came that met no rule, in nanoseconds since the epoch; 0: there was none.
    last_of_none: u64,
}

/// What rules have counted, as the kernel's do.
pub(super) type Counted = (Vec<engine::RuleCount>, engine::Unkept);

impl InProcess {
    /// Compiles rules for the packets of the interface `name`.
    pub(crate) fn new(name: &str, receiver: Receiver, rules: &Rules) -> Result<Self, Error> {
        let decider = Arc::new(Mutex::new(Decider::new(name, receiver, rules)?));
        Ok(Self { name: name.to_owned(), receiver, decider })
    }

    /// Locks them: no others take their place meanwhile.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Decider> {
        self.decider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces all rules, and returns what the old ones have counted.
    pub(super) fn replace(&self, rules: &Rules) -> Result<Counted, Error> {
        let new = Decider::new(&self.name, self.receiver, rules)?;
        let old = std::mem::replace(&mut *self.lock(), new);
        Ok(old.counted())
    }

    pub(super) fn counted(&self) -> Counted {
        self.lock().counted()
    }
}

impl Decider {
    fn new(name: &str, receiver: Receiver, rules: &Rules) -> Result<Self, Error> {
        rules.check()?;
        rules.check_copies()?;
        let matches = rules.0.iter().map(|rule| {
            let compiled = rule.filter.compile(receiver).map_err(|error| error.on(name))?;
            let matcher = Matcher::new(&compiled);
            Ok::<_, Error>(Box::new(move |packet: &Packet<'_>| matcher.matches(packet)) as Matches)
        });
        let programs = Programs::new(receiver.link_type, matches.collect::<Result<_, _>>()?);
        let set = RuleSet { rules: rules.0.iter().map(as_written).collect() };
        Ok(Self { evaluator: Evaluator::new(set, Limits::default()), programs, last_of_none: 0 })
    }

    /// Returns whether a packet that came at `time`, in nanoseconds since the epoch, is captured.
    pub(crate) fn wants(&mut self, packet: &Packet<'_>, time: u64) -> bool {
        let decision = self.evaluator.decide(&self.programs, packet, time);
        if decision.rule.is_none() {
            self.last_of_none = time;
        }
        decision.capture
    }

    fn counted(&self) -> Counted {
        let Ahead(ahead) = Ahead::now();
        let since_boot = |time: u64| if time > 0 { time.saturating_sub(ahead).max(1) } else { 0 };
        let count = |count: &weir_rules::RuleCount| engine::RuleCount {
            packets: count.matched.packets,
            bytes: count.matched.bytes,
            learned_packets: count.by_learned.packets,
            learned_bytes: count.by_learned.bytes,
            captured: count.captured.packets,
            // Every packet passes.
            over_packets: 0,
            over_bytes: 0,
            last: since_boot(count.last.unwrap_or(0)),
        };
        let unmatched = self.evaluator.unmatched();
        let none = engine::RuleCount {
            packets: unmatched.packets,
            bytes: unmatched.bytes,
            last: since_boot(self.last_of_none),
            ..Default::default()
        };
        let weir_rules::Unkept { flows, learned, no_flow, buckets } = self.evaluator.unkept();
        let unkept = engine::Unkept { flows, learned, no_flow, buckets, logged: 0 };
        (self.evaluator.counts().iter().map(count).chain([none]).collect(), unkept)
    }
}

impl Rules {
    /// Fails if packets would not go on, of which there are only copies.
    pub(crate) fn check_copies(&self) -> Result<(), Error> {
        let stops = |rule: &&Rule| rule.action.fates().any(|fate| *fate != Fate::Pass);
        match self.0.iter().find(stops) {
            Some(Rule { name, .. }) => {
                let why = format!(
                    "cannot carry out the rule `{name}` with the af_packet source, which only gets copies of packets: try the tc \
                     source on a named interface, or let the rule's packets pass"
                );
                Err(Error::setting(Setting::Rules, why))
            }
            None => Ok(()),
        }
    }
}

/// Returns a rule as in a file.
fn as_written(Rule { name, filter, action }: &Rule) -> weir_rules::Rule {
    weir_rules::Rule {
        name: name.clone(),
        line: 0,
        expression: filter.label(),
        place: 0..0,
        actions: actions(action),
    }
}

fn actions(action: &Action) -> Actions {
    let learn = action.learn.as_ref().map(|learn| weir_rules::Learn {
        shortcut: if learn.capture { Shortcut::Capture } else { Shortcut::Ignore },
        lasting: learn.lasting,
        idle: learn.idle,
        both: learn.both,
        over: learn.over.map(over),
    });
    Actions { continues: action.continues, capture: action.capture.reference(), learn, ..Actions::default() }
}

fn over(limit: Limit) -> Over {
    let key = match limit.by {
        LimitKey::Source => Key::Source,
        LimitKey::Destination => Key::Destination,
        LimitKey::Flow => Key::Flow,
    };
    Over { rate: Rate { packets: limit.packets, period: limit.period }, key }
}

impl fmt::Debug for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decider").field("evaluator", &self.evaluator).finish_non_exhaustive()
    }
}
