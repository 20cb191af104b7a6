//! What is said at the start, and the table.

use std::borrow::Cow;
use std::fmt::Write as _;

use weir::guard::GuardInfo;
use weir::parts::command;

use super::shown::{Shown, ShownPackets, ShownRow};
use crate::alike::{self, Kind};
use crate::style::Paint;
use crate::{advice, units};

/// Returns how the interface is guarded by this many rules, unless `quiet`, and what they do not see.
pub(super) fn opened(info: &GuardInfo, rules: usize, quiet: bool, paint: Paint) -> String {
    let warning =
        |warning| alike::Line { kind: Kind::Warning, name: &info.name, about: advice::warning(warning) };
    let rules = self::rules(rules);
    let dry = if info.dry_run { " (dry run: every packet passes)" } else { "" };
    let source = info.received.map_or("tc", |source| source.as_str());
    let took = if info.took_over { ", which take over from those left in force" } else { "" };
    let about = format!("{}, {rules}{took}{dry}; source {source}: {}", info.detail, info.why);
    let fact = alike::Line { kind: Kind::Fact, name: &info.name, about };
    let lines = (!quiet).then_some(fact).into_iter().chain(info.warnings.iter().map(warning));
    alike::print(&lines.collect::<Vec<_>>(), paint)
}

/// Returns what happens to the rules on exit, if they are to stay: at once, or once they are confirmed.
pub(super) fn on_exit(stay: bool, confirmed: bool, interface: &str) -> String {
    let once = if confirmed { ", once they are confirmed" } else { "" };
    match stay {
        true => format!("on exit: the rules stay in force{once}; to take them off: {}\n", end(interface)),
        false => String::new(),
    }
}

/// Returns how rules are taken off that stay in force.
pub(super) fn stays(interface: &str) -> String {
    format!("the rules stay in force on {interface}; to take them off: {}\n", end(interface))
}

/// Returns the command that takes rules off.
pub(super) fn end(interface: &str) -> String {
    format!("weir guard --end -i {}", command::word(interface))
}

/// Returns a number of rules.
pub(super) fn rules(count: usize) -> String {
    match count {
        1 => "1 rule".to_owned(),
        count => format!("{} rules", units::grouped(count as u64)),
    }
}

/// Returns a row for each rule, which add up with those below to the total; rules that continue come behind it.
pub(crate) fn table(shown: &Shown, paint: Paint) -> String {
    let dry_run = shown.dry_run;
    let mut rows = vec![["rule", "packets are", "packets", "bytes", "last"].map(str::to_owned)];
    let mut continued = Vec::new();
    for ShownRow { name, fate, continues, over, packets, learned, learns } in &shown.rules {
        let beyond = over.as_ref().map(|limit| format!(" over {limit}")).unwrap_or_default();
        if *continues {
            continued.push(row(&format!("{name} (continue)"), "", packets));
        } else {
            rows.push(row(name, &format!("{}{beyond}", done(fate, dry_run)), packets));
        }
        if let Some((learns, packets)) = learns.as_ref().zip(learned.as_ref())
            && packets.packets > 0
        {
            rows.push(row(&format!("{name}, learned"), &done(learns, dry_run), packets));
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
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for (number, [rule, what, packets, bytes, last]) in rows.iter().enumerate() {
        let line = format!(
            "{rule:<0$}  {what:<1$}  {packets:>2$}  {bytes:>3$}  {last}",
            widths[0], widths[1], widths[2], widths[3]
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

/// Says which packets something could not be remembered of, or are missing in the log.
fn unkept(shown: &Shown) -> impl Iterator<Item = String> {
    let unkept = &shown.unkept;
    let table = [
        (unkept.learned, "taught no rule, or for one direction only: there was no room"),
        (unkept.no_flow, "taught no rule: they are not IP, and belong to no flow"),
        (unkept.buckets, "taken to be within a limit: there was no room to count them"),
        (shown.log_lost, "not logged: there was no room, or the file has failed"),
    ];
    table
        .into_iter()
        .filter(|(packets, _)| *packets > 0)
        .map(|(packets, what)| format!("{} {what}", units::packets(packets)))
}

/// Returns what is done with packets of a fate, which is written as in rules.
pub(super) fn done(fate: &str, dry_run: bool) -> Cow<'_, str> {
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

fn row(name: &str, done: &str, counted: &ShownPackets) -> [String; 5] {
    let last = counted.last_at().map(units::local_time).unwrap_or_default();
    let last = last.split('.').next().unwrap_or_default().to_owned();
    [name.to_owned(), done.to_owned(), units::grouped(counted.packets), units::bytes(counted.bytes), last]
}
