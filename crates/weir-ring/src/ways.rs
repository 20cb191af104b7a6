//! Directions of flows that a kernel program counts, and what is taken of them.
//!
//! ```text
//! program: packets, bytes, ... since the capture began  -->  process: takes what is new, says how much it has taken
//! ```
//!
//! The program counts a way between two changes of its version, the first of which makes that odd; so what is read between two
//! equal even versions was there at one time. Counts only grow, whatever flow is in a way, so nothing is taken twice; and the program gives a way to
//! another flow only if all of its packets are taken, so nothing is missed.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

use crate::region::Region;
use crate::shared::Way;
use crate::sync::{AtomicU32, Ordering, fence};
use crate::words::Table;

/// Looks at a way that is being changed before it is left for the next time.
const TRIES: u32 = 8;
/// The bit of [`Way::state`] that says that `next` is known.
const HAS_NEXT: u32 = 0x100;

/// All ways of a program. It has one reader.
#[derive(Debug)]
pub struct Ways {
    table: Table<Way>,
    len: usize,
}

/// What was counted of one direction of a flow since it was taken before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Address of the source; one of IPv4 has four bytes, and zeros behind them.
    pub source: [u8; 16],
    /// Address of the destination.
    pub destination: [u8; 16],
    /// Ports of source and destination.
    pub ports: [u16; 2],
    /// VLAN ID of its tag.
    pub vlan: Option<u16>,
    /// Protocol of IP.
    pub protocol: u8,
    /// Version of IP: 4 or 6.
    pub version: u8,
    /// Packets.
    pub packets: u64,
    /// Bytes of the IP packets.
    pub bytes: u64,
    /// Time of the first packet, in nanoseconds since the Unix epoch; it may be that of one taken before, if a packet came in just
    /// that moment. The same is true of lengths, marks and TTLs.
    pub first: u64,
    /// Time of the last packet of this way, counted or not.
    pub last: u64,
    /// TCP: behind the last byte that was sent.
    pub next: Option<u32>,
    /// TCP: segments sent again.
    pub retransmissions: u32,
    /// TCP: segments that announce no room.
    pub zero_windows: u32,
    /// Bytes of the shortest and the longest IP packet.
    pub lengths: [u16; 2],
    /// All flags of TCP.
    pub flags: u8,
    /// The least and the greatest TTL.
    pub ttls: [u8; 2],
    /// All bits of the TOS together.
    pub tos: u8,
}

