//! Where the programs run.

/// A place in the kernel that tells of sockets or processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// A socket is made.
    Create,
    /// It is closed.
    Release,
    /// It is bound to an address or port of IPv4.
    Bind4,
    /// The same of IPv6.
    Bind6,
    /// It is connected by IPv4.
    Connect4,
    /// By IPv6.
    Connect6,
    /// Something is sent on it without a connection, by IPv4.
    Send4,
    /// By IPv6.
    Send6,
    /// TCP connects, listens, or has a connection.
    Tcp,
    /// A process runs another program.
    Executed,
    /// A process has ended.
    Ended,
    /// The files that processes have open.
    Files,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Create,
        Self::Release,
        Self::Bind4,
        Self::Bind6,
        Self::Connect4,
        Self::Connect6,
        Self::Send4,
        Self::Send6,
        Self::Tcp,
        Self::Executed,
        Self::Ended,
        Self::Files,
    ];

    /// Returns the name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Release => "release",
            Self::Bind4 => "bind4",
            Self::Bind6 => "bind6",
            Self::Connect4 => "connect4",
            Self::Connect6 => "connect6",
            Self::Send4 => "send4",
            Self::Send6 => "send6",
            Self::Tcp => "tcp",
            Self::Executed => "executed",
            Self::Ended => "ended",
            Self::Files => "files",
        }
    }

    /// Returns what the kernel calls it.
    pub fn place(self) -> &'static str {
        match self {
            Self::Create => "cgroup/sock_create",
            Self::Release => "cgroup/sock_release",
            Self::Bind4 => "cgroup/post_bind4",
            Self::Bind6 => "cgroup/post_bind6",
            Self::Connect4 => "cgroup/connect4",
            Self::Connect6 => "cgroup/connect6",
            Self::Send4 => "cgroup/sendmsg4",
            Self::Send6 => "cgroup/sendmsg6",
            Self::Tcp => "sockops",
            Self::Executed => "tp_btf/sched_process_exec",
            Self::Ended => "tp_btf/sched_process_exit",
            Self::Files => "iter/task_file",
        }
    }

    /// Returns whether its program needs a kernel that describes its types (BTF).
    pub fn needs_types(self) -> bool {
        matches!(self, Self::Executed | Self::Ended | Self::Files)
    }

    /// Returns whether it is a hook of a control group.
    pub(super) fn needs_cgroup(self) -> bool {
        !self.needs_types()
    }

    /// Returns the hook whose program has this name.
    pub(super) fn named(program: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.program() == program)
    }

    /// Returns the first hook that libbpf's output complains about: `libbpf: prog 'NAME': ...`.
    pub(super) fn named_in(log: &str) -> Option<Self> {
        let mut names = log.split("prog '").skip(1).filter_map(|rest| rest.split('\'').next());
        names.find_map(Self::named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_is_refused_is_found_in_the_output() {
        let log = "libbpf: prog 'ended': failed to find kernel BTF type ID of 'sched_process_exit': -3
libbpf: prog 'ended': failed to prepare load attributes: -3
libbpf: prog 'create': failed to load: -3
";
        assert_eq!(Hook::named_in(log), Some(Hook::Ended));
        assert_eq!(Hook::named_in("libbpf: kernel BTF is missing at '/sys/kernel/btf/vmlinux'\n"), None);
        assert_eq!(Hook::named_in("libbpf: prog 'capture': no\n"), None);
    }
}
