//! Several files merged in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use super::sums::Sums;
use super::{FileLane, Item, ReadError, Reader, Seen};
use crate::{FileInterface, Packet, who};
use weir_savefile::decode::PacketAt;

/// Maximum memory for packets held back for sorting, in bytes: [`Merge::window`].
pub const MOST_HELD: usize = 24 << 20;

/// Several files read together, in order of their timestamps.
///
/// The next packet is always the earliest of the next packets of each file; if timestamps are equal, the file given
/// first wins. Interfaces are renumbered. Files share an interface if its descriptions are identical, so that parts of
/// one capture are joined; two interfaces of the same file are never joined. (mergecap does this with `-I any`.)
///
/// If a file ends with an error, that is reported once and the other files are still read. Statistics and other blocks
/// are not sorted, and appear where they are in their file. Counters of a shared interface are sums, which are known
/// when every file that has the interface has told its part; if packets have followed, they are repeated at the end.
///
/// Each file takes about 300 KiB of memory, and a descriptor unless it was opened with
/// [`open_sparing`](Reader::open_sparing).
#[derive(Debug)]
pub struct Merge {
    inputs: Vec<Input>,
    /// Inputs whose next packet is not known yet.
    hungry: Vec<usize>,
    interfaces: Vec<FileInterface>,
    /// Number of interfaces already reported as [`Item::Interface`].
    named: usize,
    window: u64,
    held: Held,
    sums: Sums,
    /// The last block, with other numbers of interfaces.
    renumbered: Vec<u8>,
    /// The latest timestamp read, and the latest one returned.
    newest: u64,
    last: u64,
    late: u64,
}

#[derive(Debug)]
struct Input {
    reader: Reader,
    /// The merged interface number of each interface in the file.
    numbers: Vec<u32>,
    /// Its first packet has been read, or its end; the interfaces are known.
    begun: bool,
    next: Option<PacketAt>,
    which: Which,
}

/// Which packets of a file an input returns.
#[derive(Debug)]
enum Which {
    AllBut(Vec<FileLane>),
    Only(FileLane),
}

impl Which {
    fn has(&self, packet: &PacketAt) -> bool {
        let of = FileLane { interface: packet.interface, queue: packet.queue };
        match self {
            Self::AllBut(others) => !others.contains(&of),
            Self::Only(lane) => *lane == of,
        }
    }
}

impl Merge {
    /// Merges what these readers have not read yet.
    pub fn new(readers: Vec<Reader>) -> Self {
        let hungry = (0..readers.len()).rev().collect();
        let input = |reader| Input::new(reader, Which::AllBut(Vec::new()));
        Self {
            inputs: readers.into_iter().map(input).collect(),
            hungry,
            interfaces: Vec::new(),
            named: 0,
            window: 0,
            held: Held::default(),
            sums: Sums::default(),
            renumbered: Vec::new(),
            newest: 0,
            last: 0,
            late: 0,
        }
    }

    /// Also sorts within each file, by holding packets back for this long, measured by their timestamps. This is for
    /// captures from several queues, where only the packets of each queue are in order.
    ///
    /// Packets are copied, up to [`MOST_HELD`] bytes; beyond that the oldest are returned early.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Reads the unsorted file `number` lane by lane, so that no packet has to be held back.
    ///
    /// Each lane has its own reader, from which nothing has been read; `others` are the readers for all lanes but the
    /// first. Anything that belongs to no lane comes with the first. Call this before reading.
    #[must_use]
    pub fn lanes(
        mut self,
        number: usize,
        lanes: impl IntoIterator<Item = FileLane>,
        others: Vec<Reader>,
    ) -> Self {
        let others: Vec<_> = lanes.into_iter().skip(1).zip(others).collect();
        self.inputs[number].which = Which::AllBut(others.iter().map(|(lane, _)| *lane).collect());
        self.inputs.extend(others.into_iter().map(|(lane, reader)| Input::new(reader, Which::Only(lane))));
        self.hungry = (0..self.inputs.len()).rev().collect();
        self
    }

