//! The command line of `weir capture`.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::writer::{Format, WriterOptions};
use weir::{Builder, Delivery, Direction, Timestamps};

use crate::args::{LiveArgs, MORE, WHICH_DECIDES};
use crate::files::{FilesArgs, FormatArg};
use crate::flows::BesideArgs;
use crate::interfaces::Chosen;
use crate::order::{OrderArgs, Usual};
use crate::rules::SetFile;
use crate::stat::Named;
use crate::stop::UntilArgs;
use crate::text::LineArgs;
use crate::units;

const CAPTURE_EXAMPLES: &str = "\
Examples:
  weir capture -i eth0 port 53
        Print a line for each DNS packet on eth0, as tcpdump does, until Ctrl-C.
  weir capture -i eth0 -w trace.pcapng --print
        Capture to a file and print what arrives.
  weir capture -i eth0 --json | jq '.tls_server_name // empty'
        Print a JSON object for each packet, and the summary last; here, whom TLS clients call.
  weir capture -i eth0 -w trace.pcapng
        Capture everything on eth0 until Ctrl-C. The host keeps its traffic.
  weir capture -i eth0 --rules sensor.rules -w trace.pcapng
        Capture what rules say, such as `bulk: tcp port 443 -> first 20 of each flow`, and print what each has counted.
  weir capture -i eth0 -i eth1 -w both.pcapng --duration 10m
        Capture two interfaces into one file for ten minutes, in timestamp order:
        replies follow the requests they answer.
  weir capture -i eth0@0-3 -w some.pcapng
        Capture only what arrives on receive queues 0 to 3. Combine it with ethtool -N,
        which directs flows to queues.
  weir capture -i any --netns web -w web.pcapng
        Capture on all interfaces in network namespace `web`, each frame once.
        --netns 4711 selects the namespace of process 4711.
  weir capture -i eth0 -c 1000 -s 96 -w headers.pcap
        Save the first 96 bytes of 1000 packets for a program that reads only pcap.
  weir capture -i eth0 -w - -U | tshark -r - -Y tls.handshake
        Feed packets to another program as they arrive.
  weir capture -i eth0 -w 'day-%Y%m%d-%H%M.pcapng.zst' -G 1h --align --keep-size 500GB
        Write a compressed file every hour, on the hour. Delete the oldest files
        when the total exceeds 500 GB.
  weir capture -i eth0 -w ring.pcapng -C 100MB -W 20 -Z pcap
        Keep the newest 20 files of 100 MB, across restarts, written as user pcap.
  weir capture -i eth0 --sample flow:1/100 -w sample.pcapng
        Save the packets of one in 100 flows, selected in the kernel.
  weir capture -i eth0 -w tls.pcapng --stat 'dns: port 53' --stat 'all:' tcp port 443
        Save TLS, and count other packets beside it.
  weir capture -i eth0 -w 'day-%H.pcapng' -G 1h --flows-to ipfix://192.0.2.7
        Write files, and send the flows of the same packets to a collector.
  weir capture -i eth0 -B 512MiB -w /mnt/nvme/burst.pcapng
        Buffer bursts of up to 512 MiB per queue while the disk is busy.
  weir capture -i mirror0 --mode exclusive --timestamps none -w all.pcapng
        Capture from a mirror port. Packets bypass the host's network stack.
  weir capture -i eth0 -w trace.pcapng --metrics 9464
        Serve Prometheus metrics at http://127.0.0.1:9464/metrics.

Once capturing has started, weir prints a line for each interface on standard error: \
`IF: ..., mode ...; source ...`. No packet that arrives later is missed. \
Scripts can wait with --ready-fd, systemd with Type=notify.

