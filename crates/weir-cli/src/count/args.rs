//! The command line of `weir count`.

use std::time::Duration;

use clap::Args;
use weir::{Builder, Delivery, Timestamps};

use super::{HandlersArgs, LoadArgs};
use crate::args::{LiveArgs, MORE};
use crate::check::CheckArgs;
use crate::interfaces::Chosen;
use crate::order::{OrderArgs, Usual};
use crate::stop::UntilArgs;
use crate::units;

const COUNT_EXAMPLES: &str = "\
Examples:
  weir count -i eth0
        Print packets, bits and drops per second, one line a second.
  weir count -i eth0 --per-queue --interval 5s
        Print the rates of each receive queue every five seconds.
  weir count -i eth0@2
        Count only what arrives on receive queue 2.
  weir count -i eth0 --handlers 4 --advanced --threshold 60% --load 300
        Run four threads with simulated work. Idle threads help queues
        that are more than 60% full.
  weir count -i eth0 --handlers 4 --steer flow
        Spread the flows of a single-queue device over four threads, in the kernel.
        Both directions of a flow go to the same thread.
  weir count -i mirror0 --mode exclusive --active
        Run at full speed: packets bypass the host, and one core polls without sleeping.
  weir count -i eth0 --duration 1m --json > rates.jsonl
        Write one JSON object per interval, then the final summary.
  weir count -i eth1 --check --expect 1000000 --duration 1m
        Check test traffic: what is missing, duplicate, corrupt or out of order,
        and how long it took.

Once counting has started, weir prints a line for each interface on standard error: \
`IF: ..., mode ...; source ...`. No packet that arrives later is missed. \
Scripts can wait with --ready-fd, systemd with Type=notify.
To count the packets in a file, use weir read --count FILE; to check them, weir read --check FILE.

SIGINT (Ctrl-C) or SIGTERM prints the summary and exits; another SIGINT, a second or more later, exits at once.
SIGUSR1 prints the summary so far.
Exit status: 0 success, 1 error or (with --check) missing, duplicate or corrupt frames, 2 usage error, 3 packets were lost (with --fail-on-loss). \
An error outranks lost packets, and these outrank what --check finds.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = COUNT_EXAMPLES)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) live: LiveArgs,

    #[command(flatten)]
    pub(crate) until: UntilArgs,
    #[command(flatten)]
    pub(crate) handlers: HandlersArgs,
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) check: CheckArgs,

    /// Print a line every TIME.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1s")]
    #[arg(allow_hyphen_values = true, help_heading = "Output")]
    pub(crate) interval: Duration,

    /// Also print a line for each queue.
    #[arg(long, help_heading = "Output")]
    pub(crate) per_queue: bool,

    /// Print a JSON object per interval and then the final summary on standard output.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Print only errors, losses and the final packet counts (and the JSON summary), as weir capture -w -q does.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Print more at startup, including the sandbox in force.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) verbose: bool,
}

impl CountArgs {
    /// Checks rules that clap cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (handlers, advanced) = self.handlers.wanted();
        if self.check.is_on() && handlers {
            return Err(
                "--check judges packets in the order in which they arrive, on one thread: omit --handlers"
                    .to_owned(),
            );
        }
        self.order.check(handlers, advanced)
    }

    /// Returns a builder for these arguments. Packets have no timestamps unless requested or checked, since nothing else
    /// reads them. Checked packets are in time order, because queues overtake each other.
    pub(crate) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        let checks = self.check.is_on();
        let usual_order = if checks { Usual::Time } else { Usual::None };
        let usual = if checks || self.order.is_by_time() { Timestamps::Kernel } else { Timestamps::None };
        let builder =
            self.order.apply(self.handlers.apply(self.live.origin.builder(interfaces, usual)), usual_order);
        self.live.pool.apply(builder, Delivery::Adaptive)
    }
}
