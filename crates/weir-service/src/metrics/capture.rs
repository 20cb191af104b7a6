//! The metrics of a capture.

use std::fmt::Display;

use super::{Labels, Measured, Page, rules};
use crate::summary::{InterfaceSummary, QueueSummary, StatisticsSummary, Summary};

/// `None`: not counted, so no sample is printed.
type OfQueue = fn(&QueueSummary) -> Option<u64>;

/// Counters of a queue: name, help text, value.
const QUEUE_COUNTERS: [(&str, &str, OfQueue); 12] = [
    ("weir_seen_packets", "Packets that reached the hook.", |queue| Some(queue.counters.packets.seen)),
    ("weir_filtered_packets", "Packets rejected by the filter.", |queue| queue.counters.packets.filtered),
    ("weir_sampled_out_packets", "Packets skipped by sampling.", |queue| {
        Some(queue.counters.packets.sampled_out)
    }),
    (
        "weir_kernel_counted_packets",
        "Packets counted with their flow in the kernel, and not captured.",
        |queue| Some(queue.counters.packets.counted),
    ),
    ("weir_captured_packets", "Packets written to the pool.", |queue| Some(queue.counters.packets.captured)),
    ("weir_captured_bytes", "Original length of captured packets.", |queue| {
        Some(queue.counters.packets.bytes)
    }),
    ("weir_error_packets", "Packets that could not be read.", |queue| Some(queue.counters.packets.errors)),
    ("weir_delivered_packets", "Packets delivered from the pool.", |queue| {
        Some(queue.counters.packets.delivered)
    }),
    ("weir_discarded_packets", "Packets captured but discarded by -c.", |queue| {
        Some(queue.counters.packets.discarded)
    }),
    ("weir_written_packets", "Packets known to be in the file.", |queue| {
        Some(queue.counters.packets.written)
    }),
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
            count("pool", queue.counters.packets.lost);
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
        if !summary.rules.is_empty() {
            let all = summary.rules.iter().map(|one| (one.interface.as_str(), &one.counted));
            rules::put(page, "weir_rules", "weir_rules_info", all);
        }
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
                    format_args!("{:.6}", one.busy.as_secs_f64()),
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

#[cfg(test)]
mod tests {
    use weir::statistics::{Count, Counts};
    use weir::writer::Written;
    use weir::{
        CaptureStats, InterfaceStats, ModeKind, NicCounters, PacketCounters, PoolFill, QueueStats, SourceKind,
    };

    use super::*;
    use crate::Stop;
    use crate::control::Account as _;
    use crate::page::ExpositionFormat;
    use crate::summary::FilterSummary;

    /// An account whose numbers all differ: of eth0, with a queue of two targets, and of lo, where nobody counts what is
    /// filtered.
    fn account() -> CaptureStats {
        let queue = |queue, target, base: u64| {
            weir::with!(
                QueueStats::default(),
                queue,
                target,
                counters = weir::with!(
                    PacketCounters::default(),
                    seen = base + 1,
                    filtered = target.map(|_| base + 2),
                    sampled_out = base + 3,
                    counted = base + 11,
                    captured = base + 90,
                    lost = base + 4,
                    errors = base + 5,
                    delivered = base + 6,
                    discarded = 7,
                    written = 0,
                    bytes = base + 8
                ),
                pool =
                    weir::with!(PoolFill::default(), free = 11, open = 12, ready = 13, held = 14, total = 50),
                offloaded = base + 9,
                orphans = base + 10
            )
        };
        let mut eth0 = InterfaceStats::new(0, "eth0", SourceKind::Xdp, ModeKind::Exclusive);
        eth0.queues = vec![queue(3, Some(0), 1000), queue(4, Some(1), 2000)];
        eth0.nic = Some(weir::with!(NicCounters::default(), missed = 21, fifo_errors = 22, dropped = 24));
        let mut lo = InterfaceStats::new(1, "lo", SourceKind::AfPacket, ModeKind::Pass);
        lo.queues = vec![queue(0, None, 3000)];
        lo.memory = 64;
        eth0.memory = 32;
        let interfaces = vec![eth0, lo];
        weir::with!(CaptureStats::default(), interfaces, elapsed = std::time::Duration::from_millis(1500))
    }

    fn written() -> Written {
        Written {
            packets: 111,
            bytes: 5000,
            plain_bytes: 6000,
            queues: [((0, 3), 1005), ((1, 0), 40)].into(),
            lost: [((0, 3), 1), ((0, 4), 2)].into(),
        }
    }

    #[test]
    fn each_number_of_an_account_is_in_its_metric() {
        let mut summary = Summary::new(&[], &account(), Some(&written()));
        summary.file = Some("file".to_owned());
        let counts = |base: u64| Counts {
            received: Count { packets: base + 1, bytes: base + 2 },
            sent: Count { packets: base + 3, bytes: base + 4 },
        };
        let filter =
            FilterSummary { name: "dns".to_owned(), filter: "port 53".to_owned(), counts: counts(60) };
        summary.statistics = vec![StatisticsSummary {
            interface: "eth\"0".to_owned(),
            on: true,
            total: counts(70),
            filters: vec![filter],
        }];
        let mut page = Page::new(ExpositionFormat::Prometheus);
        summary.put(&mut page);
        let text = page.finish();
        let mut metrics: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (sample, value) = line.rsplit_once(' ').expect("a value");
            let name = sample.split('{').next().expect("a name");
            if metrics.last().is_none_or(|(last, _)| *last != name) {
                metrics.push((name, Vec::new()));
            }
            metrics.last_mut().expect("just put there").1.push(value);
        }
        let metrics: Vec<String> =
            metrics.iter().map(|(name, values)| format!("{name} {}", values.join(" "))).collect();
        assert_eq!(
            metrics,
            [
                "weir_elapsed_seconds 1.500",
                "weir_interface_info 1 1",
                "weir_seen_packets_total 1001 2001 3001",
                "weir_filtered_packets_total 1002 2002",
                "weir_sampled_out_packets_total 1003 2003 3003",
                "weir_kernel_counted_packets_total 1011 2011 3011",
                "weir_captured_packets_total 1090 2090 3090",
                "weir_captured_bytes_total 1008 2008 3008",
                "weir_error_packets_total 1005 2005 3005",
                "weir_delivered_packets_total 1006 2006 3006",
                "weir_discarded_packets_total 7 7 7",
                "weir_written_packets_total 1005 0 40",
                "weir_offloaded_chunks_total 1009 2009 3009",
                "weir_orphan_packets_total 1010 2010 3010",
                "weir_lost_packets_total 1004 1 2004 2 3004 0 43",
                "weir_nic_lost_packets_total 21 22 24",
                "weir_counted_packets_total 71 73",
                "weir_counted_bytes_total 72 74",
                "weir_filter_packets_total 61 63",
                "weir_filter_bytes_total 62 64",
                "weir_file_bytes_total 5000",
                "weir_queued_packets 77 77 77",
                "weir_pool_chunks 11 12 13 14 11 12 13 14 11 12 13 14",
            ]
        );
        for line in [
            r#"weir_interface_info{interface="lo",source="af_packet",mode="pass"} 1"#,
            r#"weir_lost_packets_total{interface="eth0",queue="4",target="1",stage="disk"} 2"#,
            r#"weir_lost_packets_total{interface="eth0",stage="nic"} 43"#,
            r#"weir_filter_bytes_total{interface="eth\"0",filter="dns",direction="sent"} 64"#,
            r#"weir_pool_chunks{interface="lo",queue="0",state="held"} 14"#,
            "# TYPE weir_seen_packets_total counter",
            "# TYPE weir_queued_packets gauge",
        ] {
            assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        }
        // OpenMetrics describes a counter without its ending, and says where the page ends.
        let mut page = Page::new(ExpositionFormat::OpenMetrics);
        summary.put(&mut page);
        let open = page.finish();
        assert!(open.contains("# TYPE weir_seen_packets counter\nweir_seen_packets_total{"), "{open}");
        assert!(open.ends_with("\n# EOF\n") && !text.contains("EOF"));
    }

    #[test]
    fn a_summary_adds_up() {
        let written = written();
        let mut summary = Summary::new(&[], &account(), Some(&written));
        assert_eq!((summary.source, summary.mode), ("mixed", "mixed"));
        assert_eq!((summary.memory, summary.file_bytes, summary.plain_bytes), (96, 5000, 6000));
        assert_eq!(summary.not_written, 3, "known to be lost");
        let counters = summary.counters.packets;
        assert_eq!(
            (counters.seen, counters.filtered, counters.lost, counters.bytes),
            (6003, None, 6012, 6024)
        );
        assert_eq!((counters.delivered, counters.written, summary.counters.queued), (6018, 1045, 3 * 77));
        let eth0 = summary.interfaces[0].counters;
        assert_eq!((eth0.packets.filtered, eth0.queued), (Some(3004), 2 * 77));
        assert_eq!(summary.queues.iter().map(|queue| queue.not_written).collect::<Vec<_>>(), [1, 2, 0]);
        let targets: Vec<u64> = summary.targets.iter().map(|target| target.packets.seen).collect();
        assert_eq!(targets, [1001, 2001]);
        assert_eq!(
            summary.nic(),
            weir::with!(NicCounters::default(), missed = 21, fifo_errors = 22, dropped = 24)
        );
        // What clients are told.
        assert_eq!(summary.interfaces(), ["eth0", "lo"]);
        assert_eq!((summary.filter(), summary.file()), (None, None));
        summary.interfaces[1].filter = Some("udp".to_owned());
        assert_eq!(summary.filter().as_deref(), Some("udp"));
        let json: serde_json::Value =
            serde_json::from_str(summary.json().expect("JSON").get()).expect("JSON");
        assert_eq!(
            (&json["type"], &json["queued"], &json["interfaces"][0]["seen"]),
            (&"account".into(), &231.into(), &3002.into())
        );
        // Without a file, what was handled is kept.
        summary.close(6018, Ok(Stop::Count));
        assert_eq!((summary.kept, summary.not_written, summary.stopped_by), (6018, 0, Some(Stop::Count)));
        // With one, what is known to be in it.
        let mut summary = Summary::new(&[], &account(), Some(&written));
        summary.file = Some("file".to_owned());
        assert_eq!(summary.file().as_deref(), Some("file"));
        summary.close(6018, Err("full"));
        assert_eq!((summary.kept, summary.not_written), (1045, 6018 - 1045));
        assert_eq!((summary.stopped_by, summary.error.as_deref()), (Some(Stop::Error), Some("full")));
        assert_eq!(summary.queues.iter().map(|queue| queue.not_written).collect::<Vec<_>>(), [1, 2006, 2966]);
        // One interface is not mixed, and none is none.
        let mut one = account();
        one.interfaces.pop();
        let summary = Summary::new(&[], &one, None);
        assert_eq!((summary.source, summary.mode), ("xdp", "exclusive"));
        assert_eq!((summary.file_bytes, summary.plain_bytes, summary.not_written), (0, 0, 0));
        assert_eq!(Summary::new(&[], &CaptureStats::default(), None).source, "none");
    }
}
