//! Whether tests that need root can run.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use weir_sys::netns::NetNs;
use weir_sys::{CallError, kernel, skip};

/// The namespace that [`require_root`] has tried with, until it is used.
static SPARE: Mutex<Option<NetNs>> = Mutex::new(None);

/// Whether `test`, which needs a private network, can run. If not, prints `SKIP:` and the reason ([`skip::unless_required`]).
///
/// # Panics
///
/// Panics instead of skipping where the environment says `WEIR_REQUIRE_ROOT=1` or `CI=true`.
pub fn require_root(test: &str) -> bool {
    // Only a trial tells: a container may have the capabilities, and be refused the call. It is made once, and the first
    // network takes what has come of it.
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let refused = REFUSED.get_or_init(|| {
        let made = NetNs::new().map(|netns| *spare() = Some(netns));
        made.err().map(|error| error.to_string())
    });
    if let Some(reason) = refused {
        skip::unless_required(test, reason);
    }
    refused.is_none()
}

/// A namespace that nobody has used.
pub(crate) fn namespace() -> Result<NetNs, CallError> {
    let spare = spare().take();
    spare.map_or_else(NetNs::new, Ok)
}

fn spare() -> MutexGuard<'static, Option<NetNs>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is Linux `version` or newer, in which there is `what` that `test` needs. If not, says so ([`skip::report`]),
/// and never fails: another machine has to run it.
pub fn require_kernel(test: &str, version: (u32, u32), what: &str) -> bool {
    let there = kernel::version() >= version;
    if !there {
        let (major, minor) = version;
        skip::report(test, format_args!("{what} needs Linux {major}.{minor}, not {}", kernel::release()));
    }
    there
}
