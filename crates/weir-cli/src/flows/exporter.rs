//! Sends flows to a collector.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir::flows::export::{Account, Encoder, Exported, Missed};
use weir::flows::{Counts, Flow};

use super::line::{Line, LineCounts, News, State};
use super::outlet::{Destination, Unsent};

/// How long a flow may wait in a message that is not full.
const LONGEST: Duration = Duration::from_millis(500);
/// Between two accounts for the collector.
const ACCOUNTS: Duration = Duration::from_secs(60);
/// Flows after which somebody who looks sees some progress.
const SOME: usize = 1000;

/// What collectors are told of all flows and packets.
#[derive(Debug, Default)]
pub(super) struct Told {
    flows: AtomicU64,
    packets: AtomicU64,
    ignored_packets: AtomicU64,
    lost_packets: AtomicU64,
}

impl Told {
    /// Tells what the tables have counted, and how many packets were lost before them.
    pub(super) fn set(&self, counts: &Counts, lost_packets: u64) {
        for (place, number) in [
            (&self.flows, counts.flows + counts.all_ended()),
            (&self.packets, counts.packets),
            (&self.ignored_packets, counts.not_ip + counts.cut),
            (&self.lost_packets, lost_packets),
        ] {
            place.store(number, Ordering::Relaxed);
        }
    }

    fn account(&self, missed: Missed) -> Account {
        let [flows, packets, ignored_packets, lost_packets] =
            [&self.flows, &self.packets, &self.ignored_packets, &self.lost_packets]
                .map(|number| number.load(Ordering::Relaxed));
        Account { flows, packets, ignored_packets, lost_packets, missed }
    }
}

/// What was sent to a collector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentCounts {
    /// Of messages, their records, and the packets and bytes that these count.
    pub(super) exported: Exported,
    pub(super) line: LineCounts,
}

/// The exporter's counters, for another thread, and its latest news.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched(Arc<Mutex<(SentCounts, Option<News>)>>);

impl Watched {
    pub(super) fn counts(&self) -> SentCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns what is new since it was asked last.
    pub(super) fn news(&self) -> Option<News> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.take()
    }
}

#[derive(Debug)]
pub(super) struct Exporter {
    encoder: Encoder,
    line: Box<dyn Line>,
    unsent: Unsent,
    /// Flows that found no room before they came here, and those that came when nothing could be sent any more.
    refused: Missed,
    missed: Missed,
    watched: Watched,
    told: Arc<Told>,
    /// When the message that is being made has to go.
    due: Option<Instant>,
    next_account: Instant,
}

/// Sends a message with all flows that wait, and counts them.
fn hand_over(line: &mut dyn Line, unsent: &mut Unsent, message: &[u8]) -> bool {
    let is_sent = line.send(message);
    let flows = std::mem::take(&mut unsent.waiting);
    if !is_sent {
        unsent.lost += flows;
    }
    is_sent
}

impl Exporter {
    pub(super) fn new(encoder: Encoder, line: Box<dyn Line>, told: Arc<Told>) -> Self {
        let next_account = Instant::now() + ACCOUNTS;
        let (unsent, watched) = (Unsent::default(), Watched::default());
        let (refused, missed) = (Missed::default(), Missed::default());
        Self { encoder, line, unsent, refused, missed, watched, told, due: None, next_account }
    }

    /// Returns what another thread can look at.
    pub(super) fn watched(&self) -> Watched {
        self.watched.clone()
    }

    fn tell(&mut self) {
        let counts = SentCounts { exported: self.encoder.exported(), line: self.line.counts() };
        let mut watched = self.watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.0 = counts;
        if let Some(news) = self.line.take_news() {
            watched.1 = Some(news);
        }
    }

    /// Waits until messages can be sent. `false`: that will not be.
    fn is_open(&mut self) -> bool {
        loop {
            match self.line.state() {
                State::Open => return true,
                State::Over => return false,
                State::Waits => {}
                State::Anew => {
                    let line = &mut self.line;
                    self.encoder.resume(now(), &mut |message| line.send(message));
                }
            }
            self.tell();
        }
    }

