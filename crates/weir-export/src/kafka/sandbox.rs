//! Writes no files but those of the spool, and starts no programs (Landlock, Linux 5.13).

use std::error::Error;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, Scope,
};

/// The newest version to request: Linux 6.12.
const NEWEST: ABI = ABI::V6;

/// Restricts this thread, and all that it starts. Kernels without Landlock restrict nothing.
pub(super) fn enter(spool: Option<&Path>) -> Result<(), String> {
    if let Some(spool) = spool {
        // Its name has to be known before it is the only one. That it cannot be made is told later.
        let _told_later: io::Result<()> = std::fs::DirBuilder::new().mode(0o700).create(spool);
    }
    restrict(spool).map_err(|error| format!("cannot restrict access with Landlock: {error}"))
}

fn restrict(spool: Option<&Path>) -> Result<(), Box<dyn Error>> {
    // librdkafka reads what it needs to find hosts; brokers have any port.
    let files = AccessFs::from_write(NEWEST) | AccessFs::Execute;
    let rules = Ruleset::default().handle_access(files)?.handle_access(AccessNet::BindTcp)?;
    let mut rules = rules.scope(Scope::from_all(NEWEST))?.create()?;
    if let Some(spool) = spool.and_then(|spool| PathFd::new(spool).ok()) {
        let kept = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
        rules = rules.add_rule(PathBeneath::new(spool, kept))?;
    }
    rules.restrict_self()?;
    Ok(())
}
