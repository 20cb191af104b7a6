//! Who fills a pool's queues: receive queues of an interface, or processors (`processor.h`).

use libbpf_rs::{MapCore, MapFlags, OpenMapMut};
use weir_sys::cpu::Processors;

/// What a writer is. Each has a queue of its own, or where packets are steered one for each target.
#[derive(Clone, Debug)]
pub enum Writers {
    /// A receive queue of an interface.
    Queues(Driven),
    /// One of these processors, in their order. Packets on others are counted as apart.
    Processors(Processors),
}

/// The interface whose driver runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driven {
    /// Its index, not 0.
    pub index: u32,
    /// The driver may hand the program on to other interfaces, whose packets are then counted as foreign. Of one that does not
    /// no packet is asked where it comes from: veth with GRO forgets that while a program is being taken off, and the kernel
    /// would follow a null pointer (`veth_disable_xdp`; seen on Linux 6.1).
    pub hands_on: bool,
}

impl Driven {
    /// As the programs are told.
    pub(crate) fn constant(self) -> u32 {
        const ANY_INTERFACE: u32 = u32::MAX;
        if self.hands_on { self.index } else { ANY_INTERFACE }
    }

    /// The only interface that packets can be of.
    pub(crate) fn only(self) -> Option<u32> {
        (!self.hands_on).then_some(self.index)
    }
}

impl Writers {
    /// The processors, if there are any.
    pub(crate) fn processors(&self) -> Option<&Processors> {
        match self {
            Self::Queues(_) => None,
            Self::Processors(processors) => Some(processors),
        }
    }
}

/// Makes room in the map for all that may ever be there.
pub(crate) fn measure(
    map: &mut OpenMapMut<'_>,
    processors: Option<&Processors>,
) -> Result<(), libbpf_rs::Error> {
    map.set_max_entries(processors.map_or(1, Processors::possible))
}

/// Says which writer each processor is.
pub(crate) fn enter(map: &impl MapCore, processors: Option<&Processors>) -> Result<(), libbpf_rs::Error> {
    const NO_WRITER: u32 = u32::MAX;
    let Some(processors) = processors else { return Ok(()) };
    for processor in 0..processors.possible() {
        let writer = processors.place(processor).unwrap_or(NO_WRITER);
        map.update(&processor.to_ne_bytes(), &writer.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}
