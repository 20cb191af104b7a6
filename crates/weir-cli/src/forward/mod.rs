//! `weir forward`: sends the packets received on one interface out on another, inside the kernel.

mod copying;
mod list;
mod live;
mod report;
mod summary;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use weir::Forward;
use weir::forward::{ForwardBuilder, ForwardStats, OnExit, Pinned};
use weir::parts::command;
use weir_render::json;
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::{Change, Obeyed, Order, What};
use weir_service::rules::RulesCounted;
use weir_service::session::{Identity, Policy, Prepared, Settings};

use self::copying::{CopyArgs, Copying};
use self::live::Live;
use self::summary::Summary;
use crate::args::{ConfineArgs, ControlArgs, MORE, ReadyArgs};
use crate::failure::{self, Failure};
use crate::filter_args::FilterArgs;
use crate::loss::LossArgs;
use crate::rules::{self, LiveRules, SetFile};
use crate::{grant, hints, interfaces, out, style, typed, units};

const EXAMPLES: &str = "\
Examples:
  weir forward eth1 eth2 --both
        Bridge two interfaces until Ctrl-C, bypassing this host.
  weir forward eth1 eth2 tcp port 443
        Forward matching packets one way. Everything else that eth1 receives goes to
        the host's stack, as it would without weir.
  weir ctl filter 'tcp port 443 or udp port 443'
        Change the filter while running. Each packet is tested by the old or the new one.
  weir forward eth1 eth2 --both --rules bridge.rules
        Bridge what rules let pass, such as `telnet: tcp port 23 -> block`; nothing gets to the host's stack.
  weir forward eth1 eth2 --both -w both.pcapng
        Bridge, and save a copy of the forwarded packets.
  weir forward eth1 eth2 --both --on-exit open
        Keep the bridge in the kernel however the process ends ...
  weir forward --end eth1 eth2
        ... until this command, which prints what happened to every packet.
  weir forward --list
        List bridges left running, with packet counts and paths. If an interface is
        gone, stop its bridge with `weir forward --end PATH`.

Without -w, packets never reach the process. Every packet is counted once:
  seen = filtered + blocked + bounced + forwarded + no room + too long + unable + errors.
