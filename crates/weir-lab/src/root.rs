//! Detects whether tests that need root can run.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use weir_sys::netns::NetNs;
use weir_sys::{CallError, kernel};

/// The namespace from [`require_root`]'s trial, until it is used.
static SPARE: Mutex<Option<NetNs>> = Mutex::new(None);

/// Returns whether `test`, which needs a private network, can run. If not, prints `SKIP:` and the reason
/// ([`weir_skip::unless_required`]).
///
/// # Panics
///
/// Panics instead of skipping if the environment has `WEIR_REQUIRE_ROOT=1` or `CI=true`.
pub fn require_root(test: &str) -> bool {
    // Only a trial is reliable, because a container may have the capabilities and still be denied the call. The trial
    // runs once, and the first network uses its namespace.
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let refused = REFUSED.get_or_init(|| {
        let made = NetNs::new().map(|netns| *spare() = Some(netns));
        made.err().map(|error| error.to_string())
    });
    if let Some(reason) = refused {
        weir_skip::unless_required(test, reason);
    }
    refused.is_none()
}

/// Returns an unused namespace.
pub(crate) fn namespace() -> Result<NetNs, CallError> {
    let spare = spare().take();
    spare.map_or_else(NetNs::new, Ok)
}

fn spare() -> MutexGuard<'static, Option<NetNs>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether this is Linux `version` or later, the first with `what`, which `test` needs. If not, reports it
/// ([`weir_skip::report`]) and never fails, because another machine has to run the test.
pub fn require_kernel(test: &str, version: (u32, u32), what: &str) -> bool {
    let there = kernel::version() >= version;
    if !there {
        let (major, minor) = version;
        weir_skip::report(
            test,
            format_args!("{what} needs Linux {major}.{minor}, not {}", kernel::release()),
        );
    }
    there
}
