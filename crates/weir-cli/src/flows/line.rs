//! What carries messages to a collector: datagrams, or a [`Stream`](super::stream::Stream).

use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use weir_service::stop_on_signals;

/// Datagrams that go at once: a collector's socket has room for them, even if nobody has set it.
const BURST: u32 = 64;
/// The pause behind them.
const PAUSE: Duration = Duration::from_millis(1);

/// Whether messages can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// There is a new session, which begins with templates.
    Anew,
    /// Not now; some time has passed.
    Waits,
    /// Not any more.
    Over,
}

/// What the user may want to know.
#[derive(Debug)]
pub(super) enum News {
    /// Nobody listens to datagrams.
    NobodyListens,
    /// Something was not sent.
    Unsent(io::Error),
    /// There is no connection; weir tries again.
    Disconnected(io::Error),
    /// There is one again.
    Connected,
}

/// Carries messages.
pub(super) trait Line: Debug + Send {
    /// Looks whether messages can be sent, and does something about it.
    fn state(&mut self) -> State {
        State::Open
    }

    /// Sends a message; returns whether it did.
    fn send(&mut self, message: &[u8]) -> bool;

    /// Returns whether to ask for the [state](Self::state) before the next message.
    fn is_down(&self) -> bool {
        false
    }

    /// Returns whether whoever listens now may know no templates, once.
    fn take_forgotten(&mut self) -> bool {
        false
    }

    /// Returns what is new.
    fn take_news(&mut self) -> Option<News>;

    /// Returns how often a connection was made, if this is about connections, and how often nobody listened.
    fn counts(&self) -> LineCounts;
}

/// Counts of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    /// Connections made; `None`: it needs none.
    pub(super) connections: Option<u64>,
    /// Connections that were not made, or times that the collector's host said that nobody listens.
    pub(super) refusals: u64,
}

/// When the run began to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    began: Arc<OnceLock<Instant>>,
    /// A signal has come, and files end early.
    interrupted: Arc<AtomicBool>,
}

impl Ending {
    pub(super) fn begin(&self) {
        let _the_first_counts = self.began.set(Instant::now());
    }

    pub(super) fn since(&self) -> Option<Instant> {
        if self.is_interrupted() {
            self.begin();
        }
        self.began.get().copied()
    }

    /// Lets signals end the reading of files, and the wait for collectors.
    pub(super) fn on_signals(&self) -> io::Result<()> {
        stop_on_signals(&self.interrupted)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        // Relaxed: it carries nothing else.
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// A socket for datagrams, which is not given more than a collector can take.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// Datagrams since the last pause.
    burst: u32,
    refusals: u64,
    /// Nobody has listened, since the last look.
    is_refused: bool,
    news: Option<News>,
}

impl Datagrams {
    pub(super) fn new(socket: UdpSocket) -> Self {
        Self { socket, burst: 0, refusals: 0, is_refused: false, news: None }
    }
}

impl Line for Datagrams {
    fn send(&mut self, message: &[u8]) -> bool {
        if self.burst == BURST {
            thread::sleep(PAUSE);
            self.burst = 0;
        }
        self.burst += 1;
        let mut sent = write(&self.socket, message);
        // That nobody listened to an earlier one is told in place of sending this one.
        if sent.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            self.refusals += 1;
            self.is_refused = true;
            self.news = Some(News::NobodyListens);
            sent = write(&self.socket, message);
        }
        match sent {
            Ok(_) => true,
            Err(error) => {
                self.news = Some(News::Unsent(error));
                false
            }
        }
    }

    fn take_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.is_refused)
    }

    fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    fn counts(&self) -> LineCounts {
        LineCounts { connections: None, refusals: self.refusals }
    }
}

/// Sends a datagram. A confined process may write, but not send.
fn write(socket: &UdpSocket, message: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(socket, message)?)
}