SIGINT (Ctrl-C) or SIGTERM completes the file and exits; another SIGINT, a second or more later, exits at once. \
Before all interfaces are open there is no file: with -w, that is an error.
A capture that only prints and loses nothing ends with one line; -v prints the whole summary.
SIGUSR1 prints the summary so far; SIGUSR2 flushes the packets captured so far to the file.
Exit status: 0 success, 1 error, 2 usage error, 3 packets were lost (with --fail-on-loss). ";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = format!("{CAPTURE_EXAMPLES}{WHICH_DECIDES}"))]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    pub(crate) live: LiveArgs,

    /// Truncate packets to SIZE bytes.
    ///
    /// Default and maximum: 262144; 0 means the maximum.
    #[arg(short, long = "snapshot-length", alias = "snaplen", value_name = "SIZE", value_parser = units::snap_len)]
    #[arg(
        default_value = "0",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "Capture"
    )]
    snap_len: u32,

    /// Capture only packets in this direction.
    ///
    /// weir refuses a direction that the source cannot see. On loopback each packet travels both
    /// ways but is captured once.
    #[arg(short = 'Q', long, value_name = "WAY", value_enum, help_heading = "Capture")]
    direction: Option<DirectionArg>,

    /// Capture by the rules in FILE instead of a filter; - is standard input.
    ///
    /// The first rule that matches says whether a packet is captured (`capture`, `sample 1/100`, `first 20 of each flow`), and what happens
    /// to it (`pass`, `block`, `bounce`, `reflect IF`); what no rule matches is not captured, and passes. The kernel applies
    /// them, by xdp or tc; with af_packet weir does, and no packet is blocked. The summary has the packets of each rule, and `weir ctl rules show` prints them meanwhile. See weir
    /// rules check --help, and docs/rules.md; weir read --rules tries rules on a file.
    #[arg(hide_short_help = true, long, value_name = "FILE", help_heading = "Capture")]
    pub(super) rules: Option<PathBuf>,

    /// With --rules, read the set @NAME from FILE; default: the file NAME beside the rules.
    #[arg(hide_short_help = true, long = "set", value_name = "NAME=FILE", value_parser = SetFile::parse)]
    #[arg(requires = "rules", help_heading = "Capture")]
    pub(super) sets: Vec<SetFile>,

    /// Show whose each packet is: `nginx[4711]`; with -w, keep in FILE what weir read --who needs for it.
    ///
    /// Lines end with the process on this host: of a packet that it has sent, the sender; of one that it has received, the receiver; of one
    /// that stays here, both: `curl[812] > nginx[4711]`. How it was found is added: nothing if it is certain; `?listener` if the process
    /// listens for the connection, which another may have accepted; `?before` if the socket is older than the
    /// capture; `nginx[4711|4712]` if it is one of these. `kernel` stands for packets of no process, `forwarded` for those of other
    /// hosts, `-` for unknown. Objects (--json) have sender and receiver. Nothing is added per packet: programs in the
    /// kernel follow the sockets of all processes, which takes about a microsecond for each socket; see docs/who.md.
    #[arg(hide_short_help = true, long, help_heading = "Capture")]
    pub(super) who: bool,

    /// Count the packets of a filter beside the capture, in the kernel; may be repeated.
    ///
    /// `NAME: EXPRESSION` or just EXPRESSION, as for weir stat. tc counts every packet, received or sent, that gets there,
    /// before the capture's filter: the numbers are in the summary, in its JSON object and in the metrics. `weir ctl stat
    /// off` and `on` switch counting while packets flow. Not with --mode exclusive, whose packets do not get there, and not
    /// with `any`. With the source xdp, GRO may have joined received packets before they are counted.
    #[arg(hide_short_help = true, long = "stat", value_name = "FILTER", help_heading = "Capture")]
    statistics: Vec<Named>,

    #[command(flatten)]
    pub(crate) until: UntilArgs,
    #[command(flatten)]
    pub(crate) order: OrderArgs,

    /// Write packets to FILE; - is standard output.
    ///
    /// Without -w, packets are printed. strftime(3) sequences such as %Y%m%d-%H%M%S in FILE expand to
    /// the local time when the file is started. If FILE is a FIFO, packets wait for a slow reader in
    /// the buffer (-B); once it is full, further ones are lost, and counted.
    #[arg(short, long, value_name = "FILE", help_heading = "Output file")]
    pub(crate) write: Option<PathBuf>,

    /// Select the file format.
    ///
    /// Default: by the extension of FILE (.pcap), otherwise pcapng.
    #[arg(hide_short_help = true, long, value_enum, requires = "write", help_heading = "Output file")]
    format: Option<FormatArg>,

    /// Print nanoseconds; in a pcap file, write nanosecond timestamps.
    ///
    /// pcapng files always have them.
    #[arg(hide_short_help = true, long, conflicts_with = "micro", help_heading = "Output file")]
    pub(crate) nano: bool,

    /// In a pcap file, write microsecond timestamps, which every reader understands (the
    /// default).
    #[arg(hide_short_help = true, long, requires = "write", help_heading = "Output file")]
    micro: bool,

    /// Flush packets as they arrive, for live readers.
    ///
    /// Printed packets always are.
    #[arg(short = 'U', long, help_heading = "Output file")]
    pub(crate) packet_buffered: bool,

    /// Store TEXT as a comment in the pcapng header.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "TEXT",
        requires = "write",
        help_heading = "Output file"
    )]
    pub(crate) comment: Option<String>,

    #[command(flatten)]
    pub(crate) files: FilesArgs,

    /// With -w, print packets as well.
    ///
    /// The file always comes first: packets that standard output is too slow for are counted, and
    /// marked by a line such as `[1,204 not printed]`. On a terminal, at most 20,000 lines a second are printed.
    #[arg(long, requires = "write", help_heading = "Output")]
    pub(crate) print: bool,

    #[command(flatten)]
    pub(crate) line: LineArgs,

    #[command(flatten)]
    pub(super) flows: BesideArgs,

    /// Print JSON: an object per packet, and the summary.
    ///
    /// Objects are those of `weir read --json`. The summary is the last. It goes to standard output, or to standard error with
    /// `-w -`.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// List the interfaces and exit.
    ///
    /// With --netns, those in that namespace.
    #[arg(short = 'D', long, help_heading = "Output")]
    #[arg(conflicts_with_all = ["interfaces", "write", "count", "duration"])]
    pub(crate) list_interfaces: bool,
}

