//! Programs that capture at the full rate of the smallest frames.

use super::both::{Both, EXCLUSIVE, Library, PACKET, PASS, SYSTEM};
use super::{LibpcapPart, Programs};
use crate::contestants::{Contestant, ContestantKind};
use crate::experiment::{Judged, Outcome, Taken, Turn};
use crate::failure::Failure;
use crate::files::SIZE;
use crate::peers;
use crate::program::Program;
use crate::wanted::Wanted;

/// What a program does.
pub(super) struct Work {
    title: &'static str,
    pub(super) part: LibpcapPart,
    /// Whether it writes to a disk.
    disk: bool,
    program: fn(&Both) -> Program,
}

const fn tcpdump(title: &'static str, disk: bool, program: fn(&Both) -> Program) -> Work {
    Work { title, part: LibpcapPart::Tcpdump, disk, program }
}

const fn count(title: &'static str, program: fn(&Both) -> Program) -> Work {
    Work { title, part: LibpcapPart::Count, disk: false, program }
}

pub(super) const WORKS: [Work; 6] = [
    tcpdump("tcpdump -w /dev/null", false, |_| peers::tcpdump("/dev/null")),
    tcpdump("tcpdump -w FILE, tmpfs", false, |_| peers::tcpdump("{file}")),
    tcpdump("tcpdump -w FILE, disk", true, |_| peers::tcpdump("{file}")),
    count("counting, pcap_loop", |both| both.counting("loop")),
    count("counting, pcap_dispatch", |both| both.counting("dispatch")),
    count("counting, pcap_next_ex", |both| both.counting("next_ex")),
];

pub(super) const LIBRARIES: [Library; 4] = [SYSTEM, PACKET, PASS, EXCLUSIVE];

impl Work {
    pub(super) fn series(&self, library: &Library) -> String {
        format!("{}: {}", self.title, library.title)
    }
}

/// One turn of a program on one library.
pub(super) fn measure(
    programs: &Programs,
    work: &Work,
    library: &Library,
    turn: &Turn,
) -> Result<Taken, Failure> {
    let both = &programs.both;
    let program = Program { environment: both.environment(library), ..(work.program)(both) };
    let contestant = Contestant {
        name: library.name,
        title: library.title,
        kind: ContestantKind::Program(program),
        stack: library.stack,
    };
    let lab = programs.lab.as_ref().expect("there is a network where devices are opened");
    let limits = &programs.limits[usize::from(work.disk)];
    let sample = lab.sample(&contestant, SIZE as usize, limits)?;
    let mut taken = Taken { problems: sample.problems.clone(), ..Taken::default() };
    taken.problems.extend(unaccounted(sample.delivered, sample.dropped, sample.accepted));
    taken.add(turn, "rate", sample.rate / 1e6);
    taken.add(turn, "lost", sample.lost as f64 * 100.0 / sample.accepted.max(1) as f64);
    // If packets were lost, the average is less than it takes to deliver a packet.
    let kernel = (sample.lost == 0).then_some(sample.kernel_ns);
    for (measure, time) in [("kernel", kernel), ("reader", sample.reader_ns)] {
        if let Some(time) = time {
            taken.add(turn, measure, time);
        }
    }
    for (measure, packets) in
        [("sent", sample.accepted), ("received", sample.delivered), ("stack", sample.stack)]
    {
        taken.add(turn, measure, packets as f64);
    }
    taken.add(turn, "verified", f64::from(u8::from(sample.verified)));
    Ok(taken)
}

/// Returns what is wrong, unless packets captured and packets reported as dropped add up to all packets.
fn unaccounted(delivered: u64, dropped: Option<u64>, accepted: u64) -> Option<String> {
    let dropped = dropped.unwrap_or(0);
    (delivered + dropped != accepted)
        .then(|| format!("{delivered} captured and {dropped} reported as dropped of {accepted} packets"))
}

/// Rates as multiples of the system's library, and no more packets lost than with it.
pub(super) fn bars(outcome: &Outcome) -> Vec<Judged> {
    let of = |work: &Work| {
        let pair = |library: &Library| [library, &SYSTEM].map(|library| work.series(library));
        let rate = |library: &Library, least| {
            let name = format!("{}: {} / {}, {SIZE} B", work.title, library.title, SYSTEM.title);
            let [ours, theirs] = &pair(library);
            let rates = outcome.ratios([ours, theirs], "rate", None);
            Judged::new(&name, Wanted::AtLeast(least), "times", rates).by_cpu_time(outcome.ratios(
                [theirs, ours],
                "kernel",
                None,
            ))
        };
        let loss = |library: &Library| {
            let (work, ours, theirs) = (work.title, library.title, SYSTEM.title);
            let name = format!("{work}: lost by {ours} beyond {theirs}, {SIZE} B");
            let [ours, theirs] = &pair(library);
            let lost = outcome.added([ours, theirs], "lost", None).into_iter();
            Judged::worst(&name, 0.0, "% of the packets", lost.map(|(_, more)| more.max(0.0)))
        };
        match work.part {
            LibpcapPart::Tcpdump => {
                vec![rate(&PASS, 1.5), loss(&PASS), rate(&EXCLUSIVE, 2.0), loss(&EXCLUSIVE)]
            }
            _ => vec![rate(&EXCLUSIVE, 2.5)],
        }
    };
    WORKS.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_captured_or_reported_as_dropped() {
        let turn = |delivered, dropped| unaccounted(delivered, dropped, 10);
        assert_eq!((turn(10, Some(0)), turn(7, Some(3))), (None, None));
        assert!(turn(7, Some(2)).is_some() && turn(9, None).is_some());
    }
}
