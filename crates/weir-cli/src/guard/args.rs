//! The command line of `weir guard`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::guard::{GuardBuilder, OnExit};
use weir::{Direction, SourceChoice};
use weir_service::session::{Identity, Settings};

use super::log;
use crate::args::{ControlArgs, MORE, MetricsArgs, ReadyArgs};
use crate::failure::Failure;
use crate::interfaces::{self, Chosen};
use crate::rules::{SetFile, lifeline};
use crate::{hints, units};

const EXAMPLES: &str = "\
Examples:
  weir guard -i eth0 --rules edge.rules --dry-run
        Count what would be blocked; every packet passes.
  weir guard -i eth0 --rules edge.rules
        Put the rules in force until Ctrl-C, then print what each has counted.
  weir guard -i eth0 --rules edge.rules --confirm 60s
        Over SSH: without confirmation within a minute, the rules are off again.
  weir ctl rules replace edge.rules; weir ctl rules show
        Replace the rules while packets flow; show them with their counts.
  weir guard -i eth0 --rules edge.rules --exact 100000
        With room for exact rules, which weir ctl rules add adds while it runs.
  weir guard -i eth0 --rules edge.rules --direction in --source tc
        Only for received packets, and without XDP.
  weir guard -i eth0 --rules edge.rules --interval 10s --json
        Print an object with all counts every ten seconds, and at the end.
  weir guard -i eth0 --rules edge.rules --log blocked.pcapng
        Keep what is blocked; `weir read blocked.pcapng` or Wireshark shows by which rule.
  weir guard -i web/eth0 --rules web.rules
        In another network namespace.
  weir guard -i eth0 --rules edge.rules --on-exit closed
        Keep the rules in force however the process ends, also by kill -9 ...
  weir guard --end -i eth0
        ... until another weir guard takes over, or this takes them off; --list lists them.
  weir guard -i eth0 --rules edge.rules --metrics 9464
        Serve the counts of each rule to Prometheus at http://127.0.0.1:9464/metrics.
  echo 'tcp dst port 23 -> block' | weir guard -i eth0 --rules -
        Rules from standard input.

A rule set, of which the first rule that matches decides; what no rule matches passes:
  bad:   host in @blocklist        -> block
  ssh:   tcp port 22               -> pass
  ping:  icmp or icmp6 or arp      -> pass
  new:   tcp[tcpflags] == tcp-syn  -> block if over 100/s by src

Rules are applied below the host's network stack, to received packets and to sent ones. `inbound` and `outbound` tell them apart \
in an expression. Each packet is counted for one rule or for `no rule`. A super-frame that offloads have built \
is one packet. docs/rules.md describes the language; weir rules check finds mistakes.
Rules that would cut off the SSH connection of this shell are refused; --force allows them.
weir guard runs as the user who started it, with all privileges: it reads no packet, and only copies those that it logs.

Once the rules are in force, weir prints a line on standard error: `IF: ...; source ...`. \
Scripts can wait with --ready-fd, systemd with Type=notify. However the process ends, its programs are gone with it, and every packet passes, \
unless --on-exit closed keeps them.

