//! Checks the machine: container, clock, processors, the network stack's budgets.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::time::{DynamicClockId, clock_gettime_dynamic};

use super::check::Check;
use super::kernel::read;

/// Returns all checks; `captures`: every source works.
pub(super) fn checks(captures: bool) -> Vec<Check> {
    let mut checks = vec![container(captures), clock_source(), clock_cost(), processors()];
    checks.extend(governor());
    checks.extend(stack());
    checks
}

fn container(captures: bool) -> Check {
    const NAME: &str = "container";
    let mut signs = Vec::new();
    if let Ok(kind) = std::env::var("container") {
        signs.push(format!("the environment says {kind}"));
    }
    for file in ["/.dockerenv", "/run/.containerenv"] {
        if Path::new(file).exists() {
            signs.push(format!("{file} is there"));
        }
    }
    let mounts = read("/proc/self/mountinfo").unwrap_or_default();
    if mounts.lines().any(is_overlay_root) {
        signs.push("the root is an overlay".to_owned());
    }
    if read("/proc/self/uid_map").is_some_and(|map| !map.split_whitespace().eq(["0", "0", "4294967295"])) {
        signs.push("user IDs are mapped".to_owned());
    }
    if signs.is_empty() {
        return Check::ok(NAME, "no sign of one");
    }
    let found = format!("probably: {}", signs.join(", "));
    if captures {
        return Check::ok(NAME, found);
    }
    Check::weak(NAME, found)
        .why("a container has only the interfaces, capabilities and system calls that it was given")
        .remedy("docker run --network host --cap-add BPF --cap-add PERFMON --cap-add NET_ADMIN --cap-add NET_RAW ...")
}

/// Returns whether a line of `mountinfo` is an overlay root. The fifth field is the mount point, and the field after
/// the lone dash is the type.
fn is_overlay_root(line: &str) -> bool {
    let place = line.split(' ').nth(4);
    let kind = line.split(" - ").nth(1).and_then(|rest| rest.split(' ').next());
    place == Some("/") && matches!(kind, Some("overlay" | "aufs" | "fuse-overlayfs"))
}

fn clock_source() -> Check {
    const NAME: &str = "clock source";
    const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
    let Some(current) = read(&format!("{DIR}/current_clocksource")) else {
        return Check::unknown(NAME, format!("{DIR} cannot be read"));
    };
    let slow = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
    if !slow.contains(&current.as_str()) {
        return Check::ok(NAME, current);
    }
    let others = read(&format!("{DIR}/available_clocksource")).unwrap_or_default();
    let check = Check::weak(NAME, format!("{current}; available: {others}"))
        .why("every timestamp reads it, which takes about a microsecond");
    match others.split(' ').find(|other| !slow.contains(other)) {
        Some(better) => check.remedy(format!("echo {better} > {DIR}/current_clocksource")),
        None => check.remedy("--timestamps batch"),
    }
}

/// Returns the time to read `CLOCK_TAI`, in nanoseconds. It is the minimum of several runs, because others use the
/// processor, too.
fn clock_cost() -> Check {
    const NAME: &str = "clock read";
    const RUNS: u32 = 5;
    const READS: u32 = 2000;
    const SLOW: f64 = 200.0;
    let cost = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..READS {
                let _now = std::hint::black_box(clock_gettime_dynamic(DynamicClockId::Tai));
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(READS)
        })
        .fold(f64::INFINITY, f64::min);
    let found = format!("{cost:.0} ns");
    if cost < SLOW {
        return Check::ok(NAME, found);
    }
    Check::weak(NAME, found)
        .why("every timestamp costs about that much")
        .remedy("--timestamps batch, or another clock source")
}

fn processors() -> Check {
    const NAME: &str = "processors";
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{usable} for this process");
    if usable > 1 {
        return Check::ok(NAME, found);
    }
    Check::weak(NAME, found).why("the capturing program and its reader share a CPU")
}

/// Returns the frequency governors in use, if they are known.
fn governor() -> Option<Check> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?.flatten();
    let mut governors: Vec<String> = cpus
        .filter_map(|cpu| fs::read_to_string(cpu.path().join("cpufreq/scaling_governor")).ok())
        .map(|governor| governor.trim().to_owned())
        .collect();
    governors.sort_unstable();
    governors.dedup();
    if governors.is_empty() {
        return None;
    }
    let found = governors.join(", ");
    Some(if governors.iter().all(|governor| governor == "performance") {
        Check::ok("governor", found)
    } else {
        Check::note("governor", found)
            .why("a CPU that must first speed up loses the start of a burst")
            .remedy("cpupower frequency-set -g performance")
    })
}

/// Checks the counters in `/proc/net/softnet_stat` since boot: packets dropped because the backlog was full, and rounds
/// that ended with work left.
fn stack() -> Vec<Check> {
    let Ok(table) = fs::read_to_string("/proc/thread-self/net/softnet_stat") else { return Vec::new() };
    let sum = |column: usize| -> u64 {
        let cells = table.lines().filter_map(|line| line.split_whitespace().nth(column));
        cells.filter_map(|cell| u64::from_str_radix(cell, 16).ok()).sum()
    };
    let (received, dropped, squeezed) = (sum(0), sum(1), sum(2));
    let setting =
        |name: &str| read(&format!("/proc/sys/net/core/{name}")).unwrap_or_else(|| "not visible here".into());
    // The settings are the machine's, but only its first network namespace shows them.
    let sysctl = |name: &str, more| {
        let inside = if setting(name).parse::<u64>().is_ok() { "" } else { "nsenter -t 1 -n " };
        format!("{inside}sysctl -w net.core.{name}={more}")
    };
    let backlog = setting("netdev_max_backlog");
    let budget = setting("netdev_budget");
    let found = format!("{backlog}; {dropped} packets dropped since boot");
    let first = if dropped == 0 {
        Check::ok("backlog", found)
    } else {
        let more = backlog.parse::<u64>().map_or(10_000, |backlog| backlog.saturating_mul(4));
        Check::weak("backlog", found)
            .why("loopback, tunnels and generic XDP with steering use it")
            .remedy(sysctl("netdev_max_backlog", more))
    };
    let found = format!("{budget}; {squeezed} rounds cut short since boot");
    // An occasional one is normal under load.
    let second = if squeezed <= received / 10_000 {
        Check::ok("budget", found)
    } else {
        let more = budget.parse::<u64>().map_or(600, |budget| budget.saturating_mul(2));
        Check::weak("budget", found)
            .why("packets wait in the card's ring, which may overflow")
            .remedy(sysctl("netdev_budget", more))
    };
    vec![first, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_root_is_seen() {
        let overlay = "602 540 0:52 / / rw,relatime - overlay overlay rw,lowerdir=/a";
        let disk = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw";
        let elsewhere = "30 25 0:52 / /mnt rw,relatime - overlay overlay rw";
        assert!(is_overlay_root(overlay) && !is_overlay_root(disk) && !is_overlay_root(elsewhere));
    }
}
