//! A running capture.

pub(crate) mod builder;
pub(crate) mod choose;
pub(crate) mod interface;
mod interfaces;
pub(crate) mod observer;
mod opened;

use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_sys::cpu;

use self::interface::CaptureInterface;
use self::interfaces::Shared;
use self::observer::Observer;
use self::opened::Opened;
use crate::chunk::Chunk;
use crate::deadline::after;
use crate::filter::Filter;
use crate::live::filter_control::{FilterControl, Toggle, UpdateLock};
use crate::live::handlers::{Handler, Plan, Watcher, WorkerGroup};
use crate::live::interface::event::{Event, Heard};
use crate::live::interface::{Census, Device, Interface};
use crate::live::merge::Merge;
use crate::live::namespace::context::{NamespaceContext, inside};
use crate::live::namespace::promiscuity::Promiscuity;
use crate::live::request::memory::{self, Memory};
use crate::live::request::{Opening, Settings, Wanted};
use crate::live::ruled::InForce;
use crate::live::rules::{Reading, RuleInfo, Rules};
use crate::live::settings::{Delivery, PoolSize, Timestamps, Window};
use crate::live::side_by_side::side_by_side;
use crate::live::wait::next::Next;
use crate::live::wait::stop::StopHandle;
use crate::live::wait::strategy::{Queues as _, Step, WaitStrategy, Woken};
use crate::stats::{CaptureStats, Unsorted};
use crate::{Error, ModeKind, Setting, SourceKind, Statistics};

/// A running capture, which yields chunks and the account.
#[derive(Debug)]
pub struct Capture {
    interfaces: Vec<Interface>,
    opened: Opened,
    wait_strategy: WaitStrategy,
    /// Set if packets are delivered in timestamp order.
    merge: Option<Merge>,
    workers: Option<Workers>,
    ended: bool,
    heard: Heard,
    checked: Instant,
    update_lock: UpdateLock,
    pub(crate) statistics: Vec<Statistics>,
}

/// The handlers that have the queues. The watcher ends first.
#[derive(Debug)]
struct Workers {
    watcher: Option<Watcher>,
    group: Arc<WorkerGroup>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.group.stop();
    }
}

/// An interface to be opened: its device, the index of its namespace, its memory and its number.
type Planned<'a> = (&'a Wanted, &'a Device, usize, PoolSize, u32);

/// Interval for checking interfaces and namespaces while a busy capture never waits.
const CHECK: Duration = Duration::from_secs(1);

/// Longest wait of batches that are due in time order, unless a queue has enough bytes before.
const SLACK: Duration = Duration::from_millis(8);

/// Time between checks whether handlers have finished.
const SOON: Duration = Duration::from_millis(1);

/// The longest tick of a kernel's timer: with [`Timestamps::Batch`] a timestamp may be this old.
const TICK: Duration = Duration::from_millis(10);

