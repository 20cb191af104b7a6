//! `weir manual DIR`: writes manual pages for weir and each of its commands, from the `--help` text.
//!
//! Options come from their definitions. The text after them is divided into sections by keywords: `Examples:`, `Exit
//! status:`, lines that begin with the name of a signal; the rest are notes.

mod language;

use std::io;
use std::path::PathBuf;

use clap::{ArgAction, Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::failure::Failure;
use crate::install::Directory;

const VERSION: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));

const EXAMPLES: &str = "\
Example:
  weir manual ~/.local/share/man/man1
        Write weir.1, weir-capture.1 and a page for each other command; and
        weir-filter.7, the filter language.

Exit status: 0 success, 1 error, 2 usage error.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManualArgs {
    /// Directory to write them to; it must exist.
    dir: PathBuf,
}

/// Runs the command. `weir` is the definition of the command line.
pub(crate) fn run(args: &ManualArgs, mut weir: Command) -> Result<(), Failure> {
    weir.build();
    let write = || {
        let dir = Directory::open(&args.dir)?;
        write_all(&weir, "weir", None, &dir)?;
        dir.write("weir-filter.7", &*Vec::from(language::page(VERSION)))
    };
    write().map_err(|error| {
        Failure::new(format_args!("cannot write manual pages to {}: {error}", args.dir.display()))
    })
}

/// Writes the page of `command`, called `name`, and those of its subcommands.
fn write_all(command: &Command, name: &str, above: Option<&str>, dir: &Directory) -> io::Result<()> {
    dir.write(&format!("{name}.1"), &*page(command, name, above)?)?;
    for below in shown(command) {
        write_all(below, &format!("{name}-{}", below.get_name()), Some(name), dir)?;
    }
    Ok(())
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

fn page(command: &Command, name: &str, above: Option<&str>) -> io::Result<Vec<u8>> {
    // Includes the options that `-h` hides for brevity.
    let whole = command.clone().mut_args(|option| option.hide_short_help(false));
    let man = Man::new(whole).title(name.to_uppercase()).manual("User Commands").source(VERSION).date("");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend(synopsis(command, name).into_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut roff = Roff::new();
    let mut below = shown(command).peekable();
    if below.peek().is_some() {
        roff.control("SH", ["COMMANDS"]);
        for one in below {
            roff.control("TP", []);
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            roff.text([bold(format!("{name}-{}(1)", one.get_name()))]).text([roman(about)]);
        }
    }
    let help = command
        .get_after_long_help()
        .or_else(|| command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    for (title, lines) in sections(&help) {
        roff.control("SH", [title]);
        let literal = title == "EXAMPLES";
        if literal {
            roff.control("EX", []);
        }
        for line in lines {
            roff.text([roman(line)]);
        }
        if literal {
            roff.control("EE", []);
        }
    }
    let others = above.map(|above| format!("{above}(1), weir-filter(7), tcpdump(1), wireshark(1)"));
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(
        others.unwrap_or_else(|| "weir-filter(7), tcpdump(1), wireshark(1), pcap(3pcap)".to_owned()),
    )]);
    page.extend(roff.render().into_bytes());
    Ok(page)
}

/// The usage as a section: each option in its shorter spelling, with the name of its value, except --help and --version.
fn synopsis(command: &Command, name: &str) -> String {
    let raw = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    // No word is divided, and no option parted from its value.
    let mut out = format!(".SH SYNOPSIS\n.nh\n.ad l\n\\fB{}\\fR", raw(&name.replacen('-', " ", 2)));
    let mut positional = String::new();
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let names = arg.get_value_names().unwrap_or_default();
        let value = names.iter().map(|name| format!("\\fI{}\\fR", raw(name))).collect::<Vec<_>>().join("\\ ");
        let more = match arg.get_action() {
            ArgAction::Append | ArgAction::Count => "...",
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version => continue,
            _ => "",
        };
        let option = match (arg.get_short(), arg.get_long()) {
            (Some(short), _) => format!("\\-{short}"),
            (None, Some(long)) => format!("\\-\\-{}", raw(long)),
            (None, None) => {
                let (open, close) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
                positional += &format!("\n{open}{value}{close}{more}");
                continue;
            }
        };
        let takes_value = arg.get_action().takes_values();
        let may_lack = arg.get_num_args().is_some_and(|number| number.min_values() == 0);
        let value = match (takes_value, may_lack) {
            (false, _) => String::new(),
            (true, false) => format!("\\ {value}"),
            (true, true) => format!("[={value}]"),
        };
        let (open, close) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
        out += &format!("\n{open}\\fB{option}\\fR{value}{close}{more}");
    }
    out += &positional;
    if shown(command).next().is_some() {
        out += "\n\\fICOMMAND\\fR";
    }
    out + "\n.ad b\n.hy\n"
}

