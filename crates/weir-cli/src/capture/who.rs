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

use weir::who::{HookState, News, Process, ProcessId, Tracker, TrackerSettings};
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
/// Between two looks at the addresses of this host.
const ADDRESSES: Duration = Duration::from_secs(1);
/// Between two looks at what the kernel has told, where no packets come.
const ROUNDS: Duration = Duration::from_millis(100);
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
    next_addresses: Instant,
    next_round: Instant,
    /// The process that the describer was asked about last.
    asked: Option<ProcessId>,
    /// News for the file that wait while its reader takes nothing.
    kept: Vec<News>,
    /// The kernel has refused to tell more, which was said.
    is_broken: bool,
    /// It was said that the describer has ended.
    is_told: bool,
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
            next_addresses: now + ADDRESSES,
            next_round: now,
            asked: None,
            kept: Vec::new(),
            is_broken: false,
            is_told: false,
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

    /// Says what the kernel does not tell here, once for each reason.
    pub(super) fn warn(&self) {
        let mut reasons: Vec<(&str, Vec<&HookState>)> = Vec::new();
        for hook in self.tracker.hooks() {
            let Some(why) = hook.refused.as_deref() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, hooks)) => hooks.push(hook),
                None => reasons.push((why, vec![hook])),
            }
        }
        for (why, hooks) in reasons {
            match &hooks[..] {
                [hook] => warn(format_args!("the kernel refuses {} ({why}): {}", hook.name, hook.costs)),
                hooks => {
                    let names: Vec<_> = hooks.iter().map(|hook| hook.name).collect();
                    warn(format_args!("{why}, so many owners are unknown; without {}", names.join(", ")));
                }
            }
        }
    }

    /// The run of the system.
    pub(super) fn boot(&self) -> [u8; 16] {
        self.boot
    }

    /// Returns what is new about sockets. Everything about the packets so far is among it, but programs and containers, which come
    /// a moment later.
    pub(super) fn news(&mut self) -> Vec<News> {
        let polled = self.tracker.poll();
        self.note(polled);
        let now = Instant::now();
        if now >= self.next_addresses {
            self.next_addresses = now + ADDRESSES;
            // Of a namespace that a confined process cannot enter, those at the start are known.
            let _stay_as_they_were = self.tracker.look_at_addresses();
        }
        let mut news = self.tracker.take_news();
        for one in &news {
            match one {
                News::Sighting(sighting) => sighting.process.iter().for_each(|process| self.ask(process)),
                News::Executed { process, .. } => {
                    self.describer.forget(process.id);
                    self.describer.ask(process);
                }
                _ => {}
            }
        }
        if now >= self.next_answers {
            self.next_answers = now + ANSWERS;
            for answer in self.describer.take() {
                self.tracker.learn(answer);
            }
            news.append(&mut self.tracker.take_news());
            if !self.describer.answers() && !self.is_told {
                self.is_told = true;
                warn(format_args!(
                    "weir-describe, which finds out programs and containers, has ended: new ones are not known"
                ));
            }
        }
        news
    }

    /// When there may be something new, though no packets come.
    pub(super) fn due(&self) -> Instant {
        self.next_round
    }

    /// Says once why the kernel tells no more. The capture goes on.
    fn note(&mut self, result: Result<(), weir::Error>) {
        if let Err(error) = result
            && !self.is_broken
        {
            self.is_broken = true;
            warn(format_args!("{error}: some owners are unknown from now on"));
        }
    }

    fn ask(&mut self, process: &Arc<Process>) {
        if self.asked != Some(process.id) {
            self.asked = Some(process.id);
            self.describer.ask(process);
        }
    }

    /// Looks for the owners of packets that are to be shown now: the kernel tells the port of UDP that is connected only when it is
    /// closed, or when it is asked. `patient`: it may wait until it may look again.
    pub(super) fn settle(&mut self, chunk: &Chunk, patient: bool) {
        let wait = self.next_look.saturating_duration_since(Instant::now());
        if self.is_broken || wait > if patient { PATIENCE } else { Duration::ZERO } {
            return;
        }
        let polled = self.tracker.poll();
        self.note(polled);
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
            std::thread::sleep(wait);
            let begin = Instant::now();
            let looked = self.tracker.look_at_sockets();
            self.note(looked);
            self.next_look = Instant::now() + (LOOKS - 1) * begin.elapsed();
        }
    }

    /// Returns what is new at the end of the capture.
    pub(super) fn last(&mut self) -> Vec<News> {
        if !self.is_broken {
            // Ports of UDP that is connected, and still open.
            let looked = self.tracker.look_at_sockets();
            self.note(looked);
        }
        let told = self.tracker.tell_lost();
        self.note(told);
        self.next_answers = Instant::now();
        self.news()
    }

    /// Has news that no file has room for wait.
    pub(super) fn keep(&mut self, news: Vec<News>) {
        self.kept.extend(news);
        if self.kept.len() > NEWS {
            let at = self.kept.iter().rev().find_map(News::time).unwrap_or_default();
            let sightings = (self.kept.len() - NEWS) as u64;
            self.kept.truncate(NEWS);
            self.kept.push(News::Lost { at, sightings });
        }
    }

    /// Returns the news that wait.
    pub(super) fn take_kept(&mut self) -> Vec<News> {
        std::mem::take(&mut self.kept)
    }

    /// Called in each round of the loop.
    pub(super) fn round(&mut self, now: Instant) {
        self.next_round = now + ROUNDS;
    }

    /// Says what was lost.
    pub(super) fn say(&self) {
        if let Ok(lost @ 1..) = self.tracker.lost() {
            warn(format_args!(
                "{} reports about sockets were lost: some owners are unknown",
                units::grouped(lost)
            ));
        }
    }
}

fn warn(what: std::fmt::Arguments<'_>) {
    style::say(format_args!("{}: --who: {what}", style::stderr().yellow("warning")));
}
