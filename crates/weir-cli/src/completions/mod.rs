//! `weir completions SHELL`: prints a shell completion script, generated from the definitions of the command line.
//!
//! The generator knows words, files and nothing else. Interfaces, namespaces and running captures are added here.

use clap::{Args, Command, ValueEnum};
use clap_complete::aot::{Generator, Shell};

use crate::failure::Failure;
use crate::out;

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
    shell.try_generate(&weir, &mut script).map_err(Failure::new)?;
    out::print(with_names(args.shell, &String::from_utf8_lossy(&script)).as_bytes())
}

/// Adds the completion of names to a generated `script`.
fn with_names(shell: ShellArg, script: &str) -> String {
    match shell {
        // A function that asks the generated one for everything else.
        ShellArg::Bash => format!("{script}{}", include_str!("names.bash")),
        ShellArg::Zsh => {
            let (first, rest) = script.split_once("\n\n").unwrap_or((script, ""));
            let named = rest.lines().map(|line| {
                // Of `weir devices` and `weir forward`.
                let is_interface =
                    ["'*::names -- ", "'::from -- ", "'::to -- "].iter().any(|start| line.starts_with(start));
                let line = if is_interface {
                    line.replace(":_default'", ":_weir_interfaces'")
                } else {
                    line.to_owned()
                };
                let line = line
                    .replace(":IF:_default'", ":IF:_weir_interfaces'")
                    .replace(":NS:_default'", ":NS:_weir_namespaces'")
                    .replace(":PID|PATH:_default'", ":PID|PATH:_weir_captures'");
                line + "\n"
            });
            let named =
                named.collect::<String>().replacen("_weir() {\n", "_weir() {\n    _weir_options_alone\n", 1);
            format!("{first}\n\n{}{named}", include_str!("names.zsh"))
        }
        ShellArg::Fish => {
            let functions = [
                ("-l interface ", "__weir_interfaces"),
                ("-l second ", "__weir_interfaces"),
                ("-l netns ", "__weir_namespaces"),
                ("-l target ", "__weir_captures"),
            ];
            let named = script.lines().map(|line| {
                // Or the rest is a comment.
                let line = line.replace(" -s # ", " -s '#' ");
                let function = functions.iter().find(|(option, _)| line.contains(option));
                match (function, line.strip_suffix(" -r")) {
                    (Some((_, function)), Some(start)) => format!("{start} -x -a \"({function})\"\n"),
                    _ => format!("{line}\n"),
                }
            });
            format!("{}{}", include_str!("names.fish"), named.collect::<String>())
        }
    }
}
