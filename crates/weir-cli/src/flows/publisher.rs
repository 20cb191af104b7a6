//! Hands flows to `weir-export`, which sends them to Kafka.
//!
//! ```text
//! flow -> message -> batch, kept -- a socket --> weir-export -> brokers, or the spool
//!                       '- settled: forgotten <-- report --'
//! ```
//!
//! A batch is kept until it is settled. If weir-export ends before, it is started again, and gets the batch once more.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use weir::flows::Flow;
use weir_export::wire::{Acknowledged, Messages, Own, Report, Request, WINDOW};
use weir_service::launcher::Launcher;

use super::line::Ending;
use super::losses;
use super::message::Encoder;
use super::outlet::{Destination, Unsent};
use super::saver::Names;
use crate::units;

/// Flows, and bytes, of a batch.
const FLOWS: usize = 500;
const BYTES: usize = 1 << 20;
/// Between two looks at what else may have happened.
const LOOK: Duration = Duration::from_millis(100);
/// For weir-export to read its spool, at the start; a large one takes minutes on a slow disk.
const BEGIN: Duration = Duration::from_secs(600);
/// Between two starts of weir-export.
const PAUSE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// How long flows wait for brokers at the end of a capture, and those of files, which can be read again.
const PATIENCE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(30)];
/// How much longer weir-export may take to end.
const LONGER: Duration = Duration::from_secs(15);

/// What was sent, and what was not.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct KafkaCounts {
    /// Messages that all replicas in sync have acknowledged.
    pub(super) messages: u64,
    /// Bytes of their keys and values.
    pub(super) octets: u64,
    /// Flows of this run in the spool.
    pub(super) spooled: u64,
    /// Flows of earlier runs, from the spool: sent, and still there.
    pub(super) earlier_sent: u64,
    pub(super) earlier_spooled: u64,
    /// Times that weir-export ended and was started again.
    pub(super) restarts: u64,
    /// Flows that were given to another one again, and may have been sent twice.
    pub(super) repeated: u64,
}

impl KafkaCounts {
    /// Returns what is not as usual, for people.
    pub(super) fn text(&self) -> String {
        let parts = [
            (self.spooled, "in the spool"),
            (self.earlier_sent, "of earlier runs sent"),
            (self.earlier_spooled, "of earlier runs in the spool"),
            (self.restarts, "restarts of weir-export"),
            (self.repeated, "that may have been sent twice"),
        ];
        let told = parts.iter().filter(|(number, _)| *number > 0);
        told.map(|(number, what)| format!("; {} {what}", units::grouped(*number))).collect()
    }
}

/// The counters, for another thread, and what the user should know.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<(KafkaCounts, Vec<String>)>>);

