//! The command line of `weir stat`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::statistics::{KeyField, StatisticsBuilder};
use weir::{Filter, SourceChoice};
use weir_service::session::Settings;

use super::file::Counting;
use super::named::{self, Named};
use super::output_options::{OutputFormat, OutputOptions};
use super::top::{Busiest, Choice};
use crate::args::{ConfineArgs, MORE, MetricsArgs, ModeArg, ReadyArgs, UserArgs};
use crate::failure::Failure;
use crate::interfaces::Chosen;
use crate::{cut_off, filter_args, grant, hints, interfaces, style, units};

const EXAMPLES: &str = "\
Examples:
  weir stat -i eth0 'dns: port 53' 'web: tcp port 443'
        Show packets and bits per second of each filter, updated every second.
  weir stat -i eth0 tcp udp icmp arp
        Without NAME: the expression is the name.
  weir stat -i eth0 'all: ' 'not mine: not host 192.0.2.1'
        An empty expression matches every packet.
  weir stat -i eth0 --every 10s --count 6 --csv 'dns: port 53' > dns.csv
        Write six lines for each filter, one every ten seconds.
  weir stat -i eth0 --json 'dns: port 53' | jq '.filters[0].packets'
        Write a JSON object per interval, then the final account.
  weir stat -i eth0 --source xdp 'syn: tcp[tcpflags] = tcp-syn'
        Count received packets before the stack.
  weir stat -i mirror0 --mode exclusive tcp udp
        Count on a mirror port; counted packets are dropped in the driver.
  weir stat -i eth0 -F services.txt
        Count the filters of a file, one in each line.
  weir stat -i eth0 --by src
        Show the ten busiest senders.
  weir stat -i eth0 --by dst,port --top 20 --busiest bytes tcp
        Show the 20 busiest pairs of destination and service, of TCP only.
  weir stat -i eth0 --sizes --gaps 'voice: udp portrange 10000-20000'
        Show how large packets are, and how far apart.
  weir stat -i eth0 --by vlan --quiet --metrics 9464
        Serve Prometheus metrics at http://127.0.0.1:9464/metrics.
  weir stat -i web/eth0 'in: inbound' 'out: outbound'
        Count in another network namespace.
  weir stat -r trace.pcapng --by src,dport
        Show the busiest pairs of sender and service in a capture file; -r - reads standard input.
  weir stat -r a.pcapng -r b.pcap.zst --every 1m --csv 'dns: port 53' > dns.csv
        Write a line for each minute of two files together.
  weir stat -i eth0,eth1 --by src
        Count on two interfaces, with the busiest senders of both together; --per-interface: of each.

On interfaces the kernel counts; no packet is copied, and every packet continues on its way, unless --mode exclusive drops it. A packet counts for each filter \
that it matches, and for (all). A super-frame built by offloads counts as one packet. Bytes are those of frames, \
without checksum, with VLAN tags.
The source tc sees both directions; xdp sees received packets, before the stack and other programs of tc.
Each filter takes a few nanoseconds per packet.
With --by, the keys shown, (rest) and (others) add up to what is counted by key. CSV and JSON have numbers of \
protocols, tables their names.

Once counting has started, weir prints a line on standard error: `IF: ...; source ...`. No packet that arrives \
later is missed. Scripts can wait with --ready-fd, systemd with Type=notify.

