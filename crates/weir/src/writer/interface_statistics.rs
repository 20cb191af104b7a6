//! What files say about the capture: counters and events.

use super::counts::Counts;
use super::encode::{self, Occasion};
use super::write_request::Data;
use super::{Format, WriteError, Writer, now};
use crate::CaptureStats;

impl Writer {
    /// Writes the current counters (Interface Statistics Blocks).
    ///
    /// Repeated now and then, and above all after a loss, they form a timeline. They count the packets and losses of the records
    /// accepted so far; only the last ones ([`close`](Self::close)) have all of the account. A pcap file has no room for them.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn statistics(&mut self, account: &CaptureStats) -> Result<(), WriteError> {
        self.usable()?;
        self.set_stats(account);
        self.put_statistics(Occasion::Now, now())
    }

    /// Records that another filter took effect at `time` (nanoseconds since the Unix epoch); `None`: every packet is
    /// wanted.
    ///
    /// The file says so at its current position, in Interface Statistics Blocks with the current counters. Later files
    /// name the filter in their interface descriptions.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn filter_changed(
        &mut self,
        account: &CaptureStats,
        time: u64,
        filter: Option<&str>,
    ) -> Result<(), WriteError> {
        self.usable()?;
        for interface in &mut self.interfaces {
            interface.filter = filter.map(str::to_owned);
        }
        let said = match filter {
            Some(filter) => format!("filter changed to: {filter}"),
            None => "filter removed: every packet matches".to_owned(),
        };
        self.record_event(account, time, &said)
    }

    /// Records an event at `time` (nanoseconds since the Unix epoch), as a comment on Interface Statistics Blocks with
    /// the current counters, at the current position in the file.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn record_event(&mut self, account: &CaptureStats, time: u64, what: &str) -> Result<(), WriteError> {
        self.usable()?;
        self.set_stats(account);
        self.put_statistics(Occasion::Event(what), time)
    }

    /// Stores the counters for the closing statistics, in case the file ends before the next account.
    pub fn set_stats(&mut self, account: &CaptureStats) {
        let elapsed = u64::try_from(account.elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.began.get_or_insert_with(|| now().saturating_sub(elapsed));
        self.counts = Some(Counts::of(account));
    }

    /// Returns the counters to be told.
    pub(super) fn counts(&self, occasion: Occasion<'_>) -> Option<Counts> {
        let counts = self.counts.as_ref()?;
        Some(if occasion == Occasion::Close { counts.clone() } else { counts.as_of(&self.accepted) })
    }

    pub(super) fn put_statistics(&mut self, occasion: Occasion<'_>, now: u64) -> Result<(), WriteError> {
        self.put_batch()?;
        self.mark_outage()?;
        let is_there = self.put_counts(occasion, now)?;
        if let (false, Occasion::Event(what)) = (is_there, occasion) {
            self.outages.hold(now, what);
        }
        Ok(())
    }

    /// Writes the counters. Returns `false` if there is no room for them, and they should be known to be in the file.
    pub(super) fn put_counts(&mut self, occasion: Occasion<'_>, now: u64) -> Result<bool, WriteError> {
        let mut buffer = self.buffer();
        let (Format::Pcapng, Some(counts)) = (self.options.format, self.counts(occasion)) else {
            return Ok(true);
        };
        let Some(file) = &self.file else { return Ok(!self.outages.is_open()) };
        let of_file = |interface| {
            let here = file.queues.range((interface, 0)..=(interface, u32::MAX));
            (here.map(|(_, packets)| packets).sum(), self.outages.of_file(interface))
        };
        let base = (&self.base, self.began.unwrap_or(now));
        encode::statistics(base, (&counts, now), of_file, occasion, &mut buffer);
        if buffer.is_empty() {
            return Ok(true);
        }
        self.put(Data::Bytes(buffer).into())?;
        let is_event = matches!(occasion, Occasion::Event(_));
        if self.options.keep_going && (is_event || self.outages.is_unmarked()) {
            self.settle()?;
            if !self.outages.is_open() {
                self.outages.marked();
            }
        }
        Ok(!self.outages.is_open())
    }
}
