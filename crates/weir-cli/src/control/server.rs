//! Answers who asks, on a thread of its own: one after the other, each for some ten seconds at most.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::net::sockopt::socket_peercred;
use rustix::process::Uid;
use weir::filter::{Exchange, LiveSet, Seat};

use super::message::{About, Answer, Ask, Request, SentPlace, SentProgram, VERSION, borrowed};
use super::{Change, Told, What, wire};
use crate::failure::Failure;

/// How long somebody may take to send or receive a piece of a message.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long one connection may last.
const LONGEST: Duration = Duration::from_secs(5);
/// After an error of `accept` that may last, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// What the thread shares with the loop that takes packets. Locks are held to move a pointer.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) command: &'static str,
    pub(super) file: Option<String>,
    pub(super) exchange: Exchange,
    /// Who may ask, beside root.
    pub(super) owner: Uid,
    pub(super) latest: Mutex<Arc<dyn Told>>,
    /// What has been exchanged and is not marked in the file yet.
    pub(super) changes: Mutex<Vec<Change>>,
    /// The filter that is in force.
    pub(super) filter: Mutex<Option<String>>,
}

/// Answers until the process ends.
pub(super) fn run(listener: &UnixListener, shared: &Shared) {
    loop {
        match listener.accept() {
            // What goes wrong with one who asks is for that one to see.
            Ok((stream, _)) => drop(serve(&stream, shared)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn serve(stream: &UnixStream, shared: &Shared) -> io::Result<()> {
    let peer = socket_peercred(stream)?.uid;
    if !peer.is_root() && peer != shared.owner {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let until = Instant::now() + LONGEST;
    while Instant::now() < until {
        let Some((request, descriptors)) = wire::receive::<Request>(stream)? else { return Ok(()) };
        let begun = Instant::now();
        let refused = |failure: Failure| Answer::Refused { why: failure.message().to_owned() };
        if request.version != VERSION {
            let why = format!("this capture speaks version {VERSION}, not {}", request.version);
            return wire::send(stream, &Answer::Refused { why }, &[]);
        }
        let answer = match request.ask {
            Ask::About => Answer::About(shared.about()),
            Ask::Status => Answer::Status(shared.latest().json()?),
            Ask::Places => match shared.exchange.places() {
                Ok(places) => {
                    let answer = Answer::Places(places.iter().map(SentPlace::of).collect());
                    let beside = borrowed(places.iter().map(|place| &place.descriptors));
                    wire::send(stream, &answer, &beside)?;
                    continue;
                }
                Err(error) => refused(error.into()),
            },
            Ask::Sets => match shared.exchange.sets() {
                Ok(sets) => {
                    let labels = |(seat, sets): &(Seat, Vec<LiveSet>)| {
                        (seat.clone(), sets.iter().map(|set| set.label.clone()).collect())
                    };
                    let answer = Answer::Sets(sets.iter().map(labels).collect());
                    let beside = sets.iter().flat_map(|(_, sets)| sets).map(|set| set.descriptor.as_fd());
                    wire::send(stream, &answer, &beside.collect::<Vec<_>>())?;
                    continue;
                }
                Err(error) => refused(error.into()),
            },
            Ask::Changed { set, added, removed } => {
                shared.changed(What::Set { name: set, added, removed });
                Answer::Done { nanoseconds: 0 }
            }
            Ask::Put { filter, programs } => {
                let put = SentProgram::received(programs, descriptors)
                    .and_then(|programs| Ok(shared.exchange.put(&programs)?));
                match put {
                    Ok(()) => {
                        shared.changed(What::Filter(filter));
                        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                        Answer::Done { nanoseconds }
                    }
                    Err(failure) => refused(failure),
                }
            }
        };
        wire::send(stream, &answer, &[])?;
    }
    Ok(())
}

impl Shared {
    fn latest(&self) -> Arc<dyn Told> {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn about(&self) -> About {
        About {
            process: std::process::id(),
            command: self.command.to_owned(),
            interfaces: self.latest().interfaces(),
            filter: self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            file: self.file.clone(),
        }
    }

    /// This is so from now on.
    fn changed(&self, what: What) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let What::Filter(filter) = &what {
            self.filter.lock().unwrap_or_else(PoisonError::into_inner).clone_from(filter);
        }
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(Change { time, what });
    }
}
