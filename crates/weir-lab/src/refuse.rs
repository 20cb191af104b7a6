//! System calls that fail on purpose, as on a kernel with other settings or in trouble.

use std::env::consts::ARCH;

use seccompiler::{
    SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, TargetArch,
};

/// A system call that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `membarrier(2)`, with `EINVAL`, as on a kernel with `nohz_full` processors.
    Membarrier,
    /// `BPF_LINK_CREATE`, with `EINVAL`, as on a kernel without tcx; XDP cannot be attached either.
    LinkCreate,
    /// `BPF_LINK_DETACH`, with `EIO`.
    LinkDetach,
    /// `mprotect(2)` that makes memory executable, with `EACCES`, as for a service without `MemoryDenyWriteExecute=no`.
    Code,
}

/// Makes `call` fail from now on in this thread and in those that it starts.
///
/// # Panics
///
/// If the kernel has no seccomp.
pub fn refuse(call: Call) {
    const BPF_LINK_CREATE: u64 = 28;
    const BPF_LINK_DETACH: u64 = 34;
    let first =
        |value| Condition::new(0, Length::Dword, Compare::Eq, value).and_then(|is| Rule::new(vec![is]));
    let executable = || {
        let mask = u64::from(libc::PROT_EXEC.unsigned_abs());
        let is = Condition::new(2, Length::Dword, Compare::MaskedEq(mask), mask);
        is.and_then(|is| Rule::new(vec![is])).expect("a rule")
    };
    let (number, rules, errno) = match call {
        Call::Code => (libc::SYS_mprotect, vec![executable()], libc::EACCES),
        Call::Membarrier => (libc::SYS_membarrier, Vec::new(), libc::EINVAL),
        Call::LinkCreate => (libc::SYS_bpf, vec![first(BPF_LINK_CREATE).expect("a rule")], libc::EINVAL),
        Call::LinkDetach => (libc::SYS_bpf, vec![first(BPF_LINK_DETACH).expect("a rule")], libc::EIO),
    };
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let arch = TargetArch::try_from(ARCH).expect("an architecture that seccompiler knows");
    let filter =
        SeccompFilter::new([(number, rules)].into_iter().collect(), SeccompAction::Allow, refused, arch);
    let program = filter.and_then(seccompiler::BpfProgram::try_from).expect("a filter");
    seccompiler::apply_filter(&program).expect("the kernel takes it");
}
