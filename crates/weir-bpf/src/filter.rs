//! Filters in front of a source's writer: loaded beside it, put in place and exchanged while packets come.
//!
//! ```text
//!                         filters[0]            outcomes[0]
//! attached program ----- a filter, if any --+-- wanted      writes the packet
//!        |                                  '-- unwanted    counts it as filtered
//!        '--- without: writes the packet itself
//! ```
//!
//! Each arrow is a tail call. A packet is counted where it ends, so the account closes at any time, and an exchange is one store
//! of the kernel: each packet meets the old filter or the new one.
//!
//! Three steps, which need not be of one process: a [`Loader`], made of a descriptor of the outcomes, makes a [`Filter`],
//! which takes the capabilities that loading any program takes; the [`Gate`] of the capture, which keeps the descriptors
//! of both arrays, puts it in place, which takes one `bpf(2)` call for each hook.

mod set_map;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use weir_filter::emit::ebpf::{self, Context, Ending, Program, Symbol};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::bpf::program::{self, ProgramKind, Refused};

pub use set_map::{Changed, SetChange, SetKind, SetMap};

/// Where an attached program runs that a filter is put in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP.
    Xdp {
        /// The attached program takes packets of several buffers.
        fragments: bool,
    },
    /// tc, for what arrives.
    Ingress,
    /// tc, for what is sent.
    Egress,
}

/// Why a filter cannot be put in front of a program.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// No program can be made of it.
    #[error("{0}")]
    Emit(#[from] ebpf::Error),
    /// A set's map, or the exchange.
    #[error("{0}")]
    Map(#[from] CallError),
    /// The kernel does not take the program.
    #[error("{0}")]
    Refused(#[from] Refused),
}

impl FilterError {
    /// Whether the kernel refused for want of privilege.
    pub fn is_permission(&self) -> bool {
        const EPERM: i32 = 1;
        match self {
            Self::Emit(_) => false,
            Self::Map(error) | Self::Refused(Refused { source: error, .. }) => error.errno() == EPERM,
        }
    }
}

impl Hook {
    /// Its place among the filters.
    fn index(self) -> u32 {
        match self {
            Self::Xdp { .. } | Self::Ingress => 0,
            Self::Egress => 1,
        }
    }

    /// The place of the program for packets that are wanted.
    pub(crate) fn wanted(self) -> u32 {
        2 * self.index()
    }

    /// The place of the program for others.
    pub(crate) fn unwanted(self) -> u32 {
        2 * self.index() + 1
    }

    fn context(self) -> Context {
        match self {
            Self::Xdp { fragments } => Context::Xdp { fragments },
            Self::Ingress => Context::Tc { outgoing: false },
            Self::Egress => Context::Tc { outgoing: true },
        }
    }

    /// What is returned if an outcome is missing: the packet goes on.
    fn verdict(self) -> u32 {
        const XDP_PASS: u32 = 2;
        const TC_ACT_UNSPEC: u32 = u32::MAX;
        match self {
            Self::Xdp { .. } => XDP_PASS,
            Self::Ingress | Self::Egress => TC_ACT_UNSPEC,
        }
    }

    /// The program of a filter here, before it is loaded.
    ///
    /// # Errors
    ///
    /// As [`ebpf::emit`].
    pub fn program(self, graph: &Graph, sets: &[Set]) -> Result<Program, ebpf::Error> {
        let ending =
            Ending::Call { accept: self.wanted(), refuse: self.unwanted(), otherwise: self.verdict() };
        ebpf::emit(graph, sets, self.context(), ending)
    }
}

/// Makes filters for a capture, of this process or another.
#[derive(Debug)]
pub struct Loader {
    hooks: Vec<Hook>,
    outcomes: OwnedFd,
}

impl Loader {
    /// Whether it is for XDP, where the outer VLAN tag is in the packet.
    pub fn is_xdp(&self) -> bool {
        self.hooks.iter().all(|hook| matches!(hook, Hook::Xdp { .. }))
    }

    /// For attached programs at `hooks`, whose descriptor of the outcomes ([`Gate::outcomes`]) is `outcomes`.
    pub fn new(hooks: Vec<Hook>, outcomes: OwnedFd) -> Self {
        Self { hooks, outcomes }
    }

    /// Loads a filter: a program for each hook, and a map for each set.
    ///
    /// Offsets in the graph are those of what a program is given: with tc the outer VLAN tag is beside the packet
    /// ([`weir_filter::Options::metadata`]), with XDP it is in it.
    ///
    /// # Errors
    ///
    /// Too long a filter, no privilege, no memory.
    pub fn load(&self, graph: &Graph, sets: &[Set]) -> Result<Filter, FilterError> {
        let maps = sets.iter().map(SetMap::new).collect::<Result<Vec<_>, _>>()?;
        let programs = self.hooks.iter().map(|hook| {
            let kind = match hook {
                Hook::Xdp { fragments } => ProgramKind::Xdp { fragments: *fragments, bound_to: None },
                Hook::Ingress | Hook::Egress => ProgramKind::Tc,
            };
            let program = hook.program(graph, sets)?;
            let words = program.words(|symbol| match symbol {
                Symbol::Set(set) => maps[set.0 as usize].as_raw_fd(),
                Symbol::Outcomes => self.outcomes.as_raw_fd(),
                Symbol::Refused => unreachable!("an outcome counts"),
            });
            Ok(program::load(kind, NAME, &words)?)
        });
        Ok(Filter { programs: programs.collect::<Result<_, FilterError>>()?, sets: maps })
    }
}

/// What the programs are called where the kernel lists them.
const NAME: &str = "weir_filter";

/// A loaded filter. Put in place it lives on when this is dropped, but its sets cannot be changed any more.
#[derive(Debug)]
pub struct Filter {
    programs: Vec<OwnedFd>,
    sets: Vec<SetMap>,
}

impl Filter {
    /// One whose programs, in the order of the hooks, another process has loaded.
    pub fn from_programs(programs: Vec<OwnedFd>, sets: Vec<SetMap>) -> Self {
        Self { programs, sets }
    }

    /// The programs, in the order of the hooks, to send them to who has the [`Gate`].
    pub fn programs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.programs.iter().map(OwnedFd::as_fd)
    }

    /// The programs, in the order of the hooks, and the sets.
    pub fn into_parts(self) -> (Vec<OwnedFd>, Vec<SetMap>) {
        (self.programs, self.sets)
    }

    /// The sets, in the order of the filter's.
    pub fn sets(&self) -> &[SetMap] {
        &self.sets
    }
}

/// Where a capture's filter is put in place. The kernel empties both arrays when nobody holds a descriptor of them any more, so
/// this lives as long as the capture.
#[derive(Debug)]
pub struct Gate {
    hooks: Vec<Hook>,
    filters: Map,
    outcomes: OwnedFd,
}

impl Gate {
    /// One for attached programs at `hooks`, with descriptors of `filters` and `outcomes` (writer.h).
    pub(crate) fn new(hooks: Vec<Hook>, filters: OwnedFd, outcomes: OwnedFd) -> Self {
        Self { hooks, filters: Map::programs(filters), outcomes }
    }

    /// The same place, for another holder.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        let filters = self.filters.as_fd().try_clone_to_owned()?;
        Ok(Self::new(self.hooks.clone(), filters, self.outcomes.try_clone()?))
    }

    /// The hooks that a filter needs programs for.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// What a [`Loader`], here or in another process, needs a descriptor of.
    pub fn outcomes(&self) -> BorrowedFd<'_> {
        self.outcomes.as_fd()
    }

    /// The array that a filter is put into, for who is to put it there without this.
    pub fn filters(&self) -> BorrowedFd<'_> {
        self.filters.as_fd()
    }

    /// What makes filters for this capture.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn loader(&self) -> io::Result<Loader> {
        Ok(Loader::new(self.hooks.clone(), self.outcomes.try_clone()?))
    }

    /// Puts `filter` in place of the one that is there; `None`: every packet is wanted. When this returns the new one is in
    /// force; a CPU that is in the middle of a packet ends that by the old one.
    ///
    /// With two hooks the two are exchanged one after the other.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the programs were not loaded for this gate.
    ///
    /// # Panics
    ///
    /// If the filter has not as many programs as there are hooks.
    pub fn set(&self, filter: Option<&Filter>) -> Result<(), CallError> {
        let Some(filter) = filter else {
            return self.hooks.iter().try_for_each(|hook| self.filters.remove(&hook.index().to_ne_bytes()));
        };
        assert_eq!(filter.programs.len(), self.hooks.len(), "a filter has a program for each hook");
        self.hooks.iter().zip(&filter.programs).try_for_each(|(hook, program)| {
            self.filters.update(&hook.index().to_ne_bytes(), &program.as_raw_fd().to_ne_bytes())
        })
    }
}

