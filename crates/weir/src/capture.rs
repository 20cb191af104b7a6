//! A running capture.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use weir_sys::CallError;
use weir_sys::link::LinkChange;

use crate::Error;
use crate::account::Account;
use crate::builder::{Builder, Delivery, Settings, Wanted};
use crate::chunk::Chunk;
use crate::event::Event;
use crate::filter::{Exchange, Filter, Place};
use crate::interface::{Device, Interface};
use crate::port::Port;
use crate::site::{self, Site};

/// A running capture: gives chunks, and the account.
#[derive(Debug)]
pub struct Capture {
    interfaces: Vec<Interface>,
    ports: Vec<Port>,
    sites: Vec<Site>,
    /// Not yet told.
    events: Vec<Event>,
    patience: Patience,
    delivery: Delivery,
    /// The queue to look at next, counted over all ports.
    turn: usize,
    began: Instant,
    ended: Option<Instant>,
    checked: Instant,
}

/// Between two looks at queues that have little, when delivery is adaptive: short enough for a lone packet to be handed
/// over within a millisecond, long enough for thousands at full load.
const NAP: Duration = Duration::from_micros(250);
/// Bytes of records that are handed over without a nap.
const BATCH: u32 = 128 << 10;
/// How long to sleep before looking once more after the doorbell was armed (`commit` in crates/weir-bpf/src/writer.h).
const RECHECK: Duration = Duration::from_millis(1);
/// Between two looks at interfaces and namespaces where packets keep the capture from waiting.
const CHECK: Duration = Duration::from_secs(1);

/// Events that are kept for [`Capture::events`].
const MOST_EVENTS: usize = 1000;

/// Where the capture is between busy and asleep.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Queues of the present round that are still to be looked at; in a round any amount is handed over.
    round: usize,
    /// Whether this round has found anything.
    found: bool,
    /// Whether the doorbells are armed, and were looked past once.
    armed: Option<Armed>,
    /// When the next round of a batched delivery is due.
    due: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    Fresh,
    Rechecked,
}

