//! `weir-export`, which has libraries that do not belong in a process that captures, and is installed beside weir.

use std::env;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The program.
pub(crate) const NAME: &str = "weir-export";

/// Finds the program.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let weir = env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let [installed, built] = places(&weir);
    [&installed, &built].into_iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let why = format!("neither {} nor {} exists", installed.display(), built.display());
        failed(&why).hint(
            "install the Debian package (make deb), or run `cargo build --release -p weir-export` and copy it there",
        )
    })
}

/// Says that it cannot be started.
pub(crate) fn failed(why: &str) -> Failure {
    Failure::new(format_args!("cannot start {NAME}: {why}"))
}

/// Returns the places for the program of `weir`: in an installation, and in a build tree.
fn places(weir: &Path) -> [PathBuf; 2] {
    let directory = weir.parent().unwrap_or(weir);
    let prefix = directory.parent().unwrap_or(directory);
    [prefix.join("lib/weir").join(NAME), directory.join(NAME)]
}
