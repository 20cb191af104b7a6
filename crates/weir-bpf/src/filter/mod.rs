//! Filters of a source: loaded next to its writer, installed and replaced while packets arrive.
//!
//! ```text
//!                         filters[0]            outcomes[0]
//! attached program ----- a filter, if any --+-- wanted      writes the packet
//!        |                                  '-- unwanted    counts it as filtered
//!        '--- without: writes the packet itself
//! ```
//!
//! Each arrow is a tail call. There is an outcome for each verdict; a filter with a verdict beyond these two needs a gate
//! that has one for it. [Rules](crate::rules) take the place of a filter; their packets may have a third outcome, which asks what
//! they have decided. Each packet is counted where it ends, so the totals always add up. Replacing a filter is one store
//! in the kernel: each packet meets either the old filter or the new one. A program that is bound to its device cannot make
//! tail calls. It has its filter inside ([`Bound`]), and a new filter means a new program.
//!
//! Installing a filter takes two steps, possibly in different processes. A [`Loader`](crate::loader::Loader), made from descriptors of the
//! capture's maps, makes a [`Filter`]; this needs the capabilities to load any program. The capture's [`Gate`] then
//! installs it with one `bpf(2)` call per hook.

mod bound;
mod calls;
mod held;
pub(crate) mod link;
mod set_map;
mod socket;

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use serde::{Deserialize, Serialize};
use weir_filter::emit::ebpf::{self, Context, Ending, Program, Symbol};
use weir_filter::graph::{Graph, Verdict};
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::program::{ProgramKind, Refused};

pub use bound::{Body, Bound, BoundParts, Device};
pub use calls::{Behind, Calls};
pub(crate) use calls::{RULED, RULED_VERDICTS};
pub(crate) use held::held;
pub use set_map::{Changed, SetChange, SetKind, SetMap};
pub use socket::{Refusals, SocketFilter};

use crate::LoadError;
use crate::layout::hooks;

/// The hook of an attached program that can have a filter in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// XDP.
    Xdp {
        /// The attached program accepts packets in several buffers.
        fragments: bool,
        /// Index of the interface that all its packets come from, if it must not be read from the packet
        /// ([`Driven::hands_on`]).
        ///
        /// [`Driven::hands_on`]: crate::writers::Driven::hands_on
        interface: Option<u32>,
    },
    /// tc, for incoming packets.
    Ingress,
    /// tc, for outgoing packets.
    Egress,
}

/// Number of attached programs that `filters` has slots for.
pub const HOOKS: u32 = hooks::HOOKS.0;

