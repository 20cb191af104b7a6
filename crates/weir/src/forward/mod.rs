//! Forwarding packets from one interface to another, inside the kernel or through a handler.
//!
//! ```text
//!  from: driver -> filter, if any --+-- wanted ------> to: driver     counted once the driver has taken it
//!                                   '-- not wanted --> the stack of this host
//! ```
//!
//! Without a handler no packet reaches this process: it attaches the program, counts, changes the filter, and detaches.
//! With a handler ([`ForwardBuilder::open_with`]) packets arrive through AF_XDP sockets in memory of the process, may
//! be changed there, and are sent from the same memory.

mod copy;
mod counters;
mod direction;
mod endpoint;
mod handler;
mod pinned;
mod pins;
mod pump;
mod stack;
mod stats;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use weir_sys::CallError;

use self::copy::Copy;
use self::direction::{Both, Front, OneDirection};
use self::endpoint::Endpoint;
pub use self::handler::{ForwardHandler, ForwardLane, ForwardPacket, Verdict};
pub use self::pinned::Pinned;
use self::pins::Pins;
use self::pump::Pumps;
pub use self::stats::{DirectionStats, ForwardCounters, ForwardQueue, ForwardStats, SendCounters};
use crate::live::capture::builder::Builder;
use crate::live::error::Problem;
use crate::live::filter_control::{FilterControl, UpdateLock};
use crate::live::interface::Tags;
use crate::live::request::memory::{self, Memory};
use crate::live::request::{Settings, Wanted};
use crate::live::ruled::{InForce, before};
use crate::live::rules::{Reading, Rules};
use crate::{Capture, Error, Event, Filter, Namespace, Setting};

/// What happens to forwarding when the process ends, for whatever reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnExit {
    /// It ends too, and packets go to this host's stack as before.
    #[default]
    Closed,
    /// The kernel continues it until [`ForwardBuilder::end`].
    Open,
}

/// A builder for forwarding, created by [`Forward::between`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ForwardBuilder {
    endpoints: [Wanted; 2],
    both: bool,
    filter: Option<Filter>,
    rules: Option<Rules>,
    on_exit: OnExit,
    promiscuous: bool,
    lose_tags: bool,
    copied: Option<Builder>,
}

/// Active forwarding between two interfaces.
#[derive(Debug)]
pub struct Forward {
    endpoints: [Endpoint; 2],
    directions: Vec<OneDirection>,
    rules: Option<InForce>,
    pumps: Option<Pumps>,
    copy: Option<Capture>,
    pins: Option<Pins>,
    events: Vec<Event>,
    began: Instant,
    ended: Option<Instant>,
    update_lock: UpdateLock,
}

/// A description of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectionInfo {
    /// The receiving interface.
    pub from: String,
    /// The sending interface.
    pub to: String,
    /// How packets are forwarded.
    pub detail: String,
    /// Problems that some packets may have, and how to avoid them.
    pub notes: Vec<String>,
    /// The filter, as shown to the user.
    pub filter: Option<String>,
}

impl ForwardBuilder {
    /// Sets the network namespaces of the receiving and the sending interface; `None`: that of the calling thread.
    pub fn namespaces(mut self, from: Option<&Namespace>, to: Option<&Namespace>) -> Self {
        self.endpoints[0].namespace = from.cloned();
        self.endpoints[1].namespace = to.cloned();
        self
    }

    /// Sets whether packets are also forwarded in the other direction.
    pub fn both(mut self, both: bool) -> Self {
        self.both = both;
        self
    }

    /// Sets which packets are forwarded; all others go to this host's stack.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets rules, which take the filter's place: [`Pass`](crate::guard::Fate::Pass) forwards a packet, [`Block`](crate::guard::Fate::Block)
    /// drops it, and [`Bounce`](crate::guard::Fate::Bounce) sends it back; nothing is reflected. A packet that meets no rule is forwarded, so that none gets to the
    /// host's stack. [Copied](Self::copied) are those that rules [capture](crate::guard::Action::capture). Both directions have the same rules and tables. See
    /// [`Forward::rules`].
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Sets what happens when the process ends.
    pub fn on_exit(mut self, on_exit: OnExit) -> Self {
        self.on_exit = on_exit;
        self
    }

    /// Sets whether frames for other stations are received; the default is yes.
    pub fn promiscuous(mut self, promiscuous: bool) -> Self {
        self.promiscuous = promiscuous;
        self
    }

