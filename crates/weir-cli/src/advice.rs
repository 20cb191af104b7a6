//! The library's errors and warnings in terms of the command line: the options that its settings have, and advice that
//! names options and other commands of weir.

use weir::parts::command;
use weir::reader::{ReadError, ReadReason};
use weir::writer::WriteError;
use weir::{Direction, Error, Fit, InterfaceWarning, Mode, Setting, SourceChoice};

use crate::{program, units};

/// What to do about damaged files.
const REPAIR: &str = "to save the intact packets: weir read --repair FILE -w NEW";

/// Returns the option of a setting, with its value if there are few, or the names of its arguments.
fn option(setting: Setting) -> String {
    let name = match setting {
        Setting::Source(source) => return format!("--source {}", source.as_str()),
        Setting::Mode(Mode::Exclusive) => "--mode exclusive",
        Setting::Mode(_) => "--mode pass",
        Setting::Direction(Direction::In) => "-Q in",
        Setting::Direction(Direction::Out) => "-Q out",
        Setting::Direction(Direction::Both) => "-Q inout",
        Setting::Interface | Setting::Queues => "-i",
        Setting::Timestamps => "--timestamps",
        Setting::SnapLen => "-s",
        Setting::Chunks => "--chunks",
        Setting::Memory => "--memory",
        Setting::ByTime => "--order",
        Setting::Window => "--window",
        Setting::Segment => "--segment",
        Setting::LeaveOutMark => "--no-own",
        Setting::Filter => "EXPRESSION",
        Setting::Sample => "--sample",
        Setting::CountFlows => "--kernel",
        Setting::Steer => "--steer",
        Setting::Targets => "--targets",
        Setting::Handlers => "--handlers",
        Setting::Pin => "--pin",
        Setting::Advanced => "--advanced",
        Setting::Threshold => "--threshold",
        Setting::Group => "--group",
        Setting::Endpoints => "IN, OUT",
        Setting::OnExit => "--on-exit",
        Setting::Copy => "-w",
        Setting::Filters => "FILTER",
        Setting::MostKeys => "--keys",
        Setting::Rules => "--rules",
        _ => "",
    };
    name.to_owned()
}

/// Returns what went wrong, with the options that it is about.
pub(crate) fn message(error: &Error) -> String {
    match *error {
        Error::Setting { setting, .. } => format!("{error} ({})", option(setting)),
        Error::Conflict { one, other, .. } => format!("{error} ({}, {})", option(one), option(other)),
        _ => error.to_string(),
    }
}

