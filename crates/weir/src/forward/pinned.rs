//! Forwarding that the kernel continues without a process: lists it, names its interfaces, and ends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use weir_bpf::forward::Queues;
use weir_sys::bpf::XdpLink;
use weir_sys::bpf::grace::Grace;
use weir_sys::link::{Link, links, set_promiscuous};
use weir_sys::netns;

use super::direction;
use super::directory::privileged;
use super::pins::{self, BPFFS, DIRECTIONS, Key, LINK, PROMISCUOUS, Pins};
use super::stats::{DirectionStats, ForwardStats};
use crate::live::error::Problem;
use crate::live::namespace;
use crate::live::namespace::context::inside;
use crate::live::request::Wanted;
use crate::live::source::programmed::off;
use crate::{Error, Namespace};

/// Forwarding that stays in the kernel until it is ended ([`OnExit::Open`](super::OnExit::Open)). Its process may still
/// be running.
#[derive(Clone, Debug)]
pub struct Pinned {
    directory: PathBuf,
    endpoints: [PinnedEndpoint; 2],
}

/// One of the interfaces.
#[derive(Clone, Debug)]
struct PinnedEndpoint {
    key: Key,
    label: String,
    found: Found,
}

#[derive(Clone, Debug)]
enum Found {
    /// In this namespace; `None`: that of the calling thread.
    There(Option<Namespace>),
    Gone,
    /// In a namespace that has no name or may not be entered.
    Elsewhere,
}

/// A namespace and its interfaces, used to name those of pinned forwarding.
struct Scope {
    namespace: Option<Namespace>,
    cookie: u64,
    links: Vec<Link>,
}

impl Pinned {
    /// Lists all pinned forwarding, ordered by directory.
    ///
    /// # Errors
    ///
    /// No bpffs is mounted here, or others may write to its directory.
    pub fn all() -> Result<Vec<Self>, Error> {
        visible(None)?;
        pins::own_if_there(&pins::root())?;
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
        pins::own_if_there(&pins::root())?;
        let [one, other] = endpoints;
        let keys = [key(one)?, key(other)?];
        let directory = pins::place(&pins::root(), keys);
        if !directory.is_dir() {
            let what = format!(
                "nothing is being forwarded from `{from}` to `{to}`: no directory {}",
                directory.display()
            );
            // As seen from the namespace of the first interface.
            let known = inside(one.namespace.as_ref(), || Self::all().map(|all| told(&all)))??;
            return Err(Error::NotForwarding(Problem::new(what, known)));
        }
        let endpoint = |key, label, endpoint: &Wanted| PinnedEndpoint {
            key,
            label,
            found: Found::There(endpoint.namespace.clone()),
        };
        Ok(Self { directory, endpoints: [endpoint(keys[0], from, one), endpoint(keys[1], to, other)] })
    }

    fn of(directory: PathBuf, keys: [Key; 2], contexts: &[Scope]) -> Self {
        Self { directory, endpoints: keys.map(|key| PinnedEndpoint::find(key, contexts)) }
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

impl PinnedEndpoint {
    fn find(key: Key, contexts: &[Scope]) -> Self {
        let context = contexts.iter().find(|context| context.cookie == key.namespace);
        let link = context.and_then(|context| context.links.iter().find(|link| link.index == key.index));
        let (label, found) = match (context, link) {
            (Some(context), Some(link)) => {
                let namespace = context.namespace.as_ref().map(|one| format!("{}/", one.name()));
                let label = format!("{}{}", namespace.unwrap_or_default(), link.name);
                (label, Found::There(context.namespace.clone()))
            }
            (Some(_), None) => (format!("interface {}, which is gone", key.index), Found::Gone),
            (None, _) => (format!("interface {} in another namespace", key.index), Found::Elsewhere),
        };
        Self { key, label, found }
    }
}

impl Scope {
    /// Returns the namespace of the calling thread, and all named ones that may be entered.
    fn all() -> Result<Vec<Self>, Error> {
        let mut contexts = vec![Self::look(None)?];
        let named = namespace::names().into_iter().filter_map(|name| Namespace::find(&name).ok());
        contexts.extend(named.filter_map(|namespace| Self::look(Some(namespace)).ok()));
        Ok(contexts)
    }

    fn look(namespace: Option<Namespace>) -> Result<Self, Error> {
        let (cookie, links) = inside(namespace.as_ref(), || (netns::cookie(), links()))?;
        Ok(Self { namespace, cookie: cookie?, links: links? })
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
    if pins::is_bpffs() {
        return Ok(());
    }
    Err(Error::ForwardingHidden {
        place: BPFFS,
        endpoints: endpoints.map(|endpoints| endpoints.map(String::clone)),
    })
}

fn key(wanted: &Wanted) -> Result<Key, Error> {
    let context = Scope::look(wanted.namespace.clone())?;
    let index = context.links.into_iter().find(|link| link.name == wanted.name).map(|link| link.index);
    let gone = || Error::NoSuchEndpoint { name: wanted.label() };
    Ok(Key { namespace: context.cookie, index: index.ok_or_else(gone)? })
}

/// Returns the directories, and the interfaces that their names stand for.
fn keys() -> Vec<(PathBuf, [Key; 2])> {
    let entries = fs::read_dir(pins::root()).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), pins::parsed(&entry.file_name().to_string_lossy())?)))
        .collect()
}
