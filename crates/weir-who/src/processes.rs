//! What is known of processes, and since when.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::{Process, ProcessId};

/// Changes of a process that are remembered: the latest.
const MOST_VERSIONS: usize = 8;

/// The processes that sockets belong to, and others while there is room.
#[derive(Debug)]
pub(crate) struct KnownProcesses {
    entries: Vec<Entry>,
    free: Vec<u32>,
    places: HashMap<ProcessId, u32>,
    /// Those without a socket, by when they lost the last one.
    idle: BTreeSet<(u64, u32)>,
    /// How many may be without a socket.
    spare: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    id: ProcessId,
    first: Version,
    /// Later ones, in the order of time.
    later: Vec<Version>,
    sockets: u32,
    idle_since: u64,
}

/// How a process was from some time on.
#[derive(Clone, Debug)]
struct Version {
    since: u64,
    process: Arc<Process>,
}

impl KnownProcesses {
    pub(crate) fn new(spare: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            idle: BTreeSet::new(),
            spare,
            clock: 0,
        }
    }

    /// Takes in how a process was at some time, and returns its place.
    pub(crate) fn see(&mut self, at: u64, process: &Arc<Process>) -> u32 {
        match self.places.get(&process.id) {
            Some(&place) => {
                self.entries[place as usize].see(at, process);
                place
            }
            None => self.add(at, process),
        }
    }

    /// Takes in more about a process: of all times in which it had this name and user.
    pub(crate) fn describe(&mut self, now: u64, process: &Arc<Process>) {
        match self.places.get(&process.id) {
            Some(&place) => self.entries[place as usize].describe(now, process),
            None => {
                self.add(0, process);
            }
        }
    }

    /// Returns a process as it was at some time; as it was first if that is earlier.
    #[inline]
    pub(crate) fn at(&self, place: u32, at: u64) -> &Arc<Process> {
        let entry = &self.entries[place as usize];
        let later = entry.later.iter().rfind(|version| version.since <= at);
        &later.unwrap_or(&entry.first).process
    }

    /// Returns which process is at this place.
    pub(crate) fn id(&self, place: u32) -> ProcessId {
        self.entries[place as usize].id
    }

    /// A socket has come to belong to it.
    pub(crate) fn hold(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        if entry.sockets == 0 {
            self.idle.remove(&(entry.idle_since, place));
        }
        entry.sockets += 1;
    }

    /// One of its sockets is forgotten.
    pub(crate) fn release(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        entry.sockets -= 1;
        if entry.sockets == 0 {
            self.rest(place);
        }
    }

    /// It has no socket: the one longest without goes if they are too many.
    fn rest(&mut self, place: u32) {
        self.clock += 1;
        self.entries[place as usize].idle_since = self.clock;
        self.idle.insert((self.clock, place));
        if self.idle.len() > self.spare
            && let Some((_, oldest)) = self.idle.pop_first()
        {
            let entry = &mut self.entries[oldest as usize];
            self.places.remove(&entry.id);
            entry.later = Vec::new();
            self.free.push(oldest);
        }
    }

    fn add(&mut self, since: u64, process: &Arc<Process>) -> u32 {
        let first = Version { since, process: Arc::clone(process) };
        let entry = Entry { id: process.id, first, later: Vec::new(), sockets: 0, idle_since: 0 };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("sockets have 32-bit places, too")
            }
        };
        self.places.insert(process.id, place);
        self.rest(place);
        place
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

impl Entry {
    fn versions_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Version> {
        std::iter::once(&mut self.first).chain(&mut self.later)
    }

    fn see(&mut self, at: u64, process: &Arc<Process>) {
        let before = self.versions_mut().rfind(|version| version.since <= at);
        if let Some(version) = before {
            if Arc::ptr_eq(&version.process, process) {
                return;
            }
            if let Some(joined) = join(&version.process, process) {
                version.set(joined);
                return;
            }
        }
        // Before the next version, or it is that, seen earlier.
        let after = self.versions_mut().find(|version| version.since > at);
        if let Some(version) = after
            && let Some(joined) = join(&version.process, process)
        {
            version.since = at;
            version.set(joined);
            return;
        }
        self.insert(Version { since: at, process: Arc::clone(process) });
    }

    fn describe(&mut self, now: u64, process: &Arc<Process>) {
        let mut found = false;
        for version in self.versions_mut() {
            if version.process.name == process.name && version.process.user == process.user {
                version.process = Arc::clone(process);
                found = true;
            }
        }
        if !found {
            self.insert(Version { since: now, process: Arc::clone(process) });
        }
    }

    fn insert(&mut self, version: Version) {
        if version.since < self.first.since {
            self.later.insert(0, std::mem::replace(&mut self.first, version));
        } else {
            let index = self.later.partition_point(|later| later.since <= version.since);
            self.later.insert(index, version);
        }
        if self.later.len() >= MOST_VERSIONS {
            self.first = self.later.remove(0);
        }
    }
}

impl Version {
    fn set(&mut self, joined: Joined) {
        if let Joined::More(process) = joined {
            self.process = process;
        }
    }
}

/// What two accounts of a process say together.
enum Joined {
    /// No more than the first.
    Same,
    More(Arc<Process>),
}

/// Joins two accounts of a process; `None`: it has changed between them.
fn join(known: &Process, told: &Process) -> Option<Joined> {
    fn differ<T: PartialEq>(known: Option<&T>, told: Option<&T>) -> bool {
        known.is_some() && told.is_some() && known != told
    }
    if known.name != told.name
        || known.user != told.user
        || differ(known.program.as_ref(), told.program.as_ref())
        || differ(known.arguments.as_ref(), told.arguments.as_ref())
        || differ(known.cgroup.as_ref(), told.cgroup.as_ref())
        || differ(known.unit.as_ref(), told.unit.as_ref())
        || differ(
            known.container.as_ref().map(|container| &container.id),
            told.container.as_ref().map(|container| &container.id),
        )
    {
        return None;
    }
    fn adds<T>(known: Option<&T>, told: Option<&T>) -> bool {
        known.is_none() && told.is_some()
    }
    let names = [known, told].map(|process| process.container.as_ref()?.name.as_ref());
    let is_more = (known.parent == 0 && told.parent != 0)
        || adds(known.program.as_ref(), told.program.as_ref())
        || adds(known.arguments.as_ref(), told.arguments.as_ref())
        || adds(known.cgroup.as_ref(), told.cgroup.as_ref())
        || adds(known.unit.as_ref(), told.unit.as_ref())
        || adds(known.container.as_ref(), told.container.as_ref())
        || adds(names[0], names[1]);
    if !is_more {
        return Some(Joined::Same);
    }
    let mut both = known.clone();
    if both.parent == 0 {
        both.parent = told.parent;
    }
    both.program = both.program.or_else(|| told.program.clone());
    both.arguments = both.arguments.or_else(|| told.arguments.clone());
    both.cgroup = both.cgroup.or_else(|| told.cgroup.clone());
    both.unit = both.unit.or_else(|| told.unit.clone());
    if names[0].is_none() && told.container.is_some() {
        both.container.clone_from(&told.container);
    }
    Some(Joined::More(Arc::new(both)))
}
