//! `weir completions SHELL`: prints a shell completion script, generated from the definitions of the command line.

use std::io::{self, Write};

use clap::{Args, Command, ValueEnum};
use clap_complete::aot::{Generator, Shell};

use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions zsh > /usr/local/share/zsh/site-functions/_weir
  weir completions fish > ~/.config/fish/completions/weir.fish

Completions take effect in new shells.
Exit status: 0 success, 1 error, 2 usage error.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell: bash, zsh or fish.
    #[arg(value_enum, hide_possible_values = true)]
    shell: ShellArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// Runs the command. `weir` is the definition of the command line.
pub(crate) fn run(args: &CompletionsArgs, mut weir: Command) -> Result<(), Failure> {
    let shell = match args.shell {
        ShellArg::Bash => Shell::Bash,
        ShellArg::Zsh => Shell::Zsh,
        ShellArg::Fish => Shell::Fish,
    };
    weir.set_bin_name("weir");
    weir.build();
    let mut script = Vec::new();
    shell
        .try_generate(&weir, &mut script)
        .and_then(|()| io::stdout().write_all(&script))
        .map_err(|error| Failure::new(format_args!("cannot write to standard output: {error}")))
}
