//! The thread that waits for the bells of all handlers, wakes sleeping handlers, and notices handlers that are held up.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use weir_sys::CallError;
use weir_sys::thread::spawn_deaf;

use super::team::Team;
use crate::Error;
use crate::live::bell::EventBell;
use crate::live::patience::timespec;
use crate::live::source::Bell;

/// Interval while a queue may fill up without ringing a bell.
const LOOK: Duration = Duration::from_millis(1);
/// Interval while no handler is awake, or none could help.
const REST: Duration = Duration::from_millis(100);

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    thread: Option<JoinHandle<()>>,
    call: Arc<EventBell>,
}

impl Watcher {
    /// Starts the thread.
    pub(crate) fn start(team: &Arc<Team>, bells: Vec<Arc<dyn Bell>>) -> Result<Self, Error> {
        let call = Arc::new(EventBell::new()?);
        let (team, theirs) = (Arc::clone(team), Arc::clone(&call));
        let thread = spawn_deaf("weir-watch", move || watch(&team, &bells, &theirs))
            .map_err(|error| CallError::new("start the thread that watches handlers", error))?;
        Ok(Self { thread: Some(thread), call })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.call.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was already printed; do not panic again in drop
        }
    }
}

fn watch(team: &Team, bells: &[Arc<dyn Bell>], call: &EventBell) {
    loop {
        let fds = bells.iter().map(|bell| bell.fd()).chain([call.as_fd()]);
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let longest = if team.must_be_watched() { LOOK } else { REST };
        if poll(&mut fds, Some(&timespec(longest))).is_err() {
            std::thread::sleep(LOOK); // the kernel is out of memory: worth another try
        }
        if !fds[bells.len()].revents().is_empty() {
            return;
        }
        for (bell, fd) in bells.iter().zip(&fds) {
            if !fd.revents().is_empty() {
                bell.quiet();
            }
        }
        team.look();
    }
}
