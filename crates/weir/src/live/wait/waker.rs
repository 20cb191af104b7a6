//! What a capture sleeps on, and what event loops wait for.
//!
//! ```text
//!   event loop --> outer epoll --+--> inner epoll --+--> notifiers of the sources
//!                                |                  +--> netlink sockets of the namespaces
//!                                |                  '--> the stop handle
//!                                '--> alarm (timerfd)
//! ```
//!
//! [`crate::Capture::next`] sleeps on the inner epoll; the outer one is the descriptor of the capture. The alarm stays expired,
//! and so the descriptor readable, until [`crate::Capture::try_next`] finds nothing and sets it.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use weir_sys::CallError;

use super::strategy::{Woken, timespec};

/// The descriptors, and the state of the alarm.
#[derive(Debug)]
pub(crate) struct Waker {
    outer: OwnedFd,
    inner: OwnedFd,
    alarm: OwnedFd,
    /// When the alarm expires, if an event loop may be asleep until then. Setting it took tens of
    /// microseconds on the virtual machine where that was measured.
    until: Option<Instant>,
}

const NOTIFIED: u64 = 0;
const NEWS: u64 = 1;
/// Maximum number of descriptors reported by one wait; the rest are reported by the next.
const MOST: usize = 8;
/// The shortest time of a timer; zero would disarm it.
const AT_ONCE: Duration = Duration::from_nanos(1);

impl Waker {
    pub(crate) fn new() -> Result<Self, CallError> {
        let failed = |error| CallError::new("make descriptors to wait for packets", error);
        let waker = Self {
            outer: epoll::create(CreateFlags::CLOEXEC).map_err(failed)?,
            inner: epoll::create(CreateFlags::CLOEXEC).map_err(failed)?,
            alarm: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
                .map_err(failed)?,
            until: None,
        };
        for fd in [&waker.inner, &waker.alarm] {
            epoll::add(&waker.outer, fd, EventData::new_u64(0), EventFlags::IN).map_err(failed)?;
        }
        waker.set(AT_ONCE)?;
        Ok(waker)
    }

    /// Adds a notifier.
    pub(crate) fn add_notifier(&self, fd: BorrowedFd<'_>) -> Result<(), CallError> {
        self.add(fd, NOTIFIED)
    }

    /// Adds a descriptor that signals news.
    pub(crate) fn add_news(&self, fd: BorrowedFd<'_>) -> Result<(), CallError> {
        self.add(fd, NEWS)
    }

    fn add(&self, fd: BorrowedFd<'_>, what: u64) -> Result<(), CallError> {
        epoll::add(&self.inner, fd, EventData::new_u64(what), EventFlags::IN)
            .map_err(|error| CallError::new("add a descriptor to those to wait for", error))
    }

    /// Removes `fd`. Closing it does not suffice if another process holds a copy.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.inner, fd); // it fails for one that was never added
    }

    /// Sleeps until a descriptor is readable, for at most `longest`.
    pub(crate) fn sleep(&self, longest: Duration) -> Result<Woken, CallError> {
        let mut room = [const { MaybeUninit::uninit() }; MOST];
        let events = match epoll::wait(&self.inner, &mut room, Some(&timespec(longest))) {
            Ok((events, _)) => events,
            // The caller wants to know about a signal.
            Err(Errno::INTR) => return Ok(Woken::News),
            Err(error) => return Err(CallError::new("wait for packets", error)),
        };
        let news = events.iter().any(|event| event.data.u64() == NEWS);
        Ok(match events.is_empty() {
            true => Woken::Time,
            false if news => Woken::News,
            false => Woken::Notified,
        })
    }

    /// Whether an event loop may be asleep.
    pub(crate) fn is_asleep(&self) -> bool {
        self.until.is_some()
    }

    /// Lets an event loop sleep until `until`, or until a descriptor is readable. An alarm that is set for an earlier time
    /// stays: the loop then wakes once for nothing.
    pub(crate) fn sleep_until(&mut self, until: Instant) -> Result<(), CallError> {
        let now = Instant::now();
        if self.until.is_some_and(|set| now < set && set <= until) {
            return Ok(());
        }
        self.until = Some(until);
        self.set(until.saturating_duration_since(now).max(AT_ONCE))
    }

    /// Keeps an event loop awake: there may be something to take.
    pub(crate) fn stay_awake(&mut self) -> Result<(), CallError> {
        match self.until.take() {
            Some(set) if Instant::now() < set => self.set(AT_ONCE),
            // It has expired, or is about to.
            _ => Ok(()),
        }
    }

    fn set(&self, time: Duration) -> Result<(), CallError> {
        let time = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(time) };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &time)
            .map(drop)
            .map_err(|error| CallError::new("set a timer", error))
    }
}

impl AsFd for Waker {
    /// Borrows the descriptor for event loops.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outer.as_fd()
    }
}
