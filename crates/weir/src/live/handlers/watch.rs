//! The thread that waits for the notifiers of all handlers, wakes sleeping handlers, and notices handlers that are held up.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use weir_sys::CallError;
use weir_sys::thread::spawn_deaf;

use super::worker_group::WorkerGroup;
use crate::Error;
use crate::live::wait::Notifier;
use crate::live::wait::notifier::EventNotifier;
use crate::live::wait::strategy::timespec;

/// Interval while a queue may fill up without notifying.
const LOOK: Duration = Duration::from_millis(1);
/// Interval while no handler is awake, or none could help.
const REST: Duration = Duration::from_millis(100);

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    thread: Option<JoinHandle<()>>,
    call: Arc<EventNotifier>,
}

impl Watcher {
    /// Starts the thread.
    pub(crate) fn start(group: &Arc<WorkerGroup>, notifiers: Vec<Arc<dyn Notifier>>) -> Result<Self, Error> {
        let call = Arc::new(EventNotifier::new()?);
        let (group, theirs) = (Arc::clone(group), Arc::clone(&call));
        let thread = spawn_deaf("weir-watch", move || watch(&group, &notifiers, &theirs))
            .map_err(|error| CallError::new("start the thread that watches handlers", error))?;
        Ok(Self { thread: Some(thread), call })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.call.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was already printed; do not panic again in drop
        }
    }
}

fn watch(group: &WorkerGroup, notifiers: &[Arc<dyn Notifier>], call: &EventNotifier) {
    loop {
        let fds = notifiers.iter().map(|notifier| notifier.fd()).chain([call.as_fd()]);
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let longest = if group.must_be_watched() { LOOK } else { REST };
        if poll(&mut fds, Some(&timespec(longest))).is_err() {
            std::thread::sleep(LOOK); // the kernel is out of memory: worth another try
        }
        if !fds[notifiers.len()].revents().is_empty() {
            return;
        }
        for (notifier, fd) in notifiers.iter().zip(&fds) {
            if !fd.revents().is_empty() {
                notifier.quiet();
            }
        }
        group.look();
    }
}
