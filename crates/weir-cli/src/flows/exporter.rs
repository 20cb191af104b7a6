//! Sends flows to a collector, over UDP.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use weir::flows::Flow;
use weir::flows::export::{Account, Encoder, Exported};

use super::outlet::{Destination, Fate};

/// How long a flow may wait in a message that is not full.
const LONGEST: Duration = Duration::from_millis(500);
/// Between two accounts for the collector.
const ACCOUNTS: Duration = Duration::from_secs(60);
/// Datagrams that go at once: a collector's socket has room for them, even if nobody has set it.
const BURST: u32 = 64;
/// The pause behind them.
const PAUSE: Duration = Duration::from_millis(1);

/// What collectors are told of all flows and packets.
#[derive(Debug, Default)]
pub(super) struct Told {
    flows: AtomicU64,
    ignored_packets: AtomicU64,
}

impl Told {
    pub(super) fn set(&self, flows: u64, ignored_packets: u64) {
        self.flows.store(flows, Ordering::Relaxed);
        self.ignored_packets.store(ignored_packets, Ordering::Relaxed);
    }

    fn account(&self) -> Account {
        Account {
            flows: self.flows.load(Ordering::Relaxed),
            ignored_packets: self.ignored_packets.load(Ordering::Relaxed),
        }
    }
}

/// What was sent to a collector.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct SentCounts {
    /// Of messages, their records, and the packets and bytes that these count.
    #[serde(flatten)]
    pub(super) exported: Exported,
    /// Times that the collector's host said that nobody listens.
    pub(super) refusals: u64,
}

/// The exporter's counters, for another thread, and its last trouble.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<(SentCounts, Option<io::Error>)>>);

impl Watched {
    pub(super) fn counts(&self) -> SentCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns why something was not sent, since it was asked last.
    pub(super) fn trouble(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

#[derive(Debug)]
pub(super) struct Exporter {
    encoder: Encoder,
    line: Line,
    watched: Watched,
    told: Arc<Told>,
    /// When the message that is being made has to go.
    due: Option<Instant>,
    next_account: Instant,
}

impl Exporter {
    pub(super) fn new(encoder: Encoder, socket: UdpSocket, told: Arc<Told>) -> Self {
        let line = Line { socket, burst: 0, refusals: 0, is_refused: false, trouble: None };
        let next_account = Instant::now() + ACCOUNTS;
        Self { encoder, line, watched: Watched::default(), told, due: None, next_account }
    }

    /// Returns what another thread can look at.
    pub(super) fn watched(&self) -> Watched {
        self.watched.clone()
    }

    fn tell(&mut self) {
        let counts = SentCounts { exported: self.encoder.exported(), refusals: self.line.refusals };
        let mut watched = self.watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.0 = counts;
        if let Some(trouble) = self.line.trouble.take() {
            watched.1 = Some(trouble);
        }
    }

    fn flush(&mut self) {
        let line = &mut self.line;
        self.encoder.flush(now(), &mut |message| line.send(message));
        self.due = None;
        // Whoever listens next knows no templates.
        if std::mem::take(&mut self.line.is_refused) {
            self.encoder.remind();
        }
    }

    fn account(&mut self) {
        let line = &mut self.line;
        self.encoder.account(&self.told.account(), now(), &mut |message| line.send(message));
        self.next_account = Instant::now() + ACCOUNTS;
    }
}

impl Destination for Exporter {
    fn send(&mut self, flows: &[Flow]) -> io::Result<Fate> {
        // Whoever looks sees some progress.
        for some in flows.chunks(1000) {
            let (now, line) = (now(), &mut self.line);
            some.iter().for_each(|flow| self.encoder.add(flow, now, &mut |message| line.send(message)));
            let time = Instant::now();
            if *self.due.get_or_insert(time + LONGEST) <= time {
                self.flush();
            }
            self.tell();
        }
        Ok(Fate::sent(flows))
    }

    fn rest(&mut self) -> io::Result<Fate> {
        if Instant::now() >= self.next_account {
            self.account();
        }
        self.flush();
        self.tell();
        Ok(Fate::default())
    }

    fn finish(&mut self) -> io::Result<Fate> {
        // What was in the last message is in the account.
        self.flush();
        self.account();
        self.flush();
        self.tell();
        Ok(Fate::default())
    }
}

/// The socket, which is not given more than a collector can take.
#[derive(Debug)]
struct Line {
    socket: UdpSocket,
    /// Datagrams since the last pause.
    burst: u32,
    refusals: u64,
    /// Nobody has listened, since the last look.
    is_refused: bool,
    trouble: Option<io::Error>,
}

impl Line {
    /// Sends a message; returns whether it did.
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
            self.trouble = sent.err();
            sent = write(&self.socket, message);
        }
        match sent {
            Ok(_) => true,
            Err(error) => {
                self.trouble = Some(error);
                false
            }
        }
    }
}

/// Sends a datagram. A confined process may write, but not send.
fn write(socket: &UdpSocket, message: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(socket, message)?)
}

/// Nanoseconds since the Unix epoch.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use weir::flows::export::{Format, Settings};

    use super::*;

    #[test]
    fn a_collector_that_is_gone_is_told_and_each_message_counted() {
        let gone = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(gone.local_addr().expect("an address")).expect("the loopback");
        let place = gone.local_addr().expect("an address");
        drop(gone);
        let encoder = Encoder::new(Format::Ipfix, &Settings::default()).expect("it fits");
        let mut exporter = Exporter::new(encoder, socket, Arc::default());
        exporter.account();
        exporter.flush();
        // The answer to the first comes with the second.
        exporter.finish().expect("it goes on");
        let watched = exporter.watched();
        let counts = watched.counts();
        assert_eq!((counts.exported.sent.messages, counts.exported.unsent.messages), (2, 0));
        assert!(counts.refusals > 0);
        assert_eq!(watched.trouble().map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));
        assert!(watched.trouble().is_none());
        // Who listens now knows no templates: they come again (RFC 7011, section 3.3.2: set 2).
        let back = UdpSocket::bind(place).expect("nobody else has the port");
        exporter.account();
        exporter.flush();
        let mut datagram = [0; 2000];
        back.recv(&mut datagram).expect("a message");
        assert_eq!((&datagram[..2], &datagram[16..18]), (&[0, 10][..], &[0, 2][..]));
    }
}
