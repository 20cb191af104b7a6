//! Where it is measured: two pairs, frames that come on both, and what arrives at their far ends.
//!
//! ```text
//!  generators --> tx0 --> rx0 == engine ==> rx1 --> tx1: counted, dropped
//!  counted, dropped: tx0 <-- rx0 <== engine == rx1 <-- tx1 <-- generators
//! ```

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use weir_lab::{Action, Generator, Hook, LinkCounters, Network, SendReport, Traffic, Veth};

use crate::experiment::Settings;
use crate::failure::{Failure, failed};
use crate::process::{cpu_time, ksoftirqd, own_time};

/// Two pairs with as many queues each.
pub(super) struct Field {
    /// At the far end of each way. They go before the network.
    hooks: [Hook; 2],
    /// With their way. Of each way one for each queue.
    generators: Vec<(usize, Generator)>,
    ksoftirqds: Vec<Pid>,
    pub(super) network: Network,
}

/// What came of a turn's frames; way 0 is from the first device to the second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Frames that the devices took, by way.
    pub(super) accepted: [u64; 2],
    /// Time for which they came.
    pub(super) seconds: f64,
    pub(super) window: Window,
}

/// A while in which all generators were at work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) arrived: u64,
    pub(super) seconds: f64,
    /// Processor time of all that was done.
    pub(super) busy: Duration,
}

/// Totals so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// Frames that have come out at the far end, by way.
    pub(super) arrived: [u64; 2],
    /// Frames for which the way out had no room, by way.
    pub(super) no_room: [u64; 2],
}

/// If nothing has arrived for so long, nothing is on its way.
const ON_THEIR_WAY: Duration = Duration::from_millis(60);
/// For what is late on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

impl Field {
    /// `size`: of the frames, bytes.
    pub(super) fn new(
        settings: &Settings,
        experiment: &str,
        queues: u32,
        processors: u32,
        size: usize,
    ) -> Result<Self, Failure> {
        let ends = || Veth::default().queues(queues);
        let mut network = settings.network(experiment, ends())?;
        let cannot = |error| failed::<weir_lab::Error>("prepare to forward")(error);
        network.connect(ends()).map_err(cannot)?;
        let pairs = [0, 1].map(|number| network.pairs()[number].clone());
        let mut generators = Vec::new();
        for way in [0, 1] {
            let mut ends = pairs[way].clone();
            ends.rx.mac = pairs[1 - way].tx.mac;
            let traffic = Traffic::new(size).map_err(cannot)?.between(&ends);
            for queue in 0..queues {
                // A processor's frames come on the queue of its number, modulo queues. Where there are enough, nobody shares one.
                let other = queue + queues * u32::from(way > 0);
                let cpu = if other < processors { other } else { queue };
                generators.push((way, Generator::new(&pairs[way], &traffic).map_err(cannot)?.cpu(cpu)));
            }
        }
        let hook = |way: usize| Hook::attach(&pairs[1 - way].tx, Action::Drop).map_err(cannot);
        let hooks = [hook(0)?, hook(1)?];
        let ksoftirqds = (0..processors).filter_map(ksoftirqd).collect();
        Ok(Self { hooks, generators, ksoftirqds, network })
    }

    /// Sends both ways at once, as fast as can be, for a little more than `time`.
    pub(super) fn send(&mut self, time: Duration) -> Result<Sent, Failure> {
        let Self { hooks, generators, ksoftirqds, .. } = self;
        let pause = time / 10;
        let reports: Vec<(usize, Result<SendReport, _>)>;
        let mut sent = Sent::default();
        (reports, sent.window) = thread::scope(|scope| {
            let mut threads = Vec::new();
            for (way, generator) in generators {
                threads.push((*way, scope.spawn(move || generator.send_for(time + 2 * pause))));
            }
            let now = || {
                let busy = ksoftirqds.iter().filter_map(|pid| cpu_time(*pid).ok()).sum::<Duration>();
                (hooks.iter().map(Hook::packets).sum::<u64>(), Instant::now(), busy + own_time())
            };
            thread::sleep(pause);
            let (arrived, began, busy) = now();
            thread::sleep(time);
            let last = now();
            let window = Window {
                arrived: last.0 - arrived,
                seconds: (last.1 - began).as_secs_f64(),
                busy: last.2.saturating_sub(busy),
            };
            let join = |(way, thread): (usize, thread::ScopedJoinHandle<'_, _>)| {
                (way, thread.join().expect("a generator does not panic"))
            };
            (threads.into_iter().map(join).collect(), window)
        });
        for (way, report) in reports {
            let report = report.map_err(failed("send"))?;
            sent.accepted[way] += report.accepted;
            sent.seconds = sent.seconds.max(report.elapsed.as_secs_f64());
        }
        Ok(sent)
    }

    /// Waits until nothing arrives any more.
    pub(super) fn settle(&self) {
        loop {
            let before = self.arrived();
            thread::sleep(ON_THEIR_WAY);
            if self.arrived() == before {
                return;
            }
        }
    }

    /// Waits for a while until so many have arrived.
    pub(super) fn wait_for(&self, arrived: [u64; 2]) {
        for (hook, packets) in self.hooks.iter().zip(arrived) {
            hook.wait_for(packets, PATIENCE);
        }
    }

    pub(super) fn totals(&self) -> Result<Totals, Failure> {
        let dropped = |way: usize| {
            let counters = LinkCounters::read(&self.network.pairs()[1 - way].rx);
            let dropped = counters.map(|counters| counters.tx_dropped);
            dropped.map_err(failed("read the counters of interfaces"))
        };
        Ok(Totals { arrived: self.arrived(), no_room: [dropped(0)?, dropped(1)?] })
    }

    fn arrived(&self) -> [u64; 2] {
        self.hooks.each_ref().map(Hook::packets)
    }
}
