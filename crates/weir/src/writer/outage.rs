//! Going on when the disk is full: packets are lost and counted until there is room again, and files tell how many.
//!
//! An *outage* begins when a write finds no room; the file ends behind a whole record or frame then. It ends with the first
//! packets written again. The first record of each queue has the number lost before it, and statistics behind
//! these packets have the losses and a comment.

use std::fmt;
use std::time::{Duration, Instant};

use weir_savefile::record::{Records, append_with_loss};

use super::encode::{self, Occasion};
use super::files::OutFile;
use super::write_request::{Content, Counted, Data, WriteRequest};
use super::{Format, WriteError, Writer, now};
use crate::units;

/// Time between attempts to write again.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest time between the end of one outage and the next message, as there may be room only for moments.
const QUIET: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Outages {
    /// Time between attempts.
    pub(super) pause: Duration,
    /// When to try again, during an outage.
    retry: Option<Instant>,
    /// When the outage opened; `None` once packets are written again.
    since: Option<Instant>,
    /// All packets lost.
    lost: Counted,
    /// Those of them that statistics in files tell of.
    marked: Counted,
    /// Those that statistics in earlier files tell of.
    base: Counted,
    /// Packets lost before the next record of a queue.
    before_next: Counted,
    /// Length of the outages that are not marked yet.
    unmarked: Duration,
    /// Events for which there was no room.
    held: Vec<(u64, String)>,
    news: News,
}

/// What the user has been told.
#[derive(Debug, Default)]
struct News {
    /// The last message was that there is no room.
    is_full: bool,
    last: Option<Instant>,
    /// All packets lost at the time of the last message about room.
    lost: u64,
    /// Length of the outages since that message.
    length: Duration,
}

impl Default for Outages {
    fn default() -> Self {
        Self {
            pause: PAUSE,
            retry: None,
            since: None,
            lost: Counted::new(),
            marked: Counted::new(),
            base: Counted::new(),
            before_next: Counted::new(),
            unmarked: Duration::ZERO,
            held: Vec::new(),
            news: News::default(),
        }
    }
}

