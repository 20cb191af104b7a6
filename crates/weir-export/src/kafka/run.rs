//! Takes batches from weir, and has each sent, spooled, or lost.
//!
//! ```text
//! weir -- batch --> pending -- brokers answer, nothing is in the spool --> in flight -- acknowledged --> settled
//!                      |                                                       ^
//!                      '-- else -------> spool: settled -- brokers answer -----'
//! ```
//!
//! What is in flight stays there until brokers answer, because only librdkafka knows whether they have it. When there is no room, neither in
//! flight nor in the spool, batches stay pending, and weir sends no more of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Write as _};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::args::KafkaArgs;
use super::event::{Event, Outcome};
use super::producer::{Listener, Producer};
use super::spool::{Place, Spool, Taken};
use super::wire::{Acknowledged, Message, Messages, Report, Request, WINDOW, messages};

/// So many bytes are in flight, at most, and one batch more.
const FLIGHT: usize = 8 << 20;
/// Brokers that acknowledge nothing for so long are away.
const STALL: Duration = Duration::from_secs(2);
/// Between two looks where nothing happens, and two tries of what has failed.
const LOOK: Duration = Duration::from_millis(100);
const AGAIN: Duration = Duration::from_secs(1);
/// When weir has ended without a word.
const PATIENCE: Duration = Duration::from_secs(3);
/// For librdkafka to give everything up.
const LAST: Duration = Duration::from_secs(10);
/// Bits of a token that number a message of a batch.
const BITS: u32 = 24;

/// Where a batch in flight came from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Its ID.
    Weir(u64),
    /// Whether it is of this run.
    Spool(Place, bool),
}

/// A batch in flight.
#[derive(Debug)]
struct Flight {
    origin: Origin,
    bytes: Vec<u8>,
    flows: u32,
    /// Of each message its flow, its key and its value.
    messages: Vec<(u32, Range<usize>, Range<usize>)>,
    /// Messages that are acknowledged or refused, and the number of the others.
    is_settled: Vec<bool>,
    open: usize,
    /// Messages that are to be sent, first or again; librdkafka has the others.
    again: Vec<usize>,
    /// Flows that no broker takes.
    refused: BTreeSet<u32>,
    acknowledged: Acknowledged,
}

impl Flight {
    fn new(origin: Origin, bytes: Vec<u8>) -> io::Result<Self> {
        let (found, flows) = messages(&bytes)?;
        let range = |piece: &[u8]| {
            // They are pieces of these bytes.
            let begin = piece.as_ptr().addr() - bytes.as_ptr().addr();
            begin..begin + piece.len()
        };
        let messages: Vec<_> = found.iter().map(|one| (one.flow, range(one.key), range(one.value))).collect();
        if messages.len() >> BITS > 0 {
            return Err(ErrorKind::InvalidData.into());
        }
        let (open, again) = (messages.len(), (0..messages.len()).collect());
        let (is_settled, refused) = (vec![false; open], BTreeSet::new());
        let acknowledged = Acknowledged::default();
        Ok(Self { origin, bytes, flows, messages, is_settled, open, again, refused, acknowledged })
    }

    fn settle(&mut self, index: usize) {
        if !std::mem::replace(&mut self.is_settled[index], true) {
            self.open -= 1;
        }
    }

    fn refuse(&mut self, index: usize) {
        self.settle(index);
        self.refused.insert(self.messages[index].0);
    }

    fn message(&self, index: usize) -> Message<'_> {
        let (flow, key, value) = self.messages[index].clone();
        Message { flow, key: &self.bytes[key], value: &self.bytes[value] }
    }

    /// Returns the messages that are neither acknowledged nor refused.
    fn left(&self) -> Messages {
        let mut left = Messages::default();
        let open: Vec<_> = (0..self.messages.len()).filter(|index| !self.is_settled[*index]).collect();
        let flow = |index: &usize| self.messages[*index].0;
        for several in open.chunk_by(|one, other| flow(one) == flow(other)) {
            let values: Vec<_> = several.iter().map(|index| self.message(*index).value).collect();
            left.add(self.message(several[0]).key, &values);
        }
        left
    }
}

/// How the run ends.
#[derive(Clone, Copy, Debug)]
struct Ending {
    since: Instant,
    patience: Duration,
    drain: bool,
}

/// A running process.
#[derive(Debug)]
struct Run {
    to: String,
    producer: Producer,
    spool: Option<Spool>,
    weir: UnixStream,
    pending: VecDeque<(u64, Vec<u8>)>,
    pending_bytes: usize,
    flights: BTreeMap<usize, Flight>,
    flight_bytes: usize,
    /// The number of the next flight.
    next: usize,
    /// When brokers acknowledged something, or had nothing to.
    progress: Instant,
    /// When what has failed is tried again.
    again: Option<Instant>,
    /// What librdkafka said last.
    trouble: Option<String>,
    /// The user knows that brokers are away, that messages are refused, that the spool is full.
    told: Told,
    ending: Option<Ending>,
    gives_up: bool,
}

