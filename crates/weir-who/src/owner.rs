//! The answer.

use std::sync::Arc;

use crate::Process;

/// How the owner of a packet was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// A process has connected, bound or used exactly this socket, and no other has.
    Certain,
    /// The packet belongs to a connection that was accepted, or is about to be: the process is the one that listens. Another may
    /// have accepted it (`--who exact` says).
    Listener,
    /// Several processes hold the socket, or several sockets may have got the packet: one of them.
    Several,
    /// The socket is older than the capture: the process held it then.
    Before,
    /// No process: the kernel itself sends or receives such packets (ARP, ICMP errors, RST without a connection).
    Kernel,
    /// Neither end is on this host.
    Forwarded,
    /// None of these.
    Unknown,
}

/// Whose packet it is, at one of its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// How it was found.
    pub certainty: Certainty,
    /// The processes: one, or more with [`Certainty::Several`], by number; none for the last three.
    pub processes: Vec<Arc<Process>>,
}
