//! What rules have counted, as a table.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::shown::{Shown, ShownPackets, ShownRow};
use crate::style::Paint;
use crate::units;

/// Returns a row for each rule, which add up with those below to the total; rules that continue come behind it.
pub(crate) fn table(shown: &Shown, paint: Paint) -> String {
    let heading = ["rule", "packets are", "packets", "captured", "bytes", "last"].map(str::to_owned);
    let mut rows = vec![heading];
    let mut continued = Vec::new();
    for rule in &shown.rules {
        let ShownRow { name, packets, learned, learns, .. } = rule;
        if rule.continues {
            continued.push(row(&format!("{name} (continue)"), "", packets));
        } else {
            let mut row = row(name, &becomes(rule, shown), packets);
            row[3] = rule.captured.map(units::grouped).unwrap_or_default();
            rows.push(row);
        }
        if let Some((learns, packets)) = learns.as_ref().zip(learned.as_ref())
            && packets.packets > 0
        {
            rows.push(row(&format!("{name}, learned"), &by_learned(learns, shown), packets));
        }
    }
    if shown.replaced.packets > 0 {
        rows.push(row("(replaced rules)", "", &shown.replaced));
    }
    if shown.exact.packets > 0 {
        rows.push(row("exact rules", "as each says", &shown.exact));
    }
    rows.push(row("no rule", "passed", &shown.no_rule));
    rows.push(row("total", "", &shown.total));
    let total = rows.len() - 1;
    rows.append(&mut continued);
    let widths: [usize; 6] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for (number, [rule, what, packets, captured, bytes, last]) in rows.iter().enumerate() {
        let captured = match shown.captures {
            true => format!("{captured:>0$}  ", widths[3]),
            false => String::new(),
        };
        let line = format!(
            "{rule:<0$}  {what:<1$}  {packets:>2$}  {captured}{bytes:>3$}  {last}",
            widths[0], widths[1], widths[2], widths[4]
        );
        let line = line.trim_end().to_owned();
        let line = match number {
            0 => paint.dim(line),
            _ if number == total => paint.bold(line),
            _ => line,
        };
        let _infallible = writeln!(text, "{line}");
    }
    for told in unkept(shown) {
        let _infallible = writeln!(text, "{}: {told}", paint.yellow("note"));
    }
    text
}

/// Returns what becomes of the packets of a rule.
fn becomes(rule: &ShownRow, shown: &Shown) -> String {
    let beyond = rule.over.as_ref().map(|limit| format!(" over {limit}")).unwrap_or_default();
    let done = done(&rule.fate, shown.dry_run);
    if !shown.captures {
        return format!("{done}{beyond}");
    }
    match rule.capture.as_deref() {
        Some("capture") => format!("captured, {done}{beyond}"),
        Some(some) => format!("captured ({some}), {done}{beyond}"),
        None => format!("{done}{beyond}"),
    }
}

/// Returns what becomes of packets by what a rule has learned.
fn by_learned(learns: &str, shown: &Shown) -> String {
    match learns.strip_prefix("capture, ") {
        Some(fate) if shown.captures => format!("captured, {}", done(fate, shown.dry_run)),
        fate => done(fate.unwrap_or(learns), shown.dry_run).into_owned(),
    }
}

/// Says which packets something could not be remembered of, or are missing in the log.
fn unkept(shown: &Shown) -> impl Iterator<Item = String> {
    let unkept = &shown.unkept;
    let table = [
        (unkept.learned, "taught no rule, or for one direction only: there was no room"),
        (unkept.no_flow, "taught no rule: they are not IP, and belong to no flow"),
        (unkept.buckets, "taken to be within a limit: there was no room to count them"),
        (
            unkept.flows,
            "captured without being counted among the first of their flow: there was no room for it",
        ),
        (shown.log_lost, "not logged: there was no room, or the file has failed"),
    ];
    table
        .into_iter()
        .filter(|(packets, _)| *packets > 0)
        .map(|(packets, what)| format!("{} {what}", units::packets(packets)))
}

/// Returns what is done with packets of a fate, which is written as in rules.
pub(crate) fn done(fate: &str, dry_run: bool) -> Cow<'_, str> {
    let done: Cow<'_, str> = match fate {
        "pass" => return "passed".into(),
        "block" => "blocked".into(),
        "bounce" => "bounced".into(),
        fate => match fate.strip_prefix("reflect ") {
            Some(interface) => format!("reflected to {interface}").into(),
            None => fate.into(),
        },
    };
    if dry_run { format!("would be {done}").into() } else { done }
}

fn row(name: &str, done: &str, counted: &ShownPackets) -> [String; 6] {
    let last = counted.last_at().map(units::local_time).unwrap_or_default();
    let last = last.split('.').next().unwrap_or_default().to_owned();
    let (packets, bytes) = (units::grouped(counted.packets), units::bytes(counted.bytes));
    [name.to_owned(), done.to_owned(), packets, String::new(), bytes, last]
}
