//! Both libraries: the system's, and weir's by `LD_LIBRARY_PATH`; and the C program that runs on either.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use crate::failed;
use crate::failure::Failure;
use crate::files::SIZE;
use crate::program::{Counts, Program, find};

/// A library, and how it captures.
#[derive(Debug)]
pub(super) struct Library {
    /// In files.
    pub(super) name: &'static str,
    /// In tables.
    pub(super) title: &'static str,
    /// What the library reads of the environment; none for the system's.
    settings: Option<&'static [(&'static str, &'static str)]>,
    /// Whether the network stack still gets the packets.
    pub(super) stack: bool,
}

/// The one that programs are linked with.
pub(super) const SYSTEM: Library = Library { name: "libpcap", title: "libpcap", settings: None, stack: true };
/// weir's, where no device is opened.
pub(super) const WEIR: Library = Library { name: "weir", title: "weir", settings: Some(&[]), stack: true };
pub(super) const PACKET: Library = Library {
    name: "weir-af-packet",
    title: "weir, packet socket",
    settings: Some(&[("WEIR_SOURCE", "af_packet"), ("WEIR_MODE", "pass")]),
    stack: true,
};
pub(super) const PASS: Library = Library {
    name: "weir-xdp",
    title: "weir, xdp",
    settings: Some(&[("WEIR_SOURCE", "xdp"), ("WEIR_MODE", "pass")]),
    stack: true,
};
pub(super) const EXCLUSIVE: Library = Library {
    name: "weir-xdp-exclusive",
    title: "weir, xdp, exclusive",
    settings: Some(&[("WEIR_SOURCE", "xdp"), ("WEIR_MODE", "exclusive")]),
    stack: false,
};

/// The names by which programs look for the library.
const NAMES: [&str; 2] = ["libpcap.so.0.8", "libpcap.so.1"];
/// The library as cargo builds it.
const BUILT: &str = "libweir_pcap.so";
const SOURCE: &str = include_str!("count.c");
/// Debian's packages of what it takes to compile it.
const PACKAGES: &str = "apt-get install gcc libc6-dev libpcap-dev";

/// A directory with weir's library under libpcap's names, and with the C program once that is compiled.
#[derive(Debug)]
pub(super) struct Both {
    dir: TempDir,
}

/// What the C program says of the packets it has counted.
#[derive(Debug, Deserialize)]
pub(super) struct Counted {
    pub(super) packets: u64,
    bytes: u64,
    unordered: u64,
    dropped: u64,
    pub(super) nanoseconds: u64,
    pub(super) cpu_nanoseconds: u64,
}

impl Counted {
    /// From its output.
    pub(super) fn parse(stdout: &str) -> Option<Self> {
        serde_json::from_str(stdout).ok()
    }

    /// Whether all packets were whole, and came in the order in which they were made.
    pub(super) fn is_right(&self) -> bool {
        self.unordered == 0 && self.bytes == self.packets * u64::from(SIZE)
    }
}

impl Both {
    /// Finds weir's library: this file, or the one beside this program.
    pub(super) fn find(library: Option<&Path>) -> Result<Self, Failure> {
        let own = env::current_exe().map_err(failed("find this program"))?;
        let built = || {
            let beside = own.with_file_name(BUILT);
            // Where cargo leaves it if something else needs it.
            let deps = own.with_file_name("deps").join(BUILT);
            if beside.exists() || !deps.exists() { beside } else { deps }
        };
        let path = library.map_or_else(built, Path::to_owned);
        let found = path.canonicalize().map_err(|error| {
            Failure::new(format_args!("cannot use {}: {error}", path.display()))
                .hint("cargo build --package weir-pcap, or --library PATH")
        })?;
        let dir = TempDir::with_prefix("weir-bench-").map_err(failed("create a directory"))?;
        for name in NAMES {
            symlink(&found, dir.path().join(name)).map_err(failed(format_args!("link {name}")))?;
        }
        Ok(Self { dir })
    }

    /// Where weir's library is, under libpcap's names.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Compiles the C program.
    pub(super) fn compile(&self) -> Result<(), Failure> {
        let cc = find("cc").ok_or_else(|| {
            Failure::new("cannot find cc, which compiles the counting program: it is not installed")
                .hint(PACKAGES)
        })?;
        let source = self.dir().join("count.c");
        fs::write(&source, SOURCE).map_err(failed("write count.c"))?;
        let mut command = Command::new(cc);
        command.args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-o"]).arg(self.counter());
        let output = command.arg(&source).arg("-lpcap").output().map_err(failed("run cc"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format_args!("cannot compile count.c: {}", said.trim())).hint(PACKAGES))
    }

    /// Where the C program is.
    pub(super) fn counter(&self) -> PathBuf {
        self.dir().join("count")
    }

    /// What a program needs to find the library, and the library to know how to capture.
    pub(super) fn environment(&self, library: &Library) -> Vec<(&'static str, OsString)> {
        let Some(settings) = library.settings else { return Vec::new() };
        let mut variables = vec![("LD_LIBRARY_PATH", self.dir().as_os_str().to_owned())];
        variables.extend(settings.iter().map(|&(name, value)| (name, value.into())));
        variables
    }

    /// A program that will run on a library.
    pub(super) fn command(&self, program: &Path, library: &Library) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment(library)).stdin(Stdio::null());
        command
    }

    /// What a program says of the library that it runs on: the system's, and weir's. It fails where it is not that.
    pub(super) fn versions(&self, program: &Path, argument: &str) -> Result<[String; 2], Failure> {
        let version = |library: &Library| {
            let output = self.command(program, library).arg(argument).output();
            let output = output.map_err(failed(format_args!("run {}", program.display())))?;
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let version = said.lines().find(|line| line.starts_with("libpcap version"));
            let version = version.unwrap_or_else(|| said.trim());
            let is_ours = version.contains("(weir ");
            if version.starts_with("libpcap version") && is_ours == library.settings.is_some() {
                return Ok(version.to_owned());
            }
            let name = program.display();
            Err(Failure::new(format_args!("{name} does not run on {}: it says: {version}", library.title)))
        };
        Ok([version(&SYSTEM)?, version(&WEIR)?])
    }

    /// The C program as a reader of packets from a device.
    pub(super) fn counting(&self, function: &'static str) -> Program {
        Program {
            name: "count",
            package: "",
            place: Some(self.counter()),
            environment: Vec::new(),
            arguments: vec![function, "device", "{interface}"],
            ready: "ready",
            // It asks for a time-out of 100 ms.
            batch: Duration::from_millis(300),
            spins: false,
            parse: |stdout, _| {
                let counted = Counted::parse(stdout).filter(Counted::is_right)?;
                Some(Counts { dropped: Some(counted.dropped), ..Counts::of(counted.packets) })
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_cut_or_mixed_packets_is_no_count() {
        let parse = |bytes, unordered| {
            let text = format!(
                r#"{{"packets": 7, "bytes": {bytes}, "unordered": {unordered}, "dropped": 2, "nanoseconds": 5, "cpu_nanoseconds": 4}}"#
            );
            let both = Both { dir: tempfile::tempdir().expect("a directory") };
            (both.counting("loop").parse)(&text, "")
        };
        assert_eq!(parse(420, 0), Some(Counts { dropped: Some(2), ..Counts::of(7) }));
        assert_eq!((parse(419, 0), parse(420, 1)), (None, None));
    }
}
