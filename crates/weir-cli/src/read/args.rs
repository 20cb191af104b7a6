//! The command line of `weir read`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, ValueEnum};
use weir::filter::FileFilter;
use weir::reader::FileKind;
use weir::writer::{Compression, Format};
use weir_dissect::{Dump, Options};

use super::clock::Style;
use super::input::{Input, Sort};
use super::lines::Below;
use super::split::{self, Split};
use super::when::{self, When};
use crate::confine::ConfineArgs;
use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::{files, units};

const EXAMPLES: &str = "\
Examples:
  weir read trace.pcapng
        A line for each packet, in tcpdump's words.
  weir read eth0.pcapng eth1.pcap.zst -tttt
        Two files merged by time, with dates. Compressed files are read as they are.
  weir read trace.pcapng --from '2026-11-21 13:05:00' --to +2h -w evening.pcapng
        What falls into a time; +2h counts from there, without --from from the first packet.
  weir read trace.pcapng -w trace.pcap
        Convert: the name says the format, or --format does.
  tcpdump -w - | weir read - --json | jq 'select(.protocol == \"dns\") | .line'
        Standard input, and an object a packet for programs.
  weir read big.pcapng --split-by time:1h -w hour.pcapng
        hour-00001.pcapng, hour-00002.pcapng, ... Or by size:100MB, count:1000000, flow, interface.
  weir read broken.pcapng --repair -w whole.pcapng
        Everything that is whole in a cut or damaged file, and what had to be left out.
  weir read trace.pcapng --count
        The number of packets, and nothing else.
  weir read trace.pcapng -w web.pcapng -- tcp port 80 or tcp port 443
        Only what matches a filter (pcap-filter(7), and more). Or -f 'tcp port 80', -F FILE, and as
        tcpdump: weir read -r trace.pcapng tcp port 80.

Addresses and ports are numbers always: nothing is looked up. In front stand the interface,
where there are several, and In or Out, where the file knows. [N lost before]: there the
capture lost packets.
Exit status: 0 all well, 1 a file is damaged or cannot be read (what is whole was read),
2 the command line is wrong.";

