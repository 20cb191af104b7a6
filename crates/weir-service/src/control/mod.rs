//! A running capture reports its account and accepts another filter over a Unix socket, for `weir ctl`.
//!
//! Separate threads answer requests and replace the filter themselves, so the loop that receives packets is never
//! interrupted. On its next round, the loop finds the replaced filter and marks it in the file. A request for the
//! account waits for that round.

pub mod client;
mod exact;
mod maker;
mod marks;
mod message;
mod order;
mod server;
mod socket;
mod wire;

use std::fmt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Uid;
use serde_json::value::RawValue;
use weir::filter_control::FilterControl;

pub use self::exact::{ExactDone, ExactOrder, MOST_EXACT};
use self::maker::Maker;
pub use self::marks::Marks;
use self::order::{Answer, Orders};
pub use self::order::{Obeyed, Order};
use self::server::{Latest, Shared};
pub(crate) use self::socket::listen;
use crate::page::Measured;
use crate::summary::Summary;
use crate::{Error, Warning};

/// Time between two copies of the account.
const PERIOD: Duration = Duration::from_secs(1);
/// Time between copies while there are requests, which limits the load that constant requests put on the loop.
const PACE: Duration = Duration::from_millis(20);

/// Where a capture listens, and for whom besides root and its own user.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// Path of the socket; `None`: the first of the usual places that can have it, or nowhere.
    pub path: Option<PathBuf>,
    /// Name of a group whose members may ask, and replace filters.
    pub group: Option<String>,
}

impl Socket {
    /// Creates the socket, which is not served yet. Must be called before the capture opens and before there are
    /// threads. `None`: the usual places are not available.
    pub(crate) fn listen(&self, warn: impl FnOnce(&Warning)) -> Result<Option<Listening>, Error> {
        let group = self.group.as_deref().map(group_of).transpose()?;
        let (listener, path) = match &self.path {
            None => match socket::listen_somewhere(group) {
                Ok(listening) => listening,
                // A minimal container has none of these places: of interest only to those who asked for one.
                Err((path, error)) => {
                    if group.is_some() {
                        warn(&Warning::NoControl { path, error });
                    }
                    return Ok(None);
                }
            },
            Some(path) => match listen(path, group) {
                Ok(listener) => (listener, path.clone()),
                Err(error) => return Err(Error::Listen { path: path.clone(), error }),
            },
        };
        let path = Removed(path);
        let owner = rustix::process::geteuid();
        // Only root is given the descriptors that it takes to build programs elsewhere. Nobody waits for a filter of a member.
        let maker = (!owner.is_root()).then(Maker::start).transpose()?;
        let members_maker = group.is_some().then(Maker::start).transpose()?;
        Ok(Some(Listening { listener, path, owner, maker, members_maker }))
    }
}

/// Returns the ID of a group.
fn group_of(name: &str) -> Result<u32, Error> {
    let found = weir_sys::user::group(name).map_err(|error| Error::Group(error.to_string()))?;
    found.ok_or_else(|| Error::UnknownGroup(name.to_owned()))
}

/// A socket that is not served yet.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: UnixListener,
    path: Removed,
    owner: Uid,
    maker: Option<Maker>,
    members_maker: Option<Maker>,
}

/// A socket file that is removed at the end of the capture.
#[derive(Debug)]
pub(crate) struct Removed(pub(crate) PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_file(&self.0);
    }
}

impl Listening {
    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path.0
    }

    /// Passes the places of filters to the processes that build them, while privileges are still available.
    pub(crate) fn prepare(&self, filter_control: &FilterControl) -> Result<(), Error> {
        let mut makers = self.maker.iter().chain(&self.members_maker);
        makers.try_for_each(|maker| maker.begin(filter_control))
    }

    /// Starts the threads that serve `command`.
    pub(crate) fn serve(
        self,
        command: &'static str,
        filter_control: FilterControl,
        first: impl Account + 'static,
    ) -> Result<Control, Error> {
        let shared = Arc::new(Shared {
            command,
            file: first.file(),
            filter_control,
            owner: self.owner,
            maker: self.maker,
            members_maker: self.members_maker,
            turn: Mutex::default(),
            filter: Mutex::new(first.filter()),
            latest: Mutex::new(Latest { account: Arc::new(first), answered: 0 }),
            published: Condvar::new(),
            asked: AtomicU64::new(0),
            changes: Mutex::default(),
            settling: Mutex::default(),
            touched: Mutex::default(),
            orders: Orders::default(),
        });
        let members = shared.members_maker.is_some().then(|| {
            let ((to, from), theirs) = (sync_channel(server::WAITING), Arc::clone(&shared));
            let work = move || server::run_for_members(&from, &theirs);
            weir_sys::thread::spawn_bare("weir-members", work).map(|_| to)
        });
        let members = members.transpose().map_err(Error::ControlThread)?;
        let (listener, theirs) = (self.listener, Arc::clone(&shared));
        let work = move || server::run(&listener, &theirs, members.as_ref());
        weir_sys::thread::spawn_bare("weir-control", work).map_err(Error::ControlThread)?;
        Ok(Control { shared, published: Instant::now(), answered: 0, answering: 0, _path: self.path })
    }
}

/// An account, as reported to clients.
pub trait Account: fmt::Debug + Send + Sync {
    /// Returns the interface names.
    fn interfaces(&self) -> Vec<String>;
    /// Returns the filter.
    fn filter(&self) -> Option<String>;
    /// Returns the output file.
    fn file(&self) -> Option<String>;
    /// Returns the whole account.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    fn json(&self) -> serde_json::Result<Box<RawValue>>;
    /// Returns what metrics are made of; `None`: it has none.
    fn into_metrics(self) -> Option<Box<dyn Measured>>
    where
        Self: Sized,
    {
        None
    }
}

