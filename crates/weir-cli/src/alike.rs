//! Lines that several interfaces have in common, printed once for all of them.

use std::fmt::Write as _;

use crate::style::{self, Paint};

/// So many interfaces have a line in common. Fewer keep lines of their own, which are easier to find.
const MANY: usize = 4;

/// A line about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    pub(crate) about: String,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fact,
    Warning,
}

/// Returns the lines; those of many interfaces that differ only in the name become one, in the place of the first.
pub(crate) fn print(lines: &[Line<'_>], paint: Paint) -> String {
    let mut text = String::new();
    for line in lines {
        let same = |other: &&Line<'_>| (other.kind, &other.about) == (line.kind, &line.about);
        let names: Vec<_> = lines.iter().filter(same).map(|one| one.name).collect();
        let name = match listed(&names) {
            Some(_) if names[0] != line.name => continue,
            Some(all) => all,
            None => line.name.to_owned(),
        };
        let (name, about) = (style::visible(&name), &line.about);
        let _infallible = match line.kind {
            Kind::Fact => writeln!(text, "{}: {about}", paint.bold(name)),
            Kind::Warning => writeln!(text, "{}: {name}: {about}", paint.yellow("warning")),
        };
    }
    text
}

/// Returns many names as one, shorter if they have consecutive numbers: `v0 to v39 (40 interfaces)`; `None`: they are few.
pub(crate) fn listed(names: &[&str]) -> Option<String> {
    if names.len() < MANY {
        return None;
    }
    let mut runs: Vec<(&str, &str, usize)> = Vec::new();
    for name in names {
        match runs.last_mut() {
            Some((_, last, count)) if follows(last, name) => {
                *last = name;
                *count += 1;
            }
            _ => runs.push((name, name, 1)),
        }
    }
    let run = |(first, last, count): (&str, &str, usize)| match count {
        1 => first.to_owned(),
        2 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let runs = runs.into_iter().map(run).collect::<Vec<_>>().join(", ");
    Some(format!("{runs} ({} interfaces)", names.len()))
}

/// Whether `next` is the name after `name`.
fn follows(name: &str, next: &str) -> bool {
    let split = |name: &str| {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.split_at(name.len() - digits);
        // A number with zeros in front has names of its own.
        let is_plain = number == "0" || !number.starts_with('0');
        Some((prefix.to_owned(), number.parse::<u64>().ok().filter(|_| is_plain)?))
    };
    let (name, next) = (split(name), split(next));
    name.zip(next).is_some_and(|((prefix, number), (other, after))| {
        prefix == other && number.checked_add(1) == Some(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(name: &str, about: impl Into<String>) -> Line<'_> {
        Line { kind: Kind::Fact, name, about: about.into() }
    }

    #[test]
    fn equal_lines_of_many_become_one_in_the_place_of_the_first() {
        let names: Vec<String> = (0..40).map(|number| format!("v{number}")).collect();
        let facts = |name| [fact(name, "tcx"), fact(name, "filter `udp`")];
        let mut lines: Vec<_> = names.iter().flat_map(|name| facts(name)).collect();
        lines.splice(4..4, [fact("lo", "xdp"), Line { kind: Kind::Warning, ..fact("lo", "tcx") }]);
        let all = "v0 to v39 (40 interfaces)";
        let text = format!("{all}: tcx\n{all}: filter `udp`\nlo: xdp\nwarning: lo: tcx\n");
        assert_eq!(print(&lines, Paint::PLAIN), text);

        let few = [fact("v0", "tcx"), fact("lo", "xdp"), fact("v1", "tcx"), fact("v2", "tcx")];
        assert_eq!(print(&few, Paint::PLAIN), "v0: tcx\nlo: xdp\nv1: tcx\nv2: tcx\n");
    }

    #[test]
    fn consecutive_names_are_told_by_the_first_and_the_last() {
        for (names, text) in [
            (&["v0", "v1", "v2", "lo", "v4"][..], "v0 to v2, lo, v4 (5 interfaces)"),
            (&["eth9", "eth10", "eth11", "eth12"], "eth9 to eth12 (4 interfaces)"),
            (&["eth0", "eth1", "lo", "eth5"], "eth0, eth1, lo, eth5 (4 interfaces)"),
            (&["v3", "v2", "v1", "v1"], "v3, v2, v1, v1 (4 interfaces)"),
            (&["ns/v1", "ns/v2", "ns/v3", "v4"], "ns/v1 to ns/v3, v4 (4 interfaces)"),
            (&["p01", "p02", "p03", "p04"], "p01, p02, p03, p04 (4 interfaces)"),
            (&["a", "b", "c", "d"], "a, b, c, d (4 interfaces)"),
        ] {
            assert_eq!(listed(names).as_deref(), Some(text));
        }
        assert_eq!(listed(&["v0", "v1", "v2"]), None);
    }
}
