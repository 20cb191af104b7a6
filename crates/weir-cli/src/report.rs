//! Reports the account as text: opened sources, the table, losses by stage, and the four lines that scripts parse.

use std::fmt::Write;
use std::time::Duration;

use weir::parts::command;
use weir::writer::Written;
use weir::{CaptureStats, HandlerState, Interface, Strays, TimeOrder};
use weir_service::rules::RulesSummary;
use weir_service::session::Opened;
use weir_service::summary::{Counters, StatisticsSummary, Summary};

use crate::advice;
use crate::alike::{self, Kind, Line};
use crate::counts;
use crate::rules::{self, Shown};
use crate::style::{self, Paint};
use crate::units;
use crate::unsorted;

/// Returns the summary of a run so far, with warnings that name the options of this program.
pub(crate) fn summary(
    interfaces: &[Interface],
    account: &CaptureStats,
    written: Option<&Written>,
) -> Summary {
    let mut summary = Summary::new(interfaces, account, written);
    for interface in &mut summary.interfaces {
        if let Some(about) = interfaces.iter().find(|about| about.id == interface.id) {
            interface.warnings = about.warnings.iter().map(advice::warning).collect();
        }
    }
    summary
}

/// Packets lost at each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// By the card or its driver, before weir could see them.
    pub(crate) nic: u64,
    /// At the hook: no free chunk, or a record that could not be written.
    pub(crate) pool: u64,
    /// Delivered, but known not to be in the file.
    pub(crate) disk: u64,
}

impl Losses {
    pub(crate) fn of(summary: &Summary) -> Self {
        let (nic, counters) = (summary.nic(), summary.counters.packets);
        Self {
            nic: nic.missed + nic.fifo_errors,
            pool: counters.lost + counters.errors,
            disk: summary.not_written,
        }
    }

    fn total(self) -> u64 {
        self.nic + self.pool + self.disk
    }
}

/// Returns what was opened, and why: a line for each interface, or for several with the same.
fn opened(interfaces: &[Interface], paint: Paint) -> String {
    alike::print(&interfaces.iter().flat_map(about).collect::<Vec<_>>(), paint)
}

/// Returns the lines about an interface.
fn about(interface: &Interface) -> Vec<Line<'_>> {
    let Interface { name, source, mode, detail, why, filter, sample, filter_is_never, .. } = interface;
    let facts = [
        Some(format!("{detail}, mode {mode}; source {source}: {why}")),
        filter.as_ref().map(|filter| format!("filter `{filter}`")),
        sample.as_ref().map(|sample| sample.describe()),
    ];
    let facts = facts.into_iter().flatten().map(|about| Line { kind: Kind::Fact, name, about });
    let never =
        || Line { kind: Kind::Warning, name, about: "no packet can ever match this filter".to_owned() };
    facts.chain(filter_is_never.then(never)).chain(warned(interface)).collect()
}

/// Returns what is printed once everything is open: what was opened, or with `quiet` only warnings of lost tags,
/// and lines on what runs beside the capture.
pub(crate) fn started(interfaces: &[Interface], opened: &Opened, quiet: bool, verbose: bool) -> String {
    let paint = style::stderr();
    let about = if quiet { lost_tags(interfaces, paint) } else { self::opened(interfaces, paint) };
    about + &service(opened, quiet, verbose)
}

/// Returns a line for the address of the metrics, unless `quiet`; if `verbose`, also those for the control socket and the
/// restrictions of this process.
pub(crate) fn service(opened: &Opened, quiet: bool, verbose: bool) -> String {
    let mut text = String::new();
    if let Some(address) = opened.metrics().filter(|_| !quiet) {
        let _infallible = writeln!(text, "metrics: {address}");
    }
    if verbose {
        if let Some(path) = opened.control() {
            let _infallible = writeln!(text, "control: {}", path.display());
        }
        let _infallible = match opened.confinement() {
            Some(confinement) => writeln!(text, "{confinement}"),
            None => writeln!(text, "not confined, as requested"),
        };
    }
    text
}

