//! The command line of `weir top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weir::Filter;
use weir::filter::{FileFilter, SystemNames};
use weir::statistics::StatisticsBuilder;
use weir_service::session::Settings;

use super::conversations;
use super::file::Counting;
use super::output_options::{OutputFormat, OutputOptions};
use super::top::{Busiest, Choice};
use crate::args::{ConfineArgs, MORE, UserArgs};
use crate::failure::Failure;
use crate::{hints, interfaces, units};

const EXAMPLES: &str = "\
Examples:
  weir top -i eth0
        Show which two hosts exchange the most bits, updated every second.
  weir top -i eth0 --ports tcp
        Show connections, of TCP only.
  weir top -r trace.pcapng
        Show the busiest conversations of a capture file.
  weir top -i eth0 --once --duration 10s
        Print the table once, after ten seconds.
  weir top -i eth0 --duration 1m --json | jq '.conversations[0]'
        Write an object at the end.

Both ways of a conversation are in one row: > are packets and bytes from the end on the left to that on the right, < \
those back. With --ports, the end with the lower port, usually the service, is on the right. A narrow terminal has no \
room for all columns. The rows, (rest) and (others) add up to (filter), or without one to (all). On interfaces the kernel \
counts, as for weir stat --by src,dst; addresses are those of the outermost IP header, and always numbers.

SIGINT (Ctrl-C) or SIGTERM prints the totals and exits.
Exit status: 0 success, 1 error, 2 usage error.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Count only packets that match this filter expression.
    #[arg(value_name = "EXPRESSION")]
    words: Vec<String>,

    /// Count on this interface; may be repeated.
    ///
    /// Default: the first interface that is up and is not loopback. NAMESPACE/IF names an interface in another network
    /// namespace. A packet that passes two of the interfaces counts on both.
    #[arg(short, long = "interface", value_name = "IF", allow_hyphen_values = true)]
    interfaces: Vec<String>,

    /// Count the packets of this capture file; - is standard input; may be repeated.
    #[arg(short, long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["interfaces", "no_promiscuous_mode", "every", "count", "duration", "relinquish_privileges"])]
    read: Vec<PathBuf>,

    /// Tell conversations apart by ports and protocol.
    #[arg(short = 'P', long)]
    ports: bool,

    /// Show the N busiest conversations; all others are summed up as (rest).
    #[arg(long, value_name = "N", value_parser = units::count, default_value_t = 10, allow_hyphen_values = true)]
    top: u64,

    /// Rank conversations by packets or by bytes.
    #[arg(long, value_name = "UNIT", value_enum, default_value_t = Busiest::Bytes)]
    busiest: Busiest,

    /// Count at most N keys: two for each conversation. Packets beyond them are (others).
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_hyphen_values = true)]
    keys: u32,

    /// Do not enable promiscuous mode.
    #[arg(short = 'p', long)]
    no_promiscuous_mode: bool,

    /// Addresses and ports are numbers in any case.
    #[arg(short = 'n', hide = true)]
    _numeric: bool,

    /// Update the table every TIME.
    #[arg(long, value_name = "TIME", value_parser = units::duration, visible_alias = "interval")]
    #[arg(default_value = "1s", allow_hyphen_values = true)]
    every: Duration,

    /// Stop after N updates.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, allow_hyphen_values = true)]
    count: Option<u64>,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,

    /// Print only once, at the end, as into a pipe or file.
    #[arg(long)]
    once: bool,

    /// Print a JSON object at the end.
    #[arg(long)]
    json: bool,

    /// Print only errors, and the table or the object.
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    confine: ConfineArgs,
    #[command(flatten)]
    user: UserArgs,
}

impl TopArgs {
    /// Returns the files to count; none: interfaces.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.read
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            command: "top",
            packets: None,
            duration: self.duration,
            confine: self.confine.is_on(),
            identity: self.user.identity(),
            ready: None,
            metrics: None,
            control: None,
            names: false,
            reloads: false,
            warn: hints::warn,
        }
    }

    pub(super) fn output_options(&self) -> OutputOptions {
        let format = match OutputFormat::new(self.json, false, false) {
            OutputFormat::Table if self.once => OutputFormat::Lines,
            format => format,
        };
        let most = usize::try_from(self.top).unwrap_or(usize::MAX);
        OutputOptions {
            format,
            quiet: self.quiet,
            verbose: false,
            every: self.read.is_empty().then_some(self.every),
            count: self.count,
            choice: Choice { most, by: self.busiest },
            apart: false,
            conversations: true,
        }
    }

    /// Returns what is counted in files.
    pub(super) fn counting(&self) -> Result<Counting, Failure> {
        Ok(Counting {
            filters: self.filter().map(named).into_iter().collect(),
            fields: conversations::fields(self.ports),
            most_keys: self.keys,
            sizes: false,
            gaps: false,
            confine: self.confine,
        })
    }

    /// Returns a builder for each interface.
    pub(super) fn builders(&self) -> Result<Vec<StatisticsBuilder>, Failure> {
        let filter = self.filter();
        if let (Some(filter), [only]) = (&filter, &self.words[..]) {
            interfaces::no_filter(only, filter, &[])?;
        }
        if let Some(filter) = &filter {
            FileFilter::new(filter.clone()).map_err(|error| Failure::usage(error.to_string()))?;
        }
        let builder = |interface: &interfaces::Chosen| {
            let builder = interface.statistics().promiscuous(!self.no_promiscuous_mode);
            let builder = builder.by(conversations::fields(self.ports)).most_keys(self.keys);
            filter
                .clone()
                .map(named)
                .into_iter()
                .fold(builder, |builder, (name, filter)| builder.filter(name, filter))
        };
        Ok(interfaces::chosen(&self.interfaces, &[])?.iter().map(builder).collect())
    }

    fn filter(&self) -> Option<Filter> {
        let text = self.words.join(" ");
        (!self.words.is_empty()).then(|| Filter::new(text).names(SystemNames::new()))
    }
}

fn named(filter: Filter) -> (String, Filter) {
    ("filter".to_owned(), filter)
}
