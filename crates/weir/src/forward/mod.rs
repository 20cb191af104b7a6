//! Forwarding: what one interface receives is sent on another, inside the kernel or through a handler.
//!
//! ```text
//!  from: driver -> filter, if any --+-- wanted ------> to: driver     counted once that has taken it
//!                                   '-- not wanted --> the stack of this host
//! ```
//!
//! Without a handler no packet comes to this process: it attaches, counts, exchanges the filter and takes off. With one
//! ([`ForwardBuilder::open_with`]) packets come by AF_XDP sockets in memory of the process, may be changed there, and are sent from
//! where they lie.

mod account;
mod copy;
mod end;
mod handler;
mod pinned;
mod pins;
mod pump;
mod stack;
mod way;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use weir_sys::CallError;

pub use self::account::{ForwardAccount, ForwardQueue, ForwardTally, SendCounters, WayAccount};
use self::copy::Copy;
use self::end::End;
pub use self::handler::{Handler, Lane, Packet, Verdict};
pub use self::pinned::Pinned;
use self::pins::Pins;
use self::pump::Pumps;
use self::way::Way;
use crate::builder::{Builder, Settings, Wanted};
use crate::filter::{Exchange, Turn};
use crate::memory::{self, Memory};
use crate::{Capture, Error, Event, Filter, Namespace};

/// What becomes of forwarding when the process ends, however it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExit {
    /// It ends, too: packets go to the stack of this host, as without it.
    #[default]
    Closed,
    /// It goes on in the kernel until [`ForwardBuilder::end`].
    Open,
}

/// Asks for forwarding: [`Forward::between`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ForwardBuilder {
    ends: [Wanted; 2],
    both: bool,
    filter: Option<Filter>,
    on_exit: OnExit,
    promiscuous: bool,
    lose_tags: bool,
    copied: Option<Builder>,
}

/// Forwarding that runs.
#[derive(Debug)]
pub struct Forward {
    ends: [End; 2],
    ways: Vec<Way>,
    pumps: Option<Pumps>,
    copy: Option<Capture>,
    pins: Option<Pins>,
    events: Vec<Event>,
    began: Instant,
    ended: Option<Instant>,
    exchanging: Turn,
}

/// One way that packets go, as people want it described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayInfo {
    /// The interface that receives them.
    pub from: String,
    /// The interface that sends them.
    pub to: String,
    /// How.
    pub detail: String,
    /// What may go wrong with some packets, and what mends it.
    pub notes: Vec<String>,
    /// The filter, as people are told of it.
    pub filter: Option<String>,
}

impl ForwardBuilder {
    /// In which network namespaces the interface that receives and the one that sends are; `None`: that of the calling thread.
    pub fn namespaces(mut self, from: Option<&Namespace>, to: Option<&Namespace>) -> Self {
        self.ends[0].namespace = from.cloned();
        self.ends[1].namespace = to.cloned();
        self
    }

    /// Whether packets go the other way as well.
    pub fn both(mut self, both: bool) -> Self {
        self.both = both;
        self
    }

    /// Which packets are forwarded: the others go on to the stack of this host.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// What becomes of it when the process ends.
    pub fn on_exit(mut self, on_exit: OnExit) -> Self {
        self.on_exit = on_exit;
        self
    }

    /// Whether frames for other stations are received, too; they are unless this says no.
    pub fn promiscuous(mut self, promiscuous: bool) -> Self {
        self.promiscuous = promiscuous;
        self
    }

    /// Whether packets may lose VLAN tags that the driver strips and nobody tells; they may not, unless this says so, and
    /// [`open`](Self::open) refuses such an interface.
    pub fn lose_tags(mut self, lose: bool) -> Self {
        self.lose_tags = lose;
        self
    }

    /// Has what is forwarded copied, as it goes out, or to the handlers; [`Forward::take_copy`] gives the capture. `how` is a
    /// capture's without interfaces and filter: its pool, snap length, time stamps and delivery. A full pool loses copies, never
    /// packets.
    pub fn copied(mut self, how: Builder) -> Self {
        self.copied = Some(how);
        self
    }

