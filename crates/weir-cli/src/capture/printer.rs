//! Prints packets while they are captured, in a thread of its own: a slow terminal holds up neither the capture nor its
//! file.
//!
//! ```text
//!  loop: take a chunk --copy--> waiting (bounded) --swap--> printer: text --write--> standard output
//!                          '--> no room: counted as not printed
//! ```
//!
//! Beside a file, a terminal gets no more lines than people can make use of: the processor's time is the file's.

use std::io::{self, IsTerminal as _};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir::who::{News, Owners};
use weir::{Chunk, Copies};
use weir_render::{Ready, Text};

use crate::failure::{self, Failure};
use crate::text::Page;

/// Copies that may wait, in bytes. Little for a terminal, where nobody reads what happened many lines ago.
const MOST: usize = 16 << 20;
const MOST_ON_TERMINAL: usize = 1 << 20;

/// News about sockets that may wait.
const MOST_NEWS: usize = 1 << 18;

/// Packets a second for a terminal beside a file, and how many may come at once after a quiet time.
const PACE: u32 = 20_000;
const AT_ONCE: u32 = 20_000;

/// Once the capture has ended, the printer is left alone if it gets nothing done for this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time that a terminal gets for what is left after Ctrl-C.
const LAST_LINES: Duration = Duration::from_millis(300);

/// Time between looks at its progress.
const PERIOD: Duration = Duration::from_millis(50);

const PANICKED: &str = "the thread that prints packets panicked";

/// Prints packets to standard output.
#[derive(Debug)]
pub(super) struct Printer {
    shared: Arc<Shared>,
    most: usize,
    thread: Option<JoinHandle<()>>,
    /// Packets offered, and those of them that found no room.
    offered: u64,
    skipped: u64,
    /// Whether standard output took nothing for a long time after the end of the capture.
    stuck: bool,
}

/// How printing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All is out that was to be, except for this number of packets.
    Complete(u64),
    /// Standard output took nothing more. This number of packets was not printed.
    Stuck(u64),
    /// Standard output was closed, or cannot be written.
    Closed,
}

/// What the printer and its thread have in common.
#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// There is something to print, or an end.
    more: Condvar,
    /// The thread has taken what was waiting.
    room: Condvar,
    /// Packets whose text is written, and bytes of text. The thread writes them; Relaxed, because they say nothing about
    /// other memory.
    printed: AtomicU64,
    bytes: AtomicU64,
    /// What is left is not to be printed, except for a mark. Relaxed: the thread may see it a little later.
    hurry: AtomicBool,
    /// Standard output is stuck: the thread is to end. Relaxed, too.
    abandoned: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    /// Nothing more comes.
    last: bool,
    /// Why nothing more is printed, once the thread has ended before the last packet.
    end: Option<io::Error>,
    /// Whether the thread has ended.
    over: bool,
}

/// Says whose the packets are.
#[derive(Debug, Default)]
pub(super) struct Whose {
    pub(super) owners: Owners,
    /// The run of the system.
    pub(super) boot: [u8; 16],
    /// Of the interfaces.
    pub(super) link_types: Vec<u16>,
}

/// Packets to print, and the number of those after them that found no room.
#[derive(Debug, Default)]
struct Batch {
    /// What is new about sockets, up to the latest packet.
    news: Vec<News>,
    copies: Copies,
    skipped: u64,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.copies.is_empty() && self.skipped == 0
    }
}

