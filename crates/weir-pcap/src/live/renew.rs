//! Settings that change after a capture has begun: it begins again, with a socket of its own.

use std::ffi::c_int;
use std::mem;
use std::time::Duration;

use super::{Engine, Live};
use crate::filter::Filter;
use crate::settings::Settings;

impl Live {
    /// Returns whether the settings stay as they are with this change.
    pub(crate) fn has(&self, change: impl Fn(&mut Settings)) -> bool {
        let mut changed = self.settings.clone();
        change(&mut changed);
        changed == self.settings
    }

    /// Begins again, with other settings, the same filter and the same link type. What was not read is lost, and counts
    /// begin anew.
    ///
    /// # Errors
    ///
    /// The capture cannot begin again; the old one goes on.
    pub(crate) fn renew(
        &mut self,
        change: impl Fn(&mut Settings),
        link_type: c_int,
        filter: Option<&Filter>,
    ) -> Result<(), String> {
        let Engine::Socket(old) = &self.engine else {
            return Err("weir's pool is set up by pcap_activate; set WEIR_CHUNKS, or call \
                        pcap_set_buffer_size or pcap_set_immediate_mode before it"
                .to_owned());
        };
        let mut settings = self.settings.clone();
        change(&mut settings);
        let direction = old.direction;
        let mut new =
            Self::begin_with(&settings, old.nanoseconds, false).map_err(|refusal| refusal.text)?.live;
        new.set_link_type(link_type);
        new.set_direction(direction);
        if let Some(filter) = filter {
            new.set_filter(filter);
        }
        new.count_only(old.counting);
        new.nonblocking = self.nonblocking;
        // `pcap_breakloop` may be about to ring this one.
        mem::swap(&mut new.notifier, &mut self.notifier);
        // No line for a capture that goes on.
        self.report = None;
        *self = new;
        Ok(())
    }

    /// Prepares for a reader that wants only the lengths of packets, or no longer.
    pub(crate) fn count_only(&mut self, on: bool) {
        if let Engine::Socket(socket) = &mut self.engine {
            socket.counting = on;
        }
    }

    /// Returns the read timeout; `None`: there is none.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let milliseconds = u64::try_from(self.settings.timeout).ok().filter(|&one| one > 0);
        milliseconds.map(Duration::from_millis)
    }
}
