//! The account for Prometheus.

use std::fmt::Display;

use weir::statistics::Counts;
use weir_service::metrics::{Measured, Page};

use super::summary::{InBucket, Row, Summary};
use super::top;

type Values<'a> = Vec<(&'static str, &'a dyn Display)>;

/// Writes two counters, of packets and of bytes, with a sample for each direction of each row.
fn put(page: &mut Page, name: &str, what: &str, rows: &[(Values<'_>, &Counts)]) {
    for unit in ["packets", "bytes"] {
        let name = format!("{name}_{unit}");
        page.counter(&name, &format!("{}{} {what}", unit[..1].to_uppercase(), &unit[1..]));
        for (labels, counts) in rows {
            for (direction, count) in [("received", counts.received), ("sent", counts.sent)] {
                let labels = [&labels[..], &[("direction", &direction)]].concat();
                page.count(&name, &labels, if unit == "packets" { count.packets } else { count.bytes });
            }
        }
    }
}

impl Measured for Summary {
    fn put(&self, page: &mut Page) {
        let interface: (&'static str, &dyn Display) = ("interface", &self.interface);
        page.gauge("weir_elapsed_seconds", "How long packets have been counted.");
        page.sample("weir_elapsed_seconds", &[interface], format_args!("{:.3}", self.elapsed_seconds));
        put(page, "weir_counted", "of the interface.", &[(vec![interface], &self.total.counts)]);
        let names: Vec<_> = self.filters.iter().map(|one| (one.row.name.text(), &one.row.counts)).collect();
        let rows: Vec<_> =
            names.iter().map(|(name, counts)| (vec![interface, ("filter", name as _)], *counts)).collect();
        put(page, "weir_filter", "that match a filter.", &rows);
        if let Some(keyed) = &self.keyed {
            let texts = keyed.keys.iter().map(|of| {
                let text = |field: &weir::statistics::KeyField| (field.as_str(), top::plain(&of.key, *field));
                (self.fields.iter().map(text).collect::<Vec<_>>(), &of.counts.counts)
            });
            let texts: Vec<_> = texts.collect();
            let rows = texts.iter().map(|(fields, counts)| {
                let fields = fields.iter().map(|(field, text)| (*field, text as &dyn Display));
                ([interface].into_iter().chain(fields).collect(), *counts)
            });
            put(page, "weir_key", "of the busiest keys.", &rows.collect::<Vec<_>>());
            put(page, "weir_others", "whose key had no room.", &[(vec![interface], &keyed.others.counts)]);
        }
        let buckets = |page: &mut Page, name: &str, what: &str, buckets: &[InBucket<Row>]| {
            let limits: Vec<_> = buckets.iter().map(InBucket::limits).collect();
            let rows = limits.iter().zip(buckets).map(|((from, to), bucket)| {
                let labels: Values<'_> = vec![interface, ("from", from), ("to", to)];
                (labels, &bucket.counts.counts)
            });
            put(page, name, what, &rows.collect::<Vec<_>>());
        };
        if !self.spread.sizes.is_empty() {
            buckets(page, "weir_size", "by bytes on the wire, with checksum.", &self.spread.sizes);
        }
        if let Some(first) = &self.spread.first {
            buckets(page, "weir_gap", "by nanoseconds since the packet before.", &self.spread.gaps);
            put(page, "weir_first", "without one before on their CPU.", &[(vec![interface], &first.counts)]);
        }
        page.counter("weir_untold_tag_packets", "Packets that may have lost a VLAN tag.");
        page.count("weir_untold_tag_packets", &[interface], self.untold_tags);
        page.counter("weir_lost_packets", "Received packets that the card or its driver had no room for.");
        page.count("weir_lost_packets", &[interface, ("stage", &"nic")], self.nic_lost());
    }
}