    /// Sets whether packets may lose VLAN tags that the driver strips without reporting them. By default they may not,
    /// and [`open`](Self::open) rejects such an interface.
    pub fn lose_tags(mut self, lose: bool) -> Self {
        self.lose_tags = lose;
        self
    }

    /// Copies packets as they are forwarded or given to the handlers; [`Forward::take_copy`] returns the capture.
    ///
    /// `how` is a capture without interfaces and filter: its pool, snap length, timestamps and delivery are used. If
    /// the pool is full, copies are lost, but never packets.
    pub fn copied(mut self, how: Builder) -> Self {
        self.copied = Some(how);
        self
    }

    /// Ends forwarding that the kernel has continued between these interfaces ([`OnExit::Open`]), and returns the
    /// account since it began.
    ///
    /// # Errors
    ///
    /// Nothing is forwarded between them, or the interfaces do not exist.
    pub fn end(self) -> Result<ForwardStats, Error> {
        Pinned::between(&self.endpoints)?.end()
    }

    /// Starts forwarding.
    ///
    /// # Errors
    ///
    /// An interface does not exist, is down, is used twice, or does not match the other; its driver is not suitable;
    /// another XDP program is attached; privileges or kernel support are missing. Each error says what to do. Nothing
    /// stays attached.
    pub fn open(self) -> Result<Forward, Error> {
        self.begin(None, |_, _| Ok(None))
    }