impl Capture {
    /// Asks for a capture.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn open(wanted: &[Wanted], settings: &Settings) -> Result<Self, Error> {
        let mut sites: Vec<Site> = Vec::new();
        let mut places = Vec::new();
        for (number, one) in wanted.iter().enumerate() {
            let place = match sites.iter().position(|site| site.is_of(one)) {
                Some(place) => place,
                None => {
                    sites.push(Site::open(one.namespace.as_ref())?);
                    sites.len() - 1
                }
            };
            for (other, &there) in wanted[..number].iter().zip(&places) {
                if there == place {
                    check_beside(one, other)?;
                }
            }
            places.push(place);
        }
        // All are found before the first is opened: a driver may pause its traffic for that.
        let find = |one: &Wanted| site::inside(one.namespace.as_ref(), || Device::find(one))?;
        let mut devices = wanted.iter().map(find).collect::<Result<Vec<_>, Error>>()?;
        if let Some(filter) = &settings.filter {
            devices.iter_mut().try_for_each(|device| device.want(filter))?;
        }
        let mut ports = Vec::new();
        for (((one, device), &place), id) in wanted.iter().zip(&devices).zip(&places).zip(0u32..) {
            let open = || Port::open(one, device, id, place, settings);
            ports.push(site::inside(one.namespace.as_ref(), open)??);
        }
        let now = Instant::now();
        Ok(Self {
            interfaces: ports.iter().map(|port| port.interface.clone()).collect(),
            events: ports.iter().filter_map(Port::first_event).collect(),
            ports,
            sites,
            patience: Patience { round: 0, found: true, armed: None, due: now },
            delivery: settings.delivery,
            turn: 0,
            began: now,
            ended: None,
            checked: now,
        })
    }

    /// The interfaces, in the order in which they were asked for.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Where the filters of the interfaces are exchanged: by any thread, and on the word of other processes.
    pub fn exchange(&self) -> Exchange {
        Exchange::new(self.ports.iter().map(Port::seat))
    }

    /// Wants what `filter` says from now on, on all interfaces; `None`: everything. Each packet meets the filter before or
    /// this one, never both and never none.
    ///
    /// # Errors
    ///
    /// An expression that is wrong, a program that a source cannot take, or no privilege to load one. Where the fault is
    /// in the expression, or a program cannot be made, all interfaces keep the filter before.
    pub fn set_filter(&mut self, filter: Option<&Filter>) -> Result<(), Error> {
        let exchange = self.exchange();
        let make = |place: Place| place.make(filter);
        let programs = exchange.places()?.into_iter().map(make).collect::<Result<Vec<_>, Error>>()?;
        exchange.put(&programs)?;
        for interface in &mut self.interfaces {
            interface.filter = filter.map(Filter::label);
        }
        Ok(())
    }

    /// What has happened to the interfaces since the last call: the last thousand events, where nobody has asked for so
    /// long. [`Capture::next`] finds it out, and comes back early for it where it waits.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The next chunk; waits for one no longer than `wait`. `None`: there was none, a signal came, or something has happened
    /// to an interface ([`Capture::events`]). After [`Capture::stop`] it does not wait, and `None` means that nothing is
    /// left.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`], when the last interface is gone and what came from it was taken; shared memory that was
    /// overwritten. What was captured before can still be taken after [`Capture::stop`].
    pub fn next(&mut self, wait: Duration) -> Result<Option<Chunk>, Error> {
        if self.ended.is_some() {
            self.patience.round = self.lanes();
            return self.round();
        }
        self.check()?;
        if self.ports.iter().all(Port::is_gone) {
            self.patience.round = self.lanes();
            return match (self.round()?, self.ports.last()) {
                (None, Some(port)) => Err(Error::InterfaceGone { name: port.interface.name.clone() }),
                (chunk, _) => Ok(chunk),
            };
        }
        let deadline = Instant::now() + wait;
        match self.delivery {
            Delivery::Adaptive => self.next_adaptive(deadline),
            Delivery::Batched { min_bytes, timeout } => {
                self.next_batched(deadline, min_bytes.max(1), timeout)
            }
            Delivery::Active => self.next_active(deadline),
        }
    }

    /// Calls `handler` with each chunk until it says [`ControlFlow::Break`], then stops the capture. What is left in the
    /// pool can still be taken with [`Capture::next`].
    ///
    /// # Errors
    ///
    /// Those of [`Capture::next`].
    pub fn run(&mut self, mut handler: impl FnMut(&Chunk) -> ControlFlow<()>) -> Result<(), Error> {
        loop {
            if let Some(chunk) = self.next(CHECK)?
                && handler(&chunk).is_break()
            {
                return self.stop();
            }
        }
    }

    /// Ends the capture: nothing is captured any more, and the account is final but for what is still to be taken with
    /// [`Capture::next`]. Does nothing the second time.
    ///
    /// # Errors
    ///
    /// If a source cannot be taken off; the others are.
    pub fn stop(&mut self) -> Result<(), Error> {
        if self.ended.is_some() {
            return Ok(());
        }
        let mut result = Ok(());
        for port in &mut self.ports {
            result = port.source.stop().and(result);
        }
        self.ended = Some(Instant::now());
        result
    }

    /// What became of every packet so far. While packets arrive the counters are of slightly different moments; once
    /// stopped, they close.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be asked for the devices' counters.
    pub fn account(&mut self) -> Result<Account, Error> {
        let links = self.sites.iter().map(Site::links).collect::<Result<Vec<_>, Error>>()?;
        let elapsed = self.ended.unwrap_or_else(Instant::now) - self.began;
        let interfaces = self.ports.iter_mut().map(|port| port.account(&links[port.site]));
        Ok(Account { elapsed, interfaces: interfaces.collect() })
    }

    fn next_adaptive(&mut self, deadline: Instant) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(chunk) = self.round()? {
                return Ok(Some(chunk));
            }
            if let Some(chunk) = self.sweep(BATCH)? {
                self.patience.found = true;
                return Ok(Some(chunk));
            }
            if self.patience.found && self.patience.armed.is_none() {
                self.begin_round();
                if !nap(NAP) {
                    return Ok(None);
                }
                continue;
            }
            if self.sleep_until_ready(1, deadline)? {
                self.begin_round();
                continue;
            }
            return Ok(None);
        }
    }

    fn next_batched(
        &mut self,
        deadline: Instant,
        min_bytes: u32,
        timeout: Duration,
    ) -> Result<Option<Chunk>, Error> {
        loop {
            if let Some(chunk) = self.round()? {
                return Ok(Some(chunk));
            }
            if let Some(chunk) = self.sweep(min_bytes)? {
                return Ok(Some(chunk));
            }
            if Instant::now() >= self.patience.due {
                self.patience.due = Instant::now() + timeout;
                self.begin_round();
                continue;
            }
            if !self.sleep_until_ready(min_bytes, deadline.min(self.patience.due))?
                && (Instant::now() >= deadline || Instant::now() < self.patience.due)
            {
                return Ok(None);
            }
        }
    }

    fn next_active(&mut self, deadline: Instant) -> Result<Option<Chunk>, Error> {
        loop {
            self.begin_round();
            if let Some(chunk) = self.round()? {
                return Ok(Some(chunk));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// Begins a round: each queue may hand over whatever it has, once.
    fn begin_round(&mut self) {
        self.patience.round = self.lanes();
        self.patience.found = false;
    }

    /// What the next queue of the present round has.
    fn round(&mut self) -> Result<Option<Chunk>, Error> {
        while self.patience.round > 0 {
            self.patience.round -= 1;
            if let Some(chunk) = self.take_turn(1)? {
                self.patience.found = true;
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// What the next queue with at least `min_bytes`, or with a chunk that is closed, has.
    fn sweep(&mut self, min_bytes: u32) -> Result<Option<Chunk>, Error> {
        for _ in 0..self.lanes() {
            if let Some(chunk) = self.take_turn(min_bytes)? {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// Looks at the queue whose turn it is, and passes the turn on.
    fn take_turn(&mut self, min_bytes: u32) -> Result<Option<Chunk>, Error> {
        let mut queue = self.turn;
        self.turn = (self.turn + 1) % self.lanes();
        for port in &mut self.ports {
            let Some(lane) = port.lanes.get(queue) else {
                queue -= port.lanes.len();
                continue;
            };
            let ready = port.source.ready(lane.queue)?;
            if ready.bytes < min_bytes && !ready.closed {
                return Ok(None);
            }
            let part = port.source.take(lane.queue)?;
            return Ok(part.map(|part| Chunk::new(part, Arc::clone(lane))));
        }
        Ok(None)
    }

    /// Sleeps until a queue has `bytes`, or until `deadline`; whether there is something. False also after a signal or an
    /// event.
    fn sleep_until_ready(&mut self, bytes: u32, deadline: Instant) -> Result<bool, Error> {
        if self.patience.armed.is_none() {
            for port in &mut self.ports {
                port.source.wake_after(bytes);
            }
            self.patience.armed = Some(Armed::Fresh);
        }
        loop {
            if self.any_ready(bytes)? {
                self.disarm();
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let first = self.patience.armed == Some(Armed::Fresh);
            self.patience.armed = Some(Armed::Rechecked);
            match self.wait(if first { left.min(RECHECK) } else { left })? {
                Woken::Bell => {
                    self.disarm();
                    return Ok(true);
                }
                Woken::News => {
                    self.listen()?;
                    if !self.events.is_empty() {
                        return Ok(false);
                    }
                }
                Woken::Signal => return Ok(false),
                Woken::Time => {}
            }
        }
    }

    fn disarm(&mut self) {
        for port in &mut self.ports {
            port.source.woken();
        }
        self.patience.armed = None;
    }

    fn any_ready(&mut self, bytes: u32) -> Result<bool, Error> {
        for port in &mut self.ports {
            for lane in &port.lanes {
                let ready = port.source.ready(lane.queue)?;
                if ready.bytes >= bytes || ready.closed {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn wait(&self, longest: Duration) -> Result<Woken, Error> {
        let mut fds = Vec::new();
        self.ports.iter().for_each(|port| port.source.poll_on(&mut fds));
        let bells = fds.len();
        let news = self.sites.iter().filter_map(Site::fd);
        fds.extend(news.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut fds, Some(&timespec(longest))) {
            Ok(0) => Ok(Woken::Time),
            Ok(_) => {
                let news = fds.iter().skip(bells).any(|fd| !fd.revents().is_empty());
                Ok(if news { Woken::News } else { Woken::Bell })
            }
            Err(Errno::INTR) => Ok(Woken::Signal),
            Err(error) => Err(CallError::new("wait for packets", error).into()),
        }
    }

    /// Once a second: what the sources have to do, and what has happened to interfaces and namespaces.
    fn check(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.checked + CHECK {
            return Ok(());
        }
        self.checked = now;
        self.listen()?;
        for place in 0..self.sites.len() {
            if self.sites[place].is_over() {
                for port in self.ports.iter_mut().filter(|port| port.site == place && !port.is_gone()) {
                    self.events.push(port.end()?);
                }
                self.sites[place].close();
            }
        }
        for port in self.ports.iter_mut().filter(|port| !port.is_gone()) {
            port.source.tick()?;
        }
        Ok(())
    }

    /// Takes in what the kernel has told of interfaces.
    fn listen(&mut self) -> Result<(), Error> {
        for (place, site) in self.sites.iter_mut().enumerate() {
            for change in site.changes()? {
                let links = if change == LinkChange::Missed { Some(site.links()?) } else { None };
                for port in self.ports.iter_mut().filter(|port| port.site == place) {
                    self.events.extend(match &links {
                        Some(links) => port.look(links)?,
                        None => port.hear(&change)?,
                    });
                }
            }
        }
        let forgotten = self.events.len().saturating_sub(MOST_EVENTS);
        self.events.drain(..forgotten);
        Ok(())
    }

    fn lanes(&self) -> usize {
        self.ports.iter().map(|port| port.lanes.len()).sum()
    }
}

enum Woken {
    Bell,
    News,
    Signal,
    Time,
}

/// Refuses an interface that is asked for twice in the same namespace, be it by `any`.
fn check_beside(one: &Wanted, other: &Wanted) -> Result<(), Error> {
    if one.name == other.name {
        return Err(Error::InterfaceTwice { name: one.label() });
    }
    if !one.is_any() && !other.is_any() {
        return Ok(());
    }
    let (any, named) = if one.is_any() { (one, other) } else { (other, one) };
    let (any, named) = (any.label(), named.label());
    Err(Error::Options(format!("`{named}` is in `{any}` already: name one of the two")))
}

/// Sleeps; whether to the end, and not until a signal came.
fn nap(length: Duration) -> bool {
    matches!(nanosleep(&timespec(length)), NanosleepRelativeResult::Ok)
}

fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(length.subsec_nanos()),
    }
}
