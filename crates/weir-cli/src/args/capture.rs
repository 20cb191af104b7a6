//! The command line of `weir capture`.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::writer::{Format, WriterOptions};
use weir::{Builder, Delivery, Direction, Timestamps};

use super::LiveArgs;
use crate::files::FilesArgs;
use crate::interfaces::Chosen;
use crate::order::OrderArgs;
use crate::stop::UntilArgs;
use crate::units;

const CAPTURE_EXAMPLES: &str = "\
Examples:
  weir capture -i eth0 -w trace.pcapng
        Everything on eth0 into a pcapng file, until Ctrl-C. The host keeps its traffic.
  weir capture -i eth0 -i eth1 -w both.pcapng --duration 10m
        Two interfaces in one file, for ten minutes.
  weir capture -i eth0 -i eth1 --order time -w both.pcapng
        The same in the order of time: what one of them receives because the other has sent comes behind it.
  weir capture -i any --netns web -w web.pcapng
        Every interface of network namespace `web`, each frame once; `--netns 4711`: where process 4711 is.
  weir capture -i eth0 -c 1000 -s 96 -w headers.pcap --format pcap
        The first thousand packets, 96 bytes of each, for a program that reads only pcap.
  weir capture -i eth0 -w - -U | tshark -r - -Y tls.handshake
        Into another program, each batch as soon as it is there.
  weir capture -i eth0 -w 'day-%Y%m%d-%H%M.pcapng.zst' -G 1h --align --keep-size 500GB
        A compressed file for each hour of the clock; the oldest go when together they have 500 GB.
  weir capture -i eth0 -w ring.pcapng -C 100MB -W 20 -Z pcap
        The newest 20 files of 100 MB, restarts included, written by user pcap.
  weir capture -i eth0 -B 512MiB -w /mnt/nvme/burst.pcapng
        Room for a burst of 512 MiB per queue while the disk is busy.
  weir capture -i mirror0 --mode exclusive --timestamps none -w all.pcapng
        A mirror port: the packets are for weir alone, the stack never sees them.
  weir capture -i eth0 -w trace.pcapng --metrics 9464
        The account so far for Prometheus, at http://127.0.0.1:9464/metrics.
  weir capture -i eth0 --duration 10s --json -q
        The account as one JSON object; without -w packets are counted and let go.

Once everything is attached, a line for each interface says so on standard error: `IF: ..., mode ...; source ...`.
No packet that comes later is missed. Scripts wait for --ready-fd, systemd by Type=notify.

SIGINT (Ctrl-C) or SIGTERM finishes the file and ends; a second SIGINT ends at once.
SIGUSR1 prints the account so far; SIGUSR2 brings what was captured so far to the file.
Exit status: 0 all well, 1 it went wrong, 2 the command line is wrong, 3 packets were lost (--fail-on-loss).";

#[derive(Debug, Args)]
#[command(after_help = CAPTURE_EXAMPLES)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    pub(crate) live: LiveArgs,

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
    #[command(flatten)]
    pub(crate) order: OrderArgs,

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

    /// Print errors, losses and the four closing lines only.
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
        self.order.check(false, false)?;
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

    /// Whether packets are taken in the order of time: somebody who reads them as they come cannot sort them.
    pub(crate) fn is_by_time(&self) -> bool {
        self.order.is_by_time(self.to_reader())
    }

    fn to_reader(&self) -> bool {
        let is_read = |path: &Path| {
            path == Path::new("-") || fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
        };
        self.write.as_deref().is_some_and(is_read) && self.live.origin.has_times()
    }

    /// The builder that these arguments describe.
    pub(crate) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        // A file is written in large pieces; a live reader wants packets as they come.
        let usual = if self.write.is_some() && !self.packet_buffered {
            Delivery::Batched { min_bytes: 256 << 10, timeout: Duration::from_millis(200) }
        } else {
            Delivery::Adaptive
        };
        let mut builder = self.live.origin.builder(interfaces, Timestamps::Kernel).snap_len(self.snap_len);
        if let Some(direction) = self.direction {
            builder = builder.direction(direction.into());
        }
        // Who reads the file has nothing else to know it from.
        let keeps_direction = self.write.is_some() && self.format == FormatArg::Pcapng;
        builder = builder.direction_in_records(keeps_direction);
        self.live.pool.apply(self.order.apply(builder, self.to_reader()), usual)
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
    use super::super::tests::capture;
    use super::*;

    #[test]
    fn letters_of_tcpdump() {
        let args = capture(&["-i", "eth0", "-i", "eth1", "-w", "-", "-c", "5", "-s", "0", "-U", "-p", "-q"])
            .expect("parses");
        assert_eq!(args.live.origin.interfaces, ["eth0", "eth1"]);
        assert_eq!(args.write, Some(PathBuf::from("-")));
        assert_eq!((args.until.count, args.snap_len), (Some(5), 262_144));
        assert!(args.packet_buffered && args.live.origin.no_promiscuous_mode && args.quiet);
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
        assert!(capture(&["--format", "pcap"]).is_err(), "a format without a file");
        assert!(capture(&["-w", "f", "--nano", "--micro"]).is_err());
    }
}
