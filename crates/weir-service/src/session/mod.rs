//! A run from its start to its end, in the only order that is safe. Each step is a type that the previous one returns.
//!
//! | step | what happens | why here |
//! |---|---|---|
//! | [`Prepared::new`] | signal handlers | a signal from here on ends the run in order, with its account |
//! | | the descriptor for readiness, systemd's socket | helper processes must not hold the descriptor |
//! | | metrics and control sockets | an address in use is reported before anything happens; root may be required |
//! | | the process that builds filters | forked while there is one thread, with the privilege to load |
//! | | the user to become | lookups read files and open sockets |
//! | | the processes that open files and remove sockets | forked while there is one thread, with the user's rights |
//! | | the process that finds names | forked while there is one thread; it opens its sockets now |
//! | [`Prepared::archive`] | the processes that fill directories | the same |
//! | [`Prepared::launcher`] | the processes that start other programs | the same |
//! | [`Prepared::open`] | the engine | it needs privileges, and its filter is compiled now |
//! | | places of filters to the process that builds them | before the descriptors are out of reach |
//! | | confinement | after everything above, and before the first packet is read |
//! | [`Opened::serve`] | threads for metrics and control | they inherit the confinement |
//! | [`Session::run`] | readiness is reported | everything works, and every packet is captured from now on |
//! | | the loop, then [`Policy::finish`] | |
//! | | sockets are removed, helper processes end | the account has been reported |
//!
//! Between `open` and `serve` the program has its engine and may create files and threads of its own, which are confined.

mod policy;

use std::fmt;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir::filter_control::FilterControl;
use weir::writer::WriterOptions;
use weir::{Capture, Forward, Guard, Statistics};

pub use self::policy::Policy;
use self::policy::Service;
use crate::archive::Archive;
use crate::broker::Helpers;
use crate::confine::{self, Become, Confinement, Needs};
use crate::control::{Account as _, Listening, Socket};
use crate::describer::Describer;
use crate::launcher::{Launcher, Program};
use crate::metrics::{Address, Bound};
use crate::ready::Ready;
use crate::resolver::Resolver;
use crate::{Budget, Error, Until, Warning};

/// What a session does besides receiving packets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the command, for clients of the control socket.
    pub command: &'static str,
    /// Stop after this many packets.
    pub packets: Option<u64>,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Give up all rights that are not needed.
    pub confine: bool,
    /// Whether to become another user.
    pub identity: Identity,
    /// Write a newline to this descriptor when ready.
    pub ready: Option<RawFd>,
    /// Serve metrics here; the account must have [some](crate::control::Account::into_metrics).
    pub metrics: Option<Address>,
    /// Listen for requests here.
    pub control: Option<Socket>,
    /// Start a process that finds the names of hosts.
    pub names: bool,
    /// SIGHUP does not end the session, but has the policy [read its configuration again](Policy::reload).
    pub reloads: bool,
    /// Is told what goes wrong without being a reason to stop.
    pub warn: fn(&Warning),
}

/// The user that a session runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The user who started it. The process removes its own sockets.
    Kept,
    /// This user, who owns the files; `None`: a user for the program alone, if root started it. A helper process removes
    /// the sockets.
    Other(Option<String>),
}

/// What packets come from, and where its filters can be replaced.
pub trait Engine {
    /// Returns a handle that replaces filters.
    fn filter_control(&self) -> FilterControl;
}

impl Engine for Capture {
    fn filter_control(&self) -> FilterControl {
        Self::filter_control(self)
    }
}

impl Engine for Forward {
    fn filter_control(&self) -> FilterControl {
        Self::filter_control(self)
    }
}

/// The filters of statistics stay as they are.
impl Engine for Vec<Statistics> {
    fn filter_control(&self) -> FilterControl {
        FilterControl::default()
    }
}

/// A guard has rules instead.
impl Engine for Guard {
    fn filter_control(&self) -> FilterControl {
        FilterControl::default()
    }
}

/// The first step: everything that must exist before the engine opens.
#[derive(Debug)]
pub struct Prepared {
    command: &'static str,
    until: Until,
    ready: Ready,
    metrics: Option<Bound>,
    listening: Option<Listening>,
    confine: bool,
    user: Become,
    removes_sockets: bool,
    resolver: Option<Resolver>,
    warn: fn(&Warning),
    /// Last, because dropping it removes the sockets of the fields above.
    helpers: Option<Arc<Helpers>>,
}

impl Prepared {
    /// Prepares a session. Must be called before there are other threads, which forking would break.
    ///
    /// `file`: the file that the program will write, with the options of its writer, which get the broker that can still
    /// open it once the process is confined.
    ///
    /// # Errors
    ///
    /// If a setting cannot be met, or a helper process does not start.
    pub fn new(settings: Settings, file: Option<(&Path, &mut WriterOptions)>) -> Result<Self, Error> {
        let Settings { command, packets, duration, confine, identity, names, reloads, warn, .. } = settings;
        let until = Until::new(packets, duration, reloads)?;
        let ready = Ready::take(settings.ready, warn)?;
        let metrics = settings.metrics.as_ref().map(Bound::to).transpose()?;
        let listening = match settings.control {
            Some(socket) => socket.listen(warn)?,
            None => None,
        };
        let removes_sockets = identity == Identity::Kept;
        let (user, sockets) = match &identity {
            Identity::Kept => (Become::Nobody(None), Vec::new()),
            Identity::Other(name) => {
                let sockets = metrics.as_ref().and_then(Bound::path).into_iter();
                let sockets = sockets.chain(listening.as_ref().map(Listening::path)).map(Path::to_owned);
                (Become::find(name.as_deref())?, sockets.collect())
            }
        };
        let (path, options) = file.unzip();
        let path = path.filter(|_| confine);
        let mut none = WriterOptions::default();
        let options = options.unwrap_or(&mut none);
        let helpers = if confine || user.asked_for().is_some() {
            Helpers::start(path, options, user.asked_for(), sockets)?
        } else {
            None
        };
        options.broker = helpers.as_ref().filter(|_| confine).map(Helpers::broker);
        let resolver = names.then(|| Resolver::start_as(user.user())).transpose()?;
        user.threads_too();
        Ok(Self {
            command,
            until,
            ready,
            metrics,
            listening,
            confine,
            user,
            removes_sockets,
            resolver,
            warn,
            helpers,
        })
    }

