//! The command line: what the user typed, checked as far as words alone can be checked.
//!
//! Letters are those of tcpdump and dumpcap where these have one. Nothing here looks at the machine: that an
//! interface exists or that the pool fits into memory is for the engine to say.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use weir::writer::{Format, WriterOptions};
use weir::{Builder, Capture, DEFAULT_CHUNK_SIZE, Delivery, Direction, Mode, SourceChoice, Timestamps};

use crate::bench::BenchArgs;
use crate::completions::CompletionsArgs;
use crate::confine::ConfineArgs;
use crate::control::{ControlArgs, CtlArgs};
use crate::devices::DevicesArgs;
use crate::doctor::DoctorArgs;
use crate::files::FilesArgs;
use crate::filter::FilterCommandArgs;
use crate::filter_args::FilterArgs;
use crate::forward::ForwardArgs;
use crate::handlers::HandlersArgs;
use crate::info::InfoArgs;
use crate::interfaces::Chosen;
use crate::load::LoadArgs;
use crate::manual::ManualArgs;
use crate::metrics::MetricsArgs;
use crate::payload::Expected;
use crate::read::ReadArgs;
use crate::stop::UntilArgs;
use crate::units;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Cyan.on_default().bold())
    .usage(AnsiColor::Cyan.on_default().bold())
    .literal(Style::new().bold())
    .error(AnsiColor::Red.on_default().bold());

const EXAMPLES: &str = "\
Examples:
  weir capture -i eth0 -w trace.pcapng           everything on eth0, until Ctrl-C
  weir capture -i eth0 -w - | tshark -r -        into another program
  weir read trace.pcapng                         a line for each packet, as tcpdump prints it
  weir info trace.pcapng                         what is in a file, and where packets were lost
  weir count -i eth0 --per-queue                 rates and drops, once a second
  weir forward eth1 eth2 --both                  a bridge past this host, every packet counted
  weir devices                                   which interfaces there are, and what they can do
  weir doctor                                    whether capturing works here, and what mends it
  weir demo                                      see it work, in a network of its own

Packets are never dropped silently: every command ends with an account in which
  seen = filtered + sampled out + captured + lost + errors.
Exit status: 0 all well, 1 it went wrong, 2 the command line is wrong.";

const CAPTURE_EXAMPLES: &str = "\
Examples:
  weir capture -i eth0 -w trace.pcapng
        Everything on eth0 into a pcapng file, until Ctrl-C. The host keeps its traffic.
  weir capture -i eth0 -i eth1 -w both.pcapng --duration 10m
        Two interfaces in one file, for ten minutes.
  weir capture -i any --netns web -w web.pcapng
        Every interface of network namespace `web`, each frame once; `--netns 4711`: where process 4711 is.
  weir capture -i eth0 -c 1000 -s 96 -w headers.pcap --format pcap
        The first thousand packets, 96 bytes of each, for a program that reads only pcap.
  weir capture -i eth0 -w - -U | tshark -r - -Y tls.handshake
        Into another program, each batch as soon as it is there.
  weir capture -i eth0 -w 'day-%Y%m%d-%H%M.pcapng.zst' -G 1h --align --keep-size 500GB
        A compressed file for each hour of the clock; the oldest go when together they have 500 GB.
  weir capture -i eth0 -w ring.pcapng -C 100MB -W 20 -Z pcap
        The newest 20 files of 100 MB, written by user pcap.
  weir capture -i eth0 -B 512MiB -w /mnt/nvme/burst.pcapng
        Room for a burst of 512 MiB per queue while the disk is busy.
  weir capture -i mirror0 --mode exclusive --timestamps none -w all.pcapng
        A mirror port: the packets are for weir alone, the stack never sees them.
  weir capture -i eth0 -w trace.pcapng --metrics 9464
        The account so far for Prometheus, at http://127.0.0.1:9464/metrics.
  weir capture -i eth0 --duration 10s --json -q
        The account as one JSON object; without -w packets are counted and let go.

SIGINT (Ctrl-C) or SIGTERM finishes the file and ends; a second SIGINT ends at once.
SIGUSR1 prints the account so far.
Exit status: 0 all well, 1 it went wrong, 2 the command line is wrong.";

