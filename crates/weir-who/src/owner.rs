//! The answer.

use std::ops::Deref;
use std::slice::{Iter, from_ref};
use std::sync::Arc;

use crate::Process;

/// How the owner of a packet was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// A process has made, bound, connected or used exactly this socket, and nobody has told of another: one that it has handed the socket
    /// on to is not known unless that was told ([`Cause::Taken`](crate::Cause::Taken)).
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
    pub processes: Processes,
}

impl Owner {
    /// Returns an answer without a process.
    pub fn nobody(certainty: Certainty) -> Self {
        Self { certainty, processes: Processes::default() }
    }
}

/// Processes, mostly one: a slice of them that takes no memory of its own then.
#[derive(Clone, Debug, Default)]
pub struct Processes(Inner);

#[derive(Clone, Debug, Default)]
enum Inner {
    #[default]
    None,
    One(Arc<Process>),
    Many(Vec<Arc<Process>>),
}

impl Deref for Processes {
    type Target = [Arc<Process>];

    #[inline]
    fn deref(&self) -> &[Arc<Process>] {
        match &self.0 {
            Inner::None => &[],
            Inner::One(process) => from_ref(process),
            Inner::Many(processes) => processes,
        }
    }
}

impl PartialEq for Processes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Processes {}

impl From<Arc<Process>> for Processes {
    #[inline]
    fn from(process: Arc<Process>) -> Self {
        Self(Inner::One(process))
    }
}

impl From<Vec<Arc<Process>>> for Processes {
    fn from(processes: Vec<Arc<Process>>) -> Self {
        Self(Inner::Many(processes))
    }
}

impl<'a> IntoIterator for &'a Processes {
    type Item = &'a Arc<Process>;
    type IntoIter = Iter<'a, Arc<Process>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
