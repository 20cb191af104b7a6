//! A filter in front of attached programs, by tail calls.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};

use super::{Filter, Hook};

/// Where a filter in front of attached programs is put in place. The kernel empties both arrays when nobody holds a descriptor of
/// them any more, so this lives as long as the capture.
#[derive(Debug)]
pub struct Calls {
    hooks: Vec<Hook>,
    filters: Map,
    outcomes: OwnedFd,
}

impl Calls {
    /// One for attached programs at `hooks`, with descriptors of `filters` and `outcomes` (gate.h).
    pub(crate) fn new(hooks: Vec<Hook>, filters: OwnedFd, outcomes: OwnedFd) -> io::Result<Self> {
        let filters = Map::received(filters, MapKind::Programs, 4, 4).map_err(|error| error.source)?;
        Ok(Self { hooks, filters, outcomes })
    }

    /// The hooks that a filter needs programs for.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// What a [`super::Loader`], here or in another process, needs a descriptor of.
    pub fn outcomes(&self) -> BorrowedFd<'_> {
        self.outcomes.as_fd()
    }

    /// The array that a filter is put into, for who is to keep it.
    pub fn filters(&self) -> BorrowedFd<'_> {
        self.filters.as_fd()
    }

    /// As [`super::Gate::set`]. With two hooks the two are exchanged one after the other.
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

/// Makes the outcomes known, for good, and the gate of a loaded skeleton. Whoever asks for another filter gets a descriptor of the
/// outcomes: frozen, so that nothing can be put there or taken away any more (since Linux 5.2).
macro_rules! gate {
    ($loaded:expr, $hooks:expr, $outcomes:expr) => {{
        use libbpf_rs::MapCore;
        use std::os::fd::AsRawFd;
        for (index, program) in $outcomes {
            let program = program.as_fd().as_raw_fd();
            let flags = libbpf_rs::MapFlags::ANY;
            $loaded.maps.outcomes.update(&u32::to_ne_bytes(index), &program.to_ne_bytes(), flags)?;
        }
        libbpf_rs::MapHandle::try_from(&$loaded.maps.outcomes)?.freeze()?;
        let filters = $loaded.maps.filters.as_fd().try_clone_to_owned()?;
        let outcomes = $loaded.maps.outcomes.as_fd().try_clone_to_owned()?;
        $crate::filter::Gate::Calls($crate::filter::Calls::new($hooks, filters, outcomes)?)
    }};
}
pub(crate) use gate;
