//! The least that any program can do: a redirecting XDP program, and a loop around AF_XDP sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_lab::programs::hooks::RedirectTo;
use weir_lab::programs::xsk::Redirect;
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::xsk::{Frame, FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

use crate::failure::{Failure, failed};

/// A program that sends all that comes on one interface out of another, until it is dropped.
pub(crate) struct Redirecting {
    _link: XdpLink,
    _program: RedirectTo,
}

/// Between interfaces of this thread's namespace, by index.
pub(crate) fn redirect(from: u32, to: u32) -> Result<Redirecting, Failure> {
    let program = RedirectTo::load(to).map_err(failed("load a program that redirects"))?;
    let link = XdpLink::attach(program.program(), from, XdpHook::Native).map_err(failed("attach"))?;
    Ok(Redirecting { _link: link, _program: program })
}

/// From the first end to the second, or both ways.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Directions {
    One,
    Both,
}

impl Directions {
    /// From which end to which.
    fn numbers(self) -> &'static [(usize, usize)] {
        match self {
            Self::One => &[(0, 1)],
            Self::Both => &[(0, 1), (1, 0)],
        }
    }
}

/// A thread for each queue, with as little as possible around two sockets: it looks again without ever sleeping. They end when this
/// is dropped.
pub(crate) struct Loop {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<[u64; 2], Failure>>>,
    _programs: Vec<(XdpLink, Redirect)>,
}

/// Packets that are taken at once.
const BATCH: u32 = 64;
/// Time to send what is left.
const LINGER: Duration = Duration::from_millis(500);

impl Loop {
    /// Between interfaces of this thread's namespace, by index, with as many queues each. `ring`: entries of each ring.
    pub(crate) fn start(
        ends: [u32; 2],
        directions: Directions,
        queues: u32,
        ring: u32,
    ) -> Result<Self, Failure> {
        let directions = directions.numbers();
        let load = || Redirect::load(queues, false).map_err(failed("load the AF_XDP program"));
        let redirects: Vec<Redirect> = directions.iter().map(|_| load()).collect::<Result<_, _>>()?;
        let stop = Arc::<AtomicBool>::default();
        let mut workers = Vec::new();
        for queue in 0..queues {
            let worker = Worker::new(ends, directions, queue, ring)?;
            for (&(from, _), redirect) in directions.iter().zip(&redirects) {
                let inserted = redirect.insert(queue, &worker.sockets[from]);
                inserted.map_err(failed("redirect to the socket"))?;
            }
            workers.push(worker);
        }
        let attach = |(&(from, _), redirect): (&(usize, usize), Redirect)| {
            let link = XdpLink::attach(redirect.program(), ends[from], XdpHook::Native);
            Ok((link.map_err(failed("attach"))?, redirect))
        };
        let programs = directions.iter().zip(redirects).map(attach).collect::<Result<_, Failure>>()?;
        let start = |worker: Worker| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || worker.run(&stop))
        };
        let threads = workers.into_iter().map(start).collect();
        Ok(Self { stop, threads, _programs: programs })
    }

    /// Ends it once it has sent what it has. Gives the packets that found no room in its rings, by the end where they came.
    pub(crate) fn finish(mut self) -> Result<[u64; 2], Failure> {
        self.stop.store(true, Relaxed);
        let mut all = [0; 2];
        for thread in self.threads.drain(..) {
            let lost =
                thread.join().map_err(|_panic| Failure::new("a loop around AF_XDP sockets panicked"))??;
            all.iter_mut().zip(lost).for_each(|(all, lost)| *all += lost);
        }
        Ok(all)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ended = thread.join();
        }
    }
}

/// What one thread has: a socket at a queue of each end, which share memory.
struct Worker {
    umem: Umem,
    sockets: [XskSocket; 2],
    directions: &'static [(usize, usize)],
}

impl Worker {
    fn new(
        ends: [u32; 2],
        directions: &'static [(usize, usize)],
        queue: u32,
        ring: u32,
    ) -> Result<Self, Failure> {
        // Filled and empty ones of each end that receives.
        let frames = 2 * ring * u32::try_from(directions.len()).unwrap_or(1);
        let options =
            UmemOptions { frames, frame_size: FrameSize::TwoKib, zero_copy: false, segments: false };
        let umem = Umem::new(options).map_err(failed("allocate packet memory"))?;
        let bind = |end: usize| {
            let if_any = |is: bool| if is { ring } else { 0 };
            let receive = if_any(directions.iter().any(|(from, _)| *from == end));
            let send = if_any(directions.iter().any(|(_, to)| *to == end));
            XskSocket::bind(&umem, ends[end], queue, XskOptions { receive, send })
                .map_err(failed("open an AF_XDP socket"))
        };
        let sockets = [bind(0)?, bind(1)?];
        Ok(Self { umem, sockets, directions })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<[u64; 2], Failure> {
        let umem = self.umem.clone();
        let mut spare = Vec::new();
        umem.take(usize::MAX, &mut spare);
        let mut out: [Vec<Frame<'_>>; 2] = Default::default();
        let mut end = None;
        loop {
            let mut moved = false;
            for &(from, to) in self.directions {
                let out = &mut out[from];
                self.sockets[from].refill(&mut spare);
                if out.is_empty() {
                    moved |= self.sockets[from].receive(&umem, BATCH, out) > 0;
                }
                moved |= self.sockets[to].send(out) > 0;
                let _full = self.sockets[to].kick();
                moved |= self.sockets[to].complete(&umem, &mut spare) > 0;
            }
            if !moved && stop.load(Relaxed) {
                let left = self.sockets.iter().any(|socket| socket.counts().sending > 0);
                let end = *end.get_or_insert_with(|| Instant::now() + LINGER);
                if !left || Instant::now() >= end {
                    break;
                }
            }
        }
        let mut lost = [0; 2];
        for &(from, _) in self.directions {
            let socket = &self.sockets[from];
            let loss = socket.loss().map_err(Failure::new)?;
            lost[from] = loss.dropped + loss.ring_full + socket.counts().refused;
        }
        Ok(lost)
    }
}
