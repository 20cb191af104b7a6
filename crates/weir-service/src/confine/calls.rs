//! Restricts system calls with seccomp.
//!
//! A call that is not listed fails with `ENOSYS`, as on a kernel that lacks it. The C library then uses its fallback if
//! it has one (`clone3` becomes `clone`, whose flags a filter can check). Otherwise, the error is reported like any
//! other, with the name of the failed operation. Killing the process would be less informative, and lose packets.

use std::env::consts::ARCH;

use libc as c;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, TargetArch,
};

/// The work of a process after it is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// Receives packets from the kernel and writes files.
    Capture,
    /// Opens and removes files for another process.
    Keep,
    /// The same, and makes folders.
    Fill,
    /// Loads eBPF programs for another process, each in a child process.
    Make,
    /// Reads and writes files.
    Files,
    /// Reads and writes files, and generates code until [`no_code`].
    FilesAndCode,
    /// Makes TCP connections for another process.
    Connect,
    /// Reads files, whichever it may, and changes none.
    Inspect,
}

/// Memory, threads, time.
const PROCESS: &[c::c_long] = &[
    c::SYS_brk,
    c::SYS_munmap,
    c::SYS_mremap,
    c::SYS_madvise,
    c::SYS_membarrier,
    c::SYS_futex,
    c::SYS_set_robust_list,
    c::SYS_rseq,
    c::SYS_exit,
    c::SYS_exit_group,
    c::SYS_restart_syscall,
    c::SYS_rt_sigaction,
    c::SYS_rt_sigprocmask,
    c::SYS_rt_sigreturn,
    c::SYS_sigaltstack,
    c::SYS_getpid,
    c::SYS_getpgid,
    c::SYS_gettid,
    c::SYS_getuid,
    c::SYS_geteuid,
    c::SYS_getgid,
    c::SYS_getegid,
    c::SYS_sched_yield,
    c::SYS_sched_getaffinity,
    c::SYS_getcpu,
    c::SYS_getrusage,
    c::SYS_getrandom,
    c::SYS_uname,
    c::SYS_sysinfo,
    c::SYS_clock_gettime,
    c::SYS_clock_getres,
    c::SYS_clock_nanosleep,
    c::SYS_nanosleep,
    c::SYS_gettimeofday,
    c::SYS_wait4,
    c::SYS_waitid,
];

/// Files, pipes and terminals. Landlock restricts which ones. The existing io_uring can only write (`weir_sys::uring`);
/// a new one would have no such limit.
const FILES: &[c::c_long] = &[
    c::SYS_read,
    c::SYS_readv,
    c::SYS_pread64,
    c::SYS_preadv,
    c::SYS_write,
    c::SYS_writev,
    c::SYS_pwrite64,
    c::SYS_pwritev,
    c::SYS_close,
    c::SYS_lseek,
    c::SYS_fstat,
    c::SYS_newfstatat,
    c::SYS_statx,
    c::SYS_fstatfs,
    c::SYS_statfs,
    c::SYS_faccessat,
    c::SYS_faccessat2,
    c::SYS_readlinkat,
    c::SYS_getdents64,
    c::SYS_getcwd,
    c::SYS_ftruncate,
    c::SYS_fallocate,
    c::SYS_fadvise64,
    c::SYS_fsync,
    c::SYS_fdatasync,
    c::SYS_sync_file_range,
    c::SYS_copy_file_range,
    c::SYS_sendfile,
    c::SYS_splice,
    c::SYS_flock,
    c::SYS_dup,
    c::SYS_dup3,
    c::SYS_pipe2,
    c::SYS_eventfd2,
    c::SYS_umask,
    c::SYS_unlinkat,
    c::SYS_renameat,
    c::SYS_renameat2,
    c::SYS_ppoll,
    c::SYS_pselect6,
    c::SYS_epoll_create1,
    c::SYS_epoll_ctl,
    c::SYS_epoll_pwait,
    c::SYS_epoll_pwait2,
    c::SYS_io_uring_enter,
];

/// Files that are only read.
const READING: &[c::c_long] = &[
    c::SYS_read,
    c::SYS_readv,
    c::SYS_pread64,
    // Whatever is open: its socket, and what it says in a panic.
    c::SYS_write,
    c::SYS_writev,
    c::SYS_close,
    c::SYS_lseek,
    c::SYS_fstat,
    c::SYS_newfstatat,
    c::SYS_statx,
    c::SYS_readlinkat,
    c::SYS_getdents64,
    c::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    c::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    c::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    c::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    c::SYS_poll,
];

