//! `--order`: in which order packets of several queues are taken.

use std::time::Duration;

use clap::{Args, ValueEnum};
use weir::{Builder, Window};

use crate::units;

#[derive(Debug, Args)]
#[command(next_help_heading = "Order")]
pub(crate) struct OrderArgs {
    /// Order of packets of several queues. none: each queue in order by itself. time: all queues and interfaces in order
    /// of their time stamps, for one thread; packets are held back for that, and those that come too late are counted.
    /// flow, for weir count --advanced: packets of a flow that come on one queue are handled in order, one at a time,
    /// which costs a look at each packet while a queue is too full.
    #[arg(long, value_name = "ORDER", value_enum, default_value_t, hide_possible_values = true)]
    order: OrderArg,

    /// With --order time: how long packets are held back, so that older ones of other queues can go first. 2ms unless
    /// set; 10ms with af_xdp, 30ms with af_packet, and 10ms more with --timestamps batch.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    window: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderArg {
    #[default]
    None,
    Flow,
    Time,
}

impl OrderArgs {
    /// What clap cannot say: rules between values.
    pub(crate) fn check(&self, handlers: bool, advanced: bool) -> Result<(), String> {
        match self.order {
            OrderArg::Time if handlers => {
                Err("--order time gives all packets to one thread: leave --handlers out".to_owned())
            }
            OrderArg::Flow if !advanced => Err(
                "--order flow is for weir count --advanced: without, each queue has one handler, and is in order"
                    .to_owned(),
            ),
            OrderArg::None | OrderArg::Flow if self.window.is_some() => {
                Err("--window needs --order time".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether it is that of time.
    pub(crate) fn is_by_time(&self) -> bool {
        self.order == OrderArg::Time
    }

    /// Asks for it where a capture is asked for.
    pub(crate) fn apply(&self, builder: Builder) -> Builder {
        match self.order {
            OrderArg::Time => builder.by_time(self.window.map_or(Window::Usual, Window::Of)),
            OrderArg::None | OrderArg::Flow => builder,
        }
    }

    /// What is asked of handlers.
    pub(crate) fn of_handlers(&self) -> weir::Order {
        match self.order {
            OrderArg::Flow => weir::Order::Flow,
            OrderArg::None | OrderArg::Time => weir::Order::None,
        }
    }
}
