//! Sources whose packets are laid down by a thread of this process, the pump: their queue, and what they have in common.

mod counts;
mod parts;
mod pump;

use std::sync::Arc;

use weir_ring::{Gauge, Part, Reader};
use weir_sys::CallError;

pub(super) use self::counts::{Counts, Pumped};
pub(super) use self::parts::{first, with_tag};
pub(super) use self::pump::{Finished, Pump, STALL, last_pool, private_pool, run, unless_gone};
use super::signals::Signals;
use super::{Queue, Ready};
use crate::Error;

/// What a pump fills.
#[derive(Debug)]
pub(super) struct PumpedQueue {
    interface: String,
    reader: Reader,
    signals: Arc<Signals>,
    /// What the pump's trouble with the interface means.
    meaning: fn(&str, CallError) -> Error,
    /// Once stopped, the records that the pool had no room for.
    rest: Option<Reader>,
    /// Bytes of records taken: the other side of what the pump has written.
    taken: u64,
}

impl PumpedQueue {
    pub(super) fn new(
        interface: &str,
        reader: Reader,
        signals: Arc<Signals>,
        meaning: fn(&str, CallError) -> Error,
    ) -> Self {
        Self { interface: interface.to_owned(), reader, signals, meaning, rest: None, taken: 0 }
    }
}

impl Queue for PumpedQueue {
    fn ready(&mut self) -> Result<Ready, Error> {
        let (mut bytes, mut closed) = self.reader.ready();
        if bytes == 0 {
            self.rest = self.rest.take().or_else(|| self.signals.take_rest());
            if let Some(rest) = &self.rest {
                (bytes, closed) = rest.ready();
            }
        }
        if self.signals.troubled() {
            if bytes == 0
                && let Some(trouble) = self.signals.take_trouble()
            {
                return Err((self.meaning)(&self.interface, trouble));
            }
            closed = true; // first what came before the trouble
        }
        Ok(Ready { bytes, closed: bytes > 0 && (closed || self.signals.aged()) })
    }

    fn take(&mut self) -> Result<Option<Part>, Error> {
        self.signals.take_aged();
        let corrupt = |source| Error::Corrupt { name: self.interface.clone(), source };
        let part = match (self.reader.take().map_err(corrupt)?, &mut self.rest) {
            (None, Some(rest)) => rest.take().map_err(corrupt)?,
            (part, _) => part,
        };
        self.taken += part.as_ref().map_or(0, |part| part.len() as u64);
        Ok(part)
    }

    fn wake_after(&mut self, bytes: u32) {
        self.signals.wake_at(self.taken + u64::from(bytes));
    }

    fn wake_never(&mut self) {
        self.signals.wake_never();
    }

    fn gauge(&self) -> Gauge {
        self.reader.gauge()
    }
}
