//! A directory in which the library has libpcap's names, which are links.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::hash::BuildHasher as _;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process;

use weir_sys::fork;

use crate::failure::Failure;

/// libpcap's names: on Debian, elsewhere, and for the linker.
pub(super) const NAMES: [&str; 3] = ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"];

/// Returns a directory in which `library` has these names: its own, or a temporary one, which disappears when this
/// process has ended, even if it has become another program by then.
pub(super) fn directory(library: &Path) -> Result<PathBuf, Failure> {
    let own = library.parent().filter(|own| is_searched(own.as_os_str()));
    match own.filter(|own| NAMES.iter().all(|name| is_link(&own.join(name), library))) {
        Some(own) => Ok(own.to_owned()),
        None => temporary(library),
    }
}

fn is_link(name: &Path, library: &Path) -> bool {
    matches!((name.canonicalize(), library.canonicalize()), (Ok(name), Ok(library)) if name == library)
}

/// Returns whether the loader would search this directory as it is: in `LD_LIBRARY_PATH`, some characters have a meaning.
fn is_searched(directory: &OsStr) -> bool {
    !directory.as_encoded_bytes().iter().any(|byte| b":;$".contains(byte))
}

fn temporary(library: &Path) -> Result<PathBuf, Failure> {
    let above =
        Some(std::env::temp_dir()).filter(|above| above.is_absolute() && is_searched(above.as_os_str()));
    let above = above.unwrap_or_else(|| "/tmp".into());
    // A name that nobody can guess, so that nobody is there already.
    let directory = above.join(format!("weir-libpcap-{:016x}", RandomState::new().hash_one(process::id())));
    make(&directory, library).map_err(|error| {
        Failure::new(format_args!("cannot create {}: {error}", directory.display()))
            .hint("set TMPDIR to a directory where weir can")
    })?;
    Ok(directory)
}

fn make(directory: &Path, library: &Path) -> io::Result<()> {
    // Others may enter: the program may change its user.
    DirBuilder::new().mode(0o755).create(directory)?;
    let remove = || drop(fs::remove_dir_all(directory));
    let made = NAMES.iter().try_for_each(|name| symlink(library, directory.join(name)));
    made.and_then(|()| fork::afterwards(c"weir-libpcap", remove)).inspect_err(|_| remove())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_directory_needs_every_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let library = directory.path().join("libweir_pcap.so");
        fs::write(&library, "").expect("a file");
        for name in NAMES {
            let all = NAMES.iter().all(|name| is_link(&directory.path().join(name), &library));
            assert!(!all, "before {name}");
            symlink("libweir_pcap.so", directory.path().join(name)).expect("a link");
        }
        assert_eq!(super::directory(&library).expect("its own"), directory.path());
    }

    #[test]
    fn not_every_directory_can_be_searched() {
        for (directory, searched) in
            [("/usr/lib/weir", true), ("/a b", true), ("/a:b", false), ("/$LIB", false)]
        {
            assert_eq!(is_searched(OsStr::new(directory)), searched, "{directory}");
        }
    }
}
