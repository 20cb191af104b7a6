//! The filter of a packet socket, which counts what it refuses.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use weir_filter::emit::ebpf::{self, Context, Ending, Symbol};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::bpf::program::{self, ProgramKind};

use super::{FilterError, NAME, SetMap, Sets};

/// What filters of a packet socket have refused. It outlives them, so that the count goes on when one is exchanged.
#[derive(Debug)]
pub struct Refusals(Map);

impl Refusals {
    /// None so far.
    ///
    /// # Errors
    ///
    /// No privilege, no memory.
    pub fn new() -> Result<Self, CallError> {
        Map::new(MapKind::PerCpuArray, 4, 8, 1).map(Self)
    }

    /// Packets that were refused.
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

/// A filter for a packet socket (`SO_ATTACH_BPF`), which counts what it refuses.
#[derive(Debug)]
pub struct SocketFilter {
    program: OwnedFd,
    sets: Vec<SetMap>,
}

impl SocketFilter {
    /// Loads it; `refusals`: a descriptor of [`Refusals`], be they of another process.
    ///
    /// # Errors
    ///
    /// As [`super::Loader::load`].
    pub fn load(graph: &Graph, sets: &[Set], refusals: BorrowedFd<'_>) -> Result<Self, FilterError> {
        let program = ebpf::emit(graph, sets, Context::Socket, Ending::Counted { accept: graph.snap_len })?;
        let sets = Sets::new(sets)?;
        let words = sets.words(&program, |symbol| match symbol {
            Symbol::Refused => refusals.as_raw_fd(),
            other => unreachable!("it answers by what it returns, without {other}"),
        });
        Ok(Self { program: program::load(ProgramKind::Socket, NAME, &words)?, sets: sets.maps })
    }

    /// The program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// The program, and the sets.
    pub fn into_parts(self) -> (OwnedFd, Vec<SetMap>) {
        (self.program, self.sets)
    }

    /// The sets, in the order of the filter's.
    pub fn sets(&self) -> &[SetMap] {
        &self.sets
    }
}
