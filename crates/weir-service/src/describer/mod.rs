//! Finds out what processes are, in a process of its own: what captures packets may not read about other processes.
//!
//! ```text
//! program: Describer -- a process -->  weir-describe: /proc, and what engines of containers write down
//!                    <-- more of it --
//! ```
//!
//! The process may read all of `/proc`, whoever's the processes are, and neither write nor connect. Landlock would keep it from
//! their programs (landlock(7), "Ptrace restrictions"), so it has less of its rights and fewer system calls, but any files to read.

mod proc;

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{ioctl_fionbio, read, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use weir::who::{News, Process, ProcessId};
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

pub use self::proc::Describer as Inspector;
use crate::Error;
use crate::confine::{Become, confine_inspector};

/// Longest message: a process with its arguments, and more.
const LONGEST: usize = 32 << 10;
/// Processes that are remembered as asked for. The first is forgotten first, and may then be asked for again.
const MOST: usize = 1 << 16;
/// Processes that wait for room in the socket. With more, some are not described ([`Describer::missed`]).
const WAITING: usize = 10_000;
/// Most answers that are taken at once, so that what takes them is not held up.
const AT_ONCE: usize = 1000;

/// The first answer: it is confined. Any other says why it is not.
const WELL: &[u8] = b"well";
/// What comes instead of an answer that is longer than [`LONGEST`].
const TOO_LONG: &[u8] = b"long";

/// Describes processes, a moment after it is asked.
#[derive(Debug)]
pub struct Describer {
    process: Forked,
    asked: Asked,
    waiting: VecDeque<Arc<Process>>,
    missed: u64,
    /// Whether the process still answers.
    answers: bool,
}

impl Describer {
    /// Starts the process, before this one has other threads and is confined. If root starts it, it becomes another user.
    /// `arguments`: whether arguments are wanted, which may have secrets.
    ///
    /// # Errors
    ///
    /// If the process does not start, or cannot be confined.
    pub fn start(arguments: bool) -> Result<Self, Error> {
        Self::start_as(Become::find(None)?.user(), arguments)
    }

    /// Starts the process, which becomes `user` if there is one.
    pub(crate) fn start_as(user: Option<&User>, arguments: bool) -> Result<Self, Error> {
        let process = fork(c"weir-describe", |socket| serve(&socket, user, arguments));
        let process = process.map_err(|error| helper(&error))?;
        let mut buffer = vec![0; LONGEST];
        match receive(process.socket(), &mut buffer).map_err(|error| helper(&error))? {
            WELL => {}
            [] => return Err(helper(&"it has ended")),
            why => return Err(helper(&String::from_utf8_lossy(why))),
        }
        ioctl_fionbio(process.socket(), true).map_err(|error| helper(&error))?;
        let (asked, waiting) = Default::default();
        Ok(Self { process, asked, waiting, missed: 0, answers: true })
    }

    /// Asks what a process is, unless it was asked before. With 10,000 that wait already it does not ask, which
    /// [`missed`](Self::missed) counts: it may be asked for again.
    pub fn ask(&mut self, process: &Arc<Process>) {
        if !self.answers || self.asked.has(process.id) {
            return;
        }
        if self.waiting.len() >= WAITING {
            self.missed += 1;
            return;
        }
        self.asked.insert(process.id);
        self.waiting.push_back(Arc::clone(process));
        self.send();
    }

    /// Forgets that it has asked for this process, which runs another program now.
    pub fn forget(&mut self, process: ProcessId) {
        self.asked.remove(process);
    }

    /// Returns the answers that have come, at most 1,000 at a time: the others come with the next call.
    pub fn take(&mut self) -> Vec<News> {
        let (mut news, mut buffer) = (Vec::new(), vec![0; LONGEST]);
        for _ in 0..AT_ONCE {
            if !self.answers {
                break;
            }
            match receive(self.process.socket(), &mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(TOO_LONG) => self.missed += 1,
                Ok(message) if !message.is_empty() => match weir::who::decode(message) {
                    Ok(mut told) => news.append(&mut told),
                    Err(_) => self.answers = false,
                },
                _ => self.answers = false,
            }
        }
        self.send();
        news
    }

    /// Whether the process still runs and what it answers makes sense. If not, nothing more is described, ever: start another one.
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// Returns how many descriptions are missing so far because too many processes were asked for at once, or because they were longer
    /// than a message, 32 KiB. Processes that had ended, or of which nothing more is known, do not count.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn send(&mut self) {
        while let Some(process) = self.waiting.front() {
            match send(self.process.socket(), &message(process), SendFlags::DONTWAIT) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.answers = false,
            }
            self.waiting.pop_front();
        }
    }
}