/// Makes the outcomes known, and the gate of a loaded skeleton.
macro_rules! gate {
    ($loaded:expr, $hooks:expr, $outcomes:expr) => {{
        use libbpf_rs::MapCore;
        use std::os::fd::AsRawFd;
        for (index, program) in $outcomes {
            let program = program.as_fd().as_raw_fd();
            let flags = libbpf_rs::MapFlags::ANY;
            $loaded.maps.outcomes.update(&u32::to_ne_bytes(index), &program.to_ne_bytes(), flags)?;
        }
        let filters = $loaded.maps.filters.as_fd().try_clone_to_owned()?;
        let outcomes = $loaded.maps.outcomes.as_fd().try_clone_to_owned()?;
        $crate::filter::Gate::new($hooks, filters, outcomes)
    }};
}
pub(crate) use gate;

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
    /// As [`Loader::load`].
    pub fn load(graph: &Graph, sets: &[Set], refusals: BorrowedFd<'_>) -> Result<Self, FilterError> {
        let maps = sets.iter().map(SetMap::new).collect::<Result<Vec<_>, _>>()?;
        let program = ebpf::emit(graph, sets, Context::Socket, Ending::Counted { accept: graph.snap_len })?;
        let words = program.words(|symbol| match symbol {
            Symbol::Set(set) => maps[set.0 as usize].as_raw_fd(),
            Symbol::Refused => refusals.as_raw_fd(),
            Symbol::Outcomes => unreachable!("it answers by what it returns"),
        });
        Ok(Self { program: program::load(ProgramKind::Socket, NAME, &words)?, sets: maps })
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