/// Flags of `open` that change something, or let it be changed.
const WRITING: u64 = (c::O_ACCMODE | c::O_CREAT | c::O_TRUNC) as u64;

/// The same calls under names that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLD_NAMES: &[c::c_long] = &[
    c::SYS_stat,
    c::SYS_lstat,
    c::SYS_access,
    c::SYS_readlink,
    c::SYS_unlink,
    c::SYS_rename,
    c::SYS_dup2,
    c::SYS_pipe,
    c::SYS_poll,
    c::SYS_select,
    c::SYS_epoll_wait,
    c::SYS_getpgrp,
    c::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_NAMES: &[c::c_long] = &[];

/// Requests to a process that opens files, and its answers.
const ASKING: &[c::c_long] = &[c::SYS_sendmsg, c::SYS_recvmsg];

/// Open sockets, and connections that they accept. A packet socket is stopped by `bind`.
const SOCKETS: &[c::c_long] = &[
    c::SYS_bind,
    c::SYS_accept4,
    c::SYS_recvfrom,
    c::SYS_getsockopt,
    c::SYS_getsockname,
    c::SYS_getpeername,
    c::SYS_shutdown,
];

/// For terminals, pipes and sockets: type, size, foreground group, blocking mode. `TIOCSTI`, which injects input, is
/// missing on purpose.
const IOCTLS: &[u64] =
    &[c::TCGETS, c::TIOCGWINSZ, c::TIOCGPGRP, c::FIONBIO, c::FIONREAD, c::FIOCLEX, SIOCETHTOOL];
const SIOCETHTOOL: u64 = 0x8946;
/// Type of a namespace: ioctl_ns(2).
const NS_GET_NSTYPE: u64 = 0xb703;

/// For open maps, programs and links: an update replaces a filter, a deletion removes it, and an iterator reads what its program
/// tells. Loading or creating them
/// is not allowed, nor is attaching a program where there is none.
const BPF_COMMANDS: &[u64] = &[
    MAP_LOOKUP_ELEM,
    MAP_LOOKUP_BATCH,
    MAP_UPDATE_ELEM,
    MAP_UPDATE_BATCH,
    MAP_DELETE_ELEM,
    MAP_GET_NEXT_KEY,
    OBJ_GET_INFO_BY_FD,
    LINK_UPDATE,
    LINK_DETACH,
    ITER_CREATE,
];
/// Creates programs and maps; does not attach programs, or use those of others.
const BPF_MAKES: &[u64] = &[
    MAP_CREATE,
    MAP_LOOKUP_ELEM,
    MAP_UPDATE_ELEM,
    MAP_UPDATE_BATCH,
    MAP_FREEZE,
    PROG_LOAD,
    BTF_LOAD,
    OBJ_GET_INFO_BY_FD,
];
const ITER_CREATE: u64 = 33;
const MAP_CREATE: u64 = 0;
const MAP_LOOKUP_ELEM: u64 = 1;
const MAP_UPDATE_ELEM: u64 = 2;
const MAP_DELETE_ELEM: u64 = 3;
const MAP_GET_NEXT_KEY: u64 = 4;
const PROG_LOAD: u64 = 5;
const OBJ_GET_INFO_BY_FD: u64 = 15;
const BTF_LOAD: u64 = 18;
const MAP_FREEZE: u64 = 22;
const MAP_LOOKUP_BATCH: u64 = 24;
const MAP_UPDATE_BATCH: u64 = 26;
const LINK_UPDATE: u64 = 29;
const LINK_DETACH: u64 = 34;

/// Names of threads and memory areas.
const PRCTLS: &[u64] = &[c::PR_SET_NAME as u64, c::PR_GET_NAME as u64, c::PR_SET_VMA as u64];

/// Flags, copies and locks of a descriptor. Not the signals that the kernel sends about it, nor their recipient
/// (`F_SETOWN`, `F_SETSIG`).
const FCNTLS: &[u64] = &[
    c::F_DUPFD as u64,
    c::F_DUPFD_CLOEXEC as u64,
    c::F_GETFD as u64,
    c::F_SETFD as u64,
    c::F_GETFL as u64,
    c::F_SETFL as u64,
    c::F_SETPIPE_SZ as u64,
    c::F_GETPIPE_SZ as u64,
    c::F_OFD_SETLK as u64,
    c::F_OFD_GETLK as u64,
];

