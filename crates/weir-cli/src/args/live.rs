//! Options shared by commands that receive packets until they are stopped.

use clap::Args;
use weir::Filter;
use weir_service::session::Settings;

use super::{ConfineArgs, ControlArgs, MetricsArgs, OriginArgs, PoolArgs, ReadyArgs, UserArgs};
use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::loss::LossArgs;
use crate::stop::UntilArgs;
use crate::{hints, interfaces, spelling};

#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(crate) origin: OriginArgs,

    /// Filter, such as `tcp port 443 and net 10.0.0.0/8`.
    ///
    /// The language extends pcap-filter(7); weir-filter(7) describes it.
    #[arg(value_name = "EXPRESSION", help_heading = "Filter")]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) user: UserArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) loss: LossArgs,
    #[command(flatten)]
    pub(crate) ready: ReadyArgs,
}

impl LiveArgs {
    /// Returns the filter; `None`: every packet is wanted.
    pub(crate) fn filter(&self) -> Result<Option<Filter>, Failure> {
        if let Some(failure) = spelling::of_words(&self.words) {
            return Err(failure);
        }
        let filter = self.filter.filter(&self.words)?;
        if let (Some(filter), [word]) = (&filter, &self.words[..]) {
            interfaces::no_filter(word, filter, &self.origin.namespaces)?;
        }
        Ok(filter)
    }

    /// Returns whether there is a filter.
    pub(crate) fn has_filter(&self) -> bool {
        !self.words.is_empty() || self.filter.is_given()
    }

    /// Returns the settings of a session for `command`.
    pub(crate) fn settings(&self, command: &'static str, until: &UntilArgs) -> Settings {
        Settings {
            command,
            packets: until.count,
            duration: until.duration,
            confine: self.confine.is_on(),
            identity: self.user.identity(),
            ready: self.ready.ready_fd,
            metrics: self.metrics.metrics.clone(),
            control: self.control.socket(),
            names: false,
            reloads: false,
            warn: hints::warn,
        }
    }
}
