//! One interface of a capture: its source, its counters and its state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_sys::link::{Link, LinkChange};

use super::choose;
use crate::chunk::Lane;
use crate::filter::Receiver;
use crate::live::filter_control::{FilterTarget, Gate};
use crate::live::interface::event::{Change, Event, Known};
use crate::live::interface::{Device, Interface};
use crate::live::request::{Settings, Wanted};
use crate::live::source::Source;
use crate::live::source::outlet::Outlet;
use crate::stats::{InterfaceStats, NicCounters, PacketCounters, PoolFill, QueueStats, Strays};
use crate::{Direction, Error, SourceKind};

/// An interface's source, with its counters.
#[derive(Debug)]
pub(crate) struct CaptureInterface {
    pub(crate) interface: Interface,
    pub(crate) source: Box<dyn Source>,
    pub(crate) lanes: Vec<Arc<Lane>>,
    /// Index of its namespace in the capture.
    pub(crate) context: usize,
    /// `None`: it stands for all interfaces.
    link_state: Option<LinkState>,
    gone: bool,
    /// Sent packets were asked for, and the source does not see them.
    misses_sent: bool,
    receiver: Receiver,
}

/// An interface whose state is tracked.
#[derive(Debug)]
struct LinkState {
    index: u32,
    known: Known,
    /// The device's counters when the capture started, and the last ones reported.
    began: Counted,
    now: Counted,
}

/// What a device has counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    losses: NicCounters,
    sent: u64,
}

impl CaptureInterface {
    /// Opens a source on `device`, in this thread's namespace.
    pub(crate) fn open(
        wanted: &Wanted,
        device: &Device,
        id: u32,
        context: usize,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let opened = choose::open(device, id, settings)?;
        // If both directions are captured, each record contains its own.
        let direction = match settings.direction {
            _ if opened.1.source.receives_only() => Some(Direction::In),
            Direction::Both => None,
            one => Some(one),
        };
        let misses_sent = direction == Some(Direction::In) && settings.direction == Direction::Both;
        Ok(Self { misses_sent, ..Self::new(&wanted.name, device, context, direction, opened)? })
    }

    /// Makes a capture interface on `device`, which the user calls `name`. `direction` is that of all packets, if there is only one.
    pub(crate) fn new(
        name: &str,
        device: &Device,
        context: usize,
        direction: Option<Direction>,
        (source, interface): (Box<dyn Source>, Interface),
    ) -> Result<Self, Error> {
        // Programs lose packets only where they cannot open a chunk; a socket loses them before it gets to the pool.
        let begins_with_losses = !matches!(interface.source, SourceKind::AfPacket | SourceKind::AfXdp);
        let lane = |queue| {
            let lane = Lane::new(interface.id, queue, interface.link_type, direction);
            Arc::new(Lane { begins_with_losses, ..lane })
        };
        let counters = Counted::of(&device.link);
        Ok(Self {
            lanes: (source.first_number()..).take(source.queues() as usize).map(lane).collect(),
            source,
            context,
            link_state: (!device.any).then(|| LinkState {
                index: device.link.index,
                known: Known::of(&Link { name: name.to_owned(), ..device.link.clone() }),
                began: counters,
                now: counters,
            }),
            gone: false,
            misses_sent: false,
            receiver: Receiver { tags_lost: interface.tags_lost, ..device.receiver()? },
            interface,
        })
    }

    /// Gives away the queues, once.
    pub(crate) fn give_outlets(&mut self) -> Vec<Outlet> {
        let queues = self.source.give_queues().into_iter();
        queues.zip(&self.lanes).map(|(queue, lane)| Outlet::new(queue, Arc::clone(lane))).collect()
    }

    /// Returns where the filter is replaced.
    pub(crate) fn filter_target(&self) -> (FilterTarget, Arc<dyn Gate>) {
        (FilterTarget::of(&self.interface, self.receiver), self.source.gate())
    }

    /// Whether the interface is gone, so that nothing more arrives.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Returns the event to report at the start.
    pub(crate) fn first_event(&self) -> Option<Event> {
        let lacks = self.link_state.as_ref().is_some_and(|link_state| link_state.known.lacks_carrier());
        lacks.then(|| self.event(Change::NoCarrier))
    }

