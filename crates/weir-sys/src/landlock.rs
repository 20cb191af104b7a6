//! Landlock (Linux 5.13): restricts a thread, and threads that it starts later, to the files it names.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, PathFdError, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};

use crate::CallError;

/// Files and directories that may be used. A directory includes its contents at any depth. Missing ones are skipped.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Files to read.
    pub read: Vec<PathBuf>,
    /// Files to read, write, create, rename and remove.
    pub written: Vec<PathBuf>,
    /// The same, and directories to make.
    pub filled: Vec<PathBuf>,
    /// Directories to remove files from.
    pub removed: Vec<PathBuf>,
    /// TCP ports to connect to, at any host.
    pub ports: Vec<u16>,
}

/// How much of the restrictions the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// Everything.
    Fully,
    /// What this kernel's Landlock supports: not all of truncation (Linux 6.2), TCP (6.7), device ioctls (6.10), and
    /// signals and abstract sockets (6.12).
    Partly,
    /// Nothing: a kernel without Landlock, or with Landlock disabled (`lsm=` on its command line).
    Not,
}

/// The newest version to request: Linux 6.12.
const NEWEST: ABI = ABI::V6;

/// Restricts the calling thread for good: it can open only these files, execute none, bind no TCP address and connect to
/// no other TCP ports, and send no signals to other programs. Open files stay usable.
///
/// # Errors
///
/// The kernel has Landlock, but refuses.
pub fn restrict(files: &Files) -> Result<Enforced, CallError> {
    enforce(files).map_err(|error| CallError::new("restrict access with Landlock", io::Error::other(error)))
}

fn enforce(files: &Files) -> Result<Enforced, Box<dyn Error + Send + Sync>> {
    const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | RemoveFile});
    let mut rules = new_ruleset()?;
    let read = files.read.iter().map(|path| (path, READ));
    let written = files.written.iter().map(|path| (path, READ | WRITE));
    let filled = files.filled.iter().map(|path| (path, READ | WRITE | AccessFs::MakeDir));
    for (path, access) in read.chain(written).chain(filled) {
        let Ok(fd) = PathFd::new(path) else { continue };
        // The other rights apply only to directories.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        // An anonymous pipe (`/dev/stdout`, `<(...)` in a shell) cannot be in a rule, and needs none.
        let tried = new_ruleset()?.add_rule(PathBeneath::new(&fd, access));
        if tried.is_ok() {
            rules = rules.add_rule(PathBeneath::new(fd, access))?;
        }
    }
    for path in &files.removed {
        match PathFd::new(path) {
            Ok(fd) => rules = rules.add_rule(PathBeneath::new(fd, AccessFs::RemoveFile))?,
            // In an inaccessible directory, nothing can be removed, with or without a rule.
            Err(PathFdError::OpenCall { source, .. })
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            // Files to be removed would stay.
            Err(error) => return Err(error.into()),
        }
    }
    for port in &files.ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    })
}

/// Creates a ruleset that restricts everything Landlock can, without exceptions.
fn new_ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}
