//! The command line of `weir replay`.

use std::path::PathBuf;

use clap::Args;
use weir::filter::FileFilter;
use weir::send::{Pace, SenderBuilder};
use weir_traffic::{Addresses, Sides};

use crate::args::{ConfineArgs, MORE};
use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::interfaces;
use crate::read::Limits;
use crate::read::when::{self, When};
use crate::rewriting::RewritingArgs;
use crate::sending::{SendingArgs, Snapped, rate};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  weir replay trace.pcapng -i eth1
        Send the packets of a file as they were captured, with the same gaps.
  weir replay trace.pcapng -i eth1 --speed 10x
        Send them ten times as fast (0.5x: half as fast).
  weir replay trace.pcap -i eth1 --rate 500kpps
        Send 500,000 packets per second; --rate 2Gbps: two gigabits per second.
  weir replay trace.pcap -i eth1 --top-speed --preload --loop 100
        Read the file into memory, and send it a hundred times as fast as possible.
  weir replay trace.pcap -i eth1 --top-speed --backend live --loop 1000
        Have the kernel send copies of the packets: many times as fast.
  weir replay a.pcap b.pcapng.zst -i eth1 --from +10s --to +1m
        Merge two files by time, and send 50 seconds of them.
  weir replay trace.pcapng -i eth1 -- tcp port 443
        Send matching packets only.
  weir replay trace.pcapng -i eth1 --dry-run
        Say what would be sent and how long it would take; needs no privileges.
  weir replay trace.pcapng -i eth1 --map-ip 10.1.0.0/16=198.18.0.0/16 --map-port 80=8080 --vlan none
        Send other addresses and ports, and no VLAN tags, with right checksums.
  weir replay any.pcapng -i eth1 --dst-mac 02:00:00:00:00:01
        Send a capture of `-i any` or of a tunnel: its packets get Ethernet headers to this receiver.
  weir replay trace.pcapng -i eth1 --segment --loop 10 --unique-ips
        Cut what network cards have joined, and send ten times as many flows.
  weir replay trace.pcapng -i eth1 --second eth2 -t
        Send what clients have sent on eth1, and what servers have sent on eth2.
  weir replay trace.pcapng -i web/eth0 --json | jq .gaps
        Send in another network namespace; print how far gaps were off.

Without options for rewriting, packets are sent unchanged: to the addresses that are in them. Files are read once before the first \
packet is sent, to find packets that cannot be sent; - (standard input) is not, unless there is --preload.
No packet leaves before it is due. The gaps behind a late packet are kept, and its delay is made up for in small steps: with \
each packet a 32nd of it, or 1 % of the gap if that is more. What is beyond 1 ms is made up for at once, so the whole takes as \
long as in the file, if the machine is fast enough.
Exit status: 0 success (also after Ctrl-C), 1 error, with what was sent before, 2 usage error.";

/// Bytes of packets that are kept in memory at a pace.
const KEPT: usize = 256 << 20;

/// What to send, where and when.
#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// Capture files to send; - is standard input.
    ///
    /// Files are pcap or pcapng, plain or compressed with gzip, zstd or lz4. Several files are
    /// merged by time.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// Filter expression after --, such as -- tcp port 80.
    #[arg(last = true, value_name = "EXPRESSION")]
    words: Vec<String>,

    /// Interface to send on; NAMESPACE/IF for one in another network namespace.
    #[arg(short, long, value_name = "IF", required = true, allow_hyphen_values = true)]
    interface: String,

    /// Send what servers have sent on this interface, and the rest on -i.
    ///
    /// The client of a flow is who has sent its first SYN, which is looked for in all of the files. Without one, ports
    /// tell the server (one below 1024, or in TCP below 32768, if the other is not). Otherwise the client is who has
    /// sent the first packet.
    #[arg(long, value_name = "IF", allow_hyphen_values = true, conflicts_with_all = ["dst_mac", "src_mac"])]
    second: Option<String>,

    /// With --second: hosts with these addresses are the clients, all others servers.
    ///
    /// ADDR, CIDR or FIRST-LAST; may be given several times.
    #[arg(long, value_name = "ADDR", requires = "second")]
    clients: Vec<Addresses>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Send only the first N packets.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, help_heading = "Selection")]
    count: Option<u64>,

    /// Skip packets before TIME.
    ///
    /// TIME is as with `weir read`: `2026-11-21 13:05:00`, 13:05:00 on the day of the first packet,
    /// seconds since 1970, or +90s after the first packet.
    #[arg(long, value_name = "TIME", value_parser = when::parse, help_heading = "Selection")]
    from: Option<When>,

    /// Skip packets at TIME or later.
    ///
    /// +90s counts from --from, or from the first packet if --from is itself relative.
    #[arg(long, value_name = "TIME", value_parser = when::parse, help_heading = "Selection")]
    to: Option<When>,

    /// What to do with packets of which the capture kept only the first bytes.
    #[arg(long, value_name = "HOW", value_enum, default_value_t, help_heading = "Selection")]
    pub(super) snapped: Snapped,

    /// Send as recorded, but N times as fast: 2.5x, 0.5x.
    #[arg(short = 'x', long, value_name = "N", value_parser = units::speed, help_heading = "Pace")]
    #[arg(conflicts_with_all = ["rate", "top_speed"])]
    speed: Option<f64>,

    /// Send evenly, at this rate: 500kpps, 2Gbps.
    ///
    /// Packets per second: pps, kpps, Mpps. Bits per second: bps, kbps, Mbps, Gbps; they count whole
    /// packets as in the file.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Pace")]
    #[arg(conflicts_with = "top_speed")]
    rate: Option<Pace>,

    /// Send as fast as possible.
    #[arg(short = 't', long, help_heading = "Pace")]
    top_speed: bool,

    /// Wait for Enter before each packet.
    #[arg(long, help_heading = "Pace", conflicts_with_all = ["speed", "rate", "top_speed", "dry_run", "quiet"])]
    pub(super) step: bool,

    /// Send everything N times; 0: until Ctrl-C.
    #[arg(short = 'l', long = "loop", value_name = "N", default_value_t = 1, help_heading = "Pace")]
    rounds: u64,

    /// Read everything into memory first.
    ///
    /// A file that is read slowly does not delay packets then. Unless at top speed, files with up to 256 MiB of packets
    /// are kept in memory anyway.
    #[arg(short = 'K', long, help_heading = "Pace")]
    pub(super) preload: bool,

    /// Say what would be sent and how long it would take, and send nothing.
    #[arg(long, help_heading = "Output")]
    pub(super) dry_run: bool,

    /// Print the summary as one JSON object on standard output.
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Print only errors (and the JSON summary).
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) rewriting: RewritingArgs,

    /// Send other IP addresses in each round of --loop.
    ///
    /// Round by round, each unicast address grows by one, or by as much as it takes so that no flow was in
    /// an earlier round (with --loop 0, of the first 65,536).
    #[arg(long, help_heading = "Rewriting")]
    pub(super) unique_ips: bool,

    #[command(flatten)]
    sending: SendingArgs,

    #[command(flatten)]
    pub(super) confine: ConfineArgs,
}

