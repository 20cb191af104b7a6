//! Whether the host would lose traffic with `--mode exclusive`.

use weir_sys::cut_off;

use crate::failure::Failure;
use crate::interfaces::Chosen;
use crate::style;

/// The help of `--force`.
pub(crate) const FORCE: &str =
    "With --mode exclusive, allow cutting off this host (its addresses, bridges and routes)";

/// Rejects interfaces that the host needs for its addresses, bridges or routes, if it would lose that traffic.
pub(crate) fn check(interfaces: &[Chosen]) -> Result<(), Failure> {
    for chosen in interfaces {
        let lost = chosen.inside(|| cut_off::lost(chosen.name()))?.map_err(Failure::new)?;
        if lost.is_empty() {
            continue;
        }
        let what = format!(
            "cannot use --mode exclusive on {}: this host would lose its traffic for {}",
            chosen.name(),
            lost.join(", ")
        );
        return Err(Failure::usage(style::visible(&what))
            .hint("--force overrides this; --mode pass leaves the host its traffic"));
    }
    Ok(())
}