/// Modes set on overwritten files: access for the owner only, or read access for the group as well.
const FILE_MODES: &[u64] = &[0o600, 0o640];

/// Mode bits of new files that would lend the owner's rights to whoever executes them, and the sticky bit.
const SPECIAL_MODES: u64 = 0o7000;

const EXECUTABLE: u64 = c::PROT_EXEC as u64;

const THREAD: u64 = c::CLONE_THREAD as u64;
const NAMESPACES: u64 = (c::CLONE_NEWCGROUP
    | c::CLONE_NEWIPC
    | c::CLONE_NEWNET
    | c::CLONE_NEWNS
    | c::CLONE_NEWPID
    | c::CLONE_NEWUSER
    | c::CLONE_NEWUTS) as u64;

/// Restricts all threads of the process to the calls of `calls`, permanently. `sends`: it also sends packets. Returns the
/// number of allowed calls.
pub(super) fn allow_only(calls: Calls, sends: bool) -> Result<usize, String> {
    let rules = all_rules(calls, sends).map_err(|error| error.to_string())?;
    let number = rules.len();
    apply(rules, SeccompAction::Allow, UNKNOWN)?;
    Ok(number)
}

fn all_rules(calls: Calls, sends: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = rules(calls)?;
    if sends {
        rules.extend(sending()?);
    }
    Ok(rules)
}

/// Denies executable memory to all threads, permanently, in addition to earlier restrictions.
pub(super) fn no_code() -> Result<(), String> {
    let code = || masked(2, EXECUTABLE, EXECUTABLE).map(|rule| vec![rule]).map_err(|error| error.to_string());
    apply(vec![(c::SYS_mmap, code()?), (c::SYS_mprotect, code()?)], UNKNOWN, SeccompAction::Allow)
}

const UNKNOWN: SeccompAction = SeccompAction::Errno(c::ENOSYS as u32);

fn apply(rules: Rules, matching: SeccompAction, others: SeccompAction) -> Result<(), String> {
    let filter = compiled(rules, matching, others).map_err(|error| error.to_string())?;
    seccompiler::apply_filter_all_threads(&filter).map_err(|error| error.to_string())
}

fn compiled(
    rules: Rules,
    matching: SeccompAction,
    others: SeccompAction,
) -> Result<seccompiler::BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(ARCH)?;
    SeccompFilter::new(rules.into_iter().collect(), others, matching, arch)?.try_into()
}

type Rules = Vec<(c::c_long, Vec<Rule>)>;

