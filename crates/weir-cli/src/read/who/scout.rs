//! Reads files ahead of whoever reads their packets, for what they keep of sockets.

use std::collections::VecDeque;
use std::path::PathBuf;

use weir::filter::FileFilter;
use weir::reader::Item;
use weir::who::Owners;

use super::super::input::{Input, Sort};
use crate::failure::Failure;

/// How far the scout is ahead, in nanoseconds: a capture writes what it hears of sockets at least once a second, and a queue may
/// be ahead of others by as much.
const AHEAD: u64 = 5_000_000_000;
/// How exactly the way is remembered, in nanoseconds.
const STEP: u64 = 100_000_000;
/// A packet that is so much later than those before it, in nanoseconds, may have a wrong time: the next one tells.
const ODD: u64 = 3_600_000_000_000;

/// How much of the files somebody has read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) packets: u64,
    pub(super) blocks: u64,
}

#[derive(Debug)]
pub(super) struct Scout {
    input: Input,
    course: Course,
    pub(super) is_over: bool,
}

impl Scout {
    pub(super) fn open(files: &[PathBuf], sort: Sort, filter: Option<&FileFilter>) -> Result<Self, Failure> {
        Ok(Self { input: Input::open(files, sort, filter)?, course: Course::default(), is_over: false })
    }

    /// Reads on until it is far enough ahead of somebody, or at the end.
    #[inline]
    pub(super) fn lead(&mut self, reader: Place, owners: &mut Owners) {
        while !self.is_over && !self.course.leads(reader) {
            self.read(owners);
        }
    }

    /// Reads a part, which may have nothing about sockets.
    pub(super) fn read(&mut self, owners: &mut Owners) {
        if let Some(run) = self.input.next_run() {
            self.course.packets(run.packets, &[run.first, run.last]);
            return;
        }
        match self.input.next() {
            Ok(Some(Item::Packet(packet))) => self.course.packets(1, &[packet.timestamp]),
            Ok(Some(Item::Block { kind, body })) => {
                self.course.place.blocks += 1;
                owners.learn(kind, body);
            }
            Ok(Some(_)) => {}
            Ok(None) => self.is_over = true,
            // Whoever reads the packets tells of it. Other files may have more.
            Err(_) => {}
        }
    }
}

/// How far the scout has come. Times may be wrong or go back, so the way counts, which is the sum of steps forwards.
#[derive(Debug, Default)]
struct Course {
    place: Place,
    /// The time from which the next step is measured, in nanoseconds since the Unix epoch.
    time: Option<u64>,
    /// The sum of steps, each at most [`AHEAD`], in nanoseconds.
    way: u64,
    /// Time and way before the last packet, if its time may be wrong.
    before: Option<(u64, u64)>,
    /// Up to so many packets, the way was this, or less than a [`STEP`] more or less: those that the reader has not passed.
    marks: VecDeque<(u64, u64)>,
}

impl Course {
    /// Takes in so many packets with these times.
    fn packets(&mut self, count: u64, times: &[u64]) {
        times.iter().for_each(|time| self.go(*time));
        self.place.packets += count;
        match self.marks.back_mut() {
            Some((packets, way)) if self.way.abs_diff(*way) < STEP => *packets = self.place.packets,
            _ => self.marks.push_back((self.place.packets, self.way)),
        }
    }

    fn go(&mut self, time: u64) {
        // The packet before was odd if this one goes on where others were.
        if let Some((known, way)) = self.before.take()
            && (known.saturating_sub(AHEAD)..known.saturating_add(ODD)).contains(&time)
        {
            (self.time, self.way) = (Some(known), way);
        }
        let known = *self.time.get_or_insert(time);
        let step = time.saturating_sub(known);
        let back = known.saturating_sub(time);
        // Queues are not in step with each other.
        if back > 0 && back <= AHEAD {
            return;
        }
        if back > 0 || step > ODD {
            self.before = Some((known, self.way));
        }
        self.way = self.way.saturating_add(step.min(AHEAD));
        self.time = Some(time);
    }

