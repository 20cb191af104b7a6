//! The command line of `weir count`.

use std::time::Duration;

use clap::Args;
use weir::{Builder, Delivery, Timestamps};

use super::LiveArgs;
use crate::handlers::HandlersArgs;
use crate::interfaces::Chosen;
use crate::load::LoadArgs;
use crate::order::OrderArgs;
use crate::payload::Expected;
use crate::stop::UntilArgs;
use crate::units;

const COUNT_EXAMPLES: &str = "\
Examples:
  weir count -i eth0
        Packets and bits per second and what was dropped, one line a second.
  weir count -i eth0 --per-queue --interval 5s
        The same for each receive queue, every five seconds.
  weir count -i eth0 --handlers 4 --advanced --threshold 60% --load 300
        Four threads, each with its queues and some work for every packet; who is idle helps a queue that is 60 % full.
  weir count -i eth0 --handlers 4 --steer flow
        A device with one queue: the kernel's program spreads flows over four threads, each flow, both ways, on one.
  weir count -i mirror0 --mode exclusive --active
        As fast as this machine can: the packets are for weir alone, and one core polls without sleep.
  weir count -i eth0 --duration 1m --json > rates.jsonl
        One JSON object per interval, the account as the last one.

Once everything is attached, a line for each interface says so on standard error: `IF: ..., mode ...; source ...`.
No packet that comes later is missed. Scripts wait for --ready-fd, systemd by Type=notify.

SIGINT (Ctrl-C) or SIGTERM ends it with the account; a second SIGINT ends at once.
SIGUSR1 prints the account so far. The packets of a file: weir read --count FILE.
Exit status: 0 all well, 1 it went wrong, 2 the command line is wrong, 3 packets were lost (--fail-on-loss).";

#[derive(Debug, Args)]
#[command(after_help = COUNT_EXAMPLES)]
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

    /// Print errors, losses and the four closing lines only (and the JSON account).
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

impl CountArgs {
    /// What clap cannot say: rules between values.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (handlers, advanced) = self.handlers.wanted();
        self.order.check(handlers, advanced)
    }

    /// The builder that these arguments describe: no time stamps unless asked, for nobody else reads them.
    pub(crate) fn builder(&self, interfaces: &[Chosen]) -> Builder {
        let usual = if self.order.is_by_time(false) { Timestamps::Kernel } else { Timestamps::None };
        let builder =
            self.order.apply(self.handlers.apply(self.live.origin.builder(interfaces, usual)), false);
        self.live.pool.apply(builder, Delivery::Adaptive)
    }
}
