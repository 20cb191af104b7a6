//! Loads filters for a capture of this or another process ([`crate::filter`]).

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use libbpf_rs::libbpf_sys::bpf_insn;
use weir_filter::emit::ebpf::{self, Context, Ending, Symbol};
use weir_filter::graph::Graph;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::map;
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::netns::NetNs;
use weir_sys::thread::deafly;

use crate::filter::link::{Code, Mark};
use crate::filter::{Body, BoundParts, Device, Filter, FilterError, Gate, HOOKS, Hook, NAME, Sets};
use crate::{af_xdp, forward, xdp};

/// A loader of filters for a capture of this or another process.
#[derive(Debug)]
pub struct Loader(LoaderKind);

#[derive(Debug)]
enum LoaderKind {
    Calls { hooks: Vec<Hook>, outcomes: OwnedFd },
    Bound(BoundParts),
}

impl Loader {
    /// Creates a loader for programs attached at `hooks`. `outcomes` is a descriptor of [`Calls::outcomes`](crate::filter::Calls::outcomes).
    pub fn calls(hooks: Vec<Hook>, outcomes: OwnedFd) -> Self {
        Self(LoaderKind::Calls { hooks, outcomes })
    }

    /// Creates a loader for a program that is bound to its device.
    pub fn bound(parts: BoundParts) -> Self {
        Self(LoaderKind::Bound(parts))
    }

    /// Returns whether a packet's outer VLAN tag, if any, is inside its bytes. With XDP it is, except in programs that
    /// ask the driver for stripped tags.
    pub fn tag_is_inside(&self) -> bool {
        match &self.0 {
            LoaderKind::Calls { hooks, .. } => hooks.iter().all(|hook| matches!(hook, Hook::Xdp { .. })),
            LoaderKind::Bound(_) => false,
        }
    }

    /// Loads a filter: a program for each hook, and a map for each set.
    ///
    /// Offsets in the graph are offsets in the data that the program gets: unless [`Loader::tag_is_inside`], the outer
    /// VLAN tag is beside the packet ([`weir_filter::Options::metadata`]).
    ///
    /// # Errors
    ///
    /// The filter is too long or has a verdict without an outcome, privileges are missing, or memory is short.
    pub fn load(&self, graph: &Graph, sets: &[Set]) -> Result<Filter, FilterError> {
        let sets = Sets::new(sets)?;
        let programs = match &self.0 {
            LoaderKind::Bound(parts) => vec![parts.load(graph, &sets)?],
            LoaderKind::Calls { hooks, outcomes } => {
                let verdicts = known(graph, outcomes.as_fd())?;
                let load = |hook: &Hook| {
                    let program = hook.program(graph, sets.members, verdicts)?;
                    let words = sets.words(&program, |symbol| match symbol {
                        Symbol::Outcomes => outcomes.as_raw_fd(),
                        other => unreachable!("such a filter has no {other}"),
                    });
                    Ok(program::load(hook.kind(), NAME, &words)?)
                };
                side_by_side(hooks, load).into_iter().collect::<Result<_, FilterError>>()?
            }
        };
        Ok(Filter::from_programs(programs, sets.maps))
    }
}

/// Returns how many verdicts have an outcome, as far as `graph` needs to know.
fn known(graph: &Graph, outcomes: BorrowedFd<'_>) -> Result<u16, CallError> {
    match graph.verdicts() {
        ..=2 => Ok(2),
        _ => Ok(u16::try_from(map::entries(outcomes)? / HOOKS).unwrap_or(u16::MAX)),
    }
}

/// Calls `load` for all hooks in parallel: the verifier takes milliseconds per program.
fn side_by_side<T: Send>(hooks: &[Hook], load: impl Fn(&Hook) -> T + Sync) -> Vec<T> {
    let load = &load;
    thread::scope(|scope| {
        let begin = |hook| {
            let thread = deafly(|| thread::Builder::new().spawn_scoped(scope, move || load(hook)));
            (hook, thread.ok())
        };
        let others: Vec<_> = hooks.iter().skip(1).map(begin).collect();
        let first: Vec<T> = hooks.iter().take(1).map(load).collect();
        let join = |(hook, thread): (_, Option<ScopedJoinHandle<'_, T>>)| match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => load(hook),
        };
        first.into_iter().chain(others.into_iter().map(join)).collect()
    })
}

impl Body {
    /// Returns the number of the program's maps.
    pub fn maps(self) -> usize {
        match self {
            Self::Capture => xdp::maps::COUNT,
            Self::AfXdp => af_xdp::maps::COUNT,
            Self::Forward { copies: false } => forward::maps::COUNT,
            Self::Forward { copies: true } => forward::maps::COUNT + forward::pool_maps::COUNT,
        }
    }
}

impl Gate {
    /// Returns a loader of filters for this capture; `None` if the capture is over.
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
}

impl BoundParts {
    /// Loads the program with this filter inside.
    fn load(&self, graph: &Graph, sets: &Sets<'_>) -> Result<OwnedFd, FilterError> {
        let here = || NetNs::current().and_then(|netns| netns.identity());
        match &self.namespace {
            Some(namespace) if namespace.identity()? != here()? => {
                namespace.inside(|| self.load_here(graph, sets))?
            }
            _ => self.load_here(graph, sets),
        }
    }

    fn load_here(&self, graph: &Graph, sets: &Sets<'_>) -> Result<OwnedFd, FilterError> {
        let Device { index, fragments } = self.device;
        let ending = Ending::Return(&[0, 1]);
        let context = Context::XdpTagged { fragments, interface: Some(index) };
        let filter = ebpf::emit(graph, sets.members, context, ending)?;
        let filter =
            sets.words(&filter, |symbol| unreachable!("a filter that returns its verdict has no {symbol}"));
        let put = |around: &[bpf_insn]| {
            let kind = ProgramKind::Xdp { fragments, bound_to: Some(index) };
            program::load(kind, NAME, &Code::new(around, &[Mark::PLACE]).with_room(&filter))
        };
        Ok(match self.body {
            Body::Capture => xdp::around(self.device, &self.maps, put),
            Body::AfXdp => af_xdp::around(self.device, &self.maps, put),
            Body::Forward { .. } => forward::around(self.device, &self.maps, put),
        }??)
    }
}
