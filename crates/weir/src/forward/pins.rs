//! The names in a bpffs under which forwarding continues in the kernel:
//!
//! ```text
//! /sys/fs/bpf/weir/forward-NAMESPACE-INDEX-NAMESPACE-INDEX/{forth,back}/{link, accounts, sent, refused, filters, outcomes, promiscuous}
//! ```
//!
//! The numbers are the network namespace and index of each interface, the receiving one first; interface names may
//! change, and differ between namespaces. `promiscuous` is a directory that exists if promiscuous mode has to be
//! switched off at the end. `sent` and `refused` are in `forth` only: they serve both ways.
//!
//! A process that begins or ends forwarding holds a lock on the directory. If two begin at once, only one succeeds, and the
//! other has nothing that it could remove.

use std::fs::File;
use std::path::{Path, PathBuf};

use weir_sys::netns;

use super::endpoint::Endpoint;
use crate::Error;
use crate::live::bpffs::{BPFFS, Key, is_bpffs, lock, make_directory, own, own_if_there, removed, root};
use crate::live::error::Problem;

/// Directories of the two directions.
pub(super) const DIRECTIONS: [&str; 2] = ["forth", "back"];
/// The program's link, pinned last: without it nothing else has any effect.
pub(super) const LINK: &str = "link";
pub(super) const PROMISCUOUS: &str = "promiscuous";

/// The directory of pinned forwarding, and the right to change it.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    /// Held until the directory should stay; otherwise it is removed on drop.
    locked: Option<File>,
}

impl Pins {
    /// Creates the directory for forwarding that is about to begin.
    pub(super) fn make(endpoints: &[Endpoint; 2]) -> Result<Self, Error> {
        if !is_bpffs() {
            return Err(Error::Forward(Problem::new(
                format!("forwarding cannot outlive the process without a bpffs at {BPFFS}"),
                format!("mount -t bpf -o mode=0700 bpf {BPFFS}"),
            )));
        }
        let root = root();
        make_directory(&root)?;
        own(&root)?;
        let directory = place(&root, keys(endpoints)?);
        let [from, to] = endpoints;
        let Some(locked) = lock(&directory, true)? else {
            return Err(begins(&directory, from.name(), to.name()));
        };
        if goes_on(&directory) {
            return Err(already(from.name(), to.name()));
        }
        let pins = Self { directory, locked: Some(locked) };
        // Removes what a killed process has left.
        pins.empty()?;
        Ok(pins)
    }

    /// Fails if this is forwarded already, as far as a directory says that can be trusted.
    pub(super) fn check(endpoints: &[Endpoint; 2]) -> Result<(), Error> {
        let [from, to] = endpoints;
        // What somebody else has put there is not ours to end, and forwarding without pins does not need it.
        if own_if_there(&root()).is_err() {
            return Ok(());
        }
        if goes_on(&place(&root(), keys(endpoints)?)) { Err(already(from.name(), to.name())) } else { Ok(()) }
    }

    /// Returns the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the directory of a direction.
    pub(super) fn direction(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.directory.join(name);
        make_directory(&directory)?;
        Ok(directory)
    }

    /// Returns the mark for an interface that was made promiscuous.
    pub(super) fn promiscuous(&self, name: &str) -> PathBuf {
        self.directory.join(name).join(PROMISCUOUS)
    }

    /// Keeps the directory.
    pub(super) fn keep(&mut self) {
        self.locked = None;
    }

    /// Locks an existing directory; `None`: another process has the lock.
    pub(super) fn taken(directory: &Path) -> Result<Option<Self>, Error> {
        let locked = lock(directory, false)?;
        Ok(locked.map(|locked| Self { directory: directory.to_owned(), locked: Some(locked) }))
    }

    fn empty(&self) -> Result<(), Error> {
        DIRECTIONS.iter().try_for_each(|direction| removed(&self.directory.join(direction)))
    }
}

impl Drop for Pins {
    /// Removes forwarding that failed to begin or has ended.
    fn drop(&mut self) {
        if self.locked.is_some() {
            // The lock is released last: a process waiting for it finds no directory then.
            let _gone_already = removed(&self.directory);
        }
    }
}

fn keys(endpoints: &[Endpoint; 2]) -> Result<[Key; 2], Error> {
    let key = |endpoint: &Endpoint| {
        Ok::<_, Error>(Key { namespace: endpoint.inside(netns::cookie)??, index: endpoint.index() })
    };
    Ok([key(&endpoints[0])?, key(&endpoints[1])?])
}

/// bpffs does not allow dots in names.
pub(super) fn place(root: &Path, [from, to]: [Key; 2]) -> PathBuf {
    let Key { namespace, index } = from;
    root.join(format!("forward-{namespace}-{index}-{}-{}", to.namespace, to.index))
}

fn goes_on(directory: &Path) -> bool {
    DIRECTIONS.iter().any(|direction| directory.join(direction).join(LINK).exists())
}

fn already(from: &str, to: &str) -> Error {
    Error::AlreadyForwarding { from: from.to_owned(), to: to.to_owned() }
}

/// Returns the error if another process has the lock.
pub(super) fn begins(directory: &Path, from: &str, to: &str) -> Error {
    if goes_on(directory) {
        return already(from, to);
    }
    Error::ForwardingChanges { from: from.to_owned(), to: to.to_owned() }
}

/// Parses the interfaces from the name of a directory.
pub(super) fn parsed(name: &str) -> Option<[Key; 2]> {
    let mut numbers = name.strip_prefix("forward-")?.split('-').map(str::parse::<u64>);
    let mut key = || {
        let (namespace, index) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Key { namespace, index: index.try_into().ok()? })
    };
    let pair = [key()?, key()?];
    numbers.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_pair_has_a_name_of_its_own() {
        let keys = [(1, 12), (11, 2), (1, 1), (1, 2)].map(|(namespace, index)| Key { namespace, index });
        let mut names = Vec::new();
        for from in keys {
            for to in keys {
                let path = place(&root(), [from, to]);
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                assert_eq!(parsed(&name), Some([from, to]));
                assert!(!name.contains('.') && !names.contains(&name), "{name}");
                names.push(name);
            }
        }
    }

    #[test]
    fn of_those_who_begin_at_once_one_does_and_the_others_remove_nothing() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("forward-1-1-1-2");
        for _ in 0..200 {
            let start = std::sync::Barrier::new(4);
            let begun = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    let locked = lock(&directory, true).unwrap()?;
                    let pins = Pins { directory: directory.clone(), locked: Some(locked) };
                    fs::write(directory.join("mark"), "").expect("the directory is there");
                    Some(pins)
                };
                let threads = [(); 4].map(|()| scope.spawn(one));
                threads.map(|thread| thread.join().unwrap())
            });
            let begun: Vec<Pins> = begun.into_iter().flatten().collect();
            assert_eq!(begun.len(), 1);
            assert!(directory.join("mark").exists());
            drop(begun);
            assert!(!directory.exists(), "what has not begun leaves nothing");
        }
    }
}