const COUNT_EXAMPLES: &str = "\
Examples:
  weir count -i eth0
        Packets and bits per second and what was dropped, one line a second.
  weir count -i eth0 --per-queue --interval 5s
        The same for each receive queue, every five seconds.
  weir count -i eth0 --handlers 4 --advanced --threshold 60% --load 300
        Four threads, each with its queues and some work for every packet; who is idle helps a queue that is 60 % full.
  weir count -i mirror0 --mode exclusive --active
        As fast as this machine can: the packets are for weir alone, and one core polls without sleep.
  weir count -i eth0 --duration 1m --json > rates.jsonl
        One JSON object per interval, the account as the last one.

SIGINT (Ctrl-C) or SIGTERM ends it with the account; a second SIGINT ends at once.
SIGUSR1 prints the account so far. The packets of a file: weir read --count FILE.
Exit status: 0 all well, 1 it went wrong, 2 the command line is wrong.";

const DEMO_EXAMPLES: &str = "\
Example:
  sudo weir demo --dir /var/tmp
        Shows a capture of real traffic in a private network, and leaves only the capture file behind.";

/// Lossless packet capture for Linux: no kernel module, no special card, and an account that always adds up.
#[derive(Debug, Parser)]
#[command(name = "weir", version, styles = STYLES, max_term_width = 110, after_help = EXAMPLES)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Capture packets into a file, a pipe, or just count them.
    Capture(CaptureArgs),
    /// Count packets and drops: rates per second and per queue.
    Count(CountArgs),
    /// Ask running captures, and give them other filters.
    Ctl(CtlArgs),
    /// Show the interfaces: state, queues, driver, XDP abilities, attached programs.
    Devices(DevicesArgs),
    /// Try every source and look at kernel, privileges and interfaces: what works, and what mends the rest.
    Doctor(DoctorArgs),
    /// Print packets of capture files, or write them to others: merged, cut, split, converted, repaired.
    Read(ReadArgs),
    /// Tell what is in capture files: packets, times, interfaces, and where packets were lost.
    Info(InfoArgs),
    /// Tell what a filter expression means, what it becomes, what it costs, and what it matches in a file.
    Filter(FilterCommandArgs),
    /// Forward what one interface receives to another, inside the kernel.
    Forward(ForwardArgs),
    /// Show a capture of real traffic in a private network that vanishes afterwards.
    Demo(DemoArgs),
    /// Measure this machine: how fast weir and other programs capture, side by side.
    Bench(BenchArgs),
    /// Print what a shell needs to complete weir's command line.
    Completions(CompletionsArgs),
    /// Write the manual pages.
    #[command(hide = true)]
    Manual(ManualArgs),
}

#[derive(Debug, Args)]
#[command(after_help = CAPTURE_EXAMPLES)]
pub(crate) struct CaptureArgs {
    /// Which packets are wanted, as an expression (pcap-filter(7) and more): `tcp port 443 and net 10.0.0.0/8`.
    #[arg(value_name = "EXPRESSION", help_heading = "Filter")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) control: ControlArgs,

