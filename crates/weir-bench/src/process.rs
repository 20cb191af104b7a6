//! What the kernel knows of a process: `/proc/PID`.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::failure::{Failure, failed};

/// Memory of a process, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// The most that was resident.
    pub(super) peak: u64,
    /// What is shared with the kernel to hold packets: maps of eBPF programs and rings of packet sockets.
    pub(super) shared: u64,
    /// What of that is in `peak`.
    shared_resident: u64,
}

impl Memory {
    /// Reads it.
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        let file = |name| fs::read_to_string(format!("/proc/{}/{name}", pid.as_raw_nonzero()));
        let (shared, shared_resident) = shared(&file("smaps")?);
        Ok(Self { peak: field(&file("status")?, "VmHWM:").unwrap_or(0), shared, shared_resident })
    }

    /// All memory, of the process and of the kernel for it, but for a pool of this size.
    pub(super) fn beyond(&self, pool: u64) -> u64 {
        (self.peak + self.shared).saturating_sub(self.shared_resident + pool)
    }
}

/// Processor time of all children that have ended and been waited for, to a hundredth of a second (`proc_pid_stat(5)`: cutime and
/// cstime, in hundredths on every platform).
pub(super) fn time_of_children() -> io::Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program may have anything in it.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
    let ticks = fields.skip(13).take(2).map(|field| field.parse().unwrap_or(0)).sum::<u64>();
    Ok(Duration::from_millis(ticks * 10))
}

/// A field of `status` or `smaps`, in bytes; the kernel writes kB for KiB.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| kilobytes(line, name))
}

fn kilobytes(line: &str, name: &str) -> Option<u64> {
    Some(line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Size and resident size of the mappings that hold packets, from `smaps`: a line with address and name of a mapping,
/// then its fields.
fn shared(smaps: &str) -> (u64, u64) {
    let (mut size, mut resident, mut counts) = (0, 0, false);
    for line in smaps.lines() {
        if let Some(bytes) = kilobytes(line, "Size:") {
            size += if counts { bytes } else { 0 };
        } else if let Some(bytes) = kilobytes(line, "Rss:") {
            resident += if counts { bytes } else { 0 };
        } else if !line.split_whitespace().next().is_some_and(|word| word.ends_with(':')) {
            counts = line.contains("bpf-map") || line.contains("socket:");
        }
    }
    (size, resident)
}

/// Processor time that all living threads of a process have used.
pub(super) fn cpu_time(pid: Pid) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()))? {
        // A thread may have ended meanwhile.
        sum +=
            fs::read_to_string(task?.path().join("schedstat")).map_or(Duration::ZERO, |text| running(&text));
    }
    Ok(sum)
}

/// Whether a thread of a process runs, or would if it got a processor.
pub(super) fn is_runnable(pid: Pid) -> io::Result<bool> {
    for task in fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()))? {
        // A thread may have ended meanwhile.
        if fs::read_to_string(task?.path().join("stat")).is_ok_and(|text| state(&text) == Some('R')) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// From a `stat`: behind the name, which may hold anything.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Keeps the calling thread on one processor.
pub(super) fn pin(cpu: u32) -> Result<(), Failure> {
    let mut only = CpuSet::new();
    only.set(usize::try_from(cpu).expect("a small number"));
    sched_setaffinity(None, &only).map_err(failed(format_args!("pin to processor {cpu}")))
}

/// Processor time of this thread, in the program and in the kernel for it.
pub(super) fn thread_time() -> Duration {
    since_it_began(ClockId::ThreadCPUTime)
}

/// The same of all threads of this process, those that have ended included.
pub(super) fn own_time() -> Duration {
    since_it_began(ClockId::ProcessCPUTime)
}

fn since_it_began(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time for which this thread was ready to run, and others had the processor. None where the kernel does not tell.
pub(super) fn thread_waited() -> Option<Duration> {
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Time for which the hypervisor gave this processor to others (`steal` of proc_stat(5)), in hundredths of a second. Zero where nobody
/// tells.
pub(super) fn stolen(cpu: u32) -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    Duration::from_millis(10 * ticks_stolen(&stat, cpu).unwrap_or(0))
}

fn ticks_stolen(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut lines = stat.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.nth(7)?.parse().ok()).flatten())
}

