//! Events of interfaces during a capture.

use std::collections::VecDeque;
use std::fmt;

use weir_sys::link::Link;

/// Something that happened to an interface of a capture; see [`crate::Capture::events`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Number of the interface in the capture.
    pub interface: u32,
    /// Its name in the capture, which never changes.
    pub name: String,
    /// What happened.
    pub change: Change,
}

/// What can happen to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It was set down. Nothing arrives until it is up again; the capture waits for that.
    Down,
    /// It is up and captured again.
    Up,
    /// The cable is unplugged, or the other end of a pair is down. Also reported at the start.
    NoCarrier,
    /// The cable is plugged in again.
    Carrier,
    /// It was renamed. The capture continues, and keeps the old name.
    Renamed {
        /// The new name.
        to: String,
    },
    /// It is gone for good, alone or with its namespace. Its account is final; the other interfaces are still captured.
    Gone,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, change, .. } = self;
        match change {
            Change::Down => write!(f, "{name} is down: nothing arrives until it is up"),
            Change::Up => write!(f, "{name} is up again"),
            Change::NoCarrier => {
                write!(f, "{name} has no carrier: nothing arrives until the cable is connected")
            }
            Change::Carrier => write!(f, "{name} has carrier again"),
            Change::Renamed { to } => write!(f, "{name} was renamed to {to}; weir keeps calling it {name}"),
            Change::Gone => write!(f, "{name} is gone; captured packets are kept"),
        }
    }
}

/// The latest events of a capture. Each reader gets each event once.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: VecDeque<Event>,
    /// Number of earlier events that were dropped.
    forgotten: u64,
}

/// A reader's position in a [`Log`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard(u64);

/// Maximum number of events kept.
const MOST: usize = 1000;

impl Log {
    pub(crate) fn push(&mut self, event: Event) {
        if self.events.len() == MOST {
            self.events.pop_front();
            self.forgotten += 1;
        }
        self.events.push_back(event);
    }

    /// Number of events so far, dropped ones included.
    pub(crate) fn len(&self) -> u64 {
        self.forgotten + self.events.len() as u64
    }

    /// Returns the events after `heard` and advances it.
    pub(crate) fn since(&self, heard: &mut Heard) -> Vec<Event> {
        let known = usize::try_from(heard.0.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        *heard = Heard(self.len());
        self.events.iter().skip(known).cloned().collect()
    }
}

/// The last known state of an interface, to detect changes.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    name: String,
    up: bool,
    carrier: bool,
}

impl Known {
    /// Takes the state from `link`.
    pub(crate) fn of(link: &Link) -> Self {
        Self { name: link.name.clone(), up: link.is_up(), carrier: link.has_carrier() }
    }

    /// Whether the interface is up but without a carrier, so that nothing can arrive.
    pub(crate) fn lacks_carrier(&self) -> bool {
        self.up && !self.carrier
    }

    /// Updates the state and returns what has changed.
    pub(crate) fn follow(&mut self, link: &Link) -> Vec<Change> {
        let before = std::mem::replace(self, Self::of(link));
        let mut changes = Vec::new();
        if self.name != before.name {
            changes.push(Change::Renamed { to: self.name.clone() });
        }
        match (before.up, self.up) {
            (true, false) => changes.push(Change::Down),
            (false, true) => changes.push(Change::Up),
            // An interface that is down has no carrier.
            (true, true) if before.carrier && !self.carrier => changes.push(Change::NoCarrier),
            (true, true) if !before.carrier && self.carrier => changes.push(Change::Carrier),
            _ => {}
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: u32 = 0x1;
    const LOWER_UP: u32 = 0x1_0000;

    fn link(name: &str, flags: u32) -> Link {
        Link { name: name.to_owned(), flags, ..Link::default() }
    }

    #[test]
    fn everybody_hears_each_event_once() {
        let mut log = Log::default();
        let (mut first, mut second) = (Heard::default(), Heard::default());
        let name = |events: Vec<Event>| events.into_iter().map(|event| event.interface).collect::<Vec<_>>();
        let most = u32::try_from(MOST).unwrap();
        for interface in 0..=most {
            log.push(Event { interface, name: String::new(), change: Change::Up });
            if interface == 1 {
                assert_eq!(name(log.since(&mut first)), [0, 1]);
                assert!(log.since(&mut first).is_empty());
            }
        }
        // The oldest was dropped.
        assert_eq!(name(log.since(&mut first)), (2..=most).collect::<Vec<_>>());
        assert_eq!(name(log.since(&mut second)), (1..=most).collect::<Vec<_>>());
        assert!(log.since(&mut second).is_empty());
    }

    #[test]
    fn each_change_is_told_once() {
        let mut known = Known::of(&link("a", UP | LOWER_UP));
        assert!(!known.lacks_carrier());
        for (name, flags, expected) in [
            ("a", UP | LOWER_UP, vec![]),
            ("a", UP, vec![Change::NoCarrier]),
            ("a", UP, vec![]),
            ("a", UP | LOWER_UP, vec![Change::Carrier]),
            ("a", 0, vec![Change::Down]),
            ("b", 0, vec![Change::Renamed { to: "b".to_owned() }]),
            ("b", UP, vec![Change::Up]),
            ("b", UP | LOWER_UP, vec![Change::Carrier]),
            ("c", LOWER_UP, vec![Change::Renamed { to: "c".to_owned() }, Change::Down]),
        ] {
            assert_eq!(known.follow(&link(name, flags)), expected, "{name} {flags:x}");
        }
        assert!(Known::of(&link("a", UP)).lacks_carrier());
    }
}
