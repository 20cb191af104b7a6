//! The command line of `weir flows`.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use weir::flows::{Rank, Settings, export};
use weir::{Builder, Delivery, Plan, Steer, Timestamps};

use super::options::{RecordArgs, TableArgs};
use super::target::Target;
use crate::args::{LiveArgs, MORE};
use crate::interfaces::Chosen;
use crate::order::{OrderArgs, Usual};
use crate::stop::UntilArgs;
use crate::{style, units};

const EXAMPLES: &str = "\
Examples:
  weir flows -i eth0
        Show the busiest flows, updated every second.
  weir flows -i eth0 --rank retransmissions --top 40 tcp
        Show connections that send most again.
  weir flows -i eth0 --once
        Show the flows of one second, and end; --every 10s: of ten.
  weir flows -i eth0 --json > flows.jsonl
        Write an object for each flow when it ends, then the account.
  weir flows -i eth0 --json | jq 'select(.type == \"flow\" and .dport == 443) | .name'
        Print the names of TLS servers.
  weir flows -r trace.pcapng
        Show the busiest flows of a capture file.
  weir flows -r a.pcapng -r b.pcap.zst --lines --idle-timeout 5m --active-timeout 1h
        Print a line for each flow of two files together, with longer timeouts.
  weir flows -i eth0 --handlers 4 --flows 4M
        Spread flows over four threads, each with a table of a million.
  weir flows -i eth0 --kernel
        Let the kernel count all but the first packets of each flow.
  weir flows -i eth0 --to ipfix://192.0.2.7:4739 --to netflow9://192.0.2.8:2055
        Export flows to two collectors; on a terminal, show the busiest, too.
  weir flows -r trace.pcapng --to ipfix://192.0.2.7 --fields all
        Export the flows of a file, with everything that is known of them.
  weir flows -i eth0 --to 'file:/var/lib/weir/flows?every=1h&compress=zstd'
        Write flows to a file for each hour; format=parquet: for DuckDB and others.
  weir flows -i eth0 --to 'kafka://broker.example/flows?spool=/var/spool/weir'
        Send flows to a topic of Kafka; they wait on disk while brokers are away.
  weir flows -i eth0 --to 'ipfix+tls://collector.example?ca=/etc/weir/ca.pem'
        Export flows over TLS to a collector whose certificate this authority has signed.
  weir flows -r trace.pcapng --to ipfix-file:flows.ipfix
        Write the flows of a file as IPFIX messages.
  weir flows -i tap0 --inner
        Show the flows inside VXLAN, Geneve, GTP-U, GRE and IP-in-IP.

A flow has both directions of a conversation; who has sent SYN began it, else whose packet is the first. It ends when it has been silent \
(--idle-timeout), lasts too long (--active-timeout), is closed by FIN or RST, the run ends, or another one needs its room: then the flow that has been silent longest. \
Times are those of the packets, so a file gives the flows that the live traffic gave. Bytes are those of IP packets.
Every packet is in a flow, or counted as not IP, or as refused because its headers are cut.

SIGINT (Ctrl-C) or SIGTERM ends all flows, prints the account and exits; another SIGINT, a second or more later, exits at once.
SIGUSR1 prints the account so far.
Exit status: 0 success, 1 error, 2 usage error, 3 packets were lost (with --fail-on-loss).";

/// Ways that the kernel has room for with few flows.
const LEAST_WAYS: u32 = 4096;
/// Flows in a table, unless told otherwise.
const TOP: u64 = 20;
/// The time between two tables, unless told otherwise.
const EVERY: Duration = Duration::from_secs(1);
/// The heading of what people need first.
const INPUT: &str = "Input";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
#[command(mut_arg("interfaces", |interfaces| interfaces.help_heading(INPUT).display_order(0)))]
pub(crate) struct FlowsArgs {
    /// Read the packets of this capture file instead of an interface; - is standard input; may be repeated.
    ///
    /// Files are pcap or pcapng, plain or compressed; several are merged by time.
    #[arg(short, long, value_name = "FILE", help_heading = INPUT)]
    #[arg(conflicts_with_all = ["interfaces", "namespaces", "source", "mode", "force", "no_promiscuous_mode"])]
    #[arg(conflicts_with_all = ["count", "duration", "metrics", "relinquish_privileges", "ready_fd", "handlers", "every"])]
    pub(super) read: Vec<PathBuf>,

