//! Messages over a connection of TCP, with TLS or without, which is made again when it breaks.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use weir_service::connector::Connector;

use super::line::{Ending, Line, LineCounts, News, State};
use super::link::Link;
use super::tls::Client;

/// Between two attempts: at first, and at most.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What has lasted so long is made again at once.
const LASTING: Duration = Duration::from_secs(30);
/// How long a thread sleeps that waits.
const NAP: Duration = Duration::from_millis(50);

/// How to get to a collector.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) connector: Arc<Connector>,
    /// The numbers of the collector's addresses.
    pub(super) addresses: Range<usize>,
    pub(super) tls: Option<Client>,
}

impl Route {
    /// Tries one address after the other.
    pub(super) fn connect(&self, ending: &Ending) -> io::Result<Link> {
        let mut failed = io::ErrorKind::NotFound.into();
        for number in self.addresses.clone() {
            let connect = || {
                let tls = self.tls.as_ref().map(Client::connection).transpose()?;
                Link::connected(self.connector.connect(number)?, tls, ending)
            };
            match connect() {
                Ok(link) => return Ok(link),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Messages over one connection after the other.
#[derive(Debug)]
pub(super) struct Stream {
    route: Route,
    link: Option<Link>,
    /// The session has not begun with templates.
    is_new: bool,
    /// Since when there is a connection, or none.
    since: Instant,
    pause: Duration,
    /// When to try again.
    next: Instant,
    /// How long flows wait for a connection; `None`: as long as the run goes on.
    patience: Option<Duration>,
    /// There is no other attempt.
    is_last: bool,
    is_over: bool,
    ending: Ending,
    connections: u64,
    refusals: u64,
    /// The user knows that there is no connection.
    is_told: bool,
    news: Option<News>,
}

impl Stream {
    /// `link`: the first connection. If there is none, the user knows that.
    pub(super) fn new(route: Route, link: Option<Link>, patience: Option<Duration>, ending: Ending) -> Self {
        let (now, is_there) = (Instant::now(), link.is_some());
        Self {
            route,
            link,
            is_new: is_there,
            since: now,
            pause: if is_there { Duration::ZERO } else { PAUSE },
            next: now + if is_there { Duration::ZERO } else { PAUSE },
            patience,
            is_last: false,
            is_over: false,
            ending,
            connections: is_there.into(),
            refusals: (!is_there).into(),
            is_told: !is_there,
            news: None,
        }
    }

    fn break_off(&mut self, error: io::Error) {
        let now = Instant::now();
        self.link = None;
        self.pause = if now - self.since >= LASTING { Duration::ZERO } else { longer(self.pause) };
        (self.since, self.next) = (now, now + self.pause);
        self.tell(error);
    }

    fn tell(&mut self, error: io::Error) {
        if !std::mem::replace(&mut self.is_told, true) {
            self.news = Some(News::Disconnected(error));
        }
    }

    fn connect(&mut self, ends: bool) -> State {
        match self.route.connect(&self.ending) {
            Ok(link) => {
                self.link = Some(link);
                self.since = Instant::now();
                self.connections += 1;
                if std::mem::take(&mut self.is_told) {
                    self.news = Some(News::Connected);
                }
                State::Anew
            }
            Err(error) => {
                self.refusals += 1;
                self.tell(error);
                self.pause = longer(self.pause);
                self.next = Instant::now() + self.pause;
                self.is_over = ends || self.patience.is_some_and(|longest| self.since.elapsed() >= longest);
                if self.is_over { State::Over } else { State::Waits }
            }
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(PAUSE, LONGEST_PAUSE)
}

impl Line for Stream {
    fn state(&mut self) -> State {
        if self.is_over {
            return State::Over;
        }
        if let Some(link) = &mut self.link {
            match link.look(&self.ending) {
                Ok(()) if std::mem::take(&mut self.is_new) => return State::Anew,
                Ok(()) => return State::Open,
                Err(error) => self.break_off(error),
            }
        }
        let (now, ends) = (Instant::now(), self.ending.since().is_some());
        if now < self.next && !ends {
            thread::sleep(NAP.min(self.next - now));
            return State::Waits;
        }
        // At the end, one more attempt has to do.
        if ends && std::mem::replace(&mut self.is_last, true) {
            self.is_over = true;
            return State::Over;
        }
        self.connect(ends)
    }

    fn send(&mut self, message: &[u8]) -> bool {
        let Some(link) = &mut self.link else { return false };
        match link.write(message, &self.ending) {
            Ok(()) => true,
            Err(error) => {
                self.break_off(error);
                false
            }
        }
    }

    fn is_down(&self) -> bool {
        self.link.is_none()
    }

    fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    fn counts(&self) -> LineCounts {
        LineCounts { connections: Some(self.connections), refusals: self.refusals }
    }
}