/// The calls of a process that Landlock does not restrict.
fn inspecting() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules =
        [PROCESS, READING, ASKING].concat().into_iter().map(|call| (call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    rules.push((c::SYS_open, vec![to_read(1)?]));
    rules.extend([
        (c::SYS_openat, vec![to_read(2)?]),
        (c::SYS_fcntl, one_of(1, FCNTLS)?),
        (c::SYS_tgkill, one_of(0, &[std::process::id().into()])?),
        (c::SYS_prlimit64, one_of(0, &[0])?),
        (c::SYS_prctl, one_of(0, PRCTLS)?),
        (c::SYS_mmap, vec![masked(2, EXECUTABLE, 0)?]),
        (c::SYS_mprotect, vec![masked(2, EXECUTABLE, 0)?]),
    ]);
    Ok(rules)
}

/// A call without a rule is allowed with any arguments.
fn rules(calls: Calls) -> Result<Rules, seccompiler::BackendError> {
    if calls == Calls::Inspect {
        return inspecting();
    }
    let mut rules: Rules =
        [PROCESS, FILES, OLD_NAMES, ASKING].concat().into_iter().map(|call| (call, Vec::new())).collect();
    let clone = match calls {
        // Includes processes, in the existing namespaces.
        Calls::Make => masked(0, NAMESPACES, 0)?,
        // Threads, not processes.
        _ => masked(0, THREAD, THREAD)?,
    };
    #[cfg(target_arch = "x86_64")]
    rules.push((c::SYS_open, vec![masked(2, SPECIAL_MODES, 0)?]));
    rules.extend([
        (c::SYS_openat, vec![masked(3, SPECIAL_MODES, 0)?]),
        (c::SYS_fcntl, one_of(1, FCNTLS)?),
        // Signals to its own threads (`raise`, `abort`), and its own limits.
        (c::SYS_tgkill, one_of(0, &[std::process::id().into()])?),
        (c::SYS_prlimit64, one_of(0, &[0])?),
        // CPU affinity of the calling thread only.
        (c::SYS_sched_setaffinity, vec![masked(0, u64::MAX, 0)?]),
        (c::SYS_clone, vec![clone]),
        (c::SYS_ioctl, one_of(1, if calls == Calls::Make { &[NS_GET_NSTYPE] } else { IOCTLS })?),
    ]);
    let mut prctls = PRCTLS.to_vec();
    if calls == Calls::FilesAndCode {
        // For `no_code`; a confined process can only be restricted further.
        rules.push((c::SYS_seccomp, Vec::new()));
        prctls.push(c::PR_SET_NO_NEW_PRIVS as u64);
    }
    rules.push((c::SYS_prctl, one_of(0, &prctls)?));
    let harmless = || match calls {
        Calls::FilesAndCode => Ok(Vec::new()),
        Calls::Capture
        | Calls::Keep
        | Calls::Fill
        | Calls::Make
        | Calls::Files
        | Calls::Connect
        | Calls::Inspect => Ok(vec![masked(2, EXECUTABLE, 0)?]),
    };
    rules.extend([(c::SYS_mmap, harmless()?), (c::SYS_mprotect, harmless()?)]);
    if calls == Calls::Make {
        rules.extend([
            (c::SYS_bpf, one_of(0, BPF_MAKES)?),
            (c::SYS_sendto, vec![to_connected()?]),
            (c::SYS_recvfrom, Vec::new()),
            (c::SYS_setsockopt, Vec::new()),
            // For libbpf: a descriptor to be replaced, and the process's capabilities.
            (c::SYS_memfd_create, Vec::new()),
            (c::SYS_capget, Vec::new()),
            // Ends a child that takes too long.
            (c::SYS_setitimer, Vec::new()),
            (c::SYS_socketpair, vec![domain(c::AF_UNIX)?]),
        ]);
    }
    if calls == Calls::Fill {
        rules.push((c::SYS_mkdirat, vec![masked(2, SPECIAL_MODES, 0)?]));
    }
    if calls == Calls::Connect {
        rules.extend([
            (c::SYS_socket, vec![stream(c::AF_INET)?, stream(c::AF_INET6)?]),
            (c::SYS_connect, Vec::new()),
            (c::SYS_setsockopt, Vec::new()),
        ]);
        return Ok(rules);
    }
    if calls != Calls::Capture {
        rules.push((c::SYS_fchmod, one_of(1, FILE_MODES)?));
        return Ok(rules);
    }
    rules.extend(SOCKETS.iter().map(|&call| (call, Vec::new())));
    rules.extend([
        // Links and their counters, and `ethtool` queries.
        (c::SYS_socket, vec![netlink(c::NETLINK_ROUTE)?]),
        (c::SYS_sendto, vec![to_connected()?]),
        (c::SYS_setsockopt, not_an_option(c::SOL_PACKET, c::PACKET_ADD_MEMBERSHIP)?),
        (c::SYS_bpf, one_of(0, BPF_COMMANDS)?),
        // Lowers the priority of the calling thread, for threads whose work can wait.
        (c::SYS_setpriority, vec![itself()?]),
        // Reads the TAI offset; setting it requires a capability.
        (c::SYS_adjtimex, Vec::new()),
        (c::SYS_clock_adjtime, Vec::new()),
    ]);
    Ok(rules)
}

/// The calls of a process that sends packets through open sockets, and looks at its interface.
fn sending() -> Result<Rules, seccompiler::BackendError> {
    let to_bound = (c::SYS_sendto, vec![to_connected()?]);
    Ok(vec![(c::SYS_sendmmsg, Vec::new()), to_bound, (c::SYS_recvfrom, Vec::new())])
}

/// Allows sending to connected peers only, not to an address.
fn to_connected() -> Result<Rule, seccompiler::BackendError> {
    Rule::new(vec![Condition::new(4, Length::Qword, Compare::Eq, 0)?])
}

/// Allows an argument that equals `value` in the bits of `mask`.
fn masked(place: u8, mask: u64, value: u64) -> Result<Rule, seccompiler::BackendError> {
    Rule::new(vec![Condition::new(place, Length::Dword, Compare::MaskedEq(mask), value)?])
}

/// Allows opening a file to read it. `flags`: their place, before the mode.
fn to_read(flags: u8) -> Result<Rule, seccompiler::BackendError> {
    let none = |place, mask| Condition::new(place, Length::Dword, Compare::MaskedEq(mask), 0);
    Rule::new(vec![none(flags, WRITING)?, none(flags + 1, SPECIAL_MODES)?])
}

/// Allows an argument that is one of `values`.
fn one_of(place: u8, values: &[u64]) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let rule = |&value| Rule::new(vec![Condition::new(place, Length::Dword, Compare::Eq, value)?]);
    values.iter().map(rule).collect()
}

