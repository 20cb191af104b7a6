//! `weir libpcap DIR`: writes the library, its names, a header and a file for pkg-config.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::library;
use super::names::NAMES;
use crate::failure::Failure;
use crate::install::Directory;

const EXAMPLES: &str = "\
Examples:
  sudo weir libpcap /opt/weir/lib
        Write the library to a directory of its own.
  LD_LIBRARY_PATH=/opt/weir/lib tcpdump --version
        Run a program with it, as `weir run` does.
  cc count.c $(PKG_CONFIG_PATH=/opt/weir/lib pkg-config --cflags --libs libpcap)
        Compile a program that always uses it; pcap.h is the system's (libpcap-dev).

DIR then contains libweir_pcap.so, the links libpcap.so.0.8, libpcap.so.1 and libpcap.so to it,
libpcap.pc, and headers: include/weir/win32-extensions.h (WinPcap's extensions) and
include/weir/extensions.h (weir's). Files of an earlier run are replaced; another libpcap in DIR is not.
Exit status: 0 success, 1 error, 2 usage error.";

/// The file for pkg-config. It names the directory that it is in, which may be moved.
const PKG_CONFIG: &str = concat!(
    "libdir=${pcfiledir}\n\nName: libpcap\nDescription: libpcap's ABI on weir ",
    env!("CARGO_PKG_VERSION"),
    "\nVersion: 1.10.3\nLibs: -L${libdir} -Wl,-rpath,${libdir} -lpcap\nCflags: -I${libdir}/include\n"
);

/// Declare what is not in the system's `pcap.h`.
const HEADERS: [(&str, &str); 2] = [
    ("win32-extensions.h", include_str!("../../../weir-pcap/include/weir/win32-extensions.h")),
    ("extensions.h", include_str!("../../../weir-pcap/include/weir/extensions.h")),
];

/// Where to install it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LibpcapArgs {
    /// Directory to write it to; it is created if it does not exist.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

/// Runs the command.
pub(crate) fn install(args: &LibpcapArgs) -> Result<(), Failure> {
    let library = library::find()?;
    let dir = &args.dir;
    if let Some(other) = NAMES.iter().map(|name| dir.join(name)).find(|path| is_of_others(path)) {
        return Err(Failure::new(format_args!(
            "cannot write to {}: another libpcap is there",
            other.display()
        ))
        .hint("choose a directory of its own, such as /opt/weir/lib"));
    }
    write(&library, dir)
        .map_err(|error| Failure::new(format_args!("cannot write libpcap to {}: {error}", dir.display())))
}

/// Returns whether there is something that this command does not write.
fn is_of_others(path: &Path) -> bool {
    match fs::read_link(path) {
        Ok(target) => target != Path::new(library::FILE),
        Err(error) => error.kind() != io::ErrorKind::NotFound && path.symlink_metadata().is_ok(),
    }
}

fn write(library: &Path, dir: &Path) -> io::Result<()> {
    let there = Directory::create(dir)?;
    // Not over itself.
    if dir.join(library::FILE).canonicalize().ok() != library.canonicalize().ok() {
        there.write(library::FILE, File::open(library)?)?;
    }
    for name in NAMES {
        there.link(name, library::FILE)?;
    }
    let headers = there.below("include")?.below("weir")?;
    for (name, text) in HEADERS {
        headers.write(name, text.as_bytes())?;
    }
    there.write("libpcap.pc", PKG_CONFIG.as_bytes())
}
