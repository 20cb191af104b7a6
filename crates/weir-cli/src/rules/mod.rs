//! `weir rules`: looks at rule sets. `weir read` applies them to packets.

mod check;
mod file;
mod names;
pub(crate) mod summary;

use clap::{Args, Subcommand};

use self::check::CheckRulesArgs;
pub(crate) use self::file::RuleFile;
pub(crate) use self::names::{RuleNames, SetFile};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Example:
  weir rules check edge.rules
        Look for mistakes, and for rules that never match.

docs/rules.md describes the language. Rules are applied by weir read --rules; not yet by the kernel.";

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
