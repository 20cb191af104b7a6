//! Statistics beside a capture: programs of their own, which tcx runs before those of the capture. Nothing is added to the path
//! of a captured packet if there are none.

use super::{Statistics, StatisticsBuilder};
use crate::live::request::{Settings, Wanted};
use crate::{Error, Filter, Mode, Setting, SourceChoice};

/// Returns builders of statistics beside a capture of the `wanted` interfaces, which can be started once that is open.
pub(crate) fn builders(
    wanted: &[Wanted],
    settings: &Settings,
    filters: &[(String, Filter)],
) -> Result<Vec<StatisticsBuilder>, Error> {
    check(wanted, settings)?;
    let builder = |wanted: &Wanted| StatisticsBuilder {
        wanted: wanted.clone(),
        source: SourceChoice::Tc,
        // The capture has seen to it.
        promiscuous: false,
        tc_filters: settings.tc_filters,
        filters: filters.to_vec(),
        ..Statistics::on("")
    };
    let builders: Vec<_> = wanted.iter().map(builder).collect();
    builders.iter().try_for_each(StatisticsBuilder::check)?;
    Ok(builders)
}

/// Checks whether packets reach the programs that count.
fn check(wanted: &[Wanted], settings: &Settings) -> Result<(), Error> {
    if settings.mode == Mode::Exclusive {
        let why = "cannot count beside a capture in exclusive mode: its packets never reach tc, where they would be counted; \
                   try mode pass";
        return Err(Error::conflict(Setting::Filters, Setting::Mode(settings.mode), why));
    }
    if wanted.iter().any(|one| one.queues.is_some()) {
        let why = "cannot count by receive queue beside a capture: packets are counted by tc, which does not know them; \
                   try the whole interface";
        return Err(Error::conflict(Setting::Filters, Setting::Queues, why));
    }
    Ok(())
}