SIGINT (Ctrl-C) or SIGTERM prints the account and exits; another SIGINT, a second or more later, exits at once.
SIGUSR1 prints the account so far.
Exit status: 0 success, 1 error, such as the end of the last interface, 2 usage error.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct StatArgs {
    /// Filters to count, each as `NAME: EXPRESSION` or just EXPRESSION, in one word; at most 128.
    ///
    /// The language extends pcap-filter(7); weir-filter(7) describes it. Filters may overlap.
    #[arg(value_name = "FILTER")]
    filters: Vec<Named>,

    /// Count the packets of this capture file instead of an interface; - is standard input; may be repeated.
    ///
    /// Files are pcap or pcapng, plain or compressed. The interfaces of all files have their rows, as those of -i; those
    /// with the same name have them together. Numbers are those of the whole file, with rates over the time
    /// from its first packet to its last, and with --every or -c also of each interval between these. A packet that the
    /// file does not call sent counts as received. A stretch of intervals without packets is one long interval.
    #[arg(short, long, value_name = "FILE", help_heading = "Counting")]
    #[arg(conflicts_with_all = ["interfaces", "namespaces", "source", "mode", "force", "no_promiscuous_mode"])]
    #[arg(conflicts_with_all = ["duration", "metrics", "relinquish_privileges", "ready_fd"])]
    read: Vec<PathBuf>,

    /// Read more filters from FILE, one in each line; - is standard input.
    ///
    /// Each line is `NAME: EXPRESSION` or just EXPRESSION. Empty lines, and those that begin with #, are skipped.
    #[arg(short = 'F', long, value_name = "FILE", help_heading = "Counting")]
    filter_file: Option<PathBuf>,

    /// Count on this interface; may be repeated.
    ///
    /// `-i eth0,eth1` are two interfaces: each has its own rows, and (sum) has those of all together; a packet that passes
    /// both counts on both. If one is gone, its rows end, and the others go on. NAMESPACE/IF names an
    /// interface in another network namespace; a number is its position in the list of `weir capture -D`. IF@0-3 counts
    /// only receive queues 0 to 3, with the xdp source. Default: the first interface that is up and is not loopback.
    #[arg(
        short,
        long = "interface",
        value_name = "IF",
        allow_hyphen_values = true,
        help_heading = "Counting"
    )]
    interfaces: Vec<String>,

    /// Count in this network namespace; may be repeated.
    ///
    /// NS is a name known to `ip netns` or Docker, the PID of a process in the namespace, or a path.
    #[arg(long = "netns", value_name = "NS", help_heading = "Counting")]
    namespaces: Vec<String>,

    /// Show keys, sizes and gaps of each interface.
    ///
    /// By default those of several interfaces are summed up: a key has one row, with what all interfaces have counted.
    #[arg(long, help_heading = "Counting")]
    per_interface: bool,

    /// Select where packets are counted.
    #[arg(long, value_enum, default_value_t, help_heading = "Counting")]
    source: SourceArg,

    /// Set if the host gets the packets too.
    #[arg(long, value_enum, default_value_t, help_heading = "Counting")]
    mode: ModeArg,

    #[arg(hide_short_help = true, long, help = cut_off::FORCE, help_heading = "Counting")]
    force: bool,

    /// Do not enable promiscuous mode.
    #[arg(short = 'p', long, help_heading = "Counting")]
    no_promiscuous_mode: bool,

    /// Count by key as well: by these fields, together.
    ///
    /// src and dst are addresses, sport and dport ports; port is the lower of the two ports, usually that of the
    /// service; proto is the protocol over IP; vlan is the ID of the outermost tag. Fields are those of the outermost IP
    /// header. A field that a packet lacks shows as -: packets other than IP have no addresses, and fragments after the
    /// first no ports. With a filter (one at most), what that matches is counted by key, otherwise all packets.
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', help_heading = "Keys")]
    #[arg(hide_possible_values = true)]
    by: Vec<KeyField>,

    /// Show the N busiest keys of each interval, and of the whole run at the end.
    ///
    /// All other keys are summed up as (rest).
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 10, requires = "by")]
    #[arg(allow_hyphen_values = true, help_heading = "Keys")]
    top: u64,

    /// Rank keys by packets or by bytes.
    #[arg(long, value_name = "UNIT", value_enum, default_value_t, requires = "by", help_heading = "Keys")]
    busiest: Busiest,

    /// Count at most N keys.
    ///
    /// A key that was counted once stays until the end. Packets with keys that come when there are N already are counted
    /// as (others). The kernel takes about 100 bytes for each key, and 32 for each CPU.
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "by", help_heading = "Keys")]
    #[arg(allow_hyphen_values = true)]
    keys: u32,

    /// Count by size as well.
    ///
    /// Sizes are those on the wire, with the 4 bytes of the checksum, in the ranges of RMON (RFC 2819): 64, 65-127,
    /// 128-255, 256-511, 512-1023, 1024-1518; and below 64, 1519-2047, 2048-4095, 4096-9216, and above. With a filter
    /// (one at most), what that matches is counted, otherwise all packets.
    #[arg(long, help_heading = "Counting")]
    sizes: bool,

    /// Count by the gaps between packets as well.
    ///
    /// A gap is the time since the packet before, of the same direction on the same CPU; ranges are powers of two of
    /// nanoseconds. Packets that had none before on their CPU are (first). With a filter (one at most), only what that
    /// matches has gaps.
    #[arg(long, help_heading = "Counting")]
    gaps: bool,

    /// Print every TIME [default: 1s; with -r only at the end].
    #[arg(long, value_name = "TIME", value_parser = units::duration, visible_alias = "interval")]
    #[arg(allow_hyphen_values = true, help_heading = "Output")]
    every: Option<Duration>,

    /// Stop after N intervals.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, allow_hyphen_values = true)]
    #[arg(help_heading = "Stop conditions")]
    count: Option<u64>,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Stop conditions")]
    duration: Option<Duration>,

    /// Print a line per interval and filter as comma-separated values.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    csv: bool,

    /// Print a JSON object per interval, and then the final account, on standard output.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Print only errors (and what --csv or --json print).
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Print more at startup, including the sandbox in force.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    verbose: bool,

    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    confine: ConfineArgs,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    ready: ReadyArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum SourceArg {
    /// tc, or xdp where the kernel has no tc programs.
    #[default]
    Auto,
    /// Both directions, with any driver.
    Tc,
    /// Received packets only, before the stack.
    Xdp,
}