/// Returns what to do about an error, if there is something.
pub(crate) fn hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::Conflict { one: Setting::Source(source), other, .. } => match (source, other) {
            (SourceChoice::AfXdp, Setting::Mode(_)) => "add --mode exclusive, or use --source xdp".to_owned(),
            (SourceChoice::XdpTc, Setting::Mode(_)) => "use --source xdp".to_owned(),
            (SourceChoice::XdpTc, Setting::Interface) => "use --source tc".to_owned(),
            (SourceChoice::XdpTc, Setting::Direction(_)) => "use --source xdp or --source tc".to_owned(),
            _ => return None,
        },
        Error::NoInterface => "name one with -i; `ip link` lists them".to_owned(),
        Error::Privilege { needs, .. } => grant(needs),
        Error::Busy { holder: Some(holder), .. } => {
            format!("use --source tc, which runs beside it, or end process {}", holder.pid)
        }
        Error::Busy { name, .. } => {
            let (inside, name) = command::place(name);
            format!(
                "use --source tc, which runs beside it; to see whose it is: {inside}bpftool net show dev {name}"
            )
        }
        Error::QueueBusy { .. } => "end that program, or use --source xdp or tc".to_owned(),
        Error::Unsupported { sources: [source], otherwise: "", .. } => alone(*source),
        Error::Unsupported { sources: sources @ [_, ..], otherwise, .. } => {
            let names: Vec<_> = sources.iter().map(|source| source.as_str()).collect();
            let otherwise = if otherwise.is_empty() { String::new() } else { format!(", or {otherwise}") };
            format!("use --source {}{otherwise}", names.join(" or "))
        }
        Error::Shape(_) => "the pool size per queue is -B, or --chunks times --chunk-size".to_owned(),
        Error::Memory { fit: Some(Fit::Chunks { chunks, chunk_size }), .. } => {
            format!("try -B {}", size(u64::from(*chunks) * u64::from(*chunk_size)))
        }
        Error::Memory { fit: Some(Fit::Memory(enough)), .. } | Error::Budget { enough, .. } => {
            format!("try --memory {}", size(*enough))
        }
        Error::Memory { .. } => "capture on fewer interfaces, or on all with -i any".to_owned(),
        Error::Load { source, .. } if source.is_memory() => {
            "try fewer or smaller chunks (--chunks, --chunk-size)".to_owned()
        }
        Error::Load { .. } => alone(SourceChoice::AfPacket),
        Error::ForwardFaults { faults } => {
            faults.iter().filter_map(hint).collect::<Vec<_>>().join("; then: ")
        }
        Error::ForwardDriver(problem) => {
            format!("{}; `weir devices` shows what drivers support", problem.remedy())
        }
        Error::ForwardTags { keep, filtered: false, .. } => {
            format!("to keep the tags: {keep}; to accept the loss: --lose-tags")
        }
        Error::AlreadyForwarding { from, to } => {
            let [from, to] = [from, to].map(|end| command::word(end));
            format!("to end it: weir forward --end {from} {to}")
        }
        Error::NoSuchEndpoint { .. } => {
            "to list everything forwarded, even between deleted interfaces: weir forward --list".to_owned()
        }
        Error::ForwardingHidden { endpoints, .. } => {
            let again = endpoints.as_ref().map_or_else(
                || "--list".to_owned(),
                |[from, to]| format!("--end {} {}", outside(from), outside(to)),
            );
            format!("`ip netns exec` hides it; run this outside: weir forward {again}")
        }
        other => return other.hint(),
    })
}

/// Returns the commands that do this to each of the interfaces: `ethtool -K eth0 rxvlan off`.
pub(crate) fn ethtool(letter: &str, interfaces: impl Iterator<Item: AsRef<str>>, what: &str) -> String {
    let command = |name: &str| {
        let (inside, name) = command::place(name);
        format!("{inside}ethtool -{letter} {name} {what}")
    };
    interfaces.map(|name| command(name.as_ref())).collect::<Vec<_>>().join("; ")
}

/// Returns what there is to say of `packets` that may have lost a VLAN tag on these interfaces.
pub(crate) fn tag_unknown(packets: u64, interfaces: impl Iterator<Item: AsRef<str>>) -> String {
    format!(
        "VLAN tags: for {} the driver did not report whether it stripped a tag; to keep tags: {}",
        units::packets(packets),
        ethtool("K", interfaces, "rxvlan off")
    )
}

/// Returns the text of a warning.
pub(crate) fn warning(warning: &InterfaceWarning) -> String {
    match *warning {
        InterfaceWarning::Slower { failed, ref why, needs } => {
            let remedy = needs.map_or_else(|| "see weir doctor".to_owned(), grant);
            format!("slower than it could be, as source {failed} failed: {why}; {remedy}")
        }
        ref other => other.to_string(),
    }
}

/// Returns why a file could not be written, with the option that forbids it. The text includes advice.
pub(crate) fn unwritten(error: &WriteError) -> String {
    match error {
        WriteError::Exists { path } => format!(
            "cannot overwrite {}: it exists, and --no-clobber is given; choose another name",
            path.display()
        ),
        other => other.to_string(),
    }
}

/// Returns what to do about a file that could not be read, if there is something.
pub(crate) fn unread(error: &ReadError) -> Option<&'static str> {
    match &error.reason {
        ReadReason::NoCodec(_) => error.hint(),
        _ if error.is_repairable() => Some(REPAIR),
        _ => error.hint(),
    }
}

/// Returns how to run the command with these capabilities.
fn grant(needs: &str) -> String {
    if weir::parts::is_root(needs) {
        return format!("run as root (sudo {} ...)", program::path());
    }
    format!("run as root, or grant the capabilities: setcap {needs}+ep {}", program::path())
}

