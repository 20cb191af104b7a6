//! Messages that lie in several segments of a TCP connection.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;

use weir_packet::{Flow, FlowDirection};

use crate::bytes::Bytes;
use crate::message::Found;
use crate::parser::{Parser, parser};
use crate::reading::Reading;
use crate::segment::Segment;

/// The most bytes of a message that are kept: the longest record of TLS 1.2 (RFC 5246, section 6.2.3) fits.
const LONGEST: usize = 18 * 1024 + 5;
/// The most unfinished messages that are kept in each of two generations; the older one makes room.
const MOST: usize = 1024;
/// How far behind what is missing a segment of the same connection can be, in bytes.
const RECENT: usize = 1 << 20;

/// Reads segments in the order in which they were captured, and keeps what a message needs until its end comes: at most
/// 36 MiB. It gives up a message of which a part is missing, or that is longer than 18 KiB (as some zone transfers are).
///
/// `K` tells apart what the sides of connections send: addresses and ports, unless you know better.
#[derive(Debug)]
pub struct Reader<K = (Flow, FlowDirection)> {
    /// Messages that have begun lately, and those that had begun before the last [`MOST`].
    young: HashMap<K, Unfinished>,
    old: HashMap<K, Unfinished>,
}

impl<K> Default for Reader<K> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

/// A message whose end is missing.
#[derive(Debug)]
struct Unfinished {
    bytes: Vec<u8>,
    /// The sequence number of what is missing.
    next: u32,
}

impl Reader {
    /// Returns the message in a segment, the first if it has several. One that lies in several segments is returned with the
    /// first, as far as it is there, and as a whole with the last.
    pub fn read(&mut self, segment: &Segment<'_>) -> Option<Found> {
        self.read_of(segment, || Flow::between(segment.protocol, segment.source, segment.destination))
    }
}

impl<K: Eq + Hash> Reader<K> {
    /// Does what [`read`](Reader::read) does. `key`: which side of which connection has sent the segment.
    pub fn read_of(&mut self, segment: &Segment<'_>, key: impl Fn() -> K) -> Option<Found> {
        let payload = segment.payload;
        // Where to go on, if it may be necessary.
        let mut sequence = segment.sequence.filter(|_| payload.whole());
        if !self.is_empty() && segment.is_tcp() && payload.len > 0 {
            let key = key();
            if let Some(message) = self.young.remove(&key).or_else(|| self.old.remove(&key)) {
                match message.position(segment) {
                    SegmentPosition::Next { known } => return self.go_on(key, message, segment, known),
                    SegmentPosition::Known => {
                        self.keep(key, message);
                        return None;
                    }
                    SegmentPosition::Earlier => {
                        self.keep(key, message);
                        sequence = None;
                    }
                    SegmentPosition::Elsewhere => {}
                }
            }
        }
        let parser = parser(segment)?;
        let bytes = Bytes { at: 0, ..payload };
        let (message, whole) = match parser.read(bytes) {
            Reading::Nothing => return None,
            Reading::Whole(message) => (Some(message), true),
            Reading::Part(message) => (message, false),
        };
        if let Some(sequence) = sequence {
            self.wait(key(), parser, bytes, sequence.wrapping_add(length(bytes.data)), whole);
        }
        message.map(|message| Found { protocol: parser.protocol(), message, at: Some(payload.at), whole })
    }

    /// Gives up what this side of a connection has begun.
    pub fn forget(&mut self, key: &K) {
        for messages in [&mut self.young, &mut self.old] {
            if !messages.is_empty() {
                messages.remove(key);
            }
        }
    }

    /// Returns whether no message is waited for.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// Adds a segment to a message. `known`: how many of its bytes are there already.
    fn go_on(
        &mut self,
        key: K,
        mut message: Unfinished,
        segment: &Segment<'_>,
        known: usize,
    ) -> Option<Found> {
        let more = segment.payload.data.get(known..).unwrap_or_default();
        message.bytes.reserve_exact(more.len());
        message.bytes.extend_from_slice(more);
        message.next = message.next.wrapping_add(length(more));
        let bytes = Bytes::new(&message.bytes, message.bytes.len());
        // More of its beginning may tell better what it is.
        let parser = parser(&Segment { payload: bytes, ..*segment })?;
        let goes_on = segment.payload.whole();
        if goes_on && !is_worth_reading(parser, bytes, more) {
            self.keep(key, message);
            return None;
        }
        match parser.read(bytes) {
            Reading::Whole(found) => {
                if goes_on {
                    self.wait(key, parser, bytes, message.next, true);
                }
                Some(Found { protocol: parser.protocol(), message: found, at: None, whole: true })
            }
            Reading::Part(_) if goes_on => {
                self.keep(key, message);
                None
            }
            Reading::Part(_) | Reading::Nothing => None,
        }
    }

    /// Keeps what is the beginning of a message. `next`: the sequence number behind these bytes; `whole`: the first message in
    /// them is there as a whole.
    fn wait(&mut self, key: K, parser: &dyn Parser, bytes: Bytes<'_>, next: u32, whole: bool) {
        let mut rest = bytes;
        if parser.messages_follow() {
            while let Some(len) = parser.length(rest).filter(|len| *len <= rest.len) {
                rest = rest.from(len);
            }
            if rest.len == 0 || parser.read(rest) == Reading::Nothing {
                return;
            }
        } else if whole {
            return;
        }
        if rest.len > LONGEST {
            return;
        }
        self.keep(key, Unfinished { bytes: rest.data.to_vec(), next });
    }

    fn keep(&mut self, key: K, message: Unfinished) {
        if message.bytes.len() > LONGEST {
            return;
        }
        if self.young.len() == MOST {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, message);
    }
}

/// Returns a length as sequence numbers count it.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or_default()
}

/// Returns whether more can be told of a message than before the last bytes of it came.
fn is_worth_reading(parser: &dyn Parser, bytes: Bytes<'_>, more: &[u8]) -> bool {
    match parser.length(bytes) {
        Some(len) => len <= bytes.len,
        // What has no length ends with a line.
        None => more.contains(&b'\n') || bytes.len > LONGEST,
    }
}

/// Where a segment is, seen from what is missing.
enum SegmentPosition {
    /// It goes on there.
    Next {
        /// How many of its bytes came before.
        known: usize,
    },
    /// Inside of what is there.
    Known,
    /// It has the beginning of the message, or is in front of it.
    Earlier,
    /// Behind a gap, or in another connection.
    Elsewhere,
}

impl Unfinished {
    fn position(&self, segment: &Segment<'_>) -> SegmentPosition {
        let Some(sequence) = segment.sequence else { return SegmentPosition::Elsewhere };
        let (back, there) = (self.next.wrapping_sub(sequence) as usize, self.bytes.len());
        match back {
            _ if back <= there && segment.payload.data.len() > back => SegmentPosition::Next { known: back },
            0 => SegmentPosition::Next { known: 0 },
            _ if back < there => SegmentPosition::Known,
            _ if back < RECENT => SegmentPosition::Earlier,
            _ => SegmentPosition::Elsewhere,
        }
    }
}
