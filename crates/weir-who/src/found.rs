//! The processes whose a packet may be.

use std::sync::Arc;

use crate::processes::KnownProcesses;
use crate::{Certainty, Owner};

/// What was found of the processes whose a packet may be, by their places.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The least certain.
    certainty: Option<Certainty>,
    first: Option<u32>,
    more: Vec<u32>,
    /// A socket whose process nobody has told.
    is_incomplete: bool,
}

impl Found {
    #[inline]
    pub(crate) fn add(&mut self, certainty: Certainty, process: u32) {
        self.certainty = self.certainty.max(Some(certainty));
        match self.first {
            None => self.first = Some(process),
            Some(first) if first == process || self.more.contains(&process) => {}
            Some(_) => self.more.push(process),
        }
    }

    pub(crate) fn add_unknown(&mut self) {
        self.is_incomplete = true;
    }

    /// Returns the answer, if anything was found.
    #[inline]
    pub(crate) fn owner(&self, at: u64, processes: &KnownProcesses) -> Option<Owner> {
        if self.is_incomplete {
            return Some(Owner::nobody(Certainty::Unknown));
        }
        let (certainty, first) = (self.certainty?, self.first?);
        if self.more.is_empty() {
            let process = Arc::clone(processes.at(first, at));
            return Some(Owner { certainty, processes: process.into() });
        }
        let mut all = [&[first], &self.more[..]].concat();
        all.sort_unstable_by_key(|place| processes.id(*place));
        let all: Vec<_> = all.into_iter().map(|place| Arc::clone(processes.at(place, at))).collect();
        Some(Owner { certainty: Certainty::Several, processes: all.into() })
    }
}
