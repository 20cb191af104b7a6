//! `weir ship`: starts `weir-export`, which has the libraries of object stores.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

pub(crate) use weir_export::ShipArgs;

use crate::companion;
use crate::failure::Failure;

/// Runs the command; returns only if that fails. `words`: the command line, which is right.
pub(crate) fn run(_args: &ShipArgs, words: &[OsString]) -> Result<(), Failure> {
    let program = companion::find()?;
    let arguments = words.get(1..).unwrap_or_default();
    Err(companion::failed(&Command::new(program).args(arguments).exec().to_string()))
}
