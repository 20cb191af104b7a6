//! Checks the kernel's features by using them, not by its version.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use weir_sys::bpf::grace::Grace;
use weir_sys::bpf::probe::{Feature, make};
use weir_sys::bpf::query;
use weir_sys::filter::Side;
use weir_sys::landlock::{self, Enforced, Files};
use weir_sys::uring;

use super::check::{Check, NOT_PERMITTED, THERE};
use super::privileges::setcap;

/// The features that programs use, and their purpose.
const FEATURES: [(&str, Feature, &str); 6] = [
    ("XDP programs", Feature::Xdp, "required by the xdp source"),
    ("tc programs", Feature::Tc, "required by the tc source"),
    ("CLOCK_TAI in eBPF", Feature::TaiClock, "xdp and tc take timestamps from it (Linux 6.1)"),
    ("mappable arrays", Feature::MappableArray(1 << 16), "xdp and tc keep packets in one (Linux 5.5)"),
    ("BPF ring buffer", Feature::RingBuffer, "xdp and tc wake the reader with it (Linux 5.8)"),
    ("tail calls", Feature::TailCall, "required by filters"),
];

/// Returns all checks, including those from the private network.
pub(super) fn checks(shown: Vec<Check>) -> Vec<Check> {
    let mut checks = vec![syscall()];
    checks.extend(FEATURES.map(|(name, feature, why)| made(name, feature, why)));
    checks.push(tcx());
    checks.extend(shown);
    checks.extend([af_xdp(), grace(), io_uring(), landlock(), seccomp(), btf(), jit()]);
    checks
}

fn syscall() -> Check {
    const NAME: &str = "bpf(2)";
    match make(Feature::Map) {
        Ok(()) => Check::ok(NAME, THERE),
        Err(error) if is(&error, Errno::PERM) => {
            Check::missing(NAME, refusal()).why("xdp and tc are eBPF programs").remedy(setcap())
        }
        Err(error) => Check::missing(NAME, error.source.to_string()).why("xdp and tc are eBPF programs"),
    }
}

/// Returns possible reasons why `bpf(2)` is denied.
fn refusal() -> String {
    let mut words = vec!["not permitted".to_owned()];
    if let Some(value) = read("/proc/sys/kernel/unprivileged_bpf_disabled") {
        words.push(format!("kernel.unprivileged_bpf_disabled is {value}"));
    }
    let status = read("/proc/thread-self/status").unwrap_or_default();
    if status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])) {
        words.push("this process runs under a seccomp filter, as in most containers".to_owned());
    }
    words.join("; ")
}

fn made(name: &'static str, feature: Feature, why: &str) -> Check {
    match make(feature) {
        Ok(()) => Check::ok(name, THERE),
        Err(error) if is(&error, Errno::PERM) => Check::unknown(name, NOT_PERMITTED),
        Err(error) => Check::missing(name, error.source.to_string()).why(why),
    }
}

fn tcx() -> Check {
    const NAME: &str = "tcx";
    match query::tcx(1, Side::Ingress) {
        Ok(Some(_)) => Check::ok(NAME, THERE),
        Ok(None) => Check::note(NAME, "missing (requires Linux 6.6)")
            .why("only tcx removes the tc source's programs when the process is killed"),
        Err(_) => Check::unknown(NAME, NOT_PERMITTED),
    }
}

fn af_xdp() -> Check {
    const NAME: &str = "AF_XDP";
    match socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None) {
        Ok(_) => Check::ok(NAME, THERE),
        Err(Errno::PERM) => Check::unknown(NAME, NOT_PERMITTED),
        Err(error) => Check::weak(NAME, error.to_string()).why("required by the af_xdp source"),
    }
}

/// Checks how weir can tell that a detached program has returned.
fn grace() -> Check {
    const NAME: &str = "grace periods";
    let grace = Grace::new();
    match grace.wait() {
        Ok(()) if grace.is_sure() => Check::ok(NAME, "by a map of maps"),
        Ok(()) => Check::ok(NAME, "by membarrier"),
        Err(error) => Check::missing(NAME, error.source.to_string())
            .why("required for exact final counts with xdp and tc"),
    }
}

fn io_uring() -> Check {
    const NAME: &str = "io_uring";
    match uring::available() {
        Ok(()) => Check::ok(NAME, THERE),
        Err(error) => {
            let setting = read("/proc/sys/kernel/io_uring_disabled").filter(|value| value != "0");
            let found = match &setting {
                Some(value) => format!("{error}; kernel.io_uring_disabled is {value}"),
                None => error.to_string(),
            };
            let check =
                Check::weak(NAME, found).why("files are written with plain write(2) calls, one at a time");
            if setting.is_some() { check.remedy("sysctl -w kernel.io_uring_disabled=0") } else { check }
        }
    }
}

/// Tries landlock in a thread that ends immediately.
fn landlock() -> Check {
    const NAME: &str = "landlock";
    const WHY: &str = "a capture cannot deny itself access to other files";
    let restricted = std::thread::spawn(|| landlock::restrict(&Files::default())).join();
    match restricted {
        Ok(Ok(Enforced::Fully)) => Check::ok(NAME, THERE),
        Ok(Ok(Enforced::Partly)) => Check::ok(NAME, "partly supported"),
        Ok(Ok(Enforced::Not)) => Check::weak(NAME, "missing, or not enabled at boot")
            .why(WHY)
            .remedy("add landlock to lsm= on the kernel command line"),
        Ok(Err(error)) => Check::weak(NAME, error.to_string()).why(WHY),
        Err(_) => Check::weak(NAME, "the test thread failed").why(WHY),
    }
}

fn seccomp() -> Check {
    const NAME: &str = "seccomp";
    match read("/proc/sys/kernel/seccomp/actions_avail") {
        Some(actions) if actions.split(' ').any(|action| action == "errno") => Check::ok(NAME, THERE),
        _ => Check::weak(NAME, "no filters").why("a capture cannot deny itself system calls"),
    }
}

fn btf() -> Check {
    const NAME: &str = "BTF";
    const PATH: &str = "/sys/kernel/btf/vmlinux";
    match fs::metadata(PATH) {
        Ok(_) => Check::ok(NAME, THERE),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Check::weak(NAME, format!("no {PATH}")).why("xdp cannot get stripped VLAN tags from drivers")
        }
        Err(error) => Check::unknown(NAME, format!("{PATH}: {error}")),
    }
}

fn jit() -> Check {
    const NAME: &str = "eBPF compiler";
    match read("/proc/sys/net/core/bpf_jit_enable").as_deref() {
        Some("0") => Check::weak(NAME, "off: eBPF is interpreted")
            .why("every packet costs several times as much with xdp and tc")
            .remedy("sysctl -w net.core.bpf_jit_enable=1"),
        Some(_) => Check::ok(NAME, THERE),
        None => Check::unknown(NAME, "net.core.bpf_jit_enable cannot be read"),
    }
}

fn is(error: &weir_sys::CallError, errno: Errno) -> bool {
    error.errno() == errno.raw_os_error()
}

/// Reads a small file without its final line feed.
pub(super) fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
