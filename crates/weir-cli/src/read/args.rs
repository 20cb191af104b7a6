//! The command line of `weir read`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use weir::filter::FileFilter;
use weir::reader::FileKind;
use weir::writer::{Compression, Format};

use super::choice::Limits;
use super::input::{Input, Sort};
use super::ruled::Rules;
use super::split::{self, Split};
use super::stream::StreamArgs;
use super::when::{self, When};
use super::who::{Who, WhoArgs};
use crate::args::ConfineArgs;
use crate::args::MORE;
use crate::check::CheckArgs;
use crate::failure::Failure;
use crate::files::FormatArg;
use crate::filter_args::FilterArgs;
use crate::rewriting::RewritingArgs;
use crate::rules::{RuleNames, SetFile};
use crate::text::LineArgs;
use crate::{files, units};

const EXAMPLES: &str = "\
Examples:
  weir read trace.pcapng
        Print one line per packet, like tcpdump.
  weir read eth0.pcapng eth1.pcap.zst -tttt
        Merge two files by time and print dates. Compressed files are read directly.
  weir read trace.pcapng --from '2026-11-21 13:05:00' --to +2h -w evening.pcapng
        Extract two hours. +2h counts from --from, or from the first packet without it.
  weir read trace.pcapng -w trace.pcap
        Convert to the format given by the extension (or by --format).
  tcpdump -w - | weir read - --json | jq 'select(.dns) | .dns.query'
        Read standard input as one JSON object per packet, and print what DNS is asked for.
  weir read trace.pcapng --json | jq -c 'select(.dhcp) | .dhcp | [.type, .client_mac, .your_address]'
        Show who was given which address.
  weir read --follow ring.pcapng -- port 53
        Print what a running capture adds to its ring of files.
  weir read big.pcapng --split-by time:1h -w hour.pcapng
        Split into hour-00001.pcapng, hour-00002.pcapng, ...
  weir read broken.pcapng --repair -w whole.pcapng
        Save everything intact in a damaged or truncated file; report the rest.
  weir read trace.pcapng --map-ip 10.1.0.0/16=198.18.0.0/16 --vlan none -w other.pcapng
        Write a copy with other addresses, without VLAN tags, and with right checksums. Filters see
        packets as they are in trace.pcapng.
  weir read trace.pcapng --anonymise @key --zero-payload -w vendor.pcapng
        Write a copy to give away: other addresses, no payload. Make the key with
        head -c 32 /dev/urandom > key, and keep it: it gives the same addresses in the next file.
  weir read trace.pcapng --stream 0
        Print what the first TCP connection says, both ways, like Wireshark's Follow Stream;
        udp:0 is the first of UDP, 10.0.0.1:4321-10.0.0.2:80 one with these ends.
  weir read trace.pcapng --stream 0 --raw --way back -w answer.bin
        Save only what the other end answered.
  weir read trace.pcapng --rules edge.rules
        Try rules on a file: each line ends with the rule and its decisions, as in [bad: capture, block],
        and a table has packets and bytes by rule. -w FILE writes what they would capture.
  weir read trace.pcapng --who --process nginx
        Print whose packets are, and only those of nginx, of a file that was captured with --who.
  weir read trace.pcapng --count
        Print only the number of packets.
  weir read trace.pcapng --check --expect 1000000
        Check test traffic: what is missing, duplicate, corrupt or out of order,
        and how long it took.
  weir read trace.pcapng -w web.pcapng -- tcp port 80 or tcp port 443
        Save matching packets. The filter can also be given with -f or -F, or as in
        tcpdump: weir read -r trace.pcapng tcp port 80

Addresses and ports are numeric, unless there is --names. Lines are those of tcpdump -nr; \
with --interfaces they begin with the interface. \
[N lost before] marks where the capture lost packets.
SIGINT (Ctrl-C) ends the process. If standard input is a pipe, weir first reads what the other program still has, for two seconds \
at most; another Ctrl-C, a second or more later, exits at once.
Exit status: 0 success, 1 a file is damaged or unreadable (intact parts were read), or (with --check) frames are missing, \
duplicate or corrupt, 2 usage error.";

