//! Limits what weir's file capabilities are used for.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use weir_sys::privilege;

use crate::failure::Failure;

/// Keeps users whose privileges come only from weir's file out of this process and those it forks: with their descriptors,
/// or under a debugger, they could do more. The kernel does that itself, but not if whoever started weir had the
/// privileges until then (as setpriv(1) has).
pub(crate) fn close_to_its_user() -> Result<(), Failure> {
    if privilege::is_of_the_file().map_err(Failure::new)? {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Failure::new)?;
    }
    Ok(())
}

/// Refuses `what` to users whose privileges come only from weir's file. With the package, members of the group `weir`
/// may capture, but taking or sending packets of others requires privileges of their own.
pub(crate) fn more_than_capture(what: &str) -> Result<(), Failure> {
    if privilege::is_of_the_file().map_err(Failure::new)? {
        let why = "weir's file capabilities only cover captures that leave the host its traffic";
        return Err(Failure::new(format_args!("cannot {what}: {why}")).hint("run as root"));
    }
    Ok(())
}
