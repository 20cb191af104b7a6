//! The commands, as clap sees them.

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Parser, Subcommand};

use crate::args::WHICH_DECIDES;
use crate::capture::CaptureArgs;
use crate::completions::CompletionsArgs;
use crate::count::CountArgs;
use crate::ctl::CtlArgs;
use crate::demo::DemoArgs;
use crate::devices::DevicesArgs;
use crate::doctor::DoctorArgs;
use crate::filter::FilterCommandArgs;
use crate::flows::FlowsArgs;
use crate::forward::ForwardArgs;
use crate::generate::GenArgs;
use crate::guard::GuardArgs;
use crate::info::InfoArgs;
use crate::libpcap::{LibpcapArgs, RunArgs};
use crate::manual::ManualArgs;
use crate::read::ReadArgs;
use crate::replay::ReplayArgs;
use crate::rules::RulesArgs;
use crate::ship::ShipArgs;
use crate::sql::SqlArgs;
use crate::stat::{StatArgs, TopArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Cyan.on_default().bold())
    .usage(AnsiColor::Cyan.on_default().bold())
    .literal(Style::new().bold())
    .error(AnsiColor::Red.on_default().bold());

const EXAMPLES: &str = "\
Examples:
  weir capture -i eth0 port 53               print a line for each DNS packet, like tcpdump
  weir -i eth0 port 53; weir -r FILE         short for weir capture and weir read
  weir capture -i eth0 -w trace.pcapng       capture everything on eth0 until Ctrl-C
  weir capture -i eth0 -w - | tshark -r -    feed packets to another program
  weir read trace.pcapng                     print one line per packet, like tcpdump
  weir info trace.pcapng                     show what a file contains and what was lost
  weir count -i eth0 --per-queue             print rates and drops every second
  weir stat -i eth0 'dns: port 53'           count packets and bytes by filter, in the kernel
  weir top -i eth0                           show who talks to whom, busiest first
  weir flows -i eth0                         show flows, each with both directions
  weir guard -i eth0 --rules edge.rules      block packets by rules, in the kernel
  weir forward eth1 eth2 --both              bridge two interfaces in the kernel
  weir replay trace.pcapng -i eth1           send the packets of a file, as recorded
  weir gen -i eth1 --rate 500kpps            send test traffic
  weir run -- tcpdump -r trace.pcap          run a program with weir's libpcap
  weir devices                               list interfaces and what they support
  weir doctor                                check whether capturing works here
  sudo weir demo                             see it work, in a private network

Every packet is counted; each capture ends with a summary in which
  seen = filtered + sampled out + captured + lost + errors.
Exit status: 0 success, 1 error, 2 usage error, 3 packets were lost (with --fail-on-loss). ";

/// Lossless packet capture for Linux: no kernel module, no special hardware, every packet counted.
#[derive(Debug, Parser)]
#[command(name = "weir", version, styles = STYLES, max_term_width = 110, after_help = format!("{EXAMPLES}{WHICH_DECIDES}"))]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print packets as they arrive, or capture them to a file or pipe.
    Capture(CaptureArgs),
    /// Show packet, bit and drop rates, in total or per queue.
    Count(CountArgs),
    /// Count packets and bytes by filter or key, in the kernel or in capture files.
    Stat(StatArgs),
    /// Show who talks to whom, busiest first, on an interface or in capture files.
    Top(TopArgs),
    /// Show flows: both directions of each conversation in one record, live or of capture files.
    Flows(FlowsArgs),
    /// Ship files of flows to an S3 store, each verified.
    Ship(ShipArgs),
    /// Print SQL with which DuckDB, ClickHouse or Spark read files of flows.
    Sql(SqlArgs),
    /// Query running captures or change their filters.
    Ctl(CtlArgs),
    /// List interfaces: state, queues, driver, XDP support, attached programs.
    Devices(DevicesArgs),
    /// Check sources, kernel, privileges and interfaces, and suggest fixes.
    Doctor(DoctorArgs),
    /// Print capture files, or merge, cut, split, rewrite, convert or repair them.
    Read(ReadArgs),
    /// Show what capture files contain: packets, times, interfaces and losses.
    Info(InfoArgs),
    /// Explain a filter expression, compile it, or test it on a file.
    Filter(FilterCommandArgs),
    /// Check a rule set: what is captured, and what happens to packets.
    Rules(RulesArgs),
    /// Block packets of an interface, or let them pass, by rules in the kernel.
    Guard(GuardArgs),
    /// Forward packets from one interface to another in the kernel.
    Forward(ForwardArgs),
    /// Send the packets of capture files, as recorded or faster.
    Replay(ReplayArgs),
    /// Send test traffic from a description, or write it to a file.
    Gen(GenArgs),
    /// Run a program that uses libpcap with weir's libpcap.
    Run(RunArgs),
    /// Install weir's libpcap in a directory.
    Libpcap(LibpcapArgs),
    /// Demonstrate a capture of real traffic in a temporary private network (needs root).
    Demo(DemoArgs),
    /// Print a shell completion script.
    Completions(CompletionsArgs),
    /// Write the manual pages to a directory.
    Manual(ManualArgs),
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::CommandFactory;

    use super::*;

    pub(crate) fn capture(args: &[&str]) -> Result<CaptureArgs, String> {
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
