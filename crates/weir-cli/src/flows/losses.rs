//! Tells tables what was lost when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir::flows::Table;
use weir::{CaptureStats, Packet};

/// What a capture has lost, as its counters tell it now and then.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// When the counters were read before, and what those of each interface said.
    read: u64,
    lost: Vec<u64>,
}

impl Watched {
    /// Tells what was lost since the last time. `before`: when the counters were about to be read.
    pub(super) fn tell(&mut self, before: u64, stats: &CaptureStats, mut tell: impl FnMut(Loss)) {
        let until = now();
        self.lost.resize(stats.interfaces.len(), 0);
        for (interface, told) in (0..).zip(&mut self.lost) {
            let stats = &stats.interfaces[usize::from(interface)];
            let (counters, nic) = (stats.total(), stats.nic.unwrap_or_default());
            let lost = counters.lost + counters.errors + nic.missed + nic.fifo_errors;
            let more = lost.saturating_sub(*told);
            if more > 0 {
                tell(Loss { interface, after: self.read, until, packets: more });
                *told = lost;
            }
        }
        self.read = before;
    }
}

/// Packets that an interface has lost within some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    interface: u16,
    after: u64,
    until: u64,
    packets: u64,
}

impl Loss {
    pub(super) fn tell(self, table: &mut Table) {
        table.lost(self.interface, self.after, self.until, self.packets);
    }
}

/// Nanoseconds since the Unix epoch, as packets have them.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// The same, so long ago.
pub(super) fn before(time: Duration) -> u64 {
    now().saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// When the last packet of each queue came, by interface and queue.
#[derive(Debug, Default)]
pub(super) struct Read {
    last: Vec<Vec<u64>>,
}

impl Read {
    /// The most queues of an interface that are kept apart.
    const MOST: usize = 256;

    /// Notes a packet of a file, and tells the table what was lost on its queue since the one before it.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet<'_>, table: &mut Table) {
        let (interface, queue) = (packet.interface as usize, packet.queue as usize);
        if let Some(last) = self.last.get_mut(interface).and_then(|queues| queues.get_mut(queue)) {
            let before = std::mem::replace(last, packet.timestamp);
            if packet.lost_before > 0 {
                lost(packet, before, table);
            }
            return;
        }
        self.first(packet, table);
    }

    #[cold]
    fn first(&mut self, packet: &Packet<'_>, table: &mut Table) {
        let (interface, queue) = (packet.interface as usize, packet.queue as usize);
        if self.last.len() <= interface {
            self.last.resize_with(interface + 1, Vec::new);
        }
        // Of the others, nobody knows when the last packet came: then it may have been lost any time before.
        if queue < Self::MOST {
            self.last[interface].resize(queue + 1, 0);
            self.last[interface][queue] = packet.timestamp;
        }
        lost(packet, 0, table);
    }
}

fn lost(packet: &Packet<'_>, before: u64, table: &mut Table) {
    let interface = u16::try_from(packet.interface).unwrap_or(u16::MAX);
    table.lost(interface, before.min(packet.timestamp), packet.timestamp, packet.lost_before);
}
