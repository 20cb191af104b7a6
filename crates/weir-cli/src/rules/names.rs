//! Names in rules: those of the system, and sets.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use weir::filter::{Names, Service, SystemNames};

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
    /// The files of sets that were read, by any copy of these names.
    read: Arc<Mutex<Vec<PathBuf>>>,
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
        self.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, path: PathBuf) {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).push(path);
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
            self.note(self.directory.join(name));
            return self.system.set(name).map_err(|error| match self.has_option {
                true => format!("{error}; or give --set {name}=FILE"),
                false => error,
            });
        };
        self.note(path.clone());
        fs::read_to_string(path)
            .map_err(|error| format!("the set `@{name}` cannot be read from {}: {error}", path.display()))
    }
}