    fn flush(&mut self) {
        let (line, unsent) = (&mut *self.line, &mut self.unsent);
        self.encoder.flush(now(), &mut |message| hand_over(line, unsent, message));
        self.due = None;
        // Whoever listens next knows no templates.
        if self.line.take_forgotten() {
            self.encoder.remind();
        }
    }

    fn account(&mut self) {
        let mut missed = self.missed;
        missed += self.refused;
        let (line, unsent) = (&mut *self.line, &mut self.unsent);
        let mut send = |message: &[u8]| hand_over(line, unsent, message);
        self.encoder.account(&self.told.account(missed), now(), &mut send);
        self.next_account = Instant::now() + ACCOUNTS;
    }
}

impl Destination for Exporter {
    fn send(&mut self, flows: &[Flow]) -> io::Result<()> {
        for some in flows.chunks(SOME) {
            let (mut is_open, now) = (self.is_open(), now());
            for flow in some {
                if self.line.is_down() {
                    is_open = is_open && self.is_open();
                }
                if is_open {
                    let (line, unsent) = (&mut *self.line, &mut self.unsent);
                    self.encoder.add(flow, now, &mut |message| hand_over(line, unsent, message));
                    self.unsent.waiting += 1;
                } else {
                    self.unsent.lost += 1;
                    self.missed.add(flow);
                }
            }
            let time = Instant::now();
            // What is in the message can wait for another connection.
            if *self.due.get_or_insert(time + LONGEST) <= time && !self.line.is_down() {
                self.flush();
            }
            self.tell();
        }
        Ok(())
    }

    fn rest(&mut self) -> io::Result<()> {
        if self.is_open() {
            if Instant::now() >= self.next_account {
                self.account();
            }
            self.flush();
        }
        self.tell();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let is_open = self.is_open();
        // What was in the last message is in the account.
        self.flush();
        if is_open {
            self.account();
            self.flush();
        }
        self.tell();
        Ok(())
    }

    fn unsent(&self) -> Unsent {
        self.unsent
    }

    fn refused(&mut self, refused: Missed) {
        self.refused = refused;
    }
}