/// Returns where `weir ctl` finds a command that is not confined, unless `quiet`.
pub(crate) fn control(opened: &Opened, quiet: bool) -> String {
    match opened.control().filter(|_| !quiet) {
        Some(path) => format!("control: {}\n", path.display()),
        None => String::new(),
    }
}

/// Returns warnings of interfaces whose packets lack VLAN tags, which are printed even with -q.
fn lost_tags(interfaces: &[Interface], paint: Paint) -> String {
    let lost = interfaces.iter().filter(|interface| interface.tags_lost);
    alike::print(&lost.flat_map(warned).collect::<Vec<_>>(), paint)
}

fn warned(interface: &Interface) -> impl Iterator<Item = Line<'_>> {
    let line = |warning| Line { kind: Kind::Warning, name: &interface.name, about: advice::warning(warning) };
    interface.warnings.iter().map(line)
}

/// Returns the table, with a line for each queue that saw packets, followed by losses by stage.
pub(crate) fn account(summary: &Summary, paint: Paint) -> String {
    let mut text = format!("\n{}\n", table(summary, paint));
    text.push_str(&targets(summary));
    text.push_str(&handlers(summary, paint));
    text.push_str(&time_order(summary, paint));
    text.push_str(&statistics(&summary.statistics, paint));
    text.push_str(&rules(&summary.rules, paint));
    let _infallible = writeln!(text, "{}", paint.dim(format!("Memory: {}", units::bytes(summary.memory))));
    text.push_str(&verdict(summary, paint));
    text
}

/// Returns a table of what was counted beside the capture, for each interface.
fn statistics(all: &[StatisticsSummary], paint: Paint) -> String {
    let table = |one: &StatisticsSummary| {
        let filters = one.filters.iter().map(|filter| (style::visible(&filter.name), filter.counts));
        let rows = filters.chain([("(all)".to_owned(), one.total)]);
        format!("{}\n", counts::table(style::visible(&one.interface), rows, paint))
    };
    all.iter().map(table).collect()
}

/// Returns a table of what rules have counted, for each interface.
fn rules(all: &[RulesSummary], paint: Paint) -> String {
    let table = |one: &RulesSummary| {
        let interface = match all.len() {
            1 => String::new(),
            _ => format!("{}\n", paint.bold(style::visible(&one.interface))),
        };
        format!("{interface}{}\n", rules::table(&Shown::of(&one.counted, false, 0).capturing(), paint))
    };
    all.iter().map(table).collect()
}

/// Returns a line for each target, and a note on fragments whose flow is unknown.
fn targets(summary: &Summary) -> String {
    let mut text = String::new();
    for (target, Counters { packets: counters, .. }) in summary.targets.iter().enumerate() {
        let (captured, lost) =
            (units::grouped(counters.captured), units::grouped(counters.lost + counters.errors));
        let _infallible = writeln!(text, "target {target}: {captured} packets captured, {lost} lost");
    }
    let orphans: u64 = summary.queues.iter().map(|queue| queue.orphans).sum();
    if orphans > 0 {
        let _infallible = writeln!(
            text,
            "{} fragment{} assigned to flows without the first fragment of their datagram",
            units::grouped(orphans),
            plural(orphans),
        );
    }
    text
}

