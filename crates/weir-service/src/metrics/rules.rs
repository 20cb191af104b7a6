//! What rules have counted, for Prometheus.

use std::fmt::Display;

use weir::guard::Count;

use super::{OwnLabels, Page};
use crate::rules::{Packets, RuleRow, RulesCounted};

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

/// Puts what rules of interfaces have counted, with names that begin with `prefix`, and what each does, named `info`.
pub fn put<'a>(
    page: &mut Page,
    prefix: &str,
    info: &str,
    all: impl Iterator<Item = (&'a str, &'a RulesCounted)> + Clone,
) {
    page.gauge(info, "What each rule does with its packets.");
    for (interface, counted) in all.clone() {
        let deciding = counted.rules.iter().filter(|rule| !rule.action.continues);
        for (rule, fate) in deciding.take(MOST).flat_map(fates) {
            page.sample(info, &labels(&interface, &[("rule", &rule), ("fate", &fate)]), 1);
        }
    }
    counts(
        page,
        prefix,
        "of each rule, and of what it has learned.",
        &all.clone().map(deciding).collect::<Vec<_>>(),
    );
    let continued = format!("{prefix}_continued");
    counts(
        page,
        &continued,
        "of rules that continue; others have them, too.",
        &all.clone().map(continuing).collect::<Vec<_>>(),
    );
    for (unit, of) in
        [("packets", (|count| count.packets) as fn(Count) -> u64), ("bytes", |count| count.bytes)]
    {
        let name = format!("{prefix}_fate_{unit}");
        let title = if unit == "packets" { "Packets" } else { "Bytes" };
        page.counter(
            &name,
            &format!("{title} by what rules say happens to them; of added exact rules, apart."),
        );
        for (interface, RulesCounted { fates, .. }) in all.clone() {
            let fates = [
                ("pass", fates.passed),
                ("block", fates.blocked),
                ("bounce", fates.bounced),
                ("reflect", fates.reflected),
                ("exact", fates.exact),
            ];
            for (fate, count) in &fates {
                page.count(&name, &labels(&interface, &[("fate", fate)]), of(*count));
            }
        }
    }
    let name = format!("{prefix}_unkept_packets");
    page.counter(&name, "Packets for which something could not be remembered.");
    for (interface, RulesCounted { unkept, .. }) in all {
        for (what, packets) in [
            ("learned", unkept.learned),
            ("no_flow", unkept.no_flow),
            ("buckets", unkept.buckets),
            ("flows", unkept.flows),
        ] {
            page.count(&name, &labels(&interface, &[("what", &what)]), packets);
        }
    }
}

/// Returns the label of an interface, and more.
fn labels<'a>(interface: &'a &str, more: &[(&'static str, &'a dyn Display)]) -> OwnLabels<'a> {
    [&[("interface", interface as &dyn Display)], more].concat()
}

/// Rows of an interface.
type Rows<'a> = (&'a str, Vec<(String, Sum)>);

/// Returns the rows that add up to all packets.
fn deciding<'a>((interface, counted): (&'a str, &RulesCounted)) -> Rows<'a> {
    let mut rows = limited(&counted.rules.iter().filter(|rule| !rule.action.continues).collect::<Vec<_>>());
    let others = [(EXACT, &counted.exact), (NO_RULE, &counted.no_rule), (REPLACED, &counted.replaced)];
    rows.extend(others.map(|(name, packets)| (name.to_owned(), Sum::default().and(packets))));
    (interface, rows)
}

/// Returns those of rules that continue.
fn continuing<'a>((interface, counted): (&'a str, &RulesCounted)) -> Rows<'a> {
    (interface, limited(&counted.rules.iter().filter(|rule| rule.action.continues).collect::<Vec<_>>()))
}

/// Writes two counters with a sample for each row.
fn counts(page: &mut Page, name: &str, what: &str, all: &[Rows<'_>]) {
    for (unit, title) in [("packets", "Packets"), ("bytes", "Bytes")] {
        let name = format!("{name}_{unit}");
        page.counter(&name, &format!("{title} {what}"));
        for (interface, rows) in all {
            for (rule, Sum { packets, bytes }) in rows {
                let value = if unit == "packets" { packets } else { bytes };
                page.count(&name, &labels(interface, &[("rule", rule)]), *value);
            }
        }
    }
}

/// Returns the name of the packets that a rule has learned to decide about.
fn learned(rule: &RuleRow) -> String {
    format!("{}, learned", rule.name)
}

/// Returns what a rule does with its packets, and with those of what it learns.
fn fates(rule: &RuleRow) -> impl Iterator<Item = (String, String)> {
    let beyond = rule.action.over.map(|limit| format!(" over {limit}")).unwrap_or_default();
    let own = (rule.name.clone(), format!("{}{beyond}", rule.fate));
    let learns = rule.action.learn.as_ref().map(|learn| (learned(rule), learn.fate.to_string()));
    std::iter::once(own).chain(learns)
}

/// Returns the packets of the first rules, and the sum of the others, if there are any.
fn limited(rules: &[&RuleRow]) -> Vec<(String, Sum)> {
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

    /// A rule with a packet of 60 bytes, and one that it has learned to decide about.
    fn row(name: &str, action: &Action) -> RuleRow {
        let packets = || Packets { packets: 1, bytes: 60, last: None };
        RuleRow {
            name: name.to_owned(),
            filter: String::new(),
            capture: None,
            captured: None,
            fate: action.fate.to_string(),
            r#continue: action.continues,
            over: None,
            beyond: None,
            action: action.clone(),
            learned: action.learn.is_some().then(packets),
            learns: None,
            packets: packets(),
        }
    }

    #[test]
    fn many_rules_have_few_labels() {
        let second = Duration::from_secs(1);
        let limit = Limit::new(5, second, LimitKey::Flow);
        let action = Action::from(Fate::Block).over(limit).learn(Learn::new(Fate::Pass, second));
        let rules: Vec<RuleRow> = (0..MOST + 2).map(|number| row(&number.to_string(), &action)).collect();
        let names = |rules: &[RuleRow]| {
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
