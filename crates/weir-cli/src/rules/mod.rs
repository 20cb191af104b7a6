//! `weir rules`: looks at rule sets. `weir read` applies them to packets of files, `weir guard` to live ones.

mod check;
mod file;
mod frames;
pub(crate) mod lifeline;
mod live;
mod names;
mod shown;
pub(crate) mod summary;
mod table;

use clap::{Args, Subcommand};
use weir::guard::Rules;
use weir_service::control::Order;

use self::check::CheckRulesArgs;
pub(crate) use self::file::RuleFile;
pub(crate) use self::live::LiveRules;
pub(crate) use self::names::{RuleNames, SetFile};
pub(crate) use self::shown::Shown;
pub(crate) use self::table::{done, table};
use crate::failure::Failure;
use crate::style;

const EXAMPLES: &str = "\
Example:
  weir rules check edge.rules
        Look for mistakes, and for rules that never match.

docs/rules.md describes the language. weir guard applies rules in the kernel, weir read --rules to files.";

/// Rule sets.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a rule set, and show what each rule does.
    Check(CheckRulesArgs),
}

/// What there is to say of rules for a capture that capture nothing.
pub(crate) const CAPTURE_NOTHING: &str = "no rule captures a packet";

/// What there is to say of rules with `log` elsewhere than for a guard.
pub(crate) const LOG_NOTHING: &str = "`log` is for weir guard, and writes nothing here";

/// What there is to say of rules for a guard that capture.
pub(crate) const GUARD_CAPTURES: &str =
    "weir guard captures nothing: `capture`, `sample` and `first` have no effect";

/// Says something about rules.
pub(crate) fn note(text: &str) {
    style::say(format_args!("{}: {text}", style::stderr().yellow("note")));
}

/// Returns the rules that a client orders a capture or forwarding (`what`) to put in force.
///
/// # Errors
///
/// Why it does not, for the client.
pub(crate) fn ordered(order: Order, what: &str, is_confined: bool) -> Result<Rules, String> {
    match order {
        Order::Rules(_) if is_confined => {
            Err(format!("cannot load other rules: {what} is confined; start it with --no-confine"))
        }
        Order::Rules(rules) => Ok(rules.into()),
        Order::Confirm | Order::Exact(_) => {
            Err(format!("cannot do that: only a guard can, not {what}; try weir ctl rules show or replace"))
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &RulesArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Check(args) => check::run(args),
    }
}