/// Returns a line for each handler, and for each queue that was helped.
fn handlers(summary: &Summary, paint: Paint) -> String {
    let mut text = String::new();
    for one in &summary.handlers {
        let share = 100.0 * one.busy.as_secs_f64() / summary.elapsed_seconds.max(f64::MIN_POSITIVE);
        let end = match (one.state, one.in_hand.map(|time| time.as_secs_f64())) {
            (HandlerState::Panicked, _) => paint.red("; panicked, others took over its queues"),
            (HandlerState::Left, _) => paint.yellow("; stopped, others took over its queues"),
            (_, Some(seconds)) if seconds > STALLED => {
                paint.yellow(format!("; stuck on one chunk for {seconds:.1} s"))
            }
            _ => String::new(),
        };
        let place = one.processor.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
        let (packets, chunks) = (units::grouped(one.packets), units::grouped(one.chunks));
        let helped = match one.taken_over {
            0 => String::new(),
            chunks => format!(", {} of them from other queues", units::grouped(chunks)),
        };
        let _infallible = writeln!(
            text,
            "handler {}{place}: {packets} packets in {chunks} chunks{helped}, busy {share:.0} %{end}",
            one.handler
        );
    }
    for queue in summary.queues.iter().filter(|queue| queue.offloaded > 0) {
        let _infallible = writeln!(
            text,
            "{} queue {}: {} chunks taken by other queues' handlers; at most {} of {} chunks waiting, {:.1} on average",
            queue.interface,
            queue.queue,
            units::grouped(queue.offloaded),
            queue.most_ready,
            queue.pool.total,
            queue.mean_ready,
        );
    }
    text
}

/// Returns how well time order was kept.
fn time_order(summary: &Summary, paint: Paint) -> String {
    let Some(TimeOrder { window, late, early, unsorted, .. }) = summary.time_order else {
        return String::new();
    };
    let is_single = window.is_zero();
    let window = units::elapsed(window);
    let mut text = if late == 0 && (is_single || unsorted.is_some()) {
        // A single queue, which is in order; or early ones came out of order.
        String::new()
    } else if late == 0 {
        format!("{} (held back for {window})\n", paint.green("Sorted by time"))
    } else {
        let packets = format!("{} packet{} late", units::grouped(late), plural(late));
        format!(
            "{}, written after newer ones; a --window longer than {window} helps\n",
            paint.yellow(packets)
        )
    };
    if early > 0 {
        let _infallible = writeln!(
            text,
            "  {} packet{} released early because a pool was half full; a larger pool (-B) helps",
            units::grouped(early),
            plural(early)
        );
    }
    text
}

/// Seconds in one chunk after which a handler is reported.
const STALLED: f64 = 1.0;

/// Returns one line in place of [`account`] and [`closing`] for a run that only printed packets and lost none, with what else
/// there is to say; `None`: the run needs them.
pub(crate) fn brief(summary: &Summary, paint: Paint) -> Option<String> {
    let counters = summary.counters.packets;
    let in_order = summary.time_order.as_ref().is_none_or(|order| order.late + order.early == 0);
    let is_plain = summary.file.is_none()
        && summary.error.is_none()
        && summary.statistics.is_empty()
        && summary.rules.is_empty();
    if !is_plain || !in_order || Losses::of(summary).total() + counters.errors > 0 {
        return None;
    }
    let of = if counters.seen == summary.kept {
        String::new()
    } else {
        format!(" of {} seen", units::grouped(counters.seen))
    };
    let (kept, verdict) = (summary.kept, paint.green("nothing lost"));
    // The number is written as tcpdump writes it.
    Some(format!("{kept} packet{} captured{of}, {verdict}\n{}", plural(kept), remarks(summary, paint)))
}