impl Outages {
    /// Returns whether packets are lost now.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.retry.is_some()
    }

    /// Returns whether it is time to try again.
    pub(super) fn is_due(&self) -> bool {
        self.retry.is_some_and(|retry| Instant::now() >= retry)
    }

    pub(super) fn open(&mut self) {
        let now = Instant::now();
        self.retry = Some(now + self.pause);
        self.since.get_or_insert(now);
    }

    /// Counts packets that are lost.
    pub(super) fn lose(&mut self, interface: u32, queue: u32, packets: u64) {
        *self.lost.entry((interface, queue)).or_default() += packets;
        *self.before_next.entry((interface, queue)).or_default() += packets;
    }

    pub(super) fn lose_all(&mut self, content: &Content) {
        content.runs().iter().for_each(|run| self.lose(run.interface, run.queue, run.count));
    }

    pub(super) fn lost(&self) -> &Counted {
        &self.lost
    }

    /// Returns the packets of an interface that the current file has to tell of.
    pub(super) fn of_file(&self, interface: u32) -> u64 {
        let sum = |counted: &Counted| {
            counted.range((interface, 0)..=(interface, u32::MAX)).map(|(_, packets)| packets).sum::<u64>()
        };
        sum(&self.lost) - sum(&self.base)
    }

    /// Returns whether no statistics tell of the latest losses.
    pub(super) fn is_unmarked(&self) -> bool {
        self.lost != self.marked || !self.held.is_empty()
    }

    /// Notes that statistics with all losses are in the file.
    pub(super) fn marked(&mut self) {
        self.marked.clone_from(&self.lost);
        self.unmarked = Duration::ZERO;
    }

    /// Keeps an event for when there is room.
    pub(super) fn hold(&mut self, time: u64, what: &str) {
        self.held.push((time, what.to_owned()));
    }

    /// What the last file did not tell, the next one does.
    pub(super) fn next_file(&mut self) {
        self.base.clone_from(&self.marked);
        for (queue, packets) in &mut self.before_next {
            let of = |counted: &Counted| counted.get(queue).copied().unwrap_or_default();
            *packets = (*packets).min(of(&self.lost) - of(&self.marked));
        }
        self.before_next.retain(|_, packets| *packets > 0);
        if self.is_open() {
            self.retry = Some(Instant::now());
        }
    }

    /// Returns whether packets such as these end an outage, or tell of one.
    #[inline]
    pub(super) fn ends_with(&self, content: &Content) -> bool {
        let tells =
            || content.runs().iter().any(|run| self.before_next.contains_key(&(run.interface, run.queue)));
        !content.runs().is_empty() && (self.since.is_some() || (!self.before_next.is_empty() && tells()))
    }

    /// Adds to the first record of each queue what was lost before it, and returns that.
    fn tell(&mut self, request: &mut WriteRequest) -> Counted {
        let mut told = Counted::new();
        let bytes = request.data.as_ref();
        let mut out = Vec::with_capacity(bytes.len() + 64);
        let (mut records, mut at) = (Records::new(bytes), 0);
        for run in request.content.runs() {
            let queue = (run.interface, run.queue);
            for _ in 0..run.count {
                let Some(Ok(_)) = records.next() else { break };
                let block = &bytes[at..records.offset()];
                at = records.offset();
                match self.before_next.get(&queue) {
                    Some(&lost) if append_with_loss(&mut out, block, lost).is_some() => {
                        self.before_next.remove(&queue);
                        told.insert(queue, lost);
                    }
                    _ => out.extend_from_slice(block),
                }
            }
        }
        if !told.is_empty() {
            out.extend_from_slice(&bytes[at..]);
            request.data = Data::Bytes(out);
        }
        told
    }

    /// Packets are written again.
    pub(super) fn end(&mut self) {
        if let Some(since) = self.since.take() {
            self.unmarked += since.elapsed();
            self.news.length += since.elapsed();
        }
    }

    /// Returns a message if something has changed: one when an outage begins, and one when it ends. Further outages soon after
    /// share one. `last`: nothing can be told later.
    pub(super) fn news(&mut self, name: impl fmt::Display, last: bool) -> Option<String> {
        let lost = self.lost.values().sum::<u64>();
        let is_full = self.since.is_some();
        let is_early = self.news.last.is_some_and(|last| last.elapsed() < QUIET);
        let is_old = is_full == self.news.is_full && (is_full || lost == self.news.lost);
        let is_announced_end = self.news.is_full && !is_full;
        if is_old || (is_early && !is_announced_end && !last) {
            return None;
        }
        self.news.last = Some(Instant::now());
        self.news.is_full = is_full;
        if is_full {
            return Some(format!("{name}: no room; packets are dropped until there is"));
        }
        let length = std::mem::take(&mut self.news.length);
        let dropped = lost - std::mem::replace(&mut self.news.lost, lost);
        Some(format!("{name}: room again after {}; {} dropped", Seconds(length), units::packets(dropped)))
    }
}

impl Writer {
    pub(super) fn outlasts(&self, error: &WriteError) -> bool {
        self.options.keep_going && error.is_full()
    }

    /// Begins an outage after a failed write. Returns `false` if the output cannot be used any more.
    pub(super) fn open_outage(&mut self) -> bool {
        let Some(lost) = self.file.as_mut().and_then(OutFile::recover) else { return false };
        lost.into_iter()
            .for_each(|((interface, queue), packets)| self.outages.lose(interface, queue, packets));
        // News may have been among what is gone.
        self.who.iter_mut().for_each(|who| who.is_behind = true);
        self.outages.open();
        true
    }

