//! Options that several commands share, checked as far as possible without looking at the machine.
//!
//! Option letters are those of tcpdump and dumpcap where these have one. Whether an interface exists or the pool fits
//! into memory is checked by the engine.
//!
//! `-h` shows the first paragraph of an option's comment, on one screen, and hides options that few users need.
//! `--help` and the manual pages show everything.

mod live;
mod origin;
mod pool;
mod service;

pub(crate) use self::live::LiveArgs;
pub(crate) use self::origin::{ModeArg, OriginArgs, SourceArg};
pub(crate) use self::pool::PoolArgs;
pub(crate) use self::service::{ConfineArgs, ControlArgs, MetricsArgs, ReadyArgs, UserArgs};

/// The end of `-h`, which leaves out options and examples.
pub(crate) const MORE: &str = "Use --help for all options and examples.";

/// Follows the exit statuses.
pub(crate) const WHICH_DECIDES: &str = "\
If several things fail, the first decides. An error outranks lost packets, which are still reported. \
Ending on a signal, or because the reader closed the output, is not an error.";