impl Watched {
    pub(super) fn counts(&self) -> KafkaCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns what has happened since it was asked last.
    pub(super) fn news(&self) -> Vec<String> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// A running weir-export.
#[derive(Debug)]
struct Link {
    socket: UnixStream,
    received: Vec<u8>,
    since: Instant,
    /// It has told what is in its spool.
    has_begun: bool,
    /// The first batch that is not written whole, and how much of it is.
    batch: u64,
    written: usize,
}

impl Link {
    fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            received: Vec::new(),
            since: Instant::now(),
            has_begun: false,
            batch: 0,
            written: 0,
        })
    }

    /// Waits for the next reports, or until something can be written.
    fn wait(&self, writes: bool, longest: Duration) -> io::Result<()> {
        let events = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.socket, events)], Some(&longest)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is there.
    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16 << 10];
        loop {
            match rustix::io::read(&self.socket, &mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.received.extend_from_slice(&bytes[..read]),
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes what there is room for.
    fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        while self.written < bytes.len() {
            match rustix::io::write(&self.socket, &bytes[self.written..]) {
                Ok(written) => self.written += written,
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.written = 0;
        Ok(true)
    }
}

/// A way to Kafka that is open.
#[derive(Debug)]
pub(super) struct Opened {
    /// Before the launcher, which waits until weir-export has ended.
    link: Link,
    launcher: Launcher,
    /// Flows of earlier runs in the spool.
    earlier: u64,
}

impl Opened {
    /// Starts weir-export, and waits until it has read its spool.
    pub(super) fn new(launcher: Launcher) -> io::Result<Self> {
        let (socket, _) = launcher.launch()?;
        let mut link = Link::new(socket)?;
        loop {
            link.wait(false, LOOK)?;
            let read = link.read();
            match Report::take(&mut link.received)? {
                Some(Report::Began { earlier, .. }) => {
                    link.has_begun = true;
                    return Ok(Self { launcher, link, earlier });
                }
                Some(Report::Failed(why)) => return Err(io::Error::other(why)),
                Some(_) => return Err(ErrorKind::InvalidData.into()),
                None => match read {
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        return Err(io::Error::other("weir-export has ended"));
                    }
                    read => read?,
                },
            }
            if link.since.elapsed() > BEGIN {
                return Err(io::Error::other("weir-export does not begin"));
            }
        }
    }
}

/// Flows that are not settled.
#[derive(Debug)]
struct Batch {
    id: u64,
    flows: u64,
    /// The request.
    frame: Vec<u8>,
}

/// Hands over flows.
#[derive(Debug)]
pub(super) struct Publisher {
    to: String,
    encoder: Encoder,
    names: Names,
    /// `None`: it is to be started again. Before the launcher, as above.
    link: Option<Link>,
    launcher: Launcher,
    again: Instant,
    pause: Duration,
    /// In the order of their IDs.
    batches: VecDeque<Batch>,
    bytes: usize,
    /// The ID of the next batch.
    id: u64,
    /// All flows, and what became of them.
    handed: u64,
    sent: u64,
    lost: u64,
    counts: KafkaCounts,
    watched: Watched,
    ending: Ending,
    reads_files: bool,
    /// When something was settled.
    progress: Instant,
    /// No more is tried.
    is_over: bool,
    /// The last request, and whether it is written and answered.
    finish: Option<Vec<u8>>,
    is_asked: bool,
    is_done: bool,
}

/// Returns the last request.
fn last(patience: Duration, drain: bool) -> Vec<u8> {
    let patience = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    let mut frame = Vec::new();
    Request::Finish { patience, drain }.put(&mut frame);
    frame
}

impl Publisher {
    /// `names`: of interfaces; `ending`: when the run ends; `reads_files`: flows can wait.
    pub(super) fn new(
        to: String,
        opened: Opened,
        encoder: Encoder,
        names: Names,
        ending: Ending,
        reads_files: bool,
    ) -> Self {
        let counts = KafkaCounts { earlier_spooled: opened.earlier, ..KafkaCounts::default() };
        let now = Instant::now();
        let publisher = Self {
            to,
            encoder,
            names,
            launcher: opened.launcher,
            link: Some(opened.link),
            again: now,
            pause: PAUSE[0],
            batches: VecDeque::new(),
            bytes: 0,
            id: 0,
            handed: 0,
            sent: 0,
            lost: 0,
            counts,
            watched: Watched::default(),
            ending,
            reads_files,
            progress: now,
            is_over: false,
            finish: None,
            is_asked: false,
            is_done: false,
        };
        if opened.earlier > 0 {
            publisher.tell(format!(
                "{} flows of earlier runs are in the spool; they are sent first",
                units::grouped(opened.earlier)
            ));
        }
        publisher
    }

    /// Returns what another thread can look at.
    pub(super) fn watched(&self) -> Watched {
        self.watched.clone()
    }

    fn tell(&self, news: impl Into<Option<String>>) {
        let mut watched = self.watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.0 = self.counts;
        watched.1.extend(news.into());
    }

    fn patience(&self) -> Duration {
        PATIENCE[usize::from(self.reads_files && !self.ending.is_interrupted())]
    }

    /// Returns whether flows have waited long enough for brokers.
    fn is_late(&self) -> bool {
        let waited = match self.ending.since() {
            Some(since) => self.progress.max(since).elapsed(),
            None if self.reads_files => self.progress.elapsed(),
            None => return false,
        };
        waited > self.patience()
    }

    /// Takes a batch, as soon as there is room.
    fn push(&mut self, messages: Messages) {
        let flows = u64::from(messages.flows());
        if self.batches.is_empty() {
            self.progress = Instant::now();
        }
        while self.bytes + messages.size() > WINDOW && !self.batches.is_empty() && !self.is_over {
            self.exchange(LOOK);
            self.is_over = self.is_late();
        }
        // Not before, or they would count as sent: they are in no batch yet.
        self.handed += flows;
        if self.is_over {
            self.lost += flows;
            return;
        }
        let mut frame = Vec::with_capacity(messages.size() + 16);
        Request::Batch { id: self.id, messages: messages.into_bytes() }.put(&mut frame);
        self.bytes += frame.len();
        self.batches.push_back(Batch { id: self.id, flows, frame });
        self.id += 1;
        self.exchange(Duration::ZERO);
    }

    /// Reads reports, and writes what there is room for; waits for either.
    fn exchange(&mut self, longest: Duration) {
        if self.link.is_none() && !self.start(longest) {
            return;
        }
        if let Err(error) = self.try_exchange(longest)
            && !self.is_done
        {
            self.has_ended(&error);
        }
        let open = self.flows_of_batches() + self.counts.spooled + self.lost;
        self.sent = self.sent.max(self.handed.saturating_sub(open));
        self.tell(None);
    }

    fn try_exchange(&mut self, longest: Duration) -> io::Result<()> {
        let writes = self.has_more();
        let Some(link) = &mut self.link else { return Ok(()) };
        link.wait(writes, longest)?;
        let read = link.read();
        while let Some(report) =
            self.link.as_mut().map(|link| Report::take(&mut link.received)).transpose()?.flatten()
        {
            self.take(report);
        }
        read?;
        match self.write() {
            // What it has told is read first; then comes its end.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Returns whether there is something to write.
    fn has_more(&self) -> bool {
        self.link.as_ref().is_some_and(|link| {
            link.has_begun
                && (self.batches.back().is_some_and(|last| last.id >= link.batch)
                    || (self.finish.is_some() && !self.is_asked))
        })
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(link) = self.link.as_mut().filter(|link| link.has_begun) else { return Ok(()) };
        let next = self.batches.partition_point(|batch| batch.id < link.batch);
        for batch in self.batches.range(next..) {
            link.batch = batch.id;
            if !link.write(&batch.frame)? {
                return Ok(());
            }
            link.batch = batch.id + 1;
        }
        if let Some(finish) = self.finish.as_ref().filter(|_| !self.is_asked) {
            self.is_asked = link.write(finish)?;
        }
        Ok(())
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Began { own, earlier } => self.began(&own, earlier),
            Report::Failed(why) => self.tell(format!("cannot send flows to {}: {why}", self.to)),
            Report::Settled { id, spooled, lost, acknowledged } => {
                if self.forget(id) {
                    self.counts.spooled += u64::from(spooled);
                    self.lost += u64::from(lost);
                }
                self.count(acknowledged);
            }
            Report::Unspooled { is_own, flows, lost, acknowledged } => {
                let (flows, lost) = (u64::from(flows), u64::from(lost));
                if is_own {
                    self.counts.spooled = self.counts.spooled.saturating_sub(flows);
                    self.lost += lost;
                } else {
                    self.counts.earlier_spooled = self.counts.earlier_spooled.saturating_sub(flows);
                    self.counts.earlier_sent += flows.saturating_sub(lost);
                }
                self.count(acknowledged);
            }
            Report::News(news) => self.tell(news),
            Report::Done => self.is_done = true,
        }
    }

    fn count(&mut self, acknowledged: Acknowledged) {
        self.counts.messages += acknowledged.messages;
        self.counts.octets += acknowledged.octets;
        self.progress = Instant::now();
    }

    /// Another weir-export tells what the one before has left.
    fn began(&mut self, own: &[Own], earlier: u64) {
        for own in own {
            self.forget(own.id);
        }
        self.counts.spooled = own.iter().filter(|own| !own.is_sent).map(|own| u64::from(own.flows)).sum();
        let gone = self.counts.earlier_spooled.saturating_sub(earlier);
        self.counts.earlier_sent += gone;
        self.counts.earlier_spooled = earlier;
        // Whatever else it was given and has not settled is given again.
        self.counts.repeated += self.flows_of_batches();
        if let Some(link) = &mut self.link {
            link.has_begun = true;
        }
    }

    fn flows_of_batches(&self) -> u64 {
        self.batches.iter().map(|batch| batch.flows).sum()
    }

    /// Forgets a batch that is settled. Returns whether it was not before.
    fn forget(&mut self, id: u64) -> bool {
        let Ok(index) = self.batches.binary_search_by_key(&id, |batch| batch.id) else { return false };
        if let Some(batch) = self.batches.remove(index) {
            self.bytes -= batch.frame.len();
        }
        true
    }

    /// Takes note that weir-export has ended.
    fn has_ended(&mut self, error: &io::Error) {
        let Some(link) = self.link.take() else { return };
        if link.since.elapsed() > PAUSE[1] {
            self.pause = PAUSE[0];
        }
        self.again = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE[1]);
        self.is_asked = false;
        let why =
            if error.kind() == ErrorKind::UnexpectedEof { String::new() } else { format!(" ({error})") };
        self.tell(format!("weir-export has ended{why}; flows wait, and it is started again"));
    }

    /// Starts weir-export again, if it is time. Returns whether it runs.
    fn start(&mut self, longest: Duration) -> bool {
        let left = self.again.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::sleep(left.min(longest));
            return false;
        }
        let started = self.launcher.launch().and_then(|(socket, before)| Ok((Link::new(socket)?, before)));
        match started {
            Ok((link, before)) => {
                self.link = Some(link);
                self.counts.restarts += 1;
                let how = before.map(|how| format!(", which had ended with {how}")).unwrap_or_default();
                self.tell(format!("weir-export{how}, runs again; flows that it had may arrive twice"));
                true
            }
            Err(error) => {
                self.again = Instant::now() + self.pause;
                self.pause = (self.pause * 2).min(PAUSE[1]);
                self.tell(format!("cannot start weir-export: {error}; it is tried again"));
                false
            }
        }
    }
}

