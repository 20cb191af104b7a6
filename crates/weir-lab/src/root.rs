//! Whether tests that need root can run.

use std::env;
use std::io::{self, Write};

use weir_sys::kernel;
use weir_sys::netns::NetNs;

/// Whether `test`, which needs a private network, can run. If not, prints `SKIP:` and the reason on standard error, past
/// the test harness, which would hide it.
///
/// # Panics
///
/// Panics instead of skipping where the environment says `WEIR_REQUIRE_ROOT=1` or `CI=true`.
pub fn require_root(test: &str) -> bool {
    let Err(error) = NetNs::new() else { return true };
    let set = |name, value| env::var_os(name).is_some_and(|found| found == value);
    assert!(!set("WEIR_REQUIRE_ROOT", "1") && !set("CI", "true"), "{test} must not be skipped: {error}");
    // A closed standard error is no reason to fail: nobody wants to know.
    let _ = writeln!(io::stderr(), "SKIP: {test}: {error}");
    false
}

/// Whether this is Linux `version` or newer, in which there is `what` that `test` needs. If not, says so as [`require_root`]
/// does.
pub fn require_kernel(test: &str, version: (u32, u32), what: &str) -> bool {
    let there = kernel::version() >= version;
    if !there {
        let (major, minor) = version;
        // As above.
        let _ = writeln!(
            io::stderr(),
            "SKIP: {test}: {what} needs Linux {major}.{minor}, not {}",
            kernel::release()
        );
    }
    there
}
