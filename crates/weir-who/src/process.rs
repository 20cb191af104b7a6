//! Processes, as they were at some time.

/// A process, told from later ones with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Its number in the first pid namespace, which `ps` shows on the host (the kernel's `tgid`).
    pub number: u32,
    /// When it started, in hundredths of a second since the system did: field 22 of `/proc/PID/stat`, see proc(5).
    pub started: u64,
}

/// What is known of a process. Another one with the same [`id`](Self::id) tells how it is after a change: another program, name,
/// user, or control group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Which process.
    pub id: ProcessId,
    /// The number of its parent; 0 if unknown.
    pub parent: u32,
    /// Its effective user.
    pub user: u32,
    /// The name of its main thread (`comm`, at most 15 bytes), as it is: it may have control characters, and need not be
    /// UTF-8, whose invalid parts are replaced.
    pub name: String,
    /// The file that it runs, if it is known.
    pub program: Option<String>,
    /// Its arguments, if they were asked for and are known.
    pub arguments: Option<Vec<String>>,
    /// Its control group's path, from the root of cgroup2 (`/system.slice/nginx.service`), if it is known. Where only version 1
    /// tells containers apart, the longest path there.
    pub cgroup: Option<String>,
    /// The container it is in, if in any that weir can tell.
    pub container: Option<Container>,
    /// The unit of systemd that it belongs to, if any (`nginx.service`).
    pub unit: Option<String>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Container {
    /// What its engine calls it: mostly 64 hexadecimal digits.
    pub id: String,
    /// The name that people gave it, if it could be found out.
    pub name: Option<String>,
    /// The engine, as its control groups tell it: `docker`, `containerd`, `cri-o`, `podman`; empty if they do not.
    pub engine: String,
}
