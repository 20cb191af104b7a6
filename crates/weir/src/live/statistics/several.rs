//! Statistics of several interfaces at once.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use weir_sys::CallError;

use super::{Statistics, StatisticsBuilder};
use crate::live::namespace::here;
use crate::live::request::{Opening, Wanted};
use crate::live::side_by_side::side_by_side;
use crate::{Error, Event};

/// Practically infinite.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };

impl Statistics {
    /// Starts to count on several interfaces. Their events have the numbers of the builders.
    ///
    /// # Errors
    ///
    /// An interface is named twice, or one of them cannot be counted on, as told by [`StatisticsBuilder::start`]. Nothing
    /// stays attached.
    pub fn start_all(builders: impl IntoIterator<Item = StatisticsBuilder>) -> Result<Vec<Self>, Error> {
        Self::start_all_telling(builders, |_| ControlFlow::Continue(()))
    }

    /// Does the same, and calls `tell` on this thread before each interface: many take seconds, although several are opened
    /// at a time. [`ControlFlow::Break`] ends the start.
    ///
    /// # Errors
    ///
    /// Those of [`start_all`](Self::start_all), and [`Error::Interrupted`] if `tell` has ended it. Nothing stays attached.
    pub fn start_all_telling(
        builders: impl IntoIterator<Item = StatisticsBuilder>,
        mut tell: impl FnMut(Opening<'_>) -> ControlFlow<()>,
    ) -> Result<Vec<Self>, Error> {
        let builders: Vec<_> = builders.into_iter().zip(0..).collect();
        let identity =
            |wanted: &Wanted| wanted.namespace.as_ref().map_or_else(here, |one| Some(one.identity()));
        let mut names = HashSet::new();
        for (StatisticsBuilder { wanted, .. }, _) in &builders {
            if !names.insert((identity(wanted), &wanted.name)) {
                return Err(Error::InterfaceTwice { name: wanted.label() });
            }
        }
        let all = builders.len();
        let tell = |(builder, _): &(StatisticsBuilder, u32), before| {
            Opening { name: &builder.wanted.name, before, all }.told(&mut tell)
        };
        side_by_side(&builders, tell, |(builder, number)| builder.clone().start_as(*number))
    }

    /// Waits up to `wait` for changes of any of these interfaces. Returns early on a signal.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`] once all are gone, after the last of those events was returned. What was counted can still
    /// be read.
    pub fn wait_any(all: &mut [Self], wait: Duration) -> Result<Vec<Event>, Error> {
        if all.iter().all(|one| one.events.is_empty()) {
            if let Some(last) = all.last().filter(|_| all.iter().all(Self::is_gone)) {
                return Err(Error::InterfaceGone { name: last.info.name.clone() });
            }
            let wait = Timespec::try_from(wait).unwrap_or(FOREVER);
            let mut fds: Vec<_> = all.iter().filter_map(|one| one.monitored.fd()).collect();
            match poll(&mut fds, Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(CallError::new("wait for interface events", error).into()),
            }
            for one in &mut *all {
                one.events = one.monitored.listen()?;
            }
        }
        Ok(all.iter_mut().flat_map(|one| std::mem::take(&mut one.events)).collect())
    }
}