Once forwarding has started, weir prints a line beginning with `on exit: ` on standard error. \
Scripts can wait with --ready-fd.
SIGINT (Ctrl-C) or SIGTERM prints the summary and exits; SIGUSR1 prints the summary so far.
Exit status: 0 success, 1 error, 2 usage error, 3 packets were lost (with --fail-on-loss). \
An error outranks lost packets.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct ForwardArgs {
    /// Interface to receive on; NAMESPACE/IF for one in another network namespace.
    #[arg(value_name = "IN", required_unless_present = "list")]
    from: Option<String>,

    /// Interface to send on.
    #[arg(value_name = "OUT")]
    to: Option<String>,

    /// Forward only packets that match this filter; the others go to the host's stack.
    ///
    /// The language extends pcap-filter(7); weir-filter(7) describes it.
    #[arg(value_name = "EXPRESSION", help_heading = "Filter")]
    words: Vec<String>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Forward by the rules in FILE instead of a filter; - is standard input.
    ///
    /// The first rule that matches says whether a packet is forwarded (`pass`), dropped (`block`) or sent back (`bounce`), in both directions; what no rule
    /// matches is forwarded. -w saves the packets that rules capture. The summary has the packets of each rule. See weir rules check
    /// --help, and docs/rules.md.
    #[arg(hide_short_help = true, long, value_name = "FILE", help_heading = "Filter")]
    rules: Option<PathBuf>,

    /// With --rules, read the set @NAME from FILE; default: the file NAME beside the rules.
    #[arg(hide_short_help = true, long = "set", value_name = "NAME=FILE", value_parser = SetFile::parse)]
    #[arg(requires = "rules", help_heading = "Filter")]
    sets: Vec<SetFile>,

    /// Also forward from OUT to IN.
    #[arg(short, long, help_heading = "Forwarding")]
    both: bool,

    /// Behaviour on exit, including kill -9.
    #[arg(long, value_name = "HOW", value_enum, default_value_t, help_heading = "Forwarding")]
    on_exit: OnExitArg,

    /// Stop what `--on-exit open` left running and print its summary.
    ///
    /// Takes IN and OUT, or a path shown by --list in place of IN.
    #[arg(long, conflicts_with_all = ["words", "filter", "filter_file", "rules", "both", "on_exit", "duration", "no_promiscuous_mode", "lose_tags", "control", "write", "ready_fd"], help_heading = "Forwarding")]
    end: bool,

    /// List what `--on-exit open` keeps running in the kernel.
    ///
    /// Includes all named network namespaces.
    #[arg(long, conflicts_with_all = ["from", "to", "words", "filter", "filter_file", "rules", "both", "on_exit", "end", "duration", "no_promiscuous_mode", "lose_tags", "control", "write", "ready_fd", "quiet"], help_heading = "Forwarding")]
    list: bool,

    /// Do not enable promiscuous mode.
    ///
    /// The interfaces then receive only frames for their own addresses.
    #[arg(short = 'p', long, help_heading = "Forwarding")]
    no_promiscuous_mode: bool,

    /// Forward even if VLAN tags get lost.
    ///
    /// Some drivers strip VLAN tags and cannot report them; tagged packets then leave without their
    /// tags.
    #[arg(hide_short_help = true, long, help_heading = "Forwarding")]
    lose_tags: bool,

    #[command(flatten)]
    copy: CopyArgs,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Stop conditions")]
    duration: Option<Duration>,

    #[command(flatten)]
    confine: ConfineArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    loss: LossArgs,
    #[command(flatten)]
    ready: ReadyArgs,

    /// Print the final summary as one JSON object on standard output.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Print only errors and losses (and the JSON summary).
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Print more at startup, including the sandbox in force.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OnExitArg {
    /// Stop forwarding; packets go to the host's stack.
    #[default]
    Closed,
    /// Keep forwarding in the kernel until --end.
    Open,
}

impl ForwardArgs {
    /// Returns the names of the two interfaces.
    fn names(&self) -> (&str, &str) {
        (self.from.as_deref().unwrap_or_default(), self.to.as_deref().unwrap_or_default())
    }

    /// Returns a builder for the two interfaces.
    fn between(&self) -> Result<ForwardBuilder, Failure> {
        let (from, to) = self.names();
        let ((here, from), (there, to)) = (interfaces::place(from)?, interfaces::place(to)?);
        Ok(Forward::between(from, to).namespaces(here.as_ref(), there.as_ref()))
    }

    /// Returns the settings of a session, which stays the user who started it.
    fn settings(&self) -> Settings {
        Settings {
            command: "forward",
            packets: None,
            duration: self.duration,
            confine: self.confine.is_on(),
            identity: Identity::Kept,
            ready: self.ready.ready_fd,
            metrics: None,
            control: self.control.socket(),
            names: false,
            reloads: false,
            warn: hints::warn,
        }
    }

    /// Checks that IN and OUT are two words.
    fn check_ends(&self) -> Result<(), Failure> {
        let (from, to) = self.names();
        if let Some((one, other)) = interfaces::two(from)? {
            return Err(Failure::usage(format!("IN and OUT are two words, not `{from}`"))
                .hint(format!("try: {}", typed::with_words(from, &[one, other]))));
        }
        match to {
            "" => Err(Failure::usage("OUT is missing: the interface to send on")
                .hint(format!("weir forward {} OUT", command::word(from)))),
            _ => Ok(()),
        }
    }

    fn builder(&self) -> Result<ForwardBuilder, Failure> {
        let on_exit = match self.on_exit {
            OnExitArg::Closed => OnExit::Closed,
            OnExitArg::Open => OnExit::Open,
        };
        let builder = self.between()?;
        let filter = self.filter.filter(&self.words)?;
        let builder = filter.into_iter().fold(builder, ForwardBuilder::filter);
        let rules = self.rules.as_ref().map(|file| LiveRules::read(file, &self.sets)).transpose()?;
        if let Some(rules) = &rules {
            rules.warn_of_sent(&style::visible(self.names().0), "packets to forward are received ones");
            if rules.logs() && !self.quiet {
                rules::note(rules::LOG_NOTHING);
            }
        }
        let builder = rules.iter().fold(builder, |builder, rules| builder.rules(rules.rules().clone()));
        let builder = self.copy.builder().into_iter().fold(builder, ForwardBuilder::copied);
        let builder = builder.both(self.both).on_exit(on_exit).lose_tags(self.lose_tags);
        Ok(builder.promiscuous(!self.no_promiscuous_mode))
    }
}

/// Runs the command.
pub(crate) fn run(args: &ForwardArgs) -> Result<(), Failure> {
    grant::more_than_capture("forward packets")?;
    if args.list {
        return list::print(args.json);
    }
    if args.end {
        return end(args);
    }
    args.check_ends()?;
    let builder = args.builder()?;
    let mut options = CopyArgs::options();
    let file = args.copy.file().map(|path| (path, &mut options));
    let (mut forward, opened) =
        Prepared::new(args.settings(), file)?.open(|_| builder.open().map_err(Failure::from))?;
    let copying = args.copy.begin(forward.take_copy(), &options)?;
    if !args.quiet {
        style::print(&report::opened(&forward, args.names(), style::stderr()));
    }
    style::print(&crate::report::service(&opened, args.quiet, args.verbose));
    let live = if args.quiet { None } else { Live::on_terminal() };
    let redraw = live.is_some().then(Instant::now);
    let filter = forward.directions().into_iter().find_map(|direction| direction.filter);
    let confinement = opened.confinement().cloned();
    let run = Run { args, forward, copying, confinement, live, redraw, filter };
    opened.serve(run)?.run()
}

/// Ends forwarding that runs without a process.
fn end(args: &ForwardArgs) -> Result<(), Failure> {
    let account = match (&args.from, &args.to) {
        (Some(path), None) if path.contains('/') => Pinned::at(Path::new(path))?.end()?,
        (Some(_), None) => {
            return Err(Failure::usage(
                "--end requires two interfaces, or a path shown by weir forward --list",
            ));
        }
        _ => args.between()?.end()?,
    };
    let mut summary = Summary::new(&[], &account, None);
    summary.end_flights();
    if !args.quiet {
        style::print(&report::account(&summary, style::stderr()));
    }
    args.loss.end(print_json(args, &summary), report::loss(&summary), !args.quiet)
}

/// A run that is being monitored.
struct Run<'a> {
    args: &'a ForwardArgs,
    forward: Forward,
    copying: Option<Copying>,
    /// `None`: not confined.
    confinement: Option<Confinement>,
    live: Option<Live>,
    /// Time of the next update of the live line.
    redraw: Option<Instant>,
    /// The filter in force.
    filter: Option<String>,
}

