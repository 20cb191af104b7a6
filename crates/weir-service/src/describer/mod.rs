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

use std::collections::{HashSet, VecDeque};
use std::fmt::Display;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{ioctl_fionbio, read, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use weir::who::{News, Process, ProcessId};
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

pub use self::proc::{Describer as Inspector, process_id};
use crate::Error;
use crate::confine::{Become, confine_inspector};

/// Longest message: a process with its arguments, and more.
const LONGEST: usize = 32 << 10;
/// Processes that are remembered as asked for. The first is forgotten first, and may then be asked for again.
const MOST: usize = 1 << 16;
/// Processes that wait for room in the socket. With more, some are never described.
const WAITING: usize = 10_000;

/// The first answer: it is confined. Any other says why it is not.
const WELL: &[u8] = b"well";

/// Describes processes, a moment after it is asked.
#[derive(Debug)]
pub struct Describer {
    process: Forked,
    asked: HashSet<ProcessId>,
    order: VecDeque<ProcessId>,
    waiting: VecDeque<Arc<Process>>,
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
        let (asked, order, waiting) = Default::default();
        Ok(Self { process, asked, order, waiting, answers: true })
    }

    /// Asks what a process is, unless it was asked before.
    pub fn ask(&mut self, process: &Arc<Process>) {
        if !self.answers || self.waiting.len() == WAITING || !self.asked.insert(process.id) {
            return;
        }
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.asked.remove(&oldest);
        }
        self.order.push_back(process.id);
        self.waiting.push_back(Arc::clone(process));
        self.send();
    }

    /// Forgets that it has asked for this process, which runs another program now.
    pub fn forget(&mut self, process: ProcessId) {
        if self.asked.remove(&process) {
            self.order.retain(|known| *known != process);
        }
    }

    /// Returns the answers that have come.
    pub fn take(&mut self) -> Vec<News> {
        let (mut news, mut buffer) = (Vec::new(), vec![0; LONGEST]);
        while self.answers {
            match receive(self.process.socket(), &mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
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

    /// Whether the process still runs.
    pub fn answers(&self) -> bool {
        self.answers
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
            if message.len() <= LONGEST && send(program, &message, SendFlags::empty()).is_err() {
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

    use weir_lab::root_test;
    use weir_sys::fork::in_a_test;

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

    #[root_test]
    fn root_a_confined_process_describes_those_of_others() {
        let said = in_a_test(|| {
            let mut describer = Describer::start(true).expect("a process");
            let mut child = Command::new("sleep").arg("60").spawn().expect("sleep runs");
            let id = process_id(child.id()).expect("it runs");
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
