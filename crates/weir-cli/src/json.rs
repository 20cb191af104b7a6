//! The account as plain values, for `--json` and the tables.
//!
//! Scripts rely on field names: they may be added to, not changed.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use weir::writer::{FileList, Written};
use weir::{Account, HandlerAccount, Interface, NicCounters, PoolFill, Strays, Tally, TimeOrder};

use crate::confine::Confinement;
use crate::failure::Failure;
use crate::load::LoadFindings;
use crate::stop::Stop;
use crate::style;

/// The account of a whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// Always `account`, which distinguishes it from the lines of `weir count --json`.
    r#type: &'static str,
    pub(crate) version: &'static str,
    /// `xdp`, `tc`, `xdp+tc`, `af_packet`, `af_xdp`, or `mixed` if interfaces differ.
    pub(crate) source: &'static str,
    /// `pass`, `exclusive`, or `mixed`.
    pub(crate) mode: &'static str,
    #[serde(flatten)]
    pub(crate) counters: Counters,
    pub(crate) elapsed_seconds: f64,
    /// Memory used for packets, in bytes.
    pub(crate) memory: u64,
    /// As given with -w; null without it.
    pub(crate) file: Option<String>,
    /// Size of all files of the run, including deleted ones.
    pub(crate) file_bytes: u64,
    /// Size of these files before compression.
    pub(crate) plain_bytes: u64,
    /// The files; null without -w.
    pub(crate) files: Option<FilesSummary>,
    /// Packets delivered for the file that are known not to be in it, because a write failed.
    pub(crate) not_written: u64,
    /// Reason for the end.
    pub(crate) stopped_by: Option<Stop>,
    /// The error; null if there is none.
    pub(crate) error: Option<String>,
    /// The restrictions of the process; null with `--no-confine`.
    pub(crate) confinement: Option<Confinement>,
    pub(crate) interfaces: Vec<InterfaceSummary>,
    pub(crate) queues: Vec<QueueSummary>,
    /// Sums over the queues of each target, if packets are steered: `weir count --steer` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) targets: Vec<Counters>,
    /// `weir count --handlers` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) handlers: Vec<HandlerAccount>,
    /// `--order time` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_order: Option<TimeOrder>,
    /// `weir count --load` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<LoadFindings>,
    /// Packets in the file, or packets counted if there is no file.
    #[serde(skip)]
    pub(crate) kept: u64,
}

/// The files of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FilesSummary {
    /// Files started.
    pub(crate) count: u64,
    pub(crate) first: String,
    /// The last file started.
    pub(crate) last: String,
    /// Oldest files, including those of earlier runs, deleted because of -W, --keep-size or a full disk.
    pub(crate) deleted: u64,
    /// Those deleted because of a full disk.
    pub(crate) deleted_for_room: u64,
    /// Existing files of earlier runs that count for -W and --keep-size.
    pub(crate) adopted: u64,
}

impl From<FileList> for FilesSummary {
    fn from(list: FileList) -> Self {
        let (first, last) = (list.first.display().to_string(), list.last.display().to_string());
        let FileList { count, deleted, deleted_for_room, adopted, .. } = list;
        Self { count, first, last, deleted, deleted_for_room, adopted }
    }
}

/// The counters of [`Tally`] and values derived from them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counters {
    #[serde(flatten)]
    pub(crate) tally: Tally,
    /// Packets captured but not yet delivered.
    pub(crate) queued: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct InterfaceSummary {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) source: &'static str,
    pub(crate) mode: &'static str,
    /// How the source is attached.
    pub(crate) detail: String,
    /// Reason for this source.
    pub(crate) why: String,
    /// Problems that do not prevent capturing.
    pub(crate) warnings: Vec<String>,
    pub(crate) link_type: u16,
    pub(crate) snap_len: u32,
    /// The filter; null: no filter.
    pub(crate) filter: Option<String>,
    #[serde(flatten)]
    pub(crate) counters: Counters,
    /// Packets that could not be assigned to a queue: from processors or receive queues that were added later, or of
    /// other interfaces.
    pub(crate) strays: Strays,
    /// Packets that may have lost a VLAN tag, because the driver did not report it.
    pub(crate) untold_tags: u64,
    /// Memory of its pools in bytes, with the source's own packet memory.
    pub(crate) memory: u64,
    /// Growth of the card's and driver's own counters; null if there are none.
    pub(crate) nic: Option<NicCounters>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct QueueSummary {
    pub(crate) interface: String,
    pub(crate) queue: u32,
    /// The target of its packets; null if they are not steered.
    pub(crate) target: Option<u32>,
    pub(crate) source: &'static str,
    pub(crate) mode: &'static str,
    #[serde(flatten)]
    pub(crate) counters: Counters,
    pub(crate) pool: PoolFill,
    /// Most closed chunks that waited at the same time.
    pub(crate) most_ready: u32,
    /// Average number of closed chunks that waited.
    pub(crate) mean_ready: f64,
    /// Chunks taken by handlers of other queues.
    pub(crate) offloaded: u64,
    /// Later fragments of datagrams whose first fragment was not seen, if packets are steered by flow.
    pub(crate) orphans: u64,
}

impl Counters {
    fn of(tally: Tally) -> Self {
        let gone = tally.delivered.saturating_add(tally.discarded);
        Self { tally, queued: tally.captured.saturating_sub(gone) }
    }

