//! A running capture.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_sys::cpu;

use crate::account::Account;
use crate::builder::{Builder, Delivery, Opening, Settings, Timestamps, Wanted, Window};
use crate::chunk::Chunk;
use crate::event::Event;
use crate::filter::{Exchange, Filter, Place, Turn};
use crate::handlers::{Handler, Plan, Team, Watcher};
use crate::interface::{Device, Interface};
use crate::memory::{self, Memory};
use crate::merge::Merge;
use crate::opened::Opened;
use crate::patience::Patience;
use crate::port::Port;
use crate::site::{self, Site};
use crate::{Error, choose};

/// A running capture, which yields chunks and the account.
#[derive(Debug)]
pub struct Capture {
    interfaces: Vec<Interface>,
    opened: Opened,
    patience: Patience,
    /// Set if packets are delivered in timestamp order.
    merge: Option<Merge>,
    crew: Option<Crew>,
    began: Instant,
    ended: Option<Instant>,
    checked: Instant,
    exchanging: Turn,
}

/// The handlers that have the queues. The watcher ends first.
#[derive(Debug)]
struct Crew {
    watcher: Option<Watcher>,
    team: Arc<Team>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.team.stop();
    }
}

/// Interval for checking interfaces and namespaces while a busy capture never waits.
const CHECK: Duration = Duration::from_secs(1);

/// The longest tick of a kernel's timer: with [`Timestamps::Batch`] a timestamp may be this old.
const TICK: Duration = Duration::from_millis(10);

impl Capture {
    /// Returns a builder with the default options.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn open(
        wanted: &[Wanted],
        settings: &Settings,
        mut tell: impl FnMut(Opening<'_>),
    ) -> Result<Self, Error> {
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
        // Find all devices before opening the first: opening one may make its driver pause traffic.
        let find = |one: &Wanted| site::inside(one.namespace.as_ref(), || Device::find(one))?;
        let mut devices = wanted.iter().map(find).collect::<Result<Vec<_>, Error>>()?;
        let mut settings = settings.clone();
        if let Some(filter) = settings.filter.take() {
            let link_types = devices.iter().map(Device::link_type).collect::<Result<Vec<_>, Error>>()?;
            let filter = filter.among(link_types);
            devices.iter_mut().try_for_each(|device| device.want(&filter))?;
            settings.filter = Some(filter);
        }
        let settings = &settings;
        let mut needs = Vec::new();
        for device in &devices {
            needs.push((device.link.name.as_str(), choose::needs(device, settings)?));
        }
        let sizes = memory::shares(&needs, settings.pool, Memory::now())?;
        let mut ports = Vec::new();
        for ((((one, device), &place), pool), id) in
            wanted.iter().zip(&devices).zip(&places).zip(sizes).zip(0u32..)
        {
            tell(Opening { name: &one.name, before: ports.len(), all: wanted.len() });
            let settings = Settings { pool, ..settings.clone() };
            let open = || Port::open(one, device, id, place, &settings);
            ports.push(site::inside(one.namespace.as_ref(), open)??);
        }
        Ok(Self::of(ports, sites, settings))
    }

    /// Makes a capture of open sources. `Port::site` is an index into `sites`.
    pub(crate) fn of(mut ports: Vec<Port>, sites: Vec<Site>, settings: &Settings) -> Self {
        let window = |window| match window {
            Window::Of(window) => window,
            Window::Usual => {
                let lag = ports.iter().map(|port| port.source.lag()).max().unwrap_or_default();
                if settings.timestamps == Timestamps::Batch { lag + TICK } else { lag }
            }
        };
        let now = Instant::now();
        Self {
            merge: settings.by_time.map(|one| Merge::new(window(one))),
            interfaces: ports.iter().map(|port| port.interface.clone()).collect(),
            opened: Opened {
                events: ports.iter().filter_map(Port::first_event).collect(),
                outlets: ports.iter_mut().flat_map(Port::give_outlets).collect(),
                bells: ports.iter().flat_map(|port| port.source.bells()).collect(),
                ports,
                sites,
            },
            patience: Patience::new(settings.delivery),
            crew: None,
            began: now,
            ended: None,
            checked: now,
            exchanging: Turn::default(),
        }
    }

    /// Returns the interfaces, in the order in which they were requested.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns a handle that replaces the interfaces' filters, from any thread or on behalf of another process.
    pub fn exchange(&self) -> Exchange {
        Exchange::new(self.opened.ports.iter().map(Port::seat), &self.exchanging)
    }

    /// Replaces the filter of all interfaces; `None` captures everything. Each packet meets either the old or the new
    /// filter, never both and never neither.
    ///
    /// # Errors
    ///
    /// The expression is wrong, a source cannot run the program, or the process may not load one. All interfaces keep
    /// the previous filter; [`Error::FilterPutBack`] if some had the new one for a moment.
    pub fn set_filter(&mut self, filter: Option<&Filter>) -> Result<(), Error> {
        let exchange = self.exchange();
        exchange.put(&Place::make_all(&exchange.places()?, filter)?)?;
        for interface in &mut self.interfaces {
            interface.filter = filter.map(Filter::label);
        }
        Ok(())
    }

