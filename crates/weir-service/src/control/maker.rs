//! Builds programs for everyone who may not supply them (`Shared::takes_programs_of`), in a process that keeps the
//! privilege to load them.
//!
//! ```text
//!   member, owner                 capture, confined                  weir-programs
//!     --- an expression, names --->  --- the same ------------------>  learns the places before the first packet,
//!                                    <-- programs, descriptors ------  uses a separate process for each expression
//!     <-- done -------------------  FilterControl::put
//! ```
//!
//! They need no privileges and receive no descriptors, and a filter can do only what its expression says.

use std::fmt::Display;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};
use weir::Filter;
use weir::filter::PortableFilter;
use weir::filter_control::FilterControl;
use weir::parts::{CompiledFilter, FilterSlot};
use weir_sys::fork::{Forked, Limits, apart, fork_with};

use super::message::{SentProgram, SentSlot, borrowed};
use super::wire;
use crate::Error;
use crate::confine::{Needs, confine};

/// Limits for one expression, including the kernel's verifier and large sets.
const LIMITS: Limits = Limits { memory: 1 << 30, seconds: 4, time: Duration::from_secs(12) };
/// Longest time for an answer, if the host is so busy that the process is late itself. Clients wait for longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The process. It handles one expression at a time.
#[derive(Debug)]
pub(super) struct Maker {
    line: Mutex<Line>,
    /// Last, because dropping it waits for the process, which waits for the line.
    _process: Forked,
}

/// The connection to the process.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    /// The answer to the last question is still to come. Nothing is asked before it is there, or it would be taken for
    /// the next one's.
    owed: bool,
}

/// A message from the process.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// It is confined, knows the places and is ready.
    Begun,
    /// One of the programs.
    Program(SentProgram),
    /// All programs have been sent.
    All,
    /// It failed, and why.
    Refused(String),
}

/// Programs, and the descriptors of all of them.
type Made = (Vec<SentProgram>, Vec<OwnedFd>);

impl Maker {
    /// Starts the process. Must be called before this one has other threads.
    pub(super) fn start() -> Result<Self, Error> {
        let process = fork_with(SocketType::STREAM, c"weir-programs", |socket| work(&socket.into()));
        let process = process.map_err(|error| not_started(&error))?;
        let stream = process.socket().try_clone_to_owned().map_err(|error| not_started(&error))?;
        Ok(Self { line: Mutex::new(Line { stream: stream.into(), owed: false }), _process: process })
    }

    /// Sends the places, which can be done only once, and while they are still accessible.
    pub(super) fn begin(&self, filter_control: &FilterControl) -> Result<(), Error> {
        let said = self.ask(|stream| {
            // Rules have none.
            let slots = if filter_control.is_ruled() { Ok(Vec::new()) } else { filter_control.slots() };
            for slot in slots.map_err(io::Error::other)? {
                let beside = borrowed([&slot.descriptors].into_iter());
                wire::send(stream, &Some(SentSlot::of(&slot)), &beside)?;
            }
            wire::send(stream, &None::<SentSlot>, &[])
        });
        said.map(drop).map_err(|why| not_started(&why))
    }

    /// Builds the programs of this filter.
    pub(super) fn make(&self, filter: &PortableFilter) -> Result<Vec<CompiledFilter>, String> {
        let (programs, descriptors) = self.ask(|stream| wire::send(stream, filter, &[]))?;
        SentProgram::received(programs, descriptors).map_err(|error| error.to_string())
    }

    fn ask(&self, question: impl FnOnce(&UnixStream) -> io::Result<()>) -> Result<Made, String> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).ask(PATIENCE, question)
    }
}

impl Line {
    /// Asks, and waits for the answer for at most `patience`.
    fn ask(
        &mut self,
        patience: Duration,
        question: impl FnOnce(&UnixStream) -> io::Result<()>,
    ) -> Result<Made, String> {
        let until = Instant::now() + patience;
        let asked = || {
            self.stream.set_read_timeout(Some(PATIENCE))?;
            self.stream.set_write_timeout(Some(PATIENCE))?;
            if self.owed {
                let _too_late_for_whoever_asked = self.heard_until(until)?;
            }
            question(&self.stream)?;
            self.owed = true;
            self.heard_until(until)
        };
        asked().unwrap_or_else(|error| {
            if !self.owed {
                // Half of a message may have been sent or received: what comes next would mean something else.
                let _gone_already = self.stream.shutdown(Shutdown::Both);
            }
            let remedy =
                if self.owed { "try again later" } else { "try again as root, or start the capture again" };
            Err(format!(
                "cannot build the filter: the helper process weir-programs did not answer: {error}; {remedy}"
            ))
        })
    }

    /// Receives the answer that is owed.
    fn heard_until(&mut self, until: Instant) -> io::Result<Result<Made, String>> {
        let patience = until.saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&patience))? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long"));
        }
        self.owed = false;
        heard(&self.stream)
    }
}

