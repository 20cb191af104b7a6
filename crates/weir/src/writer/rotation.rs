//! Ending a file and beginning the next one, or starting the same one over.

use std::time::Instant;

use super::counts::{Accepted, Counts};
use super::encode::{self, Occasion};
use super::limits::{Clock, Room};
use super::outage::Outages;
use super::write_request::{Data, WriteRequest};
use super::{Format, Rotation, WriteError, Writer, now};
use crate::{CaptureStats, Chunk, FileInterface};

impl Writer {
    /// Returns whether the file will end within this chunk, which is the moment to [`set_stats`](Self::set_stats) an account.
    pub fn ends_with(&self, chunk: &Chunk) -> bool {
        if !self.options.rotation.is_ring() {
            return false;
        }
        let bytes = (chunk.bytes().len() + self.batch.data.as_ref().len()) as u64;
        let packets = chunk.len() as u64 + self.batch.content.count();
        let room = self.room();
        room.bytes <= bytes || room.packets <= packets
    }

    /// Returns when the current period ends and [`tick`](Self::tick) has to be called; setting the clock may change
    /// this. `None`: no period is running.
    pub fn due(&self) -> Option<Instant> {
        self.clock.as_ref().filter(|_| !self.complete).map(Clock::due)
    }

    /// Returns whether the current period has ended.
    pub fn is_due(&self) -> bool {
        !self.complete && self.clock.as_ref().is_some_and(Clock::is_due)
    }

    /// Ends the file and begins the next one, if [it is due](Self::is_due).
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn tick(&mut self, account: &CaptureStats) -> Result<(), WriteError> {
        self.usable()?;
        if !self.is_due() {
            return Ok(());
        }
        self.set_stats(account);
        let Rotation { files, .. } = self.options.rotation;
        if !self.options.rotation.is_ring()
            && files.is_some_and(|files| self.files.list().count >= files.into())
        {
            // Packets captured before this call but delivered after it belong to the last file.
            self.complete = true;
            return Ok(());
        }
        self.finish_file(Occasion::End)?;
        self.ensure_file()?;
        if let Some(clock) = &mut self.clock {
            clock.advance();
        }
        Ok(())
    }

    /// Returns whether all requested files are written ([`Rotation::files`] with only a period); nothing more should
    /// follow.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns whether the files have the requested size ([`Rotation::in_all`]); nothing more should follow.
    pub fn is_full(&self) -> bool {
        self.options.rotation.in_all.is_some_and(|most| self.size_in_all() >= most)
    }

    /// Returns how many packets of this chunk fit within the total size of all files.
    pub fn fitting(&self, chunk: &Chunk) -> usize {
        let Some(most) = self.options.rotation.in_all else { return chunk.len() };
        let room = Room { bytes: most.saturating_sub(self.size_in_all()), packets: u64::MAX };
        if room.is_full() {
            return 0;
        }
        let cut = room.cut(self.options.format, false, chunk.bytes(), chunk.len() as u64);
        cut.map_or(chunk.len(), |(_, packets)| usize::try_from(packets).unwrap_or(usize::MAX))
    }

    fn size_in_all(&self) -> u64 {
        self.before.plain_bytes + self.size()
    }

    /// Empties the file and begins it again with these interfaces. Returns whether this was possible: a pipe cannot be
    /// emptied, and rotated files are not.
    ///
    /// # Errors
    ///
    /// See [`create`](Self::create).
    pub fn begin_again(&mut self, interfaces: &[FileInterface]) -> Result<bool, WriteError> {
        self.usable()?;
        encode::start(interfaces, &self.options)?;
        let Some(file) = self.file.as_mut().filter(|_| !self.options.rotation.rotates()) else {
            return Ok(false);
        };
        match file.empty() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(source) => {
                self.fail_write(source)?;
                // The disk is full, but nothing is on its way to it any more.
                return self.begin_again(interfaces);
            }
        }
        (self.outages, self.who) = (Outages::default(), None);
        self.batch = WriteRequest::default();
        self.interfaces = interfaces.to_vec();
        (self.counts, self.base, self.began) = (None, Counts::default(), None);
        self.accepted = Accepted::default();
        (self.cut, self.too_long, self.too_late) = (0, 0, 0);
        self.put_start().map(|()| true)
    }

    #[inline]
    pub(super) fn room(&self) -> Room {
        let (bytes, packets) = self
            .file
            .as_ref()
            .map_or((0, 0), |file| (file.bytes.saturating_sub(file.repeated), file.packets));
        Room::new(&self.options.rotation, bytes, packets)
    }

    /// Begins a file if none with room for a packet is open. Returns `false` if the disk is full.
    #[inline]
    pub(super) fn ensure_file(&mut self) -> Result<bool, WriteError> {
        if self.outages.is_due() {
            self.go_on()?;
        }
        if self.outages.is_open() {
            return Ok(false);
        }
        if self.file.is_some() {
            if !self.room().is_full() {
                return Ok(true);
            }
            self.finish_file(Occasion::End)?;
        }
        self.begin_file()?;
        Ok(!self.outages.is_open())
    }

    pub(super) fn begin_file(&mut self) -> Result<(), WriteError> {
        match self.files.open() {
            Ok(file) => self.file = Some(file),
            Err(error) if self.outlasts(&error) => {
                self.outages.open();
                return Ok(());
            }
            Err(error) => return self.fail(error),
        }
        self.put_start()
    }

    pub(super) fn put_start(&mut self) -> Result<(), WriteError> {
        let start = encode::start(&self.interfaces, &self.options)?;
        self.snap_places = encode::snap_places(self.options.format, &start);
        self.pcap_snap_len = encode::pcap_snap_len(&self.interfaces);
        self.cut_simple = false;
        if let Some(file) = &mut self.file {
            file.described = self.interfaces.len();
        }
        self.put(Data::Bytes(start).into())?;
        self.put_digest()
    }

    /// Ends the current file if it is full, and all losses known so far are told: otherwise it may be the last, which tells of
    /// those that no record follows, unless another packet comes. A pcap file tells of none.
    pub(super) fn finish_full_file(&mut self) -> Result<(), WriteError> {
        let counts = self.counts.as_ref().filter(|_| self.options.format == Format::Pcapng);
        let is_owing = || counts.is_some_and(|counts| counts.has_more_losses(&self.accepted));
        if self.room().is_full() && !is_owing() { self.finish_file(Occasion::End) } else { Ok(()) }
    }

    /// Ends the current file, if any. `occasion`: `End` or `Close`.
    pub(super) fn finish_file(&mut self, occasion: Occasion<'_>) -> Result<(), WriteError> {
        if self.file.is_some() && self.outages.is_open() {
            self.go_on()?;
        }
        self.put_batch()?;
        if self.file.is_none() {
            return Ok(());
        }
        self.catch_up()?;
        self.put_statistics(occasion, now())?;
        self.wake()?;
        let closed = self.file.as_mut().map_or(Ok(()), |file| file.output.close());
        if let Err(source) = closed {
            // Where this is no error, the file ends without its statistics.
            self.fail_write(source)?;
        }
        match self.file.take() {
            Some(file) if self.outages.is_open() && file.output.written().bytes == 0 => {
                self.files.discard(&file.path);
            }
            Some(file) => {
                self.before.add_file(file.output.written());
                self.files.finish(file);
            }
            None => {}
        }
        self.began = Some(now());
        self.base = self.counts(occasion).unwrap_or_default();
        self.outages.next_file();
        Ok(())
    }
}