#[derive(Debug, Default)]
struct Told {
    is_away: bool,
    is_refused: bool,
    spool: Option<ErrorKind>,
}

/// Runs until weir has ended. `socket`: to weir.
pub(super) fn run(args: &KafkaArgs, socket: UnixStream) -> Result<(), String> {
    let mut weir = socket.try_clone().map_err(|error| error.to_string())?;
    let opened = open(args);
    let (producer, spool, events, tell, began, torn) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            report(&mut weir, &Report::Failed(why.clone()));
            return Err(why);
        }
    };
    report(&mut weir, &began);
    if torn > 0 {
        let news = format!(
            "the spool {} ended in the middle of a batch: its last {torn} bytes were cut off",
            shown(args)
        );
        report(&mut weir, &Report::News(news));
    }
    let reader = std::thread::Builder::new().name("weir-requests".to_owned());
    reader.spawn(move || read(&socket, &tell)).map_err(|error| error.to_string())?;
    let now = Instant::now();
    let mut run = Run {
        to: format!("Kafka at {}", args.brokers),
        producer,
        spool,
        weir,
        pending: VecDeque::new(),
        pending_bytes: 0,
        flights: BTreeMap::new(),
        flight_bytes: 0,
        next: 0,
        progress: now,
        again: None,
        trouble: None,
        told: Told::default(),
        ending: None,
        gives_up: false,
    };
    run.serve(&events)
}

fn shown(args: &KafkaArgs) -> String {
    args.spool.as_ref().map(|spool| spool.display().to_string()).unwrap_or_default()
}

type Opened = (Producer, Option<Spool>, Receiver<Event>, Sender<Event>, Report, u64);

fn open(args: &KafkaArgs) -> Result<Opened, String> {
    let label = format!("the topic {} ({})", args.topic, args.form);
    let opened = args.spool.as_ref().map(|spool| Spool::open(spool, &label, args.run, args.spool_size));
    let (spool, found) = opened.transpose().map_err(|error| error.to_string())?.unzip();
    let found = found.unwrap_or_default();
    let (tell, events) = channel();
    let producer = Producer::new(&args.brokers, &args.topic, Listener(tell.clone()))?;
    let began = Report::Began { own: found.own, earlier: found.earlier };
    Ok((producer, spool, events, tell, began, found.torn))
}

/// Reads requests until weir has ended.
fn read(socket: &UnixStream, tell: &Sender<Event>) {
    let mut socket = io::BufReader::with_capacity(256 << 10, socket);
    loop {
        let event = match Request::read(&mut socket) {
            Ok(Some(request)) => Event::Request(request),
            _ => Event::Closed,
        };
        let ends = matches!(event, Event::Closed);
        if tell.send(event).is_err() || ends {
            return;
        }
    }
}

/// Tells weir. If it has ended, what is there is sent all the same.
fn report(weir: &mut UnixStream, report: &Report) {
    let mut bytes = Vec::new();
    report.put(&mut bytes);
    let _nobody_listens = weir.write_all(&bytes);
}

