//! When a run ends, as the command line says it.

use std::time::Duration;

use clap::Args;

use crate::units;

#[derive(Debug, Args)]
#[command(next_help_heading = "Stop conditions")]
pub(crate) struct UntilArgs {
    /// Stop after exactly N packets.
    #[arg(short = 'c', long, value_name = "N", value_parser = units::count, allow_hyphen_values = true)]
    pub(crate) count: Option<u64>,

    /// Stop after TIME: 500ms, 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    pub(crate) duration: Option<Duration>,
}
