//! Who forwards between two devices, both ways at once.
//!
//! ```text
//!  queues of rx0 --> in the kernel                              --> rx1
//!                    AF_XDP sockets, sent from where they came
//!                    pools, or a copying ring --> packet sockets
//!                <-- and back                                   <--
//! ```

use std::thread::JoinHandle;

use weir::{Capture, Forward, Mode, Packet, Plan, SourceChoice};
use weir_lab::{FrameSender, Network};

use super::super::pace::Over;
use super::super::rings::{self, Counts, Kind as Ring};
use crate::failure::{Failure, failed};
use crate::forward::bare::{self, Directions, Loop, Redirecting};
use crate::forward::pass;
use crate::queues::{Threads, settle};

/// Packets of a chunk, and chunks of a queue, but for the larger pool: WireCAP's M and R.
pub(super) const CELLS: u32 = 256;
pub(super) const CHUNKS: u32 = 100;
/// What a record has beside its frame: an Enhanced Packet Block.
const RECORD: u32 = 32;
const SNAP_LEN: u32 = 2048;
/// Entries of an AF_XDP ring; there are twice as many frames.
const RING: u32 = 2048;

/// Which of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Engine {
    /// weir, without a handler.
    Kernel,
    /// weir, with a handler that forwards all.
    Handler,
    /// weir's pools of so many chunks, in advanced mode with a threshold in percent.
    Pools(u32, Option<u8>),
    /// An XDP program.
    Redirect,
    /// AF_XDP sockets.
    Loop,
    /// A TPACKET_V3 ring for each device.
    Copying,
}

/// One at work.
pub(super) enum Running {
    Forward(Box<Forward>),
    Pools(Box<Capture>, Threads),
    Redirect([Redirecting; 2]),
    Loop(Loop),
    Copying([JoinHandle<Result<Counts, Failure>>; 2], Over),
}

/// What it says in the end.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Packets that it lost, by the device on which they came.
    pub(super) lost: [u64; 2],
    /// Whether these include packets for which the other device had no room.
    pub(super) knows_way_out: bool,
    /// Nanoseconds of processor time that a handler took for a packet.
    pub(super) each: Option<f64>,
    pub(super) problem: Option<String>,
}

impl Engine {
    /// Starts it between the `rx` ends of both pairs. `size`: of the frames, bytes.
    pub(super) fn start(self, network: &Network, size: usize) -> Result<Running, Failure> {
        let ports = [0, 1].map(|number| &network.pairs()[number].rx);
        let [here, there] = ports.map(|port| port.name.as_str());
        let [index, other] = ports.map(|port| port.index);
        let queues = ports[0].queues;
        let chunk = CELLS * (u32::try_from(size).unwrap_or(SNAP_LEN) + RECORD);
        network.rx().run(|| {
            let forward = || Forward::between(here, there).both(true);
            Ok(match self {
                Self::Kernel => Running::Forward(Box::new(forward().open()?)),
                Self::Handler => Running::Forward(Box::new(forward().open_with(|_| pass)?)),
                Self::Pools(chunks, threshold) => {
                    let builder = Capture::builder().interface(here).interface(there);
                    let builder = builder.source(SourceChoice::Xdp).mode(Mode::Exclusive).snap_len(SNAP_LEN);
                    let mut capture = builder.chunks(chunks).chunk_size(chunk).open()?;
                    let plan = threshold.into_iter().fold(Plan::new(2 * queues as usize), Plan::advanced);
                    let handlers = capture.handlers(&plan)?;
                    let works: Result<Vec<_>, Failure> = handlers.iter().map(|_| sending(network)).collect();
                    let threads = Threads::start(handlers, works?);
                    Running::Pools(Box::new(capture), threads)
                }
                Self::Redirect => {
                    Running::Redirect([bare::redirect(index, other)?, bare::redirect(other, index)?])
                }
                Self::Loop => Running::Loop(Loop::start([index, other], Directions::Both, queues, RING)?),
                Self::Copying => {
                    let over = Over::default();
                    let start = |from: usize| {
                        let out = sender(network, 1 - from)?;
                        let each = move |frame: &[u8]| {
                            // What is not sent does not arrive, and the device counts it.
                            let _missed = out.send(frame);
                        };
                        let bytes = queues * CHUNKS * chunk;
                        rings::start(Ring::Copying(bytes), ports[from], &over, each)
                    };
                    let threads = [start(0)?, start(1)?];
                    Running::Copying(threads, over)
                }
            })
        })
    }
}

/// A handler's work: sends each packet out of the device on which it did not come.
fn sending(network: &Network) -> Result<impl FnMut(&Packet<'_>) + Send + 'static, Failure> {
    let out = [sender(network, 1)?, sender(network, 0)?];
    Ok(move |packet: &Packet<'_>| {
        // As above.
        let _missed = out[usize::from(packet.interface > 0)].send(packet.data);
    })
}

fn sender(network: &Network, number: usize) -> Result<FrameSender, Failure> {
    FrameSender::new(&network.pairs()[number].rx).map_err(failed("prepare to forward"))
}

impl Running {
    /// Ends it once it has done all that has come: `accepted`, by the device.
    pub(super) fn finish(self, accepted: [u64; 2]) -> Result<Said, Failure> {
        let said = Said::default();
        Ok(match self {
            Self::Forward(mut forward) => {
                forward.stop()?;
                let directions = forward.stats()?.directions;
                let totals = [0, 1].map(|way| directions.get(way).map(weir::forward::DirectionStats::total));
                let totals = totals.map(Option::unwrap_or_default);
                let is_right = (0..2).all(|way| {
                    let total = &totals[way];
                    total.seen == accepted[way] && total.seen == total.forwarded + total.lost()
                });
                let problem = (!is_right).then(|| format!("{accepted:?} accepted, {totals:?}"));
                Said { lost: totals.map(|total| total.lost()), knows_way_out: true, problem, ..said }
            }
            Self::Pools(mut capture, threads) => {
                settle(&mut capture, accepted.iter().sum())?;
                let done = threads.finish(&mut capture)?;
                let account = capture.stats()?;
                let totals = [0, 1].map(|id: usize| {
                    account.interfaces.get(id).map(weir::InterfaceStats::total).unwrap_or_default()
                });
                let is_right = (0..2).all(|way| {
                    let total = &totals[way];
                    total.seen == accepted[way] && total.seen == total.delivered + total.lost
                });
                let problem = (!is_right).then(|| format!("{accepted:?} accepted, {totals:?}"));
                let packets: u64 = done.iter().map(|done| done.packets).sum();
                let seconds: f64 = done.iter().map(|done| done.busy_seconds).sum();
                let each = (packets > 0).then(|| seconds * 1e9 / packets as f64);
                Said { lost: totals.map(|total| total.lost), each, problem, ..said }
            }
            Self::Redirect(_until_now) => said,
            Self::Loop(running) => Said { lost: running.finish()?, ..said },
            Self::Copying(threads, over) => {
                over.set();
                let mut lost = [0; 2];
                for (lost, thread) in lost.iter_mut().zip(threads) {
                    let counts =
                        thread.join().map_err(|_panic| Failure::new("a thread at a ring panicked"))??;
                    *lost = counts.lost;
                }
                Said { lost, ..said }
            }
        })
    }
}
