//! The account for Prometheus.

use std::fmt::Display;
use std::iter;

use weir_service::metrics::{Measured, OwnLabels, Page, put_rules};

use super::summary::Summary;

impl Measured for Summary {
    fn put(&self, page: &mut Page) {
        let counted = &self.counted;
        page.gauge("weir_elapsed_seconds", "How long the rules have been in force.");
        let elapsed = counted.rules.elapsed_seconds;
        page.sample("weir_elapsed_seconds", &self.labels(), format_args!("{elapsed:.3}"));
        page.gauge("weir_guard_dry_run", "Whether every packet passes, whatever the rules say.");
        page.sample("weir_guard_dry_run", &self.labels(), u8::from(self.dry_run));
        put_rules(
            page,
            "weir_guard",
            "weir_guard_rule_info",
            iter::once((self.interface.as_str(), &counted.rules)),
        );
        page.counter("weir_guard_logged_packets", "Packets in the log.");
        page.count("weir_guard_logged_packets", &self.labels(), counted.logged);
        page.counter(
            "weir_guard_log_lost_packets",
            "Packets missing in the log: there was no room, or the file has failed.",
        );
        page.count("weir_guard_log_lost_packets", &self.labels(), counted.log_lost);
    }
}

impl Summary {
    fn labels(&self) -> OwnLabels<'_> {
        vec![("interface", &self.interface as &dyn Display)]
    }
}