impl From<SourceArg> for SourceChoice {
    fn from(source: SourceArg) -> Self {
        match source {
            SourceArg::Auto => Self::Auto,
            SourceArg::Tc => Self::Tc,
            SourceArg::Xdp => Self::Xdp,
        }
    }
}

impl StatArgs {
    /// Returns the settings of a session.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            command: "stat",
            packets: None,
            duration: self.duration,
            confine: self.confine.is_on(),
            identity: self.user.identity(),
            ready: self.ready.ready_fd,
            metrics: self.metrics.metrics.clone(),
            control: None,
            names: false,
            reloads: false,
            warn: hints::warn,
        }
    }

    /// Returns what is printed, and when.
    pub(super) fn output_options(&self) -> OutputOptions {
        let choice = Choice { most: usize::try_from(self.top).unwrap_or(usize::MAX), by: self.busiest };
        OutputOptions {
            format: OutputFormat::new(self.json, self.csv, self.quiet),
            quiet: self.quiet,
            verbose: self.verbose,
            every: self.every,
            count: self.count,
            choice,
            apart: self.per_interface,
            conversations: false,
        }
    }

    /// Returns the files to count; none: interfaces.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.read
    }

    /// Returns what is counted in files.
    pub(super) fn counting(&self) -> Result<Counting, Failure> {
        let inputs = self.read.iter().chain(&self.filter_file);
        if inputs.filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Failure::usage("standard input (-) can be read only once"));
        }
        let file = self.filters.iter().find(|one| Path::new(&one.name).is_file());
        if let Some(file) = file.filter(|file| weir::filter::FileFilter::new(file.filter()).is_err()) {
            let message = format!("`{}` is a file, where a FILTER is expected", style::visible(&file.name));
            return Err(Failure::usage(message).hint("name each file with an -r of its own"));
        }
        Ok(Counting {
            filters: self.filters()?,
            fields: self.by.clone(),
            most_keys: self.keys,
            sizes: self.sizes,
            gaps: self.gaps,
            confine: self.confine,
        })
    }

    /// Returns the filters with their names.
    fn filters(&self) -> Result<Vec<(String, Filter)>, Failure> {
        let more = match &self.filter_file {
            Some(path) => named::lines(&filter_args::read(path)?).map_err(|error| {
                Failure::usage(format!("cannot read filters from {}: {error}", path.display()))
            })?,
            None => Vec::new(),
        };
        Ok(self.filters.iter().chain(&more).map(|named| (named.name.clone(), named.filter())).collect())
    }

    /// Returns a builder for each interface.
    pub(super) fn builders(&self) -> Result<Vec<StatisticsBuilder>, Failure> {
        if let [only] = &self.filters[..] {
            interfaces::no_filter(&only.name, &only.filter(), &self.namespaces)?;
        }
        let chosen = interfaces::chosen(&self.interfaces, &self.namespaces)?;
        if matches!(self.mode, ModeArg::Exclusive) {
            grant::more_than_capture("use --mode exclusive")?;
            if !self.force {
                cut_off::check(&chosen)?;
            }
        }
        let filters = self.filters()?;
        let builder = |interface: &Chosen| {
            let builder = interface.statistics().source(self.source.into()).mode(self.mode.into());
            let builder = builder.promiscuous(!self.no_promiscuous_mode);
            let builder = builder.by(self.by.iter().copied()).most_keys(self.keys);
            let builder = builder.sizes(self.sizes).gaps(self.gaps);
            filters.iter().fold(builder, |builder, (name, filter)| builder.filter(name, filter.clone()))
        };
        Ok(chosen.iter().map(builder).collect())
    }
}