/// Allows only the calling thread, for `setpriority`.
fn itself() -> Result<Rule, seccompiler::BackendError> {
    let process = Condition::new(0, Length::Dword, Compare::Eq, c::PRIO_PROCESS.into())?;
    Rule::new(vec![process, Condition::new(1, Length::Dword, Compare::Eq, 0)?])
}

/// Allows any socket option except this one, by which packet sockets receive packets for others.
#[expect(clippy::cast_sign_loss, reason = "constants, none below zero")]
fn not_an_option(level: c::c_int, option: c::c_int) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let other = |place, value: c::c_int| {
        Rule::new(vec![Condition::new(place, Length::Dword, Compare::Ne, value as u64)?])
    };
    Ok(vec![other(1, level)?, other(2, option)?])
}

/// Allows sockets of this domain.
#[expect(clippy::cast_sign_loss, reason = "constants, none below zero")]
fn domain(domain: c::c_int) -> Result<Rule, seccompiler::BackendError> {
    Rule::new(vec![Condition::new(0, Length::Dword, Compare::Eq, domain as u64)?])
}

/// Allows stream sockets of this domain, whatever their flags are.
#[expect(clippy::cast_sign_loss, reason = "constants, none below zero")]
fn stream(domain: c::c_int) -> Result<Rule, seccompiler::BackendError> {
    // SOCK_TYPE_MASK (linux/net.h); the rest are flags.
    let kind = Condition::new(1, Length::Dword, Compare::MaskedEq(0xf), c::SOCK_STREAM as u64)?;
    Rule::new(vec![Condition::new(0, Length::Dword, Compare::Eq, domain as u64)?, kind])
}

/// Allows netlink sockets of this protocol.
#[expect(clippy::cast_sign_loss, reason = "constants, none below zero")]
fn netlink(protocol: c::c_int) -> Result<Rule, seccompiler::BackendError> {
    let domain = Condition::new(0, Length::Dword, Compare::Eq, c::AF_NETLINK as u64)?;
    Rule::new(vec![domain, Condition::new(2, Length::Dword, Compare::Eq, protocol as u64)?])
}

#[cfg(test)]
#[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "constants, and halves of words")]
mod tests {
    use super::*;

    /// Every kind of process, and whether it also sends.
    const ALL: [(Calls, bool); 8] = [
        (Calls::Inspect, false),
        (Calls::Capture, false),
        (Calls::Keep, false),
        (Calls::Make, false),
        (Calls::Files, false),
        (Calls::Files, true),
        (Calls::FilesAndCode, false),
        (Calls::Connect, false),
    ];