impl Ways {
    /// Maps a map of so many ways.
    ///
    /// # Errors
    ///
    /// The error of `mmap`.
    pub fn shared(map: impl AsFd, len: usize) -> io::Result<Self> {
        let table = Table::of(len, 0, |bytes| {
            Region::shared(map, 0, bytes.next_multiple_of(rustix::param::page_size()), true)
        })?;
        Ok(Self { table, len })
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes what is new in these ways. One that is changed all the time is left for the next time.
    pub fn take(&mut self, range: Range<usize>, each: &mut impl FnMut(Tally)) {
        for index in range.start..range.end.min(self.len) {
            let way = self.table.get(index);
            // Relaxed: only whether to look. `taken` is ours.
            let taken = way.taken.load(Ordering::Relaxed);
            if way.packets.load(Ordering::Relaxed) != taken
                && let Some(taken) = read(way)
            {
                each(taken);
            }
        }
    }
}

fn read(way: &Way) -> Option<Tally> {
    let (taken, packets, bytes, retransmissions, zero_windows) = (0..TRIES).find_map(|_| {
        // Acquire, paired with `publish(&way->version)` in ways.h: what was written before is seen.
        let version = way.version.load(Ordering::Acquire);
        if version % 2 == 1 {
            std::hint::spin_loop();
            return None;
        }
        let now = snapshot(way);
        // Acquire, so that the loads before it are not after the next one, which is compared with the first.
        fence(Ordering::Acquire);
        (way.version.load(Ordering::Relaxed) == version).then_some(now)
    })?;
    if taken.packets == 0 {
        return None;
    }
    way.taken_bytes.store(bytes, Ordering::Relaxed);
    way.taken_retransmissions.store(retransmissions, Ordering::Relaxed);
    way.taken_zero_windows.store(zero_windows, Ordering::Relaxed);
    // Release, paired with `is_taken` in ways.h: the program gives the way to another flow after this, and what was read is read.
    way.taken.store(packets, Ordering::Release);
    Some(taken)
}

/// Reads a way, and its counts since the capture began: packets, bytes, retransmissions, zero windows.
fn snapshot(way: &Way) -> (Tally, u64, u64, u32, u32) {
    // Relaxed: `read` checks that nothing changed meanwhile.
    let now = Ordering::Relaxed;
    let address = |words: &[crate::sync::AtomicU64; 2]| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words[0].load(now).to_ne_bytes());
        bytes[8..].copy_from_slice(&words[1].load(now).to_ne_bytes());
        bytes
    };
    let since = |counter: &AtomicU32, taken: &AtomicU32| {
        let counted = counter.load(now);
        (counted, counted.wrapping_sub(taken.load(now)))
    };
    let [a, b, c, d, e, f, protocol, version] = way.key.rest.load(now).to_le_bytes();
    // Numbers of the network's byte order, in numbers of the machine's.
    let ports = [[a, b], [c, d]].map(|port| u16::from_be(u16::from_le_bytes(port)));
    let (packets, bytes) = (way.packets.load(now), way.bytes.load(now));
    let (retransmissions, more_retransmissions) = since(&way.retransmissions, &way.taken_retransmissions);
    let (zero_windows, more_zero_windows) = since(&way.zero_windows, &way.taken_zero_windows);
    let [g, h, i, j] = way.lengths.load(now).to_le_bytes();
    let [flags, least_ttl, most_ttl, tos] = way.marks.load(now).to_le_bytes();
    let taken = Tally {
        source: address(&way.key.source),
        destination: address(&way.key.destination),
        ports,
        vlan: u16::from_le_bytes([e, f]).checked_sub(1),
        protocol,
        version,
        packets: packets.wrapping_sub(way.taken.load(now)),
        bytes: bytes.wrapping_sub(way.taken_bytes.load(now)),
        first: way.first.load(now),
        last: way.last.load(now),
        next: (way.state.load(now) & HAS_NEXT != 0).then(|| way.next.load(now)),
        retransmissions: more_retransmissions,
        zero_windows: more_zero_windows,
        lengths: [[g, h], [i, j]].map(u16::from_le_bytes),
        flags,
        ttls: [least_ttl, most_ttl],
        tos,
    };
    (taken, packets, bytes, retransmissions, zero_windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    fn ways(len: usize) -> Ways {
        Ways { table: Table::new(len, 0).expect("memory"), len }
    }

    fn all(ways: &mut Ways) -> Vec<Tally> {
        let (mut all, len) = (Vec::new(), ways.len());
        ways.take(0..len, &mut |taken| all.push(taken));
        all
    }

    fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    #[test]
    fn what_is_new_is_taken_once() {
        let mut ways = ways(3);
        assert_eq!(all(&mut ways), []);
        let way = ways.table.get(1);
        way.key.source[0].store(u64::from(u32::from_ne_bytes([10, 0, 0, 1])), Ordering::Relaxed);
        let ports = u64::from(80_u16.to_be()) | u64::from(1234_u16.to_be()) << 16;
        way.key.rest.store(ports | 8 << 32 | 6 << 48 | 4 << 56, Ordering::Relaxed);
        add(&way.packets, 3);
        add(&way.bytes, 300);
        way.retransmissions.store(2, Ordering::Relaxed);
        way.lengths.store(1500 << 16 | 40, Ordering::Relaxed);
        way.marks.store(0x2040_3810, Ordering::Relaxed);
        let taken = all(&mut ways);
        assert_eq!(taken.len(), 1);
        let Tally { source, ports, vlan, protocol, version, packets, bytes, .. } = taken[0];
        assert_eq!((&source[..5], ports, vlan), (&[10, 0, 0, 1, 0][..], [80, 1234], Some(7)));
        assert_eq!((protocol, version, packets, bytes), (6, 4, 3, 300));
        let Tally { retransmissions, lengths, flags, ttls, tos, next, .. } = taken[0];
        assert_eq!((retransmissions, lengths, flags, ttls, tos), (2, [40, 1500], 0x10, [0x38, 0x40], 0x20));
        assert_eq!(next, None);
        assert_eq!(all(&mut ways), []);
        let way = ways.table.get(1);
        add(&way.packets, 1);
        add(&way.bytes, 50);
        let again = all(&mut ways);
        assert_eq!((again[0].packets, again[0].bytes, again[0].retransmissions), (1, 50, 0));
    }

    #[test]
    fn what_is_being_changed_waits() {
        let mut ways = ways(1);
        let way = ways.table.get(0);
        add(&way.packets, 1);
        add(&way.version, 1);
        assert_eq!(all(&mut ways), []);
        add(&ways.table.get(0).version, 1);
        assert_eq!(all(&mut ways).len(), 1);
    }

    /// As the program does it, in another thread.
    #[test]
    fn sums_close_while_others_count() {
        const PACKETS: u64 = if cfg!(miri) { 200 } else { 300_000 };
        let ways = ways(1);
        let way = ways.table.get(0);
        let (over, mut sum) = (AtomicU64::new(0), (0, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..PACKETS {
                    add(&way.version, 1);
                    fence(Ordering::SeqCst);
                    add(&way.packets, 1);
                    add(&way.bytes, 7);
                    fence(Ordering::SeqCst);
                    add(&way.version, 1);
                }
                over.store(1, Ordering::Release);
            });
            loop {
                let is_over = over.load(Ordering::Acquire) == 1;
                if let Some(taken) = read(way) {
                    assert_eq!(taken.bytes, taken.packets * 7, "counted together");
                    sum = (sum.0 + taken.packets, sum.1 + taken.bytes);
                }
                if is_over {
                    break;
                }
            }
        });
        assert_eq!(sum, (PACKETS, PACKETS * 7));
    }
}
