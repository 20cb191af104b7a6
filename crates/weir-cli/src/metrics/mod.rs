//! `--metrics`: the account for Prometheus, while the capture runs.
//!
//! The loop that takes packets leaves a copy of the account here once a second; a thread of its own, at the lowest priority, answers
//! who asks, with a page that is made once for each copy.
//! They share a lock that is held for as long as it takes to move a pointer, and the loop does not wait for it.

mod address;
mod http;
mod server;
mod text;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;

use self::address::{Address, Listener};
use self::text::Form;
use crate::control::Removed;
use crate::failure::Failure;
use crate::json::Summary;
use crate::style;

/// Between two copies of the account.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct MetricsArgs {
    /// Serve Prometheus metrics at http://ADDR/metrics.
    ///
    /// ADDR is a port on 127.0.0.1 (9464), an address and port (127.0.0.1:9464, `[::]:9464`) or the
    /// path of a Unix socket.
    #[arg(long, value_name = "ADDR", value_parser = address::parse)]
    metrics: Option<Address>,
}

impl MetricsArgs {
    /// Takes the address; nobody is answered yet. Done before the capture opens, so that an address that is taken is
    /// told before anything else happens.
    pub(crate) fn bind(&self) -> Result<Option<Bound>, Failure> {
        let bound = |address: &Address| address.bind().map(|(listener, path)| Bound { listener, path });
        self.metrics.as_ref().map(bound).transpose()
    }
}

/// The address is ours.
#[derive(Debug)]
pub(crate) struct Bound {
    listener: Listener,
    path: Option<Removed>,
}

impl Bound {
    /// The Unix socket's path, which is removed in the end.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_ref().map(|Removed(path)| &**path)
    }

    /// Says where they are.
    pub(crate) fn say(&self) {
        style::say(format_args!("metrics: {}", self.listener));
    }

    /// Starts the thread that answers.
    pub(crate) fn serve(self, first: Summary) -> Result<Metrics, Failure> {
        let latest = Arc::new(Latest(Mutex::new(Arc::new(Snapshot::of(first)))));
        let shared = Arc::clone(&latest);
        let started = weir_sys::thread::spawn_bare("weir-metrics", move || {
            // Whoever asks, and however often, takes only what packets leave over.
            let _as_any_other = rustix::process::setpriority_process(None, 19);
            server::run(&self.listener, &shared);
        });
        started.map_err(|error| Failure::new(format_args!("start the thread for --metrics: {error}")))?;
        Ok(Metrics { latest, due: Instant::now() + PERIOD, _path: self.path })
    }
}

/// What is being served.
#[derive(Debug)]
pub(crate) struct Metrics {
    latest: Arc<Latest>,
    /// When the next copy is.
    due: Instant,
    _path: Option<Removed>,
}

impl Metrics {
    /// When the account is wanted next.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Answers with this account from now on.
    pub(crate) fn publish(&mut self, now: Instant, summary: Summary) {
        self.due = now + PERIOD;
        self.latest.put(Snapshot::of(summary));
    }
}

/// An account and when it was taken, as the thread that answers sees it.
#[derive(Debug)]
struct Snapshot {
    summary: Summary,
    /// Since the Unix epoch.
    taken: Duration,
    /// What is answered, in each [`Form`], once somebody has asked for it: however often that is, it is made once.
    pages: [OnceLock<Arc<[u8]>>; 2],
}

impl Snapshot {
    fn of(summary: Summary) -> Self {
        let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { summary, taken, pages: <[OnceLock<_>; 2]>::default() }
    }

    /// The answer to who asks for the metrics; without `body`, its head.
    fn answer(&self, form: Form, body: bool) -> Arc<[u8]> {
        let page = self.pages[form as usize].get_or_init(|| {
            http::answer("200 OK", form.content_type(), &text::encode(self, form), true).into()
        });
        if body { Arc::clone(page) } else { http::head_of(page).into() }
    }
}

#[derive(Debug)]
struct Latest(Mutex<Arc<Snapshot>>);

impl Latest {
    /// Does not wait for one of a lower priority, who holds the lock: then the next copy is the next that is seen.
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

    #[test]
    fn a_page_is_made_once_for_each_copy_of_the_account() {
        let snapshot = || Snapshot::of(Summary::new(&[], &weir::Account::default(), None));
        let latest = Latest(Mutex::new(Arc::new(snapshot())));
        for form in [Form::Prometheus, Form::OpenMetrics] {
            let page = latest.get().answer(form, true);
            assert!(Arc::ptr_eq(&page, &latest.get().answer(form, true)));
            let head = latest.get().answer(form, false);
            assert!(page.starts_with(&head) && head.ends_with(b"\r\n\r\n") && head.len() < page.len());
            latest.put(snapshot());
            assert!(!Arc::ptr_eq(&page, &latest.get().answer(form, true)));
        }
    }
}
