//! A program that tags what an interface sends (`tag.bpf.c`), for tests of what becomes of the tags.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::log::{LoadError, logged};

skeleton!("tag");

/// A loaded program.
#[derive(Debug)]
pub struct Tag {
    program: OwnedFd,
}

impl Tag {
    /// Loads a program that pushes a tag of this protocol (0x8100 or 0x88a8) and control information.
    ///
    /// # Errors
    ///
    /// No privilege, or a kernel without tcx.
    pub fn load(protocol: u16, tci: u16) -> Result<Self, LoadError> {
        logged("tag", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::TagSkelBuilder::default().open(&mut storage)?;
            open.progs.untag.set_autoload(false);
            let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
            constants.protocol = protocol;
            constants.tci = tci;
            let loaded = open.load()?;
            Ok(Self { program: loaded.progs.tag.as_fd().try_clone_to_owned()? })
        })
    }

    /// Loads a program for what arrives, which takes its tag off.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_untagging() -> Result<Self, LoadError> {
        logged("untag", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::TagSkelBuilder::default().open(&mut storage)?;
            open.progs.tag.set_autoload(false);
            let loaded = open.load()?;
            Ok(Self { program: loaded.progs.untag.as_fd().try_clone_to_owned()? })
        })
    }

    /// The program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}