    /// Returns the names of hosts, once, if they were [asked for](Settings::names).
    pub fn take_resolver(&mut self) -> Option<Resolver> {
        self.resolver.take()
    }

    /// Returns a directory to fill with files. Must be called before there are other threads.
    ///
    /// # Errors
    ///
    /// Those of [`Archive::new`].
    pub fn archive(&self, directory: &Path) -> Result<Archive, Error> {
        Archive::new_as(directory, self.confine, self.user.asked_for())
    }

    /// Returns what finds out what processes are. Must be called before there are other threads.
    ///
    /// # Errors
    ///
    /// Those of [`Describer::start`].
    pub fn describer(&self) -> Result<Describer, Error> {
        Describer::start_as(self.user.user(), false)
    }

    /// Returns what starts a program. Must be called before there are other threads.
    ///
    /// # Errors
    ///
    /// Those of [`Launcher::start`].
    pub fn launcher(&self, program: Program) -> Result<Launcher, Error> {
        Launcher::start_as(program, self.user.asked_for())
    }

    /// Opens the engine, and confines the process once it is open. If that takes long, `open` may look whether the run is
    /// to end already, since a signal does not end it before there is an engine.
    ///
    /// # Errors
    ///
    /// Those of `open`; if filters cannot be replaced later, or the process cannot be confined.
    pub fn open<E: Engine, F: From<Error>>(
        self,
        open: impl FnOnce(&Until) -> Result<E, F>,
    ) -> Result<(E, Opened), F> {
        let Self { command, mut until, ready, metrics, listening, confine, user, removes_sockets, .. } = self;
        let engine = open(&until)?;
        until.begin();
        let control = match listening {
            Some(listening) => {
                let filter_control = engine.filter_control();
                listening.prepare(&filter_control)?;
                Some((listening, filter_control))
            }
            None => None,
        };
        let needs = || {
            let sockets = metrics.as_ref().and_then(Bound::path).into_iter();
            let sockets = sockets.chain(control.as_ref().map(|(listening, _)| listening.path()));
            sockets.filter(|_| removes_sockets).fold(Needs::to_capture(), Needs::remove)
        };
        let confinement = confine::confine_as(confine, &user, needs)?;
        let (warn, helpers) = (self.warn, self.helpers);
        Ok((engine, Opened { command, until, ready, metrics, control, confinement, warn, helpers }))
    }
}

/// The second step: the engine is open, and the process is confined.
#[derive(Debug)]
pub struct Opened {
    command: &'static str,
    until: Until,
    ready: Ready,
    metrics: Option<Bound>,
    control: Option<(Listening, FilterControl)>,
    confinement: Option<Confinement>,
    warn: fn(&Warning),
    /// Last, because dropping it removes the sockets of the fields above.
    helpers: Option<Arc<Helpers>>,
}

impl Opened {
    /// Returns the restrictions in force; `None`: the process is not confined.
    pub fn confinement(&self) -> Option<&Confinement> {
        self.confinement.as_ref()
    }

    /// Returns the address of the metrics, as a user may enter it.
    pub fn metrics(&self) -> Option<impl fmt::Display> {
        self.metrics.as_ref()
    }

    /// Returns the path of the control socket.
    pub fn control(&self) -> Option<&Path> {
        self.control.as_ref().map(|(listening, _)| listening.path())
    }

    /// Returns the packets still wanted, for every thread that takes some.
    pub fn budget(&self) -> Budget {
        self.until.budget.clone()
    }

    /// Starts to answer requests. `policy` has the engine.
    ///
    /// # Errors
    ///
    /// If there is no account yet, or a thread does not start.
    pub fn serve<P: Policy>(self, mut policy: P) -> Result<Session<P>, P::Error> {
        let Self { command, until, ready, metrics, control, warn, helpers, .. } = self;
        let mut service = Service { until, metrics: None, control: None, _helpers: helpers };
        if let Some(bound) = metrics {
            let measured = policy.summary()?.into_metrics().ok_or(Error::NoMetrics(command))?;
            service.metrics = Some(bound.serve(measured)?);
        }
        if let Some((listening, filter_control)) = control {
            service.control = Some(listening.serve(command, filter_control, policy.summary()?)?);
        }
        Ok(Session { policy, ready, warn, service })
    }
}

/// The last step: everything works.
#[derive(Debug)]
pub struct Session<P> {
    policy: P,
    ready: Ready,
    warn: fn(&Warning),
    service: Service,
}

impl<P: Policy> Session<P> {
    /// Reports that every packet is captured from now on, and receives packets until there is a reason to stop.
    ///
    /// # Errors
    ///
    /// Those of the policy.
    pub fn run(self) -> Result<(), P::Error> {
        let Self { mut policy, ready, warn, mut service } = self;
        ready.tell(warn);
        let end = service.until_stopped(&mut policy);
        policy.finish(end, || service.last_changes())
    }
}
