//! The threads that pass packets to handlers and forward them, in the frames in which they were received.
//!
//! ```text
//!  queue of `from` --> socket -- Frame -> handler -- forward --> socket --> queue of `to`
//!                        ^                   '---- drop ---.        |
//!                        '------------ spare frames <------+<-------' sent
//! ```
//!
//! Thread t serves queue t of both interfaces. If one interface has more queues than there are threads, its queue q
//! belongs to thread q modulo the number of threads. All sockets of a thread share one memory area, so nothing is
//! copied or locked.

use std::collections::VecDeque;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_sys::CallError;
use weir_sys::thread::spawn_bare;
use weir_sys::xsk::{Frame, FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

use super::counters::Counters;
use super::direction::OneDirection;
use super::endpoint::Endpoint;
use super::handler::{ForwardHandler, ForwardLane, ForwardPacket, Verdict};
use super::stack::{Door, Stack};
use super::stats::ForwardCounters;
use crate::Error;
use crate::live::error::Problem;
use crate::live::request::memory;

/// Entries in each ring.
const RING: u32 = 2048;
/// Frames per receive queue: as many as the kernel can hold, filled or empty. This includes frames being sent.
const FRAMES: u32 = 2 * RING;
/// Packets taken from a queue before the next queue has its turn.
const BATCH: u32 = 64;
/// How often all queues are polled in vain before the thread sleeps.
const PATIENCE: u32 = 200;
/// Maximum sleep before checking whether to stop; the second one applies while frames are being sent.
const SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Time for sending what is left once nothing arrives any more.
const LINGER: Duration = Duration::from_millis(500);

/// The threads and their counters.
#[derive(Debug)]
pub(super) struct Pumps {
    lanes: Vec<(ForwardLane, Arc<Counters>)>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// The stacks of the receiving interfaces, by direction.
    stacks: Vec<Stack>,
    zero_copy: bool,
}

impl Pumps {
    /// Opens the sockets, redirects the directions to them, and starts the threads.
    pub(super) fn start<H: ForwardHandler>(
        endpoints: &[Endpoint; 2],
        directions: &[OneDirection],
        mut handler: impl FnMut(ForwardLane) -> H,
    ) -> Result<Self, Error> {
        let frame_size = frame_size(endpoints)?;
        let queues = [0, 1].map(|endpoint: usize| endpoints[endpoint].device.rx_queues);
        let threads = queues[0].min(queues[1]);
        let all: u32 = directions.iter().map(|direction| queues[direction.from()]).sum();
        let bytes = u64::from(all) * u64::from(FRAMES) * u64::from(frame_size.bytes());
        memory::check(endpoints[0].name(), bytes)?;
        let stacks = directions
            .iter()
            .map(|direction| Stack::start(&endpoints[direction.from()]))
            .collect::<Result<_, _>>()?;
        let mut pumps =
            Self { lanes: Vec::new(), stop: Arc::default(), threads: Vec::new(), stacks, zero_copy: true };
        let mut workers = Vec::new();
        for thread in 0..threads {
            let mine = |endpoint: usize| (thread..queues[endpoint]).step_by(threads as usize);
            let received = |endpoint: usize| directions.iter().any(|direction| direction.from() == endpoint);
            let receivers: usize = [0, 1]
                .into_iter()
                .filter(|&endpoint| received(endpoint))
                .map(|endpoint| mine(endpoint).count())
                .sum();
            let frames = u32::try_from(receivers).unwrap_or(u32::MAX).saturating_mul(FRAMES);
            let umem = Umem::new(UmemOptions { frames, frame_size, zero_copy: true, segments: false })?;
            let mut worker =
                Worker { umem, sockets: Vec::new(), lanes: Vec::new(), stop: Arc::clone(&pumps.stop) };
            // The index of the first socket of each end, which is the one used for sending.
            let mut first = [0; 2];
            for endpoint in [0, 1] {
                first[endpoint] = worker.sockets.len();
                for queue in mine(endpoint).take(if received(endpoint) { usize::MAX } else { 1 }) {
                    let sent =
                        directions.iter().any(|direction| direction.to() == endpoint) && queue == thread;
                    let ring = |wanted: bool| if wanted { RING } else { 0 };
                    let options = XskOptions { receive: ring(received(endpoint)), send: ring(sent) };
                    let (umem, index) = (&worker.umem, endpoints[endpoint].index());
                    let socket =
                        endpoints[endpoint].inside(|| XskSocket::bind(umem, index, queue, options))??;
                    pumps.zero_copy &= socket.zero_copy();
                    worker.sockets.push(Socket { xsk: socket, leaving: VecDeque::new(), unsent: 0 });
                }
            }
            for (number, direction) in directions.iter().enumerate() {
                for (place, queue) in mine(direction.from()).enumerate() {
                    let lane = ForwardLane { direction: number, queue };
                    let counters = Arc::<Counters>::default();
                    pumps.lanes.push((lane, Arc::clone(&counters)));
                    let (from, to) = (first[direction.from()] + place, first[direction.to()]);
                    direction.insert(queue, &worker.sockets[from].xsk)?;
                    let stack = pumps.stacks[number].door();
                    worker.lanes.push(Working { handler: handler(lane), counters, stack, from, to });
                }
            }
            workers.push(worker);
        }
        for (number, worker) in workers.into_iter().enumerate() {
            let thread = spawn_bare(&format!("weir-forward-{number}"), move || worker.run());
            pumps.threads.push(thread.map_err(|error| CallError::new("start a forwarding thread", error))?);
        }
        Ok(pumps)
    }

    /// Describes how packets reach the threads.
    pub(super) fn detail(&self) -> String {
        let threads = self.threads.len();
        let threads = format!("{threads} {}", if threads == 1 { "thread" } else { "threads" });
        format!("AF_XDP, {threads}, {}", if self.zero_copy { "zero-copy" } else { "copied by the kernel" })
    }

    /// Adds what the thread has done with packets of `lane` to the kernel's counters.
    pub(super) fn add_to(&self, lane: ForwardLane, sum: &mut ForwardCounters) {
        if let Some((_, counters)) = self.lanes.iter().find(|(one, _)| *one == lane) {
            counters.add_to(sum);
        }
    }

    /// Returns whether a thread has ended early, because a handler panicked.
    pub(super) fn is_broken(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Lets the threads finish what they have begun, and stops them. Nothing may arrive any more.
    pub(super) fn stop(&mut self) {
        self.stop.store(true, Relaxed); // Relaxed: the threads check it regularly
        for thread in self.threads.drain(..) {
            // A panicked thread has reported that; its packets count as `in_flight`.
            let _panicked = thread.join();
        }
        self.stacks.clear();
    }
}

impl Drop for Pumps {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Chooses a frame size that holds the longest packet, with VLAN tags and headroom.
fn frame_size(endpoints: &[Endpoint; 2]) -> Result<FrameSize, Error> {
    /// Ethernet header and two VLAN tags.
    const HEADERS: u32 = 14 + 8;
    let mtu = endpoints.iter().map(|endpoint| endpoint.device.link.mtu).max().unwrap_or_default();
    match mtu.saturating_add(HEADERS) {
        0..=1792 => Ok(FrameSize::TwoKib),
        1793..=3840 => Ok(FrameSize::FourKib),
        _ => Err(Error::Forward(Problem::new(
            format!("a handler needs each packet in one page, which is too small for an MTU of {mtu}"),
            "the largest possible MTU is 3818",
        ))),
    }
}

/// The state of a thread.
struct Worker<H> {
    umem: Umem,
    sockets: Vec<Socket>,
    lanes: Vec<Working<H>>,
    stop: Arc<AtomicBool>,
}

struct Socket {
    xsk: XskSocket,
    /// The packets in the transmit ring: lane, and number of consecutive packets. They complete in this order.
    leaving: VecDeque<(usize, usize)>,
    /// How many packets that the device did not accept are already counted for a lane.
    unsent: usize,
}

struct Working<H> {
    handler: H,
    counters: Arc<Counters>,
    stack: Door,
    /// The sockets that receive and send.
    from: usize,
    to: usize,
}

impl<H: ForwardHandler> Worker<H> {
    fn run(mut self) {
        let umem = self.umem.clone();
        let mut spare = Vec::new();
        umem.take(usize::MAX, &mut spare);
        // Packets of each lane that did not fit into the transmit ring. Until they are gone, no more are received for
        // that lane.
        let mut waiting: Vec<Vec<Frame<'_>>> = self.lanes.iter().map(|_| Vec::new()).collect();
        let (mut idle, mut ending) = (0, None);
        loop {
            let mut moved = false;
            for (number, waiting) in waiting.iter_mut().enumerate() {
                moved |= self.receive(number, &umem, waiting, &mut spare);
                moved |= self.send(number, &umem, waiting, &mut spare);
            }
            let leaving = self.sockets.iter().any(|socket| !socket.leaving.is_empty());
            let leaving = leaving || waiting.iter().any(|waiting| !waiting.is_empty());
            if self.stop.load(Relaxed) {
                let at_last = *ending.get_or_insert_with(|| Instant::now() + LINGER);
                if !moved && (!leaving || Instant::now() >= at_last) {
                    break;
                }
            }
            idle = if moved { 0 } else { idle + 1 };
            match idle {
                0 => {}
                1..PATIENCE => hint::spin_loop(),
                _ => self.sleep(if leaving { &NAP } else { &SLEEP }),
            }
        }
        // These could not be sent because the interface is down.
        for (number, waiting) in waiting.iter().enumerate() {
            let left = self.sockets.iter().flat_map(|socket| &socket.leaving);
            let left: usize = left.filter(|(lane, _)| *lane == number).map(|(_, packets)| packets).sum();
            Counters::add(&self.lanes[number].counters.unable, waiting.len() + left);
        }
    }

    /// Receives packets for a lane, calls its handler, and returns other frames to the kernel. Returns whether there
    /// were any.
    fn receive<'u>(
        &mut self,
        number: usize,
        umem: &'u Umem,
        waiting: &mut Vec<Frame<'u>>,
        spare: &mut Vec<Frame<'u>>,
    ) -> bool {
        let lane = &mut self.lanes[number];
        let socket = &mut self.sockets[lane.from];
        let mut came = 0;
        if waiting.is_empty() {
            came = socket.xsk.receive(umem, BATCH, waiting);
            let (mut changed, mut kept, mut dropped) = (0, 0, 0);
            for place in 0..came {
                let mut packet = ForwardPacket::new(&mut waiting[place]);
                match lane.handler.packet(&mut packet) {
                    Verdict::Forward => {
                        changed += usize::from(packet.is_changed());
                        waiting.swap(kept, place);
                        kept += 1;
                    }
                    Verdict::Drop => dropped += 1,
                    Verdict::Stack => lane.stack.give(packet.data(), &lane.counters),
                }
            }
            spare.extend(waiting.drain(kept..));
            Counters::add(&lane.counters.changed, changed);
            Counters::add(&lane.counters.dropped, dropped);
        }
        socket.xsk.refill(spare);
        came > 0
    }

    /// Sends waiting packets and reclaims sent ones. Returns whether there was any progress.
    fn send<'u>(
        &mut self,
        number: usize,
        umem: &'u Umem,
        waiting: &mut Vec<Frame<'u>>,
        spare: &mut Vec<Frame<'u>>,
    ) -> bool {
        let socket = &mut self.sockets[self.lanes[number].to];
        let mut sent = 0;
        if !waiting.is_empty() {
            sent = socket.xsk.send(waiting);
            if sent > 0 {
                socket.leaving.push_back((number, sent));
            }
        }
        if socket.leaving.is_empty() {
            return sent > 0;
        }
        // While the interface is down, this fails each time and its packets wait.
        let _down = socket.xsk.kick();
        let mut done = socket.xsk.complete(umem, spare);
        let gone = done;
        // The socket knows how many completed packets the device rejected, but not which ones.
        let unsent = usize::try_from(socket.xsk.counts().unsent).unwrap_or(usize::MAX);
        while done > 0
            && let Some((lane, packets)) = socket.leaving.front_mut()
        {
            let some = done.min(*packets);
            let lost = some.min(unsent - socket.unsent);
            let counters = &self.lanes[*lane].counters;
            Counters::add(&counters.forwarded, some - lost);
            Counters::add(&counters.no_room, lost);
            socket.unsent += lost;
            done -= some;
            *packets -= some;
            if *packets == 0 {
                socket.leaving.pop_front();
            }
        }
        sent > 0 || gone > 0
    }

    /// Sleeps until packets arrive, or until the next check is due.
    fn sleep(&self, longest: &Timespec) {
        let receivers = self.lanes.iter().map(|lane| &self.sockets[lane.from].xsk);
        let mut fds: Vec<PollFd<'_>> = receivers.map(|xsk| PollFd::new(xsk, PollFlags::IN)).collect();
        // The result does not matter: all queues are polled again.
        let _woken = poll(&mut fds, Some(longest));
    }
}
