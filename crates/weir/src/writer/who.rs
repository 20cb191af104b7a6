//! Lives of sockets in files, from which readers find out whose packets are.

use weir_savefile::pcapng::WhoBlock;
use weir_who::{Digest, News, Settings, encode};

use super::write_request::Data;
use super::{Format, WriteError, Writer};

/// Blocks are no longer than this, if they have more than one piece of news: other programs refuse blocks of 16 MiB.
const LONGEST: usize = 1 << 20;

/// What files say about sockets.
#[derive(Debug)]
pub(super) struct Who {
    boot: [u8; 16],
    /// For the beginning of the next file, and for what a full disk has swallowed.
    digest: Digest,
    /// Whether the file lacks news for which there was no room.
    pub(super) is_behind: bool,
}

impl Writer {
    /// Writes what was seen of sockets. Readers join it with the packets, whether these are in the file before or behind it.
    /// `boot`: the run of the system whose sockets these are ([`who::boot`](crate::who::boot)), which is that of the first call
    /// for all of them.
    ///
    /// Each file of a rotation begins with what is needed of the news so far, which does not count towards its size. A pcap file
    /// has no room for any.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn who(&mut self, boot: [u8; 16], news: &[News]) -> Result<(), WriteError> {
        self.usable()?;
        if self.options.format != Format::Pcapng || news.is_empty() {
            return Ok(());
        }
        let who = self.who.get_or_insert_with(|| {
            Box::new(Who { boot, digest: Digest::new(&Settings::default()), is_behind: false })
        });
        let (boot, is_behind) = (who.boot, who.is_behind);
        if self.options.rotation.rotates() || self.options.keep_going {
            news.iter().for_each(|news| who.digest.learn(news));
        }
        if self.outages.is_open() {
            who.is_behind = true;
            return Ok(());
        }
        if self.file.is_none() {
            return Ok(()); // the next one begins with it
        }
        self.put_batch()?;
        if is_behind { self.put_digest() } else { self.put_news(boot, news) }
    }

    /// Writes the news that a reader needs who begins here.
    pub(super) fn put_digest(&mut self) -> Result<(), WriteError> {
        let Some(who) = &mut self.who else { return Ok(()) };
        who.is_behind = false;
        let (boot, news) = (who.boot, who.digest.news());
        let bytes = |writer: &Self| writer.file.as_ref().map_or(0, |file| file.bytes);
        let before = bytes(self);
        self.put_news(boot, &news)?;
        let more = bytes(self).saturating_sub(before);
        if let Some(file) = &mut self.file {
            file.repeated += more;
        }
        Ok(())
    }

    /// Writes the news for which there was no room, before the file ends.
    pub(super) fn catch_up(&mut self) -> Result<(), WriteError> {
        let is_behind = self.who.as_ref().is_some_and(|who| who.is_behind);
        if is_behind && !self.outages.is_open() { self.put_digest() } else { Ok(()) }
    }

    fn put_news(&mut self, boot: [u8; 16], news: &[News]) -> Result<(), WriteError> {
        if news.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        encode(news, &mut bytes);
        if bytes.len() > LONGEST && news.len() > 1 {
            let (first, rest) = news.split_at(news.len() / 2);
            self.put_news(boot, first)?;
            return self.put_news(boot, rest);
        }
        let mut buffer = self.buffer();
        match (WhoBlock { boot, news: &bytes }).append_to(&mut buffer) {
            Some(()) => self.put(Data::Bytes(buffer).into()),
            None => Err(WriteError::Packet { reason: format!("{} bytes are too many", bytes.len()) }),
        }
    }
}