    fn add(&mut self, other: &Self) {
        self.tally += other.tally;
        self.queued += other.queued;
    }
}

impl Summary {
    /// Combines the engine's account with the descriptions of the interfaces, and with what is known to be in the file.
    pub(crate) fn new(interfaces: &[Interface], account: &Account, written: Option<&Written>) -> Self {
        let mut summary = Self {
            r#type: "account",
            version: env!("CARGO_PKG_VERSION"),
            source: one_or_mixed(account.interfaces.iter().map(|interface| interface.source)),
            mode: one_or_mixed(account.interfaces.iter().map(|interface| interface.mode)),
            counters: Counters::default(),
            elapsed_seconds: account.elapsed.as_secs_f64(),
            memory: account.memory(),
            file: None,
            file_bytes: written.map_or(0, |written| written.bytes),
            plain_bytes: written.map_or(0, |written| written.plain_bytes),
            files: None,
            not_written: 0,
            stopped_by: None,
            error: None,
            confinement: None,
            interfaces: Vec::new(),
            queues: Vec::new(),
            targets: account.targets().into_iter().map(Counters::of).collect(),
            handlers: account.handlers.clone(),
            time_order: account.time_order,
            load: None,
            kept: 0,
        };
        for interface in &account.interfaces {
            let about = interfaces.iter().find(|about| about.id == interface.id);
            let mut sum = Counters::default();
            for queue in &interface.queues {
                let mut tally = queue.tally;
                let place = (interface.id, queue.queue);
                tally.written = written.and_then(|written| written.queues.get(&place).copied()).unwrap_or(0);
                let counters = Counters::of(tally);
                sum.add(&counters);
                summary.queues.push(QueueSummary {
                    interface: interface.name.clone(),
                    queue: queue.queue,
                    target: queue.target,
                    source: interface.source,
                    mode: interface.mode,
                    counters,
                    pool: queue.pool,
                    most_ready: queue.most_ready,
                    mean_ready: queue.mean_ready,
                    offloaded: queue.offloaded,
                    orphans: queue.orphans,
                });
            }
            summary.counters.add(&sum);
            summary.interfaces.push(InterfaceSummary {
                id: interface.id,
                name: interface.name.clone(),
                source: interface.source,
                mode: interface.mode,
                detail: about.map(|about| about.detail.clone()).unwrap_or_default(),
                why: about.map(|about| about.why.clone()).unwrap_or_default(),
                warnings: about.map(|about| about.warnings.clone()).unwrap_or_default(),
                link_type: about.map_or(0, |about| about.link_type),
                snap_len: about.map_or(0, |about| about.snap_len),
                filter: about.and_then(|about| about.filter.clone()),
                counters: sum,
                strays: interface.strays,
                untold_tags: interface.untold_tags,
                memory: interface.memory,
                nic: interface.nic,
            });
        }
        summary
    }

    /// Completes the account: `handled` packets were taken from the engine, and this is the result of the run.
    pub(crate) fn close(&mut self, handled: u64, result: &Result<Stop, Failure>) {
        self.kept = if self.file.is_some() { self.counters.tally.written } else { handled };
        self.not_written = handled.saturating_sub(self.kept);
        match result {
            Ok(stop) => self.stopped_by = Some(*stop),
            Err(failure) => {
                self.stopped_by = Some(Stop::Error);
                self.error = Some(failure.message().to_owned());
            }
        }
    }

    /// Writes the account as one line of JSON.
    pub(crate) fn write_to(&self, mut output: impl Write) -> io::Result<()> {
        to_writer(&mut output, self)?;
        output.write_all(b"\n")?;
        output.flush()
    }

    /// Returns the card's losses over all interfaces.
    pub(crate) fn nic(&self) -> NicCounters {
        self.interfaces.iter().filter_map(|interface| interface.nic).fold(
            NicCounters::default(),
            |sum, nic| NicCounters {
                missed: sum.missed + nic.missed,
                fifo_errors: sum.fifo_errors + nic.fifo_errors,
                dropped: sum.dropped + nic.dropped,
            },
        )
    }
}

fn one_or_mixed(mut names: impl Iterator<Item = &'static str>) -> &'static str {
    let Some(first) = names.next() else { return "none" };
    if names.all(|name| name == first) { first } else { "mixed" }
}

/// Writes JSON that is safe to print on a terminal: control characters in strings are escaped, which does not change
/// their meaning.
pub(crate) fn to_writer(output: impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(output, Harmless))?)
}

struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(style::is_order) {
            let (plain, order) = rest.split_at(at);
            let mut letters = order.chars();
            writer.write_all(plain.as_bytes())?;
            // None of them has more than four digits.
            letters.next().map_or(Ok(()), |letter| write!(writer, "\\u{:04x}", u32::from(letter)))?;
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_would_be_an_order_to_the_terminal_is_escaped_and_says_the_same() {
        let text = "é\x1b[2J\u{9b}1m\x7f\u{202e}fdp\u{2028}";
        let mut written = Vec::new();
        super::to_writer(&mut written, &text).expect("room");
        assert_eq!(serde_json::from_slice::<String>(&written).expect("JSON"), text);
        let shown = r#""é\u001b[2J\u009b1m\u007f\u202efdp\u2028""#;
        assert_eq!(String::from_utf8(written).expect("text"), shown);
    }
}
