//! `weir ctl`: queries running captures and replaces their filters; `rules` are those of guards.

mod answers;
mod exact;
mod rules;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use weir::Filter;
use weir::filter::SystemNames;
use weir::filter_control::{Changed, PortableMembers, SetChange};
use weir::parts::{FilterSlot, FilterSlotKind};
use weir_render::json;
use weir_service::ClientError;
use weir_service::control::Order;
use weir_service::control::client::{About, Done, Running};
use weir_sys::privilege;

use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::{out, style};

const EXAMPLES: &str = "\
Examples:
  weir ctl list                                list running captures and their sockets
  weir ctl filter tcp port 443                 capture only this from now on
  weir ctl filter --target 4711 --none         let process 4711 capture everything again
  weir ctl set blocked add 10.9.8.7            extend the set in `host in @blocked`
  weir ctl set blocked replace @/etc/blocked   replace its members with those in a file
  weir ctl stat off                            stop counting beside the capture; on: count again
  weir ctl stat show                           print what was counted
  weir ctl rules replace edge.rules            replace the rules of a guard; show: print them with their counts
  weir ctl rules add 'block tcp 192.0.2.7:4444 > 198.51.100.1:80 for 10m'
                                               have a guard block one direction of a flow; remove, list, flush
  weir ctl confirm                             keep the rules of weir guard --confirm in force
  weir ctl status | jq .captured               print a counter from the JSON summary

Changing the filter neither loses nor duplicates packets; the capture file records the change. \
For captures that root started, root's weir ctl builds the filter programs, which requires CAP_BPF and \
CAP_NET_ADMIN. For all other users and captures, the capture builds them, so these users need no privileges.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what runs (captures, guards and others), and their sockets.
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
    /// Switch or print the statistics beside a running capture (`weir capture --stat`).
    ///
    /// While they are off, nothing is counted, and numbers stay.
    Stat {
        #[command(flatten)]
        target: TargetArgs,

        /// What to do.
        #[arg(value_enum, value_name = "ACTION")]
        action: StatArg,
    },
    /// Print or replace the rules of a running guard, and add exact ones to them.
    Rules {
        #[command(subcommand)]
        command: rules::RulesCommand,
    },
    /// Keep the rules of a guard in force that waits for confirmation.
    Confirm {
        #[command(flatten)]
        target: TargetArgs,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatArg {
    /// Count.
    On,
    /// Do not count.
    Off,
    /// Print the numbers so far as one JSON object for each interface.
    Show,
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// The weir to query or change, by process ID or socket; default: the only one running.
    #[arg(short, long, value_name = "PID|PATH")]
    target: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &CtlArgs) -> Result<(), Failure> {
    // Anybody may listen at the socket, and would be given programs that this process has loaded.
    privilege::give_up_those_of_the_file().map_err(Failure::new)?;
    match &args.command {
        Command::List => list(),
        Command::Status { target } => status(target),
        Command::Filter { target, filter, none, json, words } => {
            let wanted = filter.filter(words)?;
            debug_assert!(*none != wanted.is_some(), "clap sees to it");
            exchange(target, wanted.as_ref(), *json)
        }
        Command::Stat { target, action: StatArg::Show } => show_statistics(target),
        Command::Stat { target, action } => {
            let on = *action == StatArg::On;
            target.find()?.count(on)?;
            style::say(format_args!("statistics switched {}", if on { "on" } else { "off" }));
            Ok(())
        }
        Command::Rules { command } => rules::run(command),
        Command::Confirm { target } => {
            target.find()?.order(Order::Confirm)?;
            style::say(format_args!("confirmed"));
            Ok(())
        }
        Command::Set { target, name, change, members } => {
            let name = name.strip_prefix('@').unwrap_or(name);
            set(target, name, (*change).into(), &text_of(members)?)
        }
    }
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    let running = Running::all();
    for capture in &running {
        let path = capture.path().display();
        match capture.about() {
            Ok(About { process, command, interfaces, filter, file }) => {
                let filter = filter.map(|filter| format!(", filter `{filter}`")).unwrap_or_default();
                let file = file.map(|file| format!(", writing {file}")).unwrap_or_default();
                let line = format!("{process}  {command} on {}{filter}{file}  {path}", interfaces.join(", "));
                text.push_str(&style::visible(&line));
                text.push('\n');
            }
            Err(error) => style::say(format_args!("{path}: {}", Failure::from(error).message())),
        }
    }
    if running.is_empty() {
        style::say(format_args!("no running weir accepts control connections"));
    }
    out::print(text.as_bytes())
}

fn status(target: &TargetArgs) -> Result<(), Failure> {
    let account = target.find()?.status()?;
    let account: serde_json::Value = serde_json::from_str(account.get()).map_err(Failure::new)?;
    let mut line = Vec::new();
    json::line(&mut line, &account).map_err(Failure::new)?;
    out::print(&line)
}

fn show_statistics(target: &TargetArgs) -> Result<(), Failure> {
    let account = target.find()?.status()?;
    let account: serde_json::Value = serde_json::from_str(account.get()).map_err(Failure::new)?;
    let mut lines = Vec::new();
    match account["statistics"].as_array() {
        Some(all) => all.iter().try_for_each(|one| json::line(&mut lines, one)).map_err(Failure::new)?,
        None => {
            return Err(Failure::new("cannot print statistics: this capture has none")
                .hint("start it with --stat, or run weir stat beside it"));
        }
    }
    out::print(&lines)
}

fn exchange(target: &TargetArgs, filter: Option<&Filter>, json: bool) -> Result<(), Failure> {
    let begun = Instant::now();
    let capture = target.find()?;
    let (places, made_here) = capture.slots()?;
    let (made, done) = if made_here {
        say(&capture, &places, filter, begun)
    } else {
        make(&capture, &places, filter, begun)
    }?;
    let whole = begun.elapsed();
    for set in &done.forgotten {
        style::say(format_args!(
            "set `{}` is reloaded from its file; changes made with `weir ctl set` are lost",
            style::visible(set)
        ));
    }
    if json {
        let times = serde_json::json!({
            "in_force_nanoseconds": done.nanoseconds,
            "made_nanoseconds": u64::try_from(made.as_nanos()).unwrap_or(u64::MAX),
            "whole_nanoseconds": u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX),
        });
        return out::print(format!("{times}\n").as_bytes());
    }
    let asks = |place: &&FilterSlot| matches!(place.kind, FilterSlotKind::Process);
    for place in places.iter().filter(asks).filter(|_| filter.is_some()) {
        style::say(format_args!(
            "{}: {} runs the new filter in the process, interpreted; a filter given at the start would be faster",
            style::stderr().yellow("note"),
            place.target.name
        ));
    }
    let now = filter.map_or_else(
        || "no filter: every packet matches".to_owned(),
        |filter| format!("filter `{}`", filter.label()),
    );
    style::say(format_args!(
        "{now}: in force after {} us, {:.1} ms in total",
        done.nanoseconds.div_ceil(1000),
        whole.as_secs_f64() * 1000.0
    ));
    Ok(())
}

