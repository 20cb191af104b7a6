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
    let (mut continued, mut captured) = (Vec::new(), 0);
    for rule in &shown.rules {
        let ShownRow { name, packets, learned, learns, .. } = rule;
        if rule.continues {
            continued.push(row(&format!("{name} (continue)"), "", packets));
        } else {
            let (own, beyond) = match rule.beyond.zip(rule.over.as_ref()).filter(|_| rule.fate != "pass") {
                Some((beyond, limit)) => {
                    let [own, beyond] = packets.divided(beyond);
                    (own, Some((beyond, limit)))
                }
                None => (packets.clone(), None),
            };
            let fate = if beyond.is_some() { "pass" } else { &rule.fate };
            let mut own = row(name, &becomes(rule, fate, shown), &own);
            own[3] = rule.captured.map(units::grouped).unwrap_or_default();
            rows.push(own);
            if let Some((beyond, limit)) = beyond {
                rows.push(row(&format!("{name}, over {limit}"), &done(&rule.fate, shown.dry_run), &beyond));
            }
        }
        if let Some((learns, packets)) = learns.as_ref().zip(learned.as_ref())
            && packets.packets > 0
        {
            let mut row = row(&format!("{name}, learned"), &by_learned(learns, shown), packets);
            if learns.starts_with("capture, ") {
                row[3] = units::grouped(packets.packets);
                captured += packets.packets;
            }
            rows.push(row);
        }
        captured += rule.captured.unwrap_or(0);
    }
    if shown.replaced.packets > 0 {
        let mut row = row("(replaced rules)", "", &shown.replaced);
        row[3] = shown.all_captured.map(|all| units::grouped(all - captured.min(all))).unwrap_or_default();
        rows.push(row);
    }
    if shown.exact.packets > 0 {
        rows.push(row("exact rules", "as each says", &shown.exact));
    }
    rows.push(row("no rule", "passed", &shown.no_rule));
    let mut all = row("total", "", &shown.total);
    all[3] = shown.all_captured.map(units::grouped).unwrap_or_default();
    rows.push(all);
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

/// Returns what becomes of packets of a rule that have this fate.
fn becomes(rule: &ShownRow, fate: &str, shown: &Shown) -> String {
    let done = done(fate, shown.dry_run);
    match rule.capture.as_deref().filter(|_| shown.captures) {
        Some("capture") => format!("captured, {done}"),
        Some(some) => format!("captured ({some}), {done}"),
        None => done.into_owned(),
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
