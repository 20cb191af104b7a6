//! `--log`: writes logged packets to a file, each with a comment that says what became of it, and by which rule.
//!
//! A thread of its own writes, so that the rules, their confirmation and signals wait for no disk and no reader of a pipe. What it is
//! too slow for stays in the kernel's ring; what finds no room there is counted. If the file fails, the rules stay in force.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, panic};

use weir::guard::{Fate, LoggedPacket};
use weir::writer::{Compression, WriteError, Writer, WriterOptions};
use weir::{CaptureStats, Guard, InterfaceStats, ModeKind, Packet, PacketCounters, QueueStats, SourceKind};

use super::summary::LogCount;
use crate::failure::Failure;
use crate::files::FormatArg;
use crate::rules::done;
use crate::style;

/// Bytes of the kernel's ring: 10,000 packets of up to 1.5 KB.
pub(super) const RING: u32 = 16 << 20;

/// The most packets that are taken at a time.
const MOST: usize = 1024;

/// The most batches that wait for the thread.
const BATCHES: usize = 4;

/// How late a packet may be in the file.
const PERIOD: Duration = Duration::from_millis(100);

/// How long to wait for a thread that is behind.
const BEHIND: Duration = Duration::from_millis(10);

/// A log that is being written.
#[derive(Debug)]
pub(super) struct Log {
    /// `None`: it has ended.
    thread: Option<JoinHandle<Result<(), Failure>>>,
    batches: Option<SyncSender<Vec<LoggedPacket>>>,
    /// A batch for which the thread has no room.
    waiting: Option<Vec<LoggedPacket>>,
    /// Packets that were taken from the ring.
    taken: u64,
    file: Arc<FileState>,
}

/// What the thread tells of its file.
#[derive(Debug, Default)]
struct FileState {
    has_failed: AtomicBool,
    /// Packets in the file, if it has failed.
    kept: AtomicU64,
    /// Packets that the kernel's ring had no room for, once that is known.
    lost: AtomicU64,
}

/// Checks the name of the file.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    if FormatArg::of_name(file) == Some(FormatArg::Pcap) {
        return Err(Failure::usage(
            "--log writes pcapng: pcap files cannot store what became of each packet",
        )
        .hint("name the file *.pcapng"));
    }
    if file == Path::new("-") && io::stdout().is_terminal() {
        return Err(Failure::usage("--log -: standard output is a terminal")
            .hint("pipe it: weir guard --log - | weir read -"));
    }
    Ok(())
}

impl Log {
    /// Creates the file.
    pub(super) fn begin(file: &Path, guard: &Guard, dry_run: bool) -> Result<Self, Failure> {
        let interface = guard.file_interface();
        let options = weir::with!(
            WriterOptions::default(),
            compression = Compression::of_name(file).unwrap_or_default(),
            strftime = true,
            user_application = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned()
        );
        let packed = options.compression != Compression::None;
        let writer = Writer::create(file, std::slice::from_ref(&interface), &options)?;
        let name = interface.name.unwrap_or_default();
        let source = guard.info().received.unwrap_or(SourceKind::Tc);
        let account = InterfaceStats::new(0, name, source, ModeKind::Pass);
        let (batches, received) = sync_channel(BATCHES);
        let state = Arc::<FileState>::default();
        let told = Arc::clone(&state);
        let thread = thread::Builder::new().name("weir-log".to_owned());
        let thread = thread.spawn(move || {
            Writing { writer, packed, dry_run, account, began: Instant::now(), put: 0 }.run(&received, &told)
        });
        let thread = thread
            .map_err(|error| Failure::new(format_args!("cannot start a thread for the log: {error}")))?;
        Ok(Self { thread: Some(thread), batches: Some(batches), waiting: None, taken: 0, file: state })
    }

    /// Takes some of what is logged, unless the thread is behind. Returns whether it is.
    pub(super) fn advance(&mut self, guard: &mut Guard) -> Result<bool, Failure> {
        self.pass_on();
        if self.waiting.is_none() {
            self.take(guard)?;
            self.pass_on();
        }
        Ok(self.waiting.is_some())
    }

    /// Waits for a thread that is behind, but no longer than `longest`.
    pub(super) fn nap(longest: Duration) {
        thread::sleep(longest.min(BEHIND));
    }

    /// Returns what became of the packets so far, if the ring had no room for `lost`.
    pub(super) fn count(&self, lost: u64) -> LogCount {
        let logged = match self.file.has_failed.load(Ordering::Acquire) {
            true => self.file.kept.load(Ordering::Relaxed),
            false => self.taken,
        };
        LogCount { logged, lost: lost + self.taken.saturating_sub(logged) }
    }