impl Run {
    fn serve(&mut self, events: &Receiver<Event>) -> Result<(), String> {
        loop {
            let mut next = match events.recv_timeout(LOOK) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the thread of librdkafka has ended".to_owned());
                }
            };
            // Many come together.
            for _ in 0..10_000 {
                let Some(event) = next else { break };
                self.take(event)?;
                next = events.try_recv().ok();
            }
            if let Some(event) = next {
                self.take(event)?;
            }
            self.pump();
            if self.is_over() {
                if let Some(spool) = &mut self.spool {
                    spool.sync(true);
                }
                report(&mut self.weir, &Report::Done);
                return Ok(());
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Request(Request::Batch { id, messages }) => {
                self.pending_bytes += messages.len();
                if self.pending_bytes > 2 * WINDOW {
                    return Err("weir does not wait".to_owned());
                }
                self.pending.push_back((id, messages));
            }
            Event::Request(Request::Finish { .. }) if self.gives_up => {}
            Event::Request(Request::Finish { patience, drain }) => {
                let patience = Duration::from_millis(patience.into());
                self.ending = Some(Ending { since: Instant::now(), patience, drain });
            }
            // weir was killed, perhaps while it waited for the end.
            Event::Closed if !self.gives_up => {
                self.ending = Some(Ending { since: Instant::now(), patience: PATIENCE, drain: false });
            }
            Event::Closed => {}
            Event::Delivered { token, outcome, octets } => self.delivered(token, outcome, octets),
            Event::Trouble(reason) => self.trouble = Some(reason),
            Event::Fatal(reason) => {
                self.news(format!("librdkafka cannot go on: {reason}"));
                return Err(reason);
            }
        }
        Ok(())
    }

    fn news(&mut self, news: String) {
        report(&mut self.weir, &Report::News(news));
    }

    /// Returns whether brokers are away.
    fn is_stalled(&self) -> bool {
        !self.flights.is_empty() && self.progress.elapsed() > STALL
    }

    fn delivered(&mut self, token: usize, outcome: Outcome, octets: usize) {
        let (number, index) = (token >> BITS, token & ((1 << BITS) - 1));
        let Some(flight) = self.flights.get_mut(&number) else { return };
        match outcome {
            Outcome::Acknowledged => {
                flight.settle(index);
                flight.acknowledged.messages += 1;
                flight.acknowledged.octets += octets as u64;
                self.progress = Instant::now();
                if std::mem::take(&mut self.told.is_away) {
                    let news = format!("{} takes flows again", self.to);
                    self.news(news);
                }
            }
            Outcome::Refused(why) => {
                flight.refuse(index);
                self.progress = Instant::now();
                if !std::mem::replace(&mut self.told.is_refused, true) {
                    let news = format!("{} refuses messages: {why}; their flows are lost", self.to);
                    self.news(news);
                }
            }
            Outcome::Again(why) => {
                flight.again.push(index);
                self.trouble.get_or_insert(why);
                self.again.get_or_insert_with(|| Instant::now() + AGAIN);
                return;
            }
        }
        self.land(number);
    }

    /// Ends a flight, if all of its messages are settled.
    fn land(&mut self, number: usize) {
        let Some(flight) = self.flights.get(&number).filter(|flight| flight.open == 0) else { return };
        let (flows, lost) = (flight.flows, u32::try_from(flight.refused.len()).unwrap_or(u32::MAX));
        let (origin, acknowledged) = (flight.origin, flight.acknowledged);
        self.flight_bytes -= flight.bytes.len();
        self.flights.remove(&number);
        let told = match origin {
            Origin::Weir(id) => Report::Settled { id, spooled: 0, lost, acknowledged },
            Origin::Spool(place, is_own) => {
                self.spool.iter_mut().for_each(|spool| spool.sent(place));
                Report::Unspooled { is_own, flows, lost, acknowledged }
            }
        };
        report(&mut self.weir, &told);
    }

    /// Moves everything as far as it goes.
    fn pump(&mut self) {
        if self.gives_up {
            return;
        }
        let stalled = self.is_stalled();
        if stalled && !self.told.is_away {
            self.told.is_away = true;
            let where_to = if self.spool.is_some() { "they go to the spool" } else { "they wait in memory" };
            let reason = self.trouble.take().map(|reason| format!(": {reason}")).unwrap_or_default();
            let news = format!("{} acknowledges no flows{reason}; {where_to}", self.to);
            self.news(news);
        }
        if self.again.is_some_and(|again| Instant::now() >= again) {
            self.again = None;
            let numbers: Vec<_> = self.flights.keys().copied().collect();
            numbers.into_iter().for_each(|number| self.send(number));
        }
        let drains = self.ending.is_none_or(|ending| ending.drain);
        while drains && !stalled && self.flight_bytes < FLIGHT && self.take_from_spool() {}
        while let Some((_, messages)) = self.pending.front() {
            let size = messages.len();
            let spools = self.spool.as_ref().is_some_and(|spool| stalled || !spool.is_empty());
            let fits = !spools && self.flight_bytes < FLIGHT;
            if !fits && (!spools || self.told.spool.is_some() && self.again.is_some()) {
                break;
            }
            let Some((id, messages)) = self.pending.pop_front() else { break };
            self.pending_bytes -= size;
            if fits {
                self.fly(Origin::Weir(id), messages);
            } else if let Some((id, messages)) = self.spool(id, messages, Acknowledged::default(), 0) {
                self.pending_bytes += size;
                self.pending.push_front((id, messages));
                self.again.get_or_insert_with(|| Instant::now() + AGAIN);
                break;
            }
        }
        if let Some(spool) = &mut self.spool {
            spool.sync(false);
        }
    }

    /// Puts a batch into the spool. Returns it if there is no room.
    fn spool(
        &mut self,
        id: u64,
        bytes: Vec<u8>,
        acknowledged: Acknowledged,
        lost: u32,
    ) -> Option<(u64, Vec<u8>)> {
        let Some(spool) = &mut self.spool else { return Some((id, bytes)) };
        let Ok((_, flows)) = messages(&bytes) else { return Some((id, bytes)) };
        if let Err(error) = spool.append(id, flows, &bytes) {
            if self.told.spool.replace(error.kind()).is_none() {
                let why = match error.raw_os_error() {
                    None => "the spool is full".to_owned(),
                    Some(_) => format!("cannot write to the spool: {error}"),
                };
                self.news(format!("{why}; flows wait in memory, and are lost when that is full"));
            }
            return Some((id, bytes));
        }
        if self.told.spool.take().is_some() {
            self.news("the spool takes flows again".to_owned());
        }
        report(&mut self.weir, &Report::Settled { id, spooled: flows, lost, acknowledged });
        None
    }

    /// Sends the oldest batch of the spool. Returns whether there was one.
    fn take_from_spool(&mut self) -> bool {
        let Some(spool) = self.spool.as_mut().filter(|spool| spool.has_waiting()) else { return false };
        match spool.take() {
            Ok(Some(Taken { place, is_own, messages, .. })) => {
                self.fly(Origin::Spool(place, is_own), messages);
                true
            }
            Ok(None) => false,
            Err(error) => {
                if let Some((is_own, flows)) = spool.give_up() {
                    let unspooled = Report::Unspooled {
                        is_own,
                        flows,
                        lost: flows,
                        acknowledged: Acknowledged::default(),
                    };
                    report(&mut self.weir, &unspooled);
                    self.news(format!("cannot read the spool: {error}; {flows} flows are lost"));
                }
                true
            }
        }
    }

    /// Begins a flight.
    fn fly(&mut self, origin: Origin, bytes: Vec<u8>) {
        if self.flights.is_empty() {
            self.progress = Instant::now();
        }
        match Flight::new(origin, bytes) {
            Ok(flight) => {
                self.flight_bytes += flight.bytes.len();
                let number = self.next;
                self.next += 1;
                self.flights.insert(number, flight);
                self.send(number);
                self.land(number);
            }
            // The checksum of a batch was right, so this is no accident.
            Err(error) => {
                self.news(format!("a batch makes no sense: {error}"));
                if let Origin::Spool(place, _) = origin {
                    self.spool.iter_mut().for_each(|spool| spool.sent(place));
                }
            }
        }
    }

    /// Gives librdkafka what is to be sent of a flight.
    fn send(&mut self, number: usize) {
        let Some(flight) = self.flights.get_mut(&number) else { return };
        for index in std::mem::take(&mut flight.again) {
            let sent = self.producer.send(flight.message(index), number << BITS | index);
            match sent {
                Ok(()) => {}
                Err(Outcome::Refused(_)) => flight.refuse(index),
                Err(_) => {
                    flight.again.push(index);
                    self.again.get_or_insert_with(|| Instant::now() + AGAIN);
                }
            }
        }
    }

    /// Returns whether the process is to end, and gives up what cannot be sent.
    fn is_over(&mut self) -> bool {
        let Some(ending) = self.ending else { return false };
        let is_spooled = !ending.drain || self.spool.as_ref().is_none_or(Spool::is_empty);
        if self.flights.is_empty() && self.pending.is_empty() && is_spooled {
            return true;
        }
        let waited = ending.since.max(self.progress).elapsed();
        if !self.gives_up {
            if waited > ending.patience {
                self.gives_up = true;
                self.producer.give_up();
                self.ending = Some(Ending { since: Instant::now(), patience: LAST, ..ending });
            }
            return false;
        }
        // Each message is told of once more.
        let is_told = self.flights.values().all(|flight| flight.open == flight.again.len());
        if is_told || waited > ending.patience {
            self.leave();
            return true;
        }
        false
    }

    /// Puts what is left into the spool.
    fn leave(&mut self) {
        let mut left = Vec::new();
        for (_, flight) in std::mem::take(&mut self.flights) {
            let lost = u32::try_from(flight.refused.len()).unwrap_or(u32::MAX);
            match flight.origin {
                Origin::Spool(place, _) => self.spool.iter_mut().for_each(|spool| spool.back(place)),
                Origin::Weir(id) => left.push((id, flight.left().into_bytes(), flight.acknowledged, lost)),
            }
        }
        left.extend(self.pending.drain(..).map(|(id, bytes)| (id, bytes, Acknowledged::default(), 0)));
        for (id, bytes, acknowledged, lost) in left {
            if let Some((id, bytes)) = self.spool(id, bytes, acknowledged, lost) {
                let flows = messages(&bytes).map_or(0, |(_, flows)| flows);
                report(&mut self.weir, &Report::Settled { id, spooled: 0, lost: lost + flows, acknowledged });
            }
        }
    }
}

/// Returns the socket that is standard input.
pub(super) fn socket() -> io::Result<UnixStream> {
    io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from)
}
