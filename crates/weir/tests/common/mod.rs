//! Helpers for capture tests: small pools, waiting for expected packets, and threads that end.
#![allow(dead_code, reason = "each test program needs some of it")]

use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use weir::{Builder, Capture, CaptureStats, Chunk, DEFAULT_CHUNK_SIZE, DEFAULT_CHUNKS, PacketCounters};

/// Longest wait for what comes in any case, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long to sleep before another look at what does not wake.
const LOOK: Duration = Duration::from_millis(10);

/// Bytes of a chunk at most.
pub(crate) const CHUNK_SIZE: u32 = 256 << 10;
/// At least so many of them, unless a test says otherwise.
const CHUNKS: u32 = 8;
/// The most that all pools of a capture may take.
const MOST: u64 = 64 << 20;
/// Whether a test of this process may have more.
static LARGE: AtomicBool = AtomicBool::new(false);

/// A capture with 2 MiB for each queue: room for 20 000 of the shortest packets.
pub(crate) fn capture() -> Builder {
    with_pool(CHUNKS, CHUNK_SIZE)
}

/// A capture where each queue has room for so many packets of `size` bytes: none is lost, however late it is taken.
pub(crate) fn with_room_for(packets: u64, size: usize) -> Builder {
    // A record has 32 bytes besides the packet, and 12 or 24 more with what else it tells.
    let bytes = packets * (size as u64 + 60);
    // One is written to, and one is held.
    let chunks = u32::try_from(bytes / u64::from(CHUNK_SIZE) + 3).expect("a test needs few");
    with_pool(chunks.max(CHUNKS), CHUNK_SIZE)
}

/// A capture with a pool of this shape for each queue.
pub(crate) fn with_pool(chunks: u32, chunk_size: u32) -> Builder {
    assert!(chunk_size <= CHUNK_SIZE, "take more chunks instead");
    assert_ne!(chunks, DEFAULT_CHUNKS, "by that the pool that nobody asked for is known");
    Capture::builder().chunks(chunks).chunk_size(chunk_size)
}

/// Lets captures of this process have pools of more than 64 MiB, because of `reason`.
pub(crate) fn allow_large_pools(reason: &str) {
    assert!(!reason.is_empty(), "why?");
    LARGE.store(true, Ordering::Relaxed);
}

/// Many tests run at the same time, and none is to take the memory of the others.
fn check_memory(account: &CaptureStats) {
    let queues = account.interfaces.iter().flat_map(|interface| &interface.queues);
    let bytes = queues.map(|queue| {
        let chunks = queue.pool.total;
        let size = if chunks == DEFAULT_CHUNKS { DEFAULT_CHUNK_SIZE } else { CHUNK_SIZE };
        // In each there is room for a super-frame more.
        u64::from(chunks) * u64::from(size + (64 << 10))
    });
    let bytes: u64 = bytes.sum();
    assert!(
        bytes <= MOST || LARGE.load(Ordering::Relaxed),
        "the pools of this capture take {} MiB: build it with common::capture, with_room_for or with_pool, or give the \
         reason for so much to common::allow_large_pools",
        bytes >> 20
    );
}

/// Packets of which it is known what became of them.
pub(crate) fn ended(total: &PacketCounters) -> u64 {
    total.filtered.unwrap_or(0)
        + total.sampled_out
        + total.counted
        + total.captured
        + total.lost
        + total.errors
}

