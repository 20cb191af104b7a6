//! What each rule has seen, as a table.

use weir_rules::{Count, Evaluator, Limits, Shortcut};

use crate::{style, units};

/// Returns a row for each rule, whose packets add up with those of no rule; rules that continue come last.
pub(crate) fn table(evaluator: &Evaluator) -> Vec<String> {
    let mut rows = vec![["rule", "packets", "bytes", "captured", "last"].map(str::to_owned)];
    let mut continued = Vec::new();
    let (mut all, mut all_captured) = (evaluator.unmatched(), 0);
    for (rule, count) in evaluator.rules().rules.iter().zip(evaluator.counts()) {
        let last = count.last.map_or_else(String::new, seconds);
        if rule.actions.continues {
            continued.push(row(format!("{} (continue)", rule.name), count.matched, None, last.clone()));
        } else {
            rows.push(row(rule.name.clone(), count.matched, Some(count.captured.packets), last.clone()));
            all += count.matched;
            all_captured += count.captured.packets;
        }
        if count.by_learned.packets > 0 {
            let is_captured =
                rule.actions.learn.as_ref().is_some_and(|learn| learn.shortcut == Shortcut::Capture);
            let captured = if is_captured { count.by_learned.packets } else { 0 };
            rows.push(row(format!("{}, learned", rule.name), count.by_learned, Some(captured), last));
            all += count.by_learned;
            all_captured += captured;
        }
    }
    rows.push(row("no rule".to_owned(), evaluator.unmatched(), Some(0), String::new()));
    rows.push(row("total".to_owned(), all, Some(all_captured), String::new()));
    let total = rows.len() - 1;
    rows.append(&mut continued);
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let paint = style::stderr();
    let line = |(number, row): (usize, &[String; 5])| {
        let [rule, numbers @ .., last] = row;
        let mut line = format!("{rule:<width$}", width = widths[0]);
        for (cell, width) in numbers.iter().zip(&widths[1..]) {
            line += &format!("  {cell:>width$}");
        }
        let line = format!("{line}  {last}").trim_end().to_owned();
        match number {
            0 => paint.dim(line),
            _ if number == total => paint.bold(line),
            _ => line,
        }
    };
    rows.iter().enumerate().map(line).collect()
}

fn row(name: String, count: Count, captured: Option<u64>, last: String) -> [String; 5] {
    let captured = captured.map_or_else(String::new, units::grouped);
    [name, units::grouped(count.packets), units::bytes(count.bytes), captured, last]
}

/// Returns a local time without its fraction.
fn seconds(time: u64) -> String {
    let time = units::local_time(time);
    time.split('.').next().unwrap_or_default().to_owned()
}

/// Says which packets something could not be remembered of.
pub(crate) fn unkept(evaluator: &Evaluator, limits: &Limits) -> Vec<String> {
    let unkept = evaluator.unkept();
    let most = |most: usize| units::grouped(most as u64);
    let table = [
        (
            unkept.flows,
            format!("captured without counting their flow: there are {} others", most(limits.flows)),
        ),
        (
            unkept.learned,
            format!("taught no rule, or one direction only: {} are in force", most(limits.learned)),
        ),
        (unkept.no_flow, "taught no rule: they are not IP, and belong to no flow".to_owned()),
        (
            unkept.buckets,
            format!("taken to be within a limit: there are {} others to count", most(limits.buckets)),
        ),
    ];
    let said = |(packets, what): &(u64, String)| format!("{} {what}", units::packets(*packets));
    table.iter().filter(|(packets, _)| *packets > 0).map(said).collect()
}