/// The processes asked for last.
#[derive(Debug, Default)]
struct Asked {
    /// With the number of its entry in `order`.
    known: HashMap<ProcessId, u64>,
    /// The oldest first. Those that were forgotten stay until it is their turn.
    order: VecDeque<(ProcessId, u64)>,
    /// Of the next entry.
    next: u64,
}

impl Asked {
    fn has(&self, process: ProcessId) -> bool {
        self.known.contains_key(&process)
    }

    fn insert(&mut self, process: ProcessId) {
        if self.order.len() == MOST
            && let Some((oldest, number)) = self.order.pop_front()
            // It may have been forgotten, and asked for again.
            && self.known.get(&oldest) == Some(&number)
        {
            self.known.remove(&oldest);
        }
        self.known.insert(process, self.next);
        self.order.push_back((process, self.next));
        self.next += 1;
    }

    fn remove(&mut self, process: ProcessId) {
        self.known.remove(&process);
    }
}

fn helper(why: &dyn Display) -> Error {
    Error::Helper(why.to_string())
}

fn message(process: &Arc<Process>) -> Vec<u8> {
    let mut bytes = Vec::new();
    weir::who::encode(&[News::Described(Arc::clone(process))], &mut bytes);
    bytes
}

/// Describes processes until the program has ended.
fn serve(program: &OwnedFd, user: Option<&User>, arguments: bool) {
    let refused = confine_inspector(user).err().map(|error| error.to_string());
    let first = refused.as_deref().map_or(WELL, str::as_bytes);
    if send(program, first, SendFlags::empty()).is_err() || refused.is_some() {
        return;
    }
    let (mut inspector, mut buffer) = (Inspector::new(arguments), vec![0; LONGEST]);
    while let Ok(asked @ [_, ..]) = receive(program, &mut buffer) {
        let Ok(asked) = weir::who::decode(asked) else { return };
        for news in asked {
            let News::Described(process) = news else { return };
            let Some(described) = inspector.describe(&process) else { continue };
            let message = message(&Arc::new(described));
            let answer = if message.len() <= LONGEST { &message } else { TOO_LONG };
            if send(program, answer, SendFlags::empty()).is_err() {
                return;
            }
        }
    }
}

fn send(socket: impl AsFd, message: &[u8], flags: SendFlags) -> io::Result<()> {
    let mut nothing = SendAncillaryBuffer::default();
    let flags = flags | SendFlags::NOSIGNAL;
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(message)], &mut nothing, flags))?;
    Ok(())
}