    /// Show the N busiest flows.
    ///
    /// Default: 20. With --top, --rank or --every, tables are printed into a pipe or file, too, one below the other; -r prints one.
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with_all = ["lines", "json"])]
    #[arg(allow_hyphen_values = true, help_heading = "Output")]
    top: Option<u64>,

    /// Rank flows by this; bytes unless told otherwise.
    #[arg(long, value_name = "UNIT", value_enum, conflicts_with_all = ["lines", "json"], help_heading = "Output")]
    rank: Option<RankArg>,

    /// Update the table every TIME (1s); flows that have ended since are in it once more.
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "lines")]
    #[arg(allow_hyphen_values = true, help_heading = "Output")]
    every: Option<Duration>,

    /// Print the table once, after --every, and end.
    #[arg(long, conflicts_with = "duration", help_heading = "Output")]
    pub(super) once: bool,

    /// Print a line for each flow when it ends.
    ///
    /// The default if standard output is no terminal, unless there is -r, --to, or an option of the table.
    #[arg(long, conflicts_with_all = ["json", "once"], help_heading = "Output")]
    lines: bool,

    /// Print a JSON object for each flow when it ends, then the account.
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Print only flows, errors and losses.
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    /// Print more at startup, including the sandbox in force.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    pub(super) verbose: bool,

    /// Accepted for compatibility: addresses and ports are numbers in any case.
    #[arg(short = 'n', action = ArgAction::Count, hide = true)]
    _numeric: u8,

    #[command(flatten)]
    table: TableArgs,

    /// Spread flows over N threads, each with its share of --flows.
    ///
    /// The kernel steers packets by flow (sources xdp and tc).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Flows")]
    handlers: Option<u16>,

    /// Pin the threads to these CPUs, one each: 0,1.
    #[arg(hide_short_help = true, long, value_name = "CPUS", value_delimiter = ',', requires = "handlers")]
    #[arg(help_heading = "Flows")]
    pin: Vec<u32>,

    /// Count in the kernel: copy the first eight packets of each way of a flow, and those that open or close a connection.
    ///
    /// Other packets of TCP and UDP are counted where they arrive, which costs a fraction of the time. Only the source xdp can do that, so these are received packets. Counts are read four times a
    /// second, so where a flow ends is known no more exactly than that. There is room for as many ways as a quarter of --flows, 128 bytes each; packets of others are copied.
    #[arg(long, conflicts_with_all = ["read", "handlers", "inner"], help_heading = "Flows")]
    pub(super) kernel: bool,

    /// Send flows to a collector or to Kafka when they end, or write them to files; may be repeated.
    ///
    /// ipfix://HOST:PORT, netflow9://HOST:PORT or netflow5://HOST:PORT, over UDP; ipfix+tcp://HOST:PORT; or ipfix+tls://HOST:PORT, perhaps with ?ca=FILE (authorities to
    /// trust, not the system's), cert=FILE&key=FILE (weir's own), name=NAME (in the collector's certificate), joined by & and quoted for the shell. Without a port, 4739, 2055 or 4740 (TLS). ipfix-file:FILE writes a new file of IPFIX messages. Each collector has a queue
    /// of its own; what does not fit is lost and counted, never a packet. If a collector refuses the connection, or it breaks, flows wait in the queue, and
    /// weir tries again after 1 s, 2 s, and so on up to 30 s; with -r, a collector that refuses the first connection is an error. Flows are sent from the network namespace that weir runs in, wherever the interface is.
    /// file:DIR, or file:DIR?every=1h&compress=zstd: files of JSON lines, or of Parquet with format=parquet, of 5 minutes each unless told otherwise, in
    /// DIR/sensor=HOST/day=YYYY-MM-DD/hour=HH. Files have hidden names until they are whole; then their flows are sent.
    /// kafka://HOST:PORT,HOST:PORT/TOPIC, or kafka://HOST/TOPIC?format=protobuf&spool=DIR&spool-size=1GiB: JSON, or goflow2's protobuf. Flows are sent when all replicas
    /// in sync have them; while brokers are away they wait in DIR, also for the next run, without it in memory.
    #[arg(long, value_name = "DESTINATION", help_heading = "Export")]
    pub(super) to: Vec<Target>,

    #[command(flatten)]
    records: RecordArgs,

    #[command(flatten)]
    pub(super) live: LiveArgs,
    #[command(flatten)]
    pub(super) until: UntilArgs,
    #[command(flatten)]
    pub(super) order: OrderArgs,
}

