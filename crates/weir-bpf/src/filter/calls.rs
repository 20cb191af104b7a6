//! A filter in front of attached programs, by tail calls.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};

use super::{Filter, Hook};

/// The gate of attached programs that take a filter in front. The kernel empties both arrays once nobody holds a
/// descriptor of them, so this lives as long as the capture.
#[derive(Debug)]
pub struct Calls {
    hooks: Vec<Hook>,
    filters: Map,
    outcomes: OwnedFd,
}

impl Calls {
    /// Creates the gate of programs attached at `hooks`, with descriptors of `filters` and `outcomes` (gate.h).
    pub(crate) fn new(hooks: Vec<Hook>, filters: OwnedFd, outcomes: OwnedFd) -> io::Result<Self> {
        let filters = Map::received(filters, MapKind::Programs, 4, 4).map_err(|error| error.source)?;
        Ok(Self { hooks, filters, outcomes })
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

/// Fills in the outcomes of a loaded skeleton, freezes them, and makes its gate. A process that asks for another filter
/// gets a descriptor of the outcomes; frozen, the array cannot be changed any more (since Linux 5.2). It has room for as
/// many verdicts as each hook has outcomes: the size tells whoever loads a filter.
macro_rules! gate {
    ($loaded:expr, $hooks:expr, $outcomes:expr) => {{
        use libbpf_rs::MapCore;
        use std::os::fd::AsRawFd;
        let (hooks, outcomes) = ($hooks, $outcomes);
        let room = hooks.len() * ($loaded.maps.outcomes.max_entries() / $crate::filter::HOOKS) as usize;
        assert_eq!(outcomes.len(), room, "each verdict has an outcome at each hook");
        for (index, program) in outcomes {
            let program = program.as_fd().as_raw_fd();
            let flags = libbpf_rs::MapFlags::ANY;
            $loaded.maps.outcomes.update(&u32::to_ne_bytes(index), &program.to_ne_bytes(), flags)?;
        }
        libbpf_rs::MapHandle::try_from(&$loaded.maps.outcomes)?.freeze()?;
        let filters = $loaded.maps.filters.as_fd().try_clone_to_owned()?;
        let outcomes = $loaded.maps.outcomes.as_fd().try_clone_to_owned()?;
        $crate::filter::Gate::Calls($crate::filter::Calls::new(hooks, filters, outcomes)?)
    }};
}
pub(crate) use gate;
