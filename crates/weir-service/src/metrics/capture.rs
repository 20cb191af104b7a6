//! The metrics of a capture.

use std::fmt::Display;

use super::{Labels, Measured, Page};
use crate::summary::{InterfaceSummary, QueueSummary, StatisticsSummary, Summary};

/// `None`: not counted, so no sample is printed.
type OfQueue = fn(&QueueSummary) -> Option<u64>;

/// Counters of a queue: name, help text, value.
const QUEUE_COUNTERS: [(&str, &str, OfQueue); 11] = [
    ("weir_seen_packets", "Packets that reached the hook.", |queue| Some(queue.counters.tally.seen)),
    ("weir_filtered_packets", "Packets rejected by the filter.", |queue| queue.counters.tally.filtered),
    ("weir_sampled_out_packets", "Packets skipped by sampling.", |queue| {
        Some(queue.counters.tally.sampled_out)
    }),
    ("weir_captured_packets", "Packets written to the pool.", |queue| Some(queue.counters.tally.captured)),
    ("weir_captured_bytes", "Original length of captured packets.", |queue| Some(queue.counters.tally.bytes)),
    ("weir_error_packets", "Packets that could not be read.", |queue| Some(queue.counters.tally.errors)),
    ("weir_delivered_packets", "Packets delivered from the pool.", |queue| {
        Some(queue.counters.tally.delivered)
    }),
    ("weir_discarded_packets", "Packets captured but discarded by -c.", |queue| {
        Some(queue.counters.tally.discarded)
    }),
    ("weir_written_packets", "Packets known to be in the file.", |queue| Some(queue.counters.tally.written)),
    (
        "weir_offloaded_chunks",
        "Chunks taken by handlers of other queues, or shared among handlers.",
        |queue| Some(queue.offloaded),
    ),
    ("weir_orphan_packets", "Later fragments assigned to a flow without their first fragment.", |queue| {
        Some(queue.orphans)
    }),
];

impl Measured for Summary {
    fn put(&self, page: &mut Page) {
        let summary = self;
        page.gauge("weir_elapsed_seconds", "How long the capture has been running.");
        page.sample("weir_elapsed_seconds", &[], format_args!("{:.3}", summary.elapsed_seconds));
        page.gauge("weir_interface_info", "Source and mode of each interface.");
        for interface in &summary.interfaces {
            let labels: Labels<'_> =
                &[("interface", &interface.name), ("source", &interface.source), ("mode", &interface.mode)];
            page.sample("weir_interface_info", labels, 1);
        }

        for (name, help, value) in QUEUE_COUNTERS {
            page.counter(name, help);
            for queue in &summary.queues {
                value(queue).iter().for_each(|&value| page.count(name, &of_queue(queue), value));
            }
        }
        page.counter(
            "weir_lost_packets",
            "Packets lost, by stage: in the card or its driver (nic), because the pool was full (pool) or the disk (disk).",
        );
        for queue in &summary.queues {
            let mut count = |stage: &'static str, packets| {
                let labels = [of_queue(queue), vec![("stage", &stage as &dyn Display)]].concat();
                page.count("weir_lost_packets", &labels, packets);
            };
            count("pool", queue.counters.tally.lost);
            if summary.file.is_some() {
                count("disk", queue.not_written);
            }
        }
        for (interface, nic) in nics(&summary.interfaces) {
            let labels: Labels<'_> = &[("interface", &interface.name), ("stage", &"nic")];
            page.count("weir_lost_packets", labels, nic.missed + nic.fifo_errors);
        }
        page.counter("weir_nic_lost_packets", "The card's and driver's own counters of lost packets.");
        for (interface, nic) in nics(&summary.interfaces) {
            for (counter, value) in
                [("missed", nic.missed), ("fifo_errors", nic.fifo_errors), ("dropped", nic.dropped)]
            {
                let labels: Labels<'_> = &[("interface", &interface.name), ("counter", &counter)];
                page.count("weir_nic_lost_packets", labels, value);
            }
        }
        put_statistics(page, &summary.statistics);
        if let Some(order) = &summary.time_order {
            page.counter("weir_late_packets", "Packets delivered after one with a later timestamp.");
            page.count("weir_late_packets", &[], order.late);
            page.counter(
                "weir_early_packets",
                "Packets held back for less than the window, or not sorted, because a pool was half full.",
            );
            page.count("weir_early_packets", &[], order.early);
        }
        if !summary.handlers.is_empty() {
            page.counter("weir_handler_packets", "Packets processed by a handler.");
            for one in &summary.handlers {
                page.count("weir_handler_packets", &[("handler", &one.handler)], one.packets);
            }
            page.counter("weir_handler_busy_seconds", "Time a handler spent processing packets.");
            for one in &summary.handlers {
                let labels: Labels<'_> = &[("handler", &one.handler)];
                page.sample(
                    "weir_handler_busy_seconds_total",
                    labels,
                    format_args!("{:.6}", one.busy_seconds),
                );
            }
        }
        page.counter("weir_file_bytes", "Bytes known to be in the file, including headers.");
        page.count("weir_file_bytes", &[], summary.file_bytes);

        page.gauge("weir_queued_packets", "Packets captured but not yet delivered.");
        for queue in &summary.queues {
            page.sample("weir_queued_packets", &of_queue(queue), queue.counters.queued);
        }
        page.gauge("weir_pool_chunks", "Chunks of the pool, by state.");
        for queue in &summary.queues {
            let pool = queue.pool;
            for (state, value) in
                [("free", pool.free), ("open", pool.open), ("ready", pool.ready), ("held", pool.held)]
            {
                page.sample("weir_pool_chunks", &[of_queue(queue), vec![("state", &state)]].concat(), value);
            }
        }
    }
}

/// Returns the labels of a queue, with its target if packets are steered.
fn of_queue(queue: &QueueSummary) -> Vec<(&'static str, &dyn Display)> {
    let mut labels: Vec<(&'static str, &dyn Display)> =
        vec![("interface", &queue.interface), ("queue", &queue.queue)];
    labels.extend(queue.target.iter().map(|target| ("target", target as &dyn Display)));
    labels
}

fn nics(interfaces: &[InterfaceSummary]) -> impl Iterator<Item = (&InterfaceSummary, weir::NicCounters)> {
    interfaces.iter().filter_map(|interface| Some((interface, interface.nic?)))
}

/// Writes what is counted beside the capture.
fn put_statistics(page: &mut Page, statistics: &[StatisticsSummary]) {
    if statistics.is_empty() {
        return;
    }
    let totals = statistics.iter().map(|one| (vec![("interface", &one.interface as _)], &one.total));
    page.counts("weir_counted", "of the interface.", &totals.collect::<Vec<_>>());
    let filters = statistics.iter().flat_map(|one| one.filters.iter().map(move |filter| (one, filter)));
    let rows = filters.map(|(one, filter)| {
        (vec![("interface", &one.interface as _), ("filter", &filter.name as _)], &filter.counts)
    });
    page.counts("weir_filter", "that match a filter.", &rows.collect::<Vec<_>>());
}