impl Destination for Publisher {
    fn send(&mut self, flows: &[Flow]) -> io::Result<()> {
        let now = losses::now();
        for some in flows.chunks(FLOWS) {
            let mut messages = Messages::default();
            for flow in some {
                let (names, encoder) = (&self.names, &mut self.encoder);
                names.with(flow.interface, |name| encoder.add(flow, name, now, &mut messages))?;
                if messages.size() >= BYTES {
                    self.push(mem::take(&mut messages));
                }
            }
            if messages.flows() > 0 {
                self.push(messages);
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> io::Result<()> {
        self.exchange(Duration::ZERO);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut patience = self.patience();
        // Only a file's run that nobody has interrupted sends all of the spool.
        self.finish = Some(last(patience, patience == PATIENCE[1]));
        self.progress = Instant::now();
        while !self.is_done && self.progress.elapsed() < patience + LONGER {
            self.exchange(LOOK);
            // A signal has come since: it is asked to end sooner.
            if self.is_asked && self.patience() < patience {
                patience = self.patience();
                (self.finish, self.is_asked) = (Some(last(patience, false)), false);
                self.progress = Instant::now();
            }
        }
        let left = self.flows_of_batches();
        self.lost += left;
        self.batches.clear();
        // It ends, if it has not.
        self.link = None;
        self.tell(None);
        Ok(())
    }

    fn unsent(&self) -> Unsent {
        let waiting = self.flows_of_batches() + self.counts.spooled;
        // What was sent stays sent, whatever is found in a spool.
        let most = self.handed.saturating_sub(self.lost + self.sent);
        Unsent { waiting: waiting.min(most), lost: self.lost }
    }
}
