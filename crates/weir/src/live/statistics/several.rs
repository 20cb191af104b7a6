//! Statistics of several interfaces at once.

use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use weir_sys::CallError;

use super::{Statistics, StatisticsBuilder};
use crate::{Error, Event};

/// Practically infinite.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };

impl Statistics {
    /// Starts to count on several interfaces, one after another. Their events have the numbers of the builders.
    ///
    /// # Errors
    ///
    /// An interface is named twice, or one of them cannot be counted on, as told by [`StatisticsBuilder::start`]. Nothing
    /// stays attached.
    pub fn start_all(builders: impl IntoIterator<Item = StatisticsBuilder>) -> Result<Vec<Self>, Error> {
        let mut all: Vec<Self> = Vec::new();
        for (builder, number) in builders.into_iter().zip(0..) {
            let wanted = &builder.wanted;
            let is_same =
                |one: &Self| one.watched.site.is_of(wanted) && one.watched.began.name == wanted.name;
            if all.iter().any(is_same) {
                return Err(Error::InterfaceTwice { name: wanted.label() });
            }
            all.push(builder.start_as(number)?);
        }
        Ok(all)
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
            let mut fds: Vec<_> = all.iter().filter_map(|one| one.watched.fd()).collect();
            match poll(&mut fds, Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(CallError::new("wait for interface events", error).into()),
            }
            for one in &mut *all {
                one.events = one.watched.listen()?;
            }
        }
        Ok(all.iter_mut().flat_map(|one| std::mem::take(&mut one.events)).collect())
    }
}