    /// Tries to write again, beginning with what the file has to begin with. If that fails, the outage goes on.
    pub(super) fn go_on(&mut self) -> Result<(), WriteError> {
        self.outages.retry = None;
        match &self.file {
            None => self.begin_file()?,
            Some(file) if file.output.written().bytes == 0 => self.put_start()?,
            Some(_) => self.describe()?,
        }
        self.settle()
    }

    /// Describes interfaces that the file does not describe yet.
    pub(super) fn describe(&mut self) -> Result<(), WriteError> {
        while let Some(interface) =
            self.file.as_ref().and_then(|file| self.interfaces.get(file.described)).cloned()
        {
            if self.options.format != Format::Pcapng || self.outages.is_open() {
                return Ok(());
            }
            let place = self.file.as_ref().map_or(0, |file| file.bytes) + encode::DESCRIPTION_SNAP;
            let mut buffer = self.buffer();
            encode::interface(&interface, &mut buffer);
            self.put(Data::Bytes(buffer).into())?;
            if self.options.keep_going {
                self.settle()?;
            }
            if let Some(file) = self.file.as_mut().filter(|_| !self.outages.is_open()) {
                file.described += 1;
                self.snap_places.push(place);
            }
        }
        Ok(())
    }

    /// Writes the first packets after an outage, and tells of it.
    #[cold]
    pub(super) fn put_behind_outage(&mut self, mut request: WriteRequest) -> Result<(), WriteError> {
        // Whether a record has arrived is only seen if no other is on its way.
        self.settle()?;
        if self.outages.is_open() {
            self.outages.lose_all(&request.content);
            return Ok(());
        }
        let mut told = Counted::new();
        if self.options.format == Format::Pcapng {
            told = self.outages.tell(&mut request);
        } else {
            self.outages.before_next.clear();
        }
        let before = self.here();
        self.put_request(request)?;
        self.settle()?;
        let here = self.here();
        for (queue, packets) in told.into_iter().filter(|(queue, _)| before.get(queue) == here.get(queue)) {
            *self.outages.before_next.entry(queue).or_default() += packets;
        }
        if self.outages.is_open() {
            return Ok(());
        }
        self.outages.end();
        self.mark_outage()
    }

    /// Returns the packets in the current file.
    fn here(&self) -> Counted {
        self.file.as_ref().map(|file| file.output.written().queues.clone()).unwrap_or_default()
    }

    /// Writes statistics with the losses that none tell of, and the events for which there was no room, if there is now.
    pub(super) fn mark_outage(&mut self) -> Result<(), WriteError> {
        if self.outages.is_open() || !self.outages.is_unmarked() {
            return Ok(());
        }
        if self.options.format != Format::Pcapng {
            self.outages.marked();
            self.outages.held.clear();
            return Ok(());
        }
        if self.counts.is_none() || self.file.is_none() {
            return Ok(());
        }
        if self.outages.lost != self.outages.marked {
            let sum = |counted: &Counted| counted.values().sum::<u64>();
            let lost = units::packets(sum(&self.outages.lost) - sum(&self.outages.marked));
            let length = Seconds(
                self.outages.unmarked + self.outages.since.map_or(Duration::ZERO, |since| since.elapsed()),
            );
            let text = format!("no room on the disk for {length}: {lost} lost");
            if !self.put_counts(Occasion::Event(&text), now())? {
                return Ok(());
            }
        }
        while let Some((time, what)) = self.outages.held.first().cloned() {
            if !self.put_counts(Occasion::Event(&what), time)? {
                return Ok(());
            }
            self.outages.held.remove(0);
        }
        Ok(())
    }

    /// Returns the message about a full disk that is due.
    pub(super) fn outage_news(&mut self) -> Option<String> {
        let last = self.failed.is_some();
        let path = self.file.as_ref().map_or_else(|| self.files.path(), |file| &file.path);
        self.outages.news(path.display(), last)
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let digits = usize::from(seconds < 10.0);
        write!(f, "{seconds:.digits$} s")
    }
}
