//! Both libraries: the system's, and weir's by `LD_LIBRARY_PATH`.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::counter;
use crate::failure::{Failure, failed};
use crate::program::Program;
use crate::tidy;

/// A library, and how it captures.
#[derive(Debug)]
pub(crate) struct Library {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// Its name in tables.
    pub(crate) title: &'static str,
    /// Environment variables that the library reads; none for the system's.
    settings: Option<Variables>,
    /// Whether the network stack still gets the packets.
    pub(crate) stack: bool,
}

type Variables = &'static [(&'static str, &'static str)];

const fn library(
    name: &'static str,
    title: &'static str,
    settings: Option<Variables>,
    stack: bool,
) -> Library {
    Library { name, title, settings, stack }
}

/// The library that programs are linked with.
pub(crate) const SYSTEM: Library = library("libpcap", "libpcap", None, true);
/// weir's, if no device is opened.
pub(crate) const WEIR: Library = library("weir", "weir", Some(&[]), true);
pub(crate) const PACKET: Library =
    passing("weir-af-packet", "weir, packet socket", &[PASSING, ("WEIR_SOURCE", "af_packet")]);
pub(crate) const TC: Library = passing("weir-tc", "weir, tc", &[PASSING, ("WEIR_SOURCE", "tc")]);
pub(crate) const PASS: Library = passing("weir-xdp", "weir, xdp", &[PASSING, ("WEIR_SOURCE", "xdp")]);
pub(crate) const EXCLUSIVE: Library = library(
    "weir-xdp-exclusive",
    "weir, xdp, exclusive",
    Some(&[("WEIR_SOURCE", "xdp"), ("WEIR_MODE", "exclusive"), ("WEIR_FORCE", "1")]),
    false,
);

const PASSING: (&str, &str) = ("WEIR_MODE", "pass");

const fn passing(name: &'static str, title: &'static str, settings: Variables) -> Library {
    library(name, title, Some(settings), true)
}

/// The names by which programs look for the library.
const NAMES: [&str; 2] = ["libpcap.so.0.8", "libpcap.so.1"];
/// The library as cargo builds it.
const BUILT: &str = "libweir_pcap.so";

/// A directory with weir's library under libpcap's names, and with the C program once that is compiled.
#[derive(Debug)]
pub(crate) struct Both {
    dir: TempDir,
}

impl Both {
    /// Finds weir's library: this file, or the one beside this program.
    pub(crate) fn find(library: Option<&Path>) -> Result<Self, Failure> {
        let own = env::current_exe().map_err(failed("find this program"))?;
        let built = || {
            let beside = own.with_file_name(BUILT);
            // Where cargo leaves it when it is only a dependency.
            let deps = own.with_file_name("deps").join(BUILT);
            if beside.exists() || !deps.exists() { beside } else { deps }
        };
        let path = library.map_or_else(built, Path::to_owned);
        let found = path.canonicalize().map_err(|error| {
            Failure::new(format_args!("cannot use {}: {error}", path.display()))
                .hint("cargo build --package weir-pcap, or --library PATH")
        })?;
        let dir = tidy::folder().map_err(failed("create a directory"))?;
        for name in NAMES {
            symlink(&found, dir.path().join(name)).map_err(failed(format_args!("link {name}")))?;
        }
        Ok(Self { dir })
    }

    /// Where weir's library is, under libpcap's names.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Compiles the C program.
    pub(crate) fn compile(&self) -> Result<(), Failure> {
        counter::compile(self.dir()).map(|_| ())
    }

    /// Where the C program is.
    pub(crate) fn counter(&self) -> PathBuf {
        self.dir().join(counter::NAME)
    }

    /// What a program needs to find the library, and the library to know how to capture.
    pub(crate) fn environment(&self, library: &Library) -> Vec<(&'static str, OsString)> {
        let Some(settings) = library.settings else { return Vec::new() };
        let mut variables = vec![("LD_LIBRARY_PATH", self.dir().as_os_str().to_owned())];
        variables.extend(settings.iter().map(|&(name, value)| (name, value.into())));
        variables
    }

    /// A program that will run on a library.
    pub(crate) fn command(&self, program: &Path, library: &Library) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment(library)).stdin(Stdio::null());
        command
    }

    /// What a program says about the library it runs on, the system's and weir's. Fails if it is another.
    pub(crate) fn versions(&self, program: &Path, argument: &str) -> Result<[String; 2], Failure> {
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
    pub(crate) fn counting(&self, function: &'static str) -> Program {
        counter::counting(self.counter(), function)
    }
}