/// What to read, and what to make of it.
#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct ReadArgs {
    /// Capture files to read; - is standard input.
    ///
    /// Files are pcap or pcapng, plain or compressed with gzip, zstd or lz4. Several files are
    /// merged by time.
    #[arg(required_unless_present = "read", value_name = "FILE")]
    files: Vec<OsString>,

    /// Filter expression after --, such as -- tcp port 80.
    ///
    /// With -r, the -- can be omitted.
    #[arg(last = true, value_name = "EXPRESSION")]
    words: Vec<String>,

    /// Read this capture file, as in tcpdump; all other words form the filter.
    #[arg(short = 'r', long, value_name = "FILE", help_heading = "Selection")]
    read: Vec<PathBuf>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Apply the rules in FILE, and show what they decide about each packet.
    ///
    /// Each line ends with the name of the rule and what it decides: `[bad: capture, block]`; objects
    /// (--json) have rule, capture and fate. With -w, only the packets that the rules capture are
    /// written; with --count, only those are counted. The summary has packets and bytes by rule. A filter
    /// comes first: rules do not see other packets. See weir rules check --help, and docs/rules.md.
    #[arg(long, value_name = "FILE", help_heading = "Selection")]
    #[arg(conflicts_with_all = ["repair", "check", "stream"])]
    rules: Option<PathBuf>,

    /// With --rules, read the set @NAME from FILE; default: the file NAME beside the rules.
    #[arg(hide_short_help = true, long = "set", value_name = "NAME=FILE", value_parser = SetFile::parse)]
    #[arg(requires = "rules", help_heading = "Selection")]
    sets: Vec<SetFile>,

    /// Stop after N packets.
    #[arg(short = 'c', value_name = "N", value_parser = units::count, help_heading = "Selection")]
    pub(super) count: Option<u64>,

    /// Skip packets before TIME.
    ///
    /// TIME is a date and time such as `2026-11-21 13:05:00`, local or with a time zone; a time
    /// such as 13:05:00 on the day of the first packet; seconds since 1970; or +90s after the first
    /// packet. With -w, the copy tells of the losses that its packets tell of: those of the first one
    /// may have begun before TIME.
    #[arg(long, value_name = "TIME", value_parser = when::parse, help_heading = "Selection")]
    pub(super) from: Option<When>,

    /// Skip packets at TIME or later.
    ///
    /// +90s counts from --from, or from the first packet if --from is itself relative.
    #[arg(long, value_name = "TIME", value_parser = when::parse, help_heading = "Selection")]
    pub(super) to: Option<When>,

    /// Truncate packets to SIZE bytes.
    #[arg(short, long = "snapshot-length", alias = "snaplen", value_name = "SIZE", value_parser = units::snap_len)]
    #[arg(help_heading = "Selection")]
    pub(super) snap_len: Option<u32>,

    /// Sort packets that are less than TIME out of order; none: do not sort.
    ///
    /// A capture from several queues with --order none, or in a rush, is in order only within each queue. By default, weir sorts its own files: within
    /// 1s when printing, completely with -w, which reads the files one extra time. Piped input is not sorted.
    #[arg(long, value_name = "TIME", value_parser = sort, help_heading = "Selection")]
    sort: Option<Sort>,

    /// Stay with a file that is being written, and print what is added.
    ///
    /// When the next file of its ring begins, weir moves on to it. FILE may also be the name that
    /// was given to -w: weir then starts with the newest file. Packets are in the order of the file;
    /// capture with --order time if all must be sorted. With --to, weir ends once it has met a later packet
    /// (that matches the filter) and no more are waiting. A note tells if a ring deleted files
    /// unread; a line such as `[at least 65,536 bytes not read: overwritten]` stands for what it overwrote (tcpdump's does).
    #[arg(long, help_heading = "Selection")]
    #[arg(conflicts_with_all = ["write", "only_count", "repair", "sort", "check"])]
    pub(super) follow: bool,

    #[command(flatten)]
    pub(super) line: LineArgs,

    /// Begin lines with the interface.
    ///
    /// In or Out follows if the file records the direction. An interface without a name is #0, #1, ...
    #[arg(hide_short_help = true, long, help_heading = "Line format")]
    pub(super) interfaces: bool,

    /// Print one JSON object per packet.
    ///
    /// With --check, print one with the result.
    ///
    /// Objects omit fields that the packet does not have; line is what is printed without --json. src, dst, sport, dport, proto and vlan are called as in weir stat
    /// --by; src_mac and dst_mac are the hardware addresses. Besides these and lengths there are, of the payload: dns
    /// (id, response, rcode, query, query_type, answers), tls_server_name, tls_version, alpn, http (method, host, path,
    /// version, status, reason, user_agent, content_type), sip (method, uri, status, reason, from, to, call_id, cseq,
    /// cseq_method, user_agent, server, content_type), dhcp (type, id, response, client_mac, client_address, your_address,
    /// next_server, relay, requested_address, server_id, lease_seconds, host_name, fqdn, vendor_class, subnet_mask, routers,
    /// name_servers, domain) and dhcp6 (type, id, client_duid, addresses, prefixes, fqdn, name_servers). Words are those of
    /// the protocols: A, NXDOMAIN, INVITE, ACK. A message in several segments of TCP is told with the last; what the first
    /// says of it already, and what is left of one that is cut, has "incomplete":true.
    #[arg(long, conflicts_with_all = ["write", "only_count"], help_heading = "Output")]
    pub(super) json: bool,

    /// Print only the number of packets.
    #[arg(long = "count", conflicts_with_all = ["write", "check"], help_heading = "Output")]
    pub(super) only_count: bool,

    /// Write packets to FILE; - is standard output.
    #[arg(short = 'w', long, value_name = "FILE", conflicts_with = "check", help_heading = "Output")]
    pub(super) write: Option<PathBuf>,

    /// Select the file format.
    ///
    /// Default: by the extension of FILE (.pcap, .pcapng), otherwise that of the first input file.
    #[arg(long, value_name = "FORMAT", value_enum, requires = "write", help_heading = "Output")]
    format: Option<FormatArg>,

    /// Compress with zstd, zstd:LEVEL, lz4 or gzip, or not at all with none.
    ///
    /// A FILE that ends in .zst, .lz4 or .gz is compressed without this option. Wireshark 4.0 reads .lz4 and .gz, but
    /// only the beginning of .zst.
    #[arg(long, value_name = "KIND", value_parser = files::compression, requires = "write")]
    #[arg(help_heading = "Output")]
    compress: Option<Compression>,

    /// Split by time:1h, size:100MB, count:N, flow or interface.
    ///
    /// Each file's label becomes part of its name. A file of `any` is split by the interfaces that packets passed.
    #[arg(long = "split-by", value_name = "WHAT", value_parser = split::parse, requires = "write")]
    #[arg(help_heading = "Output")]
    pub(super) split: Option<Split>,

    /// With --split-by, stop with an error before a file beyond N.
    ///
    /// Default: 1000 with flow and interface, of which the input decides how many there are; otherwise no limit.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = units::count, requires = "split")]
    #[arg(help_heading = "Output", allow_hyphen_values = true)]
    pub(super) max_files: Option<u64>,

    /// Save what is intact in a damaged file elsewhere (-w).
    ///
    /// Copies intact blocks of one damaged or truncated file unchanged, and reports what is lost.
    #[arg(long, requires = "write", help_heading = "Output")]
    #[arg(conflicts_with_all = ["count", "from", "to", "snap_len", "sort", "format", "split", "compress", "nano", "micro", "json"])]
    #[arg(conflicts_with_all = ["filter", "filter_file", "words"])]
    pub(super) repair: bool,

    /// Print nanoseconds; keep them when writing pcap.
    #[arg(long, conflicts_with = "micro", help_heading = "Output")]
    pub(super) nano: bool,

    /// Write microsecond timestamps to pcap, for older programs.
    #[arg(hide_short_help = true, long, help_heading = "Output")]
    micro: bool,

    #[command(flatten)]
    pub(super) rewriting: RewritingArgs,

    #[command(flatten)]
    pub(super) who: WhoArgs,

    #[command(flatten)]
    pub(super) stream: StreamArgs,

    #[command(flatten)]
    pub(super) check: CheckArgs,

    /// Do not let packets wait in a compressed file either.
    ///
    /// Lines and packets are always written when no more packets are waiting in a pipe; with -U,
    /// compressed ones, too, before a piece is full.
    #[arg(
        hide_short_help = true,
        short = 'U',
        long,
        overrides_with = "packet_buffered",
        help_heading = "Output"
    )]
    pub(super) packet_buffered: bool,

    #[command(flatten)]
    pub(super) confine: ConfineArgs,
}