impl Policy for Run<'_> {
    type Summary = Summary;
    type Error = Failure;

    fn summary(&mut self) -> Result<Summary, Failure> {
        let account = self.forward.stats()?;
        let mut summary = Summary::new(&self.forward.directions(), &account, self.forward.pinned());
        summary.confinement.clone_from(&self.confinement);
        summary.set_filter(self.filter.as_ref());
        summary.rules = self.forward.rules()?.map(RulesCounted::of);
        Ok(summary)
    }

    fn report(&mut self) -> Result<(), Failure> {
        let summary = self.summary()?;
        self.live.iter().for_each(Live::clear);
        style::print(&report::account(&summary, style::stderr()));
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<Obeyed, String> {
        let is_confined = self.confinement.is_some() && self.args.rules.is_some();
        let rules = rules::ordered(order, "forwarding", is_confined)?;
        self.forward.replace_rules(&rules).map(|()| Obeyed::Done).map_err(|error| error.to_string())
    }

    fn changed(&mut self, changes: Vec<Change>) -> Result<(), Failure> {
        for change in changes {
            self.live.iter().for_each(Live::clear);
            if !self.args.quiet {
                style::say(format_args!("{change}"));
            }
            if let What::Filter(filter) = change.what {
                self.filter = filter;
            }
        }
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<Option<Stop>, Failure> {
        if let (Some(live), Some(time)) = (&mut self.live, self.redraw)
            && now >= time
        {
            self.redraw = Some(now + live::PERIOD);
            live.draw(&self.forward.stats()?);
        }
        Ok(None)
    }

    fn due(&self) -> Option<Instant> {
        self.redraw
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Failure> {
        let events = self.forward.wait(longest)?;
        if !events.is_empty() {
            self.live.iter().for_each(Live::clear);
        }
        for event in events {
            style::say(format_args!("{}: {event}", style::stderr().yellow("notice")));
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Failure>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Failure> {
        let stopped = self.forward.stop().map_err(Failure::from);
        let (copy, copied) = self.copying.take().map(Copying::finish).unzip();
        self.live.iter().for_each(Live::clear);
        let result = failure::ended(end, std::iter::once(stopped).chain(copied));
        let mut summary = match self.summary() {
            Ok(summary) => summary,
            Err(error) => return failure::ended(result, [Err(error)]).map(|_| ()),
        };
        summary.copy = copy;
        summary.close(result.as_ref().copied().map_err(Failure::message));
        if !self.args.quiet {
            style::print(&report::account(&summary, style::stderr()));
            if summary.goes_on.is_some() {
                style::print(&report::goes_on(self.args.names()));
            }
        }
        let printed = print_json(self.args, &summary);
        self.args.loss.end(result.and(printed), report::loss(&summary), !self.args.quiet)
    }
}

fn print_json(args: &ForwardArgs, summary: &Summary) -> Result<(), Failure> {
    if !args.json {
        return Ok(());
    }
    failure::printed(json::line(out::stdout(), summary))
}

/// Returns the packets and bits forwarded per second.
fn rates(before: &ForwardStats, now: &ForwardStats) -> (f64, f64) {
    let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    let (then, total) = (before.total(), now.total());
    let bits = crate::live::rate(then.bytes, total.bytes, seconds) * 8.0;
    (crate::live::rate(then.forwarded, total.forwarded, seconds), bits)
}