/// Returns the closing lines of tcpdump, word for word.
pub(crate) fn closing(summary: &Summary) -> String {
    let counters = summary.counters.packets;
    // As with libpcap on Linux: packets that passed the filter, whatever became of them.
    let received =
        counters.sampled_out + counters.counted + counters.captured + counters.lost + counters.errors;
    let losses = Losses::of(summary);
    let lines = [
        (summary.kept, "captured"),
        (received, "received by filter"),
        (losses.pool, "dropped by kernel"),
        (losses.nic, "dropped by interface"),
    ];
    lines.iter().map(|(number, what)| format!("{number} packet{} {what}\n", plural(*number))).collect()
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// A column: its title, its value (`None`: not counted), and whether it is shown even if all values are zero.
type Column = (&'static str, fn(&Counters) -> Option<u64>, bool);

/// Stands for a number that was not counted.
const NOT_COUNTED: &str = "?";

/// In the order in which a packet passes the stages.
const COLUMNS: [Column; 11] = [
    ("seen", |counters| Some(counters.packets.seen), true),
    ("filtered", |counters| counters.packets.filtered, false),
    ("sampled out", |counters| Some(counters.packets.sampled_out), false),
    ("counted", |counters| Some(counters.packets.counted), false),
    ("captured", |counters| Some(counters.packets.captured), true),
    ("lost", |counters| Some(counters.packets.lost), true),
    ("errors", |counters| Some(counters.packets.errors), false),
    ("queued", |counters| Some(counters.queued), false),
    ("delivered", |counters| Some(counters.packets.delivered), true),
    ("discarded", |counters| Some(counters.packets.discarded), false),
    ("written", |counters| Some(counters.packets.written), false),
];

fn table(summary: &Summary, paint: Paint) -> String {
    let total = &summary.counters;
    let columns = COLUMNS.iter().filter(|(title, value, always)| {
        *always || value(total) != Some(0) || (*title == "written" && summary.file.is_some())
    });
    let columns: Vec<&Column> = columns.collect();
    let row = |name: &str, queue: String, counters: &Counters| {
        let numbers = columns.iter().map(|(_, value, _)| match value(counters) {
            Some(number) => units::grouped(number),
            None => NOT_COUNTED.to_owned(),
        });
        let mut cells = vec![name.to_owned(), queue];
        cells.extend(numbers);
        cells.push(units::bytes(counters.packets.bytes));
        cells
    };

    let mut head = vec!["interface".to_owned(), "queue".to_owned()];
    head.extend(columns.iter().map(|(title, ..)| (*title).to_owned()));
    head.push("bytes".to_owned());
    let mut rows = vec![head];
    let busy = summary.queues.iter().filter(|queue| queue.counters.packets.seen > 0);
    rows.extend(busy.map(|queue| row(&queue.interface, queue.queue.to_string(), &queue.counters)));
    let idle = summary.queues.len() + 1 - rows.len();
    rows.push(row("total", String::new(), total));

    let lost = columns.iter().position(|(title, ..)| *title == "lost").map(|position| position + 2);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    let last = rows.len() - 1;
    for (number, cells) in rows.iter().enumerate() {
        let mut line = format!("{:<width$}", cells[0], width = widths[0]);
        for (column, cell) in cells.iter().enumerate().skip(1) {
            let cell = format!("  {cell:>width$}", width = widths[column]);
            let alarm = Some(column) == lost && number > 0 && !cell.ends_with(" 0");
            line.push_str(&if alarm { paint.red(cell) } else { cell });
        }
        let line = if number == 0 {
            paint.dim(line)
        } else if number == last {
            paint.bold(line)
        } else {
            line
        };
        text.push_str(&line);
        text.push('\n');
    }
    if idle > 0 {
        let line = format!("({idle} queue{} without packets)", plural(idle as u64));
        let _infallible = writeln!(text, "{}", paint.dim(line));
    }
    text
}

/// Returns a line on losses: how many of how many packets, and where; `None`: nothing was lost.
pub(crate) fn loss(summary: &Summary) -> Option<String> {
    lost(summary).map(|lost| format!("{lost} ({})", stages(summary)))
}

/// Returns the number lost of the packets that should be there.
fn lost(summary: &Summary) -> Option<String> {
    let (counters, losses) = (summary.counters.packets, Losses::of(summary));
    let all = counters.captured + losses.pool + losses.nic;
    (losses.total() > 0).then(|| some_lost(losses.total(), all, "packet"))
}

/// Returns the number lost out of all.
pub(crate) fn some_lost(lost: u64, all: u64, what: &str) -> String {
    format!("{} of {} {what}{} lost", units::grouped(lost), units::grouped(all), plural(all))
}

/// Returns the number of packets lost at each stage.
fn stages(summary: &Summary) -> String {
    let losses = Losses::of(summary);
    let mut stages = format!("NIC {}, pool {}", losses.nic, losses.pool);
    if summary.file.is_some() {
        let _infallible = write!(stages, ", disk {}", losses.disk);
    }
    stages
}

fn verdict(summary: &Summary, paint: Paint) -> String {
    let verdict = lost(summary).map_or_else(|| paint.green("Nothing lost"), |lost| paint.red(lost));
    let mut text = format!("{verdict} ({})\n", stages(summary));
    if summary.counters.packets.filtered.is_none() {
        text.push_str(
            "  filtered: unknown; the kernel does not count packets that classic BPF rejects (with cap_bpf, weir uses eBPF, which counts them)\n",
        );
    }
    text + &remarks(summary, paint)
}

/// Returns what there is to say of losses, of packets that were not seen or printed, and of files.
fn remarks(summary: &Summary, paint: Paint) -> String {
    let counters = summary.counters.packets;
    let losses = Losses::of(summary);
    let mut text = String::new();
    if losses.nic > 0 {
        let short = summary
            .interfaces
            .iter()
            .filter(|one| one.nic.is_some_and(|nic| nic.missed + nic.fifo_errors > 0));
        let more = advice::ethtool("G", short.map(|one| one.name.as_str()), "rx N");
        let _infallible =
            writeln!(text, "  NIC: the card or its driver ran out of receive buffers; to add more: {more}");
    }
    let dropped = summary.nic().dropped;
    if dropped > 0 {
        let note = format!(
            "  rx_dropped grew by {dropped}: dropped by the driver, or by the stack after the capture"
        );
        let _infallible = writeln!(text, "{}", paint.dim(note));
    }
    if counters.lost > 0 {
        text.push_str("  pool: every chunk was full; a larger pool (-B) absorbs a longer burst\n");
    }
    text.push_str(&errors(summary));
    let unseen: u64 = summary.interfaces.iter().map(|interface| interface.sent_unseen).sum();
    if unseen > 0 {
        let packets = units::packets(unseen);
        // In exclusive mode there is no source for both.
        let passes = summary
            .interfaces
            .iter()
            .any(|one| one.sent_unseen > 0 && one.mode == weir::ModeKind::Pass.as_str());
        let both = if passes { "; for both: --source tc" } else { "" };
        let note = format!(
            "  sent: {packets} that the host sent, according to the driver, are not among them: this source sees received \
             packets only{both}"
        );
        let _infallible = writeln!(text, "{}", paint.yellow(note));
    }
    let tag_unknown: u64 = summary.interfaces.iter().map(|interface| interface.tag_unknown).sum();
    if tag_unknown > 0 {
        let those = summary.interfaces.iter().filter(|one| one.tag_unknown > 0);
        let told = advice::tag_unknown(tag_unknown, those.map(|one| one.name.as_str()));
        let _infallible = writeln!(text, "  {told}");
    }
    if losses.disk > 0 {
        text.push_str("  disk: packets captured, but not in the file\n");
    }
    if summary.not_printed > 0 {
        let (number, plural) = (units::grouped(summary.not_printed), plural(summary.not_printed));
        let note = format!("{number} packet{plural} not printed: more than standard output took");
        let _infallible = writeln!(text, "{}", paint.yellow(note));
    }
    if summary.own_queries > 0 {
        let (number, plural) = (units::grouped(summary.own_queries), plural(summary.own_queries));
        let _infallible =
            writeln!(text, "{number} packet{plural} not printed: queries for --names, and replies");
    }
    text.push_str(&files(summary));
    text
}

/// Returns why packets are counted as errors.
fn errors(summary: &Summary) -> String {
    let sum = |of: fn(&Strays) -> u64| summary.interfaces.iter().map(|interface| of(&interface.strays)).sum();
    let known = [
        (
            sum(|strays| strays.other_interface),
            "from other interfaces that run the driver's program; --source tc excludes them",
        ),
        (
            sum(|strays| strays.late_cpu),
            "on CPUs that came online after the capture started; restart it to capture them",
        ),
        (
            sum(|strays| strays.no_queue),
            "on receive queues added after the capture started; restart it to capture them",
        ),
    ];
    let others =
        summary.counters.packets.errors.saturating_sub(known.iter().map(|(packets, _)| packets).sum());
    let mut text = String::new();
    for (packets, what) in known.into_iter().chain([(others, "that could not be recorded")]) {
        if packets > 0 {
            let (number, plural) = (units::grouped(packets), plural(packets));
            let _infallible = writeln!(text, "  pool, errors: {number} packet{plural} {what}");
        }
    }
    text
}

/// Returns the contents and names of the files.
fn files(summary: &Summary) -> String {
    let Some(file) = &summary.file else { return String::new() };
    let elapsed = Duration::try_from_secs_f64(summary.elapsed_seconds).unwrap_or_default();
    let name = match &summary.files {
        _ if file == "-" => "standard output".to_owned(),
        Some(files) if files.count > 1 || files.deleted > 0 => {
            let for_room = match files.deleted_for_room {
                0 => String::new(),
                number => format!(" ({} because the disk was full)", units::grouped(number)),
            };
            let deleted = match files.deleted {
                0 => String::new(),
                deleted => format!(", the oldest {} deleted{for_room}", units::grouped(deleted)),
            };
            format!("{} files, {} to {}{deleted}", units::grouped(files.count), files.first, files.last)
        }
        Some(files) if files.count == 1 => files.last.clone(),
        _ => file.clone(),
    };
    let bytes = units::bytes(summary.plain_bytes);
    let bytes = if summary.file_bytes == summary.plain_bytes {
        bytes
    } else {
        format!("{bytes} compressed to {}", units::bytes(summary.file_bytes))
    };
    let packets = summary.counters.packets.written;
    let (count, plural) = (units::grouped(packets), plural(packets));
    let mut text = format!("{name}: {count} packet{plural}, {bytes} in {}\n", units::elapsed(elapsed));
    text.push_str(&sorting(summary, file));
    text
}

/// Returns how to sort files whose packets came on several queues and are not in order.
fn sorting(summary: &Summary, file: &str) -> String {
    let queues = summary.queues.iter().filter(|queue| queue.counters.packets.written > 0).count();
    let (what, by_time) = match summary.time_order.map(|order| order.unsorted) {
        Some(None) => return String::new(),
        Some(Some(unsorted)) => (unsorted::told(unsorted), true),
        None if queues < 2 => return String::new(),
        None => (format!("sorted by time only within each of {queues} queues"), false),
    };
    let how = match &summary.files {
        _ if file == "-" && !by_time => "--order time sorts while capturing".to_owned(),
        Some(files) if file != "-" => {
            format!("to sort: weir read {} -w SORTED", pattern(&files.first, &files.last))
        }
        _ => "to sort: weir read FILE -w SORTED".to_owned(),
    };
    format!("  {what}; {how}\n")
}

/// Returns a shell's pattern for the names of all files of a capture: all have the text in front of and behind their numbers
/// and times.
fn pattern(first: &str, last: &str) -> String {
    if first == last {
        return command::word(first);
    }
    let alike = first.chars().zip(last.chars()).take_while(|(one, other)| one == other);
    let common: usize = alike.map(|(one, _)| one.len_utf8()).sum();
    let start = first[..common].trim_end_matches(|c: char| c.is_ascii_digit());
    // Of the name itself, in which a time may end with letters.
    let name = first.rfind('/').map_or(0, |slash| slash + 1).max(start.len());
    let end = first[name..].find('.').map_or("", |dot| &first[name + dot..]);
    let end = if last.ends_with(end) { end } else { "" };
    let word = |part: &str| if part.is_empty() { String::new() } else { command::word(part) };
    format!("{}*{}", word(start), word(end))
}

#[cfg(test)]
mod tests {
    use weir::{InterfaceStats, ModeKind, NicCounters, PacketCounters, PoolFill, QueueStats, SourceKind};
    use weir_service::Stop;

    use super::*;

    #[test]
    fn a_pattern_has_all_files_of_a_capture() {
        for (first, last, expected) in [
            ("f.pcapng", "f.pcapng", "f.pcapng"),
            ("/d/f.pcapng", "/d/f12.pcapng", "/d/f*.pcapng"),
            ("f", "f3", "f*"),
            // In between are f6 and f49.
            ("f5.pcap.zst", "f50.pcap.zst", "f*.pcap.zst"),
            ("ring10", "ring19", "ring*"),
            ("ring01.pcapng", "ring11.pcapng", "ring*.pcapng"),
            ("a b/r0.pcapng", "a b/r1.pcapng", "'a b/r'*.pcapng"),
            ("/d.1/h-20261129-10AM.pcap", "/d.1/h-20261130-02AM.pcap", "/d.1/h-*.pcap"),
        ] {
            assert_eq!(pattern(first, last), expected);
        }
    }

    fn summary(nic: NicCounters, result: Result<Stop, &str>) -> Summary {
        let counters = weir::with!(
            PacketCounters::default(),
            seen = 1_000_100,
            captured = 1_000_000,
            lost = 99,
            errors = 1,
            delivered = 1_000_000,
            bytes = 60_000_000
        );
        let busy = weir::with!(QueueStats::default(), queue = 0, counters, pool = PoolFill::default());
        let idle = weir::with!(QueueStats::default(), queue = 1);
        let mut interface = InterfaceStats::new(0, "eth0", SourceKind::Xdp, ModeKind::Pass);
        interface.queues = vec![busy, idle];
        interface.strays = weir::with!(Strays::default(), late_cpu = 1);
        interface.tag_unknown = 2;
        interface.sent_unseen = 1100;
        interface.nic = Some(nic);
        let account = weir::with!(
            CaptureStats::default(),
            elapsed = Duration::from_secs(2),
            interfaces = vec![interface]
        );
        let written = Written {
            packets: 999_990,
            bytes: 1 << 20,
            plain_bytes: 3 << 20,
            queues: [((0, 0), 999_990)].into(),
            lost: [((0, 0), 8)].into(),
        };
        let mut summary = Summary::new(&[], &account, Some(&written));
        summary.file = Some("f".to_owned());
        summary.close(1_000_000, result);
        summary
    }

    #[test]
    fn each_loss_is_told_with_its_stage() {
        let nic = weir::with!(NicCounters::default(), missed = 5, fifo_errors = 2, dropped = 3);
        let summary = summary(nic, Err("no more room"));
        assert_eq!(Losses::of(&summary), Losses { nic: 7, pool: 100, disk: 10 });
        let text = account(&summary, Paint::PLAIN);
        for part in [
            "117 of 1,000,107 packets lost (NIC 7, pool 100, disk 10)",
            "rx_dropped grew by 3",
            "1,000,100",
            "(1 queue without",
            "  pool, errors: 1 packet on CPUs that came online after",
            "  sent: 1,100 packets that the host sent, according to the driver, are not among them: this source sees \
             received packets only; for both: --source tc\n",
            "  VLAN tags: for 2 packets the driver did not report whether it stripped a tag; to keep tags: \
             ethtool -K eth0 rxvlan off\n",
            "to add more: ethtool -G eth0 rx N",
            "f: 999,990 packets, 3.00 MiB compressed to 1.00 MiB in 2.0 s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(
            closing(&summary),
            "999990 packets captured\n1000100 packets received by filter\n\
             100 packets dropped by kernel\n7 packets dropped by interface\n"
        );
        assert_eq!(summary.error.as_deref(), Some("no more room"));
        let line = "117 of 1,000,107 packets lost (NIC 7, pool 100, disk 10)";
        assert_eq!(loss(&summary).as_deref(), Some(line));
    }

    /// Each packet of `errors` is told once, by its reason.
    #[test]
    fn strays_are_told_by_their_reasons_and_the_sums_close() {
        let reasons = [
            "from other interfaces that run the driver's program; --source tc excludes them",
            "on CPUs that came online after the capture started; restart it to capture them",
            "on receive queues added after the capture started; restart it to capture them",
            "that could not be recorded",
        ];
        for numbers in [[2000, 1, 30, 4], [1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1], [0; 4]] {
            let [other_interface, late_cpu, no_queue, _] = numbers;
            let errors = numbers.iter().sum();
            let counters = weir::with!(PacketCounters::default(), seen = errors + 10, captured = 10, errors);
            let queue = |counters| weir::with!(QueueStats::default(), counters);
            let interface = |id, strays, counters| {
                let name = format!("eth{id}");
                let mut interface = InterfaceStats::new(id, name, SourceKind::Xdp, ModeKind::Pass);
                (interface.queues, interface.strays) = (vec![queue(counters)], strays);
                interface
            };
            // Of two interfaces; the last are no strays.
            let interfaces = vec![
                interface(0, weir::with!(Strays::default(), other_interface), counters),
                interface(1, weir::with!(Strays::default(), no_queue, late_cpu), PacketCounters::default()),
            ];
            let account = weir::with!(CaptureStats::default(), interfaces);
            let text = super::account(&Summary::new(&[], &account, None), Paint::PLAIN);
            let told: Vec<&str> =
                text.lines().filter_map(|line| line.strip_prefix("  pool, errors: ")).collect();
            let expected = numbers.iter().zip(reasons).filter(|(packets, _)| **packets > 0);
            let expected: Vec<String> =
                expected.map(|(packets, why)| format!("{} {why}", units::packets(*packets))).collect();
            assert_eq!(told, expected, "{text}");
            let first =
                |line: &&str| line.split(' ').next().unwrap().replace(',', "").parse::<u64>().unwrap();
            assert_eq!(told.iter().map(first).sum::<u64>(), errors, "{text}");
            let verdict = match errors {
                0 => "Nothing lost (NIC 0, pool 0)".to_owned(),
                _ => format!(
                    "{} of {} lost (NIC 0, pool {errors})",
                    units::grouped(errors),
                    units::packets(errors + 10)
                ),
            };
            assert!(text.lines().any(|line| line == verdict), "{verdict}: {text}");
        }
    }

    #[test]
    fn targets_have_a_line_each_and_orphans_one() {
        let counters = weir::with!(PacketCounters::default(), seen = 1500, captured = 1200, lost = 300);
        let queue = |queue, target, orphans| {
            weir::with!(QueueStats::default(), queue, target = Some(target), counters, orphans)
        };
        let mut interface = InterfaceStats::new(0, "eth0", SourceKind::Xdp, ModeKind::Pass);
        interface.queues = vec![queue(0, 0, 1), queue(1, 1, 0), queue(2, 0, 0), queue(3, 1, 0)];
        let account = weir::with!(CaptureStats::default(), interfaces = vec![interface]);
        let text = targets(&Summary::new(&[], &account, None));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            ["target 0: 2,400 packets captured, 600 lost", "target 1: 2,400 packets captured, 600 lost"]
        );
        assert!(lines[2].starts_with("1 fragment assigned"), "{text}");
    }

    #[test]
    fn columns_that_are_zero_stay_away() {
        let text = account(&summary(NicCounters::default(), Ok(Stop::Signal)), Paint::PLAIN);
        let head = text.lines().find(|line| line.starts_with("interface")).expect("a head");
        let titles: Vec<&str> = head.split_whitespace().collect();
        assert_eq!(
            titles,
            ["interface", "queue", "seen", "captured", "lost", "errors", "delivered", "written", "bytes"]
        );
    }
}
