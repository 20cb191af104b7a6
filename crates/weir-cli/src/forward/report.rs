//! Reports the account as text.

use std::fmt::Write;

use weir::Forward;
use weir::parts::command;

use super::summary::{Counters, DirectionSummary, Summary};
use crate::advice;
use crate::report::some_lost;
use crate::rules::{self, Shown};
use crate::style::Paint;
use crate::units;

/// Returns a line for each direction, with possible problems and how it ends.
pub(super) fn opened(forward: &Forward, (from, to): (&str, &str), paint: Paint) -> String {
    let mut text = String::new();
    for direction in forward.directions() {
        let name = paint.bold(format!("{} -> {}", direction.from, direction.to));
        let _infallible = writeln!(text, "{name}: {}", direction.detail);
        if let Some(filter) = direction.filter {
            let _infallible =
                writeln!(text, "{name}: filter `{filter}`; other packets go to the host's stack");
        }
        for note in direction.notes {
            let _infallible = writeln!(text, "{}: {note}", paint.yellow("note"));
        }
    }
    match forward.pinned() {
        Some(place) => {
            let (place, end) = (place.display(), end(from, to));
            let _infallible =
                writeln!(text, "on exit: keeps running in the kernel ({place}); to end it: {end}");
        }
        None => text.push_str("on exit: stops; packets then go to the host's stack\n"),
    }
    text
}

/// Returns the message at the end of a run that leaves forwarding running.
pub(super) fn goes_on((from, to): (&str, &str)) -> String {
    format!("Still running in the kernel; to end it: {}\n", end(from, to))
}

/// Returns the command that ends it.
fn end(from: &str, to: &str) -> String {
    format!("weir forward --end {} {}", command::word(from), command::word(to))
}