/// Returns the sections of the text after the options, each with its lines; none is empty.
fn sections(help: &str) -> Vec<(&'static str, Vec<&str>)> {
    const STATUS: &str = "0 success, 1 error, 2 usage error.";
    let (mut examples, mut notes, mut signals, mut status) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for paragraph in help.split("\n\n") {
        let mut within = None;
        for line in paragraph.lines() {
            if line == "Examples:" || line == "Example:" {
                within = Some(());
            } else if within.is_some() {
                examples.push(line);
            } else if let Some(text) = line.strip_prefix("Exit status: ") {
                status.push(text);
            } else if line.starts_with("SIG") {
                signals.push(line);
            } else {
                notes.push(line);
            }
        }
    }
    if status.is_empty() {
        status.push(STATUS);
    }
    let all = [("NOTES", notes), ("SIGNALS", signals), ("EXIT STATUS", status), ("EXAMPLES", examples)];
    all.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_command_has_a_page_with_its_sections() {
        let directory = tempfile::tempdir().expect("a directory");
        run(&ManualArgs { dir: directory.path().to_owned() }, Cli::command()).expect("pages");
        let page = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("a page");
        let capture = page("weir-capture.1");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SIGNALS", "EXIT STATUS", "EXAMPLES"] {
            assert!(
                capture.contains(&format!(".SH \"{section}\""))
                    || capture.contains(&format!(".SH {section}")),
                "{section}"
            );
        }
        for option in ["\\-\\-snapshot\\-length", "\\-\\-metrics", "\\-\\-no\\-confine"] {
            assert!(capture.contains(option), "{option}");
        }
        for usage in
            [r"[\fB\-i\fR\ \fIIF\fR]...", r"[\fB\-\-metrics\fR\ \fIADDR\fR]", r"[\fIEXPRESSION\fR]..."]
        {
            assert!(capture.contains(usage), "{usage}");
        }
        assert!(capture.contains("Poll without sleeping"), "`-h` leaves it out, the page does not");
        let all: Vec<_> =
            Cli::command().get_subcommands().filter(|one| !one.is_hide_set()).cloned().collect();
        assert!(all.len() >= 5);
        for one in all {
            assert!(page("weir.1").contains(&format!("weir\\-{}(1)", one.get_name())), "{}", one.get_name());
            assert!(page(&format!("weir-{}.1", one.get_name())).contains("EXIT STATUS"));
        }
    }

    #[test]
    fn the_text_is_divided_by_its_words() {
        let help = "Examples:\n  weir x\n\nSIGINT ends it.\nA word.\nExit status: 0 or 1.";
        let expected = [
            ("NOTES", vec!["A word."]),
            ("SIGNALS", vec!["SIGINT ends it."]),
            ("EXIT STATUS", vec!["0 or 1."]),
            ("EXAMPLES", vec!["  weir x"]),
        ];
        assert_eq!(sections(help), expected);
        assert_eq!(sections("").len(), 1);
    }
}