impl ReadArgs {
    /// Returns the files to read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        match self.read.is_empty() {
            true => self.files.iter().map(PathBuf::from).collect(),
            false => self.read.clone(),
        }
    }

    /// Returns the output file, if there is exactly one and it is not a repaired copy.
    pub(super) fn single(&self) -> Option<&Path> {
        self.write
            .as_deref()
            .filter(|path| *path != Path::new("-") && self.split.is_none() && !self.repair)
            .filter(|_| self.stream.wanted().is_none())
    }

    /// Returns the files that are read besides those with packets and rules: the filter, and the key of `--anonymise`.
    pub(super) fn other_files(&self) -> Vec<PathBuf> {
        [self.filter.file(), self.rewriting.key_file()].into_iter().flatten().map(Path::to_owned).collect()
    }

    /// Returns the filter, whose names are looked up by `names`; `None`: all packets match.
    pub(super) fn filter(&self, names: RuleNames) -> Result<Option<FileFilter>, Failure> {
        let mut words = Vec::new();
        if !self.read.is_empty() {
            words.extend(self.files.iter().map(|word| word.to_string_lossy().into_owned()));
        }
        words.extend(self.words.iter().cloned());
        let filter = self.filter.filter_by(&words, names)?.map(FileFilter::new).transpose();
        filter.map_err(|error| Failure::usage(error.to_string()))
    }

    /// Returns the rules, and all that they name.
    pub(super) fn rules(&self) -> Result<Option<Rules>, Failure> {
        let Some(path) = &self.rules else { return Ok(None) };
        let mut rules = Rules::read(path, &self.sets, self.filter.netmask())?;
        rules.wants_all = self.prints();
        rules.snap_len = self.snap_len.filter(|_| !self.rewriting.is_on());
        rules.is_told = !(self.line.quick && self.write.is_some());
        Ok(Some(rules))
    }

    /// Checks the arguments, as far as possible without opening files.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let files = self.files();
        let standard_input = files.iter().filter(|file| file.as_os_str() == "-").count();
        let rules = usize::from(self.rules.as_deref() == Some(Path::new("-")));
        if standard_input + rules > 1 {
            return Err(Failure::usage("standard input (-) can be read only once"));
        }
        if self.repair && files.len() > 1 {
            return Err(Failure::usage("--repair takes one file; repair each, then merge them"));
        }
        if self.split.is_some() && self.write.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(Failure::usage("--split-by writes several files; name a file with -w, not -"));
        }
        files::named_as_asked(self.compress, self.write.as_deref()).map_err(Failure::usage)?;
        if self.follow && (files.len() > 1 || standard_input > 0) {
            return Err(Failure::usage("--follow takes one file; standard input is followed anyway"));
        }
        if self.rewriting.is_on() && (self.repair || self.check.is_on()) {
            let option = if self.repair { "--repair" } else { "--check" };
            let message = format!("cannot rewrite packets with {option}, which takes them as they are");
            return Err(Failure::usage(message).hint("write a copy with -w first"));
        }
        self.stream.check(self.write.as_deref())?;
        self.line.check().map_err(Failure::usage)?;
        Ok(())
    }

    /// Returns what finds owners in the input, which has this order and filter; `None`: they are not wanted.
    pub(super) fn who(&self, sort: Sort, filter: Option<&FileFilter>) -> Result<Option<Who<'_>>, Failure> {
        Who::open(&self.who, &self.files(), (sort, filter), self.follow, self.write.is_some())
    }

    /// Returns which packets are selected, besides the filter.
    pub(super) fn limits(&self) -> Limits {
        // Headers that are cut cannot be changed, and rules see whole packets.
        let snap_len = self.snap_len.filter(|_| !self.rewriting.is_on() && self.rules.is_none());
        Limits { count: self.count, from: self.from, to: self.to, snap_len }
    }

    /// Returns how packets are sorted; counting does not need it.
    pub(super) fn sort(&self) -> Sort {
        self.sort.unwrap_or_else(|| match (self.prints(), self.only_count) {
            (true, _) => Sort::ByQueue,
            // Rules remember, so that the order matters.
            (_, true) if self.rules.is_none() => Sort::Never,
            _ => Sort::Looked,
        })
    }

    /// Returns whether text is printed to standard output while reading.
    pub(super) fn prints(&self) -> bool {
        let lines = !self.only_count && !self.check.is_on() && self.stream.wanted().is_none();
        self.write.is_none() && lines
    }

    /// Returns the format of the output file.
    pub(super) fn format(&self, input: &Input) -> Format {
        let named = || self.write.as_deref().and_then(FormatArg::of_name);
        let pcap = match self.format.or_else(named) {
            Some(format) => format == FormatArg::Pcap,
            None => input.first().is_some_and(|first| matches!(first.format().kind, FileKind::Pcap(_))),
        };
        if pcap { Format::Pcap { nanoseconds: self.nano } } else { Format::Pcapng }
    }

    /// Returns the compression of the output file.
    pub(super) fn compression(&self) -> Compression {
        let named = || self.write.as_deref().and_then(Compression::of_name);
        self.compress.or_else(named).unwrap_or_default()
    }

    /// Returns whether pcap files keep nanoseconds; `None`: only if the input has any.
    pub(super) fn resolution(&self) -> Option<bool> {
        match (self.nano, self.micro) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// Parses `--sort`.
fn sort(text: &str) -> Result<Sort, String> {
    if text == "none" {
        return Ok(Sort::Never);
    }
    units::duration(text).map(Sort::Within).map_err(|error| format!("{error}; or `none`"))
}