impl Capture {
    pub(crate) fn open(
        wanted: &[Wanted],
        settings: &Settings,
        mut tell: impl FnMut(Opening<'_>) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let mut contexts: Vec<NamespaceContext> = Vec::new();
        let mut places = Vec::new();
        for (number, one) in wanted.iter().enumerate() {
            let place = match contexts.iter().position(|context| context.is(one.namespace.as_ref())) {
                Some(place) => place,
                None => {
                    contexts.push(NamespaceContext::open(one.namespace.as_ref())?);
                    contexts.len() - 1
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
        let mut censuses: Vec<Option<Census>> = contexts.iter().map(|_| None).collect();
        let mut devices = Vec::new();
        for (one, &place) in wanted.iter().zip(&places) {
            let census = &mut censuses[place];
            let find = || {
                let census = match census {
                    Some(census) => census,
                    None => census.insert(Census::take()?),
                };
                Device::find_in(census, one)
            };
            devices.push(inside(one.namespace.as_ref(), find)??);
        }
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
        let promiscuity: Vec<_> = contexts.iter().map(|_| Promiscuity::default()).collect();
        let planned = wanted.iter().zip(&devices).zip(&places).zip(sizes).zip(0u32..);
        let planned: Vec<Planned<'_>> =
            planned.map(|((((one, device), place), pool), id)| (one, device, *place, pool, id)).collect();
        let all = wanted.len();
        let tell =
            |&(one, ..): &Planned<'_>, before| Opening { name: &one.name, before, all }.told(&mut tell);
        let ports = side_by_side(&planned, tell, |&(one, device, place, pool, id)| {
            let shared_promiscuity = promiscuity[place].clone();
            let namespace = one.namespace.clone();
            let settings = Settings { pool, shared_promiscuity, namespace, ..settings.clone() };
            let open = || CaptureInterface::open(one, device, id, place, &settings);
            inside(one.namespace.as_ref(), open)?
        });
        Self::of(ports?, contexts, settings)
    }

    /// Makes a capture of open sources. `CaptureInterface::context` is an index into `contexts`.
    pub(crate) fn of(
        mut ports: Vec<CaptureInterface>,
        contexts: Vec<NamespaceContext>,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let outlets: Vec<_> = ports.iter_mut().flat_map(CaptureInterface::give_outlets).collect();
        // The kernel's programs write the records of a queue one after the other: a single queue is in order.
        let written_by_programs = ports.iter().all(|port| {
            matches!(port.interface.source, SourceKind::Xdp | SourceKind::Tc | SourceKind::XdpTc)
        });
        let in_order = outlets.len() == 1 && written_by_programs;
        let window = |window| match window {
            Window::Of(window) => window,
            Window::Usual if in_order => Duration::ZERO,
            Window::Usual => {
                let lag = ports.iter().map(|port| port.source.lag()).max().unwrap_or_default();
                if settings.timestamps == Timestamps::Batch { lag + TICK } else { lag }
            }
        };
        let each_has_a_time = settings.timestamps == Timestamps::Kernel;
        let needs_no_order = settings.or_unsorted && outlets.len() == 1;
        let merge = settings.by_time.filter(|_| !needs_no_order).map(|one| {
            let merge = Merge::new(window(one));
            let merge = if settings.or_unsorted { merge.giving_up() } else { merge };
            match one {
                Window::Usual if in_order => merge.in_order(),
                _ if written_by_programs && each_has_a_time => merge.counted(),
                _ => merge,
            }
        });
        let interfaces = ports.iter().map(|port| port.interface.clone()).collect();
        let notifiers = ports.iter().flat_map(|port| port.source.notifiers()).collect();
        let order = merge.as_ref().map(Merge::counts).cloned();
        Ok(Self {
            interfaces,
            opened: Opened::new(outlets, notifiers, Shared::new(ports, contexts, order))?,
            wait_strategy: WaitStrategy::new(settings.delivery),
            merge,
            workers: None,
            ended: false,
            heard: Heard::default(),
            checked: Instant::now(),
            update_lock: UpdateLock::default(),
            statistics: Vec::new(),
        })
    }

    /// Returns the interfaces, in the order in which they were requested.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Returns a handle that replaces the interfaces' filters, from any thread or on behalf of another process.
    pub fn filter_control(&self) -> FilterControl {
        let switch = |one: &Statistics| Some(Arc::new(one.switch()?.clone()) as Arc<dyn Toggle>);
        let switches = self.statistics.iter().filter_map(switch).collect();
        let mut interfaces = self.opened.shared.lock();
        let ruled = interfaces.list.iter_mut().any(|port| port.source.rules().is_some());
        let targets = interfaces.list.iter().map(CaptureInterface::filter_target);
        FilterControl::new(targets, &self.update_lock).switching(switches).ruled(ruled)
    }

    /// Replaces the filter of all interfaces; `None` captures everything. Each packet meets either the old or the new
    /// filter, never both and never neither.
    ///
    /// # Errors
    ///
    /// The expression is wrong, a source cannot run the program, or the process may not load one. All interfaces keep
    /// the previous filter; [`Error::FilterPutBack`] if some had the new one for a moment.
    pub fn set_filter(&mut self, filter: Option<&Filter>) -> Result<(), Error> {
        self.filter_control().set_filter(filter)?;
        for interface in &mut self.interfaces {
            interface.filter = filter.map(Filter::label);
        }
        Ok(())
    }

    /// Returns what the [rules](crate::Builder::rules) of each interface have counted, in the order of the interfaces; nothing if there
    /// are none. After [`stop`](Self::stop) the numbers are final.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn rules(&self) -> Result<Vec<Reading>, Error> {
        let mut interfaces = self.opened.shared.lock();
        interfaces.list.iter_mut().filter_map(|port| port.source.rules()).map(InForce::read).collect()
    }

    /// Hands out what was [counted](crate::Builder::count_flows) since it was handed out before, in no order; nothing if flows are not
    /// counted. It looks at all ways, which takes some milliseconds for a million. After [`stop`](Self::stop) it hands out the rest.
    #[cfg(feature = "flows")]
    pub fn take_counted(&mut self, mut each: impl FnMut(crate::flows::Counted)) {
        let mut interfaces = self.opened.shared.lock();
        for port in &mut interfaces.list {
            let interface = u16::try_from(port.interface.id).unwrap_or(u16::MAX);
            if let Some(ways) = port.source.ways() {
                ways.take(0..ways.len(), &mut |tally| each(crate::flows::counted(&tally, interface)));
            }
        }
    }

    /// Replaces the rules of all interfaces. A packet meets either all old rules or all new ones. Rules with the name and
    /// the action of an old one go on counting; what was learned is forgotten.
    ///
    /// # Errors
    ///
    /// The capture was opened without rules, a filter is invalid, or the kernel refuses the programs. The interfaces before the
    /// one that the error names have the new rules, the others keep the old ones.
    pub fn replace_rules(&mut self, rules: &Rules) -> Result<(), Error> {
        if self.mode_is_exclusive() {
            rules.check_exclusive()?;
        }
        let mut interfaces = self.opened.shared.lock();
        let mut some = false;
        for port in &mut interfaces.list {
            let name = port.interface.name.clone();
            if let Some(in_force) = port.source.rules() {
                in_force.replace(&name, rules)?;
                some = true;
            }
        }
        match some {
            true => Ok(()),
            false => {
                let why = "cannot replace rules: this capture was opened without; try another one with rules";
                Err(Error::setting(Setting::Rules, why))
            }
        }
    }

    /// Returns the rules in force; `None`: there are none.
    pub fn rules_in_force(&self) -> Option<Vec<RuleInfo>> {
        let mut interfaces = self.opened.shared.lock();
        interfaces.list.iter_mut().find_map(|port| Some(port.source.rules()?.rules.clone()))
    }

    fn mode_is_exclusive(&self) -> bool {
        self.interfaces.iter().any(|interface| interface.mode == ModeKind::Exclusive)
    }

    /// Returns the statistics of each interface, in the order of the interfaces; none unless
    /// [`Builder::statistics`](crate::Builder::statistics) asked for some. They count until the capture is
    /// [stopped](Self::stop), or [switched off](Statistics::switch).
    pub fn statistics(&mut self) -> &mut [Statistics] {
        &mut self.statistics
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
        if self.workers.is_some() {
            return Err(Error::setting(Setting::Handlers, "the queues already belong to handlers"));
        }
        if self.merge.is_some() {
            let why = "sorting by time takes one thread: choose either handlers or sorting";
            return Err(Error::conflict(Setting::ByTime, Setting::Handlers, why));
        }
        let targets = self.interfaces.iter().find_map(|interface| interface.targets);
        let assignment = plan.fit(self.opened.outlets.len(), targets, cpu::possible()?)?;
        let delivery = self.wait_strategy.delivery();
        let group = Arc::new(WorkerGroup::new(std::mem::take(&mut self.opened.outlets), assignment));
        let handlers = Handler::all(&group, delivery);
        self.opened.shared.give_to(&group);
        let workers = self.workers.insert(Workers { watcher: None, group });
        // The watcher waits for the notifiers now, and this thread has no queue to poll.
        workers.watcher = Some(Watcher::start(&workers.group, self.opened.give_notifiers())?);
        self.wait_strategy = WaitStrategy::new(Delivery::Adaptive);
        Ok(handlers)
    }

    /// Returns whether packets are delivered in timestamp order ([`Builder::by_time`](crate::Builder::by_time)).
    pub fn is_by_time(&self) -> bool {
        self.merge.is_some()
    }

    /// Returns the packets that were not delivered in timestamp order since the last call, if order was
    /// [asked for](crate::Builder::by_time).
    pub fn unsorted(&mut self) -> Option<Unsorted> {
        self.merge.as_ref()?.counts().news()
    }

    /// Returns what has happened to the interfaces since the last call, up to the last thousand events.
    /// [`Capture::next`] detects events, and returns early for them if it is waiting.
    pub fn events(&mut self) -> Vec<Event> {
        self.opened.shared.events(&mut self.heard)
    }

    /// Returns the next chunk, waiting up to `wait` for one. [`Next::NotYet`] means that there was none, that a signal
    /// arrived, or that something happened to an interface ([`Capture::events`]). After [`Capture::stop`] this returns what
    /// is left, waiting only for handlers that are still taking it, and then [`Next::Over`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), weir::Error> {
    /// # use std::time::Duration;
    /// use weir::Next;
    /// let mut capture = weir::Capture::builder().interface("eth0").open()?;
    /// let stop = capture.stop_handle(); // for another thread
    /// loop {
    ///     match capture.next(Duration::from_secs(1))? {
    ///         Next::Taken(chunk) => println!("{} packets", chunk.len()),
    ///         Next::NotYet => println!("nothing to do"),
    ///         Next::Over => break,
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`] once the last interface is gone and its packets were taken (handlers may still be
    /// taking them); [`Error::NoHandlers`]; shared memory was overwritten. Call [`Capture::stop`] to take what was
    /// captured before.
    pub fn next(&mut self, wait: Duration) -> Result<Next<Chunk>, Error> {
        let mut now = Instant::now();
        let deadline = after(now, wait);
        self.opened.waker.stay_awake()?;
        loop {
            match self.look(now)? {
                Step::Taken(chunk) => return Ok(Next::Taken(chunk)),
                Step::Over => return Ok(Next::Over),
                // A nap that the deadline ends asks for one more check; here that would go on until handlers finish.
                Step::Nap(_) if self.ended && now >= deadline => return Ok(Next::NotYet),
                step => {
                    let step = step.by(self.next_check());
                    let again = self.wait_strategy.wait(&mut self.opened, step, deadline)?;
                    if !again && !self.is_to_end() {
                        return Ok(Next::NotYet);
                    }
                }
            }
            now = Instant::now();
        }
    }

    /// Returns the next chunk without waiting. [`Delivery`](crate::Delivery) decides what is handed over and how soon, as
    /// in [`Capture::next`].
    ///
    /// The capture's descriptor ([`AsFd`]) is readable until this returns [`Next::NotYet`], and then again when there is
    /// something to take, an event, or an error, or when the capture is over. An event loop waits for the descriptor, calls
    /// this until it returns [`Next::NotYet`], and then asks for [`Capture::events`]. Once it is [`Next::Over`], the
    /// descriptor stays readable.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rustix::event::{PollFd, PollFlags, poll};
    /// use weir::Next;
    /// let mut capture = weir::Capture::builder().interface("eth0").open()?;
    /// loop {
    ///     match capture.try_next()? {
    ///         Next::Taken(chunk) => println!("{} packets", chunk.len()),
    ///         Next::NotYet => _ = poll(&mut [PollFd::new(&capture, PollFlags::IN)], None)?,
    ///         Next::Over => break,
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Capture::next`].
    pub fn try_next(&mut self) -> Result<Next<Chunk>, Error> {
        if self.opened.waker.is_asleep() && self.opened.sleep(Duration::ZERO)? == Woken::Notified {
            self.wait_strategy.rung(&mut self.opened);
        }
        let now = Instant::now();
        let step = self.look(now).map(|step| step.by(self.next_check()));
        let waker = &mut self.opened.waker;
        match step {
            Ok(Step::Nap(until)) => waker.sleep_until(until)?,
            Ok(Step::Sleep(until)) => waker.sleep_until(until.unwrap_or(now + CHECK))?,
            Ok(Step::Taken(_) | Step::Spin | Step::Over) | Err(_) => waker.stay_awake()?,
        }
        Ok(match step? {
            Step::Taken(chunk) => Next::Taken(chunk),
            Step::Spin | Step::Nap(_) | Step::Sleep(_) => Next::NotYet,
            Step::Over => Next::Over,
        })
    }

    /// Returns a handle that stops the capture from another thread or a signal handler.
    pub fn stop_handle(&self) -> StopHandle {
        self.opened.stop.clone()
    }

    /// Returns an observer, which reads counters and events in another thread. It starts at the capture's first event.
    pub fn observer(&self) -> Observer {
        Observer::new(&self.opened.shared)
    }

    /// Checks everything once, without waiting.
    fn look(&mut self, now: Instant) -> Result<Step<Chunk>, Error> {
        if self.is_to_end() {
            self.stop()?;
        }
        if self.ended {
            let chunk = match &self.workers {
                Some(workers) => workers.group.rest()?,
                None => self.rest()?,
            };
            return Ok(match chunk {
                Some(chunk) => Step::Taken(chunk),
                // Handlers are still taking what is left.
                None if self.workers.as_ref().is_some_and(|workers| workers.group.is_running()) => {
                    Step::Nap(now + SOON)
                }
                None => Step::Over,
            });
        }
        self.check(now)?;
        if self.workers.as_ref().is_some_and(|workers| !workers.group.is_running()) {
            return Err(Error::NoHandlers);
        }
        if self.opened.gone {
            return match (self.rest()?, self.interfaces.last()) {
                (None, Some(interface)) => Err(Error::InterfaceGone { name: interface.name.clone() }),
                (chunk, _) => Ok(chunk.map_or(Step::Over, Step::Taken)),
            };
        }
        let Some(merge) = &mut self.merge else { return self.wait_strategy.step(&mut self.opened, now) };
        loop {
            if let Some(chunk) = merge.rushed(&mut self.opened.outlets)? {
                return Ok(Step::Taken(chunk));
            }
            if let Some(chunk) = merge.next() {
                return Ok(Step::Taken(chunk));
            }
            if let Some(until) = self.wait_strategy.napping(now) {
                return Ok(Step::Nap(until).by(merge.due()));
            }
            let found = merge.found();
            merge.look(&mut self.opened.outlets, Instant::now)?;
            merge.relieve(&self.opened.outlets);
            if !merge.is_due() {
                merge.lull(&mut self.opened.outlets, |outlet| outlet.gauge().at_rest(), Instant::now)?;
            }
            if merge.found() > found {
                self.wait_strategy.busy(&mut self.opened, now);
            }
            if merge.is_due() {
                continue;
            }
            match self.wait_strategy.step(&mut self.opened, now)? {
                Step::Taken(chunk) => merge.put(chunk),
                step => {
                    // Whoever takes batches is not woken for each window.
                    let slack = match self.wait_strategy.delivery() {
                        Delivery::Batched { timeout, .. } => timeout.min(SLACK),
                        Delivery::Adaptive | Delivery::Active => Duration::ZERO,
                    };
                    return Ok(step.by(merge.due().map(|due| due + slack)));
                }
            }
        }
    }

    /// Whether a [`StopHandle`] has asked for a stop that is still to be carried out.
    fn is_to_end(&self) -> bool {
        !self.ended && self.opened.stop.is_stopped()
    }

    /// Makes [`Capture::next`] deliver what is captured by now instead of waiting for a full batch
    /// ([`Delivery::Batched`]).
    pub fn hurry(&mut self) {
        self.wait_strategy.hurry();
        // If it fails, the event loop wakes when the batch is due.
        let _ = self.opened.waker.stay_awake();
    }

    /// Returns the next of the remaining chunks, when nothing more arrives.
    fn rest(&mut self) -> Result<Option<Chunk>, Error> {
        match &mut self.merge {
            None => self.wait_strategy.rest(&mut self.opened),
            Some(merge) => merge.rest(&mut self.opened.outlets),
        }
    }

    /// Calls `handler` with each chunk until it returns [`ControlFlow::Break`], then stops the capture. What is left in
    /// the pool can still be taken with [`Capture::next`]. After [`StopHandle::stop`], `handler` gets what is left before this
    /// returns; if the queues belong to [handlers](Capture::handlers), this returns once they have finished.
    ///
    /// # Errors
    ///
    /// Those of [`Capture::next`].
    pub fn run(&mut self, mut handler: impl FnMut(&Chunk) -> ControlFlow<()>) -> Result<(), Error> {
        loop {
            match self.next(CHECK)? {
                Next::Taken(chunk) if handler(&chunk).is_break() => return self.stop(),
                Next::Taken(_) | Next::NotYet => {}
                Next::Over => return Ok(()),
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
        if self.ended {
            return Ok(());
        }
        let result = self.opened.shared.lock().stop();
        if let Some(workers) = &mut self.workers {
            workers.group.stop();
            workers.watcher = None;
        }
        self.ended = true;
        let counted = self.statistics.iter_mut().map(Statistics::stop).fold(Ok(()), Result::and);
        self.opened.waker.stay_awake()?;
        result.and(counted)
    }

    /// Returns the account of every packet so far. While packets arrive, the counters are read at slightly different
    /// moments; once the capture is stopped, they add up.
    ///
    /// # Errors
    ///
    /// The kernel does not report the devices' counters.
    pub fn stats(&self) -> Result<CaptureStats, Error> {
        self.opened.shared.stats()
    }

    /// Checks interfaces and namespaces once a second.
    fn check(&mut self, now: Instant) -> Result<(), Error> {
        if now < self.checked + CHECK {
            return Ok(());
        }
        self.checked = now;
        self.opened.check()
    }

    /// Returns when the interfaces are looked at again. After the stop nobody does.
    fn next_check(&self) -> Option<Instant> {
        (!self.ended).then(|| self.checked + CHECK)
    }
}

/// Like [`Capture::try_next`], but if nothing is there, returns once the notifiers are certain to ring, after about a millisecond.
/// Until then, event loops are woken only to check the queues once more. After the stop nothing rings.
///
/// # Errors
///
/// Those of [`Capture::next`].
pub fn next_or_rest(capture: &mut Capture) -> Result<Next<Chunk>, Error> {
    while !capture.ended && !capture.wait_strategy.is_at_rest() {
        let now = Instant::now();
        match capture.look(now)? {
            Step::Taken(chunk) => return Ok(Next::Taken(chunk)),
            Step::Spin | Step::Over => break,
            step => _ = capture.wait_strategy.wait(&mut capture.opened, step, now + SOON)?,
        }
    }
    capture.try_next()
}

impl AsFd for Capture {
    /// Borrows the descriptor for event loops: see [`Capture::try_next`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.waker.as_fd()
    }
}

impl AsRawFd for Capture {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // Observers keep the shared state, but must not keep the sources open.
        if Arc::strong_count(&self.opened.shared) > 1 {
            self.opened.shared.close();
        } else {
            self.opened.shared.lock().release();
        }
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
    Err(Error::InterfaceIncluded { any: any.label(), name: named.label() })
}
