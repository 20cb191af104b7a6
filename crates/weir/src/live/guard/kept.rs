//! Rules that a guard has left in force: lists them, names their interfaces, and takes them off.

use std::fs;
use std::path::{Path, PathBuf};

use weir_sys::bpf::grace::Grace;
use weir_sys::netns;

use super::pins::{self, Pins, Place};
use crate::Error;
use crate::live::bpffs::scope::{Found, Named, Scope, key};
use crate::live::bpffs::{self, BPFFS, Key};
use crate::live::error::Problem;
use crate::live::request::Wanted;
use crate::live::source::programmed::off;

/// Rules that stay in force when their guard has ended ([`OnExit::Closed`](super::OnExit::Closed)). It may still be running.
#[derive(Clone, Debug)]
pub struct KeptRules {
    directory: PathBuf,
    interface: Named,
}

impl KeptRules {
    /// Lists those of all interfaces, ordered by directory.
    ///
    /// # Errors
    ///
    /// No bpffs is mounted here, or others may write to its directory.
    pub fn all() -> Result<Vec<Self>, Error> {
        visible()?;
        let mut all = keys();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let scopes = Scope::all()?;
        let one = |(directory, key)| Self { directory, interface: Named::find(key, &scopes) };
        Ok(all.into_iter().map(one).collect())
    }

    /// Finds those with this [`directory`](Self::directory).
    ///
    /// # Errors
    ///
    /// There are none, or they are not visible here.
    pub fn at(directory: &Path) -> Result<Self, Error> {
        let all = Self::all()?;
        let known = told(&all);
        let found = all.into_iter().find(|one| one.directory == directory);
        found.ok_or_else(|| none(format!("no rules named {}", directory.display()), known))
    }

    /// Finds those of this interface of the calling thread's network namespace, if they are visible here.
    pub fn on(index: u32) -> Option<Self> {
        let here = Key { namespace: netns::cookie().ok()?, index };
        Self::all().ok()?.into_iter().find(|one| one.interface.key == here)
    }

    /// Finds those of an interface.
    pub(super) fn of(wanted: &Wanted) -> Result<Self, Error> {
        visible()?;
        let (key, label) = (key(wanted)?, wanted.label());
        let directory = pins::place(&bpffs::root(), key);
        if !is_there(&directory) {
            return Err(none(format!("no rules were left in force on `{label}`"), told(&Self::all()?)));
        }
        let found = Found::There(wanted.namespace.clone());
        Ok(Self { directory, interface: Named { key, label, found } })
    }

    /// Returns their directory in a bpffs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the name of the interface, or a description if it has none.
    pub fn interface(&self) -> &str {
        &self.interface.label
    }

    /// Returns the IDs of their programs.
    ///
    /// # Errors
    ///
    /// They were just taken off, or privileges are missing.
    pub fn programs(&self) -> Result<Vec<u32>, Error> {
        let left = pins::left(&self.directory)?;
        let links = left.places().into_iter().filter_map(|place| left.link(place));
        links.map(|link| Ok(link.attached()?.program)).collect()
    }

    /// Returns whether received packets meet the rules.
    pub fn received(&self) -> bool {
        [Place::Xdp, Place::Ingress].into_iter().any(|place| self.directory.join(place.name()).exists())
    }

    /// Returns whether sent packets meet the rules.
    pub fn sent(&self) -> bool {
        self.directory.join(Place::Egress.name()).exists()
    }

    /// Returns whether the interface was deleted, and the rules are in force no more.
    pub fn is_dead(&self) -> bool {
        matches!(self.interface.found, Found::Gone)
    }

    /// Takes the rules off: every packet passes.
    ///
    /// # Errors
    ///
    /// Their guard is running, or privileges are missing.
    pub fn end(self) -> Result<(), Error> {
        let Some(pins) = Pins::taken(&self.directory)? else { return Err(pins::held(self.interface())) };
        let left = pins.left()?;
        for place in Place::ALL {
            if let Some(link) = left.link(place) {
                off(link.detach())?;
            }
            pins.unpin(place)?;
        }
        Ok(Grace::new().wait()?)
    }
}

/// Fails if what is left in force cannot be seen, or trusted.
fn visible() -> Result<(), Error> {
    if bpffs::is_bpffs() {
        return bpffs::own_if_there(&bpffs::root());
    }
    Err(Error::Pins(Problem::new(
        format!("cannot tell which rules were left in force: {BPFFS} is not a bpffs here"),
        "`ip netns exec` hides it; run this outside",
    )))
}

/// Returns the directories in which there are links, and their interfaces.
fn keys() -> Vec<(PathBuf, Key)> {
    let entries = fs::read_dir(bpffs::root()).into_iter().flatten().flatten();
    let key = |entry: fs::DirEntry| Some((entry.path(), pins::parsed(&entry.file_name().to_string_lossy())?));
    entries.filter_map(key).filter(|(directory, _)| is_there(directory)).collect()
}

fn is_there(directory: &Path) -> bool {
    Place::ALL.into_iter().any(|place| directory.join(place.name()).exists())
}

/// Describes what was left in force.
fn told(all: &[KeptRules]) -> String {
    let names: Vec<&str> = all.iter().map(KeptRules::interface).collect();
    match names.as_slice() {
        [] => "there are none on any interface".to_owned(),
        names => format!("there are some on {}", names.join(", ")),
    }
}

fn none(what: String, known: String) -> Error {
    Error::Pins(Problem::new(what, known))
}