impl Printer {
    /// Starts the thread. `text` knows all interfaces.
    pub(super) fn start(text: Text, whose: Option<Whose>, beside_a_file: bool) -> Result<Self, Failure> {
        let shared = Arc::<Shared>::default();
        let on_terminal = io::stdout().is_terminal();
        let pace = (beside_a_file && on_terminal).then(|| Pace { paid: Instant::now() });
        let thread = std::thread::Builder::new().name("printer".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(text, whose, pace)
        });
        let thread =
            thread.map_err(|error| Failure::new(format_args!("cannot start the printer: {error}")))?;
        let most = if on_terminal { MOST_ON_TERMINAL } else { MOST };
        Ok(Self { shared, most, thread: Some(thread), offered: 0, skipped: 0, stuck: false })
    }

    /// Adds the packets of a chunk, or counts them as not printed.
    pub(super) fn offer(&mut self, chunk: &Chunk) {
        if chunk.is_empty() {
            return;
        }
        self.offered += chunk.len() as u64;
        let mut waiting = self.shared.lock();
        let batch = &mut waiting.batch;
        let was_empty = batch.is_empty();
        // Once a packet was skipped, those behind it are, too: one mark stands for all.
        if batch.skipped > 0 || batch.copies.bytes() >= self.most {
            batch.skipped += chunk.len() as u64;
            self.skipped += chunk.len() as u64;
        } else {
            batch.copies.add(chunk);
        }
        drop(waiting);
        if was_empty {
            self.shared.more.notify_one();
        }
    }

    /// Adds what is new about sockets, for the packets that follow. What finds no room is counted there.
    pub(super) fn learn(&self, news: Vec<News>) {
        let mut waiting = self.shared.lock();
        let known = &mut waiting.batch.news;
        if known.len() < MOST_NEWS {
            known.extend(news);
            return;
        }
        let sightings = news.len() as u64;
        match known.last_mut() {
            Some(News::Lost { sightings: lost, .. }) => *lost += sightings,
            _ => {
                let at = known.iter().rev().find_map(News::time).unwrap_or_default();
                known.push(News::Lost { at, sightings });
            }
        }
    }

    /// Waits until the next chunk has room, for at most this time. Returns whether it has.
    pub(super) fn wait_for_room(&self, longest: Duration) -> bool {
        let full = |waiting: &mut Waiting| !waiting.over && waiting.batch.copies.bytes() >= self.most;
        let waited = self.shared.room.wait_timeout_while(self.shared.lock(), longest, full);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Waits until the next chunk has room, or standard output seems to be stuck.
    pub(super) fn wait_patiently(&mut self) {
        let mut before = None;
        while !self.stuck && !self.wait_for_room(PATIENCE) {
            let now = Some(self.shared.bytes.load(Ordering::Relaxed));
            self.stuck = now == before;
            before = now;
        }
    }

    /// Returns the number of packets that found no room so far.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns why nothing more is printed: `Ok` if the reader of standard output closed it; `None`: printing continues.
    pub(super) fn end(&self) -> Option<Result<(), Failure>> {
        let waiting = self.shared.lock();
        match &waiting.end {
            None if waiting.over && !waiting.last => Some(Err(Failure::new(PANICKED))),
            None => None,
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Some(Ok(())),
            Some(error) => Some(Err(failure::unprinted(error))),
        }
    }

    /// Prints what is left, unless standard output is stuck; `interrupted`: the user is waiting for the prompt.
    ///
    /// # Errors
    ///
    /// As for [`end`](Self::end).
    pub(super) fn finish(mut self, interrupted: bool) -> Result<Outcome, Failure> {
        self.shared.lock().last = true;
        self.shared.more.notify_one();
        let bytes = || self.shared.bytes.load(Ordering::Relaxed);
        let start = Instant::now();
        let (mut before, mut progress) = (bytes(), start);
        // Only the end of the process can interrupt a thread that hangs in a write all the same.
        while !self.shared.lock().over && progress.elapsed() < 2 * PATIENCE {
            if bytes() != before {
                (before, progress) = (bytes(), Instant::now());
            }
            if interrupted && start.elapsed() > LAST_LINES && io::stdout().is_terminal() {
                self.shared.hurry.store(true, Ordering::Relaxed);
            }
            self.stuck |= progress.elapsed() > PATIENCE;
            self.shared.abandoned.store(self.stuck, Ordering::Relaxed);
            let goes_on = |waiting: &mut Waiting| !waiting.over;
            drop(self.shared.room.wait_timeout_while(self.shared.lock(), PERIOD, goes_on));
        }
        if let Some(thread) = self.thread.take().filter(|_| self.shared.lock().over) {
            thread.join().map_err(|_| Failure::new(PANICKED))?;
        }
        match self.end() {
            None => {
                let left = self.offered.saturating_sub(self.shared.printed.load(Ordering::Relaxed));
                Ok(if self.stuck { Outcome::Stuck(left) } else { Outcome::Complete(left) })
            }
            Some(end) => end.map(|()| Outcome::Closed),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Every change is complete when the lock is released.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn run(&self, mut text: Text, mut whose: Option<Whose>, mut pace: Option<Pace>) {
        let _over = Over(self);
        let end = self.print(&mut text, whose.as_mut(), &mut Page::new(), pace.as_mut()).err();
        self.lock().end = end;
    }

    /// Prints until the last packet, or until standard output is given up.
    fn print(
        &self,
        text: &mut Text,
        mut whose: Option<&mut Whose>,
        page: &mut Page,
        mut pace: Option<&mut Pace>,
    ) -> io::Result<()> {
        let mut batch = Batch::default();
        // Packets since the last rest.
        let mut since = 0;
        loop {
            batch.copies.clear();
            let mut waiting = self.lock();
            if waiting.batch.is_empty() {
                drop(waiting);
                if !self.write(page)? {
                    return Ok(());
                }
                self.rest(pace.as_deref_mut(), mem::take(&mut since));
                waiting = self.lock();
                let idle = |waiting: &mut Waiting| waiting.batch.is_empty() && !waiting.last;
                waiting = self.more.wait_while(waiting, idle).unwrap_or_else(PoisonError::into_inner);
                if waiting.batch.is_empty() {
                    return Ok(());
                }
            }
            let skipped = mem::take(&mut waiting.batch.skipped);
            mem::swap(&mut batch.copies, &mut waiting.batch.copies);
            let news = mem::take(&mut waiting.batch.news);
            drop(waiting);
            if let Some(whose) = &mut whose {
                whose.owners.learn_all(whose.boot, &news);
            }
            self.room.notify_all();
            let mut left = batch.copies.len();
            for packet in batch.copies.packets() {
                if self.hurry.load(Ordering::Relaxed) {
                    break;
                }
                let ready = text.prepare(&packet);
                if ready == Ready::Soon {
                    if !self.write(page)? {
                        return Ok(());
                    }
                    text.wait();
                }
                if ready != Ready::Never {
                    if let Some(whose) = &whose {
                        let link_type = whose.link_types.get(packet.interface as usize).copied();
                        text.owned(&whose.owners.whose(&packet, link_type.unwrap_or(u16::MAX)));
                    }
                    text.packet(&packet, &mut page.text)?;
                }
                page.end_packet();
                left -= 1;
                since += 1;
                if page.is_full() {
                    if !self.write(page)? {
                        return Ok(());
                    }
                    self.rest(pace.as_deref_mut(), mem::take(&mut since));
                }
            }
            if skipped + left > 0 {
                text.not_printed(skipped + left, &mut page.text)?;
            }
        }
    }

    /// Keeps the pace after this number of packets, unless the capture has ended.
    fn rest(&self, pace: Option<&mut Pace>, packets: u32) {
        if let Some(wait) = pace.and_then(|pace| pace.after(packets, Instant::now())) {
            let goes_on = |waiting: &mut Waiting| !waiting.last;
            drop(self.more.wait_timeout_while(self.lock(), wait, goes_on));
        }
    }

    /// Writes the page. Returns `false` if standard output is given up.
    fn write(&self, page: &mut Page) -> io::Result<bool> {
        page.write(
            || !self.abandoned.load(Ordering::Relaxed),
            |progress| {
                self.printed.fetch_add(progress.packets, Ordering::Relaxed);
                self.bytes.fetch_add(progress.bytes, Ordering::Relaxed);
            },
        )
    }
}

/// How fast the printer may go.
#[derive(Debug)]
struct Pace {
    /// The time until which packets were printed, at the usual pace.
    paid: Instant,
}

impl Pace {
    /// Returns how long to wait after printing so many packets.
    fn after(&mut self, packets: u32, now: Instant) -> Option<Duration> {
        let of = |packets| Duration::from_secs(1) * packets / PACE;
        let earliest = now.checked_sub(of(AT_ONCE)).unwrap_or(now);
        self.paid = self.paid.max(earliest) + of(packets);
        self.paid.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }
}

/// Says that the thread has ended, even by a panic.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_what_follows_at_the_pace() {
        let start = Instant::now();
        let mut pace = Pace { paid: start };
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.after(AT_ONCE, later), None);
        assert_eq!(pace.after(PACE / 10, later), Some(Duration::from_millis(100)));
        let after = later + Duration::from_millis(600);
        assert_eq!(pace.after(PACE / 2, after), None);
        assert_eq!(pace.after(PACE / 4, after), Some(Duration::from_millis(250)));
    }
}
