//! What is kept of a flow, packed: an entry takes 176 bytes, its links in the table 16 more.

use crate::counted::Counted;
use crate::flow::{EndReason, Flow, Icmp, Names, Rank, Side, Tcp, rate};
use crate::seen::{HAS_TUNNEL, Key, Seen, TcpSeen, UNTAGGED, flag};
use weir_packet::protocol::TCP;

/// Arrays of two are in the order of the ends in `key`. What each packet needs comes first: the fewer lines of the cache it is in,
/// the faster.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// The next one with the same place in the table.
    pub(crate) chain: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) packets: [u64; 2],
    bytes: [u64; 2],
    /// Behind the last byte that was sent.
    next: [u32; 2],
    shortest: [u16; 2],
    longest: [u16; 2],
    state: u16,
    flags: [u8; 2],
    least_ttl: [u8; 2],
    most_ttl: [u8; 2],
    tos: [u8; 2],
    icmp: [u8; 2],
    zero_windows: [u16; 2],
    initial: [u32; 2],
    retransmissions: [u32; 2],
    /// Microseconds from the first packet to SYN and ACK, and to the ACK of the client.
    answered: u32,
    established: u32,
    pub(crate) interface: u16,
    macs: [[u8; 6]; 2],
}

const _: () = assert!(size_of::<Entry>() <= 176, "an entry is no longer than the documents say");

/// Bits of an entry's state. Those for an end are for the higher end one further.
mod state {
    /// The higher end began.
    pub(super) const SWAPPED: u16 = 1;
    pub(super) const HAS_MACS: u16 = 1 << 1;
    pub(super) const HAS_ICMP: u16 = 1 << 2;
    /// FIN from both, or RST.
    pub(super) const CLOSED: u16 = 1 << 3;
    pub(super) const HAS_NAMES: u16 = 1 << 4;
    /// The first packet was SYN: times count from it.
    pub(super) const BEGAN: u16 = 1 << 5;
    pub(super) const ANSWERED: u16 = 1 << 6;
    pub(super) const ESTABLISHED: u16 = 1 << 7;
    /// A header of TCP was there.
    pub(super) const HAS_TCP: u16 = 1 << 8;
    /// The sequence number of SYN is known.
    pub(super) const INITIAL: u16 = 1 << 9;
    /// What was sent is known.
    pub(super) const NEXT: u16 = 1 << 11;
    /// A packet has come after a later one: queues are not in order, and times between packets mean nothing.
    pub(super) const DISORDERED: u16 = 1 << 13;
}

impl Entry {
    /// A flow without packets.
    fn empty(key: Key, time: u64, interface: u16) -> Self {
        Self {
            key,
            chain: u32::MAX,
            first: time,
            last: time,
            packets: [0; 2],
            bytes: [0; 2],
            next: [0; 2],
            initial: [0; 2],
            retransmissions: [0; 2],
            answered: 0,
            established: 0,
            zero_windows: [0; 2],
            shortest: [0; 2],
            longest: [0; 2],
            interface,
            macs: [[0; 6]; 2],
            flags: [0; 2],
            least_ttl: [0; 2],
            most_ttl: [0; 2],
            tos: [0; 2],
            icmp: [0; 2],
            state: 0,
        }
    }

    /// A flow that begins with packets that others have counted.
    pub(crate) fn counted(key: Key, from: usize, counted: &Counted) -> Self {
        let mut entry = Self::empty(key, counted.first, counted.interface);
        entry.begun_by(from);
        entry
    }

    pub(crate) fn new(seen: &Seen, time: u64, interface: u16) -> Self {
        let mut entry = Self::empty(seen.key, time, interface);
        let answers =
            seen.tcp.is_some_and(|tcp| tcp.flags & (flag::SYN | flag::ACK) == flag::SYN | flag::ACK);
        // What somebody sends to himself has one side.
        let has_sides = seen.key.end(0) != seen.key.end(1);
        entry.set(state::SWAPPED, has_sides && (seen.from == 1) != answers);
        if let Some(icmp) = seen.icmp {
            entry.icmp = [icmp.kind, icmp.code];
            entry.set(state::HAS_ICMP, true);
        }
        if let Some([source, destination]) = seen.macs {
            entry.macs[seen.from] = source;
            entry.macs[1 - seen.from] = destination;
            entry.set(state::HAS_MACS, true);
        }
        entry
    }

