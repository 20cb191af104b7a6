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

use self::check::CheckRulesArgs;
pub(crate) use self::file::RuleFile;
pub(crate) use self::live::LiveRules;
pub(crate) use self::names::{RuleNames, SetFile};
pub(crate) use self::shown::Shown;
pub(crate) use self::table::{done, table};
use crate::failure::Failure;

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

/// Runs the command.
pub(crate) fn run(args: &RulesArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Check(args) => check::run(args),
    }
}