/// Nanoseconds since the Unix epoch.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use weir::flows::export::{Format, Ipfix, Settings};

    use super::super::line::Datagrams;
    use super::*;

    #[test]
    fn a_collector_that_is_gone_is_told_and_each_message_counted() {
        let gone = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(gone.local_addr().expect("an address")).expect("the loopback");
        let place = gone.local_addr().expect("an address");
        drop(gone);
        let encoder = Encoder::new(Format::Ipfix, &Settings::default()).expect("it fits");
        let mut exporter = Exporter::new(encoder, Box::new(Datagrams::new(socket)), Arc::default());
        exporter.account();
        exporter.flush();
        // The answer to the first comes with the second.
        exporter.finish().expect("it goes on");
        let watched = exporter.watched();
        let counts = watched.counts();
        assert_eq!((counts.exported.sent.messages, counts.exported.unsent.messages), (2, 0));
        assert!(counts.line.refusals > 0);
        assert!(matches!(watched.news(), Some(News::NobodyListens)));
        assert!(watched.news().is_none());
        // Who listens now knows no templates: they come again (RFC 7011, section 3.3.2: set 2).
        let back = UdpSocket::bind(place).expect("nobody else has the port");
        exporter.account();
        exporter.flush();
        let mut datagram = [0; 2000];
        back.recv(&mut datagram).expect("a message");
        assert_eq!((&datagram[..2], &datagram[16..18]), (&[0, 10][..], &[0, 2][..]));
    }

    /// A line that breaks with the messages that are named, and what came over each connection.
    #[derive(Debug)]
    struct Breaking {
        breaks_at: Vec<usize>,
        messages: usize,
        is_up: bool,
        connections: Arc<Mutex<Vec<Vec<Vec<u8>>>>>,
        most: usize,
    }

    impl Line for Breaking {
        fn state(&mut self) -> State {
            let mut connections = self.connections.lock().expect("no panic");
            if self.is_up {
                return State::Open;
            }
            if connections.len() == self.most {
                return State::Over;
            }
            self.is_up = true;
            connections.push(Vec::new());
            State::Anew
        }

        fn send(&mut self, message: &[u8]) -> bool {
            self.messages += 1;
            self.is_up = self.is_up && !self.breaks_at.contains(&self.messages);
            if self.is_up {
                let mut connections = self.connections.lock().expect("no panic");
                connections.last_mut().expect("a connection").push(message.to_vec());
            }
            self.is_up
        }

        fn is_down(&self) -> bool {
            !self.is_up
        }

        fn take_news(&mut self) -> Option<News> {
            None
        }

        fn counts(&self) -> LineCounts {
            LineCounts::default()
        }
    }

    fn word(message: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(message[at..at + 4].try_into().expect("four bytes"))
    }

    #[test]
    fn flows_of_a_message_that_is_cut_are_lost_and_the_others_go_over_the_next_connection() {
        let flow = super::super::outlet::tests::flows(1).remove(0);
        let settings = Settings { message: 1000, repeat: None, ..Settings::default() };
        let encoder = Encoder::new(Format::Ipfix, &settings).expect("it fits");
        let connections = Arc::default();
        // The third is the second with flows; the seventh has templates.
        let line = Breaking {
            breaks_at: vec![3, 7],
            messages: 0,
            is_up: false,
            connections: Arc::clone(&connections),
            most: 4,
        };
        let mut exporter = Exporter::new(encoder, Box::new(line), Arc::default());
        let given = 100;
        exporter.send(&vec![flow.clone(); given]).expect("it never fails");
        exporter.finish().expect("it never fails");
        let Unsent { waiting, lost } = exporter.unsent();
        let Exported { sent, unsent, .. } = exporter.watched().counts().exported;
        assert_eq!((waiting, lost), (0, unsent.records));
        assert_eq!((sent.records + unsent.records, unsent.records > 0), (given as u64, true));
        let connections = connections.lock().expect("no panic");
        assert!(connections.len() > 1, "{connections:?}");
        for messages in connections.iter().filter(|messages| !messages.is_empty()) {
            // Templates, in the set 2, come first, and once; numbers begin with 0 (RFC 7011, sections 8.4 and 3.1).
            assert_eq!((word(&messages[0], 8), &messages[0][16..18]), (0, &[0, 2][..]));
            let mut next = 0;
            for message in messages {
                assert_eq!(word(message, 8), next);
                assert!(message[16..18] != [0, 2] || next == 0);
                // Records of one flow have one length, of which 1000 bytes have many; the last message also has an account.
                next = if message[16..18] == [0, 2] { 0 } else { next + records(message) };
            }
        }
    }

    /// Records of flows over IPv4 in the first set, which has nothing else but an account behind it.
    fn records(message: &[u8]) -> u32 {
        let length = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
        let fields = Settings::default().fields;
        let mut encoder = Ipfix::new(&Settings { fields, ..Settings::default() }).expect("it fits");
        let mut sizes = Vec::new();
        let mut send = |message: &[u8]| {
            sizes.push(message.len());
            true
        };
        encoder.resume(0, &mut send);
        encoder.add(&super::super::outlet::tests::flows(1).remove(0), 0, &mut send);
        encoder.flush(0, &mut send);
        u32::try_from((length(18) - 4) / (sizes[1] - 20)).expect("few")
    }

    #[test]
    fn without_any_connection_all_flows_are_lost_once_the_line_gives_up() {
        let flows = super::super::outlet::tests::flows(7);
        let encoder = Encoder::new(Format::Ipfix, &Settings::default()).expect("it fits");
        let line = Breaking {
            breaks_at: Vec::new(),
            messages: 0,
            is_up: false,
            connections: Arc::default(),
            most: 0,
        };
        let mut exporter = Exporter::new(encoder, Box::new(line), Arc::default());
        exporter.send(&flows).expect("it never fails");
        exporter.finish().expect("it never fails");
        assert_eq!(exporter.unsent(), Unsent { waiting: 0, lost: 7 });
        assert_eq!(exporter.watched().counts().exported, Exported::default());
    }
}