fn not_started(why: &dyn Display) -> Error {
    Error::Maker(why.to_string())
}

/// Receives a complete answer.
fn heard(stream: &UnixStream) -> io::Result<Result<Made, String>> {
    let (mut programs, mut descriptors) = (Vec::new(), Vec::new());
    loop {
        let (said, beside) = wire::receive(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match said {
            Said::Begun | Said::All => return Ok(Ok((programs, descriptors))),
            Said::Refused(why) => return Ok(Err(why)),
            Said::Program(program) => {
                programs.push(program);
                descriptors.extend(beside);
            }
        }
    }
}

/// Builds programs until the capture ends.
fn work(stream: &UnixStream) {
    let Some(slots) = slots(stream) else { return };
    if let Err(error) = confine(&Needs::to_make()) {
        let _nobody_listens = wire::send(stream, &Said::Refused(error.to_string()), &[]);
        return;
    }
    let _nobody_listens = wire::send(stream, &Said::Begun, &[]);
    while let Ok(Some((filter, _))) = wire::receive::<Box<serde_json::value::RawValue>>(stream) {
        let made = match apart(LIMITS, |socket| make(&slots, filter.get(), &socket.into())) {
            Ok(process) => pass_on(&process, stream),
            Err(error) => wire::send(stream, &Said::Refused(format!("cannot start a process: {error}")), &[]),
        };
        if made.is_err() {
            return;
        }
    }
}

/// Receives the places. `None`: the capture did not start.
fn slots(stream: &UnixStream) -> Option<Vec<FilterSlot>> {
    let mut slots = Vec::new();
    loop {
        match wire::receive::<Option<SentSlot>>(stream).ok()?? {
            (Some(slot), descriptors) => {
                slots.extend(SentSlot::received(vec![slot], descriptors).ok()?);
            }
            (None, _) => return Some(slots),
        }
    }
}

/// Builds the programs of one filter and sends them.
fn make(slots: &[FilterSlot], filter: &str, to: &UnixStream) {
    let made = || -> Result<Vec<CompiledFilter>, String> {
        let filter: PortableFilter =
            serde_json::from_str(filter).map_err(|error| format!("unknown kind of filter: {error}"))?;
        let filter = Filter::from(filter);
        FilterSlot::make_all(slots, Some(&filter)).map_err(|error| error.to_string())
    };
    let said = made().and_then(|programs| {
        programs.iter().try_for_each(|program| {
            let beside: Vec<_> = program.descriptors.iter().map(OwnedFd::as_fd).collect();
            wire::send(to, &Said::Program(SentProgram::of(program)), &beside)
                .map_err(|error| error.to_string())
        })
    });
    let last = said.map_or_else(Said::Refused, |()| Said::All);
    let _nobody_listens = wire::send(to, &last, &[]);
}

/// Passes on what the process has built, if it has finished.
fn pass_on(process: &Forked, to: &UnixStream) -> io::Result<()> {
    let heard_from = UnixStream::from(process.socket().try_clone_to_owned()?);
    let (programs, descriptors) = match heard(&heard_from) {
        Ok(Ok(made)) => made,
        Ok(Err(why)) => return wire::send(to, &Said::Refused(why), &[]),
        Err(_) => {
            let why = format!(
                "cannot build this filter: it takes more than {} s ({} s on a busy host) or {} MiB; try a shorter one",
                LIMITS.seconds,
                LIMITS.time.as_secs(),
                LIMITS.memory >> 20
            );
            return wire::send(to, &Said::Refused(why), &[]);
        }
    };
    let programs = SentProgram::received(programs, descriptors).map_err(io::Error::other)?;
    for program in &programs {
        let beside: Vec<_> = program.descriptors.iter().map(OwnedFd::as_fd).collect();
        wire::send(to, &Said::Program(SentProgram::of(program)), &beside)?;
    }
    wire::send(to, &Said::All, &[])
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_is_late_once_is_asked_again() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut line = Line { stream: ours, owed: false };
        let ask = |line: &mut Line, what: &str, patience| {
            line.ask(Duration::from_millis(patience), |stream| wire::send(stream, &what, &[]))
        };
        let answer = |to: &str| wire::send(&theirs, &Said::Refused(to.to_owned()), &[]).expect("room");
        for _ in 0..2 {
            // The second question is not asked: the answer to the first is still to come.
            let late = ask(&mut line, "slow", 1).expect_err("nobody has answered");
            assert!(late.contains("it takes too long; try again later"), "{late}");
        }
        answer("slow");
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    let (what, _) = wire::receive::<String>(&theirs).expect("a question").expect("one");
                    if what != "slow" {
                        answer(&what);
                    }
                }
            });
            assert_eq!(ask(&mut line, "quick", 60_000).expect_err("an answer"), "quick");
        });
    }
}
