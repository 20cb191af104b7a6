//! Names in rules: those of the system, and sets.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

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
    sets: Vec<SetFile>,
}

impl RuleNames {
    /// Creates names for the rules in `file`.
    pub(super) fn new(file: &Path, sets: &[SetFile]) -> Self {
        Self {
            system: SystemNames::sets_in(file.parent().unwrap_or_else(|| Path::new(""))),
            sets: sets.to_vec(),
        }
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
            return self.system.set(name).map_err(|error| format!("{error}; or give --set {name}=FILE"));
        };
        fs::read_to_string(path)
            .map_err(|error| format!("the set `@{name}` cannot be read from {}: {error}", path.display()))
    }
}