    /// Ends what goes on between these two since its process has ended ([`OnExit::Open`]), and gives the account from its very
    /// beginning.
    ///
    /// # Errors
    ///
    /// There is none; no such interfaces.
    pub fn end(self) -> Result<ForwardAccount, Error> {
        Pinned::between(&self.ends)?.end()
    }

    /// Begins.
    ///
    /// # Errors
    ///
    /// Interfaces that are unknown, down, the same, or do not go together; a driver that cannot; another XDP program; a lack
    /// of privilege or of kernel support: each says what to do. Nothing is left attached.
    pub fn open(self) -> Result<Forward, Error> {
        self.begin(None, |_, _| Ok(None))
    }

    /// Begins, with a handler for each receive queue, which `handler` makes. The handlers run in as many threads as the
    /// interface with fewer queues has queues; packets of a queue stay in their order, and nothing is copied here.
    ///
    /// Packets come in one piece, so an MTU of 3818 is the most. With [`OnExit::Open`] packets go on past the handlers when the process
    /// ends.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with<H: Handler>(self, handler: impl FnMut(Lane) -> H) -> Result<Forward, Error> {
        let on_exit = self.on_exit;
        self.begin(Some(on_exit), |ends, ways| Pumps::start(ends, ways, handler).map(Some))
    }

    fn begin(
        self,
        sockets: Option<OnExit>,
        pumps: impl FnOnce(&[End; 2], &[Way]) -> Result<Option<Pumps>, Error>,
    ) -> Result<Forward, Error> {
        let [from, to] = &self.ends;
        if self.copied.is_some() && self.on_exit == OnExit::Open {
            let why = "--on-exit open outlives the process, and a copy (-w) does not; choose one";
            return Err(Error::Options(why.into()));
        }
        let mut ends = [End::find(from, 0)?, End::find(to, 1)?];
        Pins::check(&ends)?;
        // Locked before the interfaces are checked: of two processes that start at once, the later would otherwise find the other's
        // program and blame an unknown one.
        let mut pins = match self.on_exit {
            OnExit::Open => Some(Pins::make(&ends)?),
            OnExit::Closed => None,
        };
        end::check(&ends, self.both)?;
        let numbers: &[(usize, usize)] = if self.both { &[(0, 1), (1, 0)] } else { &[(0, 1)] };
        let copied = self.copied.map(Builder::into_settings).transpose()?;
        let sizes = match &copied {
            Some(settings) => {
                let need = |&(from, _): &(usize, usize)| {
                    (ends[from].name(), vec![vec![Copy::need(&ends[from], settings)]])
                };
                let needs: Vec<_> = numbers.iter().map(need).collect();
                memory::shares(&needs, settings.pool, Memory::now())?
            }
            None => Vec::new(),
        };
        let copies = sizes.into_iter().flat_map(|pool| Some(Settings { pool, ..copied.clone()? }));
        let copies: Vec<Settings> = copies.collect();
        let (mut ways, mut ports, mut sites) = (Vec::new(), Vec::new(), Vec::new());
        for (id, &(from, to)) in (0..).zip(numbers) {
            let both = [&ends[from], &ends[to]];
            let copy =
                copies.get(id as usize).map(|settings| Copy::plan(both[0], id, settings)).transpose()?;
            let (way, port) =
                Way::load([from, to], both, self.filter.as_ref(), sockets, copy, self.lose_tags)?;
            ways.push(way);
            ports.extend(port);
            sites.push(both[0].site()?);
        }
        let copy = copied.map(|settings| Capture::of(ports, sites, &settings));
        let pumps = pumps(&ends, &ways)?;
        // All are loaded before the first is attached: a driver may pause its traffic for that.
        for (way, name) in ways.iter_mut().zip(pins::WAYS) {
            way.attach(&ends[way.from()])?;
            if let Some(pins) = &pins {
                way.pin(&pins.way(name)?)?;
            }
            if self.promiscuous {
                let lasting = pins.as_ref().map(|pins| pins.promiscuous(name));
                ends[way.from()].make_promiscuous(lasting)?;
            }
        }
        if let Some(pins) = &mut pins {
            pins.keep();
        }
        let events = ends.iter().filter_map(End::first_event).collect();
        let (began, exchanging) = (Instant::now(), Turn::default());
        Ok(Forward { ends, ways, pumps, copy, pins, events, began, ended: None, exchanging })
    }
}