/// Time for which all processors together were not idle, and not taken away by a hypervisor (proc_stat(5)).
pub(super) fn busy() -> io::Result<Duration> {
    let stat = fs::read_to_string("/proc/stat")?;
    ticks_busy(&stat)
        .map(|ticks| Duration::from_millis(10 * ticks))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn ticks_busy(stat: &str) -> Option<u64> {
    let words = stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace();
    let ticks: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    // Guests are in the first two.
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else { return None };
    Some(user + nice + system + irq + softirq)
}

/// The first number of a `schedstat`: nanoseconds on a processor. To the last tick of the timer for a thread that runs.
fn running(schedstat: &str) -> Duration {
    let nanoseconds = schedstat.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The kernel's thread that does the network work of a processor when there is too much of it. None where other
/// processes cannot be seen.
pub(super) fn ksoftirqd(cpu: u32) -> Option<Pid> {
    let name = format!("ksoftirqd/{cpu}");
    named(|comm| comm == name).pop()
}

/// The processes with such a name.
pub(super) fn named(is_wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let wanted = processes.filter(|entry| {
        fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| is_wanted(comm.trim_end()))
    });
    wanted.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The processes that `parent` has started and that have not ended yet.
pub(super) fn children_of(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let alive = processes.filter(|entry| {
        fs::read_to_string(entry.path().join("stat"))
            .is_ok_and(|stat| living_child_of(&stat) == Some(parent.as_raw_nonzero().get()))
    });
    alive.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The parent's number in a `stat`, unless the process has ended and waits for its parent to notice.
fn living_child_of(stat: &str) -> Option<i32> {
    let mut words = stat.rsplit_once(") ")?.1.split_whitespace();
    let is_alive = words.next()? != "Z";
    words.next()?.parse().ok().filter(|_| is_alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0c0a00000-55d0c0a10000 r--p 00000000 fe:00 1 /usr/bin/weir
Size:                 64 kB
KernelPageSize:        4 kB
Rss:                  60 kB
VmFlags: rd mr mw me sd
7f0000000000-7f0004000000 rw-s 00000000 00:0f 1031 anon_inode:bpf-map
Size:              65536 kB
KernelPageSize:        4 kB
Rss:               32768 kB
VmFlags: rd wr sh mr mw me ms sd
7f0005000000-7f0006000000 rw-s 00000000 00:09 9 socket:[9]
Size:                  8 kB
Rss:                   4 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
Size:                132 kB
Rss:                  16 kB
";

    #[test]
    fn what_the_hypervisor_takes_is_the_eighth_number() {
        let stat =
            "cpu  10 2 3 4 5 6 7 99 0 0\ncpu1 1 1 1 1 1 1 1 42 0 0\ncpu10 1 1 1 1 1 1 1 7 0 0\nintr 1\n";
        assert_eq!(ticks_stolen(stat, 1), Some(42));
        assert_eq!(ticks_stolen(stat, 10), Some(7));
        assert_eq!((ticks_stolen(stat, 0), ticks_stolen("", 0)), (None, None));
    }

    #[test]
    fn states_are_behind_the_name() {
        assert_eq!(state("7 (a) R b) S 1 7 7 0"), Some('S'));
        assert_eq!(state("7 (a) R 1 7 7 0"), Some('R'));
        assert_eq!((state("7 (a"), state("")), (None, None));
    }

    #[test]
    fn parents_are_behind_the_state() {
        assert_eq!(living_child_of("7 (a) R 9) S 1 7 7 0"), Some(1));
        assert_eq!((living_child_of("7 (a) Z 1 7 7 0"), living_child_of("7 (a) S")), (None, None));
    }

    #[test]
    fn idle_time_and_that_of_others_is_not_busy() {
        assert_eq!(ticks_busy("cpu  1 20 300 9 9 4000 50000 9 9 9\ncpu0 1 1 1 1 1 1 1\n"), Some(54321));
        assert_eq!((ticks_busy("cpu  1 2 3\n"), ticks_busy("")), (None, None));
    }

    #[test]
    fn mappings_that_hold_packets_are_told_from_others() {
        assert_eq!(shared(SMAPS), (65544 << 10, 32772 << 10));
    }

    #[test]
    fn memory_beyond_the_pool() {
        let memory = Memory { peak: 40 << 20, shared: 70 << 20, shared_resident: 32 << 20 };
        assert_eq!(memory.beyond(64 << 20), 14 << 20, "8 of its own, 6 that the pool has beside its chunks");
        assert_eq!(memory.beyond(1 << 40), 0);
    }

    #[test]
    fn this_process_is_known() {
        let pid = rustix::process::getpid();
        let memory = Memory::of(pid).expect("memory");
        assert!(memory.peak > 1 << 20 && memory.shared_resident <= memory.shared, "{memory:?}");
        let before = cpu_time(pid).expect("time");
        let mut sum = 0_u64;
        while cpu_time(pid).expect("time") < before + Duration::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(is_runnable(pid).expect("a state"));
    }
}
