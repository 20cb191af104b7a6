//! `--order`: the order in which packets of several queues are processed.

use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::{Builder, Window};

use crate::units;

#[derive(Debug, Args)]
#[command(next_help_heading = "Capture")]
pub(crate) struct OrderArgs {
    /// Order packets from several queues.
    ///
    /// Default: time for weir capture and weir count --check; otherwise none. With -w FILE, order yields:
    /// while a buffer (-B) is more than half full because sorting takes too long, packets are written as
    /// they come. The file and the summary then say which are not in order, and how to sort them.
    #[arg(long, value_name = "ORDER", value_enum)]
    order: Option<OrderArg>,

    /// With --order time, hold packets back for TIME so that older ones can go first.
    ///
    /// Default: 2ms; 10ms with af_xdp, 30ms with af_packet; --timestamps batch adds 10ms. A single
    /// queue of xdp or tc is in order anyway.
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    window: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    /// Each queue in its own order.
    None,
    /// For weir count --advanced: handle packets of a flow on one queue in order, one at a time;
    /// inspects each packet while a queue is too full.
    Flow,
    /// All queues and interfaces by timestamp, on one thread; holds packets back for --window and
    /// counts late ones. If requested, also where it takes more time than there is.
    Time,
}

/// The order if none is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usual {
    None,
    Time,
    /// By time while there is time to sort.
    TimeOrUnsorted,
}

impl OrderArgs {
    /// Checks rules that clap cannot express.
    pub(crate) fn check(&self, handlers: bool, advanced: bool) -> Result<(), String> {
        match self.order {
            Some(OrderArg::Time) if handlers => {
                Err("--order time uses one thread: omit --handlers".to_owned())
            }
            Some(OrderArg::Flow) if !advanced => Err(
                "--order flow requires weir count --advanced: without it, each queue has one handler and is in order anyway"
                    .to_owned(),
            ),
            order if order != Some(OrderArg::Time) && self.window.is_some() => {
                Err("--window requires --order time".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether time order is requested.
    pub(crate) fn is_by_time(&self) -> bool {
        self.order == Some(OrderArg::Time)
    }

    /// Returns how long packets are held back at most, if that is more than usual.
    pub(crate) fn held_back(&self) -> Duration {
        self.window.unwrap_or_default()
    }

    /// Configures time order if requested, or if it is `usual`.
    pub(crate) fn apply(&self, builder: Builder, usual: Usual) -> Builder {
        let by_time = |builder: Builder| builder.by_time(self.window.map_or(Window::Usual, Window::Of));
        match (self.order, usual) {
            (Some(OrderArg::Time), _) | (None, Usual::Time) => by_time(builder),
            (None, Usual::TimeOrUnsorted) => by_time(builder).or_unsorted(),
            (Some(OrderArg::None | OrderArg::Flow), _) | (None, Usual::None) => builder,
        }
    }

    /// Returns the order for handlers.
    pub(crate) fn of_handlers(&self) -> weir::Order {
        match self.order {
            Some(OrderArg::Flow) => weir::Order::Flow,
            Some(OrderArg::None | OrderArg::Time) | None => weir::Order::None,
        }
    }
}