    /// Writes what is left of a guard that is off, however long that takes, and closes the file.
    pub(super) fn finish(&mut self, guard: &mut Guard) -> Result<(), Failure> {
        let mut taken = Ok(true);
        while matches!(taken, Ok(true)) {
            if let (Some(batch), Some(batches)) = (self.waiting.take(), &self.batches) {
                // Without a thread, the file has failed.
                let _counted = batches.send(batch);
            }
            taken = self.take(guard);
        }
        let lost = guard.read().map_or(0, |reading| reading.log_lost);
        self.file.lost.store(lost, Ordering::Release);
        self.batches = None;
        let written = self
            .thread
            .take()
            .map_or(Ok(()), |thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        let taken = taken.map(drop);
        written.and(taken)
    }

    /// Takes some of what is logged. Returns whether there was something.
    fn take(&mut self, guard: &mut Guard) -> Result<bool, Failure> {
        let batch = guard.logged(MOST)?;
        self.taken += batch.len() as u64;
        let is_there = !batch.is_empty();
        self.waiting = is_there.then_some(batch);
        Ok(is_there)
    }

    /// Gives the thread what waits, if it has room.
    fn pass_on(&mut self) {
        let (Some(batch), Some(batches)) = (self.waiting.take(), &self.batches) else { return };
        match batches.try_send(batch) {
            // Disconnected: the file has failed.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(batch)) => self.waiting = Some(batch),
        }
    }
}

/// What the thread has.
#[derive(Debug)]
struct Writing {
    writer: Writer,
    /// Short pieces would be compressed badly.
    packed: bool,
    dry_run: bool,
    /// What the file says of its packets in the end.
    account: InterfaceStats,
    began: Instant,
    /// Packets that were given to the writer.
    put: u64,
}

impl Writing {
    /// Writes batches until there are no more.
    fn run(mut self, batches: &Receiver<Vec<LoggedPacket>>, state: &FileState) -> Result<(), Failure> {
        let written = self.take(batches).and_then(|()| self.close(state.lost.load(Ordering::Acquire)));
        for warning in self.writer.warnings() {
            style::say(format_args!("weir: {warning}"));
        }
        written.map_err(|error| {
            state.kept.store(self.writer.written().packets, Ordering::Relaxed);
            state.has_failed.store(true, Ordering::Release);
            let failure = Failure::from(error);
            let said = failure.message();
            style::say(format_args!("weir: the log ends here, but the rules stay in force: {said}"));
            failure
        })
    }

    fn take(&mut self, batches: &Receiver<Vec<LoggedPacket>>) -> Result<(), WriteError> {
        let (mut flushed, mut is_flushed) = (Instant::now(), true);
        loop {
            let wait = if is_flushed { Duration::MAX } else { PERIOD.saturating_sub(flushed.elapsed()) };
            match batches.recv_timeout(wait) {
                Ok(batch) => {
                    batch.iter().try_for_each(|packet| self.put(packet))?;
                    if is_flushed {
                        (flushed, is_flushed) = (Instant::now(), self.packed);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if !is_flushed && flushed.elapsed() >= PERIOD {
                self.writer.flush()?;
                is_flushed = true;
            }
        }
    }

    /// Says in the file that it is whole, and how many packets are missing.
    fn close(&mut self, lost: u64) -> Result<(), WriteError> {
        let captured = self.put;
        let counters = weir::with!(
            PacketCounters::default(),
            seen = captured + lost,
            captured = captured,
            lost = lost,
            delivered = captured,
            written = captured
        );
        self.account.queues = vec![weir::with!(QueueStats::default(), counters = counters)];
        let account = weir::with!(
            CaptureStats::default(),
            elapsed = self.began.elapsed(),
            interfaces = vec![self.account.clone()]
        );
        self.writer.close(&account)
    }

    fn put(&mut self, packet: &LoggedPacket) -> Result<(), WriteError> {
        let comment = comment(packet, self.dry_run);
        self.put += 1;
        self.writer.packet(&weir::with!(
            Packet::new(packet.timestamp, &packet.data),
            original_len = packet.original_len,
            direction = Some(packet.direction),
            comment = Some(&comment)
        ))
    }
}

/// Says what became of a packet.
fn comment(packet: &LoggedPacket, dry_run: bool) -> String {
    let learned = if packet.by_learned { " (learned)" } else { "" };
    let done = match packet.fate {
        Fate::Pass => "logged".to_owned(),
        ref fate => done(&fate.to_string(), dry_run).into_owned(),
    };
    match packet.rule.as_str() {
        "" => format!("exact rule: {done}"),
        rule => format!("rule {rule}{learned}: {done}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pcapng_takes_comments() {
        for (name, fits) in
            [("a.pcapng", true), ("a", true), ("a.pcapng.zst", true), ("a.pcap", false), ("a.pcap.gz", false)]
        {
            assert_eq!(check(Path::new(name)).is_ok(), fits, "{name}");
        }
    }
}
