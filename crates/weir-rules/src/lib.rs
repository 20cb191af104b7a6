#![doc = include_str!("../README.md")]
//!
//! ```text
//! text -> syntax (lines) -> action (words) -> RuleSet -> compile -> Compiled, a filter per rule -> Programs
//!                                                                      packet, time -> Evaluator -> Decision
//! ```
//!
//! - `syntax`: a file as lines: name, expression, actions.
//! - `action`: what a rule does; `grammar`, `words` and `quantity`: how that is written.
//! - `rule_set`: all rules, and their filters.
//! - `evaluate`: the reference semantics, a list searched in order. What it remembers of earlier packets is in `state/`.
//! - `exact`: rules for one flow, as people write them to a running guard.
//! - `findings`: rules that never match, and actions without effect.
//!
//! ```
//! use weir_rules::{Evaluator, Fate, Limits, RuleSet};
//! # use weir_filter::interpret::Packet;
//! # use weir_filter::{Beside, Dialect, Options, names::NoNames};
//! # let options = Options { dialect: Dialect::Weir, link_type: 101, snap_len: 262_144, metadata: Beside::Nothing,
//! #     swapped: false, others: &[], netmask: None, names: &NoNames };
//! let rules = RuleSet::parse("bad: src host 10.0.0.9 -> capture, block").unwrap();
//! let programs = rules.compile(&options).unwrap().programs();
//! let mut evaluator = Evaluator::new(rules, Limits::default());
//! let packet = b"\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x09\x0a\0\0\x02\x04\0\x08\0\0\x08\0\0";
//! let packet = Packet { data: packet, length: 28, ..Packet::default() };
//! let decision = evaluator.decide(&programs, &packet, 0);
//! assert_eq!((decision.rule, decision.capture, decision.fate), (Some(0), true, Fate::Block));
//! ```

#![forbid(unsafe_code)]

mod action;
mod evaluate;
mod exact;
mod findings;
mod grammar;
mod programs;
mod quantity;
mod rule_set;
mod state;
mod syntax;
mod words;

pub use weir_filter::Error;

pub use self::action::{Actions, CaptureAction, Fate, Key, Learn, Log, Over, Shortcut};
pub use self::evaluate::{Count, Decision, Evaluator, Limits, RuleCount, Unkept};
pub use self::exact::{ExactFlow, ExactPackets, ExactRule};
pub use self::findings::{Finding, findings};
pub use self::programs::{Matches, Programs};
pub use self::quantity::Rate;
pub use self::rule_set::{Compiled, Rule, RuleSet, position, render};