impl CaptureArgs {
    /// Checks rules that clap cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.rules.is_some() && self.live.has_filter() {
            return Err("--rules and a filter: rules take the filter's place; try a first rule `not (FILTER) -> ignore`".to_owned());
        }
        if self.micro && !self.is_pcap() {
            return Err(
                "--micro requires --format pcap: weir's pcapng files always have nanoseconds".to_owned()
            );
        }
        if self.comment.is_some() && self.is_pcap() {
            return Err("--comment requires --format pcapng: pcap files cannot store comments".to_owned());
        }
        if self.who && self.is_pcap() && !self.prints() {
            return Err("--who requires --format pcapng or --print: pcap files keep no owners".to_owned());
        }
        if self.print && self.write.as_deref() == Some(Path::new("-")) {
            return Err("--print and -w - both use standard output; use -w FILE --print".to_owned());
        }
        self.line.check()?;
        self.order.check(false, false)?;
        self.flows.check(&self.live.origin)?;
        self.files.check(self.write.as_deref())
    }

    /// Returns the direction of the packets that the rules decide about.
    pub(super) fn ruled_direction(&self) -> Direction {
        self.direction.map_or(Direction::Both, Direction::from)
    }

    /// Returns the options of the writer.
    pub(crate) fn writer_options(&self) -> WriterOptions {
        let options = weir::with!(
            WriterOptions::default(),
            format = self.format(),
            flush_each = self.packet_buffered,
            comment = self.comment.clone(),
            user_application = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned()
        );
        self.files.apply(options, self.write.as_deref())
    }

    /// Returns the file format with its timestamp resolution.
    fn format(&self) -> Format {
        if self.is_pcap() { Format::Pcap { nanoseconds: self.nano } } else { Format::Pcapng }
    }

    fn is_pcap(&self) -> bool {
        let named = || self.write.as_deref().and_then(FormatArg::of_name);
        self.format.or_else(named) == Some(FormatArg::Pcap)
    }

    /// Returns whether packets are printed.
    pub(crate) fn prints(&self) -> bool {
        self.print || self.write.is_none()
    }

    /// Returns whether only errors, losses and the final packet counts are reported.
    pub(crate) fn is_quiet(&self) -> bool {
        self.line.quick && !self.prints()
    }

    /// Returns the order unless one is requested. Whoever reads packets live cannot sort them; those in a file can be sorted
    /// later.
    fn usual_order(&self) -> Usual {
        let is_read = |path: &Path| {
            path == Path::new("-") || fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
        };
        match self.write.as_deref() {
            _ if !self.live.origin.has_times() => Usual::None,
            Some(path) if !is_read(path) => Usual::TimeOrUnsorted,
            _ => Usual::Time,
        }
    }

    /// Returns a builder for these arguments.
    pub(crate) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        // Files are written in large pieces; a live reader wants packets as they arrive.
        let usual = if !self.prints() && !self.packet_buffered {
            Delivery::Batched { min_bytes: 256 << 10, timeout: Duration::from_millis(200) }
        } else {
            Delivery::Adaptive
        };
        let mut builder = self.live.origin.builder(interfaces, Timestamps::Kernel).snap_len(self.snap_len);
        if let Some(direction) = self.direction {
            builder = builder.direction(direction.into());
        }
        // A reader of the file has no other way to know the direction.
        let keeps_direction = self.write.is_some() && !self.is_pcap();
        builder = builder.direction_in_records(keeps_direction);
        let builder = self.live.pool.apply(self.order.apply(builder, self.usual_order()), usual);
        self.statistics.iter().fold(builder, |builder, named| builder.statistics(&named.name, named.filter()))
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DirectionArg {
    /// Received packets.
    In,
    /// Sent packets.
    Out,
    /// Both.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::capture;

    #[test]
    fn letters_of_tcpdump() {
        let args = capture(&["-i", "eth0", "-i", "eth1", "-w", "-", "-c", "5", "-s", "0", "-U", "-p", "-q"])
            .expect("parses");
        assert_eq!(args.live.origin.interfaces, ["eth0", "eth1"]);
        assert_eq!(args.write, Some(PathBuf::from("-")));
        assert_eq!((args.until.count, args.snap_len), (Some(5), 262_144));
        assert!(args.packet_buffered && args.live.origin.no_promiscuous_mode && args.is_quiet());
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
    fn rules_between_values() {
        let check = |args: &[&str]| capture(args).expect("parses").check();
        assert!(check(&["-w", "f", "--micro"]).is_err());
        assert!(check(&["-w", "f", "--format", "pcap", "--micro"]).is_ok());
        assert!(check(&["-w", "f", "--format", "pcap", "--comment", "x"]).is_err());
        assert!(check(&["-w", "f.pcap", "--micro"]).is_ok());
        assert!(check(&["-w", "f.pcap.zst", "--comment", "x"]).is_err());
        assert!(check(&["-w", "f.pcap", "--format", "pcapng", "--comment", "x"]).is_ok());
        assert!(capture(&["--format", "pcap"]).is_err(), "a format without a file");
        for option in [["--flows", "3"], ["--idle-timeout", "3s"], ["--fields", "all"], ["--domain", "3"]] {
            assert!(capture(&option).is_err(), "{option:?}: no flows");
            assert!(capture(&[&option[..], &["--flows-to", "ipfix://127.0.0.1"]].concat()).is_ok());
        }
        let timeless = ["--flows-to", "ipfix://127.0.0.1", "--timestamps", "none"];
        assert!(check(&timeless).is_err(), "flows have times");
        assert!(capture(&["-w", "f", "--nano", "--micro"]).is_err());
    }
}
