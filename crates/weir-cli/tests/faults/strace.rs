//! strace: which calls a program makes, and how one of them fails.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use weir_lab::Network;

/// Far longer than any run takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What touches files, maps and sockets, and how it may fail.
const CALLS: [(&str, &[&str]); 50] = [
    ("accept4", &["EMFILE", "EINTR"]),
    ("bind", &["ENOMEM"]),
    ("bpf", &["ENOMEM", "EPERM"]),
    ("clone", &["EAGAIN"]),
    ("clone3", &["EAGAIN"]),
    ("connect", &["EINTR"]),
    ("dup3", &["EMFILE"]),
    ("epoll_create1", &["EMFILE"]),
    ("epoll_ctl", &["ENOMEM"]),
    ("epoll_pwait", &["EINTR"]),
    ("epoll_wait", &["EINTR"]),
    ("eventfd2", &["EMFILE"]),
    ("fallocate", &["ENOSPC", "EINTR"]),
    ("fchmod", &["EIO"]),
    ("fchown", &["EIO"]),
    ("fcntl", &["EMFILE"]),
    ("flock", &["ENOLCK"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("ftruncate", &["EIO", "EINTR"]),
    ("getdents64", &["EIO"]),
    ("getsockopt", &["ENOMEM"]),
    ("io_uring_register", &["ENOMEM"]),
    ("io_uring_setup", &["ENOMEM"]),
    ("ioctl", &["EIO"]),
    ("listen", &["EIO"]),
    ("lseek", &["EIO"]),
    ("memfd_create", &["EMFILE"]),
    ("mkdir", &["ENOSPC"]),
    ("mmap", &["ENOMEM"]),
    ("openat", &["EIO", "EMFILE", "ENOMEM", "EINTR"]),
    ("poll", &["EINTR", "ENOMEM"]),
    ("ppoll", &["EINTR", "ENOMEM"]),
    ("pwrite64", &["ENOSPC", "EIO", "EINTR"]),
    ("read", &["EIO", "EINTR"]),
    ("readv", &["EIO", "EINTR"]),
    ("recvfrom", &["ENOMEM", "EINTR"]),
    ("recvmsg", &["ENOMEM", "EINTR"]),
    ("rename", &["EIO"]),
    ("renameat2", &["EIO"]),
    ("sendmsg", &["ENOBUFS", "EINTR"]),
    ("sendto", &["ENOBUFS", "EINTR"]),
    ("setsockopt", &["ENOMEM"]),
    ("socket", &["EMFILE"]),
    ("socketpair", &["EMFILE"]),
    ("statx", &["EIO"]),
    ("newfstatat", &["EIO"]),
    ("unlink", &["EIO"]),
    ("unlinkat", &["EIO"]),
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    ("writev", &["ENOSPC", "EIO", "EINTR"]),
];

/// How many places of a call are tried, unless all are.
const PLACES: usize = 1;

/// One call that is to fail.
pub(crate) struct Fault {
    call: String,
    nth: usize,
    pub(crate) error: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.error, self.call, self.nth)
    }
}

/// The faults to try, from the trace of a run without any: some, `all`, or those of the call that is named.
pub(crate) fn faults(trace: &str, wanted: Option<&str>) -> Vec<Fault> {
    let mut chosen = Vec::new();
    for (call, places) in places(trace) {
        let (_, errors) = CALLS.iter().find(|(name, _)| *name == call).expect("it was asked for");
        let fault = |&nth: &usize, error| Fault { call: call.clone(), nth, error };
        if wanted == Some("all") || wanted == Some(&call) {
            chosen
                .extend(places.iter().flat_map(|place| errors.iter().map(move |error| fault(place, error))));
        } else if wanted.is_none() {
            let picked = (0..PLACES).map(|pick| &places[(2 * pick + 1) * places.len() / (2 * PLACES)]);
            chosen.extend(picked.zip(errors.iter().cycle()).map(|(place, error)| fault(place, error)));
        }
    }
    chosen
}

/// For each call which of a thread's can fail.
fn places(trace: &str) -> BTreeMap<String, Vec<usize>> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let mut known: HashSet<(&str, usize)> = HashSet::new();
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut began = !trace.contains("rt_sigaction(SIGPIPE");
    for line in trace.lines() {
        let (thread, shown) = line.split_once(' ').unwrap_or_default();
        let shown = shown.trim_start();
        let Some((call, args)) = shown.split_once('(') else { continue };
        // The first that Rust's runtime does; what is before is the dynamic linker.
        began |= shown.starts_with("rt_sigaction(SIGPIPE");
        if !CALLS.iter().any(|(name, _)| *name == call) {
            continue;
        }
        let nth = counts.entry((thread, call)).or_default();
        *nth += 1;
        if known.insert((call, *nth)) && began && is_ours(call, args) {
            places.entry(call.to_owned()).or_default().push(*nth);
        }
    }
    places
}

/// Not what the libraries below do for themselves: memory of the allocator and for the stacks of signals, without which every
/// program aborts, and what the standard library asks before it closes a file.
fn is_ours(call: &str, args: &str) -> bool {
    match call {
        "mmap" => !args.contains("MAP_PRIVATE|MAP_ANONYMOUS") || args.contains("PROT_NONE"),
        "fcntl" => !args.contains("F_GETFD"),
        _ => true,
    }
}

/// Has strace write what it sees to `trace`, and let the fault happen.
pub(crate) fn options(strace: &mut Command, trace: &Path, fault: Option<&Fault>, plain: bool) {
    let names: Vec<String> = CALLS.iter().map(|(name, _)| format!("?{name}")).collect();
    strace.args(["-f", "-qq", "-s", "64", "-o"]).arg(trace);
    match fault {
        Some(Fault { call, nth, error, .. }) => {
            strace.args(["-e", &format!("trace={call},io_uring_setup")]);
            strace.args(["-e", &format!("inject={call}:error={error}:when={nth}")]);
        }
        None => {
            strace.args(["-e", &format!("trace={},rt_sigaction", names.join(","))]);
        }
    }
    if plain && fault.is_none_or(|fault| fault.call != "io_uring_setup") {
        strace.args(["-e", "inject=io_uring_setup:error=ENOSYS"]);
    }
}

/// How a run ended, and all that it said.
pub(crate) struct Run {
    /// None: it was ended, for it did not end by itself.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) trace: String,
}

impl Run {
    /// What failed, as strace shows it.
    pub(crate) fn injected(&self) -> Option<&str> {
        self.trace.lines().find(|line| line.contains("(INJECTED)"))
    }
}

/// Runs the command, which writes its trace to `trace` in the directory, in the receiving namespace if there is a network.
pub(crate) fn run(command: &mut Command, network: Option<&Network>, aside: &Path) -> Run {
    let file = |name| File::create(aside.join(name)).expect("a file");
    command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr")).process_group(0);
    let child = match network {
        Some(network) => network.rx().spawn(command),
        None => command.spawn(),
    };
    let mut child = child.expect("strace starts");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break Some(status);
        }
        if start.elapsed() > PATIENCE {
            kill_process_group(Pid::from_child(&child), Signal::KILL).expect("it runs");
            child.wait().expect("it can be waited for");
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let text = |name| String::from_utf8_lossy(&fs::read(aside.join(name)).expect("a file")).into_owned();
    Run { status, stdout: text("stdout"), stderr: text("stderr"), trace: text("trace") }
}