/// Why a filter cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The filter cannot be compiled to a program.
    #[error("{0}")]
    Emit(#[from] ebpf::Error),
    /// Creating a set's map or replacing the filter failed.
    #[error("{0}")]
    Map(#[from] CallError),
    /// The kernel rejected the program.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The program that is to contain the filter cannot be loaded.
    #[error("{0}")]
    Load(#[from] LoadError),
}

impl FilterError {
    /// Returns whether the kernel refused because of missing privileges.
    pub fn is_permission(&self) -> bool {
        const EPERM: i32 = 1;
        match self {
            Self::Emit(_) => false,
            Self::Load(error) => error.is_permission(),
            Self::Map(error) | Self::Refused(Refused { source: error, .. }) => error.errno() == EPERM,
        }
    }

    /// Returns whether the program took the kernel's verifier too long: too many steps, or too many pending branches
    /// (kernel/bpf/verifier.c).
    pub fn is_too_much(&self) -> bool {
        const E2BIG: i32 = 7;
        const EFAULT: i32 = 14;
        matches!(self, Self::Refused(refused) if [E2BIG, EFAULT].contains(&refused.source.errno()))
    }
}

impl Hook {
    /// Returns the hook's index in `filters`.
    fn index(self) -> u32 {
        match self {
            Self::Xdp { .. } | Self::Ingress => hooks::FIRST.0,
            Self::Egress => hooks::SECOND.0,
        }
    }

    /// Returns the index in `outcomes` of the program for packets with this verdict. A process that asks for a filter
    /// may have another build: the first four stay.
    fn outcome(self, verdict: Verdict) -> u32 {
        match verdict {
            Verdict::ACCEPT => 2 * self.index(),
            Verdict::REFUSE => 2 * self.index() + 1,
            Verdict(number) => HOOKS * u32::from(number) + self.index(),
        }
    }

    pub(crate) fn kind(self) -> ProgramKind {
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

    /// Returns what the program returns if an outcome is missing: the packet passes.
    fn otherwise(self) -> u32 {
        const XDP_PASS: u32 = 2;
        const TC_ACT_UNSPEC: u32 = u32::MAX;
        match self {
            Self::Xdp { .. } => XDP_PASS,
            Self::Ingress | Self::Egress => TC_ACT_UNSPEC,
        }
    }

    /// Compiles a filter for this hook to a program, without loading it. The hook has outcomes for the first `verdicts`
    /// verdicts.
    ///
    /// # Errors
    ///
    /// The errors of [`ebpf::emit`].
    pub(crate) fn program(self, graph: &Graph, sets: &[Set], verdicts: u16) -> Result<Program, ebpf::Error> {
        let outcomes: Vec<u32> = (0..verdicts).map(|number| self.outcome(Verdict(number))).collect();
        let ending = Ending::Call { outcomes: &outcomes, otherwise: self.otherwise() };
        ebpf::emit(graph, sets, self.context(), ending)
    }
}

/// The sets of a filter, with their maps.
pub(crate) struct Sets<'a> {
    pub(crate) members: &'a [Set],
    pub(crate) maps: Vec<SetMap>,
}

impl<'a> Sets<'a> {
    pub(crate) fn new(members: &'a [Set]) -> Result<Self, CallError> {
        Ok(Self { members, maps: members.iter().map(SetMap::new).collect::<Result<_, _>>()? })
    }

    /// Returns the instructions of `program` with its maps filled in. `other` supplies the descriptors of maps that are
    /// not sets.
    pub(crate) fn words(&self, program: &Program, other: impl Fn(Symbol) -> RawFd) -> Vec<u64> {
        program.words(|symbol| match symbol {
            Symbol::Set(set) => self.maps[set.0 as usize].as_raw_fd(),
            symbol => other(symbol),
        })
    }
}

/// The programs' name in the kernel's lists.
pub(crate) const NAME: &str = "weir_filter";

/// A loaded filter. An installed filter outlives this, but its sets can no longer be changed once this is dropped.
#[derive(Debug)]
pub struct Filter {
    programs: Vec<OwnedFd>,
    sets: Vec<SetMap>,
}

impl Filter {
    /// Wraps programs that another process has loaded, in the order of the hooks.
    pub fn from_programs(programs: Vec<OwnedFd>, sets: Vec<SetMap>) -> Self {
        Self { programs, sets }
    }

    /// Returns the programs, in the order of the hooks, and the sets.
    pub fn into_parts(self) -> (Vec<OwnedFd>, Vec<SetMap>) {
        (self.programs, self.sets)
    }

    /// Returns the sets, in the filter's order.
    pub fn sets(&self) -> &[SetMap] {
        &self.sets
    }
}

/// The place where a capture's filter is installed.
#[derive(Debug)]
pub enum Gate {
    /// In front of attached programs, by tail calls.
    Calls(Calls),
    /// Inside a program that is bound to its device.
    Bound(Bound),
}

impl Gate {
    /// Returns the number of programs that a filter needs here: one per hook.
    pub fn programs(&self) -> usize {
        match self {
            Self::Calls(calls) => calls.hooks().len(),
            Self::Bound(_) => 1,
        }
    }

    /// Replaces the current filter; with `None`, every packet matches. When this returns, the new filter is in force; a
    /// CPU in the middle of a packet finishes that packet with the old one.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the programs were not loaded for this gate.
    ///
    /// # Panics
    ///
    /// If the number of the filter's programs differs from [`Gate::programs`].
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
