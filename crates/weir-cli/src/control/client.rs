//! `weir ctl`: queries running captures and replaces their filters.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use weir::Filter;
use weir::filter::{
    Changed, LiveSet, MemberKind, Members, Place, PlaceKind, Seat, SetChange, SetLabel, SystemNames,
};

use super::message::{About, Answer, Ask, Request, SentPlace, SentProgram, VERSION};
use super::{socket, wire};
use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::{json, style};

/// Longest time for a capture to answer, or to compile a filter.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_FOR_FILTER: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  weir ctl list                                list running captures and their sockets
  weir ctl filter tcp port 443                 capture only this from now on
  weir ctl filter --target 4711 --none         let process 4711 capture everything again
  weir ctl set blocked add 10.9.8.7            extend the set in `host in @blocked`
  weir ctl set blocked replace @/etc/blocked   replace its members with those in a file
  weir ctl status | jq .captured               print a counter from the JSON summary

Changing the filter neither loses nor duplicates packets; the capture file records the change. \
Root and the user who runs the capture build the filter programs themselves, which requires \
CAP_BPF and CAP_NET_ADMIN. For members of its --control-group, the capture builds them, so \
members need no privileges.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List running captures and their sockets.
    List,
    /// Print the counters so far as one JSON object.
    Status {
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Replace the filter of a running capture.
    Filter {
        #[command(flatten)]
        target: TargetArgs,
        #[command(flatten)]
        filter: FilterArgs,

        /// Capture everything from now on.
        #[arg(long, conflicts_with_all = ["words", "filter", "filter_file"])]
        none: bool,

        /// Print how long the change took, as one JSON object.
        #[arg(long)]
        json: bool,

        /// New filter expression.
        #[arg(value_name = "EXPRESSION", required_unless_present_any = ["none", "filter", "filter_file"])]
        words: Vec<String>,
    },
    /// Change a set used by the running filter, without replacing the filter.
    Set {
        #[command(flatten)]
        target: TargetArgs,

        /// Name of the set in the filter expression (`blocked` in `host in @blocked`).
        name: String,

        /// How to change the set.
        #[arg(value_enum, value_name = "CHANGE")]
        change: ChangeArg,

        /// Members, or @FILE to read them from a file, separated by newlines, blanks or commas.
        #[arg(value_name = "MEMBER|@FILE", required = true)]
        members: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ChangeArg {
    /// Add these members.
    Add,
    /// Remove these members; a prefix only as a whole.
    Remove,
    /// Replace all members with these.
    Replace,
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// Capture to query or change, by process ID or socket; default: the only one running.
    #[arg(short, long, value_name = "PID|PATH")]
    target: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &CtlArgs) -> Result<(), Failure> {
    match &args.command {
        Command::List => list(),
        Command::Status { target } => status(target),
        Command::Filter { target, filter, none, json, words } => {
            let wanted = filter.filter(words)?;
            debug_assert!(*none != wanted.is_some(), "clap sees to it");
            exchange(target, wanted.as_ref(), *json)
        }
        Command::Set { target, name, change, members } => {
            let name = name.strip_prefix('@').unwrap_or(name);
            set(target, name, (*change).into(), &text_of(members)?)
        }
    }
}

/// A connection to a running capture.
struct Capture {
    stream: UnixStream,
    path: PathBuf,
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    let running = running();
    for capture in &running {
        let path = capture.path.display();
        match capture.ask(Ask::About) {
            Ok(Answer::About(about)) => {
                let About { process, command, interfaces, filter, file } = about;
                let filter = filter.map(|filter| format!(", filter `{filter}`")).unwrap_or_default();
                let file = file.map(|file| format!(", writing {file}")).unwrap_or_default();
                let line = format!("{process}  {command} on {}{filter}{file}  {path}", interfaces.join(", "));
                text.push_str(&style::visible(&line));
                text.push('\n');
            }
            Ok(other) => style::say(format_args!("{path}: {}", unexpected(&other).message())),
            Err(failure) => style::say(format_args!("{path}: {}", failure.message())),
        }
    }
    if running.is_empty() {
        style::say(format_args!("no running capture accepts control connections"));
    }
    print(text.as_bytes())
}

fn status(target: &TargetArgs) -> Result<(), Failure> {
    match target.find()?.ask(Ask::Status)? {
        Answer::Status(account) => {
            let account: serde_json::Value = serde_json::from_str(account.get()).map_err(Failure::new)?;
            let mut line = Vec::new();
            json::to_writer(&mut line, &account).map_err(Failure::new)?;
            line.push(b'\n');
            print(&line)
        }
        other => Err(unexpected(&other)),
    }
}

fn exchange(target: &TargetArgs, filter: Option<&Filter>, json: bool) -> Result<(), Failure> {
    let begun = Instant::now();
    let capture = target.find()?;
    let (places, made_here) = capture.places()?;
    let (ask, is_never, descriptors) =
        if made_here { said(&places, filter)? } else { made(&places, filter)? };
    let made = begun.elapsed();
    if is_never {
        style::say(format_args!(
            "{}: no packet can ever match this filter",
            style::stderr().yellow("warning")
        ));
    }
    capture.stream.set_read_timeout(Some(PATIENCE_FOR_FILTER)).map_err(Failure::new)?;
    capture.send(ask, &descriptors.iter().map(OwnedFd::as_fd).collect::<Vec<_>>())?;
    let (nanoseconds, forgotten) = match capture.receive()?.0 {
        Answer::Done { nanoseconds, forgotten } => (nanoseconds, forgotten),
        other => return Err(unexpected(&other)),
    };
    let whole = begun.elapsed();
    for set in &forgotten {
        style::say(format_args!(
            "set `{}` is reloaded from its file; changes made with `weir ctl set` are lost",
            style::visible(set)
        ));
    }
    if json {
        let times = serde_json::json!({
            "in_force_nanoseconds": nanoseconds,
            "made_nanoseconds": u64::try_from(made.as_nanos()).unwrap_or(u64::MAX),
            "whole_nanoseconds": u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX),
        });
        return print(format!("{times}\n").as_bytes());
    }
    let asks = |place: &&Place| matches!(place.kind, PlaceKind::Process);
    for place in places.iter().filter(asks).filter(|_| filter.is_some()) {
        style::say(format_args!(
            "{}: {} runs the new filter in the process, interpreted; a filter given at the start would be faster",
            style::stderr().yellow("note"),
            place.seat.name
        ));
    }
    let now = filter.map_or_else(
        || "no filter: every packet matches".to_owned(),
        |filter| format!("filter `{}`", filter.label()),
    );
    style::say(format_args!(
        "{now}: in force after {} us, {:.1} ms in total",
        nanoseconds.div_ceil(1000),
        whole.as_secs_f64() * 1000.0
    ));
    Ok(())
}

/// Builds a request for a filter that the capture compiles itself. Returns whether no packet can match it, and no
/// descriptors.
fn said(places: &[Place], filter: Option<&Filter>) -> Result<(Ask, bool, Vec<OwnedFd>), Failure> {
    let receivers: Vec<_> = places.iter().map(|place| place.seat.receiver).collect();
    let portable = filter.map(|filter| filter.portable(&receivers)).transpose().map_err(weir::Error::from)?;
    let (portable, is_never) = portable.unzip();
    Ok((Ask::Filter(portable.map(Box::new)), is_never == Some(true), Vec::new()))
}

/// Builds a request with programs that are compiled here. Returns the request, whether no packet can match, and the
/// descriptors.
fn made(places: &[Place], filter: Option<&Filter>) -> Result<(Ask, bool, Vec<OwnedFd>), Failure> {
    let programs = Place::make_all(places, filter)?;
    let is_never = !programs.is_empty() && programs.iter().all(|program| program.is_never);
    let ask = Ask::Put {
        filter: filter.map(Filter::label),
        programs: programs.iter().map(SentProgram::of).collect(),
    };
    Ok((ask, is_never, programs.into_iter().flat_map(|program| program.descriptors).collect()))
}

/// Changes the set `name` at each interface; `text`: the members.
fn set(target: &TargetArgs, name: &str, change: SetChange, text: &str) -> Result<(), Failure> {
    let capture = target.find()?;
    let mut chosen = Vec::new();
    for (seat, sets) in capture.sets()? {
        let mut names: Vec<String> = sets.iter().map(|set| format!("`{}`", set.label.name)).collect();
        names.sort();
        names.dedup();
        let there = chosen.len();
        chosen.extend(sets.into_iter().filter(|set| set.label.name == name));
        if chosen.len() == there {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let failure = Failure::new(format_args!(
                "the filter on {} has no set `{name}` that can be changed while it runs (changeable: \
                 {names}); sets of filters in classic BPF or in the process cannot be changed",
                seat.name
            ));
            return Err(failure.hint("to replace the whole filter: weir ctl filter EXPRESSION"));
        }
    }
    let read = |set: LiveSet| Ok((set.label.members(text, &SystemNames::new())?, set));
    let chosen = chosen.into_iter().map(read).collect::<Result<Vec<_>, weir::Error>>()?;
    capture.note(Ask::Changing { set: name.to_owned() })?;
    match change_all(chosen, change) {
        Ok(Changed { added, removed }) => {
            capture.note(Ask::Changed { added, removed })?;
            style::say(format_args!("set `{name}`: {added} added, {removed} removed"));
            Ok(())
        }
        Err(error) => {
            capture.note(Ask::ChangedInPart { why: error.to_string() })?;
            Err(Failure::from(error).hint(format!(
                "some members may have changed; to correct the set, use `weir ctl set {name} replace`; a \
                 changeable set in the kernel holds 100 000 members, including those that a replacement \
                 removes"
            )))
        }
    }
}

/// Changes the set everywhere. For each kind of members, the largest change counts.
fn change_all(sets: Vec<(Members, LiveSet)>, change: SetChange) -> Result<Changed, weir::Error> {
    let mut changed: BTreeMap<MemberKind, Changed> = BTreeMap::new();
    for (members, set) in sets {
        let kind = set.label.kind;
        let now = set.change(change, &members)?;
        let most = changed.entry(kind).or_default();
        most.added = most.added.max(now.added);
        most.removed = most.removed.max(now.removed);
    }
    let added = changed.values().map(|changed| changed.added).sum();
    let removed = changed.values().map(|changed| changed.removed).sum();
    Ok(Changed { added, removed })
}

/// Joins the members into one text, as in a file.
fn text_of(members: &[String]) -> Result<String, Failure> {
    let texts = members.iter().map(|member| match member.strip_prefix('@') {
        None => Ok(member.clone()),
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read the members in {path}: {error}"))),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

impl From<ChangeArg> for SetChange {
    fn from(change: ChangeArg) -> Self {
        match change {
            ChangeArg::Add => Self::Add,
            ChangeArg::Remove => Self::Remove,
            ChangeArg::Replace => Self::Replace,
        }
    }
}

/// Returns all captures that answer.
fn running() -> Vec<Capture> {
    let directories = socket::directories();
    directories.iter().for_each(|directory| socket::sweep(directory));
    let paths = directories.iter().flat_map(|directory| socket::sockets(directory));
    paths.filter_map(|path| Capture::connect(&path).ok()).collect()
}

impl TargetArgs {
    fn find(&self) -> Result<Capture, Failure> {
        let Some(target) = &self.target else { return the_only_one() };
        let path = match target.parse::<u32>() {
            Err(_) => PathBuf::from(target),
            Ok(process) => {
                let paths = socket::directories();
                let mut paths = paths.iter().map(|directory| socket::of_process(directory, process));
                paths.find(|path| path.exists()).ok_or_else(|| {
                    Failure::new(format_args!("process {process} does not capture, or has no control socket"))
                        .hint("to list captures: weir ctl list")
                })?
            }
        };
        Capture::connect(&path).map_err(|error| {
            let failure =
                Failure::new(format_args!("cannot connect to the capture at {}: {error}", path.display()));
            match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    failure.hint("only its own user, its --control-group and root may query it")
                }
                _ => failure.hint("to list captures: weir ctl list"),
            }
        })
    }
}

fn the_only_one() -> Result<Capture, Failure> {
    let mut running = running();
    match (running.pop(), running.len()) {
        (None, _) => Err(Failure::new("no running capture accepts control connections")),
        (Some(capture), 0) => Ok(capture),
        (Some(_), others) => {
            Err(Failure::usage(format!("{} captures are running: choose one with --target", others + 1))
                .hint("to list captures: weir ctl list"))
        }
    }
}

impl Capture {
    fn connect(path: &Path) -> io::Result<Self> {
        let stream = socket::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, path: path.to_owned() })
    }

    fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        self.send(ask, &[])?;
        Ok(self.receive()?.0)
    }

    fn note(&self, ask: Ask) -> Result<(), Failure> {
        match self.ask(ask)? {
            Answer::Noted => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns where the filters are, and whether the capture compiles their programs.
    fn places(&self) -> Result<(Vec<Place>, bool), Failure> {
        self.send(Ask::Places, &[])?;
        match self.receive()? {
            (Answer::Places { places, made_here }, descriptors) => {
                Ok((SentPlace::received(places, descriptors)?, made_here))
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn sets(&self) -> Result<Vec<(Seat, Vec<LiveSet>)>, Failure> {
        self.send(Ask::Sets, &[])?;
        match self.receive()? {
            (Answer::Sets(seats), descriptors) => {
                let mut descriptors = descriptors.into_iter();
                let live = |(seat, labels): (Seat, Vec<SetLabel>)| {
                    let interface = seat.interface;
                    // Missing descriptors shorten the list of sets.
                    let sets = labels.into_iter().zip(descriptors.by_ref());
                    let set = |(label, descriptor)| LiveSet { interface, label, descriptor };
                    (seat, sets.map(set).collect())
                };
                Ok(seats.into_iter().map(live).collect())
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn send(&self, ask: Ask, beside: &[BorrowedFd<'_>]) -> Result<(), Failure> {
        wire::send(&self.stream, &Request { version: VERSION, ask }, beside)
            .map_err(|error| Failure::new(format_args!("cannot send to the capture: {error}")))
    }

    fn receive(&self) -> Result<(Answer, Vec<OwnedFd>), Failure> {
        let received = wire::receive(&self.stream).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Failure::new("the capture did not answer within a few seconds")
                    .hint("it is stopped, or somebody else is changing its filter: try again")
            }
            _ => Failure::new(format_args!("cannot receive the capture's answer: {error}")),
        })?;
        received.ok_or_else(|| {
            Failure::new("the capture did not answer")
                .hint("only its own user, its --control-group and root may query it")
        })
    }
}

fn unexpected(answer: &Answer) -> Failure {
    match answer {
        Answer::Refused { why } => Failure::new(format_args!("the capture refused: {}", style::visible(why))),
        other => Failure::new(format_args!("unexpected answer: {other:?}")),
    }
}

fn print(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text).and_then(|()| stdout.flush());
    printed.map_err(|error| Failure::new(format_args!("cannot write to standard output: {error}")))
}
