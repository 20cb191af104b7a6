//! What a copy says at its end of the interfaces, if it has only some of the packets.
//!
//! *A filter* leaves out packets and no time: received and lost packets are those of the capture, and the filter accepted those
//! in the copy.
//!
//! *A time* (`--from`, `--to`) leaves out losses, too. A loss counts at the packet that tells of it, the next one of its queue: the
//! first packet of the copy may tell of losses that began before. Losses are unknown if the input has some that no packet tells
//! of, on the card or behind the last packet, or if it has not all packets itself; and with a filter, which hands losses on from
//! packets that it rejects.

use weir::reader::InterfaceStatistics;

use crate::units;

/// Why a copy may not have all packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    pub(super) filter: bool,
    pub(super) time: bool,
}

/// The interfaces of the input, by number.
#[derive(Debug, Default)]
pub(super) struct Ends {
    cut: Cut,
    interfaces: Vec<Interface>,
}

#[derive(Debug, Default)]
struct Interface {
    /// Packets in the copy, and losses of which they tell.
    here: Count,
    /// Those of the input that are left out because of their time.
    elsewhere: Count,
    /// The latest statistics, and whether packets have followed them.
    last: Option<InterfaceStatistics>,
    goes_on: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    lost: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, packets: u64, lost: u64) {
        self.packets += packets;
        self.lost += lost;
    }
}

impl Ends {
    pub(super) fn new(cut: Cut) -> Self {
        Self { cut, interfaces: Vec::new() }
    }

    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    #[inline]
    fn at(&mut self, interface: u32) -> &mut Interface {
        let place = interface as usize;
        if self.interfaces.len() <= place {
            self.interfaces.resize_with(place + 1, Interface::default);
        }
        &mut self.interfaces[place]
    }

    /// Counts packets in the copy. Of many, the losses do not matter: no time leaves any out.
    #[inline]
    pub(super) fn taken(&mut self, interface: u32, packets: u64, lost: u64) {
        let interface = self.at(interface);
        interface.here.add(packets, lost);
        interface.goes_on = true;
    }

    /// Counts a packet that is left out because of its time.
    #[inline]
    pub(super) fn left(&mut self, interface: u32, lost: u64) {
        let interface = self.at(interface);
        interface.elsewhere.add(1, lost);
        interface.goes_on = true;
    }

    /// Returns what the copy says in place of these statistics, if anything.
    pub(super) fn told(&mut self, statistics: InterfaceStatistics) -> Option<InterfaceStatistics> {
        let cut = self.cut;
        let interface = self.at(statistics.interface);
        if cut.time {
            let InterfaceStatistics { interface: number, timestamp, ref comment, .. } = statistics;
            let event = InterfaceStatistics {
                interface: number,
                timestamp,
                comment: comment.clone(),
                ..InterfaceStatistics::default()
            };
            interface.goes_on = false;
            interface.last = Some(statistics);
            return event.comment.is_some().then_some(event);
        }
        if !cut.filter {
            return Some(statistics);
        }
        let delivered = delivered(&statistics);
        Some(InterfaceStatistics { accepted: Some(interface.here.packets), delivered, ..statistics })
    }

    /// Returns what the copy says behind all packets. It says nothing of an interface if the input does not.
    pub(super) fn last(&mut self) -> Vec<InterfaceStatistics> {
        let filter = self.cut.filter;
        let ended = self.interfaces.iter_mut().filter(|interface| !interface.goes_on);
        ended.filter_map(|interface| Some(interface.within(interface.last.as_ref()?, filter))).collect()
    }
}

impl Interface {
    /// Returns the statistics of the packets in the copy, if `all` are those of the input.
    fn within(&self, all: &InterfaceStatistics, filter: bool) -> InterfaceStatistics {
        let Self { here, elsewhere, .. } = *self;
        let packets = here.packets + elsewhere.packets;
        let blank = InterfaceStatistics {
            interface: all.interface,
            timestamp: all.timestamp,
            ..InterfaceStatistics::default()
        };
        let is_whole = !filter && delivered(all).is_none_or(|delivered| delivered <= packets);
        let Some(lost) = lost(all) else { return blank };
        let unplaced = lost.saturating_sub(here.lost + elsewhere.lost);
        if !is_whole || unplaced > 0 {
            let comment = match unplaced {
                _ if !is_whole => {
                    "losses between these times are unknown: the capture had other packets".to_owned()
                }
                1 => "the capture lost 1 packet at an unknown time".to_owned(),
                _ => format!("the capture lost {} packets at unknown times", units::grouped(unplaced)),
            };
            // Whoever reads the copy can tell from this that it is a part.
            let delivered = delivered(all).filter(|_| !is_whole);
            return InterfaceStatistics { delivered, comment: Some(comment), ..blank };
        }
        // What a filter of the capture rejected has no time.
        let all_here = here.packets + here.lost;
        let known = |of: Option<u64>| of.filter(|&of| of == packets + lost).map(|_| all_here);
        InterfaceStatistics {
            received: known(all.received),
            dropped: Some(here.lost),
            accepted: known(all.accepted),
            delivered: Some(here.packets),
            ..blank
        }
    }
}

/// Returns all packets lost: one field has the sum of both, or each has its own.
fn lost(statistics: &InterfaceStatistics) -> Option<u64> {
    statistics.dropped.max(statistics.dropped_by_os)
}

/// Returns the packets that reached the program: if this is not told, those that were not lost.
fn delivered(statistics: &InterfaceStatistics) -> Option<u64> {
    let arrived = statistics.accepted.or(statistics.received).zip(lost(statistics));
    statistics.delivered.or_else(|| arrived.map(|(arrived, lost)| arrived.saturating_sub(lost)))
}
