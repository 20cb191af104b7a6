//! A place for a filter without a source behind it (`bare.bpf.c`): how filters decide, and what they cost.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_sys::{CallError, testrun};

use crate::filter::{Gate, Hook, gate};
use crate::log::{LoadError, logged};

skeleton!("bare");

/// The loaded program, and the place in front of it.
#[derive(Debug)]
pub struct Bare {
    program: OwnedFd,
    gate: Gate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Nobody asked.
    NoFilter,
    /// The filter wants it.
    Wanted,
    /// It does not.
    Unwanted,
}

impl Bare {
    /// Loads the program, with no filter in front of it.
    ///
    /// # Errors
    ///
    /// No privilege.
    pub fn load() -> Result<Self, LoadError> {
        logged("bare", || {
            let mut storage = MaybeUninit::uninit();
            let loaded = skeleton::BareSkelBuilder::default().open(&mut storage)?.load()?;
            let hook = Hook::Xdp { fragments: false, interface: None };
            let outcomes =
                [(hook.wanted(), &loaded.progs.bare_wanted), (hook.unwanted(), &loaded.progs.bare_unwanted)];
            let program = loaded.progs.bare.as_fd().try_clone_to_owned()?;
            Ok(Self { program, gate: gate!(loaded, vec![hook], outcomes) })
        })
    }

    /// Where a filter is put.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Runs `packet`, an Ethernet frame, through it `times` times: what became of it, and nanoseconds a run on average, the
    /// call from the kernel's own loop included.
    ///
    /// # Errors
    ///
    /// `EINVAL`: shorter than its header, or longer than a page has room for.
    pub fn run(&self, packet: &[u8], times: u32) -> Result<(Decision, u32), CallError> {
        let answer = testrun::run(self.program.as_fd(), packet, times)?;
        let decision = match answer.value {
            10 => Decision::NoFilter,
            11 => Decision::Wanted,
            _ => Decision::Unwanted,
        };
        Ok((decision, answer.duration))
    }
}
