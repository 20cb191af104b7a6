//! Forwarding that the kernel continues without a process: lists it, names its interfaces, and ends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use weir_bpf::forward::Queues;
use weir_sys::bpf::XdpLink;
use weir_sys::bpf::grace::Grace;
use weir_sys::link::set_promiscuous;
use weir_sys::netns;

use super::direction;
use super::pins::{self, DIRECTIONS, LINK, PROMISCUOUS, Pins};
use super::stats::{DirectionStats, ForwardStats};
use crate::Error;
use crate::live::bpffs::scope::{Found, Named, Scope, key};
use crate::live::bpffs::{self, BPFFS, Key, privileged};
use crate::live::error::Problem;
use crate::live::namespace::context::inside;
use crate::live::request::Wanted;
use crate::live::source::programmed::off;

/// Forwarding that stays in the kernel until it is ended ([`OnExit::Open`](super::OnExit::Open)). Its process may still
/// be running.
#[derive(Clone, Debug)]
pub struct Pinned {
    directory: PathBuf,
    endpoints: [Named; 2],
}

impl Pinned {
    /// Lists all pinned forwarding, ordered by directory.
    ///
    /// # Errors
    ///
    /// No bpffs is mounted here, or others may write to its directory.
    pub fn all() -> Result<Vec<Self>, Error> {
        visible(None)?;
        bpffs::own_if_there(&bpffs::root())?;
        let mut all = keys();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let contexts = Scope::all()?;
        Ok(all.into_iter().map(|(directory, keys)| Self::of(directory, keys, &contexts)).collect())
    }

    /// Finds the one with this [`directory`](Self::directory).
    ///
    /// # Errors
    ///
    /// There is none, or it is not visible here.
    pub fn at(directory: &Path) -> Result<Self, Error> {
        let all = Self::all()?;
        let what = || format!("no forwarding named {}", directory.display());
        let known = told(&all);
        let found = all.into_iter().find(|one| one.directory == directory);
        found.ok_or_else(|| Error::NotForwarding(Problem::new(what(), known)))
    }

    /// Finds the one that receives on this interface of the calling thread's network namespace, if it is visible here.
    pub fn receiving_on(index: u32) -> Option<Self> {
        let here = Key { namespace: netns::cookie().ok()?, index };
        let is_there = |one: &Self| {
            let mut directions = DIRECTIONS.iter().zip(&one.endpoints);
            directions.any(|(direction, endpoint)| {
                endpoint.key == here && one.directory.join(direction).join(LINK).exists()
            })
        };
        Self::all().ok()?.into_iter().find(is_there)
    }

    /// Finds the one between these interfaces.
    pub(super) fn between(endpoints: &[Wanted; 2]) -> Result<Self, Error> {
        let [from, to] = endpoints.each_ref().map(Wanted::label);
        visible(Some([&from, &to]))?;
        bpffs::own_if_there(&bpffs::root())?;
        let [one, other] = endpoints;
        let keys = [key(one)?, key(other)?];
        let directory = pins::place(&bpffs::root(), keys);
        if !directory.is_dir() {
            let what = format!(
                "nothing is being forwarded from `{from}` to `{to}`: no directory {}",
                directory.display()
            );
            // As seen from the namespace of the first interface.
            let known = inside(one.namespace.as_ref(), || Self::all().map(|all| told(&all)))??;
            return Err(Error::NotForwarding(Problem::new(what, known)));
        }
        let endpoint = |key, label, endpoint: &Wanted| Named {
            key,
            label,
            found: Found::There(endpoint.namespace.clone()),
        };
        Ok(Self { directory, endpoints: [endpoint(keys[0], from, one), endpoint(keys[1], to, other)] })
    }

    fn of(directory: PathBuf, keys: [Key; 2], contexts: &[Scope]) -> Self {
        Self { directory, endpoints: keys.map(|key| Named::find(key, contexts)) }
    }

    /// Returns its directory in a bpffs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the names of the two interfaces, the receiving one first, or a description if they have none.
    pub fn endpoints(&self) -> [&str; 2] {
        self.endpoints.each_ref().map(|endpoint| endpoint.label.as_str())
    }

    /// Returns whether packets are also forwarded in the other direction.
    pub fn both(&self) -> bool {
        DIRECTIONS.iter().all(|direction| self.directory.join(direction).is_dir())
    }

    /// Returns whether one of its interfaces was deleted, so that it no longer forwards in both directions.
    pub fn is_dead(&self) -> bool {
        self.endpoints.iter().any(|endpoint| matches!(endpoint.found, Found::Gone))
    }

    /// Returns what happened to every packet so far.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried, or forwarding has just been ended.
    pub fn stats(&self) -> Result<ForwardStats, Error> {
        let mut directions = Vec::new();
        for (name, [from, to]) in DIRECTIONS.into_iter().zip([[0, 1], [1, 0]]) {
            let directory = self.directory.join(name);
            if !directory.is_dir() {
                continue;
            }
            directions.push(DirectionStats {
                from: self.endpoints[from].label.clone(),
                to: self.endpoints[to].label.clone(),
                queues: direction::queues(&Queues::pinned(&directory)?)?,
                tag_unknown: 0,
                nic: None,
                sender: None,
            });
        }
        Ok(ForwardStats { elapsed: Duration::ZERO, directions })
    }

    /// Ends it, even if its interfaces were deleted, and returns the account since it began.
    ///
    /// # Errors
    ///
    /// Another process is ending it, or privileges are missing.
    pub fn end(self) -> Result<ForwardStats, Error> {
        let [from, to] = self.endpoints();
        let Some(mut pins) = Pins::taken(&self.directory)? else {
            return Err(pins::begins(&self.directory, from, to));
        };
        for (name, endpoint) in DIRECTIONS.into_iter().zip(&self.endpoints) {
            let directory = self.directory.join(name);
            match XdpLink::pinned(&directory.join(LINK)) {
                Ok(link) => off(link.detach())?,
                Err(error) if error.errno() == Errno::NOENT.raw_os_error() => {}
                Err(error) => {
                    pins.keep();
                    return Err(privileged(error));
                }
            }
            if let Found::There(namespace) = &endpoint.found
                && directory.join(PROMISCUOUS).is_dir()
            {
                let undo = || set_promiscuous(endpoint.key.index, false);
                inside(namespace.as_ref(), undo)??;
            }
        }
        let waited = Grace::new().wait();
        let account = self.stats()?;
        drop(pins);
        waited?;
        Ok(account)
    }
}

/// Describes what is forwarded.
fn told(all: &[Pinned]) -> String {
    let pairs: Vec<String> = all.iter().map(|one| one.endpoints().join(" to ")).collect();
    match pairs.as_slice() {
        [] => "nothing is being forwarded".to_owned(),
        pairs => format!("currently forwarded: {}", pairs.join("; ")),
    }
}

/// Fails if bpffs is not visible; `endpoints` is what was asked for.
fn visible(endpoints: Option<[&String; 2]>) -> Result<(), Error> {
    if bpffs::is_bpffs() {
        return Ok(());
    }
    Err(Error::ForwardingHidden {
        place: BPFFS,
        endpoints: endpoints.map(|endpoints| endpoints.map(String::clone)),
    })
}

/// Returns the directories, and the interfaces that their names stand for.
fn keys() -> Vec<(PathBuf, [Key; 2])> {
    let entries = fs::read_dir(bpffs::root()).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), pins::parsed(&entry.file_name().to_string_lossy())?)))
        .collect()
}
