//! The frames of one stream.

use super::histogram::Histogram;
use super::integrity::Integrity;
use super::report::{FrameCounters, StreamReport};
use super::window::Window;
use crate::Signature;

#[derive(Clone, Debug)]
pub(super) struct Stream {
    lowest: u64,
    window: Window,
    /// Sequences of which a frame has arrived.
    arrived: u64,
    /// Without `missing`, which is known at the end.
    counters: FrameCounters,
    pub(super) times: Histogram,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self {
            lowest: u64::MAX,
            window: Window::new(),
            arrived: 0,
            counters: FrameCounters::default(),
            times: Histogram::default(),
        }
    }

    pub(super) fn add(&mut self, signature: Signature, time: Option<u64>, integrity: Integrity) {
        let intact = integrity != Integrity::Damaged;
        self.lowest = self.lowest.min(signature.sequence);
        let arrival = self.window.add(signature.sequence, intact);
        self.arrived += u64::from(arrival.is_some_and(|arrival| arrival.first));
        if !intact {
            self.counters.corrupt += 1;
            return;
        }
        let Some(arrival) = arrival else {
            self.counters.beyond_window += 1;
            return;
        };
        self.counters.unchecked += u64::from(integrity == Integrity::Unknown);
        if !arrival.first_intact {
            self.counters.duplicate += 1;
            return;
        }
        self.counters.intact += 1;
        self.counters.reordered += u64::from(arrival.behind > 0);
        self.counters.furthest_behind = self.counters.furthest_behind.max(arrival.behind);
        if let Some(time) = time {
            self.times.add(signature.age(time));
        }
    }

    /// Returns how many frames were sent, as far as can be told from those that arrived.
    pub(super) fn sent(&self) -> u64 {
        self.window.highest().map_or(0, |highest| highest + 1)
    }

    pub(super) fn report(&self, stream: u16, timed: bool) -> StreamReport {
        StreamReport {
            stream,
            lowest: self.lowest,
            highest: self.window.highest().unwrap_or(0),
            counters: FrameCounters { missing: self.sent() - self.arrived, ..self.counters },
            latency: timed.then(|| self.times.latency()),
        }
    }
}
