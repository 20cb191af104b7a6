//! A program that tags an interface's outgoing packets (`tag.bpf.c`), to test what happens to the tags.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use weir_bpf::{LoadError, logged};

weir_bpf::skeleton!("tag");

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
    /// Missing privileges, or a kernel without tcx.
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

    /// Loads a program that removes the tag of incoming packets.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load).
    pub fn load_untagging() -> Result<Self, LoadError> {
        logged("untag", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::TagSkelBuilder::default().open(&mut storage)?;
            open.progs.tag.set_autoload(false);
            let loaded = open.load()?;
            Ok(Self { program: loaded.progs.untag.as_fd().try_clone_to_owned()? })
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}
