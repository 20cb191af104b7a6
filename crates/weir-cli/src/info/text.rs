//! Prints the properties of files as text.

use std::fmt::Write;
use std::time::Duration;

use weir_render::harmless;
use weir_savefile::link_types::LinkType;

use super::gather::{Doubt, InterfaceSummary, Loss, SIZES, Summary, float};
use super::total::Total;
use crate::style::{self, Paint};
use crate::units;

/// Stands for a number that a file does not say.
const UNKNOWN: &str = "?";

/// Width of bars and timelines.
const WIDTH: usize = 60;

/// Returns the full report on a file.
pub(crate) fn full(summary: &Summary, paint: Paint) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _cannot_fail = writeln!(text, "  {name:<12}{value}");
        }
    };
    let resolution = match summary.resolution.as_deref() {
        Some("1e-9") => ", nanoseconds".to_owned(),
        Some("1e-6") => ", microseconds".to_owned(),
        Some(other) => format!(", {other} s"),
        None => String::new(),
    };
    row(
        "format",
        &format!("{}, {}-endian{resolution}, {}", summary.format, summary.byte_order, summary.compression),
    );
    row("written by", &summary.written_by.as_deref().map(harmless).unwrap_or_default());
    for comment in &summary.comments {
        row("comment", &harmless(comment));
    }
    if let Some(size) = summary.size {
        row("size", &format!("{} ({} bytes)", units::bytes(size), units::grouped(size)));
    }
    if summary.sections > 1 {
        row("sections", &summary.sections.to_string());
    }
    row("packets", &packets(summary));
    if summary.packets > 0 {
        let mut data = format!("{} on the wire", units::bytes(summary.bytes));
        if summary.captured_bytes != summary.bytes {
            let _cannot_fail = write!(data, ", {} in the file", units::bytes(summary.captured_bytes));
        }
        let _cannot_fail = write!(data, "; {:.1} bytes per packet", summary.average_size.unwrap_or(0.0));
        row("data", &data);
    }
    if let Some((first, last)) = summary.times {
        let length = Duration::from_nanos(last - first);
        row(
            "time",
            &format!(
                "{} to {}, {}",
                units::local_time(first),
                units::local_time(last),
                units::elapsed(length)
            ),
        );
    }
    if let (Some(packets), Some(bits)) = (summary.packets_per_second, summary.bits_per_second) {
        row("rate", &format!("{}packets/s, {}bit/s", units::scaled(packets), units::scaled(bits)));
    }
    if summary.packets > 1 {
        row("order", &order(summary));
    }
    sizes(summary, &mut text);
    interfaces(&summary.interfaces, &mut text);
    events(summary, &mut text);
    losses(summary, paint, &mut text);
    for warning in &summary.warnings {
        let _cannot_fail = writeln!(text, "  {:<12}{warning}", paint.yellow("note"));
    }
    text
}

fn packets(summary: &Summary) -> String {
    let mut text = units::grouped(summary.packets);
    if summary.cut_packets > 0 {
        let _cannot_fail = write!(text, ", {} truncated", units::grouped(summary.cut_packets));
    }
    if summary.packet_comments > 0 {
        let _cannot_fail = write!(text, ", {} with a comment", units::grouped(summary.packet_comments));
    }
    text
}

fn order(summary: &Summary) -> String {
    if summary.ordered {
        return "by time".to_owned();
    }
    let (count, back) = (units::packets(summary.out_of_order), seconds(summary.farthest_back_seconds));
    let (are, them) = if summary.out_of_order == 1 { ("is", "it") } else { ("are", "them") };
    format!("{count} {are} earlier than the packet before {them}; at most {back} behind the latest so far")
}

