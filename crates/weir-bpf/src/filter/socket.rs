//! The filter of a packet socket, which counts the packets it rejects.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use weir_filter::emit::ebpf::{self, Context, Ending, Symbol};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::bpf::program::{self, ProgramKind};

use super::{FilterError, NAME, SetMap, Sets};

/// The count of packets rejected by a packet socket's filters. It outlives them, so it continues when a filter is
/// replaced.
#[derive(Debug)]
pub struct Refusals(Map);

impl Refusals {
    /// Creates a count of zero.
    ///
    /// # Errors
    ///
    /// Missing privileges, or no memory.
    pub fn new() -> Result<Self, CallError> {
        Map::new(MapKind::PerCpuArray, 4, 8, 1).map(Self)
    }

    /// Returns the number of rejected packets.
    ///
    /// # Errors
    ///
    /// None in practice: the map is ours.
    pub fn count(&self) -> Result<u64, CallError> {
        self.0.sum(0)
    }
}

impl AsFd for Refusals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A filter for a packet socket (`SO_ATTACH_BPF`), which counts the packets it rejects.
#[derive(Debug)]
pub struct SocketFilter {
    program: OwnedFd,
    sets: Vec<SetMap>,
}

impl SocketFilter {
    /// Loads the filter. `refusals` is a descriptor of [`Refusals`] of this or another process.
    ///
    /// # Errors
    ///
    /// The errors of [`Loader::load`](crate::loader::Loader::load).
    pub fn load(graph: &Graph, sets: &[Set], refusals: BorrowedFd<'_>) -> Result<Self, FilterError> {
        let program = ebpf::emit(graph, sets, Context::Socket, Ending::Counted { accept: graph.snap_len })?;
        let sets = Sets::new(sets)?;
        let words = sets.words(&program, |symbol| match symbol {
            Symbol::Refused => refusals.as_raw_fd(),
            other => unreachable!("it answers by what it returns, without {other}"),
        });
        Ok(Self { program: program::load(ProgramKind::Socket, NAME, &words)?, sets: sets.maps })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns the program and the sets.
    pub fn into_parts(self) -> (OwnedFd, Vec<SetMap>) {
        (self.program, self.sets)
    }

    /// Returns the sets, in the filter's order.
    pub fn sets(&self) -> &[SetMap] {
        &self.sets
    }
}
