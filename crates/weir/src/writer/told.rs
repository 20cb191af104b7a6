//! What files say of the capture: accounts, and what has happened meanwhile.

use super::encode::{self, Counts, Occasion};
use super::piece::Load;
use super::{Format, WriteError, Writer, now};
use crate::Account;

impl Writer {
    /// Writes down the account as it stands (Interface Statistics Blocks): done now and then, above all after a loss,
    /// it makes a time line. A pcap file has no place for it.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn statistics(&mut self, account: &Account) -> Result<(), WriteError> {
        self.usable()?;
        self.note(account);
        self.put_statistics(Occasion::Now, now())
    }

    /// Another filter came into force at `time` (nanoseconds since the Unix epoch), with the account as it stands; `None`:
    /// everything is wanted. The file says so where it is now, in Interface Statistics Blocks, and those that come after it
    /// name the filter in the descriptions of their interfaces.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn filter_changed(
        &mut self,
        account: &Account,
        time: u64,
        filter: Option<&str>,
    ) -> Result<(), WriteError> {
        self.usable()?;
        for interface in &mut self.interfaces {
            interface.filter = filter.map(str::to_owned);
        }
        let said = match filter {
            Some(filter) => format!("filter changed to: {filter}"),
            None => "filter removed: no filter: every packet matches".to_owned(),
        };
        self.said(account, time, &said)
    }

    /// Something has happened at `time` (nanoseconds since the Unix epoch) that who reads the file is to know, with the
    /// account as it stands: a comment of Interface Statistics Blocks, where the file is now.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn said(&mut self, account: &Account, time: u64, what: &str) -> Result<(), WriteError> {
        self.usable()?;
        self.note(account);
        self.put_statistics(Occasion::Event(what), time)
    }

    /// What the statistics at the end of a file are to say, should it end before the next account is told.
    pub fn note(&mut self, account: &Account) {
        let elapsed = u64::try_from(account.elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.began.get_or_insert_with(|| now().saturating_sub(elapsed));
        self.counts = Some(Counts::of(account));
    }

    pub(super) fn put_statistics(&mut self, occasion: Occasion<'_>, now: u64) -> Result<(), WriteError> {
        self.put_batch()?;
        let mut buffer = self.buffer();
        if let (Format::Pcapng, Some(counts), Some(file)) = (self.options.format, &self.counts, &self.file) {
            let base = (&self.base, self.began.unwrap_or(now));
            encode::statistics(base, (counts, now), &file.by_interface, occasion, &mut buffer);
        }
        if buffer.is_empty() { Ok(()) } else { self.put(Load::Bytes(buffer).into()) }
    }
}