/// Returns the advice to use `source`, with its merit.
fn alone(source: SourceChoice) -> String {
    let merit = match source {
        SourceChoice::Tc => ", which runs on any driver",
        SourceChoice::AfPacket => ", which needs no eBPF",
        _ => "",
    };
    format!("use --source {}{merit}", source.as_str())
}

/// Returns the name of an interface as it is outside of the namespace in which it was given.
fn outside(end: &str) -> String {
    match end.contains('/') {
        true => command::word(end),
        false => format!("NAMESPACE/{}", command::word(end)),
    }
}

/// Formats a size exactly, as options take it.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let exact = units.into_iter().find(|(shift, _)| bytes.trailing_zeros() >= *shift && bytes > 0);
    exact.map_or_else(|| format!("{bytes}B"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};
    use weir::{Interfaces, Unsupported};

    use super::*;
    use crate::cli::Cli;

    /// Whether the command has this option or positional argument.
    fn has(command: &Command, name: &str) -> bool {
        command.get_arguments().any(|argument| {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            let positional = argument.is_positional().then(|| argument.get_value_names()).flatten();
            long.as_deref() == Some(name)
                || short.as_deref() == Some(name)
                || positional.into_iter().flatten().any(|value| value.as_str() == name)
        })
    }

    #[test]
    fn each_setting_is_an_option_of_a_command() {
        let cli = Cli::command();
        for &setting in Setting::ALL {
            for words in option(setting).split(", ") {
                let name = words.split(' ').next().expect("a word");
                let known = ["capture", "count", "stat", "forward", "guard", "flows"]
                    .iter()
                    .any(|command| has(cli.find_subcommand(command).expect("a command"), name));
                assert!(known, "{setting:?}: {name:?}");
            }
        }
    }

    #[test]
    fn settings_are_told_as_options() {
        let why = || "no".to_owned();
        let error = Error::Setting { setting: Setting::SnapLen, why: why() };
        assert_eq!(message(&error), "no (-s)");
        let error = Error::Conflict {
            one: Setting::Source(SourceChoice::Xdp),
            other: Setting::Direction(Direction::Out),
            why: why(),
        };
        assert_eq!(message(&error), "no (--source xdp, -Q out)");
    }

    #[test]
    fn advice_names_options() {
        let memory = |fit| {
            hint(&Error::Memory {
                interfaces: Interfaces::Several(2),
                asked: 9,
                available: 8,
                reserve: 1,
                fit,
            })
            .expect("advice")
        };
        assert_eq!(memory(Some(Fit::Chunks { chunks: 8, chunk_size: 512 << 10 })), "try -B 4MiB");
        assert_eq!(memory(Some(Fit::Chunks { chunks: 2, chunk_size: 4 << 10 })), "try -B 8KiB");
        assert_eq!(memory(Some(Fit::Memory(4608 << 20))), "try --memory 4608MiB");
        assert!(memory(None).ends_with("-i any"));
        let unsupported = |sources, otherwise| {
            hint(&Error::Unsupported {
                name: String::new(),
                cause: Unsupported::AllInterfaces,
                sources,
                otherwise,
            })
        };
        use SourceChoice::{Tc, Xdp};
        assert_eq!(unsupported(&[Tc], "").unwrap(), "use --source tc, which runs on any driver");
        assert_eq!(unsupported(&[Tc], "keep the tags").unwrap(), "use --source tc, or keep the tags");
        let end = "use --source xdp or tc, or end that program";
        assert_eq!(unsupported(&[Xdp, Tc], "end that program").unwrap(), end);
        assert_eq!(unsupported(&[], "end that program").unwrap(), "end that program");
        assert_eq!(unsupported(&[], ""), None);
        let endpoints = Some(["rx0".to_owned(), "web/eth0".to_owned()]);
        let told = hint(&Error::ForwardingHidden { place: "/sys/fs/bpf", endpoints }).expect("advice");
        assert!(told.ends_with("weir forward --end NAMESPACE/rx0 web/eth0"), "{told}");
    }
}
