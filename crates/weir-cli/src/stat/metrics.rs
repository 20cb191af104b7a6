//! The account for Prometheus.

use std::fmt::Display;

use weir::statistics::Key;
use weir_service::metrics::{Measured, OwnLabels, Page};

use super::rows::{InBucket, Row, Spread};
use super::summary::{InterfaceSummary, Summary};
use super::top;

impl Measured for Summary {
    fn put(&self, page: &mut Page) {
        page.gauge("weir_elapsed_seconds", "How long packets have been counted.");
        for one in self.each() {
            page.sample("weir_elapsed_seconds", &labels(one), format_args!("{:.3}", one.elapsed_seconds));
        }
        let totals = self.each().iter().map(|one| (labels(one), &one.rows.total.counts));
        page.counts("weir_counted", "of the interface.", &totals.collect::<Vec<_>>());
        let named = self.each().iter().flat_map(|one| one.rows.filters.iter().map(move |row| (one, row)));
        let named: Vec<_> = named.map(|(one, row)| (one, row.name.text(), &row.counts)).collect();
        let rows = named.iter().map(|(one, name, counts)| {
            let labels: OwnLabels<'_> = [&labels(one)[..], &[("filter", name)]].concat();
            (labels, *counts)
        });
        page.counts("weir_filter", "that match a filter.", &rows.collect::<Vec<_>>());
        self.put_keys(page);
        self.put_spread(page);
        page.counter("weir_tag_unknown_packets", "Packets that may have lost a VLAN tag.");
        for one in self.each() {
            page.count("weir_tag_unknown_packets", &labels(one), one.tag_unknown);
        }
        page.counter("weir_lost_packets", "Received packets that the card or its driver had no room for.");
        for one in self.each() {
            let labels = [&labels(one)[..], &[("stage", &"nic")]].concat();
            page.count("weir_lost_packets", &labels, one.nic_lost());
        }
    }
}

/// Returns the label of an account: the interface, if it is of one.
fn labels(account: &InterfaceSummary) -> OwnLabels<'_> {
    let interface = account.origin().map(|origin| ("interface", &origin.interface as &dyn Display));
    interface.into_iter().collect()
}

impl Summary {
    /// Returns the accounts with keys, sizes and gaps: those of each interface, or that of all together, which has no label.
    fn detailed(&self) -> impl Iterator<Item = &InterfaceSummary> {
        let has =
            |account: &&InterfaceSummary| account.rows.keyed.is_some() || !account.rows.spread.is_empty();
        let several = (self.each().len() > 1).then(|| self.whole());
        self.each().iter().chain(several).filter(has)
    }

    fn put_keys(&self, page: &mut Page) {
        let keyed: Vec<_> = self.detailed().filter_map(|one| Some((one, one.rows.keyed.as_ref()?))).collect();
        if keyed.is_empty() {
            return;
        }
        let text = |key: &Key| -> Vec<(&'static str, String)> {
            self.fields.iter().map(|field| (field.as_str(), top::plain(key, *field))).collect()
        };
        let each = keyed.iter().flat_map(|(one, keyed)| keyed.keys.iter().map(move |of| (one, of)));
        let texts: Vec<_> = each.map(|(one, of)| (one, text(&of.key), &of.counts.counts)).collect();
        let rows = texts.iter().map(|(one, fields, counts)| {
            let fields = fields.iter().map(|(field, text)| (*field, text as &dyn Display));
            (labels(one).into_iter().chain(fields).collect(), *counts)
        });
        page.counts("weir_key", "of the busiest keys.", &rows.collect::<Vec<_>>());
        let others = keyed.iter().map(|(one, keyed)| (labels(one), &keyed.others.counts));
        page.counts("weir_others", "whose key had no room.", &others.collect::<Vec<_>>());
    }

    fn put_spread(&self, page: &mut Page) {
        let buckets = |page: &mut Page, name: &str, what: &str, of: fn(&Spread<Row>) -> &[InBucket<Row>]| {
            let each = self.detailed().flat_map(|one| of(&one.rows.spread).iter().map(move |of| (one, of)));
            let limits: Vec<_> = each.map(|(one, of)| (one, of.limits(), &of.counts.counts)).collect();
            let rows = limits.iter().map(|(one, (from, to), counts)| {
                let limits: [(&'static str, &dyn Display); 2] = [("from", from), ("to", to)];
                (labels(one).into_iter().chain(limits).collect(), *counts)
            });
            let rows: Vec<_> = rows.collect();
            if !rows.is_empty() {
                page.counts(name, what, &rows);
            }
        };
        buckets(page, "weir_size", "by bytes on the wire, with checksum.", |spread| &spread.sizes);
        buckets(page, "weir_gap", "by nanoseconds since the packet before.", |spread| &spread.gaps);
        let first =
            self.detailed().filter_map(|one| Some((labels(one), &one.rows.spread.first.as_ref()?.counts)));
        let first: Vec<_> = first.collect();
        if !first.is_empty() {
            page.counts("weir_first", "without one before on their CPU.", &first);
        }
    }
}
