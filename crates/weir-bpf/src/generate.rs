//! The frame generator of the lab (`generate.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::log::{LoadError, logged};

skeleton!("generate");

/// The frames that program `generate` writes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of each frame: Ethernet, IPv4 (20 bytes), UDP, and a payload of at least 16.
    pub size: u32,
    /// The Ethernet header of tagged frames; `None`: frames are untagged.
    pub tagged: Option<[u8; 18]>,
    /// Number of flows, at least 1.
    pub flows: u32,
    /// Flows in pseudo-random order; otherwise in turn.
    pub scattered: bool,
    /// Number of the first frame.
    pub first_sequence: u64,
}

/// Program `generate`, loaded, for `BPF_PROG_TEST_RUN`.
#[derive(Debug)]
pub struct Generate {
    program: OwnedFd,
    state: MapHandle,
}

impl Generate {
    /// Loads the program.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or a kernel without a function that the program calls.
    pub fn load(options: &Options) -> Result<Self, LoadError> {
        logged("generate", || Self::try_load(options))
    }

    fn try_load(options: &Options) -> Result<Self, libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::GenerateSkelBuilder::default().open(&mut storage)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.size = options.size;
        if let Some(header) = options.tagged {
            let word = |at: usize| u64::from_ne_bytes(*header[at..].first_chunk().expect("eight bytes"));
            constants.tagged = true;
            constants.ethernet.words = [word(0), word(8)];
            constants.ethernet.r#type = u16::from_ne_bytes([header[16], header[17]]);
        }
        constants.flows = options.flows;
        constants.scattered = options.scattered;
        let state = &mut open.maps.bss_data.as_deref_mut().expect("the program has state").state;
        state.sequence = options.first_sequence;
        state.flow =
            u32::try_from(options.first_sequence % u64::from(options.flows)).expect("less than a u32");

        let loaded = open.load()?;
        Ok(Self {
            program: loaded.progs.generate.as_fd().try_clone_to_owned()?,
            state: MapHandle::try_from(&loaded.maps.bss)?,
        })
    }

    /// Returns the program, to run it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns the number of the next frame, which grows by one with each frame made.
    pub fn next_sequence(&self) -> u64 {
        let state =
            self.state.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).expect("a map that is held can be read");
        let sequence = state.as_deref().and_then(|state| state.first_chunk());
        u64::from_ne_bytes(*sequence.expect("the state begins with it"))
    }
}