    /// Moves the queues to handlers, one per thread, for good. From then on [`Capture::next`] only waits for events,
    /// but must still be called. After [`Capture::stop`] the handlers take what is left and finish.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), weir::Error> {
    /// use std::ops::ControlFlow;
    /// let mut capture = weir::Capture::builder().interface("eth0").open()?;
    /// for handler in capture.handlers(&weir::Plan::new(4).advanced(50))? {
    ///     std::thread::spawn(|| {
    ///         let mut bytes = 0; // a state of its own
    ///         handler.run(|share| {
    ///             bytes += share.packets().map(|packet| packet.data.len()).sum::<usize>();
    ///             ControlFlow::Continue(())
    ///         })
    ///     });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The plan does not fit the queues; handlers were requested before; or the watcher thread cannot be started.
    pub fn handlers(&mut self, plan: &Plan) -> Result<Vec<Handler>, Error> {
        if self.crew.is_some() {
            return Err(Error::Options("the queues have been given to handlers before".into()));
        }
        if self.merge.is_some() {
            let why =
                "packets in the order of time are for one thread: ask for no handlers, or no order of time";
            return Err(Error::Options(why.into()));
        }
        let targets = self.interfaces.iter().find_map(|interface| interface.targets);
        let seating = plan.fit(self.opened.outlets.len(), targets, cpu::possible()?)?;
        let delivery = self.patience.delivery();
        let (team, handlers) = Team::new(std::mem::take(&mut self.opened.outlets), seating, delivery);
        let crew = self.crew.insert(Crew { watcher: None, team });
        // The watcher waits for the bells now, and this thread has no queue to poll.
        crew.watcher = Some(Watcher::start(&crew.team, std::mem::take(&mut self.opened.bells))?);
        self.patience = Patience::new(Delivery::Adaptive);
        Ok(handlers)
    }

    /// Returns what has happened to the interfaces since the last call, up to the last thousand events.
    /// [`Capture::next`] detects events, and returns early for them if it is waiting.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.opened.events)
    }

    /// Returns the next chunk, waiting up to `wait` for one. `None` means that there was no chunk, that a signal
    /// arrived, or that something happened to an interface ([`Capture::events`]). After [`Capture::stop`] it does not
    /// wait, and `None` means that nothing is left.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`] once the last interface is gone and its packets were taken (handlers may still be
    /// taking them); [`Error::NoHandlers`]; shared memory was overwritten. Call [`Capture::stop`] to take what was
    /// captured before.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Chunk>, Error> {
        if self.ended.is_some() {
            return match &self.crew {
                Some(crew) => crew.team.rest(),
                None => self.rest(),
            };
        }
        self.check()?;
        if self.crew.as_ref().is_some_and(|crew| !crew.team.is_manned()) {
            return Err(Error::NoHandlers);
        }
        if self.opened.ports.iter().all(Port::is_gone) {
            return match (self.rest()?, self.interfaces.last()) {
                (None, Some(interface)) => Err(Error::InterfaceGone { name: interface.name.clone() }),
                (chunk, _) => Ok(chunk),
            };
        }
        let deadline = Instant::now() + wait;
        match &mut self.merge {
            None => self.patience.next(&mut self.opened, deadline),
            Some(merge) => self.opened.next_by_time(merge, &mut self.patience, deadline),
        }
    }

    /// Makes [`Capture::next`] deliver what is captured by now instead of waiting for a full batch
    /// ([`Delivery::Batched`]).
    pub fn hurry(&mut self) {
        self.patience.hurry();
    }

    /// Returns the next of the remaining chunks, when nothing more arrives.
    fn rest(&mut self) -> Result<Option<Chunk>, Error> {
        match &mut self.merge {
            None => self.patience.rest(&mut self.opened),
            Some(merge) => merge.rest(&mut self.opened.outlets),
        }
    }

    /// Calls `handler` with each chunk until it returns [`ControlFlow::Break`], then stops the capture. What is left in
    /// the pool can still be taken with [`Capture::next`].
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

    /// Stops the capture. Nothing more is captured, and the account is final except for what [`Capture::next`] still
    /// returns. A second call does nothing.
    ///
    /// # Errors
    ///
    /// A source cannot be detached; the others are detached nevertheless.
    pub fn stop(&mut self) -> Result<(), Error> {
        if self.ended.is_some() {
            return Ok(());
        }
        let mut result = Ok(());
        for port in &mut self.opened.ports {
            result = port.source.stop().and(result);
        }
        if let Some(crew) = &mut self.crew {
            crew.team.stop();
            crew.watcher = None;
        }
        self.ended = Some(Instant::now());
        result
    }

    /// Returns the account of every packet so far. While packets arrive, the counters are read at slightly different
    /// moments; once the capture is stopped, they add up.
    ///
    /// # Errors
    ///
    /// The kernel does not report the devices' counters.
    pub fn account(&mut self) -> Result<Account, Error> {
        let links = self.opened.sites.iter().map(Site::links).collect::<Result<Vec<_>, Error>>()?;
        let elapsed = self.ended.unwrap_or_else(Instant::now) - self.began;
        let interfaces = self.opened.ports.iter_mut().map(|port| port.account(&links[port.site]));
        let interfaces = interfaces.collect();
        let handlers = self.crew.as_ref().map(|crew| crew.team.account()).unwrap_or_default();
        let time_order = self.merge.as_ref().map(Merge::account);
        Ok(Account { elapsed, interfaces, handlers, time_order })
    }

    /// Checks interfaces and namespaces once a second.
    fn check(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.checked + CHECK {
            return Ok(());
        }
        self.checked = now;
        self.opened.check()
    }
}

/// Rejects an interface that is requested twice in the same namespace, by name or by `any`.
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
