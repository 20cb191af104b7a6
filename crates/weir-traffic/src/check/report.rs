//! What became of the frames.

use serde::Serialize;

use super::histogram::{Bucket, Latency};

/// Frames of a stream, or of all streams. Each frame is in exactly one of the first four fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameCounters {
    /// The first intact frame of its sequence.
    pub intact: u64,
    /// Another intact frame of the same sequence.
    pub duplicate: u64,
    /// A checksum of IPv4, UDP, TCP, ICMP or ICMPv6 is wrong, or a length cannot be. The signature is intact.
    pub corrupt: u64,
    /// The sequence is more than [`WINDOW`](super::WINDOW) behind the highest: too old to tell a late frame from a
    /// duplicate.
    pub beyond_window: u64,
    /// Sequences below the highest of which no frame arrived, intact or corrupt. Those beyond the window are among them,
    /// even if they arrived.
    pub missing: u64,
    /// Of the intact frames: those whose sequence is lower than one that arrived before (`Type-P-Reordered`, RFC 4737). A
    /// late frame is reordered, not missing.
    pub reordered: u64,
    /// How many sequences a reordered frame was behind the highest, at most.
    pub furthest_behind: u64,
    /// Of the intact frames and duplicates: no checksum covers the payload, or the packet was cut off, is a fragment, or
    /// its checksum was left to a card.
    pub unchecked: u64,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Its number.
    pub stream: u16,
    /// The lowest sequence that arrived.
    pub lowest: u64,
    /// The highest.
    pub highest: u64,
    /// Its frames.
    #[serde(flatten)]
    pub counters: FrameCounters,
    /// How long those intact frames took that have a time; `None`: no frame has.
    pub latency: Option<Latency>,
}

/// All frames: `frames` is the sum of `intact`, `duplicate`, `corrupt`, `beyond_window`, `beyond_streams` and `other`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// All frames.
    pub frames: u64,
    /// Frames without an intact signature.
    pub other: u64,
    /// Frames of streams that are not told apart, because there are more than [`STREAMS`](super::STREAMS).
    pub beyond_streams: u64,
    /// As announced: how many frames were sent.
    pub expected: Option<u64>,
    /// Sequences beyond what was announced.
    pub unexpected: u64,
    /// The sums over all streams. What was announced and is in no stream is missing, too.
    #[serde(flatten)]
    pub counters: FrameCounters,
    /// How long the intact frames of all streams took.
    pub latency: Option<Latency>,
    /// How often each time occurred.
    pub histogram: Vec<Bucket>,
    /// The streams, by number.
    pub streams: Vec<StreamReport>,
}

impl FrameCounters {
    /// Adds the counts of another stream.
    pub(super) fn add(&mut self, other: &Self) {
        self.intact += other.intact;
        self.duplicate += other.duplicate;
        self.corrupt += other.corrupt;
        self.beyond_window += other.beyond_window;
        self.missing += other.missing;
        self.reordered += other.reordered;
        self.furthest_behind = self.furthest_behind.max(other.furthest_behind);
        self.unchecked += other.unchecked;
    }
}

impl Report {
    /// Returns whether all that was sent has arrived once and intact, as far as is known: in any order, and with any other
    /// frames in between. Nothing at all is not perfect.
    pub fn is_perfect(&self) -> bool {
        let Self { beyond_streams, unexpected, counters, .. } = self;
        let FrameCounters { intact, duplicate, corrupt, beyond_window, missing, .. } = counters;
        *intact > 0 && duplicate + corrupt + beyond_window + missing + beyond_streams + unexpected == 0
    }
}
