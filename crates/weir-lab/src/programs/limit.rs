//! The practical limit of an engine with one copy (`limit.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use libbpf_rs::MapHandle;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

weir_bpf::skeleton!("limit");

/// Chunks of 1 MiB that a queue has.
const CHUNKS: u32 = 64;

/// The program, loaded.
pub(crate) struct Limit {
    pub(crate) program: OwnedFd,
    /// Its entries begin with the packets of a queue.
    pub(crate) places: MapHandle,
    /// Its chunks, those of the first queue first.
    pub(crate) memory: MapHandle,
}

/// Loads the program for an interface with so many queues.
pub(crate) fn load(queues: u32) -> Result<Limit, libbpf_rs::Error> {
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::LimitSkelBuilder::default().open(&mut storage)?;
    open.maps.places.set_max_entries(queues)?;
    open.maps.memory.set_max_entries(queues * CHUNKS)?;
    open.maps.rodata_data.as_deref_mut().expect("the program has constants").chunks = CHUNKS;
    let loaded = open.load()?;
    Ok(Limit {
        program: loaded.progs.write_all.as_fd().try_clone_to_owned()?,
        places: MapHandle::try_from(&loaded.maps.places)?,
        memory: MapHandle::try_from(&loaded.maps.memory)?,
    })
}
