//! What is said at the start and at the end.

use std::fmt::Write as _;

use weir::Statistics;
use weir::statistics::StatisticsInfo;

use super::label;
use super::rows::Line;
use super::summary::Summary;
use crate::alike::{self, Kind};
use crate::style::Paint;
use crate::{advice, counts, units};

/// Returns how packets are counted, unless `quiet`, and why counts are not exact: a line for each interface, or for several
/// with the same.
pub(super) fn opened(all: &[Statistics], quiet: bool, paint: Paint) -> String {
    let lines = all.iter().map(Statistics::info).flat_map(|info| {
        let warning =
            |warning| alike::Line { kind: Kind::Warning, name: &info.name, about: advice::warning(warning) };
        (!quiet).then(|| fact(info)).into_iter().chain(info.warnings.iter().map(warning))
    });
    alike::print(&lines.collect::<Vec<_>>(), paint)
}

fn fact(info: &StatisticsInfo) -> alike::Line<'_> {
    let filters = match info.filters.len() {
        0 => "no filters".to_owned(),
        1 => "1 filter".to_owned(),
        several => format!("{several} filters"),
    };
    let by = match info.fields.as_slice() {
        [] => String::new(),
        fields => {
            format!(", by {}", fields.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", "))
        }
    };
    let about = format!("{}, {filters}{by}; source {}: {}", info.detail, info.source, info.why);
    alike::Line { kind: Kind::Fact, name: &info.name, about }
}

/// Returns the account as a table.
pub(super) fn account(summary: &Summary, paint: Paint) -> String {
    let names: Vec<_> = summary.lines().map(|line| line.map(|row| &row.name)).collect();
    let mut labels = label::column(&summary.fields, &names).into_iter();
    let head = labels.next().unwrap_or_default();
    let rows = labels.zip(summary.lines()).map(|(label, Line { row, .. })| (label, row.counts));
    let mut text = format!("\n{}", counts::table(head, rows, paint));
    let whole = summary.whole();
    if whole.nic_lost() > 0 {
        let more = advice::ethtool("G", summary.names(|one| one.nic_lost() > 0), "rx N");
        let _infallible = writeln!(
            text,
            "  NIC: the card or its driver had no room for another {}; to add receive buffers: {more}",
            units::packets(whole.nic_lost())
        );
    }
    if whole.tag_unknown > 0 {
        let told = advice::tag_unknown(whole.tag_unknown, summary.names(|one| one.tag_unknown > 0));
        let _infallible = writeln!(text, "  {told}");
    }
    text
}

#[cfg(test)]
mod tests {
    use weir::NicCounters;
    use weir::statistics::Reading;

    use super::super::rows::View;
    use super::super::summary::{Counted, Origin};
    use super::super::top::{Busiest, Choice};
    use super::*;

    #[test]
    fn unknown_tags_and_losses_of_the_card_are_told_with_their_interfaces() {
        let text = |counted: &[(u64, u64)]| {
            let counted: Vec<Counted> = (0..)
                .zip(counted)
                .map(|(number, &(tag_unknown, missed)): (u32, _)| {
                    let mut reading = Reading::default();
                    reading.tag_unknown = tag_unknown;
                    reading.nic = weir::with!(NicCounters::default(), missed, fifo_errors = 1, dropped = 7);
                    let origin = Origin::file(format!("eth{number}"), String::new());
                    Counted { origin, filters: Vec::new(), reading }
                })
                .collect();
            let view =
                View { fields: Vec::new(), choice: Choice { most: 1, by: Busiest::Packets }, apart: false };
            account(&Summary::new(&counted, &view), Paint::PLAIN)
        };
        let one = text(&[(1, 0)]);
        assert!(
            one.ends_with(
                "\n  NIC: the card or its driver had no room for another 1 packet; to add receive buffers: \
                 ethtool -G eth0 rx N\n  VLAN tags: for 1 packet the driver did not report whether it stripped \
                 a tag; to keep tags: ethtool -K eth0 rxvlan off\n"
            ),
            "{one}"
        );
        let three = text(&[(0, 3), (2000, 0), (5, 0)]);
        for part in [
            "had no room for another 6 packets;",
            "VLAN tags: for 2,005 packets the driver did not report",
            "to keep tags: ethtool -K eth1 rxvlan off; ethtool -K eth2 rxvlan off\n",
        ] {
            assert!(three.contains(part), "{part}: {three}");
        }
    }
}
