//! Names in expressions: those known to the system, and files with sets.

use std::net::IpAddr;
use std::path::PathBuf;

use weir_filter::names::{Names, Service};
use weir_sys::names;

/// The names known to the system (nsswitch.conf(5)). The set `@NAME` is the file NAME.
///
/// Looking up hosts may use the network, and all lookups read files, so a confined process knows no names.
#[derive(Clone, Debug, Default)]
pub struct SystemNames {
    sets: PathBuf,
}

impl SystemNames {
    /// Looks for files with sets in the working directory, unless their path is absolute.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for files with sets in `directory`.
    pub fn sets_in(directory: impl Into<PathBuf>) -> Self {
        Self { sets: directory.into() }
    }
}

impl Names for SystemNames {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        names::host(name)
    }

    fn network(&self, name: &str) -> Option<u32> {
        names::network(name)
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        names::ethernet(name)
    }

    fn service(&self, name: &str) -> Service {
        let over = |protocol| names::service(name, protocol);
        Service { tcp: over(c"tcp"), udp: over(c"udp"), sctp: over(c"sctp") }
    }

    fn services(&self) -> Vec<String> {
        names::services()
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        names::protocol(name)
    }

    fn set(&self, name: &str) -> Result<String, String> {
        let path = self.sets.join(name);
        std::fs::read_to_string(&path)
            .map_err(|error| format!("the set `@{name}` cannot be read from {}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_files() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("bad");
        std::fs::write(&path, "10.0.0.0/8\n").expect("a file can be written");
        let names = SystemNames::sets_in(directory.path());
        assert_eq!(names.set("bad").as_deref(), Ok("10.0.0.0/8\n"));
        let whole = path.to_str().expect("the path is text");
        assert_eq!(SystemNames::new().set(whole).as_deref(), Ok("10.0.0.0/8\n"));
        assert!(names.set("good").expect_err("there is none").contains("`@good`"));
    }
}
