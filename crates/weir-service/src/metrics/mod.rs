//! The account for Prometheus, while the capture runs.
//!
//! Once a second, the loop that receives packets leaves a copy of the account here. A separate thread at the lowest
//! priority answers requests, with a page that is built once per copy. They share a lock that is held just long enough
//! to move a pointer, and the loop never waits for it.

mod address;
mod capture;
mod http;
mod rules;
mod server;
mod text;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use self::address::Address;
use self::address::Listener;
pub use self::rules::put as put_rules;
use crate::Error;
use crate::control::Removed;
use crate::page::ExpositionFormat;
pub use crate::page::{Labels, Measured, OwnLabels, Page};

/// Time between two copies of the account.
const PERIOD: Duration = Duration::from_secs(1);

/// An address that is not served yet.
#[derive(Debug)]
pub(crate) struct Bound {
    listener: Listener,
    path: Option<Removed>,
}

impl Bound {
    /// Binds the address. To be called before the capture opens, so that an address in use is reported before anything
    /// else happens.
    pub(crate) fn to(address: &Address) -> Result<Self, Error> {
        address.bind().map(|(listener, path)| Self { listener, path })
    }

    /// Returns the path of the Unix socket, which is removed at the end.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_ref().map(|Removed(path)| &**path)
    }

    /// Starts the thread that answers.
    pub(crate) fn serve(self, first: Box<dyn Measured>) -> Result<Metrics, Error> {
        let latest = Arc::new(Latest(Mutex::new(Arc::new(Snapshot::of(first)))));
        let shared = Arc::clone(&latest);
        let started = weir_sys::thread::spawn_bare("weir-metrics", move || {
            // Requests, however frequent, only get the time that packets leave over.
            let _as_any_other = rustix::process::setpriority_process(None, 19);
            server::run(&self.listener, &shared);
        });
        started.map_err(Error::MetricsThread)?;
        Ok(Metrics { latest, due: Instant::now() + PERIOD, _path: self.path })
    }
}

/// The address, as a user may enter it.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listener.fmt(f)
    }
}

/// Metrics that are being served.
#[derive(Debug)]
pub(crate) struct Metrics {
    latest: Arc<Latest>,
    /// Time of the next copy.
    due: Instant,
    _path: Option<Removed>,
}

impl Metrics {
    /// Returns when the next account is due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Replaces the account for later answers.
    pub(crate) fn publish(&mut self, now: Instant, measured: Box<dyn Measured>) {
        self.due = now + PERIOD;
        self.latest.put(Snapshot::of(measured));
    }
}

/// An account and its time, for the thread that answers.
#[derive(Debug)]
struct Snapshot {
    measured: Box<dyn Measured>,
    /// Time since the Unix epoch.
    taken: Duration,
    /// The response in each [`ExpositionFormat`], built once, at the first request.
    pages: [OnceLock<Arc<[u8]>>; 2],
}

impl Snapshot {
    fn of(measured: Box<dyn Measured>) -> Self {
        let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { measured, taken, pages: <[OnceLock<_>; 2]>::default() }
    }

    /// Returns the response to a request for the metrics; without `body`, only its head.
    fn answer(&self, format: ExpositionFormat, body: bool) -> Arc<[u8]> {
        let page = self.pages[format as usize].get_or_init(|| {
            http::answer("200 OK", format.content_type(), &text::encode(self, format), true).into()
        });
        if body { Arc::clone(page) } else { http::head_of(page).into() }
    }
}

#[derive(Debug)]
struct Latest(Mutex<Arc<Snapshot>>);

impl Latest {
    /// Skips this copy if the thread with the lower priority holds the lock; the next copy replaces it.
    fn put(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        match self.0.try_lock() {
            Ok(mut latest) => *latest = snapshot,
            Err(TryLockError::Poisoned(poisoned)) => *poisoned.into_inner() = snapshot,
            Err(TryLockError::WouldBlock) => {}
        }
    }

    fn get(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;

    #[test]
    fn a_page_is_made_once_for_each_copy_of_the_account() {
        let account = || Summary::new(&[], &weir::CaptureStats::default(), None);
        let snapshot = || Snapshot::of(Box::new(account()));
        let latest = Latest(Mutex::new(Arc::new(snapshot())));
        for format in [ExpositionFormat::Prometheus, ExpositionFormat::OpenMetrics] {
            let page = latest.get().answer(format, true);
            assert!(Arc::ptr_eq(&page, &latest.get().answer(format, true)));
            let head = latest.get().answer(format, false);
            assert!(page.starts_with(&head) && head.ends_with(b"\r\n\r\n") && head.len() < page.len());
            latest.put(snapshot());
            assert!(!Arc::ptr_eq(&page, &latest.get().answer(format, true)));
        }
    }
}
