//! The options of tables and of exported records, which captures have, too.

use std::time::Duration;

use clap::Args;
use weir::Sample;
use weir::flows::Settings;
use weir::flows::export::{self, Fields, NoSuchField, Sampling};
use weir_filter::spelling::nearest;

use crate::args::OriginArgs;
use crate::units;

/// Which flows there are.
#[derive(Clone, Debug, Args)]
pub(super) struct TableArgs {
    /// Keep at most N flows; 4k and 1M are 4,000 and 1,000,000.
    ///
    /// When there are more, those that have been silent longest end. A flow takes 188 bytes, names apart.
    #[arg(long = "flows", value_name = "N", value_parser = most_flows, default_value = "1M")]
    #[arg(allow_hyphen_values = true, help_heading = "Flows")]
    flows: u32,

    /// End flows that have been silent for TIME.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "15s")]
    #[arg(allow_hyphen_values = true, help_heading = "Flows")]
    idle_timeout: Duration,

    /// End flows after TIME; their next packet begins another one.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "60s")]
    #[arg(allow_hyphen_values = true, help_heading = "Flows")]
    active_timeout: Duration,

    /// Show the flows inside tunnels, not those of the outer packets.
    #[arg(long, help_heading = "Flows")]
    pub(super) inner: bool,

    /// Let packets of several interfaces belong to one flow, as behind a tap with an interface for each direction.
    ///
    /// A packet that passes two interfaces then counts twice in its flow.
    #[arg(hide_short_help = true, long, help_heading = "Flows")]
    across_interfaces: bool,

    /// Do not read what applications say in the first packets of a flow.
    #[arg(hide_short_help = true, long, help_heading = "Flows")]
    no_names: bool,
}

/// What is exported of a flow.
#[derive(Clone, Debug, Args)]
pub(super) struct RecordArgs {
    /// Export these fields: basic, nprobe, all, or names of IPFIX, with commas between them.
    ///
    /// NetFlow v9 has fewer, NetFlow v5 always the same.
    #[arg(long, value_name = "FIELD,...", value_parser = fields, requires = "to", default_value = "basic")]
    #[arg(help_heading = "Export")]
    fields: Fields,

    /// Export a record for each direction, not one for both; NetFlow always has two.
    #[arg(hide_short_help = true, long, requires = "to", help_heading = "Export")]
    uniflow: bool,

    /// Say that it is exporter N: the observation domain or source ID.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        requires = "to",
        default_value_t = 0,
        help_heading = "Export"
    )]
    domain: u32,
}

impl TableArgs {
    /// Returns the settings of the table of each thread.
    pub(super) fn settings(&self, threads: u16) -> Settings {
        Settings {
            flows: self.flows.div_ceil(threads.into()),
            idle: self.idle_timeout,
            active: self.active_timeout,
            inner: self.inner,
            across_interfaces: self.across_interfaces,
            names: !self.no_names,
        }
    }
}

impl RecordArgs {
    /// Returns how flows are exported. Interfaces are not known yet.
    pub(super) fn settings(&self, origin: &OriginArgs) -> export::Settings {
        let sampling = origin.sample().map(|sample| match sample {
            Sample::OneIn(n) => Some(Sampling::OneIn(n)),
            Sample::Probability(p) => Some(Sampling::Probability(p)),
            Sample::FlowsOneIn(n) => Some(Sampling::FlowsOneIn(n)),
            _ => None,
        });
        export::Settings {
            fields: self.fields.clone(),
            domain: self.domain,
            uniflow: self.uniflow,
            sampling: sampling.flatten(),
            ..export::Settings::default()
        }
    }
}

/// The most flows: a table of 19 GiB.
const MOST: u64 = 100_000_000;

fn fields(text: &str) -> Result<Fields, String> {
    text.parse().map_err(|error: NoSuchField| {
        let meant = nearest(&error.0, Fields::names()).unwrap_or("basic, nprobe or all");
        format!("{error}; try {meant}")
    })
}

fn most_flows(text: &str) -> Result<u32, String> {
    let wrong = || format!("allowed: 1 to {MOST}, such as 65536, 500k or 1M");
    let (digits, unit) = match text.strip_suffix(['k', 'K', 'm', 'M']) {
        Some(digits) if text.ends_with(['k', 'K']) => (digits, 1000),
        Some(digits) => (digits, 1_000_000),
        None => (text, 1),
    };
    let flows = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    flows
        .filter(|flows| (1..=MOST).contains(flows))
        .and_then(|flows| u32::try_from(flows).ok())
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_misspells_a_field_is_told_the_right_one() {
        for (wrong, right) in [
            ("octetDelta", "octetDeltaCount"),
            ("sourceIP4Address", "sourceIPv4Address"),
            ("bsaic", "basic"),
            ("nothing like it", "basic, nprobe or all"),
        ] {
            let said = fields(wrong).expect_err("it is wrong");
            assert_eq!(said, format!("cannot export {wrong}: no such field; try {right}"));
        }
    }

    #[test]
    fn numbers_of_flows_have_units() {
        assert_eq!(
            (most_flows("1M"), most_flows("500k"), most_flows("7")),
            (Ok(1_000_000), Ok(500_000), Ok(7))
        );
        for text in ["0", "", "M", "1G", "-1", "1.5M", "101M", "99999999999999999999k"] {
            assert!(most_flows(text).is_err(), "{text}");
        }
    }
}
