//! The account as plain values, for `--json` and the tables.
//!
//! Scripts rely on field names: they may be added to, not changed.

use serde::Serialize;
use weir::statistics::{Counts, Switch};
use weir::writer::{FileList, Written};
use weir::{
    CaptureStats, HandlerStats, Interface, NicCounters, PacketCounters, PoolFill, Statistics, Strays,
    TimeOrder,
};

use crate::Stop;
use crate::confine::Confinement;
use crate::rules::RulesSummary;

/// The account of a whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Always `account`, which distinguishes it from the lines of `weir count --json`.
    r#type: &'static str,
    /// Version of weir.
    pub version: &'static str,
    /// `xdp`, `tc`, `xdp+tc`, `af_packet`, `af_xdp`, or `mixed` if interfaces differ.
    pub source: &'static str,
    /// `pass`, `exclusive`, or `mixed`.
    pub mode: &'static str,
    /// Its counters.
    #[serde(flatten)]
    pub counters: Counters,
    /// Time since the start.
    pub elapsed_seconds: f64,
    /// Memory used for packets, in bytes.
    pub memory: u64,
    /// As given with -w; null without it.
    pub file: Option<String>,
    /// Size of all files of the run, including deleted ones.
    pub file_bytes: u64,
    /// Size of these files before compression.
    pub plain_bytes: u64,
    /// The files; null without -w.
    pub files: Option<FilesSummary>,
    /// Packets delivered for the file that are known not to be in it, because a write failed or found no room.
    pub not_written: u64,
    /// Packets captured and not printed, because standard output was too slow.
    pub not_printed: u64,
    /// Packets captured and not printed, because they are queries for the names of hosts in other lines, or replies.
    pub own_queries: u64,
    /// Reason for the end.
    pub stopped_by: Option<Stop>,
    /// The error; null if there is none.
    pub error: Option<String>,
    /// The restrictions of the process; null with `--no-confine`.
    pub confinement: Option<Confinement>,
    /// By interface.
    pub interfaces: Vec<InterfaceSummary>,
    /// By queue.
    pub queues: Vec<QueueSummary>,
    /// Sums over the queues of each target, if packets are steered: `weir count --steer` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Counters>,
    /// `weir count --handlers` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub handlers: Vec<HandlerStats>,
    /// `--order time` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_order: Option<TimeOrder>,
    /// Statistics beside the capture, by interface; absent without `--stat`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statistics: Vec<StatisticsSummary>,
    /// What rules have counted, by interface; absent without `--rules`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RulesSummary>,
    /// Packets in the file, or packets counted if there is no file.
    #[serde(skip)]
    pub kept: u64,
}

/// Statistics of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct StatisticsSummary {
    /// Name of the interface.
    pub interface: String,
    /// Whether packets are counted; in the last summary, whether they were when the capture ended.
    pub on: bool,
    /// All packets.
    pub total: Counts,
    /// By filter.
    pub filters: Vec<FilterSummary>,
}

/// The packets that match a filter.
#[derive(Clone, Debug, Serialize)]
pub struct FilterSummary {
    /// Its name.
    pub name: String,
    /// The expression.
    pub filter: String,
    /// Its packets.
    #[serde(flatten)]
    pub counts: Counts,
}

impl StatisticsSummary {
    /// Whether packets are counted now.
    pub fn is_on(statistics: &Statistics) -> bool {
        statistics.switch().is_some_and(Switch::is_on)
    }

    /// Reads the counters.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn read(statistics: &mut Statistics) -> Result<Self, weir::Error> {
        let reading = statistics.read()?;
        let info = statistics.info();
        let counts = reading.filters.iter().map(|filter| filter.counts);
        let filter = |((name, filter), counts): (&(String, String), Counts)| FilterSummary {
            name: name.clone(),
            filter: filter.clone(),
            counts,
        };
        Ok(Self {
            interface: info.name.clone(),
            on: Self::is_on(statistics),
            total: reading.total,
            filters: info.filters.iter().zip(counts).map(filter).collect(),
        })
    }
}

/// The files of a run.
#[derive(Clone, Debug, Serialize)]
pub struct FilesSummary {
    /// Files started.
    pub count: u64,
    /// The first file started.
    pub first: String,
    /// The last file started.
    pub last: String,
    /// Oldest files, including those of earlier runs, deleted because of -W, --keep-size or a full disk.
    pub deleted: u64,
    /// Those deleted because of a full disk.
    pub deleted_for_room: u64,
    /// Existing files of earlier runs that count for -W and --keep-size.
    pub adopted: u64,
}