    /// Cut packets to this many bytes; 0 means 262144, which is also the default.
    #[arg(short, long = "snapshot-length", alias = "snaplen", value_name = "SIZE", value_parser = units::snap_len)]
    #[arg(
        default_value = "0",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "What to capture"
    )]
    snap_len: u32,

    /// Which way packets go: in, out or inout. A source that sees one way only refuses the other. On the loopback each
    /// packet goes both ways, and is taken once.
    #[arg(
        short = 'Q',
        long,
        value_name = "WAY",
        value_enum,
        hide_possible_values = true,
        help_heading = "What to capture"
    )]
    direction: Option<DirectionArg>,

    #[command(flatten)]
    pub(crate) until: UntilArgs,

    /// Write packets to this file; `-` is standard output. Without it packets are counted and let go. %Y%m%d-%H%M%S and the
    /// like become the local time at which the file begins.
    #[arg(short, long, value_name = "FILE", help_heading = "Where to write")]
    pub(crate) write: Option<PathBuf>,

    /// File format.
    #[arg(long, value_enum, default_value_t, requires = "write", help_heading = "Where to write")]
    format: FormatArg,

    /// Nanosecond time stamps; pcapng always has them, `--format pcap` only with this.
    #[arg(long, conflicts_with = "micro", requires = "write", help_heading = "Where to write")]
    nano: bool,

    /// Microsecond time stamps, the default of `--format pcap` because every reader knows them.
    #[arg(long, requires = "write", help_heading = "Where to write")]
    micro: bool,

    /// Write each batch through at once, so that a reader of the file or pipe sees it.
    #[arg(short = 'U', long, requires = "write", help_heading = "Where to write")]
    pub(crate) packet_buffered: bool,

    /// A comment for the head of the pcapng file.
    #[arg(long, value_name = "TEXT", requires = "write", help_heading = "Where to write")]
    pub(crate) comment: Option<String>,

    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// Print the account as one JSON object on standard output (standard error with `-w -`).
    #[arg(long, help_heading = "What to print")]
    pub(crate) json: bool,

    /// Print errors and the four closing lines only.
    #[arg(short, long, help_heading = "What to print")]
    pub(crate) quiet: bool,

    /// Say more when it begins: what weir has confined itself to.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "What to print")]
    pub(crate) verbose: bool,

    /// List the interfaces (those of --netns) and exit.
    #[arg(short = 'D', long, help_heading = "What to print")]
    #[arg(conflicts_with_all = ["interfaces", "write", "count", "duration"])]
    pub(crate) list_interfaces: bool,
}

#[derive(Debug, Args)]
#[command(after_help = COUNT_EXAMPLES)]
pub(crate) struct CountArgs {
    /// Which packets are wanted, as an expression (pcap-filter(7) and more): `tcp port 443 and net 10.0.0.0/8`.
    #[arg(value_name = "EXPRESSION", help_heading = "Filter")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) origin: OriginArgs,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) control: ControlArgs,

    #[command(flatten)]
    pub(crate) until: UntilArgs,
    #[command(flatten)]
    pub(crate) handlers: HandlersArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,

    /// Time between two lines.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    #[arg(allow_hyphen_values = true, help_heading = "What to print")]
    pub(crate) interval: Duration,

    /// A line for each queue, too.
    #[arg(long, help_heading = "What to print")]
    pub(crate) per_queue: bool,

    /// One JSON object per interval, the account as the last one, on standard output.
    #[arg(long, help_heading = "What to print")]
    pub(crate) json: bool,

    /// Print errors and the four closing lines only (and the JSON account).
    #[arg(short, long, help_heading = "What to print")]
    pub(crate) quiet: bool,

    /// Say more when it begins: what weir has confined itself to.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "What to print")]
    pub(crate) verbose: bool,

    /// For measurements: read every byte of every packet.
    #[arg(long, hide = true)]
    pub(crate) touch: bool,

    /// For measurements: prove the lab's traffic whole, SIZE,FLOWS,FRAMES of it.
    #[arg(long, hide = true, value_name = "SIZE,FLOWS,FRAMES", conflicts_with_all = ["touch", "handlers"])]
    pub(crate) verify: Option<Expected>,
}

#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Where the capture file goes.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    pub(crate) dir: PathBuf,
}

/// Where packets come from; the same for each command that captures.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to capture")]
pub(crate) struct OriginArgs {
    /// Interface, or `any` for all of them; NAMESPACE/IF for one in another network namespace. May be repeated. Without
    /// it: the first one that is up and is not loopback.
    #[arg(short, long = "interface", value_name = "IF")]
    pub(crate) interfaces: Vec<String>,

    /// Network namespace in which the interfaces are: a name of `ip netns` or Docker, the number of a process in it, or a
    /// path. May be repeated: then each interface is captured in each.
    #[arg(long = "netns", value_name = "NS")]
    pub(crate) namespaces: Vec<String>,

    /// With `-i any`: a frame that passes a bridge, bond or VLAN also there, not only at the lowest interface.
    #[arg(long)]
    stacked: bool,