    /// Returns the interfaces known so far, indexed by their number.
    pub fn interfaces(&self) -> &[FileInterface] {
        &self.interfaces
    }

    /// Returns the readers in their original order, for positions, formats and warnings.
    pub fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.inputs.iter().filter(|input| !input.repeats()).map(|input| &input.reader)
    }

    /// Returns the number of packets returned after a later one.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the next item; `None` at the end of all files.
    ///
    /// # Errors
    ///
    /// One of the files ended with this error; the next call continues with the others.
    #[expect(clippy::should_implement_trait, reason = "what is given out borrows from the readers")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        loop {
            if self.named < self.interfaces.len() {
                self.named += 1;
                return Ok(Some(Item::Interface(number(self.named - 1))));
            }
            if let Some(index) = self.hungry.pop() {
                let input = &mut self.inputs[index];
                let seen = match input.reader.advance() {
                    // The first input of the file reports this error.
                    Err(_) if input.repeats() => None,
                    seen => seen?,
                };
                let known = input.numbers.len();
                input.number(&mut self.interfaces);
                if !input.repeats() {
                    input.numbers[known..].iter().for_each(|place| self.sums.has(*place, index));
                }
                input.begun |= matches!(seen, None | Some(Seen::Packet(_)));
                if !seen.as_ref().is_none_or(|seen| input.wants(seen)) {
                    self.hungry.push(index);
                }
                match seen {
                    None | Some(Seen::Interface) => {}
                    Some(Seen::Pause) => return Ok(Some(Item::Pause)),
                    Some(Seen::Packet(packet)) => {
                        input.next = Some(packet).filter(|packet| input.which.has(packet));
                    }
                    Some(_) if input.repeats() => {}
                    Some(Seen::Statistics(mut statistics)) => {
                        statistics.interface = input.numbers[statistics.interface as usize];
                        let all_known =
                            self.inputs.iter().enumerate().all(|(n, input)| n == index || input.begun);
                        return Ok(Some(Item::Statistics(self.sums.told(index, *statistics, all_known))));
                    }
                    Some(Seen::Block { kind, body }) => {
                        return Ok(Some(self.block(index, kind, body)));
                    }
                }
                continue;
            }
            let Some(index) = self.first() else { break };
            if self.window == 0 {
                self.hungry.push(index);
                self.count(self.inputs[index].next.as_ref().map_or(0, |packet| packet.timestamp));
                let packet = self.inputs[index].take();
                packet.iter().for_each(|packet| self.sums.packet(packet.interface));
                return Ok(packet.map(Item::Packet));
            }
            if self.held.bytes >= MOST_HELD || self.held.is_due(self.newest.saturating_sub(self.window)) {
                return Ok(self.release());
            }
            self.hungry.push(index);
            if let Some(packet) = self.inputs[index].take() {
                self.newest = self.newest.max(packet.timestamp);
                self.held.put(&packet);
            }
        }
        if self.held.oldest().is_none() {
            return Ok(self.sums.close().map(Item::Statistics));
        }
        Ok(self.release())
    }

    /// Returns the block that an input has found last.
    fn block(&mut self, index: usize, kind: u32, body: Option<Range<usize>>) -> Item<'_> {
        let Input { reader, numbers, .. } = &self.inputs[index];
        let body = reader.body(body);
        match who::renumbered(kind, body, |number| numbers.get(number as usize).copied()) {
            Some(renumbered) => {
                self.renumbered = renumbered;
                Item::Block { kind, body: &self.renumbered }
            }
            None => Item::Block { kind, body },
        }
    }

    /// Returns the input with the earliest packet.
    fn first(&self) -> Option<usize> {
        let next = |(index, input): (usize, &Input)| Some((input.next.as_ref()?.timestamp, index));
        self.inputs.iter().enumerate().filter_map(next).min().map(|(_, index)| index)
    }

    fn release(&mut self) -> Option<Item<'_>> {
        let timestamp = self.held.oldest()?;
        self.count(timestamp);
        let packet = self.held.take();
        packet.iter().for_each(|packet| self.sums.packet(packet.interface));
        packet.map(Item::Packet)
    }

    fn count(&mut self, timestamp: u64) {
        self.late += u64::from(timestamp < self.last);
        self.last = self.last.max(timestamp);
    }
}