impl ReplayArgs {
    /// Checks the arguments, as far as possible without opening files.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let piped = self.files.iter().filter(|file| file.as_os_str() == "-").count();
        if piped > 1 {
            return Err(Failure::usage("standard input (-) can be read only once"));
        }
        if piped > 0 && self.rounds != 1 && !self.preload {
            let message = "cannot send standard input several times: it can be read only once";
            return Err(Failure::usage(message).hint("try --preload"));
        }
        if piped > 0 && self.step {
            return Err(Failure::usage("--step and - both need standard input"));
        }
        if self.sending.is_live() && !self.top_speed {
            let message =
                "cannot keep a pace with --backend live: the kernel sends the packets one after another";
            return Err(Failure::usage(message).hint("try --top-speed, or --backend ring"));
        }
        if self.sending.is_live() && (self.step || self.second.is_some() || self.unique_ips) {
            let message = "cannot use --step, --second or --unique-ips with --backend live: the kernel sends the packets \
                           by itself";
            return Err(Failure::usage(message).hint("try --backend ring"));
        }
        if self.dry_run && self.rounds == 0 {
            return Err(Failure::usage(
                "--loop 0 goes on until Ctrl-C, so --dry-run cannot say for how long",
            ));
        }
        Ok(())
    }

    /// Whether the kernel is to send the packets.
    pub(super) fn is_live(&self) -> bool {
        self.sending.is_live()
    }

    /// Whether the files can be read twice.
    pub(super) fn surveys(&self) -> bool {
        self.files.iter().all(|file| file.is_file())
    }

    /// Returns how many bytes of packets are kept in memory from the first time that files are read. Reading them again would
    /// interrupt sending where both share a processor.
    pub(super) fn kept(&self) -> usize {
        match self.pace() {
            _ if self.dry_run => 0,
            _ if self.preload => usize::MAX,
            Pace::Top => 0,
            _ => KEPT,
        }
    }

    /// Returns the filter; `None`: all packets match.
    pub(super) fn filter(&self) -> Result<Option<FileFilter>, Failure> {
        let filter = self.filter.filter(&self.words)?.map(FileFilter::new).transpose();
        filter.map_err(|error| Failure::usage(error.to_string()))
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { count: self.count, from: self.from, to: self.to, snap_len: None }
    }

    pub(super) fn pace(&self) -> Pace {
        match self.rate {
            Some(rate) => rate,
            None if self.top_speed || self.step => Pace::Top,
            None => Pace::Recorded { speed: self.speed.unwrap_or(1.0) },
        }
    }

    /// Returns how many times everything is sent.
    pub(super) fn rounds(&self) -> u64 {
        if self.rounds == 0 { u64::MAX } else { self.rounds }
    }

    /// Returns builders for the interface and the second one.
    pub(super) fn builders(&self) -> Result<(SenderBuilder, Option<SenderBuilder>), Failure> {
        let builder = |interface: &str| {
            let (namespace, name) = interfaces::place(interface)?;
            Ok::<_, Failure>(self.sending.builder(namespace.as_ref(), &name))
        };
        Ok((builder(&self.interface)?, self.second.as_deref().map(builder).transpose()?))
    }

    /// Returns what tells clients from servers, with two interfaces.
    pub(super) fn sides(&self) -> Option<Sides> {
        self.second.as_ref().map(|_| Sides::new(self.clients.clone()))
    }
}