impl Forward {
    /// Asks for forwarding of what interface `from` receives to interface `to`, both in the network namespace of the thread
    /// that calls [`ForwardBuilder::open`].
    pub fn between(from: impl Into<String>, to: impl Into<String>) -> ForwardBuilder {
        let here = |name: String| Wanted { namespace: None, name };
        ForwardBuilder {
            ends: [here(from.into()), here(to.into())],
            both: false,
            filter: None,
            on_exit: OnExit::default(),
            promiscuous: true,
            lose_tags: false,
            copied: None,
        }
    }

    /// The ways that packets go.
    pub fn ways(&self) -> Vec<WayInfo> {
        self.ways.iter().map(|way| way.info(&self.ends, self.pumps.as_ref())).collect()
    }

    /// The copy of what is forwarded, if it was asked for: once. It is complete when forwarding has been [stopped](Self::stop)
    /// before it.
    pub fn take_copy(&mut self) -> Option<Capture> {
        self.copy.take()
    }

    /// Under which name in a bpffs the kernel keeps it, where it goes on without this process.
    pub fn pinned(&self) -> Option<&std::path::Path> {
        self.pins.as_ref().map(Pins::directory)
    }

    /// Where the filters are exchanged, by any thread; the number of a seat's interface is that of the way.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    pub fn exchange(&self) -> Result<Exchange, Error> {
        let seats = self.ways.iter().zip(0..).map(|(way, id)| way.seat(&self.ends[way.from()], id));
        Ok(Exchange::new(seats.collect::<Result<Vec<_>, Error>>()?.into_iter(), &self.exchanging))
    }

    /// Waits for what happens to the interfaces, no longer than `wait`; comes back early for a signal.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`], once that was told.
    pub fn wait(&mut self, wait: Duration) -> Result<Vec<Event>, Error> {
        if self.events.is_empty() {
            if let Some(end) = self.ends.iter().find(|end| end.is_gone()) {
                return Err(Error::InterfaceGone { name: end.name().to_owned() });
            }
            if self.ended.is_none() && self.pumps.as_ref().is_some_and(Pumps::is_broken) {
                let what = "a handler has panicked, and its packets are no longer forwarded".to_owned();
                return Err(Error::Forward { what, mend: "its message says where".to_owned() });
            }
            let mut fds: Vec<PollFd<'_>> = self.ends.iter().filter_map(End::fd).collect();
            match poll(&mut fds, Some(&Timespec::try_from(wait).unwrap_or(FOREVER))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(CallError::new("wait for news of interfaces", error).into()),
            }
            for end in &mut self.ends {
                self.events.extend(end.listen()?);
            }
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// What became of every packet so far. Once stopped, the sums close.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be asked.
    pub fn account(&mut self) -> Result<ForwardAccount, Error> {
        for end in &mut self.ends {
            end.count()?;
        }
        let elapsed = self.ended.unwrap_or_else(Instant::now) - self.began;
        let pumps = self.pumps.as_ref();
        let account = |(number, way): (usize, &Way)| way.account(&self.ends, number, pumps);
        let ways = self.ways.iter().enumerate().map(account).collect::<Result<_, _>>()?;
        Ok(ForwardAccount { elapsed, ways })
    }

    /// Ends it, unless it is to go on ([`OnExit::Open`]): when this returns nothing is forwarded any more, and the account is
    /// final. Does nothing the second time.
    ///
    /// # Errors
    ///
    /// If a program cannot be taken off; the others are.
    pub fn stop(&mut self) -> Result<(), Error> {
        if self.ended.is_some() || self.pins.is_some() {
            return Ok(());
        }
        let mut result = Ok(());
        for way in &mut self.ways {
            let detached = way.detach();
            result = result.and(detached);
        }
        // What was put aside for the other driver is handed over before the grace period ends, as it is in the same softirq.
        let waited = self.exchanging.grace.wait().map_err(Error::from);
        result = result.and(waited);
        self.pumps.iter_mut().for_each(Pumps::stop);
        self.ended = Some(Instant::now());
        result
    }
}

/// Longer than anybody waits.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
