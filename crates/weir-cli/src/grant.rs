//! What the capabilities of weir's own file are for.

use weir_sys::privilege;

use crate::failure::Failure;

/// Refuses `what` to whoever has privileges by weir's file alone: members of the group `weir`, as the package has it, may capture.
/// What takes or sends packets of others is for those who have privileges of their own.
pub(crate) fn more_than_capture(what: &str) -> Result<(), Failure> {
    if privilege::is_of_the_file().map_err(Failure::new)? {
        let why = "weir's file capabilities only cover captures that leave the host its traffic";
        return Err(Failure::new(format_args!("cannot {what}: {why}")).hint("run as root"));
    }
    Ok(())
}