impl From<FileList> for FilesSummary {
    fn from(list: FileList) -> Self {
        let (first, last) = (list.first.display().to_string(), list.last.display().to_string());
        let FileList { count, deleted, deleted_for_room, adopted, .. } = list;
        Self { count, first, last, deleted, deleted_for_room, adopted }
    }
}

/// The counters of [`PacketCounters`] and values derived from them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counters {
    /// The counters.
    #[serde(flatten)]
    pub packets: PacketCounters,
    /// Packets captured but not yet delivered.
    pub queued: u64,
}

/// An interface.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceSummary {
    /// Number of the interface.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: &'static str,
    /// Its mode.
    pub mode: &'static str,
    /// How the source is attached.
    pub detail: String,
    /// Reason for this source.
    pub why: String,
    /// Problems that do not prevent capturing.
    pub warnings: Vec<String>,
    /// Its link type, as in files.
    pub link_type: u16,
    /// Most bytes that are kept of a packet.
    pub snap_len: u32,
    /// The filter; null: no filter.
    pub filter: Option<String>,
    /// Which of the matching packets are captured, as for `--sample`; null: all.
    pub sample: Option<String>,
    /// Its counters.
    #[serde(flatten)]
    pub counters: Counters,
    /// Packets that could not be assigned to a queue: from processors or receive queues that were added later, or of
    /// other interfaces.
    pub strays: Strays,
    /// Packets that may have lost a VLAN tag, because the driver did not report it.
    pub tag_unknown: u64,
    /// Packets that the host sent on it meanwhile, as far as the driver has counted them, and that its source does not see.
    pub sent_unseen: u64,
    /// Memory of its pools in bytes, with the source's own packet memory.
    pub memory: u64,
    /// Growth of the card's and driver's own counters; null if there are none.
    pub nic: Option<NicCounters>,
}

/// A queue.
#[derive(Clone, Debug, Serialize)]
pub struct QueueSummary {
    /// Name of the interface.
    pub interface: String,
    /// Number of the queue.
    pub queue: u32,
    /// The target of its packets; null if they are not steered.
    pub target: Option<u32>,
    /// Its source.
    pub source: &'static str,
    /// Its mode.
    pub mode: &'static str,
    /// Its counters.
    #[serde(flatten)]
    pub counters: Counters,
    /// Its chunks.
    pub pool: PoolFill,
    /// Most closed chunks that waited at the same time.
    pub most_ready: u32,
    /// Average number of closed chunks that waited.
    pub mean_ready: f64,
    /// Chunks taken by handlers of other queues.
    pub offloaded: u64,
    /// Later fragments of datagrams whose first fragment was not seen, if flows decide.
    pub orphans: u64,
    /// Packets delivered for the file that are known not to be in it.
    pub not_written: u64,
}

impl Counters {
    fn of(counters: PacketCounters) -> Self {
        let gone = counters.delivered.saturating_add(counters.discarded);
        Self { packets: counters, queued: counters.captured.saturating_sub(gone) }
    }

    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.queued += other.queued;
    }
}