    /// Notes which end began.
    fn begun_by(&mut self, end: usize) {
        // What somebody sends to himself has one side.
        let has_sides = self.key.end(0) != self.key.end(1);
        self.set(state::SWAPPED, has_sides && end == 1);
    }

    fn is(&self, bit: u16) -> bool {
        self.state & bit != 0
    }

    fn set(&mut self, bit: u16, value: bool) {
        self.state = if value { self.state | bit } else { self.state & !bit };
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is(state::CLOSED)
    }

    pub(crate) fn has_names(&self) -> bool {
        self.is(state::HAS_NAMES)
    }

    pub(crate) fn set_names(&mut self) {
        self.set(state::HAS_NAMES, true);
    }

    /// Adds a packet.
    #[inline]
    pub(crate) fn add(&mut self, seen: &Seen, time: u64) {
        let from = seen.from;
        if time < self.last {
            self.set(state::DISORDERED, true);
        }
        // An earlier packet from the other end, unless SYN says who began.
        if time < self.first && (self.flags[0] | self.flags[1]) & flag::SYN == 0 {
            self.begun_by(from);
        }
        let length = u16::try_from(seen.bytes).unwrap_or(u16::MAX);
        self.extend(from, [length; 2], [seen.ttl; 2]);
        self.packets[from] += 1;
        self.bytes[from] += seen.bytes;
        self.tos[from] |= seen.tos;
        if let Some(tcp) = &seen.tcp {
            self.add_tcp(tcp, from, time);
        }
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Extends the ranges of lengths and TTLs of a way, before its packets are counted.
    #[inline]
    fn extend(&mut self, from: usize, [shortest, longest]: [u16; 2], [least_ttl, most_ttl]: [u8; 2]) {
        if self.packets[from] == 0 {
            (self.shortest[from], self.longest[from]) = (shortest, longest);
            (self.least_ttl[from], self.most_ttl[from]) = (least_ttl, most_ttl);
        } else {
            self.shortest[from] = self.shortest[from].min(shortest);
            self.longest[from] = self.longest[from].max(longest);
            self.least_ttl[from] = self.least_ttl[from].min(least_ttl);
            self.most_ttl[from] = self.most_ttl[from].max(most_ttl);
        }
    }

    /// Adds packets that others have counted.
    pub(crate) fn add_counted(&mut self, from: usize, counted: &Counted) {
        self.extend(from, counted.lengths, counted.ttls);
        self.packets[from] += counted.packets;
        self.bytes[from] += counted.bytes;
        self.tos[from] |= counted.tos;
        if counted.is_tcp() {
            let bit = state::NEXT << from;
            self.set(state::HAS_TCP, true);
            self.flags[from] |= counted.flags;
            if let Some(next) = counted.next
                && (!self.is(bit) || is_after(next, self.next[from]))
            {
                self.next[from] = next;
                self.set(bit, true);
            }
            let retransmissions = &mut self.retransmissions[from];
            *retransmissions = retransmissions.saturating_add(counted.retransmissions);
            let more = u16::try_from(counted.zero_windows).unwrap_or(u16::MAX);
            self.zero_windows[from] = self.zero_windows[from].saturating_add(more);
        }
        self.first = self.first.min(counted.first);
        self.last = self.last.max(counted.last);
    }

    fn add_tcp(&mut self, tcp: &TcpSeen, from: usize, time: u64) {
        let (began, bit) = (self.flags == [0; 2], |bit: u16| bit << from);
        let (syn, ack) = (tcp.flags & flag::SYN != 0, tcp.flags & flag::ACK != 0);
        if syn && (self.flags[0] | self.flags[1]) & flag::SYN == 0 {
            self.begun_by(if ack { 1 - from } else { from });
        }
        self.set(state::HAS_TCP, true);
        self.flags[from] |= tcp.flags;
        let swapped = usize::from(self.is(state::SWAPPED));
        // SYN and FIN take a sequence number each.
        let length = tcp.payload + u32::from(syn) + u32::from(tcp.flags & flag::FIN != 0);
        let end = tcp.sequence.wrapping_add(length);
        if syn && !self.is(bit(state::INITIAL)) {
            self.initial[from] = tcp.sequence;
            self.set(bit(state::INITIAL), true);
        }
        if !self.is(bit(state::NEXT)) {
            if length > 0 || ack {
                self.next[from] = end;
                self.set(bit(state::NEXT), true);
            }
        } else if is_after(end, self.next[from]) {
            self.next[from] = end;
        } else if length > 0 && time >= self.last && !is_probe(tcp, length, self.next[from]) {
            self.retransmissions[from] = self.retransmissions[from].saturating_add(1);
        }
        if tcp.window == 0 && tcp.flags & (flag::SYN | flag::RST) == 0 {
            self.zero_windows[from] = self.zero_windows[from].saturating_add(1);
        }
        self.handshake(syn, ack, began, from != swapped, time);
        let fins = self.flags[0] & self.flags[1] & flag::FIN != 0;
        if fins || tcp.flags & flag::RST != 0 {
            self.set(state::CLOSED, true);
        }
    }

    /// Times of the three packets that open a connection. `answers`: it is from the side that did not begin.
    fn handshake(&mut self, syn: bool, ack: bool, began: bool, answers: bool, time: u64) {
        let after = u32::try_from(time.saturating_sub(self.first) / 1000).unwrap_or(u32::MAX);
        if began && syn && !ack {
            self.set(state::BEGAN, true);
        } else if !self.is(state::BEGAN) || self.is(state::ESTABLISHED) {
        } else if syn && ack && answers && !self.is(state::ANSWERED) {
            self.answered = after;
            self.set(state::ANSWERED, true);
        } else if ack && !syn && !answers && self.is(state::ANSWERED) {
            self.established = after;
            self.set(state::ESTABLISHED, true);
        }
    }

    /// Returns what [`Flow::rank`] returns.
    pub(crate) fn rank(&self, rank: Rank) -> u64 {
        let sum = |both: [u64; 2]| both[0] + both[1];
        match rank {
            Rank::Bytes => sum(self.bytes),
            Rank::Packets => sum(self.packets),
            Rank::Rate => rate(sum(self.bytes), self.last - self.first),
            Rank::Retransmissions => sum(self.retransmissions.map(u64::from)),
        }
    }

    /// Returns the flow, as it is handed out. `lost`: packets that were lost meanwhile.
    pub(crate) fn flow(&self, reason: EndReason, names: Option<Box<Names>>, lost: u64) -> Flow {
        let begins = usize::from(self.is(state::SWAPPED));
        let order = [begins, 1 - begins];
        let side = |end: usize| Side {
            end: self.key.end(end),
            mac: self.is(state::HAS_MACS).then_some(self.macs[end]),
            packets: self.packets[end],
            bytes: self.bytes[end],
            lengths: [self.shortest[end], self.longest[end]],
            ttls: [self.least_ttl[end], self.most_ttl[end]],
            tos: self.tos[end],
        };
        let tcp = (self.key.protocol == TCP && self.is(state::HAS_TCP)).then(|| Tcp {
            flags: order.map(|end| self.flags[end]),
            initial_sequences: order.map(|end| self.is(state::INITIAL << end).then_some(self.initial[end])),
            retransmissions: order.map(|end| self.retransmissions[end]),
            zero_windows: order.map(|end| self.zero_windows[end]),
            handshake: match self.is(state::DISORDERED) {
                true => [None; 2],
                false => [
                    self.is(state::ANSWERED).then_some(self.answered),
                    self.is(state::ESTABLISHED).then(|| self.established.saturating_sub(self.answered)),
                ],
            },
        });
        Flow {
            interface: self.interface,
            sides: order.map(side),
            protocol: self.key.protocol,
            vlan: (self.key.vlan != UNTAGGED).then_some(self.key.vlan),
            tunnel: (self.key.kind & HAS_TUNNEL != 0).then_some(self.key.tunnel),
            first: self.first,
            last: self.last,
            lost,
            reason,
            icmp: self.is(state::HAS_ICMP).then(|| Icmp { kind: self.icmp[0], code: self.icmp[1] }),
            tcp,
            names,
        }
    }
}

/// Whether a sequence number is behind another (RFC 1982).
fn is_after(one: u32, other: u32) -> bool {
    matches!(one.wrapping_sub(other), 1..=0x7fff_ffff)
}

/// Whether it asks if the other side is alive (RFC 1122, section 4.2.3.6): the byte before what comes next.
fn is_probe(tcp: &TcpSeen, length: u32, next: u32) -> bool {
    tcp.payload == length && length == 1 && tcp.sequence == next.wrapping_sub(1)
}