/// What to read, and what to make of it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(super) confine: ConfineArgs,

    /// Capture files, pcap or pcapng, also compressed by gzip, zstd or lz4; several are merged by time. -: standard input.
    #[arg(required_unless_present = "read", value_name = "FILE")]
    files: Vec<OsString>,

    /// A filter expression behind --, as words: -- tcp port 80. With -r the -- is not needed.
    #[arg(last = true, value_name = "EXPRESSION")]
    words: Vec<String>,

    /// A capture file, as tcpdump has it: then all words that are no options are the filter.
    #[arg(short = 'r', long, value_name = "FILE", help_heading = "What to take")]
    read: Vec<PathBuf>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Stop after this many packets.
    #[arg(short = 'c', value_name = "N", value_parser = units::count, help_heading = "What to take")]
    pub(super) count: Option<u64>,

    /// Leave out what is before: `2026-11-21 13:05:00`, with a zone or local; 13:05:00 on the day of
    /// the first packet; seconds since 1970; +90s after the first packet.
    #[arg(long, value_name = "TIME", value_parser = when::parse, help_heading = "What to take")]
    pub(super) from: Option<When>,

    /// Leave out what is at this time or later. +90s counts from --from, unless that is +TIME: then from the first packet.
    #[arg(long, value_name = "TIME", value_parser = when::parse, help_heading = "What to take")]
    pub(super) to: Option<When>,

    /// Cut packets to this many bytes.
    #[arg(short, long = "snapshot-length", alias = "snaplen", value_name = "SIZE", value_parser = units::snap_len)]
    #[arg(help_heading = "What to take")]
    pub(super) snap_len: Option<u32>,

    /// Put packets in the order of time, as far as they are apart by less than this; none: leave them as they stand. A
    /// capture from several queues is in order only queue by queue: unless told, printing sorts files of weir within 1s, and
    /// -w however far queues are apart, for which it reads them once before. What comes by a pipe stays as it is.
    #[arg(long, value_name = "TIME", value_parser = sort, help_heading = "What to take")]
    sort: Option<Sort>,

    /// Times: -t none, -tt seconds since 1970, -ttt since the packet before, -tttt with date, -ttttt since the first.
    #[arg(short = 't', action = ArgAction::Count, help_heading = "Lines")]
    times: u8,

    /// The link-layer header, too: hardware addresses, VLAN tags.
    #[arg(short = 'e', help_heading = "Lines")]
    link: bool,

    /// More: time to live, identification, whether checksums are right.
    #[arg(short, long, help_heading = "Lines")]
    verbose: bool,

    /// Less of each protocol; with -w no summary.
    #[arg(short, long = "quiet", help_heading = "Lines")]
    pub(super) quick: bool,

    /// Addresses and ports as numbers: always so, accepted for the habit.
    #[arg(short = 'n', action = ArgAction::Count, hide = true)]
    _numeric: u8,

    /// TCP sequence numbers as they are, not counted from the connection's first.
    #[arg(short = 'S', long = "absolute-tcp-sequence-numbers", help_heading = "Lines")]
    absolute: bool,

    /// Number the lines.
    #[arg(short = '#', long, help_heading = "Lines")]
    pub(super) number: bool,

    /// Bytes in hexadecimal below each line; -xx with the link-layer header.
    #[arg(short = 'x', action = ArgAction::Count, help_heading = "Lines")]
    hex: u8,

    /// The same with text beside; -XX with the link-layer header.
    #[arg(short = 'X', action = ArgAction::Count, help_heading = "Lines")]
    hex_ascii: u8,

    /// The packet as text below each line; -AA with the link-layer header.
    #[arg(short = 'A', action = ArgAction::Count, help_heading = "Lines")]
    ascii: u8,

    /// One JSON object a packet; fields that a packet does not have are absent.
    #[arg(long, conflicts_with_all = ["write", "only_count"], help_heading = "Other output")]
    pub(super) json: bool,

    /// Print only the number of packets.
    #[arg(long = "count", conflicts_with = "write", help_heading = "Other output")]
    pub(super) only_count: bool,

    /// Write the packets to a file; -: standard output.
    #[arg(short = 'w', long, value_name = "FILE", help_heading = "Other output")]
    pub(super) write: Option<PathBuf>,

    /// Format of the file; without it what the name ends in (.pcap, .pcapng), else that of the first file read.
    #[arg(long, value_name = "FORMAT", value_enum, requires = "write", help_heading = "Other output")]
    format: Option<FormatArg>,

    /// Compress: zstd, zstd:LEVEL, lz4, gzip or none. A FILE that ends in .zst, .lz4 or .gz asks for it, too.
    #[arg(long, value_name = "KIND", value_parser = files::compression, requires = "write")]
    #[arg(help_heading = "Other output")]
    compress: Option<Compression>,

    /// Several files instead of one: time:1h, size:100MB, count:N, flow, interface; their labels go into the name.
    #[arg(long = "split-by", value_name = "WHAT", value_parser = split::parse, requires = "write")]
    #[arg(help_heading = "Other output")]
    pub(super) split: Option<Split>,

    /// Save what is whole of one cut or damaged file to a new one (-w), block by block as it stands; says what is lost.
    #[arg(long, requires = "write", help_heading = "Other output")]
    #[arg(conflicts_with_all = ["count", "from", "to", "snap_len", "sort", "format", "split", "compress", "nano", "micro", "json"])]
    #[arg(conflicts_with_all = ["filter", "filter_file", "words"])]
    pub(super) repair: bool,

    /// Nanoseconds: nine decimals in lines; a pcap file that keeps them.
    #[arg(long, conflicts_with = "micro", help_heading = "Other output")]
    pub(super) nano: bool,

    /// Microseconds in a pcap file, as older programs want them.
    #[arg(long, help_heading = "Other output")]
    micro: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Pcapng,
    Pcap,
}

