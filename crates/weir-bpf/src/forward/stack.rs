//! Injecting packets into a host's stack (`stack.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_sys::{CallError, testrun};

use crate::log::{LoadError, logged};
use crate::parked::Parked;

skeleton!("stack");

/// A program that makes a host's stack receive packets.
#[derive(Debug)]
pub struct Receive {
    program: OwnedFd,
    /// If `None`, each packet takes tens of milliseconds.
    _parked: Option<Parked>,
}

impl Receive {
    /// Loads the program.
    ///
    /// # Errors
    ///
    /// Missing privileges, or no eBPF.
    pub fn load() -> Result<Self, LoadError> {
        let program = logged("receive", || {
            let mut storage = MaybeUninit::uninit();
            let loaded = skeleton::StackSkelBuilder::default().open(&mut storage)?.load()?;
            Ok(loaded.progs.receive.as_fd().try_clone_to_owned()?)
        })?;
        let parked = Parked::park(program.as_fd()).ok();
        Ok(Self { program, _parked: parked })
    }

    /// Makes the stack receive `frame` as if from the interface with this index in the calling thread's namespace. The
    /// frame enters after the interface's XDP program, so captures with XDP do not see it.
    ///
    /// # Errors
    ///
    /// The errors of [`testrun::live_frames`].
    pub fn frame(&self, frame: &[u8], interface: u32) -> Result<(), CallError> {
        testrun::live_frames(self.program.as_fd(), frame, interface, 1, 1)
    }
}