    /// Starts forwarding with a handler for each receive queue, created by `handler`.
    ///
    /// The handlers run in as many threads as the interface with fewer queues has queues. Packets of a queue stay in
    /// order, and nothing is copied.
    ///
    /// Packets arrive in one piece, so the MTU may be at most 3818. With [`OnExit::Open`] packets bypass the handlers
    /// once the process has ended.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn open_with<H: ForwardHandler>(
        self,
        handler: impl FnMut(ForwardLane) -> H,
    ) -> Result<Forward, Error> {
        let on_exit = self.on_exit;
        self.begin(Some(on_exit), |endpoints, directions| {
            Pumps::start(endpoints, directions, handler).map(Some)
        })
    }

    fn begin(
        self,
        sockets: Option<OnExit>,
        pumps: impl FnOnce(&[Endpoint; 2], &[OneDirection]) -> Result<Option<Pumps>, Error>,
    ) -> Result<Forward, Error> {
        let [from, to] = &self.endpoints;
        if self.copied.is_some() && self.on_exit == OnExit::Open {
            let why = "forwarding that stays open outlives the process, but a copy does not; choose one";
            return Err(Error::conflict(Setting::OnExit, Setting::Copy, why));
        }
        if let Some(rules) = &self.rules {
            rules.check()?;
            if rules.reflects() {
                let why = "cannot reflect packets in forwarding, which sends to one interface: try a rule without `reflect`";
                return Err(Error::setting(Setting::Rules, why));
            }
            if self.filter.is_some() {
                let why = "cannot use a filter beside rules, which take its place";
                return Err(Error::conflict(Setting::Filter, Setting::Rules, why));
            }
        }
        let mut endpoints = [endpoint::find(from, 0)?, endpoint::find(to, 1)?];
        Pins::check(&endpoints)?;
        // Lock before checking the interfaces: if two processes start at once, the later one would otherwise find the
        // program of the other and report an unknown one.
        let mut pins = match self.on_exit {
            OnExit::Open => Some(Pins::make(&endpoints)?),
            OnExit::Closed => None,
        };
        let keeps_tags = |endpoint: &Endpoint| match endpoint.device.tags {
            Tags::Unreported(_) => direction::keeps_tags(endpoint, self.filter.as_ref(), self.lose_tags),
            // With rules, the program is not bound to it.
            Tags::Told(_) if self.rules.is_some() => direction::keeps_tags(endpoint, None, self.lose_tags),
            // Unless the driver then takes no program that is bound to it.
            Tags::Told(_) | Tags::InFrame => Ok(()),
        };
        endpoint::check(&endpoints, self.both, keeps_tags)?;
        let numbers: &[(usize, usize)] = if self.both { &[(0, 1), (1, 0)] } else { &[(0, 1)] };
        let copied = self.copied.map(copy::settings).transpose()?;
        let sizes = match &copied {
            Some(settings) => {
                let need = |&(from, _): &(usize, usize)| {
                    (endpoints[from].name(), vec![vec![Copy::need(&endpoints[from], settings)]])
                };
                let needs: Vec<_> = numbers.iter().map(need).collect();
                memory::shares(&needs, settings.pool, Memory::now())?
            }
            None => Vec::new(),
        };
        let copies = sizes.into_iter().flat_map(|pool| Some(Settings { pool, ..copied.clone()? }));
        let copies: Vec<Settings> = copies.collect();
        let (mut directions, mut ports, mut contexts) = (Vec::<OneDirection>::new(), Vec::new(), Vec::new());
        for (id, &(from, to)) in (0..).zip(numbers) {
            let pair = [&endpoints[from], &endpoints[to]];
            let both = match directions.first() {
                Some(forth) => Both::Back(forth),
                None if self.both => Both::Forth,
                None => Both::No,
            };
            let copy =
                copies.get(id as usize).map(|settings| Copy::plan(pair[0], id, settings)).transpose()?;
            let (direction, port) = OneDirection::load(
                [from, to],
                pair,
                both,
                if self.rules.is_some() { Front::Rules } else { Front::Filter(self.filter.as_ref()) },
                sockets,
                copy,
                self.lose_tags,
            )?;
            directions.push(direction);
            ports.extend(port);
            contexts.push(endpoint::context(pair[0])?);
        }
        let rules = match &self.rules {
            Some(rules) => {
                let gates = directions.iter().map(OneDirection::gate).collect();
                let tags_lost = directions.iter().any(|direction| direction.receiver.tags_lost);
                let (from, namespace) = (&endpoints[0], self.endpoints[0].namespace.as_ref());
                let device = &from.device;
                let put = || before::put(device, namespace, rules, gates, tags_lost);
                Some(from.inside(put)??)
            }
            None => None,
        };
        if let Some(rules) = &self.rules {
            for direction in &mut directions {
                let driver = endpoints[direction.from()].device.driver.as_deref();
                direction.notes.extend(rules.against_xdp(driver).map(str::to_owned));
            }
        }
        let copy = copied.map(|settings| Capture::of(ports, contexts, &settings)).transpose()?;
        let pumps = pumps(&endpoints, &directions)?;
        // Everything is loaded before anything is attached, since attaching may make a driver pause its traffic.
        for (direction, name) in directions.iter_mut().zip(pins::DIRECTIONS) {
            direction.attach(&endpoints[direction.from()])?;
            if let Some(pins) = &pins {
                direction.pin(&pins.direction(name)?)?;
            }
            if self.promiscuous {
                let endpoint = &mut endpoints[direction.from()];
                match &pins {
                    Some(pins) => endpoint::make_promiscuous(endpoint, &pins.promiscuous(name))?,
                    None => endpoint.make_promiscuous()?,
                }
            }
        }
        if let Some(pins) = &mut pins {
            pins.keep();
        }
        let events = endpoints.iter().filter_map(Endpoint::first_event).collect();
        let (began, update_lock) = (Instant::now(), UpdateLock::default());
        Ok(Forward {
            endpoints,
            directions,
            rules,
            pumps,
            copy,
            pins,
            events,
            began,
            ended: None,
            update_lock,
        })
    }
}

impl Forward {
    /// Prepares forwarding from interface `from` to interface `to`, both in the network namespace of the thread that
    /// calls [`ForwardBuilder::open`].
    pub fn between(from: impl Into<String>, to: impl Into<String>) -> ForwardBuilder {
        let here = |name: String| Wanted { namespace: None, name, queues: None };
        ForwardBuilder {
            endpoints: [here(from.into()), here(to.into())],
            both: false,
            filter: None,
            rules: None,
            on_exit: OnExit::default(),
            promiscuous: true,
            lose_tags: false,
            copied: None,
        }
    }

    /// Returns the directions in which packets are forwarded.
    pub fn directions(&self) -> Vec<DirectionInfo> {
        let how = self.pumps.as_ref().map_or_else(|| "in the kernel".to_owned(), Pumps::detail);
        self.directions.iter().map(|direction| direction.info(&self.endpoints, &how)).collect()
    }

    /// Returns the copy of forwarded packets, if requested; only once. It is complete if forwarding is
    /// [stopped](Self::stop) before it.
    pub fn take_copy(&mut self) -> Option<Capture> {
        self.copy.take()
    }

