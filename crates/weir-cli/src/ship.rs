//! `weir ship`: starts `weir-export`, which has the libraries of object stores and is installed beside weir.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use weir_export::ShipArgs;

use crate::failure::Failure;

/// The program.
const NAME: &str = "weir-export";

/// Runs the command; returns only if that fails. `words`: the command line, which is right.
pub(crate) fn run(_args: &ShipArgs, words: &[OsString]) -> Result<(), Failure> {
    let failed = |why: &str| Failure::new(format_args!("cannot start {NAME}: {why}"));
    let weir = env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let [installed, built] = places(&weir);
    let program = [&installed, &built].into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let why = format!("neither {} nor {} exists", installed.display(), built.display());
        failed(&why).hint(
            "install the Debian package (make deb), or run `cargo build --release -p weir-export` and copy it there",
        )
    })?;
    let arguments = words.get(1..).unwrap_or_default();
    Err(failed(&Command::new(program).args(arguments).exec().to_string()))
}

/// Returns the places for the program of `weir`: in an installation, and in a build tree.
fn places(weir: &Path) -> [PathBuf; 2] {
    let directory = weir.parent().unwrap_or(weir);
    let prefix = directory.parent().unwrap_or(directory);
    [prefix.join("lib/weir").join(NAME), directory.join(NAME)]
}