/// What `--rank` accepts.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RankArg {
    /// Bytes of both sides.
    #[default]
    Bytes,
    /// Packets of both sides.
    Packets,
    /// Bits per second, from the first packet to the last.
    Rate,
    /// Segments sent again, of both sides.
    Retransmissions,
}

/// How flows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The busiest, now and then.
    Table,
    /// Each when it ends.
    Lines,
    Json,
    /// Not at all: they are exported.
    Nothing,
}

impl FlowsArgs {
    /// Checks rules that clap cannot express.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.json && self.every.is_some() && !self.once {
            return Err("--every is about tables, and --json prints each flow when it ends: omit one of them, or add --once to end after that time".to_owned());
        }
        self.order.check(self.handlers.is_some(), false)
    }

    pub(super) fn rank(&self) -> Rank {
        match self.rank.unwrap_or_default() {
            RankArg::Bytes => Rank::Bytes,
            RankArg::Packets => Rank::Packets,
            RankArg::Rate => Rank::Rate,
            RankArg::Retransmissions => Rank::Retransmissions,
        }
    }

    pub(super) fn top(&self) -> usize {
        usize::try_from(self.top.unwrap_or(TOP)).unwrap_or(usize::MAX)
    }

    /// Returns the time between two tables.
    pub(super) fn every(&self) -> Duration {
        self.every.unwrap_or(EVERY)
    }

    /// Returns whether a table may be drawn over the last one.
    pub(super) fn is_redrawn() -> bool {
        io::stdout().is_terminal() && style::terminal()
    }

    /// Returns whether the user wants a table, wherever it goes.
    fn wants_table(&self) -> bool {
        self.once || self.top.is_some() || self.rank.is_some() || self.every.is_some()
    }

    pub(super) fn form(&self) -> Form {
        if self.json {
            Form::Json
        } else if self.lines {
            Form::Lines
        } else if self.wants_table() || Self::is_redrawn() {
            Form::Table
        } else if !self.to.is_empty() {
            Form::Nothing
        } else if self.read.is_empty() {
            Form::Lines
        } else {
            Form::Table
        }
    }

    /// Returns whether flows are sent to a collector, or to Kafka.
    pub(super) fn has_collector(&self) -> bool {
        self.to.iter().any(|target| matches!(target, Target::Collector(_) | Target::Kafka(_)))
    }

    /// Returns how flows are exported.
    pub(super) fn exported(&self) -> export::Settings {
        self.records.settings(&self.live.origin)
    }

    /// Returns the settings of each thread's table.
    pub(super) fn table(&self) -> Settings {
        self.table.settings(self.handlers.unwrap_or(1))
    }

    /// Returns the plan for the handlers; `None`: one thread does everything.
    pub(super) fn plan(&self) -> Option<Plan> {
        Some(Plan::new(self.handlers?.into()).pin(self.pin.iter().copied()))
    }

    pub(super) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        let builder = self.live.origin.builder(interfaces, Timestamps::Kernel);
        let builder = match self.handlers {
            Some(handlers) => {
                let by = if self.table.inner { Steer::Inner } else { Steer::Flow };
                self.order.apply(builder, Usual::None).steer(by, handlers.into())
            }
            None => self.order.apply(builder, Usual::TimeOrUnsorted),
        };
        let builder = if self.kernel {
            let table = self.table();
            builder.count_flows((table.flows / 4).max(LEAST_WAYS), table.idle)
        } else {
            builder
        };
        self.live.pool.apply(builder, Delivery::Adaptive)
    }
}