    /// Returns whether this is far enough ahead of a reader, who never goes back.
    #[inline]
    fn leads(&mut self, reader: Place) -> bool {
        if self.place.packets < reader.packets || self.place.blocks < reader.blocks {
            return false;
        }
        while self.marks.front().is_some_and(|(packets, _)| *packets < reader.packets) {
            self.marks.pop_front();
        }
        let passed = self.marks.front().map_or(self.way, |(_, way)| *way);
        let way = self.before.map_or(self.way, |(_, way)| way);
        way >= passed.saturating_add(STEP + AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns how many packets a scout has read when somebody has got each of them, but for those near the end.
    fn led(times: &[u64]) -> Vec<u64> {
        let (mut course, mut led) = (Course::default(), Vec::new());
        let mut ahead = times.iter();
        for packets in 1.. {
            while !course.leads(Place { packets, blocks: 0 }) {
                let Some(time) = ahead.next() else { return led };
                course.packets(1, &[*time]);
            }
            led.push(course.place.packets);
        }
        led
    }

    /// Ten packets per second.
    fn regular() -> Vec<u64> {
        (0..1000).map(|number| 1_700_000_000 * SECOND + number * SECOND / 10).collect()
    }

    #[test]
    fn a_scout_is_some_seconds_ahead_whatever_time_packets_have() {
        let lead = |times: &[u64]| -> Vec<u64> { (1..).zip(led(times)).map(|(at, led)| led - at).collect() };
        let distances = |times: &[u64]| {
            let lead = lead(times);
            assert!(lead.len() > 900, "{} packets until the scout was at the end", lead.len());
            (*lead.iter().min().expect("some"), *lead.iter().max().expect("some"))
        };
        let is_near = |(least, most): (u64, u64)| least >= 50 && most <= 55;
        assert!(is_near(distances(&regular())), "{:?}", distances(&regular()));
        // One packet from the future; the end of time.
        for time in [2_000_000_000 * SECOND, u64::MAX] {
            let mut odd = regular();
            odd[500] = time;
            let (least, most) = distances(&odd);
            assert!(least >= 49 && most <= 110, "{least} to {most}");
        }
        // One from the past.
        let mut odd = regular();
        odd[500] = 0;
        let (least, most) = distances(&odd);
        assert!(least >= 49 && most <= 110, "{least} to {most}");
        // A clock that is set back, and one that is set forward.
        for change in [-600_i64, 600, 86_400] {
            let mut set = regular();
            let change = change * 1_000_000_000;
            set[500..].iter_mut().for_each(|time| *time = time.saturating_add_signed(change));
            let (least, most) = distances(&set);
            assert!(least >= 1 && most <= 55, "{change}: {least} to {most}");
            // Who is past the change is led as before.
            assert!(lead(&set)[500..].iter().all(|lead| *lead >= 50), "{change}");
        }
        // Queues that are not in step count once.
        let mut queues = regular();
        queues.chunks_mut(8).for_each(|chunk| chunk.rotate_left(4));
        let (least, most) = distances(&queues);
        assert!(least >= 42 && most <= 63, "{least} to {most}");
    }

    #[test]
    fn a_scout_is_never_behind_and_remembers_little() {
        let mut course = Course::default();
        course.packets(1, &[0]);
        (1..100_000).for_each(|number| course.packets(1, &[number * 1_000_000]));
        let marks = course.marks.len();
        assert!(marks <= 1001, "{marks}");
        assert!(course.leads(Place { packets: 1, blocks: 0 }));
        assert!(!course.leads(Place { packets: 1, blocks: 1 }), "a block that it has not read");
        assert!(!course.leads(Place { packets: 100_001, blocks: 0 }), "a packet that it has not read");
        assert!(!course.leads(Place { packets: 100_000, blocks: 0 }), "it is not ahead");
    }
}
