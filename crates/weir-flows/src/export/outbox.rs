//! A message that grows, and what became of all that were sent.

use std::mem;

use super::record::View;

/// What messages, sent or not, had in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Sum {
    /// Messages.
    pub messages: u64,
    /// Bytes of these messages.
    pub octets: u64,
    /// Records of flows: one or two for a flow, in NetFlow v5 more if the counts are beyond 32 bits.
    pub records: u64,
    /// Packets that these records count.
    pub packets: u64,
    /// Bytes that these records count.
    pub bytes: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.octets += other.octets;
        self.records += other.records;
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What became of the flows: packets and bytes of all that were added are in one of these, or in the message that has not been
/// handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Exported {
    /// What was sent.
    pub sent: Sum,
    /// What was handed out, but not sent.
    pub unsent: Sum,
    /// What the format cannot carry: with NetFlow v5, directions of flows over IPv6 (`records`), and what is left of a
    /// direction whose packets or bytes do not fit into 256 records.
    pub refused: Sum,
}

/// Builds one message after the other.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    header: usize,
    limit: usize,
    /// Sets are padded to a multiple of this.
    align: usize,
    /// Where the set begins that records are added to, and its ID.
    set: Option<(usize, u16)>,
    pending: Sum,
    exported: Exported,
}

/// A message that is being made.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    set: Option<(usize, u16)>,
    pending: Sum,
}

/// A set's ID and length.
pub(super) const SET_HEADER: usize = 4;

impl Outbox {
    /// `header`: the bytes in front of all sets.
    pub(super) fn new(header: usize, limit: usize, align: usize) -> Self {
        let limit = limit.min(u16::MAX.into());
        let mut outbox = Self {
            bytes: Vec::with_capacity(limit),
            header,
            limit,
            align,
            set: None,
            pending: Sum::default(),
            exported: Exported::default(),
        };
        outbox.clear();
        outbox
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(self.header, 0);
        self.set = None;
        self.pending = Sum::default();
    }

    pub(super) fn exported(&self) -> Exported {
        self.exported
    }

    pub(super) fn refuse(&mut self, records: u64, packets: u64, bytes: u64) {
        self.exported.refused.add(Sum { records, packets, bytes, ..Sum::default() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == self.header
    }

    /// Returns whether a record of this length still has room.
    pub(super) fn fits(&self, set: u16, length: usize) -> bool {
        let filled = match self.set {
            Some((_, open)) if open == set => self.bytes.len(),
            _ => self.bytes.len().next_multiple_of(self.align) + SET_HEADER,
        };
        (filled + length).next_multiple_of(self.align) <= self.limit
    }

    /// Returns where the record goes.
    pub(super) fn record(&mut self, set: u16) -> &mut Vec<u8> {
        if self.set.is_none_or(|(_, open)| open != set) {
            self.close();
            self.set = Some((self.bytes.len(), set));
            self.bytes.extend(set.to_be_bytes());
            self.bytes.extend([0; 2]);
        }
        &mut self.bytes
    }

    /// Returns where the record goes, without a set around it.
    pub(super) fn bare(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Counts a record of a flow.
    pub(super) fn count(&mut self, view: &View<'_>) {
        self.count_part(view.packets(), view.bytes());
    }

    pub(super) fn count_part(&mut self, packets: u64, bytes: u64) {
        self.pending.add(Sum { records: 1, packets, bytes, ..Sum::default() });
    }

    /// Ends a set: nothing is added to it.
    pub(super) fn close(&mut self) {
        let Some((start, _)) = self.set.take() else { return };
        self.bytes.resize(self.bytes.len().next_multiple_of(self.align), 0);
        let length = low16(self.bytes.len() - start);
        self.bytes[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Returns the message that is being made, for [`Self::put_back`], and begins another one.
    pub(super) fn take(&mut self) -> Kept {
        let kept = Kept { bytes: mem::take(&mut self.bytes), set: self.set, pending: self.pending };
        self.clear();
        kept
    }

    /// Goes on with a message that was taken, in place of an empty one.
    pub(super) fn put_back(&mut self, kept: Kept) {
        (self.bytes, self.set, self.pending) = (kept.bytes, kept.set, kept.pending);
    }

    /// Hands out the message; `header` gets all of it.
    pub(super) fn send(&mut self, header: impl FnOnce(&mut [u8]), send: &mut impl FnMut(&[u8]) -> bool) {
        self.close();
        header(&mut self.bytes);
        let is_sent = send(&self.bytes);
        let sum = Sum { messages: 1, octets: self.bytes.len() as u64, ..self.pending };
        if is_sent { &mut self.exported.sent } else { &mut self.exported.unsent }.add(sum);
        self.clear();
    }
}

/// A format whose messages begin with what a collector must know to read them, when that is due.
pub(super) trait Described {
    fn outbox(&self) -> &Outbox;

    /// Hands out the message.
    fn hand_out(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool);

    /// Puts what must be known into an empty message, if it is due.
    fn describe(&mut self, now: u64, send: &mut impl FnMut(&[u8]) -> bool);

    /// Makes room for a record behind what must be known to read it.
    fn make_room(&mut self, set: u16, length: usize, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        self.describe(now, send);
        if !self.outbox().fits(set, length) {
            self.hand_out(now, send);
            self.describe(now, send);
        }
        self.make_bare_room(set, length, now, send);
    }

    /// The same without that.
    fn make_bare_room(&mut self, set: u16, length: usize, now: u64, send: &mut impl FnMut(&[u8]) -> bool) {
        if !self.outbox().fits(set, length) {
            self.hand_out(now, send);
        }
    }
}

/// Returns what has at most 16 bits, because a message has.
pub(super) fn low16(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