/// Sends a filter that the capture compiles itself. Returns the time from `begun` until it was sent.
fn say(
    capture: &Running,
    places: &[FilterSlot],
    filter: Option<&Filter>,
    begun: Instant,
) -> Result<(Duration, Done), Failure> {
    let receivers: Vec<_> = places.iter().map(|place| place.target.receiver).collect();
    let portable = filter.map(|filter| filter.portable(&receivers)).transpose().map_err(weir::Error::from)?;
    let (portable, is_never) = portable.unzip();
    let made = begun.elapsed();
    warn_of_never(is_never == Some(true));
    Ok((made, capture.say_filter(portable)?))
}

/// Compiles a filter here and sends its programs. Returns the time from `begun` until they were sent.
fn make(
    capture: &Running,
    places: &[FilterSlot],
    filter: Option<&Filter>,
    begun: Instant,
) -> Result<(Duration, Done), Failure> {
    let programs = FilterSlot::make_all(places, filter)?;
    let made = begun.elapsed();
    warn_of_never(!programs.is_empty() && programs.iter().all(|program| program.is_never));
    Ok((made, capture.put(filter.map(Filter::label), &programs)?))
}

fn warn_of_never(is_never: bool) {
    if is_never {
        style::say(format_args!(
            "{}: no packet can ever match this filter",
            style::stderr().yellow("warning")
        ));
    }
}

/// Changes the set `name` at each interface; `text`: the members.
fn set(target: &TargetArgs, name: &str, change: SetChange, text: &str) -> Result<(), Failure> {
    let capture = target.find()?;
    let mut labels = Vec::new();
    for (target, sets) in capture.sets()? {
        let mut names: Vec<String> = sets.iter().map(|set| format!("`{}`", set.name)).collect();
        names.sort();
        names.dedup();
        let there = labels.len();
        labels.extend(sets.into_iter().filter(|set| set.name == name));
        if labels.len() == there {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let failure = Failure::new(format_args!(
                "the filter on {} has no set `{name}` that can be changed while it runs (changeable: \
                 {names}); sets of filters in classic BPF or in the process cannot be changed",
                target.name
            ));
            return Err(failure.hint("to replace the whole filter: weir ctl filter EXPRESSION"));
        }
    }
    let members = PortableMembers::new(text, &labels, SystemNames::new())?;
    match capture.change_set(name, change, members) {
        Ok(Changed { added, removed }) => {
            style::say(format_args!("set `{name}`: {added} added, {removed} removed"));
            Ok(())
        }
        Err(error @ ClientError::PartlyChanged(_)) => Err(Failure::from(error).hint(format!(
            "some members may have changed; to correct the set, use `weir ctl set {name} replace`; a \
             changeable set in the kernel holds 100 000 members, including those that a replacement \
             removes"
        ))),
        Err(error) => Err(error.into()),
    }
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

impl TargetArgs {
    fn find(&self) -> Result<Running, Failure> {
        let found = match self.target.as_deref().map(|target| (target, target.parse())) {
            None => Running::the_only_one(),
            Some((_, Ok(process))) => Running::of_process(process),
            Some((path, Err(_))) => Running::at(Path::new(path)),
        };
        Ok(found?)
    }
}