/// Receives a message; an empty one: the other side has ended.
fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<&[u8]> {
    let length = retry_on_intr(|| read(&socket, &mut *buffer))?;
    Ok(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, poll};
    use weir_lab::root_test;
    use weir_sys::fork::in_a_test;
    use weir_sys::process::Stat;

    use super::*;

    /// Waits for an answer, or ten seconds.
    fn answer(describer: &mut Describer) -> Vec<News> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let news = describer.take();
            if !news.is_empty() || !describer.answers() || Instant::now() > end {
                return news;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn who_was_forgotten_and_asked_for_again_stays_as_long_as_others() {
        let process = |number| ProcessId { number, started: 1 };
        let mut asked = Asked::default();
        asked.insert(process(0));
        asked.remove(process(0));
        assert!(!asked.has(process(0)));
        asked.insert(process(0));
        let most = u32::try_from(MOST).expect("a small number");
        (1..most).for_each(|number| asked.insert(process(number)));
        assert!(asked.has(process(0)), "its first entry is gone, not its second");
        asked.insert(process(most));
        assert!(!asked.has(process(0)), "the oldest");
        assert!(asked.has(process(1)) && asked.has(process(most)));
        assert_eq!((asked.known.len(), asked.order.len()), (MOST, MOST));
    }

    #[test]
    fn what_is_not_described_counts() {
        let said = in_a_test(|| {
            // Reads nothing until the program ends.
            let process = fork(c"mute", |socket| {
                send(&socket, TOO_LONG, SendFlags::empty()).expect("it is sent");
                let mut end = [PollFd::new(&socket, PollFlags::RDHUP)];
                retry_on_intr(|| poll(&mut end, None)).expect("it ends");
            });
            let process = process.expect("a process");
            ioctl_fionbio(process.socket(), true).expect("a socket");
            let (asked, waiting) = Default::default();
            let mut describer = Describer { process, asked, waiting, missed: 0, answers: true };
            let one = |number| {
                Arc::new(Process {
                    id: ProcessId { number, started: 1 },
                    parent: 0,
                    user: 0,
                    name: "one".to_owned(),
                    program: None,
                    arguments: None,
                    cgroup: None,
                    container: None,
                    unit: None,
                })
            };
            let mut number = 0;
            while describer.waiting.len() < WAITING {
                describer.ask(&one(number));
                number += 1;
            }
            assert_eq!(describer.missed(), 0);
            describer.ask(&one(0));
            assert_eq!(describer.missed(), 0, "it was asked for");
            (number..number + 3).for_each(|number| describer.ask(&one(number)));
            assert_eq!((describer.missed(), describer.waiting.len()), (3, WAITING));
            let end = Instant::now() + Duration::from_secs(10);
            while describer.missed() == 3 && Instant::now() < end {
                assert!(describer.take().is_empty());
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!((describer.missed(), describer.answers()), (4, true));
            "well".to_owned()
        });
        assert_eq!(said, "well");
    }

    #[root_test]
    fn root_a_confined_process_describes_those_of_others() {
        let said = in_a_test(|| {
            let mut describer = Describer::start(true).expect("a process");
            let mut child = Command::new("sleep").arg("60").spawn().expect("sleep runs");
            let started = Stat::of(child.id()).expect("it runs").started;
            let id = ProcessId { number: child.id(), started };
            // Whoever starts a program goes on a moment before the program has its arguments.
            while std::fs::read(format!("/proc/{}/cmdline", child.id())).expect("it runs").is_empty() {
                std::thread::yield_now();
            }
            let process = Process {
                id,
                parent: 0,
                user: 0,
                name: "sleep".to_owned(),
                program: None,
                arguments: None,
                cgroup: None,
                container: None,
                unit: None,
            };
            let process = Arc::new(process);
            describer.ask(&process);
            describer.ask(&process);
            let news = answer(&mut describer);
            let [News::Described(described)] = &news[..] else { panic!("{news:?}") };
            assert!(
                described.program.as_deref().is_some_and(|program| program.starts_with('/')),
                "{described:?}"
            );
            assert_eq!(described.arguments.as_deref(), Some(&["sleep", "60"].map(str::to_owned)[..]));
            assert!(described.cgroup.is_some());
            // Another one with its number is not taken for it; who was asked before it would have answered first.
            let other = ProcessId { started: id.started + 1, ..id };
            describer.ask(&Arc::new(Process { id: other, ..(*process).clone() }));
            describer.forget(id);
            describer.ask(&process);
            assert_eq!(answer(&mut describer).len(), 1);
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            "well".to_owned()
        });
        assert_eq!(said, "well");
    }
}