impl Account for Summary {
    fn interfaces(&self) -> Vec<String> {
        self.interfaces.iter().map(|interface| interface.name.clone()).collect()
    }

    fn filter(&self) -> Option<String> {
        self.interfaces.iter().find_map(|interface| interface.filter.clone())
    }

    fn file(&self) -> Option<String> {
        self.file.clone()
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(self)
    }

    fn into_metrics(self) -> Option<Box<dyn Measured>> {
        Some(Box::new(self))
    }
}

/// A change of the filter.
#[derive(Clone, Debug)]
pub struct Change {
    /// Nanoseconds since the Unix epoch. No packet with a later timestamp has met the previous filter.
    pub time: u64,
    /// The group member who requested it, if it was one.
    pub by: Option<Uid>,
    /// The kind of change.
    pub what: What,
}

/// The kinds of change.
#[derive(Clone, Debug)]
pub enum What {
    /// Another filter is in force, described for files and people; `None`: no filter.
    Filter(Option<String>),
    /// So many other rules are in force.
    Rules(usize),
    /// Not every interface accepted a new filter, and why; it was removed from the others.
    NotTaken {
        /// The filter; `None`: no filter.
        filter: Option<String>,
        /// The reason.
        why: String,
    },
    /// The statistics beside the capture were switched on or off.
    Counting(bool),
    /// Members of a set were added or removed.
    Set {
        /// Name of the set.
        name: String,
        /// Number of new members.
        added: usize,
        /// Number of members that are gone.
        removed: usize,
    },
    /// Some of the changes to a set may have been made, and why not all of them.
    SetInPart {
        /// Name of the set.
        name: String,
        /// The reason.
        why: String,
    },
}

impl What {
    /// Returns this with its texts, which may come from clients, as `shown`.
    fn with_texts(self, shown: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Filter(filter) => Self::Filter(filter.as_deref().map(shown)),
            Self::NotTaken { filter, why } => {
                Self::NotTaken { filter: filter.as_deref().map(&shown), why: shown(&why) }
            }
            Self::Counting(on) => Self::Counting(on),
            Self::Rules(count) => Self::Rules(count),
            Self::Set { name, added, removed } => Self::Set { name: shown(&name), added, removed },
            Self::SetInPart { name, why } => Self::SetInPart { name: shown(&name), why: shown(&why) },
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)?;
        self.by.map_or(Ok(()), |user| write!(f, " (by user {})", user.as_raw()))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(Some(filter)) => write!(f, "filter changed to `{filter}`"),
            Self::Filter(None) => write!(f, "filter removed: every packet matches"),
            Self::NotTaken { filter: Some(filter), why } => {
                write!(f, "filter `{filter}` was rejected: {why}")
            }
            Self::NotTaken { filter: None, why } => write!(f, "the filter was not removed: {why}"),
            Self::Rules(count) => write!(f, "rules replaced: {count} in force"),
            Self::Counting(true) => f.write_str("statistics switched on"),
            Self::Counting(false) => f.write_str("statistics switched off"),
            Self::Set { name, added, removed } => {
                write!(f, "set `{name}`: {added} added, {removed} removed")
            }
            Self::SetInPart { name, why } => write!(f, "set `{name}`: partly changed: {why}"),
        }
    }
}

/// Returns when the account is due that follows the one of this time.
fn due_after(published: Instant, nobody_waits: bool) -> Instant {
    published + if nobody_waits { PERIOD } else { PACE }
}

/// A control socket that is being served.
#[derive(Debug)]
pub(crate) struct Control {
    shared: Arc<Shared>,
    /// Time of the last copy of the account.
    published: Instant,
    /// Number of requests that are older than the last copy.
    answered: u64,
    /// The value of `answered` after the next copy.
    answering: u64,
    _path: Removed,
}

impl Control {
    /// Returns when the next account is due.
    pub(crate) fn due(&self) -> Instant {
        due_after(self.published, self.shared.asked.load(Ordering::SeqCst) == self.answered)
    }

    /// Returns whether an account is due. An account taken after this call includes everything that happened before the
    /// requests that wait for it.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.due();
        if due {
            self.answering = self.shared.asked.load(Ordering::SeqCst);
        }
        due
    }

    /// Replaces the account for later answers.
    pub(crate) fn publish(&mut self, now: Instant, account: impl Account + 'static) {
        (self.published, self.answered) = (now, self.answering);
        let latest = Latest { account: Arc::new(account), answered: self.answered };
        *self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner) = latest;
        self.shared.published.notify_all();
    }

    /// Waits until [`Control::changes`] includes every change that a client knows of.
    pub(crate) fn settle(&self) {
        drop(self.shared.settling.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the next order of a client.
    pub(crate) fn order(&self) -> Option<(Order, Answer)> {
        self.shared.orders.next()
    }

    /// Returns the changes since the last call, oldest first.
    pub(crate) fn changes(&self) -> Vec<Change> {
        std::mem::take(&mut *self.shared.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_account_is_due_later_and_sooner_if_somebody_waits() {
        let published = Instant::now();
        let [idle, asked] = [true, false].map(|nobody_waits| due_after(published, nobody_waits));
        assert!(published < asked && asked < idle, "{published:?} {asked:?} {idle:?}");
    }
}
