//! One filter, every machine, one verdict: interpreter, native code, classic BPF here and in the kernel, eBPF in XDP, tc and
//! sockets; and libpcap as the judge of what a filter means.

use std::env;
use std::io::{self, Write};

use weir_sys::bpf::program::{self, ProgramKind};

mod cases;
mod dialect;
mod lifted;

/// Whether eBPF programs can be loaded. If not, says so, past the test harness.
///
/// # Panics
///
/// Where the environment demands that nothing is skipped.
fn can_load(test: &str) -> bool {
    // r0 = 0; exit
    let Err(error) = program::load(ProgramKind::Socket, "probe", &[0xb7, 0x95]) else { return true };
    let set = |name, value| env::var_os(name).is_some_and(|found| found == value);
    assert!(!set("WEIR_REQUIRE_ROOT", "1") && !set("CI", "true"), "{test} must not be skipped: {error}");
    let _nobody_left = writeln!(io::stderr(), "SKIP: {test}: {error}");
    false
}
