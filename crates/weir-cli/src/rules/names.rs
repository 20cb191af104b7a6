//! Names in rules: those of the system, and sets.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir::filter::{Names, Service, SystemNames};
use weir_filter::spelling;

/// The file of a set: `--set NAME=FILE`.
#[derive(Clone, Debug)]
pub(crate) struct SetFile {
    name: String,
    path: PathBuf,
}

impl SetFile {
    /// Parses the value of the option.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, path) =
            text.split_once('=').ok_or("expected NAME=FILE, such as blocklist=/etc/blocked")?;
        let name = name.strip_prefix('@').unwrap_or(name);
        match name.is_empty() || path.is_empty() {
            true => Err("expected NAME=FILE, such as blocklist=/etc/blocked".to_owned()),
            false => Ok(Self { name: name.to_owned(), path: path.into() }),
        }
    }
}

/// Looks names up. The set `@NAME` is a file that was given for it, or else the file NAME beside the rules.
#[derive(Clone, Debug)]
pub(crate) struct RuleNames {
    system: SystemNames,
    directory: PathBuf,
    sets: Vec<SetFile>,
    /// Whether `--set` says where sets are.
    has_option: bool,
    /// The sets that were read, by any copy of these names, and their files.
    read: Arc<Mutex<Vec<(String, PathBuf)>>>,
}

impl RuleNames {
    /// Creates names for the rules in `file`.
    pub(super) fn new(file: &Path, sets: &[SetFile]) -> Self {
        let directory = file.parent().unwrap_or_else(|| Path::new(""));
        Self {
            system: SystemNames::sets_in(directory),
            directory: directory.to_owned(),
            sets: sets.to_vec(),
            has_option: true,
            read: Arc::default(),
        }
    }

    /// Creates names for a filter, whose sets are files in the working directory.
    pub(crate) fn of_filter() -> Self {
        Self { has_option: false, ..Self::new(Path::new(""), &[]) }
    }

    /// Returns the files of sets that were read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.read().iter().map(|(_, path)| path.clone()).collect()
    }

    /// Returns the names that files were given for, but that nobody has asked for, each with the name that was probably meant.
    pub(super) fn unused(&self) -> Vec<(&str, Option<String>)> {
        let read = self.read();
        let names = || read.iter().map(|(name, _)| name.as_str());
        let given = |name: &str| self.sets.iter().any(|set| set.name == name);
        let unused =
            self.sets.iter().map(|set| set.name.as_str()).filter(|set| !names().any(|name| name == *set));
        let meant = |set| spelling::nearest(set, names().filter(|name| !given(name))).map(str::to_owned);
        unused.map(|set| (set, meant(set))).collect()
    }

    fn note(&self, name: &str, path: PathBuf) {
        self.read().push((name.to_owned(), path));
    }

    fn read(&self) -> MutexGuard<'_, Vec<(String, PathBuf)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names for RuleNames {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        self.system.host(name)
    }

    fn network(&self, name: &str) -> Option<u32> {
        self.system.network(name)
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        self.system.ethernet(name)
    }

    fn service(&self, name: &str) -> Service {
        self.system.service(name)
    }

    fn services(&self) -> Vec<String> {
        self.system.services()
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        self.system.protocol(name)
    }

    fn set(&self, name: &str) -> Result<String, String> {
        let Some(SetFile { path, .. }) = self.sets.iter().find(|set| set.name == name) else {
            self.note(name, self.directory.join(name));
            return self.system.set(name).map_err(|error| match self.has_option {
                true => format!("{error}; or give --set {name}=FILE"),
                false => error,
            });
        };
        self.note(name, path.clone());
        fs::read_to_string(path)
            .map_err(|error| format!("the set `@{name}` cannot be read from {}: {error}", path.display()))
    }
}
