//! Sources whose packets are written to the pool by a thread of this process, the pump: their queue and what they
//! share.

mod counts;
mod parts;
mod pump;

use std::sync::Arc;

use weir_ring::{Consumer, Gauge, Part};
use weir_sys::CallError;

pub(super) use self::counts::{Counts, Pumped};
pub(super) use self::parts::{first, with_tag};
pub(super) use self::pump::{Finished, Pump, STALL, last_pool, private_pool, run, unless_gone};
use super::Queue;
use super::signals::Signals;
use crate::Error;
use crate::live::wait::Ready;

/// A queue filled by a pump.
#[derive(Debug)]
pub(super) struct PumpedQueue {
    interface: String,
    consumer: Consumer,
    signals: Arc<Signals>,
    /// Converts the pump's error.
    meaning: fn(&str, CallError) -> Error,
    /// After a stop, the records that did not fit into the pool.
    rest: Option<Consumer>,
    /// Bytes of records taken, to compare with what the pump has written.
    taken: u64,
}

impl PumpedQueue {
    pub(super) fn new(
        interface: &str,
        consumer: Consumer,
        signals: Arc<Signals>,
        meaning: fn(&str, CallError) -> Error,
    ) -> Self {
        Self { interface: interface.to_owned(), consumer, signals, meaning, rest: None, taken: 0 }
    }
}

impl Queue for PumpedQueue {
    fn ready(&mut self) -> Result<Ready, Error> {
        let (mut bytes, mut closed) = self.consumer.ready();
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
            closed = true; // deliver what came before the error first
        }
        Ok(Ready { bytes, closed: bytes > 0 && (closed || self.signals.aged()) })
    }

    fn take(&mut self) -> Result<Option<Part>, Error> {
        self.signals.take_aged();
        let corrupt = |source| Error::Corrupt { name: self.interface.clone(), source };
        let part = match (self.consumer.take().map_err(corrupt)?, &mut self.rest) {
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
        self.consumer.gauge()
    }
}