    /// Processes a change in its namespace, and returns the resulting events.
    pub(crate) fn hear(&mut self, change: &LinkChange) -> Result<Vec<Event>, Error> {
        let Some(link_state) = self.link_state.as_mut().filter(|_| !self.gone) else { return Ok(Vec::new()) };
        match change {
            LinkChange::Is(link) if link.index == link_state.index => {
                link_state.now = Counted::of(link);
                let changes = link_state.known.follow(link);
                Ok(changes.into_iter().map(|change| self.event(change)).collect())
            }
            LinkChange::Gone(link) if link.index == link_state.index => {
                link_state.now = Counted::of(link);
                Ok(vec![self.end()?])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Does the same from a list of all interfaces in its namespace.
    pub(crate) fn look(&mut self, links: &[Link]) -> Result<Vec<Event>, Error> {
        let Some(index) = self.link_state.as_ref().filter(|_| !self.gone).map(|link_state| link_state.index)
        else {
            return Ok(Vec::new());
        };
        match links.iter().find(|link| link.index == index) {
            Some(link) => self.hear(&LinkChange::Is(link.clone())),
            None => Ok(vec![self.end()?]),
        }
    }

    /// Ends it, because the interface is gone. What was captured can still be taken.
    pub(crate) fn end(&mut self) -> Result<Event, Error> {
        self.gone = true;
        self.source.stop()?;
        Ok(self.event(Change::Gone))
    }

    fn event(&self, change: Change) -> Event {
        Event { interface: self.interface.id, name: self.interface.name.clone(), change }
    }

    /// Returns the account of its packets. `links` are the interfaces of its namespace.
    pub(crate) fn stats(&mut self, links: &[Link]) -> InterfaceStats {
        if let Some(link_state) = &mut self.link_state
            && let Some(link) = links.iter().find(|link| link.index == link_state.index)
        {
            link_state.now = Counted::of(link);
        }
        let mut queues: Vec<QueueStats> =
            (0..).zip(&self.lanes).map(|(place, lane)| self.queue_stats(place, lane)).collect();
        // Counted with the first queue: packets without a queue, and packets that the source filtered.
        let (strays, filtered) = (self.source.strays(), self.source.filtered());
        if let Some(first) = queues.first_mut() {
            first.counters.seen += strays.nobodys() + filtered.unwrap_or(0);
            first.counters.errors += strays.nobodys();
            first.counters.filtered =
                filtered.zip(first.counters.filtered).map(|(source, queue)| source + queue);
        }
        InterfaceStats {
            id: self.interface.id,
            name: self.interface.name.clone(),
            source: self.interface.source,
            mode: self.interface.mode,
            queues,
            strays: Strays {
                no_queue: strays.no_queue,
                other_interface: strays.other_interface,
                late_cpu: strays.late_cpu,
            },
            tag_unknown: strays.tag_unknown,
            sent_unseen: self.link_state.as_ref().filter(|_| self.misses_sent).map_or(0, LinkState::sent),
            memory: self.source.memory(),
            nic: self.link_state.as_ref().map(LinkState::growth),
        }
    }

    /// Returns the account of the source's queue at `place`, which has this lane.
    fn queue_stats(&self, place: u32, lane: &Lane) -> QueueStats {
        let counters = self.source.counters(place);
        let fill = self.source.fill(place);
        QueueStats {
            queue: lane.queue,
            target: self.interface.targets.map(|targets| lane.queue % targets),
            orphans: counters.orphans,
            counters: PacketCounters {
                seen: counters.seen,
                captured: counters.captured,
                lost: counters.lost,
                errors: counters.errors,
                filtered: Some(counters.filtered),
                sampled_out: counters.sampled_out,
                counted: counters.counted,
                bytes: counters.bytes,
                delivered: lane.delivered.load(Ordering::Relaxed),
                discarded: lane.discarded.load(Ordering::Relaxed),
                ..PacketCounters::default()
            },
            most_ready: lane.most_ready.load(Ordering::Relaxed),
            mean_ready: lane.waited.load(Ordering::Relaxed) as f64
                / lane.watched.load(Ordering::Relaxed).max(1) as f64,
            offloaded: lane.offloaded.load(Ordering::Relaxed),
            pool: PoolFill {
                free: fill.free,
                open: fill.open,
                ready: fill.ready,
                held: fill.held,
                total: fill.free + fill.open + fill.ready + fill.held,
            },
        }
    }
}

impl LinkState {
    fn growth(&self) -> NicCounters {
        let (now, began) = (self.now.losses, self.began.losses);
        NicCounters {
            missed: now.missed.saturating_sub(began.missed),
            fifo_errors: now.fifo_errors.saturating_sub(began.fifo_errors),
            dropped: now.dropped.saturating_sub(began.dropped),
        }
    }

    fn sent(&self) -> u64 {
        self.now.sent.saturating_sub(self.began.sent)
    }
}

impl Counted {
    fn of(link: &Link) -> Self {
        let losses = NicCounters {
            missed: link.rx_missed,
            fifo_errors: link.rx_fifo_errors,
            dropped: link.rx_dropped,
        };
        Self { losses, sent: link.tx_packets }
    }
}
