//! What is said at the start, and the table.

use weir::guard::GuardInfo;
use weir::parts::command;

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

/// Returns what happens to the rules on exit, if they are to stay, or if those stayed that they have taken over from: at once, or once
/// they are confirmed.
pub(super) fn on_exit(stay: bool, confirmed: bool, took_over: bool, interface: &str) -> String {
    let once = if confirmed { ", once they are confirmed" } else { "" };
    match (stay, took_over) {
        (true, _) => {
            format!("on exit: the rules stay in force{once}; to take them off: {}\n", end(interface))
        }
        (false, true) => format!(
            "on exit: the rules are off{once}, and those that were left in force do not return; to keep rules: --on-exit closed\n"
        ),
        (false, false) => String::new(),
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
