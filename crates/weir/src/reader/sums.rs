//! Statistics of interfaces that several files share.

use super::InterfaceStatistics;

/// What the files have said so far about their interfaces, and what is known of all together.
///
/// A sum is known once every file that has the interface has told its part.
#[derive(Debug, Default)]
pub(super) struct Sums {
    interfaces: Vec<Interface>,
    /// The interface to be closed next.
    closing: usize,
}

#[derive(Debug, Default)]
struct Interface {
    /// The last statistics of each file, by its input.
    parts: Vec<(usize, Option<InterfaceStatistics>)>,
    /// Packets have followed the last statistics.
    goes_on: bool,
    /// The counters of the last statistics.
    said: Option<Counters>,
}

type Counters = [Option<u64>; 5];

fn counters(statistics: &InterfaceStatistics) -> Counters {
    let InterfaceStatistics { received, dropped, accepted, dropped_by_os, delivered, .. } = *statistics;
    [received, dropped, accepted, dropped_by_os, delivered]
}

impl Sums {
    /// Notes that `input` has this interface.
    pub(super) fn has(&mut self, interface: u32, input: usize) {
        self.at(interface).parts.push((input, None));
    }

    /// Notes a packet of this interface. With lanes, it may come before the input that tells of the interface gets there.
    #[inline]
    pub(super) fn packet(&mut self, interface: u32) {
        match self.interfaces.get_mut(interface as usize) {
            Some(interface) => interface.goes_on = true,
            None => self.at(interface).goes_on = true,
        }
    }

    #[cold]
    fn at(&mut self, interface: u32) -> &mut Interface {
        let place = interface as usize;
        if self.interfaces.len() <= place {
            self.interfaces.resize_with(place + 1, Interface::default);
        }
        &mut self.interfaces[place]
    }

    /// Returns the statistics of all files, now that `input` has told these. `all_known`: the interfaces of every file
    /// are known.
    pub(super) fn told(
        &mut self,
        input: usize,
        statistics: InterfaceStatistics,
        all_known: bool,
    ) -> InterfaceStatistics {
        let interface = &mut self.interfaces[statistics.interface as usize];
        let event = statistics.clone();
        if let Some((_, part)) = interface.parts.iter_mut().find(|(of, _)| *of == input) {
            *part = Some(statistics);
        }
        let sum = if all_known { interface.sum() } else { None };
        let blank = InterfaceStatistics { interface: event.interface, ..InterfaceStatistics::default() };
        let sum = sum.unwrap_or(blank);
        interface.said = Some(counters(&sum));
        interface.goes_on = false;
        InterfaceStatistics { timestamp: event.timestamp, comment: event.comment, ..sum }
    }

    /// Returns the statistics of the next interface, after all packets, where the last ones are not final.
    pub(super) fn close(&mut self) -> Option<InterfaceStatistics> {
        while let Some(interface) = self.interfaces.get(self.closing) {
            self.closing += 1;
            let is_new =
                |sum: &InterfaceStatistics| interface.goes_on || interface.said != Some(counters(sum));
            if let Some(sum) = interface.sum().filter(is_new) {
                return Some(sum);
            }
        }
        None
    }
}

impl Interface {
    /// Returns the sum; `None`: a file has told nothing. What only some files count is left out.
    fn sum(&self) -> Option<InterfaceStatistics> {
        let parts: Option<Vec<&InterfaceStatistics>> =
            self.parts.iter().map(|(_, part)| part.as_ref()).collect();
        let parts = parts?;
        let add = |of: fn(&InterfaceStatistics) -> Option<u64>| {
            parts.iter().map(|part| of(part)).try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
        };
        let ends: Option<Vec<u64>> = parts.iter().map(|part| part.end).collect();
        Some(InterfaceStatistics {
            interface: parts.first()?.interface,
            timestamp: parts.iter().map(|part| part.timestamp).max()?,
            start: parts.iter().filter_map(|part| part.start).min(),
            end: ends.and_then(|ends| ends.into_iter().max()),
            received: add(|part| part.received),
            dropped: add(|part| part.dropped),
            accepted: add(|part| part.accepted),
            dropped_by_os: add(|part| part.dropped_by_os),
            delivered: add(|part| part.delivered),
            comment: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(dropped: u64, timestamp: u64) -> InterfaceStatistics {
        InterfaceStatistics { dropped: Some(dropped), timestamp, ..InterfaceStatistics::default() }
    }

    #[test]
    fn parts_add_up_once_all_are_told() {
        let mut sums = Sums::default();
        sums.has(0, 0);
        sums.has(0, 1);
        assert_eq!(sums.told(0, told(3, 10), true).dropped, None);
        let both = sums.told(1, told(4, 5), true);
        assert_eq!((both.dropped, both.timestamp), (Some(7), 5));
        // The later word of a file replaces its earlier one.
        assert_eq!(sums.told(0, told(5, 20), true).dropped, Some(9));
        assert!(sums.close().is_none(), "nothing is new");
    }

    #[test]
    fn what_a_file_has_not_told_stays_unknown() {
        let mut sums = Sums::default();
        sums.has(0, 0);
        // The second file, which has the interface, too, has not been read yet.
        assert_eq!(sums.told(0, told(0, 10), false).dropped, None);
        sums.has(0, 1);
        assert_eq!(sums.told(0, told(0, 20), true).dropped, None);
        sums.packet(0);
        assert!(sums.close().is_none(), "the second file has told nothing");
    }

    #[test]
    fn statistics_follow_the_last_packet() {
        let mut sums = Sums::default();
        sums.packet(1);
        sums.has(0, 0);
        sums.has(1, 0);
        sums.told(0, told(3, 10), true);
        sums.packet(0);
        let last = sums.close().expect("packets have followed");
        assert_eq!((last.dropped, last.timestamp), (Some(3), 10));
        assert!(sums.close().is_none(), "once");
    }
}
