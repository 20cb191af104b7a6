//! Filters of a source: loaded beside its writer, put in place and exchanged while packets come.
//!
//! ```text
//!                         filters[0]            outcomes[0]
//! attached program ----- a filter, if any --+-- wanted      writes the packet
//!        |                                  '-- unwanted    counts it as filtered
//!        '--- without: writes the packet itself
//! ```
//!
//! Each arrow is a tail call. A packet is counted where it ends, so the account closes at any time, and an exchange is one store
//! of the kernel: each packet meets the old filter or the new one. A program that is bound to its device makes no tail calls:
//! it has its filter inside ([`crate::xdp::Bound`]), and an exchange puts another program in its stead.
//!
//! Three steps, which need not be of one process: a [`Loader`], made of descriptors of the capture's maps, makes a [`Filter`],
//! which takes the capabilities that loading any program takes; the [`Gate`] of the capture puts it in place, which takes
//! one `bpf(2)` call for each hook.

mod calls;
pub(crate) mod link;
mod set_map;
mod socket;

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use weir_filter::emit::ebpf::{self, Context, Ending, Program, Symbol};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::program::{self, ProgramKind, Refused};

pub use calls::Calls;
pub(crate) use calls::gate;
pub use set_map::{Changed, SetChange, SetKind, SetMap};
pub use socket::{Refusals, SocketFilter};

use crate::LoadError;
use crate::xdp::{Bound, BoundParts};

