//! What arrived of test traffic.
//!
//! - `integrity`: whether checksums are right.
//! - `stream`: the frames of a stream, by `window`, which sequences have arrived, and `histogram`, times.
//! - `report`: the result.

mod histogram;
mod integrity;
mod report;
mod stream;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeMap;

pub use self::histogram::{Bucket, Latency};
pub(crate) use self::integrity::{Integrity, integrity};
pub use self::report::{FrameCounters, Report, StreamReport};
use self::stream::Stream;
pub use self::window::WINDOW;
use crate::{Found, Signature};

/// Most streams that are told apart.
pub const STREAMS: usize = 64;

/// A frame that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its link type, as in capture files.
    pub link_type: u16,
    /// Its bytes.
    pub data: &'a [u8],
    /// Its length before it was cut off; of a whole frame, that of `data`.
    pub original_len: u32,
    /// When it arrived: nanoseconds since the Unix epoch. `None`: unknown.
    pub time: Option<u64>,
}

/// Judges frames in the order in which they arrived. Its memory is bounded: 270 KiB for each of at most [`STREAMS`] streams.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    streams: BTreeMap<u16, Stream>,
    frames: u64,
    other: u64,
    beyond_streams: u64,
    /// Where the last signature was.
    offset: usize,
    /// Whether a frame with a signature has a time.
    timed: bool,
}

impl Checker {
    /// Returns a checker that has seen no frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Judges a frame.
    pub fn add(&mut self, frame: &Frame<'_>) {
        self.frames += 1;
        let Some(Found { offset, signature }) = Signature::find(frame.data, self.offset) else {
            self.other += 1;
            return;
        };
        self.offset = offset;
        if self.streams.len() == STREAMS && !self.streams.contains_key(&signature.stream) {
            self.beyond_streams += 1;
            return;
        }
        let is_whole = u32::try_from(frame.data.len()).is_ok_and(|length| length == frame.original_len);
        let integrity = if is_whole { integrity(frame.link_type, frame.data) } else { Integrity::Unknown };
        self.timed |= frame.time.is_some();
        self.streams
            .entry(signature.stream)
            .or_insert_with(Stream::new)
            .add(signature, frame.time, integrity);
    }

    /// Returns the result so far. `expected`: how many frames were sent, in all streams; then those count, too, that are
    /// missing at the end.
    pub fn report(&self, expected: Option<u64>) -> Report {
        let streams: Vec<_> =
            self.streams.iter().map(|(&number, stream)| stream.report(number, self.timed)).collect();
        let (mut counters, mut times) = (FrameCounters::default(), histogram::Histogram::default());
        streams.iter().for_each(|stream| counters.add(&stream.counters));
        self.streams.values().for_each(|stream| times.merge(&stream.times));
        let sent: u64 = self.streams.values().map(Stream::sent).sum();
        counters.missing += expected.map_or(0, |expected| expected.saturating_sub(sent));
        Report {
            frames: self.frames,
            other: self.other,
            beyond_streams: self.beyond_streams,
            expected,
            unexpected: expected.map_or(0, |expected| sent.saturating_sub(expected)),
            counters,
            latency: self.timed.then(|| times.latency()),
            histogram: times.buckets(),
            streams,
        }
    }
}
