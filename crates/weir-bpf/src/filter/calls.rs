//! A filter in front of attached programs, by tail calls.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut};
use weir_filter::graph::Verdict;
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};

use super::{Filter, HOOKS, Hook};

/// The gate of attached programs that take a filter in front. The kernel empties both arrays once nobody holds a
/// descriptor of them, so this lives as long as the capture.
#[derive(Debug)]
pub struct Calls {
    hooks: Vec<Hook>,
    filters: Map,
    outcomes: OwnedFd,
}

impl Calls {
    /// Creates the gate of programs attached at `hooks`, with the maps of gate.h, and fills in the program for each hook and
    /// verdict.
    ///
    /// A process that asks for another filter gets a descriptor of `outcomes`, so that is frozen and cannot be changed any
    /// more (since Linux 5.2). It has room for as many verdicts as each hook has outcomes: the size tells whoever loads a
    /// filter.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    ///
    /// # Panics
    ///
    /// If a verdict has no program at some hook.
    pub fn new<P: AsFd>(
        hooks: Vec<Hook>,
        filters: &MapMut<'_>,
        outcomes: &MapMut<'_>,
        programs: impl IntoIterator<Item = (Hook, Verdict, P)>,
    ) -> Result<Self, libbpf_rs::Error> {
        let mut filled = 0;
        for (hook, verdict, program) in programs {
            let program = program.as_fd().as_raw_fd().to_ne_bytes();
            outcomes.update(&hook.outcome(verdict).to_ne_bytes(), &program, MapFlags::ANY)?;
            filled += 1;
        }
        let room = hooks.len() * (outcomes.max_entries() / HOOKS) as usize;
        assert_eq!(filled, room, "each verdict has an outcome at each hook");
        MapHandle::try_from(outcomes)?.freeze()?;
        let filters = filters.as_fd().try_clone_to_owned()?;
        let filters = Map::received(filters, MapKind::Programs, 4, 4).map_err(|error| error.source)?;
        Ok(Self { hooks, filters, outcomes: outcomes.as_fd().try_clone_to_owned()? })
    }

    /// Creates the gate of a program with one hook, whose filters accept or refuse.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub(crate) fn one(
        hook: Hook,
        filters: &MapMut<'_>,
        outcomes: &MapMut<'_>,
        wanted: impl AsFd,
        unwanted: impl AsFd,
    ) -> Result<Self, libbpf_rs::Error> {
        let programs = [(hook, Verdict::ACCEPT, wanted.as_fd()), (hook, Verdict::REFUSE, unwanted.as_fd())];
        Self::new(vec![hook], filters, outcomes, programs)
    }

    /// Returns the hooks for which a filter needs programs.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// Returns the array of outcomes, for a [`Loader`](crate::loader::Loader) in this or another process.
    pub fn outcomes(&self) -> BorrowedFd<'_> {
        self.outcomes.as_fd()
    }

    /// Returns the array that holds the filters, to keep it alive elsewhere.
    pub fn filters(&self) -> BorrowedFd<'_> {
        self.filters.as_fd()
    }

    /// See [`super::Gate::set`]. With two hooks, the filters are replaced one after the other.
    pub(super) fn set(&self, filter: Option<&Filter>) -> Result<(), CallError> {
        let Some(filter) = filter else {
            return self.hooks.iter().try_for_each(|hook| self.filters.remove(&hook.index().to_ne_bytes()));
        };
        assert_eq!(filter.programs.len(), self.hooks.len(), "a filter has a program for each hook");
        self.hooks.iter().zip(&filter.programs).try_for_each(|(hook, program)| {
            self.filters.update(&hook.index().to_ne_bytes(), &program.as_raw_fd().to_ne_bytes())
        })
    }
}
