//! A filter in front of attached programs, by tail calls.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut};
use weir_filter::graph::Verdict;
use weir_sys::CallError;
use weir_sys::bpf::map::{Map, MapKind};

use super::{Filter, HOOKS, Hook};
use crate::layout::verdict_of_rules;

/// The verdict of rules on a packet that does not just go on.
pub(crate) const RULED: Verdict = Verdict(2);

const _: () = assert!(RULED.0 as u32 == verdict_of_rules::RULED.0);

/// How many verdicts have an outcome if rules can be in front.
pub(crate) const RULED_VERDICTS: u32 = verdict_of_rules::RULED.0 + 1;

/// The gate of attached programs that take a filter in front. The kernel empties both arrays once nobody holds a
/// descriptor of them, so this lives as long as the capture.
#[derive(Debug)]
pub struct Calls {
    hooks: Vec<Hook>,
    filters: Map,
    outcomes: OwnedFd,
    /// Where rules in front leave what they decide, if there can be any.
    rulings: Option<OwnedFd>,
    /// The programs forward.
    forwards: bool,
}

/// What ends the way of packets for rules in front, at one hook: a program, and the map of what they decide.
pub(crate) type Ruled<'a> = (BorrowedFd<'a>, BorrowedFd<'a>);

/// What rules in front of attached programs go on with.
#[derive(Clone, Copy, Debug)]
pub struct Behind<'a> {
    pub(crate) outcomes: BorrowedFd<'a>,
    pub(crate) rulings: BorrowedFd<'a>,
    pub(crate) forwards: bool,
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
        Ok(Self {
            hooks,
            filters,
            outcomes: outcomes.as_fd().try_clone_to_owned()?,
            rulings: None,
            forwards: false,
        })
    }

    /// Lets rules be in front, if the programs were loaded with a map for their rulings.
    pub(crate) fn ruled_by(self, rulings: Option<BorrowedFd<'_>>) -> Result<Self, libbpf_rs::Error> {
        Ok(Self { rulings: rulings.map(|map| map.try_clone_to_owned()).transpose()?, ..self })
    }

    /// Says that the programs forward packets that go on.
    pub(crate) fn forwarding(self) -> Self {
        Self { forwards: true, ..self }
    }

    /// Creates the gate of a program with one hook, whose filters accept or refuse. `ruled`: ends the way of other packets of rules,
    /// if there can be any.
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
        ruled: Option<Ruled<'_>>,
    ) -> Result<Self, libbpf_rs::Error> {
        let programs = [(hook, Verdict::ACCEPT, wanted.as_fd()), (hook, Verdict::REFUSE, unwanted.as_fd())];
        let last = ruled.map(|(program, _)| (hook, RULED, program));
        let calls = Self::new(vec![hook], filters, outcomes, programs.into_iter().chain(last))?;
        calls.ruled_by(ruled.map(|(_, rulings)| rulings))
    }

    /// Returns what rules in front go on with, if there can be any.
    pub fn behind(&self) -> Option<Behind<'_>> {
        let rulings = self.rulings.as_ref()?.as_fd();
        Some(Behind { outcomes: self.outcomes.as_fd(), rulings, forwards: self.forwards })
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