impl ReadArgs {
    /// The files to read.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        match self.read.is_empty() {
            true => self.files.iter().map(PathBuf::from).collect(),
            false => self.read.clone(),
        }
    }

    /// The only file that will be written; `None`: there is none, there are several, or it is made by who repairs one.
    pub(super) fn single(&self) -> Option<&Path> {
        self.write.as_deref().filter(|path| *path != Path::new("-") && self.split.is_none() && !self.repair)
    }

    /// Which packets are wanted; `None`: all.
    pub(super) fn filter(&self) -> Result<Option<FileFilter>, Failure> {
        let mut words = Vec::new();
        if !self.read.is_empty() {
            words.extend(self.files.iter().map(|word| word.to_string_lossy().into_owned()));
        }
        words.extend(self.words.iter().cloned());
        let filter = self.filter.filter(&words)?.map(FileFilter::new).transpose();
        filter.map_err(|error| Failure::usage(error.to_string()))
    }

    /// What words alone can tell to be wrong.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let files = self.files();
        let standard_input = files.iter().filter(|file| file.as_os_str() == "-").count();
        if standard_input > 1 {
            return Err(Failure::usage("standard input (-) can be read only once"));
        }
        if self.repair && files.len() > 1 {
            return Err(Failure::usage("--repair takes one file; repair each, then merge them"));
        }
        if self.split.is_some() && self.write.as_ref().is_some_and(|path| path.as_os_str() == "-") {
            return Err(Failure::usage("--split-by makes several files; name one with -w, not -"));
        }
        files::named_as_asked(self.compress, self.write.as_deref()).map_err(Failure::usage)?;
        let dumps = [self.hex, self.hex_ascii, self.ascii].into_iter().filter(|&times| times > 0).count();
        if dumps > 1 {
            return Err(Failure::usage("-x, -X and -A exclude each other"));
        }
        Ok(())
    }

    /// Whether packets are put in order: to be counted they need not be.
    pub(super) fn sort(&self) -> Sort {
        self.sort.unwrap_or_else(|| match (self.prints(), self.only_count) {
            (true, _) => Sort::ByQueue,
            (_, true) => Sort::Never,
            _ => Sort::Looked,
        })
    }

    /// Text goes to standard output while it reads.
    pub(super) fn prints(&self) -> bool {
        self.write.is_none() && !self.only_count
    }

    pub(super) fn style(&self) -> Style {
        Style::of_count(self.times)
    }

    pub(super) fn dissect(&self) -> Options {
        Options {
            link: self.link,
            verbose: self.verbose,
            quick: self.quick,
            absolute: self.absolute,
            no_dump: self.hex > 0 || self.hex_ascii > 0,
        }
    }

    pub(super) fn below(&self) -> Below {
        [(self.hex, Dump::Hex), (self.hex_ascii, Dump::HexAscii), (self.ascii, Dump::Ascii)]
            .into_iter()
            .find(|(times, _)| *times > 0)
            .map(|(times, dump)| (dump, times > 1))
    }

    /// The format of the file to be written.
    pub(super) fn format(&self, input: &Input) -> Format {
        let first = input.first();
        let name =
            self.write.as_deref().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
        let ends = |suffix: &str| {
            ["", ".zst", ".gz", ".lz4"].iter().any(|packed| name.ends_with(&format!("{suffix}{packed}")))
        };
        let pcap = match self.format {
            Some(FormatArg::Pcap) => true,
            Some(FormatArg::Pcapng) => false,
            None if ends(".pcap") => true,
            None if ends(".pcapng") => false,
            None => first.is_some_and(|first| matches!(first.format().kind, FileKind::Pcap(_))),
        };
        if pcap { Format::Pcap { nanoseconds: self.nano } } else { Format::Pcapng }
    }

    /// How the file is to be compressed.
    pub(super) fn compression(&self) -> Compression {
        let named = || self.write.as_deref().and_then(Compression::of_name);
        self.compress.or_else(named).unwrap_or_default()
    }

    /// Whether a pcap file is to keep nanoseconds; `None`: if there are any.
    pub(super) fn resolution(&self) -> Option<bool> {
        match (self.nano, self.micro) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// `--sort`.
fn sort(text: &str) -> Result<Sort, String> {
    if text == "none" {
        return Ok(Sort::Never);
    }
    units::duration(text).map(Sort::Within).map_err(|error| format!("{error}; or `none`"))
}
