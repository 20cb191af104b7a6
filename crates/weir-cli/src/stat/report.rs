//! What is said at the start and at the end.

use std::fmt::Write as _;

use weir::statistics::StatisticsInfo;

use super::label;
use super::rows::Line;
use super::summary::Summary;
use crate::style::{self, Paint};
use crate::{advice, counts, units};

/// Returns how packets are counted.
pub(super) fn opened(info: &StatisticsInfo, paint: Paint) -> String {
    let name = paint.bold(style::visible(&info.name));
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
    format!("{name}: {}, {filters}{by}; source {}: {}\n", info.detail, info.source, info.why)
}

/// Returns a line for each reason why counts are not exact.
pub(super) fn warnings(info: &StatisticsInfo, paint: Paint) -> String {
    let line = |warning| {
        let name = style::visible(&info.name);
        format!("{}: {name}: {}\n", paint.yellow("warning"), advice::warning(warning))
    };
    info.warnings.iter().map(line).collect()
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
            "  NIC: the card or its driver had no room for {} more packets; to add receive buffers: {more}",
            units::grouped(whole.nic_lost())
        );
    }
    if whole.untold_tags > 0 {
        let keep = advice::ethtool("K", summary.names(|one| one.untold_tags > 0), "rxvlan off");
        let _infallible = writeln!(
            text,
            "  VLAN tags: for {} packets the driver did not report whether it stripped a tag; to keep tags: \
             {keep}",
            units::grouped(whole.untold_tags)
        );
    }
    text
}
