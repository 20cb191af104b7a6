//! Rules that other rules made of packets.

use super::key::Exact;
use super::table::Table;

/// The learned rules in force.
#[derive(Debug)]
pub(crate) struct Learned {
    table: Table<Exact, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The rule that made it.
    by: usize,
    /// When it ends, in nanoseconds.
    until: u64,
    /// It ends so long after its last packet, instead.
    idle: Option<u64>,
}

/// What became of a rule to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taught {
    /// It is in force from now on.
    New,
    /// Another one is in force.
    Known,
    /// There is no room.
    NoRoom,
}

impl Learned {
    pub(crate) fn new(most: usize) -> Self {
        Self { table: Table::new(most) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the rule that made the one in force for such a packet, which puts off the end of one that ends when it is idle.
    pub(crate) fn find(&mut self, exact: &Exact, now: u64) -> Option<usize> {
        let entry = self.table.get(exact).filter(|entry| now < entry.until)?;
        if let Some(idle) = entry.idle {
            // Packets of a file may be out of order.
            entry.until = entry.until.max(now.saturating_add(idle));
        }
        Some(entry.by)
    }

    /// Makes a rule for a time, or until it was idle so long, unless there is one in force.
    pub(crate) fn add(&mut self, exact: Exact, by: usize, now: u64, lasting: u64, idle: bool) -> Taught {
        let (until, idle) = (now.saturating_add(lasting), idle.then_some(lasting));
        let mut is_new = false;
        let entry = self.table.entry(
            exact,
            now,
            |entry| entry.until <= now,
            || {
                is_new = true;
                Entry { by, until, idle }
            },
        );
        match entry {
            None => Taught::NoRoom,
            Some(_) if is_new => Taught::New,
            Some(entry) if entry.until <= now => {
                *entry = Entry { by, until, idle };
                Taught::New
            }
            Some(_) => Taught::Known,
        }
    }
}
