//! Limits what weir's file capabilities are used for.

use weir_sys::privilege;

use crate::failure::Failure;

/// Refuses `what` to users whose privileges come only from weir's file. With the package, members of the group `weir`
/// may capture, but taking or sending packets of others requires privileges of their own.
pub(crate) fn more_than_capture(what: &str) -> Result<(), Failure> {
    if privilege::is_of_the_file().map_err(Failure::new)? {
        let why = "weir's file capabilities only cover captures that leave the host its traffic";
        return Err(Failure::new(format_args!("cannot {what}: {why}")).hint("run as root"));
    }
    Ok(())
}
