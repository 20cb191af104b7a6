//! A filter without a source behind it (`bare.bpf.c`), to see what filters decide and what they cost.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_bpf::filter::{Calls, Gate, HOOKS, Hook};
use weir_bpf::{LoadError, logged};
use weir_filter::graph::Verdict;
use weir_sys::{CallError, testrun};

weir_bpf::skeleton!("bare");

/// The loaded program, and the gate in front of it.
#[derive(Debug)]
pub struct Bare {
    program: OwnedFd,
    gate: Gate,
}

/// What a filter decided about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// There is no filter.
    NoFilter,
    /// The packet matches.
    Wanted,
    /// The packet does not match.
    Unwanted,
    /// Another verdict: number 2.
    Third,
}

impl Bare {
    /// Loads the program, without a filter.
    ///
    /// # Errors
    ///
    /// Missing privileges.
    pub fn load() -> Result<Self, LoadError> {
        logged("bare", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::BareSkelBuilder::default().open(&mut storage)?;
            open.maps.outcomes.set_max_entries(3 * HOOKS)?;
            let loaded = open.load()?;
            let hook = Hook::Xdp { fragments: false, interface: None };
            let outcomes = [
                (hook, Verdict::ACCEPT, &loaded.progs.bare_wanted),
                (hook, Verdict::REFUSE, &loaded.progs.bare_unwanted),
                (hook, Verdict(2), &loaded.progs.bare_third),
            ];
            let program = loaded.progs.bare.as_fd().try_clone_to_owned()?;
            let calls = Calls::new(vec![hook], &loaded.maps.filters, &loaded.maps.outcomes, outcomes)?;
            Ok(Self { program, gate: Gate::Calls(calls) })
        })
    }

    /// Returns the gate that installs a filter.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Runs the program `times` times on `packet`, an Ethernet frame. Returns the decision and the average time per run
    /// in nanoseconds, including the call from the kernel's own loop.
    ///
    /// # Errors
    ///
    /// `EINVAL`: the packet is shorter than an Ethernet header, or too long for a page.
    pub fn run(&self, packet: &[u8], times: u32) -> Result<(Decision, u32), CallError> {
        let answer = testrun::run(self.program.as_fd(), packet, times)?;
        let decision = match answer.value {
            10 => Decision::NoFilter,
            11 => Decision::Wanted,
            13 => Decision::Third,
            _ => Decision::Unwanted,
        };
        Ok((decision, answer.duration))
    }
}