    /// What takes the packets: xdp (fastest, what arrives), tc (both directions), xdp+tc (each for one), af_packet
    /// (works everywhere), af_xdp (with --mode exclusive; zero-copy where the driver has it), or auto, which says what it
    /// chose and why.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    source: SourceArg,

    /// Capture TCP super-frames, which offloads build, as the segments that the wire carries, checksums filled in.
    #[arg(long)]
    segment: bool,

    /// Attach the tc source as on a kernel without tcx, by filters of a clsact discipline.
    #[arg(long, hide = true)]
    tc_filters: bool,

    /// pass: the host keeps its traffic. exclusive: captured packets go no further; for mirror ports.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    mode: ModeArg,

    /// Time stamps: kernel (one per packet), batch (one per batch, cheaper) or none (cheapest).
    #[arg(long, value_name = "KIND", value_enum, hide_possible_values = true)]
    timestamps: Option<TimestampsArg>,

    /// Leave the interface out of promiscuous mode (`any` never asks for it).
    #[arg(short = 'p', long)]
    no_promiscuous_mode: bool,
}

impl OriginArgs {
    /// A builder for this origin on `interfaces`, which are the ones asked for or the one found.
    pub(crate) fn builder(&self, interfaces: &[Chosen], timestamps: Timestamps) -> Builder {
        let builder = Capture::builder()
            .source(self.source.into())
            .segment(self.segment)
            .tc_filters(self.tc_filters)
            .mode(self.mode.into())
            .timestamps(self.timestamps.map_or(timestamps, Timestamps::from))
            .promiscuous(!self.no_promiscuous_mode)
            .stacked(self.stacked);
        interfaces.iter().fold(builder, |builder, chosen| chosen.add_to(builder))
    }
}

/// The pool's size and when packets are handed over.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pool and delivery")]
pub(crate) struct PoolArgs {
    /// Chunks per queue.
    #[arg(long, value_name = "R", value_parser = units::chunks, allow_hyphen_values = true)]
    chunks: Option<u32>,

    /// Size of a chunk.
    #[arg(long, value_name = "SIZE", value_parser = units::chunk_size, allow_hyphen_values = true)]
    chunk_size: Option<u32>,

    /// The whole pool of a queue, instead of --chunks; needs a unit: 64MiB.
    #[arg(short = 'B', long, value_name = "SIZE", value_parser = units::size_with_unit, allow_hyphen_values = true)]
    #[arg(conflicts_with = "chunks")]
    buffer_size: Option<u64>,

    /// Hand packets over once this much has come together ...
    #[arg(long, value_name = "SIZE", value_parser = units::size_u32, allow_hyphen_values = true)]
    min_bytes: Option<u32>,

    /// ... or this long after the first of them. Without both, the load decides.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    read_timeout: Option<Duration>,

    /// Poll without sleep: the shortest latency, at the price of a core.
    #[arg(long, conflicts_with_all = ["min_bytes", "read_timeout"])]
    active: bool,
}

impl PoolArgs {
    /// WinPcap's defaults for what the user left out of the two: 16 KiB, one second.
    const MIN_BYTES: u32 = 16 << 10;
    const TIMEOUT: Duration = Duration::from_secs(1);

    /// Fewer than this share of a pool in a chunk, and it is never full while a chunk is read and one is written.
    const FEWEST_CHUNKS: u64 = 8;

    /// Sets pool and delivery; `usual` is the delivery when the user asked for none.
    pub(crate) fn apply(&self, mut builder: Builder, usual: Delivery) -> Builder {
        if let Some(bytes) = self.buffer_size {
            let (chunks, chunk_size) = self.divide(bytes);
            builder = builder.chunks(chunks).chunk_size(chunk_size);
        } else {
            if let Some(chunks) = self.chunks {
                builder = builder.chunks(chunks);
            }
            if let Some(chunk_size) = self.chunk_size {
                builder = builder.chunk_size(chunk_size);
            }
        }
        builder.delivery(self.delivery(usual))
    }

