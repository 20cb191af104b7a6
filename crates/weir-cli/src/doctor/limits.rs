//! Checks memory and descriptors for a capture.

use std::fs;

use rustix::process::{Resource, getrlimit};
use weir::{DEFAULT_CHUNK_SIZE, DEFAULT_CHUNKS};
use weir_sys::bpf::probe::{Feature, make};
use weir_sys::packet;

use super::check::{Check, NOT_PERMITTED};
use super::kernel::read;
use crate::units;

/// Default size of one queue's pool.
const POOL: u64 = DEFAULT_CHUNK_SIZE as u64 * DEFAULT_CHUNKS as u64;

/// Memory for everything but the pool: the program, file buffers.
const HEADROOM: u64 = 32 << 20;

pub(super) fn checks() -> Vec<Check> {
    vec![pool(), memory(), control_group(), descriptors(), locked_memory(), filter_room()]
}

/// Creates a map of the size of a queue's pool.
fn pool() -> Check {
    const NAME: &str = "a pool";
    let Ok(bytes) = u32::try_from(POOL) else {
        return Check::unknown(NAME, "larger than one eBPF map can be");
    };
    match make(Feature::MappableArray(bytes)) {
        Ok(()) => Check::ok(NAME, format!("{} per queue is available", units::bytes(POOL))),
        Err(error) if error.errno() == rustix::io::Errno::PERM.raw_os_error() => {
            Check::unknown(NAME, NOT_PERMITTED)
        }
        Err(error) => {
            Check::missing(NAME, format!("{} is not available: {}", units::bytes(POOL), error.source))
                .why("xdp and tc keep packets in such a map")
                .remedy("use a smaller buffer (-B 8MiB), or raise the cgroup's memory limit")
        }
    }
}

fn memory() -> Check {
    const NAME: &str = "memory";
    let available = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:").map(str::to_owned))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    });
    match available {
        None => Check::unknown(NAME, "/proc/meminfo does not report available memory"),
        Some(bytes) => enough(NAME, bytes, "available"),
    }
}

fn enough(name: &'static str, bytes: u64, what: &str) -> Check {
    let found = format!("{} {what}", units::bytes(bytes));
    if bytes >= POOL + HEADROOM {
        return Check::ok(name, found);
    }
    Check::weak(name, found)
        .why(format!("a queue takes {} by default", units::bytes(POOL)))
        .remedy("use a smaller buffer: -B 8MiB")
}

/// Checks the lowest limit of this process's control groups.
fn control_group() -> Check {
    const NAME: &str = "control group";
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(limits_of);
    // In version 1, a limit beyond any memory means none.
    match limits.filter(|&limit| limit < 1 << 60).min() {
        None => Check::ok(NAME, "no memory limit"),
        Some(limit) => enough(NAME, limit, "at most (memory limit)"),
    }
}

/// Returns the limits from one line of `/proc/self/cgroup`, `ID:CONTROLLERS:PATH`, up to the root.
fn limits_of(line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let group = std::path::Path::new(path.trim_start_matches('/'));
    let levels = group.ancestors().map(|level| std::path::Path::new(root).join(level).join(file));
    levels.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).collect()
}

fn descriptors() -> Check {
    const NAME: &str = "descriptors";
    /// A capture on one interface needs about twenty.
    const ENOUGH: u64 = 256;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < ENOUGH => Check::weak(NAME, format!("{limit} at most"))
            .why("each interface takes about twenty")
            .remedy("ulimit -n 1024"),
        limit => {
            Check::ok(NAME, limit.map_or_else(|| "no limit".to_owned(), |limit| format!("{limit} at most")))
        }
    }
}

/// Only AF_XDP needs it: maps count against the control group since Linux 5.11.
fn locked_memory() -> Check {
    const NAME: &str = "locked memory";
    match getrlimit(Resource::Memlock).current {
        None => Check::ok(NAME, "no limit"),
        Some(limit) => Check::ok(NAME, format!("{} at most; eBPF maps do not count", units::bytes(limit))),
    }
}

/// Checks the space for a packet socket's filter.
fn filter_room() -> Check {
    const NAME: &str = "room for filters";
    match packet::filter_room() {
        None => Check::unknown(NAME, "net.core.optmem_max is not visible in this network namespace"),
        Some(bytes) if bytes < packet::ENOUGH_ROOM => {
            Check::weak(NAME, format!("{} in a packet socket", units::bytes(bytes)))
                .why("larger filters run in the process, which is slower (af_packet)")
                .remedy("sysctl -w net.core.optmem_max=131072")
        }
        Some(bytes) => Check::ok(NAME, format!("{} in a packet socket", units::bytes(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_of_other_controllers_set_no_memory_limit() {
        assert!(limits_of("3:cpuset:/").is_empty());
        assert!(limits_of("nonsense").is_empty());
        assert!(limits_of("0::/no/such/group/at/all").iter().all(|&limit| limit > 0));
    }
}
