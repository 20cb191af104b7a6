//! The command line: what the user typed, checked as far as words alone can be checked.
//!
//! Letters are those of tcpdump and dumpcap where these have one. Nothing here looks at the machine: that an
//! interface exists or that the pool fits into memory is for the engine to say.

mod capture;
mod count;
mod live;
mod origin;
mod pool;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Args, Parser, Subcommand};

pub(crate) use self::capture::CaptureArgs;
pub(crate) use self::count::CountArgs;
pub(crate) use self::live::LiveArgs;
pub(crate) use self::origin::OriginArgs;
pub(crate) use self::pool::PoolArgs;
use crate::bench::BenchArgs;
use crate::completions::CompletionsArgs;
use crate::control::CtlArgs;
use crate::devices::DevicesArgs;
use crate::doctor::DoctorArgs;
use crate::filter::FilterCommandArgs;
use crate::forward::ForwardArgs;
use crate::info::InfoArgs;
use crate::manual::ManualArgs;
use crate::read::ReadArgs;

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
Exit status: 0 all well, 1 it went wrong, 2 the command line is wrong, 3 packets were lost (--fail-on-loss).";

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
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Where the capture file goes.
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    pub(crate) dir: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    pub(super) fn capture(args: &[&str]) -> Result<CaptureArgs, String> {
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
}
