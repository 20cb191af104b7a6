//! Where things are measured: the network, the pool, and who runs where.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir::{Capture, Handler, Mode, Packet, PacketCounters, Plan, SourceChoice};
use weir_lab::{Generator, Network, Rate, SequenceCheck, SequenceReport, Traffic};

use super::load::Load;
use crate::failure::{Failure, failed};

/// Bytes of a frame, without its checksum.
pub(super) const SIZE: usize = 60;
/// Of the interface, each with a pool of its own.
pub(super) const QUEUES: u32 = 2;
/// Bytes of its record: an Enhanced Packet Block with a timestamp.
const RECORD: u64 = 92;
/// Bytes kept of a packet, for which there is room behind each chunk: as many as a cell of WireCAP holds.
const SNAP_LEN: u32 = 2048;
/// Enough that flow order does not leave all work to one handler.
const FLOWS: u32 = 64;
/// In a second.
const BURSTS: u64 = 200;
/// How long an event may take on the busiest machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Two queues with a pool each. All traffic comes on the first, except in balanced turns.
#[derive(Debug)]
pub(super) struct Field {
    network: Network,
    /// By queue: the processor whose frames arrive on it.
    generators: [u32; 2],
    /// By handler. With only two processors, the second handler's is also the generator's.
    handlers: [u32; 2],
    load: u32,
    /// Of a queue.
    pub(super) chunks: u32,
    /// Bytes.
    chunk_size: u32,
}

impl Field {
    pub(super) fn new(network: Network, load: u32, quick: bool) -> Result<Self, Failure> {
        let processors = thread::available_parallelism().map_or(1, |processors| processors.get());
        let (generators, handlers) = match processors {
            1 => return Err(Failure::new("measuring requires two processors: one for each handler")),
            2 => ([0, 1], [1, 0]),
            _ => ([2, 1], [0, 1]),
        };
        let (chunks, chunk_size) = (if quick { 32 } else { 128 }, 32 << 10);
        Ok(Self { network, generators, handlers, load, chunks, chunk_size })
    }

    /// Packets for which this many chunks of the pool have room.
    pub(super) fn room(&self, chunks: u32) -> u64 {
        u64::from(chunks) * packets_of(self.chunk_size)
    }

    pub(super) fn traffic(&self) -> Result<Traffic, Failure> {
        let traffic = Traffic::new(SIZE).and_then(|traffic| traffic.flows(FLOWS));
        let traffic = traffic.map_err(failed("describe frames"))?;
        Ok(traffic.scattered().between(self.network.pair()))
    }

    /// Sends frames numbered from `first` to `queue`.
    pub(super) fn generator(
        &self,
        traffic: &Traffic,
        queue: usize,
        first: u64,
    ) -> Result<Generator, Failure> {
        let generator = Generator::numbered_from(first, self.network.pair(), traffic);
        Ok(generator.map_err(failed("prepare to send"))?.cpu(self.generators[queue]))
    }

    /// The same to the first queue, at a chosen rate. In few bursts: that leaves the processor to the second handler.
    pub(super) fn paced(&self, traffic: &Traffic, per_second: u64) -> Result<Generator, Failure> {
        let generator = self.generator(traffic, 0, 0)?.rate(Rate::PerSecond(per_second));
        generator.and_then(|generator| generator.bursts(BURSTS)).map_err(failed("prepare to send"))
    }

    pub(super) fn open(&self) -> Result<Capture, Failure> {
        self.open_with(self.chunks, self.chunk_size)
    }

    pub(super) fn open_with(&self, chunks: u32, chunk_size: u32) -> Result<Capture, Failure> {
        let builder = Capture::builder().interface(&self.network.pair().rx.name);
        let builder = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).snap_len(SNAP_LEN);
        Ok(self.network.rx().run(|| builder.chunks(chunks).chunk_size(chunk_size).open())?)
    }

    /// Handlers in basic mode, at most two, each on its processor.
    pub(super) fn plan(&self, handlers: usize) -> Plan {
        Plan::new(handlers).pin(self.handlers[..handlers].iter().copied())
    }

    /// A processor that is not the generator's.
    pub(super) fn processor(&self) -> u32 {
        self.handlers[0]
    }

    /// Of each handler.
    pub(super) fn processors(&self) -> [u32; 2] {
        self.handlers
    }

    /// Work of a known size for one handler of `capture`.
    pub(super) fn work(
        &self,
        capture: &Capture,
    ) -> Result<impl FnMut(&Packet<'_>) + Send + 'static, Failure> {
        let load = Load::new(self.load, &capture.interfaces()[0])?;
        Ok(move |packet: &Packet<'_>| load.packet(packet))
    }

    /// The same for each of `handlers`, checked.
    pub(super) fn works(
        &self,
        handlers: &[Handler],
        capture: &Capture,
        check: &Check,
    ) -> Result<Vec<impl FnMut(&Packet<'_>) + Send + 'static>, Failure> {
        handlers.iter().map(|_| Ok(check.of(self.work(capture)?))).collect()
    }
}

/// Packets for which a chunk of this many bytes has room: a record may begin anywhere in it.
pub(super) fn packets_of(chunk_size: u32) -> u64 {
    u64::from(chunk_size).div_ceil(RECORD)
}

/// Waits until all packets that the interface accepted have reached the capture.
pub(crate) fn settle(capture: &mut Capture, accepted: u64) -> Result<(), Failure> {
    let began = Instant::now();
    while capture.stats()?.total().seen < accepted && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Sees every packet, in the order in which handlers take them.
#[derive(Clone, Debug)]
pub(crate) struct Check(Arc<Mutex<SequenceCheck>>);

impl Check {
    /// Of frames numbered from 0.
    pub(crate) fn new(traffic: &Traffic, frames: u64) -> Self {
        Self(Arc::new(Mutex::new(SequenceCheck::new(traffic, 0..frames))))
    }

    /// Sees a frame.
    pub(crate) fn frame(&self, frame: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).frame(frame);
    }

    /// Checked work.
    pub(crate) fn of(
        &self,
        mut work: impl FnMut(&Packet<'_>) + Send + 'static,
    ) -> impl FnMut(&Packet<'_>) + Send + 'static {
        let check = self.clone();
        move |packet: &Packet<'_>| {
            check.frame(packet.data);
            work(packet);
        }
    }

    /// What it has seen, when all threads have ended.
    pub(crate) fn report(self) -> SequenceReport {
        let check = Arc::into_inner(self.0).expect("threads that work have ended");
        check.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }

    /// What became of `accepted` frames, when all threads have ended; and what is wrong with that or with the account.
    pub(crate) fn finish(self, total: &PacketCounters, accepted: u64) -> (SequenceReport, Option<String>) {
        let report = self.report();
        let PacketCounters { seen, captured, lost, errors, delivered, .. } = *total;
        let found = report.total;
        let closes = seen == accepted && seen == captured + lost && errors == 0 && captured == delivered;
        let whole = found.received == delivered && found.duplicated + report.corrupt == 0;
        let problem = (!closes || !whole)
            .then(|| format!("{accepted} accepted, {total:?}, {} corrupt, {found:?}", report.corrupt));
        (report, problem)
    }
}
