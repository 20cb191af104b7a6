//! The account for Prometheus.

use std::fmt::Display;

use weir::guard::Count;
use weir_service::metrics::{Measured, OwnLabels, Page};

use super::summary::{Packets, Row, Summary};

/// The most rules that have labels of their own; the rest are summed.
const MOST: usize = 1000;

/// In place of the name of a rule; no rule has such a name.
const EXACT: &str = "(exact rules)";
const NO_RULE: &str = "(no rule)";
const REPLACED: &str = "(replaced)";
const OTHERS: &str = "(others)";

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    packets: u64,
    bytes: u64,
}

impl Sum {
    fn and(self, packets: &Packets) -> Self {
        Self { packets: self.packets + packets.packets, bytes: self.bytes + packets.bytes }
    }
}

impl Measured for Summary {
    fn put(&self, page: &mut Page) {
        let counted = &self.counted;
        page.gauge("weir_elapsed_seconds", "How long the rules have been in force.");
        page.sample("weir_elapsed_seconds", &self.of(&[]), format_args!("{:.3}", counted.elapsed_seconds));
        page.gauge("weir_guard_dry_run", "Whether every packet passes, whatever the rules say.");
        page.sample("weir_guard_dry_run", &self.of(&[]), u8::from(self.dry_run));
        let (continuing, deciding): (Vec<_>, Vec<_>) =
            counted.rules.iter().partition(|rule| rule.action.continues);
        page.gauge("weir_guard_rule_info", "What each rule does with its packets.");
        for (rule, fate) in deciding.iter().take(MOST).flat_map(|rule| fates(rule)) {
            page.sample("weir_guard_rule_info", &self.of(&[("rule", &rule), ("fate", &fate)]), 1);
        }
        let one = |name: &str, packets| (name.to_owned(), Sum::default().and(packets));
        let mut rows = limited(&deciding);
        let others = [(EXACT, &counted.exact), (NO_RULE, &counted.no_rule), (REPLACED, &counted.replaced)];
        rows.extend(others.map(|(name, packets)| one(name, packets)));
        self.counts(page, "weir_guard", "of each rule, and of what it has learned.", &rows);
        self.counts(
            page,
            "weir_guard_continued",
            "of rules that continue; others have them, too.",
            &limited(&continuing),
        );
        let fates = counted.fates;
        let fates = [
            ("pass", fates.passed),
            ("block", fates.blocked),
            ("bounce", fates.bounced),
            ("reflect", fates.reflected),
            ("limit", fates.limited),
            ("exact", fates.exact),
        ];
        for (unit, of) in
            [("packets", (|count| count.packets) as fn(Count) -> u64), ("bytes", |count| count.bytes)]
        {
            let name = format!("weir_guard_fate_{unit}");
            let title = if unit == "packets" { "Packets" } else { "Bytes" };
            page.counter(
                &name,
                &format!("{title} by what rules say happens to them; of rules with a limit, and of added exact rules, apart."),
            );
            for (fate, count) in &fates {
                page.count(&name, &self.of(&[("fate", fate)]), of(*count));
            }
        }
        page.counter("weir_guard_unkept_packets", "Packets for which something could not be remembered.");
        let unkept = counted.unkept;
        for (what, packets) in
            [("learned", unkept.learned), ("no_flow", unkept.no_flow), ("buckets", unkept.buckets)]
        {
            page.count("weir_guard_unkept_packets", &self.of(&[("what", &what)]), packets);
        }
        page.counter("weir_guard_logged_packets", "Packets in the log.");
        page.count("weir_guard_logged_packets", &self.of(&[]), counted.logged);
        page.counter(
            "weir_guard_log_lost_packets",
            "Packets missing in the log: there was no room, or the file has failed.",
        );
        page.count("weir_guard_log_lost_packets", &self.of(&[]), counted.log_lost);
    }
}

impl Summary {
    /// Returns the label of the interface, and these.
    fn of<'a>(&'a self, more: &[(&'static str, &'a dyn Display)]) -> OwnLabels<'a> {
        [&[("interface", &self.interface as &dyn Display)], more].concat()
    }

    /// Writes two counters with a sample for each row.
    fn counts(&self, page: &mut Page, name: &str, what: &str, rows: &[(String, Sum)]) {
        for (unit, title) in [("packets", "Packets"), ("bytes", "Bytes")] {
            let name = format!("{name}_{unit}");
            page.counter(&name, &format!("{title} {what}"));
            for (rule, Sum { packets, bytes }) in rows {
                let value = if unit == "packets" { packets } else { bytes };
                page.count(&name, &self.of(&[("rule", rule)]), *value);
            }
        }
    }
}

/// Returns the name of the packets that a rule has learned to decide about.
fn learned(rule: &Row) -> String {
    format!("{}, learned", rule.name)
}

/// Returns what a rule does with its packets, and with those of what it learns.
fn fates(rule: &Row) -> impl Iterator<Item = (String, String)> {
    let beyond = rule.action.over.map(|limit| format!(" over {limit}")).unwrap_or_default();
    let own = (rule.name.clone(), format!("{}{beyond}", rule.fate));
    let learns = rule.action.learn.as_ref().map(|learn| (learned(rule), learn.fate.to_string()));
    std::iter::once(own).chain(learns)
}

/// Returns the packets of the first rules, and the sum of the others, if there are any.
fn limited(rules: &[&Row]) -> Vec<(String, Sum)> {
    let (mut rows, mut others) = (Vec::new(), None);
    for (number, rule) in rules.iter().enumerate() {
        if number < MOST {
            rows.push((rule.name.clone(), Sum::default().and(&rule.packets)));
            rows.extend(rule.learned.iter().map(|packets| (learned(rule), Sum::default().and(packets))));
        } else {
            let both = [Some(&rule.packets), rule.learned.as_ref()].into_iter().flatten();
            others = Some(both.fold(others.unwrap_or_default(), Sum::and));
        }
    }
    rows.extend(others.map(|sum| (OTHERS.to_owned(), sum)));
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir::guard::{Action, Fate, Learn, Limit, LimitKey};

    use super::*;

    #[test]
    fn many_rules_have_few_labels() {
        let second = Duration::from_secs(1);
        let limit = Limit::new(5, second, LimitKey::Flow);
        let action = Action::from(Fate::Block).over(limit).learn(Learn::new(Fate::Pass, second));
        let rules: Vec<Row> =
            (0..MOST + 2).map(|number| Row::counted(&number.to_string(), &action, 1)).collect();
        let names = |rules: &[Row]| {
            limited(&rules.iter().collect::<Vec<_>>()).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&rules[..2]), ["0", "0, learned", "1", "1, learned"]);
        let all = limited(&rules.iter().collect::<Vec<_>>());
        assert_eq!((names(&rules[..MOST]).len(), all.len()), (2 * MOST, 2 * MOST + 1));
        assert_eq!(all[2 * MOST], (OTHERS.to_owned(), Sum { packets: 4, bytes: 240 }));
        let said: Vec<_> = fates(&rules[7]).collect();
        let expected = [("7", "block over 5/s by flow"), ("7, learned", "pass")];
        assert_eq!(said, expected.map(|(rule, fate)| (rule.to_owned(), fate.to_owned())));
    }
}