    /// Returns the bpffs directory of forwarding that continues without this process.
    pub fn pinned(&self) -> Option<&std::path::Path> {
        self.pins.as_ref().map(Pins::directory)
    }

    /// Returns a handle for changing the filters from any thread. The interface number of a target is that of the
    /// direction.
    pub fn filter_control(&self) -> FilterControl {
        let targets = self
            .directions
            .iter()
            .zip(0..)
            .map(|(direction, id)| direction.filter_target(&self.endpoints[direction.from()], id));
        FilterControl::new(targets, &self.update_lock).ruled(self.rules.is_some())
    }

    /// Returns what [rules](ForwardBuilder::rules) have counted, in both directions together; `None`: there are none.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn rules(&mut self) -> Result<Option<Reading>, Error> {
        self.rules.as_mut().map(InForce::read).transpose()
    }

    /// Replaces the rules, as [`Capture::replace_rules`] does.
    ///
    /// # Errors
    ///
    /// There are none, a filter is invalid, or the kernel refuses the programs. The old rules stay in force.
    pub fn replace_rules(&mut self, rules: &Rules) -> Result<(), Error> {
        let name = self.endpoints[0].name().to_owned();
        match &mut self.rules {
            Some(in_force) => in_force.replace(&name, rules),
            None => {
                let why =
                    "cannot replace rules: this forwarding was started without; try another one with rules";
                Err(Error::setting(Setting::Rules, why))
            }
        }
    }

    /// Waits up to `wait` for changes of the interfaces. Returns early on a signal. If rules learn, or have limits, call it about once a
    /// second: it makes room for what they remember.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`], after that event was returned.
    pub fn wait(&mut self, wait: Duration) -> Result<Vec<Event>, Error> {
        self.rules.as_mut().map_or(Ok(()), InForce::sweep)?;
        if self.events.is_empty() {
            if let Some(endpoint) = self.endpoints.iter().find(|endpoint| endpoint.is_gone()) {
                return Err(Error::InterfaceGone { name: endpoint.name().to_owned() });
            }
            if self.ended.is_none() && self.pumps.as_ref().is_some_and(Pumps::is_broken) {
                let what = "a handler panicked; its packets are no longer forwarded".to_owned();
                return Err(Error::Forward(Problem::new(what, "its panic message says where")));
            }
            let mut fds: Vec<PollFd<'_>> = self.endpoints.iter().filter_map(Endpoint::fd).collect();
            match poll(&mut fds, Some(&Timespec::try_from(wait).unwrap_or(FOREVER))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(CallError::new("wait for interface events", error).into()),
            }
            for endpoint in &mut self.endpoints {
                self.events.extend(endpoint.listen()?);
            }
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// Returns what happened to every packet so far. After [`stop`](Self::stop) the totals add up.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn stats(&mut self) -> Result<ForwardStats, Error> {
        for endpoint in &mut self.endpoints {
            endpoint.count()?;
        }
        let elapsed = self.ended.unwrap_or_else(Instant::now) - self.began;
        let pumps = self.pumps.as_ref();
        let account = |(number, direction): (usize, &OneDirection)| {
            let add = |queue, counters: &mut ForwardCounters| {
                pumps
                    .into_iter()
                    .for_each(|pumps| pumps.add_to(ForwardLane { direction: number, queue }, counters));
            };
            direction.stats(&self.endpoints, add)
        };
        let directions = self.directions.iter().enumerate().map(account).collect::<Result<_, _>>()?;
        Ok(ForwardStats { elapsed, directions })
    }

    /// Stops forwarding, unless it should continue ([`OnExit::Open`]). When this returns, nothing is forwarded any more
    /// and the account is final. Further calls do nothing.
    ///
    /// # Errors
    ///
    /// A program cannot be detached; the others are.
    pub fn stop(&mut self) -> Result<(), Error> {
        if self.ended.is_some() || self.pins.is_some() {
            return Ok(());
        }
        let mut result = Ok(());
        for direction in &mut self.directions {
            let detached = direction.detach();
            result = result.and(detached);
        }
        // Packets queued for the other driver are handed over in the same softirq, so before the grace period ends.
        let waited = self.update_lock.grace.wait().map_err(Error::from);
        result = result.and(waited);
        if let Some(rules) = &mut self.rules {
            result = rules.stop(false).and(result);
        }
        self.pumps.iter_mut().for_each(Pumps::stop);
        self.ended = Some(Instant::now());
        result
    }
}

/// Practically infinite.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