impl Summary {
    /// Combines the engine's account with the descriptions of the interfaces, and with what is known to be in the file.
    pub fn new(interfaces: &[Interface], account: &CaptureStats, written: Option<&Written>) -> Self {
        let mut summary = Self {
            r#type: "account",
            version: env!("CARGO_PKG_VERSION"),
            source: one_or_mixed(account.interfaces.iter().map(|interface| interface.source.as_str())),
            mode: one_or_mixed(account.interfaces.iter().map(|interface| interface.mode.as_str())),
            counters: Counters::default(),
            elapsed_seconds: account.elapsed.as_secs_f64(),
            memory: account.memory(),
            file: None,
            file_bytes: written.map_or(0, |written| written.bytes),
            plain_bytes: written.map_or(0, |written| written.plain_bytes),
            files: None,
            not_written: written.map_or(0, |written| written.lost.values().sum()),
            not_printed: 0,
            own_queries: 0,
            stopped_by: None,
            error: None,
            confinement: None,
            interfaces: Vec::new(),
            queues: Vec::new(),
            targets: account.targets().into_iter().map(Counters::of).collect(),
            handlers: account.handlers.clone(),
            time_order: account.time_order,
            statistics: Vec::new(),
            rules: Vec::new(),
            kept: 0,
        };
        for interface in &account.interfaces {
            let about = interfaces.iter().find(|about| about.id == interface.id);
            let mut sum = Counters::default();
            for queue in &interface.queues {
                let mut counters = queue.counters;
                let place = (interface.id, queue.queue);
                counters.written =
                    written.and_then(|written| written.queues.get(&place).copied()).unwrap_or(0);
                let not_written = written.and_then(|written| written.lost.get(&place).copied()).unwrap_or(0);
                let counters = Counters::of(counters);
                sum.add(&counters);
                summary.queues.push(QueueSummary {
                    interface: interface.name.clone(),
                    queue: queue.queue,
                    target: queue.target,
                    source: interface.source.as_str(),
                    mode: interface.mode.as_str(),
                    counters,
                    pool: queue.pool,
                    most_ready: queue.most_ready,
                    mean_ready: queue.mean_ready,
                    offloaded: queue.offloaded,
                    orphans: queue.orphans,
                    not_written,
                });
            }
            summary.counters.add(&sum);
            summary.interfaces.push(InterfaceSummary {
                id: interface.id,
                name: interface.name.clone(),
                source: interface.source.as_str(),
                mode: interface.mode.as_str(),
                detail: about.map(|about| about.detail.clone()).unwrap_or_default(),
                why: about.map(|about| about.why.clone()).unwrap_or_default(),
                warnings: about
                    .map_or_else(Vec::new, |about| about.warnings.iter().map(ToString::to_string).collect()),
                link_type: about.map_or(0, |about| about.link_type),
                snap_len: about.map_or(0, |about| about.snap_len),
                filter: about.and_then(|about| about.filter.clone()),
                sample: about.and_then(|about| about.sample).map(|sample| sample.to_string()),
                counters: sum,
                strays: interface.strays,
                tag_unknown: interface.tag_unknown,
                sent_unseen: interface.sent_unseen,
                memory: interface.memory,
                nic: interface.nic,
            });
        }
        summary
    }

    /// Completes the account: `handled` packets were taken from the engine, and this is the
    /// result of the run, or the message of its error.
    pub fn close(&mut self, handled: u64, result: Result<Stop, &str>) {
        self.kept = if self.file.is_some() { self.counters.packets.written } else { handled };
        self.not_written = handled.saturating_sub(self.kept);
        if self.file.is_some() {
            for queue in &mut self.queues {
                queue.not_written =
                    queue.counters.packets.delivered.saturating_sub(queue.counters.packets.written);
            }
        }
        match result {
            Ok(stop) => self.stopped_by = Some(stop),
            Err(error) => {
                self.stopped_by = Some(Stop::Error);
                self.error = Some(error.to_owned());
            }
        }
    }

    /// Returns the card's losses over all interfaces.
    pub fn nic(&self) -> NicCounters {
        self.interfaces.iter().filter_map(|interface| interface.nic).fold(
            NicCounters::default(),
            |sum, nic| {
                weir::with!(
                    NicCounters::default(),
                    missed = sum.missed + nic.missed,
                    fifo_errors = sum.fifo_errors + nic.fifo_errors,
                    dropped = sum.dropped + nic.dropped
                )
            },
        )
    }
}

fn one_or_mixed(mut names: impl Iterator<Item = &'static str>) -> &'static str {
    let Some(first) = names.next() else { return "none" };
    if names.all(|name| name == first) { first } else { "mixed" }
}

#[cfg(test)]
mod tests {
    use weir_lab::{Network, Veth, require_kernel, require_root};

    use super::*;

    #[test]
    fn root_statistics_say_whether_packets_are_counted() {
        const NAME: &str = "root_statistics_say_whether_packets_are_counted";
        if !require_root(NAME) || !require_kernel(NAME, (6, 6), "tcx") {
            return;
        }
        let network = Network::new(Veth::default()).expect("a network");
        network.rx().run(|| {
            let mut statistics = Statistics::on("rx0").start().expect("they start");
            for on in [true, false, true] {
                statistics.switch().expect("with tc").turn(on).expect("the kernel has tcx");
                assert_eq!(StatisticsSummary::is_on(&statistics), on);
                let read = StatisticsSummary::read(&mut statistics).expect("the kernel answers");
                assert_eq!((read.interface.as_str(), read.on), ("rx0", on));
            }
            statistics.stop().expect("it is detached");
            assert!(!StatisticsSummary::is_on(&statistics));
        });
    }
}