fn seconds(seconds: f64) -> String {
    match seconds {
        ..1e-6 => format!("{:.0} ns", seconds * 1e9),
        ..1e-3 => format!("{:.1} us", seconds * 1e6),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

fn sizes(summary: &Summary, text: &mut String) {
    let most = summary.sizes.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let from = |class: usize| class.checked_sub(1).map_or(0, |before| SIZES[before] + 1);
    let last = summary.sizes.iter().rposition(|&count| count > 0).unwrap_or(0);
    for (class, &count) in summary.sizes.iter().enumerate().take(last + 1) {
        let range = match SIZES.get(class) {
            Some(end) => format!("{} to {end}", from(class)),
            None => format!("{} or more", from(class)),
        };
        let share = float(count) / float(summary.packets) * 100.0;
        let name = if class == 0 { "sizes" } else { "" };
        let bar = bar(count, most, WIDTH / 2);
        let _cannot_fail = writeln!(text, "  {name:<12}{range:<14}{share:>6.1} %  {bar}");
    }
}

fn bar(count: u64, most: u64, width: usize) -> String {
    let full = if style::unicode() { "█" } else { "#" };
    let cells = u128::from(count) * width as u128 / u128::from(most.max(1));
    // Any count above 0 is visible.
    full.repeat(usize::try_from(cells).unwrap_or(width).max(usize::from(count > 0)))
}

fn interfaces(interfaces: &[InterfaceSummary], text: &mut String) {
    for interface in interfaces {
        let mut line = format!(
            "{} {}: {}, {}",
            interface.id,
            name(interface),
            link_type(interface.link_type),
            match interface.snap_len {
                0 => "whole packets".to_owned(),
                len => format!("up to {} bytes", units::grouped(len.into())),
            },
        );
        let _cannot_fail = write!(
            line,
            "; {} packets, {}",
            units::grouped(interface.packets),
            units::bytes(interface.bytes)
        );
        if let Some(received) = interface.received {
            let _cannot_fail = write!(line, "; {} received", units::grouped(received));
        }
        if let Some(dropped) = interface.dropped {
            let _cannot_fail = write!(line, ", {} dropped", units::grouped(dropped));
        }
        let _cannot_fail = writeln!(text, "  {:<12}{line}", "interface");
        for passed in &interface.beneath {
            let name = match (&passed.name, passed.ifindex) {
                (Some(name), _) => harmless(name),
                (None, 0) => "others".to_owned(),
                (None, index) => format!("if{index}"),
            };
            let (packets, bytes) = (units::packets(passed.packets), units::bytes(passed.bytes));
            let _cannot_fail = writeln!(text, "  {:<12}  {name}: {packets}, {bytes}", "");
        }
        for (what, said) in [("filter", &interface.filter), ("comment", &interface.comment)] {
            if let Some(said) = said {
                let _cannot_fail = writeln!(text, "  {:<12}  {what}: {}", "", harmless(said));
            }
        }
    }
}

/// Appends the events, with interfaces if they do not concern all.
fn events(summary: &Summary, text: &mut String) {
    for event in &summary.events {
        let (time, said) = (units::local_time(event.timestamp), harmless(&event.text));
        let _cannot_fail = write!(text, "  {:<12}{time}  {said}", "event");
        if event.interfaces.len() < summary.interfaces.len() {
            let name = |id: &u32| match summary.interfaces.get(*id as usize) {
                Some(InterfaceSummary { name: Some(name), .. }) => harmless(name),
                _ => format!("interface {id}"),
            };
            let names: Vec<String> = event.interfaces.iter().map(name).collect();
            let _cannot_fail = write!(text, " (on {})", names.join(", "));
        }
        text.push('\n');
    }
    if summary.events_left_out > 0 {
        let _cannot_fail =
            writeln!(text, "  {:<12}and {} more", "event", units::grouped(summary.events_left_out));
    }
}

fn name(interface: &InterfaceSummary) -> String {
    interface.name.as_deref().map_or_else(|| "(unnamed)".to_owned(), harmless)
}

/// Returns a link type in tcpdump's words.
fn link_type(link_type: u16) -> String {
    LinkType::from_number(link_type).map_or_else(
        || format!("link type {link_type}"),
        |known| format!("{} ({link_type})", known.description()),
    )
}

/// Appends the timeline of losses, with counts and interfaces.
fn losses(summary: &Summary, paint: Paint, text: &mut String) {
    let lost = summary.lost.unwrap_or_default();
    let least = if summary.doubt.is_some() { "at least " } else { "" };
    let verdict = match (summary.loss, &summary.doubt) {
        // The next line says why.
        (Loss::Unknown, Some(Doubt::Unfinished)) => "unknown".to_owned(),
        (Loss::Unknown, Some(doubt)) => format!("unknown: {}", why(doubt)),
        (Loss::None | Loss::Unknown, _) => paint.green("none recorded"),
        (Loss::Some, _) if summary.partial => paint.red(format_args!(
            "{least}{} packets; no percentage, since the statistics include packets that are not in this file",
            units::grouped(lost)
        )),
        (Loss::Some, _) => {
            let all = summary.packets + lost;
            let share = float(lost) / float(all.max(1)) * 100.0;
            paint.red(format_args!("{least}{} packets ({share:.3} %)", units::grouped(lost)))
        }
    };
    let _cannot_fail = writeln!(text, "  {:<12}{verdict}", "loss");
    if summary.unfinished {
        let why = "missing: the capture was killed or is still running, or this is a part of it; its last packets \
                   may not be here";
        let _cannot_fail = writeln!(text, "  {:<12}{}", "end", paint.yellow(why));
    }
    let (Loss::Some, Some((first, last))) = (summary.loss, summary.times) else { return };
    let mut line = |name: &str, counts: &[u64], behind: &str| {
        let _cannot_fail = writeln!(text, "  {:>11} |{}|{behind}", name, picture(counts));
    };
    line("traffic", &summary.traffic.columns(last, WIDTH), "");
    for interface in summary.interfaces.iter().filter(|interface| interface.lost() > 0) {
        let columns = interface.losses.columns(last, WIDTH);
        let label: String = name(interface).chars().take(11).collect();
        line(&label, &columns, &format!(" {}", units::grouped(interface.lost())));
    }
    let step = Duration::from_nanos((last - first) / WIDTH as u64);
    let _cannot_fail = writeln!(text, "  {:>11}  one column is {}", "", seconds(step.as_secs_f64()));
}

/// Returns a character for each count, higher for larger ones. A single lost packet is visible, and ten times as many
/// are drawn higher.
pub(crate) fn picture(counts: &[u64]) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '%', '@'];
    let most = counts.iter().copied().max().unwrap_or(0);
    let height = |count: u64| match (count, most) {
        (0, _) => 0,
        // Logarithmic, so that a trickle beside a flood is visible.
        _ => {
            1 + usize::try_from(u64::from(count.ilog2()) * 7 / u64::from(most.ilog2().max(1)))
                .unwrap_or(7)
                .min(7)
        }
    };
    let ramp = if style::unicode() { BLOCKS } else { ASCII };
    counts.iter().map(|&count| ramp[height(count)]).collect()
}