/// Where an attached program runs that a filter is put in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP.
    Xdp {
        /// The attached program takes packets of several buffers.
        fragments: bool,
        /// Index of the interface that all its packets come from, where that is not to be asked for ([`Driven::hands_on`]).
        ///
        /// [`Driven::hands_on`]: crate::writers::Driven::hands_on
        interface: Option<u32>,
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
    /// The program that it is put into cannot be had.
    #[error("{0}")]
    Load(#[from] LoadError),
}

impl FilterError {
    /// Whether the kernel refused for want of privilege.
    pub fn is_permission(&self) -> bool {
        const EPERM: i32 = 1;
        match self {
            Self::Emit(_) => false,
            Self::Load(error) => error.is_permission(),
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

    fn kind(self) -> ProgramKind {
        match self {
            Self::Xdp { fragments, .. } => ProgramKind::Xdp { fragments, bound_to: None },
            Self::Ingress | Self::Egress => ProgramKind::Tc,
        }
    }

    fn context(self) -> Context {
        match self {
            Self::Xdp { fragments, interface } => Context::Xdp { fragments, interface },
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
pub struct Loader(Way);

#[derive(Debug)]
enum Way {
    Calls { hooks: Vec<Hook>, outcomes: OwnedFd },
    Bound(BoundParts),
}

impl Loader {
    /// For attached programs at `hooks`, whose descriptor of the outcomes ([`Calls::outcomes`]) is `outcomes`.
    pub fn calls(hooks: Vec<Hook>, outcomes: OwnedFd) -> Self {
        Self(Way::Calls { hooks, outcomes })
    }

    /// For a program that is bound to its device.
    pub fn bound(parts: BoundParts) -> Self {
        Self(Way::Bound(parts))
    }

    /// Whether what is filtered has its outer VLAN tag in its bytes, if it has one: so it is with XDP, but for programs
    /// that ask the driver.
    pub fn tag_is_inside(&self) -> bool {
        match &self.0 {
            Way::Calls { hooks, .. } => hooks.iter().all(|hook| matches!(hook, Hook::Xdp { .. })),
            Way::Bound(_) => false,
        }
    }

    /// Loads a filter: a program for each hook, and a map for each set.
    ///
    /// Offsets in the graph are those of what a program is given: unless [`Loader::tag_is_inside`] the outer VLAN tag is
    /// beside the packet ([`weir_filter::Options::metadata`]).
    ///
    /// # Errors
    ///
    /// Too long a filter, no privilege, no memory.
    pub fn load(&self, graph: &Graph, sets: &[Set]) -> Result<Filter, FilterError> {
        let sets = Sets::new(sets)?;
        let programs = match &self.0 {
            Way::Bound(parts) => vec![parts.load(graph, &sets)?],
            Way::Calls { hooks, outcomes } => {
                let load = |hook: &Hook| {
                    let program = hook.program(graph, sets.members)?;
                    let words = sets.words(&program, |symbol| match symbol {
                        Symbol::Outcomes => outcomes.as_raw_fd(),
                        other => unreachable!("an outcome counts, without {other}"),
                    });
                    Ok(program::load(hook.kind(), NAME, &words)?)
                };
                side_by_side(hooks, load).into_iter().collect::<Result<_, FilterError>>()?
            }
        };
        Ok(Filter { programs, sets: sets.maps })
    }
}

/// What `load` makes of each hook, at once: the verifier takes milliseconds for a program.
fn side_by_side<T: Send>(hooks: &[Hook], load: impl Fn(&Hook) -> T + Sync) -> Vec<T> {
    let load = &load;
    thread::scope(|scope| {
        let begin = |hook| (hook, thread::Builder::new().spawn_scoped(scope, move || load(hook)).ok());
        let others: Vec<_> = hooks.iter().skip(1).map(begin).collect();
        let first: Vec<T> = hooks.iter().take(1).map(load).collect();
        let join = |(hook, thread): (_, Option<ScopedJoinHandle<'_, T>>)| match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => load(hook),
        };
        first.into_iter().chain(others.into_iter().map(join)).collect()
    })
}

/// The sets of a filter, and their maps.
pub(crate) struct Sets<'a> {
    pub(crate) members: &'a [Set],
    maps: Vec<SetMap>,
}

impl<'a> Sets<'a> {
    fn new(members: &'a [Set]) -> Result<Self, CallError> {
        Ok(Self { members, maps: members.iter().map(SetMap::new).collect::<Result<_, _>>()? })
    }

    /// `program` as the kernel takes it, with these maps; `other` gives the descriptors of those that are no sets.
    pub(crate) fn words(&self, program: &Program, other: impl Fn(Symbol) -> RawFd) -> Vec<u64> {
        program.words(|symbol| match symbol {
            Symbol::Set(set) => self.maps[set.0 as usize].as_raw_fd(),
            symbol => other(symbol),
        })
    }
}

/// What the programs are called where the kernel lists them.
pub(crate) const NAME: &str = "weir_filter";

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

    /// The programs, in the order of the hooks, and the sets.
    pub fn into_parts(self) -> (Vec<OwnedFd>, Vec<SetMap>) {
        (self.programs, self.sets)
    }

    /// The sets, in the order of the filter's.
    pub fn sets(&self) -> &[SetMap] {
        &self.sets
    }
}

/// Where a capture's filter is put in place.
#[derive(Debug)]
pub enum Gate {
    /// In front of attached programs, by tail calls.
    Calls(Calls),
    /// Inside of a program that is bound to its device.
    Bound(Bound),
}

impl Gate {
    /// Programs that a filter has here: one for each hook.
    pub fn programs(&self) -> usize {
        match self {
            Self::Calls(calls) => calls.hooks().len(),
            Self::Bound(_) => 1,
        }
    }

    /// What makes filters for this capture; `None`: it is over there.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn loader(&self) -> io::Result<Option<Loader>> {
        match self {
            Self::Calls(calls) => {
                let outcomes = calls.outcomes().try_clone_to_owned()?;
                Ok(Some(Loader::calls(calls.hooks().to_vec(), outcomes)))
            }
            Self::Bound(bound) => Ok(bound.parts()?.map(Loader::bound)),
        }
    }

    /// Puts `filter` in place of the one that is there; `None`: no filter: every packet matches. When this returns the new one is in
    /// force; a CPU that is in the middle of a packet ends that by the old one.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the programs were not loaded for this gate.
    ///
    /// # Panics
    ///
    /// If the filter has not as many programs as this takes.
    pub fn set(&self, filter: Option<&Filter>) -> Result<(), CallError> {
        match self {
            Self::Calls(calls) => calls.set(filter),
            Self::Bound(bound) => bound.set(filter.map(|filter| {
                let [program] = filter.programs.as_slice() else { panic!("one program takes the filter") };
                program
            })),
        }
    }
}