    /// A pool of at least `bytes` as chunks, and the size of one: what was asked for, else the usual one, or smaller where
    /// the pool is.
    fn divide(&self, bytes: u64) -> (u32, u32) {
        let chunk_size = self.chunk_size.map(u64::from).unwrap_or_else(|| {
            let share = (bytes / Self::FEWEST_CHUNKS).max(1);
            (1 << share.ilog2()).clamp(4 << 10, u64::from(DEFAULT_CHUNK_SIZE))
        });
        // What is beyond u32 is beyond any memory, and the engine says so.
        let fit = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        (fit(bytes.div_ceil(chunk_size).max(2)), fit(chunk_size))
    }

    fn delivery(&self, usual: Delivery) -> Delivery {
        match (self.active, self.min_bytes, self.read_timeout) {
            (true, ..) => Delivery::Active,
            (false, None, None) => usual,
            (false, min_bytes, timeout) => Delivery::Batched {
                min_bytes: min_bytes.unwrap_or(Self::MIN_BYTES),
                timeout: timeout.unwrap_or(Self::TIMEOUT),
            },
        }
    }
}

impl CaptureArgs {
    /// What clap cannot say: rules between values.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.micro && self.format == FormatArg::Pcapng {
            return Err(
                "--micro needs --format pcap: pcapng files of weir always have nanoseconds".to_owned()
            );
        }
        if self.comment.is_some() && self.format == FormatArg::Pcap {
            return Err("--comment needs pcapng: a pcap file has no place for one".to_owned());
        }
        self.files.check(self.write.as_deref())
    }

    /// How the files are to be written.
    pub(crate) fn writer_options(&self) -> WriterOptions {
        let options = WriterOptions {
            format: self.format(),
            flush_each: self.packet_buffered,
            comment: self.comment.clone(),
            user_application: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..WriterOptions::default()
        };
        self.files.apply(options, self.write.as_deref())
    }

    /// The file format with its time stamp resolution.
    fn format(&self) -> Format {
        match self.format {
            FormatArg::Pcapng => Format::Pcapng,
            FormatArg::Pcap => Format::Pcap { nanoseconds: self.nano },
        }
    }

    /// The builder that these arguments describe.
    pub(crate) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        // A file is written in large pieces; a live reader wants packets as they come.
        let usual = if self.write.is_some() && !self.packet_buffered {
            Delivery::Batched { min_bytes: 256 << 10, timeout: Duration::from_millis(200) }
        } else {
            Delivery::Adaptive
        };
        let mut builder = self.origin.builder(interfaces, Timestamps::Kernel).snap_len(self.snap_len);
        if let Some(direction) = self.direction {
            builder = builder.direction(direction.into());
        }
        self.pool.apply(builder, usual)
    }
}