impl Input {
    fn new(reader: Reader, which: Which) -> Self {
        Self { reader, numbers: Vec::new(), begun: false, next: None, which }
    }

    /// Returns whether another input returns everything else in the file.
    fn repeats(&self) -> bool {
        matches!(self.which, Which::Only(_))
    }

    /// Returns whether this is a packet to return.
    fn wants(&self, seen: &Seen) -> bool {
        matches!(seen, Seen::Packet(packet) if self.which.has(packet))
    }

    /// Numbers new interfaces.
    fn number(&mut self, all: &mut Vec<FileInterface>) {
        for interface in &self.reader.interfaces()[self.numbers.len()..] {
            let same = (0..all.len()).find(|n| all[*n] == *interface && !self.numbers.contains(&number(*n)));
            let place = same.unwrap_or_else(|| {
                all.push(interface.clone());
                all.len() - 1
            });
            self.numbers.push(number(place));
        }
    }

    /// Takes the next packet, which is valid until the reader continues.
    fn take(&mut self) -> Option<Packet<'_>> {
        let packet = self.next.take()?;
        let mut packet = self.reader.view(&packet);
        packet.interface = self.numbers[packet.interface as usize];
        Some(packet)
    }
}

/// The value is limited by the number of files and of interfaces in each.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Packets held back, in order of time.
#[derive(Debug, Default)]
struct Held {
    /// Timestamp, order of arrival, place.
    order: BinaryHeap<Reverse<(u64, u64, usize)>>,
    places: Vec<Owned>,
    free: Vec<usize>,
    /// The place returned last, which is free at the next call.
    out: Option<usize>,
    arrived: u64,
    /// Memory used.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Owned {
    /// The packet, then its notes.
    bytes: Vec<u8>,
    captured: usize,
    /// The packet without borrowed data.
    facts: Option<Packet<'static>>,
}

impl Held {
    fn oldest(&self) -> Option<u64> {
        self.order.peek().map(|Reverse((timestamp, ..))| *timestamp)
    }

    fn is_due(&self, time: u64) -> bool {
        self.oldest().is_some_and(|oldest| oldest < time)
    }

    fn put(&mut self, packet: &Packet<'_>) {
        self.free.extend(self.out.take());
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Owned::default());
            self.places.len() - 1
        });
        let owned = &mut self.places[place];
        owned.bytes.clear();
        owned.bytes.extend_from_slice(packet.data);
        owned.bytes.extend_from_slice(packet.notes.as_bytes());
        owned.captured = packet.data.len();
        owned.facts = Some(Packet { data: &[], comment: None, notes: packet.notes.moved(&[]), ..*packet });
        self.bytes += owned.cost();
        self.order.push(Reverse((packet.timestamp, self.arrived, place)));
        self.arrived += 1;
    }

    fn take(&mut self) -> Option<Packet<'_>> {
        self.free.extend(self.out.take());
        let Reverse((.., place)) = self.order.pop()?;
        self.out = Some(place);
        let owned = &self.places[place];
        self.bytes -= owned.cost();
        let (data, notes) = owned.bytes.split_at(owned.captured);
        owned.facts.map(|facts| {
            let notes = facts.notes.moved(notes);
            Packet { data, comment: notes.comments().last(), notes, ..facts }
        })
    }
}

impl Owned {
    /// Returns the memory used, including the entry in `order` and the allocator's overhead.
    fn cost(&self) -> usize {
        size_of::<Self>() + 40 + self.bytes.capacity()
    }
}
