//! Messages that lie in several segments of a TCP connection.

use std::collections::HashMap;
use std::mem;

use weir_packet::{Flow, Way};

use crate::bytes::Bytes;
use crate::message::Found;
use crate::parser::parser;
use crate::reading::Reading;
use crate::segment::Segment;

/// The most bytes of a message that are kept: the longest record of TLS 1.2 (RFC 5246, section 6.2.3) fits.
const LONGEST: usize = 18 * 1024 + 5;
/// The most messages of which the end is waited for. When as many have begun after one, it is given up.
const MOST: usize = 1024;

/// Reads segments in the order in which they were captured, and keeps what a message needs until its end comes: at most
/// 36 MiB. Segments that are out of order, or of which a part is missing, end the wait.
#[derive(Debug, Default)]
pub struct Reader {
    /// Messages that have begun lately, and those that had begun before the last [`MOST`].
    young: HashMap<(Flow, Way), Unfinished>,
    old: HashMap<(Flow, Way), Unfinished>,
    given_up: u64,
}

/// A message whose end is missing.
#[derive(Debug)]
struct Unfinished {
    bytes: Vec<u8>,
    /// The sequence number of what is missing.
    next: u32,
}

impl Reader {
    /// Returns the message in a segment. One that lies in several segments is told with the first, as far as it is there, and
    /// as a whole with the last.
    pub fn read(&mut self, segment: &Segment<'_>) -> Option<Found> {
        let key = || Flow::between(segment.protocol, segment.source, segment.destination);
        let waiting = !(self.young.is_empty() && self.old.is_empty());
        let mut again = false;
        if waiting && segment.payload.len > 0 && segment.is_tcp() {
            let key = key();
            if let Some(unfinished) = self.young.remove(&key).or_else(|| self.old.remove(&key)) {
                match unfinished.place(segment) {
                    Place::Next => return self.go_on(key, unfinished, segment),
                    Place::Earlier => {
                        self.keep(key, unfinished);
                        again = true;
                    }
                    Place::Elsewhere => self.given_up += 1,
                }
            }
        }
        let parser = parser(segment)?;
        let begins = segment.payload.at;
        let (message, whole) = match parser.read(Bytes { at: 0, ..segment.payload }) {
            Reading::Nothing => return None,
            Reading::Whole(message) => (Some(message), true),
            Reading::Part(message) => {
                let payload = segment.payload;
                if let Some(sequence) = segment.sequence.filter(|_| payload.whole() && !again) {
                    let next = sequence.wrapping_add(u32::try_from(payload.len).unwrap_or_default());
                    self.keep(key(), Unfinished { bytes: payload.data.to_vec(), next });
                }
                (message, false)
            }
        };
        message.map(|message| Found { protocol: parser.protocol(), message, at: Some(begins), whole })
    }

    /// Returns how many messages were begun whose end was not read: it did not come in order, or others took their place.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    fn go_on(&mut self, key: (Flow, Way), mut message: Unfinished, segment: &Segment<'_>) -> Option<Found> {
        let more = segment.payload;
        message.bytes.extend_from_slice(more.data);
        message.next = message.next.wrapping_add(u32::try_from(more.data.len()).unwrap_or_default());
        let bytes = Bytes::new(&message.bytes, message.bytes.len());
        // More of its beginning may tell better what it is.
        let Some(parser) = parser(&Segment { payload: bytes, ..*segment }) else {
            self.given_up += 1;
            return None;
        };
        match parser.read(bytes) {
            Reading::Whole(found) => {
                Some(Found { protocol: parser.protocol(), message: found, at: None, whole: true })
            }
            Reading::Part(_) if more.whole() => {
                self.keep(key, message);
                None
            }
            Reading::Part(_) | Reading::Nothing => {
                self.given_up += 1;
                None
            }
        }
    }

    fn keep(&mut self, key: (Flow, Way), message: Unfinished) {
        if message.bytes.len() > LONGEST {
            self.given_up += 1;
            return;
        }
        if self.young.len() == MOST {
            self.given_up += self.old.len() as u64;
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, message);
    }
}

/// Where a segment is, seen from what is missing.
enum Place {
    Next,
    /// Among what is there.
    Earlier,
    /// Behind a gap, or in another connection.
    Elsewhere,
}

impl Unfinished {
    fn place(&self, segment: &Segment<'_>) -> Place {
        match segment.sequence.map(|sequence| self.next.wrapping_sub(sequence) as usize) {
            Some(0) => Place::Next,
            Some(back) if back <= self.bytes.len() => Place::Earlier,
            _ => Place::Elsewhere,
        }
    }
}