/// Takes chunks until it is known of `packets` packets what became of them, since the capture began and whether wanted or
/// not, and what was captured of them is taken.
pub(crate) fn take(capture: &mut Capture, packets: u64, mut each: impl FnMut(&Chunk)) {
    let began = Instant::now();
    let mut wait = Duration::ZERO;
    loop {
        while let Some(chunk) = capture.next(wait).expect("the capture goes on").taken() {
            each(&chunk);
            wait = Duration::ZERO;
        }
        let account = capture.stats().expect("the account can be had");
        check_memory(&account);
        let total = account.total();
        if ended(&total) >= packets && total.delivered + total.discarded >= total.captured {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{packets} packets do not come: {account:?}");
        wait = LOOK;
    }
}

/// Has `send` send packets and say how many, and takes all that is captured of them.
pub(crate) fn take_of(capture: &mut Capture, send: impl FnOnce() -> u64, each: impl FnMut(&Chunk)) {
    let before = ended(&capture.stats().expect("the account can be had").total());
    let sent = send();
    take(capture, before + sent, each);
}

/// Stops, and takes what is left.
pub(crate) fn drain(capture: &mut Capture, mut each: impl FnMut(Chunk)) {
    check_memory(&capture.stats().expect("the account can be had"));
    capture.stop().expect("the capture stops");
    while let Some(chunk) = capture.next(Duration::ZERO).expect("what was captured can be taken").taken() {
        each(chunk);
    }
}

/// Waits until `what` is so, which is looked at again and again; `told` says how it is instead.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool, told: impl FnOnce() -> String) {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            panic!("in vain: {}", told());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the account of a capture is like that.
pub(crate) fn wait_for(capture: &mut Capture, is_so: impl Fn(&CaptureStats) -> bool) {
    let began = Instant::now();
    loop {
        let account = capture.stats().expect("the account can be had");
        if is_so(&account) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "in vain: {account:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Does `work` on one processor: what is sent there arrives there, in one queue of a source that has one for each processor.
pub(crate) fn on_one_processor<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        let mut first = CpuSet::new();
        first.set(0);
        sched_setaffinity(None, &first).expect("there is a first processor");
        work()
    };
    std::thread::scope(|scope| scope.spawn(pinned).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Waits until a thread of this process sleeps for long: twenty looks, a millisecond apart, find it in the same sleep. Gives a
/// time at which that had not begun.
pub(crate) fn wait_until_asleep(thread: Pid) -> Instant {
    let path = format!("/proc/{}/status", thread.as_raw_nonzero());
    let (mut before, mut looks, mut began, mut looked) = (None, 0, Instant::now(), Instant::now());
    let is_asleep = || {
        let now = Instant::now();
        let status = std::fs::read_to_string(&path).expect("the thread is there");
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect("it is told");
        let sleep = line("State:").contains('S').then(|| line("voluntary_ctxt_switches:").trim().to_owned());
        if sleep.is_some() && sleep == before {
            looks += 1;
        } else {
            (looks, began) = (0, looked);
        }
        (before, looked) = (sleep, now);
        looks == 20
    };
    wait_until(is_asleep, || format!("{path}: it does not sleep"));
    began
}

/// What the calling thread has used: processor time, and how often it went to sleep.
pub(crate) fn used() -> (Duration, u64) {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("a thread has one");
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let sleeps = sleeps.and_then(|sleeps| sleeps.trim().parse().ok()).expect("it is told");
    (Duration::try_from(time).expect("it is not negative"), sleeps)
}

/// Sets the flag when it goes, on unwinding too: the threads of a scope then end, and its panic is told.
pub(crate) struct AtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A capture that is stopped when this goes, on unwinding too: then its handlers end.
pub(crate) struct StoppedAtEnd<'a>(pub(crate) &'a mut Capture);

impl Deref for StoppedAtEnd<'_> {
    type Target = Capture;

    fn deref(&self) -> &Capture {
        self.0
    }
}

impl DerefMut for StoppedAtEnd<'_> {
    fn deref_mut(&mut self) -> &mut Capture {
        self.0
    }
}

impl Drop for StoppedAtEnd<'_> {
    fn drop(&mut self) {
        // A test that wants to know stops it itself.
        let _stopped = self.0.stop();
    }
}

/// An example program, which is built with the tests.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("a test is a program");
    let built = test.ancestors().nth(2).expect("it is in target/*/deps");
    Command::new(built.join("examples").join(name))
}
