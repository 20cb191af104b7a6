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

    /// It runs another program from this time on.
    pub(crate) fn execute(&mut self, at: u64, process: &Arc<Process>) {
        match self.places.get(&process.id) {
            Some(&place) => self.entries[place as usize].execute(at, process),
            None => {
                self.add(at, process);
            }
        }
    }

    /// Takes in more about a process: of all times in which it had this name and user.
    pub(crate) fn describe(&mut self, process: &Arc<Process>) {
        match self.places.get(&process.id) {
            Some(&place) => self.entries[place as usize].describe(process),
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
        let mut process = Arc::clone(process);
        if let Some(version) = before {
            if Arc::ptr_eq(&version.process, &process) {
                return;
            }
            match join(&version.process, &process) {
                Joined::Same => return,
                Joined::More(joined) => {
                    version.process = joined;
                    return;
                }
                Joined::Moved(joined) => process = joined,
                Joined::Other => {}
            }
        }
        // Before the next version, or it is that, seen earlier.
        let after = self.versions_mut().find(|version| version.since > at);
        if let Some(version) = after {
            match join(&version.process, &process) {
                Joined::Same => return version.since = at,
                Joined::More(joined) => {
                    version.since = at;
                    version.process = joined;
                    return;
                }
                Joined::Moved(_) | Joined::Other => {}
            }
        }
        self.insert(Version { since: at, process });
    }

    /// It runs another program from now on, even if that has the same name.
    fn execute(&mut self, at: u64, process: &Arc<Process>) {
        self.insert(Version { since: at, process: Arc::clone(process) });
    }

    /// Takes in more about all times in which it had this name and user. Where its group was another one, only the program counts.
    fn describe(&mut self, process: &Arc<Process>) {
        for version in self.versions_mut() {
            let known = &version.process;
            if known.name != process.name || known.user != process.user {
                continue;
            }
            version.process = match differ(known.cgroup.as_ref(), process.cgroup.as_ref()) {
                false => Arc::clone(process),
                true => Arc::new(Process {
                    program: process.program.clone(),
                    arguments: process.arguments.clone(),
                    ..(**known).clone()
                }),
            };
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

/// What two accounts of a process say together.
enum Joined {
    /// No more than the first.
    Same,
    More(Arc<Process>),
    /// It is in another control group; the second account, with what the first one knows of its program.
    Moved(Arc<Process>),
    /// It runs as another user, or has another name.
    Other,
}

fn differ<T: PartialEq>(known: Option<&T>, told: Option<&T>) -> bool {
    known.is_some() && told.is_some() && known != told
}

/// Joins two accounts of a process. Whoever tells of a socket may call its program differently, by a link: that is no change, since a new
/// program is told of by itself.
fn join(known: &Process, told: &Process) -> Joined {
    if known.name != told.name || known.user != told.user {
        return Joined::Other;
    }
    let mut both = known.clone();
    if both.parent == 0 {
        both.parent = told.parent;
    }
    both.program = both.program.or_else(|| told.program.clone());
    both.arguments = both.arguments.or_else(|| told.arguments.clone());
    if differ(known.cgroup.as_ref(), told.cgroup.as_ref()) {
        let (cgroup, container, unit) = (told.cgroup.clone(), told.container.clone(), told.unit.clone());
        return Joined::Moved(Arc::new(Process { cgroup, container, unit, ..both }));
    }
    both.cgroup = both.cgroup.or_else(|| told.cgroup.clone());
    both.unit = both.unit.or_else(|| told.unit.clone());
    let name = |process: &Process| process.container.as_ref()?.name.clone();
    if name(known).is_none() && told.container.is_some() {
        both.container.clone_from(&told.container);
    }
    if both == *known { Joined::Same } else { Joined::More(Arc::new(both)) }
}