SIGINT (Ctrl-C) or SIGTERM prints the account and exits; another SIGINT, a second or more later, exits at once.
SIGHUP reads the rules again. A packet meets all old rules or all new ones; rules with the same name and actions go on counting. If there are mistakes, the old rules stay in force.
SIGUSR1 prints the account so far, or confirms the rules (--confirm).
Exit status: 0 success, 1 error, such as the end of the interface, 2 usage error, such as mistakes in rules, 4 the rules were not confirmed.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct GuardArgs {
    /// Guard this interface; NAMESPACE/IF is one in another network namespace.
    #[arg(short, long, value_name = "IF", allow_hyphen_values = true, help_heading = "Guard")]
    #[arg(required_unless_present = "list")]
    interface: Option<String>,

    /// Apply the rules in FILE; - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Guard", required_unless_present_any = ["end", "list"])]
    rules: Option<PathBuf>,

    /// Read the set @NAME from FILE; default: the file NAME beside the rules.
    #[arg(long = "set", value_name = "NAME=FILE", value_parser = SetFile::parse, help_heading = "Guard")]
    pub(super) sets: Vec<SetFile>,

    /// Select where received packets meet the rules. Sent packets meet them at tc.
    #[arg(long, value_enum, default_value_t, help_heading = "Guard")]
    source: SourceArg,

    /// Apply the rules only to packets in this direction.
    ///
    /// On loopback each packet travels both ways, but meets the rules once.
    #[arg(short = 'Q', long, value_name = "WAY", value_enum, default_value_t, help_heading = "Guard")]
    direction: DirectionArg,

    /// Write blocked packets, and those of rules with `log`, to FILE (pcapng); - is standard output.
    ///
    /// Bounced and reflected packets count as blocked. Each packet has a comment: `rule bad: blocked`, `rule scan (learned): blocked`, `rule new: logged`; with
    /// --dry-run, `rule bad: would be blocked`. A packet that several rules log is there several times. At most 9216 bytes are kept of each.
    /// Packets that come faster than they are written are missing, and counted. If the file fails, logging ends, the rules stay in
    /// force, and the exit status is 1 in the end. Only the owner can read the file.
    #[arg(long, value_name = "FILE", help_heading = "Guard")]
    pub(super) log: Option<PathBuf>,

    /// Have room for N exact rules, which rules learn and `weir ctl rules add` adds.
    ///
    /// Default: 65536 if rules learn, otherwise none; at most 16777216. Each takes about 170 bytes, and where there is a table, each packet is looked up in
    /// it first. If it is full, nothing is learned or added.
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Guard")]
    exact: Option<u64>,

    /// Let every packet pass, and count what the rules would do.
    #[arg(long, help_heading = "Guard")]
    pub(super) dry_run: bool,

    #[arg(long, help = lifeline::FORCE, help_heading = "Guard")]
    pub(super) force: bool,

    /// What happens to packets when the process ends, also by kill -9.
    ///
    /// A weir guard of the same interface takes over what has stayed in force, and no packet passes unasked meanwhile. With --confirm, rules stay only once they
    /// are confirmed. Exact rules, learned and added, and what limits have counted stay until another weir guard takes over; nothing is logged, and nothing makes room in
    /// full tables. Needs root, a bpffs at /sys/fs/bpf, and for sent packets tcx (Linux 6.6).
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value_t,
        help_heading = "Guard",
        conflicts_with = "dry_run"
    )]
    on_exit: OnExitArg,

    /// Take off the rules that `--on-exit closed` has left in force on IF.
    ///
    /// IF may be a path shown by --list.
    #[arg(long, help_heading = "Guard", conflicts_with_all = ["rules", "sets", "source", "direction", "log", "exact", "dry_run", "force", "on_exit", "confirm", "duration", "interval", "json", "metrics", "control", "ready_fd"])]
    pub(super) end: bool,

    /// List the interfaces on which `--on-exit closed` keeps rules in force.
    ///
    /// Includes all named network namespaces.
    #[arg(long, help_heading = "Guard", conflicts_with_all = ["interface", "rules", "sets", "source", "direction", "log", "exact", "dry_run", "force", "on_exit", "end", "confirm", "duration", "interval", "quiet", "metrics", "control", "ready_fd"])]
    pub(super) list: bool,

    /// Take the rules off again unless they are confirmed within TIME.
    ///
    /// Press Enter, run `weir ctl confirm` or send SIGUSR1, in another session, which shows that one is still possible. Without that, the
    /// rules are off after TIME, and the exit status is 4.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Guard")]
    pub(super) confirm: Option<Duration>,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Stop conditions")]
    duration: Option<Duration>,

    /// Print the counts every TIME, too.
    #[arg(long, value_name = "TIME", value_parser = units::duration, visible_alias = "every")]
    #[arg(allow_hyphen_values = true, help_heading = "Output")]
    pub(super) interval: Option<Duration>,

    /// Print one JSON object per interval, and then the final account, on standard output.
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Print only errors and warnings (and what --json prints).
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    ready: ReadyArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum SourceArg {
    /// XDP in the driver, or tc if that is not possible or other XDP programs are there.
    #[default]
    Auto,
    /// Before the stack; nothing is spent on packets that are blocked.
    Xdp,
    /// Between driver and stack; any driver, beside any other program.
    Tc,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DirectionArg {
    /// Received packets.
    In,
    /// Sent packets.
    Out,
    /// Both.
    #[default]
    #[value(alias = "inout")]
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OnExitArg {
    /// The rules are off, and every packet passes.
    #[default]
    Open,
    /// The rules stay in force in the kernel until --end.
    Closed,
}

impl GuardArgs {
    /// Returns the interface as given.
    pub(super) fn interface(&self) -> &str {
        self.interface.as_deref().unwrap_or_default()
    }

    /// Returns the file with the rules.
    pub(super) fn rules(&self) -> &Path {
        self.rules.as_deref().unwrap_or_else(|| Path::new("-"))
    }

    /// Returns whether the rules stay in force when the process ends.
    pub(super) fn stays(&self) -> bool {
        self.on_exit == OnExitArg::Closed
    }

    /// Checks --exact, and what --log goes with.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(asked) = self.exact.filter(|asked| *asked > u64::from(GuardBuilder::MOST_EXACT)) {
            let (asked, most) = (units::grouped(asked), GuardBuilder::MOST_EXACT);
            return Err(Failure::usage(format!("cannot have room for {asked} exact rules"))
                .hint(format!("the most that are possible: --exact {most}, with about 170 bytes for each")));
        }
        let Some(file) = &self.log else { return Ok(()) };
        if file.as_os_str() == "-" && self.json {
            return Err(Failure::usage("--json and --log - both use standard output; use --log FILE"));
        }
        log::check(file)
    }

    /// Returns the interface.
    pub(super) fn chosen(&self) -> Result<Chosen, Failure> {
        let mut chosen = interfaces::chosen(&[self.interface().to_owned()], &[])?;
        match (chosen.pop(), chosen.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(Failure::usage("-i names one interface: each has a weir guard of its own")),
        }
    }

    /// Returns the direction of packets that meet the rules.
    pub(super) fn direction(&self) -> Direction {
        match self.direction {
            DirectionArg::In => Direction::In,
            DirectionArg::Out => Direction::Out,
            DirectionArg::Both => Direction::Both,
        }
    }

    pub(super) fn builder(&self, chosen: &Chosen) -> Result<GuardBuilder, Failure> {
        let source = match self.source {
            SourceArg::Auto => SourceChoice::Auto,
            SourceArg::Xdp => SourceChoice::Xdp,
            SourceArg::Tc => SourceChoice::Tc,
        };
        let builder = chosen.guard()?.source(source).direction(self.direction()).dry_run(self.dry_run);
        let on_exit = if self.stays() { OnExit::Closed } else { OnExit::Open };
        let builder = builder.on_exit(on_exit).on_trial(self.confirm.is_some());
        let builder = builder.log(self.log.as_ref().map(|_| log::RING));
        Ok(match self.exact {
            Some(most) => builder.exact(u32::try_from(most).unwrap_or(u32::MAX)),
            None => builder,
        })
    }

    /// Returns the settings of a session.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            command: "guard",
            packets: None,
            duration: self.duration,
            // It reads no packets, and loads other rules when it is asked to.
            confine: false,
            identity: Identity::Kept,
            ready: self.ready.ready_fd,
            metrics: self.metrics.metrics.clone(),
            control: self.control.socket(),
            names: false,
            reloads: true,
            warn: hints::warn,
        }
    }
}