    /// Runs the program that the kernel gets. Returns whether it allows the call.
    fn allows(program: &seccompiler::BpfProgram, arch: u32, call: c::c_long, args: [u64; 6]) -> bool {
        // struct seccomp_data (linux/seccomp.h), as words.
        let mut data = vec![u32::try_from(call).expect("a number"), arch, 0, 0];
        data.extend(args.iter().flat_map(|arg| [*arg as u32, (arg >> 32) as u32]));
        let (mut at, mut a) = (0, 0);
        loop {
            let instruction = &program[at];
            let k = instruction.k;
            at += 1;
            let jump = |taken: bool| usize::from(if taken { instruction.jt } else { instruction.jf });
            match u32::from(instruction.code) {
                code if code == c::BPF_LD | c::BPF_W | c::BPF_ABS => a = data[k as usize / 4],
                code if code == c::BPF_ALU | c::BPF_AND | c::BPF_K => a &= k,
                code if code == c::BPF_JMP | c::BPF_JA => at += k as usize,
                code if code == c::BPF_JMP | c::BPF_JEQ | c::BPF_K => at += jump(a == k),
                code if code == c::BPF_JMP | c::BPF_JGT | c::BPF_K => at += jump(a > k),
                code if code == c::BPF_JMP | c::BPF_JGE | c::BPF_K => at += jump(a >= k),
                code if code == c::BPF_RET | c::BPF_K => return k == c::SECCOMP_RET_ALLOW,
                code => panic!("an instruction of another kind: {code:#x}"),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    const ARCHITECTURE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCHITECTURE: u32 = 0xc000_00b7;

    fn arg(place: usize, value: u64) -> [u64; 6] {
        let mut args = [0; 6];
        args[place] = value;
        args
    }

    /// Calls that no confined process needs, by which it could reach other processes, other files, the network, or the kernel's
    /// settings; those that only one kind needs are in [`only_for_some`].
    fn never() -> Vec<(c::c_long, [u64; 6])> {
        let any = [
            c::SYS_execve,
            c::SYS_execveat,
            c::SYS_clone3,
            c::SYS_ptrace,
            c::SYS_kill,
            c::SYS_tkill,
            c::SYS_rt_sigqueueinfo,
            c::SYS_rt_tgsigqueueinfo,
            c::SYS_pidfd_open,
            c::SYS_pidfd_send_signal,
            c::SYS_pidfd_getfd,
            c::SYS_process_vm_readv,
            c::SYS_process_vm_writev,
            c::SYS_process_madvise,
            c::SYS_kcmp,
            c::SYS_setns,
            c::SYS_unshare,
            c::SYS_mount,
            c::SYS_umount2,
            c::SYS_pivot_root,
            c::SYS_chroot,
            c::SYS_open_tree,
            c::SYS_move_mount,
            c::SYS_fsopen,
            c::SYS_mount_setattr,
            c::SYS_openat2,
            c::SYS_open_by_handle_at,
            c::SYS_fchmodat,
            c::SYS_fchown,
            c::SYS_fchownat,
            c::SYS_linkat,
            c::SYS_symlinkat,
            c::SYS_mkdirat,
            c::SYS_mknodat,
            c::SYS_setxattr,
            c::SYS_fsetxattr,
            c::SYS_removexattr,
            c::SYS_utimensat,
            c::SYS_quotactl,
            c::SYS_setuid,
            c::SYS_setgid,
            c::SYS_setgroups,
            c::SYS_setresuid,
            c::SYS_setresgid,
            c::SYS_setfsuid,
            c::SYS_setfsgid,
            c::SYS_capset,
            c::SYS_setpgid,
            c::SYS_setsid,
            c::SYS_sethostname,
            c::SYS_setdomainname,
            c::SYS_settimeofday,
            c::SYS_clock_settime,
            c::SYS_perf_event_open,
            c::SYS_io_uring_setup,
            c::SYS_io_uring_register,
            c::SYS_userfaultfd,
            c::SYS_listen,
            c::SYS_accept,
            c::SYS_init_module,
            c::SYS_finit_module,
            c::SYS_delete_module,
            c::SYS_kexec_load,
            c::SYS_reboot,
            c::SYS_swapon,
            c::SYS_acct,
            c::SYS_syslog,
            c::SYS_add_key,
            c::SYS_request_key,
            c::SYS_keyctl,
            c::SYS_personality,
            c::SYS_fanotify_init,
            c::SYS_mbind,
            c::SYS_move_pages,
            c::SYS_sched_setscheduler,
            c::SYS_sched_setattr,
            c::SYS_ioprio_set,
            c::SYS_vmsplice,
            c::SYS_tee,
            c::SYS_process_mrelease,
        ];
        let mut calls: Vec<_> = any.into_iter().map(|call| (call, [0; 6])).collect();
        // Requests that inject input, take terminals away, or change interfaces and tunnels.
        let requests = [
            c::TIOCSTI,
            c::TIOCSCTTY,
            c::TIOCNOTTY,
            c::TIOCSPGRP,
            c::TIOCSETD,
            c::TCSETS,
            c::FIOASYNC,
            c::SIOCSIFFLAGS,
            c::SIOCSIFADDR,
            c::SIOCSIFHWADDR,
            c::TUNSETIFF,
        ];
        calls.extend(requests.map(|request| (c::SYS_ioctl, arg(1, request))));
        // TIOCLINUX, FS_IOC_SETFLAGS, and what SIOCETHTOOL is close to.
        calls.extend([0x541c, 0x4008_6602, 0x8945, 0x8947].map(|request| (c::SYS_ioctl, arg(1, request))));
        // Attaching programs, running them, and kernel objects of others: bpf(2).
        calls.extend(
            [6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 20, 21, 28, 30, 31, 32, 35, 36]
                .map(|command| (c::SYS_bpf, arg(0, command))),
        );
        let options = [
            c::PR_SET_DUMPABLE,
            c::PR_SET_KEEPCAPS,
            c::PR_SET_SECCOMP,
            c::PR_CAPBSET_DROP,
            c::PR_SET_MM,
            c::PR_CAP_AMBIENT,
            c::PR_SET_PTRACER,
            c::PR_SET_PDEATHSIG,
        ];
        calls.extend(options.map(|option| (c::SYS_prctl, arg(0, option as u64))));
        calls.extend(
            [c::F_SETOWN, 10 /* F_SETSIG */, c::F_NOTIFY, c::F_ADD_SEALS, c::F_SETLEASE]
                .map(|command| (c::SYS_fcntl, arg(1, command as u64))),
        );
        for mode in [0o4755, 0o2755, 0o1777] {
            calls.push((c::SYS_openat, arg(3, mode)));
            calls.push((c::SYS_fchmod, arg(1, mode)));
        }
        calls.extend([0o644, 0o660, 0o666, 0o777].map(|mode| (c::SYS_fchmod, arg(1, mode))));
        calls.extend(
            [c::AF_INET, c::AF_INET6, c::AF_PACKET, c::AF_UNIX, c::AF_VSOCK]
                .map(|domain| (c::SYS_socket, arg(0, domain as u64))),
        );
        let other = u64::from(std::process::id()) + 1;
        calls.extend([
            (c::SYS_tgkill, arg(0, other)),
            (c::SYS_prlimit64, arg(0, other)),
            (c::SYS_sched_setaffinity, arg(0, other)),
            (c::SYS_setpriority, arg(1, other)),
            (c::SYS_setpriority, arg(0, c::PRIO_USER.into())),
            // To an address.
            (c::SYS_sendto, arg(4, 1)),
            (c::SYS_sendto, arg(4, 1 << 32)),
            (c::SYS_socketpair, arg(0, c::AF_INET as u64)),
            // A process in a new namespace.
            (c::SYS_clone, arg(0, c::CLONE_NEWUSER as u64)),
            (c::SYS_clone, arg(0, c::CLONE_NEWNET as u64)),
        ]);
        calls
    }

    /// Calls for some kinds of processes.
    fn only_for_some() -> Vec<(c::c_long, [u64; 6], &'static [Calls])> {
        use Calls::{Capture, Connect, Files, FilesAndCode, Keep, Make};
        let socket = |domain: c::c_int, kind: c::c_int| [domain as u64, kind as u64, 0, 0, 0, 0];
        let membership = |option: c::c_int| [0, c::SOL_PACKET as u64, option as u64, 0, 0, 0];
        let mut calls: Vec<(c::c_long, [u64; 6], &'static [Calls])> = vec![
            // A process of its own.
            (c::SYS_clone, arg(0, c::SIGCHLD as u64), &[Make]),
            (c::SYS_seccomp, [0; 6], &[FilesAndCode]),
            (c::SYS_prctl, arg(0, c::PR_SET_NO_NEW_PRIVS as u64), &[FilesAndCode]),
            (c::SYS_mmap, arg(2, EXECUTABLE), &[FilesAndCode]),
            (c::SYS_mprotect, arg(2, EXECUTABLE | 3), &[FilesAndCode]),
            (c::SYS_memfd_create, [0; 6], &[Make]),
            (c::SYS_capget, [0; 6], &[Make]),
            (c::SYS_socketpair, arg(0, c::AF_UNIX as u64), &[Make]),
            (c::SYS_ioctl, arg(1, NS_GET_NSTYPE), &[Make]),
            (c::SYS_ioctl, arg(1, c::TCGETS), &[Capture, Keep, Files, FilesAndCode, Connect]),
            (c::SYS_ioctl, arg(1, SIOCETHTOOL), &[Capture, Keep, Files, FilesAndCode, Connect]),
            (c::SYS_connect, [0; 6], &[Connect]),
            (c::SYS_socket, socket(c::AF_INET, c::SOCK_STREAM | c::SOCK_CLOEXEC), &[Connect]),
            (c::SYS_socket, socket(c::AF_INET6, c::SOCK_STREAM | c::SOCK_NONBLOCK), &[Connect]),
            (c::SYS_socket, socket(c::AF_INET, c::SOCK_DGRAM), &[]),
            (c::SYS_socket, socket(c::AF_INET6, c::SOCK_RAW), &[]),
            (c::SYS_fchmod, arg(1, 0o600), &[Keep, Make, Files, FilesAndCode]),
            (c::SYS_bind, [0; 6], &[Capture]),
            (c::SYS_accept4, [0; 6], &[Capture]),
            (c::SYS_shutdown, [0; 6], &[Capture]),
            (c::SYS_adjtimex, [0; 6], &[Capture]),
            (c::SYS_setpriority, [0; 6], &[Capture]),
            (c::SYS_socket, [c::AF_NETLINK as u64, 0, c::NETLINK_ROUTE as u64, 0, 0, 0], &[Capture]),
            (c::SYS_socket, [c::AF_NETLINK as u64, 0, c::NETLINK_GENERIC as u64, 0, 0, 0], &[]),
            (c::SYS_setsockopt, membership(c::PACKET_ADD_MEMBERSHIP), &[Make, Connect]),
            (c::SYS_setsockopt, membership(c::PACKET_DROP_MEMBERSHIP), &[Capture, Make, Connect]),
        ];
        let commands = |commands: &[u64], who: &'static [Calls]| -> Vec<_> {
            commands.iter().map(|&command| (c::SYS_bpf, arg(0, command), who)).collect()
        };
        calls.extend(commands(&[PROG_LOAD, MAP_CREATE, BTF_LOAD, MAP_FREEZE], &[Make]));
        calls.extend(commands(
            &[LINK_UPDATE, LINK_DETACH, MAP_DELETE_ELEM, MAP_GET_NEXT_KEY, MAP_LOOKUP_BATCH],
            &[Capture],
        ));
        calls.extend(commands(&[MAP_LOOKUP_ELEM, MAP_UPDATE_ELEM, OBJ_GET_INFO_BY_FD], &[Capture, Make]));
        let all_but_one: &[Calls] = &[Capture, Keep, Calls::Fill, Make, Files, FilesAndCode, Connect];
        for call in
            [c::SYS_pwrite64, c::SYS_unlinkat, c::SYS_renameat2, c::SYS_ftruncate, c::SYS_io_uring_enter]
        {
            calls.push((call, [0; 6], all_but_one));
        }
        for flag in [c::O_WRONLY, c::O_RDWR, c::O_CREAT, c::O_TRUNC] {
            calls.push((c::SYS_openat, arg(2, flag as u64), all_but_one));
        }
        calls.extend(commands(&[ITER_CREATE], &[Capture]));
        calls
    }

    #[test]
    fn each_kind_of_process_has_its_calls_and_no_others() {
        for (calls, sends) in ALL {
            let rules = all_rules(calls, sends).expect("rules");
            let program = compiled(rules, SeccompAction::Allow, UNKNOWN).expect("a program");
            let may = |call, args| allows(&program, ARCHITECTURE, call, args);
            for (call, args) in never() {
                assert!(!may(call, args), "{calls:?} may call {call} with {args:x?}");
            }
            for (call, args, who) in only_for_some() {
                assert_eq!(may(call, args), who.contains(&calls), "{calls:?}: {call} with {args:x?}");
            }
            for call in [c::SYS_sendmmsg, c::SYS_recvfrom] {
                let is_for =
                    sends || (call == c::SYS_recvfrom && matches!(calls, Calls::Capture | Calls::Make));
                assert_eq!(may(call, [0; 6]), is_for, "{calls:?}, {sends}: {call}");
            }
            for call in [c::SYS_read, c::SYS_write, c::SYS_futex, c::SYS_exit_group, c::SYS_openat] {
                assert!(may(call, [0; 6]), "{calls:?}: {call}");
            }
            let thread = c::CLONE_THREAD as u64 | c::CLONE_VM as u64;
            assert_eq!(may(c::SYS_clone, arg(0, thread)), calls != Calls::Inspect, "{calls:?}: a thread");
            // Nothing under the numbers of other architectures.
            assert!(!allows(&program, 0x4000_0003, c::SYS_read, [0; 6]));
            #[cfg(target_arch = "x86_64")]
            assert!(!may(c::SYS_read | 0x4000_0000, [0; 6]), "x32");
        }
    }
}