impl CountArgs {
    /// The builder that these arguments describe: no time stamps unless asked, for nobody reads them.
    pub(crate) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        self.pool.apply(self.origin.builder(interfaces, Timestamps::None), Delivery::Adaptive)
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
enum SourceArg {
    #[default]
    Auto,
    Xdp,
    Tc,
    #[value(name = "xdp+tc")]
    XdpTc,
    AfPacket,
    AfXdp,
}

impl From<SourceArg> for SourceChoice {
    fn from(source: SourceArg) -> Self {
        match source {
            SourceArg::Auto => Self::Auto,
            SourceArg::Xdp => Self::Xdp,
            SourceArg::Tc => Self::Tc,
            SourceArg::XdpTc => Self::XdpTc,
            SourceArg::AfPacket => Self::AfPacket,
            SourceArg::AfXdp => Self::AfXdp,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeArg {
    #[default]
    Pass,
    Exclusive,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Pass => Self::Pass,
            ModeArg::Exclusive => Self::Exclusive,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimestampsArg {
    Kernel,
    Batch,
    None,
}

impl From<TimestampsArg> for Timestamps {
    fn from(timestamps: TimestampsArg) -> Self {
        match timestamps {
            TimestampsArg::Kernel => Self::Kernel,
            TimestampsArg::Batch => Self::Batch,
            TimestampsArg::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DirectionArg {
    In,
    Out,
    Inout,
}

impl From<DirectionArg> for Direction {
    fn from(direction: DirectionArg) -> Self {
        match direction {
            DirectionArg::In => Self::In,
            DirectionArg::Out => Self::Out,
            DirectionArg::Inout => Self::Both,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    #[default]
    Pcapng,
    Pcap,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn capture(args: &[&str]) -> Result<CaptureArgs, String> {
        let words = ["weir", "capture"].iter().chain(args);
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Capture(args) => Ok(args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn letters_of_tcpdump() {
        let args = capture(&["-i", "eth0", "-i", "eth1", "-w", "-", "-c", "5", "-s", "0", "-U", "-p", "-q"])
            .expect("parses");
        assert_eq!(args.origin.interfaces, ["eth0", "eth1"]);
        assert_eq!(args.write, Some(PathBuf::from("-")));
        assert_eq!((args.until.count, args.snap_len), (Some(5), 262_144));
        assert!(args.packet_buffered && args.origin.no_promiscuous_mode && args.quiet);
    }

    #[test]
    fn a_wrong_value_names_its_option() {
        let table: [(&[&str], &str); 9] = [
            (&["-c", "0"], "--count <N>"),
            (&["-c", "-1"], "--count <N>"),
            (&["--chunks", "0"], "--chunks <R>"),
            (&["--chunk-size", "-1K"], "--chunk-size <SIZE>"),
            (&["-B", "64"], "--buffer-size <SIZE>"),
            (&["-s", "300000"], "--snapshot-length <SIZE>"),
            (&["--duration", "10"], "--duration <TIME>"),
            (&["--min-bytes", "5G"], "--min-bytes <SIZE>"),
            (&["--mode", "both"], "--mode <MODE>"),
        ];
        for (args, option) in table {
            let error = capture(args).expect_err("must be refused");
            assert!(error.contains(option), "{args:?}: {error}");
        }
    }

    #[test]
    fn delivery_follows_the_file() {
        let delivery = |args: &[&str]| {
            let args = capture(args).expect("parses");
            args.pool.delivery(Delivery::Adaptive)
        };
        assert!(matches!(delivery(&[]), Delivery::Adaptive));
        assert!(matches!(delivery(&["--active"]), Delivery::Active));
        assert!(
            matches!(delivery(&["--min-bytes", "64K"]), Delivery::Batched { min_bytes: 65_536, timeout } if timeout == PoolArgs::TIMEOUT)
        );
        assert!(
            matches!(delivery(&["--read-timeout", "5ms"]), Delivery::Batched { min_bytes: PoolArgs::MIN_BYTES, timeout } if timeout == Duration::from_millis(5))
        );
        assert!(capture(&["--active", "--read-timeout", "5ms"]).is_err());
    }

    #[test]
    fn a_pool_size_becomes_chunks() {
        let divide = |args: &[&str]| {
            let pool = capture(args).expect("parses").pool;
            pool.divide(pool.buffer_size.expect("-B"))
        };
        let table: [(&[&str], (u32, u32)); 6] = [
            (&["-B", "64MiB"], (64, 1 << 20)),
            (&["-B", "50MB"], (48, 1 << 20)),
            (&["-B", "2MiB"], (8, 256 << 10)),
            (&["-B", "1B"], (2, 4 << 10)),
            (&["-B", "1MiB", "--chunk-size", "1MiB"], (2, 1 << 20)),
            (&["-B", "100000T"], (u32::MAX, 1 << 20)),
        ];
        for (args, expected) in table {
            assert_eq!(divide(args), expected, "{args:?}");
        }
    }

    #[test]
    fn rules_between_values() {
        let check = |args: &[&str]| capture(args).expect("parses").check();
        assert!(check(&["-w", "f", "--micro"]).is_err());
        assert!(check(&["-w", "f", "--format", "pcap", "--micro"]).is_ok());
        assert!(check(&["-w", "f", "--format", "pcap", "--comment", "x"]).is_err());
        assert!(capture(&["--format", "pcap"]).is_err(), "a format without a file");
        assert!(capture(&["-w", "f", "--nano", "--micro"]).is_err());
    }
}