/// A column: its title, its value, and whether it is shown even if all values are zero.
type Column = (&'static str, fn(&Counters) -> u64, bool);

/// In the order in which a packet passes the stages.
const COLUMNS: [Column; 11] = [
    ("seen", |counters| counters.packets.seen, true),
    ("filtered", |counters| counters.packets.filtered, false),
    ("blocked", |counters| counters.packets.blocked, false),
    ("bounced", |counters| counters.packets.bounced, false),
    ("forwarded", |counters| counters.packets.forwarded, true),
    ("no room", |counters| counters.packets.no_room, false),
    ("too long", |counters| counters.packets.too_long, false),
    ("unable", |counters| counters.packets.unable, false),
    ("errors", |counters| counters.packets.errors, false),
    ("vanished", |counters| counters.vanished, false),
    ("lost", |counters| counters.lost, true),
];

/// Returns a line on lost packets and copies; `None`: nothing was lost.
pub(super) fn loss(summary: &Summary) -> Option<String> {
    let packets = lost(summary).map(|lost| format!("{lost} ({})", stages(summary)));
    let copies = summary.copy.as_ref().and_then(|copy| {
        let missing = copy.missing();
        (missing > 0).then(|| some_lost(missing, copy.written + missing, "copied packet"))
    });
    let parts: Vec<String> = packets.into_iter().chain(copies).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns a line on losses among the packets to be forwarded.
fn lost(summary: &Summary) -> Option<String> {
    let (counters, nic) = (summary.counters, summary.nic_lost());
    let lost = counters.lost + nic;
    (lost > 0).then(|| some_lost(lost, counters.packets.forwarded + lost, "packet"))
}

/// Returns the number of packets lost at each stage.
fn stages(summary: &Summary) -> String {
    format!("NIC {}, forwarding {}", summary.nic_lost(), summary.counters.lost)
}

/// Returns the table, with a line for each queue that saw packets, followed by losses and their causes.
pub(super) fn account(summary: &Summary, paint: Paint) -> String {
    let mut text = format!("\n{}", table(summary, paint));
    if let Some(counted) = &summary.rules {
        let shown = Shown::of(counted, false, 0);
        let shown = if summary.copy.is_some() { shown.capturing() } else { shown };
        let _infallible = writeln!(text, "\n{}", rules::table(&shown, paint));
    }
    let (counters, nic) = (summary.counters.packets, summary.nic_lost());
    let verdict = lost(summary).map_or_else(|| paint.green("Nothing lost"), |lost| paint.red(lost));
    let _infallible = writeln!(text, "{verdict} ({})", stages(summary));
    let unknown: u64 = summary.directions.iter().map(|direction| direction.tag_unknown).sum();
    let of = |concerned: fn(&DirectionSummary) -> bool| {
        summary
            .directions
            .iter()
            .filter(move |direction| concerned(direction))
            .map(|direction| direction.from.as_str())
    };
    let more = advice::ethtool("G", of(|direction| direction.nic_lost() > 0), "rx N");
    let told = advice::tag_unknown(unknown, of(|direction| direction.tag_unknown > 0));
    let short = format!("NIC: the card or its driver ran out of receive buffers; to add more: {more}");
    let reasons = [
        (unknown, &*told),
        (nic, &*short),
        (
            counters.no_room,
            "no room: the sending driver's queue was full; it is slower than the arriving traffic",
        ),
        (counters.too_long, "too long: longer than the sending interface's MTU"),
        (
            counters.unable,
            "unable: the sending interface was down, or its driver accepted no redirected packets",
        ),
        (
            summary.counters.vanished,
            "vanished: dropped by the kernel without a report, or by a handler that ended early",
        ),
        (counters.errors, "errors: the sending interface was gone, or a VLAN tag could not be restored"),
    ];
    for (_, reason) in reasons.iter().filter(|(packets, _)| *packets > 0) {
        let _infallible = writeln!(text, "  {reason}");
    }
    if let Some(copy) = &summary.copy {
        let missing = copy.missing();
        let counts = format!(
            "{} packets written, {} lost (buffer full), {} errors",
            units::grouped(copy.written),
            units::grouped(copy.lost),
            units::grouped(copy.errors)
        );
        let counts = if missing == 0 { counts } else { paint.red(counts) };
        let _infallible = writeln!(text, "Copy in {}: {counts}", copy.file);
    }
    text
}

fn table(summary: &Summary, paint: Paint) -> String {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, value, always)| *always || value(&summary.counters) > 0).collect();
    let row = |name: String, queue: String, counters: &Counters| {
        let numbers = columns.iter().map(|(_, value, _)| units::grouped(value(counters)));
        let bytes = units::bytes(counters.packets.bytes);
        [name, queue].into_iter().chain(numbers).chain([bytes]).collect::<Vec<String>>()
    };
    let titles = columns.iter().map(|(title, ..)| (*title).to_owned());
    let head =
        ["direction", "queue"].map(str::to_owned).into_iter().chain(titles).chain(["bytes".to_owned()]);
    let mut rows = vec![head.collect::<Vec<String>>()];
    for queue in summary.queues.iter().filter(|queue| queue.counters.packets.seen > 0) {
        rows.push(row(format!("{} -> {}", queue.from, queue.to), queue.queue.to_string(), &queue.counters));
    }
    rows.push(row("total".to_owned(), String::new(), &summary.counters));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _infallible = write!(line, "  {cell:>width$}");
        }
        let line = match number {
            0 => paint.dim(line),
            _ if number + 1 == rows.len() => paint.bold(line),
            _ => line,
        };
        let _infallible = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use weir::NicCounters;
    use weir::forward::{DirectionStats, ForwardCounters, ForwardQueue, ForwardStats};
    use weir_service::Stop;

    use super::*;

    #[test]
    fn each_loss_is_told_with_its_reason() {
        let counters = weir::with!(
            ForwardCounters::default(),
            seen = 1_000_010,
            filtered = 4,
            forwarded = 1_000_000,
            no_room = 3,
            too_long = 2,
            bytes = 60_000_000,
            errors = 1
        );
        let nic = Some(weir::with!(NicCounters::default(), missed = 5, fifo_errors = 2, dropped = 9));
        let queues = vec![weir::with!(ForwardQueue::default(), queue = 0, counters), ForwardQueue::default()];
        let direction = weir::with!(
            DirectionStats::default(),
            from = "a".into(),
            to = "b".into(),
            queues,
            tag_unknown = 3,
            nic
        );
        let account = weir::with!(ForwardStats::default(), directions = vec![direction]);
        let text = super::account(&Summary::new(&[], &account, None), Paint::PLAIN);
        for part in [
            "direction  queue       seen  filtered  forwarded  no room  too long  errors  lost",
            "a -> b         0  1,000,010         4  1,000,000        3         2       1     6",
            "13 of 1,000,013 packets lost (NIC 7, forwarding 6)",
            "too long: longer than",
            "  VLAN tags: for 3 packets the driver did not report",
            "ethtool -K a rxvlan off",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("unable") && !text.contains("vanished"), "{text}");
    }

    #[test]
    fn what_never_arrived_is_lost_once_all_has_ended() {
        let counters = weir::with!(ForwardCounters::default(), seen = 100, filtered = 10, forwarded = 20);
        let queues = vec![weir::with!(ForwardQueue::default(), queue = 0, counters)];
        let direction = weir::with!(DirectionStats::default(), from = "a".into(), to = "b".into(), queues);
        let account = weir::with!(ForwardStats::default(), directions = vec![direction]);
        let mut summary = Summary::new(&[], &account, None);
        assert_eq!((summary.counters.lost, summary.counters.in_flight), (0, 70));
        summary.close(Ok(Stop::Signal));
        assert_eq!((summary.counters.lost, summary.counters.in_flight), (70, 0));
        let text = super::account(&summary, Paint::PLAIN);
        for part in
            ["vanished", "70 of 90 packets lost (NIC 0, forwarding 70)", "  vanished: dropped by the kernel"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
