#![doc = include_str!("../README.md")]
//!
//! ```text
//! text -> syntax (lines) -> action (words) -> RuleSet -> compile -> Compiled, a filter per rule
//! ```
//!
//! - `syntax`: a file as lines: name, expression, actions.
//! - `action`: what a rule does; `grammar`, `words` and `quantity`: how that is written.
//! - `rule_set`: all rules, and their filters.

#![forbid(unsafe_code)]

mod action;
mod grammar;
mod quantity;
mod rule_set;
mod syntax;
mod words;

pub use weir_filter::Error;

pub use self::action::{Actions, CaptureAction, Fate, Key, Learn, Log, Over, Shortcut};
pub use self::quantity::Rate;
pub use self::rule_set::{Compiled, Rule, RuleSet, render};