/// Returns why losses are unknown.
fn why(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Pcap => "pcap files do not record it".to_owned(),
        Doubt::NoStatistics => "the file has no statistics of losses".to_owned(),
        Doubt::Uncounted(interfaces) => {
            let names: Vec<String> = interfaces.iter().map(|name| harmless(name)).collect();
            format!("the file has no statistics of {}", names.join(", "))
        }
        Doubt::Unfinished => {
            "the capture was killed or is still running, or the file is a part of it".to_owned()
        }
    }
}

/// Returns a table of several files.
pub(crate) fn table(summaries: &[Summary], paint: Paint) -> String {
    let widest =
        summaries.iter().map(|summary| style::visible(&summary.file).chars().count()).max().unwrap_or(0);
    let total: Total = summaries.iter().collect();
    let files = files(total.files);
    let widest = widest.max(files.len());
    let mut text = format!(
        "{:<widest$}  {:>14}  {:>9}  {:<29}  {:>14}  {:>10}\n",
        "file", "packets", "data", "first packet", "duration", "lost"
    );
    let row = |name: &str, packets, bytes, times, lost: Option<u64>| {
        let (first, duration) = match times {
            Some((first, last)) => {
                (units::local_time(first), units::elapsed(Duration::from_nanos(last - first)))
            }
            None => ("-".to_owned(), "-".to_owned()),
        };
        format!(
            "{name:<widest$}  {:>14}  {:>9}  {first:<29}  {duration:>14}  {:>10}",
            units::grouped(packets),
            units::bytes(bytes),
            lost.map_or_else(|| UNKNOWN.to_owned(), units::grouped)
        )
    };
    for summary in summaries {
        let Summary { packets, bytes, times, lost, .. } = *summary;
        let damaged = if summary.error.is_some() { paint.red("  damaged") } else { String::new() };
        let line = row(&style::visible(&summary.file), packets, bytes, times, lost);
        let _cannot_fail = writeln!(text, "{line}{damaged}");
    }
    let line = row(&files, total.packets, total.bytes, total.times, total.lost);
    let _cannot_fail = writeln!(text, "{}", paint.bold(line));
    let mut reasons: Vec<(String, u64)> = Vec::new();
    for summary in summaries.iter().filter(|summary| summary.lost.is_none()) {
        let Some(why) = summary.doubt.as_ref().map(why) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, files)) => *files += 1,
            None => reasons.push((why, 1)),
        }
    }
    for (why, files) in reasons {
        let _cannot_fail = writeln!(text, "{UNKNOWN}: unknown in {}: {why}", self::files(files));
    }
    text
}

fn files(number: u64) -> String {
    format!("{} {}", units::grouped(number), if number == 1 { "file" } else { "files" })
}

/// Returns a line on several files together.
pub(crate) fn total(summaries: &[Summary]) -> String {
    let total: Total = summaries.iter().collect();
    let (files, packets, bytes) =
        (files(total.files), units::packets(total.packets), units::bytes(total.bytes));
    let times = total
        .times
        .map(|(first, last)| format!(", {} to {}", units::local_time(first), units::local_time(last)));
    let lost = match total.lost {
        Some(lost) => format!("{} lost", units::grouped(lost)),
        None => "loss unknown".to_owned(),
    };
    format!("{files}: {packets}, {bytes}{}; {lost}\n", times.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_show_one_lost_packet_and_keep_the_order() {
        let heights: Vec<usize> = [0, 1, 10, 1_000, 1_000_000]
            .iter()
            .map(|&count| {
                let shown = picture(&[count, 1_000_000]);
                let first = shown.chars().next().expect("a column");
                " .:-=+*%@▁▂▃▄▅▆▇█".chars().position(|c| c == first).expect("of the ramp")
            })
            .collect();
        assert!(heights.windows(2).all(|pair| pair[0] < pair[1]), "{heights:?}");
        assert_eq!(picture(&[1]).trim().chars().count(), 1);
        assert_eq!(picture(&[]), "");
    }

    #[test]
    fn link_types_are_told_in_tcpdumps_words() {
        assert_eq!(
            [1, 107, 239, 999].map(link_type),
            ["Ethernet (1)", "Frame Relay (107)", "Linux netfilter log messages (239)", "link type 999"]
        );
    }

    #[test]
    fn short_times() {
        for (time, expected) in [(5e-9, "5 ns"), (1.5e-5, "15.0 us"), (0.25, "250.0 ms"), (2.0, "2.0 s")] {
            assert_eq!(seconds(time), expected);
        }
    }
}
