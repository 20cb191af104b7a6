//! `weir ctl`: asks running captures, and gives them other filters.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use weir::Filter;
use weir::filter::Place;

use super::message::{About, Answer, Ask, Request, SentPlace, SentProgram, VERSION, borrowed};
use super::{socket, wire};
use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::style;

/// How long a capture may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  weir ctl list                                which captures run, and where they listen
  weir ctl filter tcp port 443                 the one that runs takes only this from now on
  weir ctl filter --target 4711 --none         process 4711 takes everything again
  weir ctl status | jq .captured               its account so far, as JSON

No packet is lost or taken twice when the filter changes; the file says when it did.
Who may load eBPF programs (root, cap_bpf with cap_net_admin) may exchange any filter; the capture itself need not.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct CtlArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the captures that run, with their sockets.
    List,
    /// Print the account so far as one JSON object.
    Status {
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Exchange the filter.
    Filter {
        #[command(flatten)]
        target: TargetArgs,
        #[command(flatten)]
        filter: FilterArgs,

        /// Take everything from now on.
        #[arg(long, conflicts_with_all = ["words", "filter", "filter_file"])]
        none: bool,

        /// Print the times that it took, as one JSON object.
        #[arg(long)]
        json: bool,

        /// Which packets are wanted from now on.
        #[arg(value_name = "EXPRESSION", required_unless_present_any = ["none", "filter", "filter_file"])]
        words: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct TargetArgs {
    /// The capture: its process, or its socket. Without it: the only one that runs.
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
    }
}

/// A capture that answers.
struct Capture {
    stream: UnixStream,
    path: PathBuf,
}

fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for capture in running() {
        let Ok(Answer::About(about)) = capture.ask(Ask::About) else { continue };
        let About { process, command, interfaces, filter, file } = about;
        let filter = filter.map(|filter| format!(", filter `{filter}`")).unwrap_or_default();
        let file = file.map(|file| format!(", into {file}")).unwrap_or_default();
        text.push_str(&format!(
            "{process}  {command} on {}{filter}{file}  {}\n",
            interfaces.join(", "),
            capture.path.display()
        ));
    }
    if text.is_empty() {
        style::say(format_args!("no capture runs that may be asked"));
    }
    print(text.as_bytes())
}

fn status(target: &TargetArgs) -> Result<(), Failure> {
    match target.find()?.ask(Ask::Status)? {
        Answer::Status(account) => print(format!("{account}\n").as_bytes()),
        other => Err(unexpected(&other)),
    }
}

fn exchange(target: &TargetArgs, filter: Option<&Filter>, json: bool) -> Result<(), Failure> {
    let begun = Instant::now();
    let capture = target.find()?;
    let places = capture.places()?;
    let programs = places.iter().map(|place| place.make(filter)).collect::<Result<Vec<_>, _>>()?;
    let made = begun.elapsed();
    let ask = Ask::Put {
        filter: filter.map(Filter::label),
        programs: programs.iter().map(SentProgram::of).collect(),
    };
    let beside = borrowed(programs.iter().map(|program| &program.descriptors));
    capture.send(ask, &beside)?;
    let nanoseconds = match capture.receive()?.0 {
        Answer::Done { nanoseconds } => nanoseconds,
        other => return Err(unexpected(&other)),
    };
    let whole = begun.elapsed();
    if json {
        let times = serde_json::json!({
            "in_force_nanoseconds": nanoseconds,
            "made_nanoseconds": u64::try_from(made.as_nanos()).unwrap_or(u64::MAX),
            "whole_nanoseconds": u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX),
        });
        return print(format!("{times}\n").as_bytes());
    }
    let now = filter
        .map_or_else(|| "every packet is wanted".to_owned(), |filter| format!("filter `{}`", filter.label()));
    style::say(format_args!(
        "{now}: in force in {} us, {:.1} ms in all",
        nanoseconds.div_ceil(1000),
        whole.as_secs_f64() * 1000.0
    ));
    Ok(())
}

/// All captures that answer.
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
                    Failure::new(format_args!("process {process} does not capture, or takes no questions"))
                        .hint("weir ctl list")
                })?
            }
        };
        Capture::connect(&path)
            .map_err(|error| Failure::new(format_args!("ask the capture at {}: {error}", path.display())))
    }
}

fn the_only_one() -> Result<Capture, Failure> {
    let mut running = running();
    match (running.pop(), running.len()) {
        (None, _) => Err(Failure::new("no capture runs that may be asked")),
        (Some(capture), 0) => Ok(capture),
        (Some(_), others) => {
            Err(Failure::usage(format!("{} captures run: say which by --target", others + 1))
                .hint("weir ctl list"))
        }
    }
}

impl Capture {
    fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, path: path.to_owned() })
    }

    fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        self.send(ask, &[])?;
        Ok(self.receive()?.0)
    }

    fn places(&self) -> Result<Vec<Place>, Failure> {
        self.send(Ask::Places, &[])?;
        match self.receive()? {
            (Answer::Places(places), descriptors) => SentPlace::received(places, descriptors),
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn send(&self, ask: Ask, beside: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), Failure> {
        wire::send(&self.stream, &Request { version: VERSION, ask }, beside)
            .map_err(|error| Failure::new(format_args!("ask the capture: {error}")))
    }

    fn receive(&self) -> Result<(Answer, Vec<std::os::fd::OwnedFd>), Failure> {
        let received = wire::receive(&self.stream)
            .map_err(|error| Failure::new(format_args!("hear the capture's answer: {error}")))?;
        received.ok_or_else(|| {
            Failure::new("the capture does not answer").hint("it answers its own user, and root")
        })
    }
}

fn unexpected(answer: &Answer) -> Failure {
    match answer {
        Answer::Refused { why } => Failure::new(format_args!("the capture refuses: {why}")),
        other => Failure::new(format_args!("an answer to another question: {other:?}")),
    }
}

fn print(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text).and_then(|()| stdout.flush());
    printed.map_err(|error| Failure::new(format_args!("write to standard output: {error}")))
}
