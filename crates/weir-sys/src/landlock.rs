//! Landlock (Linux 5.13): a thread, and those that it starts later, use no files but those it names.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use crate::CallError;

/// Files and directories that may be used; a directory stands for what is in it, at any depth. Those that are not there
/// are passed over.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// To read.
    pub read: Vec<PathBuf>,
    /// To read, write, make, rename and remove files.
    pub written: Vec<PathBuf>,
    /// Directories, to remove files from.
    pub removed: Vec<PathBuf>,
}

/// How much of it the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// Everything.
    Fully,
    /// What this kernel's landlock knows: not all of truncation (Linux 6.2), TCP (6.7), device ioctls (6.10), and signals
    /// and abstract sockets (6.12).
    Partly,
    /// Nothing: a kernel without landlock, or with landlock switched off (`lsm=` on its command line).
    Not,
}

/// The newest that is asked for: Linux 6.12.
const NEWEST: ABI = ABI::V6;

/// From here on, and for good, the calling thread opens none but these files, executes none, makes and accepts no TCP
/// address of its own, and sends no signal to another program. What is open stays usable.
///
/// # Errors
///
/// The kernel has landlock, and refuses.
pub fn restrict(files: &Files) -> Result<Enforced, CallError> {
    enforce(files).map_err(|error| CallError::new("restrict access with Landlock", io::Error::other(error)))
}

fn enforce(files: &Files) -> Result<Enforced, Box<dyn Error + Send + Sync>> {
    const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | RemoveFile});
    let mut rules = new_ruleset()?;
    let read = files.read.iter().map(|path| (path, READ));
    let written = files.written.iter().map(|path| (path, READ | WRITE));
    for (path, access) in read.chain(written) {
        let Ok(fd) = PathFd::new(path) else { continue };
        // The other rights are those of a directory.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        // A pipe without a name (`/dev/stdout`, `<(...)` in a shell) cannot be named in a rule, and needs none.
        let tried = new_ruleset()?.add_rule(PathBeneath::new(&fd, access));
        if tried.is_ok() {
            rules = rules.add_rule(PathBeneath::new(fd, access))?;
        }
    }
    for path in &files.removed {
        match PathFd::new(path) {
            Ok(fd) => rules = rules.add_rule(PathBeneath::new(fd, AccessFs::RemoveFile))?,
            // From where nobody gets to nothing is removed, rule or not.
            Err(PathFdError::OpenCall { source, .. })
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
            // What is to go would stay.
            Err(error) => return Err(error.into()),
        }
    }
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    })
}

/// Everything that landlock can restrict, and no exception yet.
fn new_ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}
