//! Whose the packets of a running capture are: what the kernel tells of sockets, on its way to the file and to the printer.
//!
//! ```text
//! kernel --> tracker --> news --> file, printer
//!               |  ^
//!     processes v  | programs, containers
//!             describer, a process of its own
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir::who::{News, Process, ProcessId, Tracker, TrackerSettings};
use weir::{Chunk, Interface};
use weir_service::describer::Describer;

use crate::failure::Failure;
use crate::interfaces::Chosen;
use crate::{style, units};

/// News that wait for the loop at most.
const NEWS: usize = 1 << 17;
/// Between two looks at what the describer has found out.
const ANSWERS: Duration = Duration::from_millis(20);
/// Looks at sockets whose ports the kernel has not told take so much of the time: one part of four.
const LOOKS: u32 = 4;
/// Longest wait for such a look.
const PATIENCE: Duration = Duration::from_millis(5);

/// Follows the sockets of this host.
#[derive(Debug)]
pub(super) struct Who {
    tracker: Tracker,
    describer: Describer,
    boot: [u8; 16],
    link_types: Vec<u16>,
    next_answers: Instant,
    next_look: Instant,
    /// The processes that the describer was asked about last.
    asked: Option<ProcessId>,
}

impl Who {
    /// Begins, before there are packets.
    pub(super) fn begin(describer: Describer) -> Result<Self, Failure> {
        let settings = TrackerSettings { news: NEWS, ..TrackerSettings::default() };
        let now = Instant::now();
        Ok(Self {
            tracker: Tracker::start(&settings)?,
            describer,
            boot: weir::who::boot(),
            link_types: Vec::new(),
            next_answers: now,
            next_look: now,
            asked: None,
        })
    }

    /// Learns in which namespaces the interfaces are.
    pub(super) fn located(mut self, chosen: &[Chosen], interfaces: &[Interface]) -> Result<Self, Failure> {
        for (chosen, interface) in chosen.iter().zip(interfaces) {
            let namespace = self.tracker.namespace(chosen.namespace())?;
            self.tracker.learn(News::Interface { interface: interface.id, namespace });
            self.link_types.push(interface.link_type);
        }
        Ok(self)
    }

    /// Says what the kernel does not tell here.
    pub(super) fn warn(&self) {
        for hook in self.tracker.hooks() {
            if let Some(why) = &hook.refused {
                style::say(format_args!(
                    "{}: --who: the kernel refuses {} ({why}): {}",
                    style::stderr().yellow("warning"),
                    hook.name,
                    hook.costs
                ));
            }
        }
    }

    /// The run of the system.
    pub(super) fn boot(&self) -> [u8; 16] {
        self.boot
    }

    /// Returns what is new about sockets. Everything about the packets so far is among it, but programs and containers, which come
    /// a moment later.
    pub(super) fn news(&mut self) -> Result<Vec<News>, Failure> {
        self.tracker.poll()?;
        let mut news = self.tracker.take_news();
        for one in &news {
            match one {
                News::Sighting(sighting) => sighting.process.iter().for_each(|process| self.ask(process)),
                News::Described(process) => {
                    // It runs another program.
                    self.describer.forget(process.id);
                    self.describer.ask(process);
                }
                _ => {}
            }
        }
        let now = Instant::now();
        if now >= self.next_answers {
            self.next_answers = now + ANSWERS;
            for answer in self.describer.take() {
                self.tracker.learn(answer);
            }
            news.append(&mut self.tracker.take_news());
        }
        Ok(news)
    }

    fn ask(&mut self, process: &Arc<Process>) {
        if self.asked != Some(process.id) {
            self.asked = Some(process.id);
            self.describer.ask(process);
        }
    }

    /// Looks for the owners of packets that are to be shown now: the kernel tells the port of UDP that is connected only when it is
    /// closed, or when it is asked.
    /// `patient`: it may wait until it may look again.
    pub(super) fn settle(&mut self, chunk: &Chunk, patient: bool) -> Result<(), Failure> {
        if !patient && Instant::now() < self.next_look {
            return Ok(());
        }
        self.tracker.poll()?;
        let register = self.tracker.register();
        let is_unsettled = |packet: weir::Packet<'_>| {
            let Some(&link_type) = self.link_types.get(packet.interface as usize) else { return false };
            register.is_unsettled(&weir::who::Question {
                at: packet.timestamp,
                namespace: register.namespace(packet.interface),
                link_type,
                frame: packet.data,
            })
        };
        if chunk.packets().any(is_unsettled) {
            std::thread::sleep(self.next_look.saturating_duration_since(Instant::now()).min(PATIENCE));
            let begin = Instant::now();
            self.tracker.look_at_sockets()?;
            self.next_look = begin + LOOKS * begin.elapsed();
        }
        Ok(())
    }

    /// Returns what is new at the end of the capture.
    pub(super) fn last(&mut self) -> Result<Vec<News>, Failure> {
        // Ports of UDP that is connected, and still open.
        self.tracker.look_at_sockets()?;
        self.next_answers = Instant::now();
        self.news()
    }

    /// Says what was lost.
    pub(super) fn say(&self) {
        let Ok(lost @ 1..) = self.tracker.lost() else { return };
        style::say(format_args!(
            "{}: {} reports about sockets were lost: some owners are unknown",
            style::stderr().yellow("warning"),
            units::grouped(lost)
        ));
    }
}
