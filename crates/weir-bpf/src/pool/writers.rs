//! The writers of a pool: receive queues of an interface (`chosen.h`), or processors (`processor.h`).

use libbpf_rs::{MapCore, MapFlags, OpenMapMut};
use weir_sys::cpu::Processors;

use crate::layout::no_number;

/// The writers of a pool. Each has a queue of its own, or one per target if packets are steered.
#[derive(Clone, Debug)]
pub enum Writers {
    /// The receive queues of an interface, or those [`Chosen`].
    Queues(Driven),
    /// These processors, in order. Packets on others are counted as [`Strays::late_cpu`](crate::Strays::late_cpu).
    Processors(Processors),
}

/// A run of receive queues, the only ones that are captured (`chosen.h`). Packets on others pass uncounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The first queue.
    pub first: u32,
    /// The number of queues, not 0.
    pub count: u32,
}

/// The interface whose driver runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driven {
    /// The interface's index, not 0.
    pub index: u32,
    /// The driver may hand the program on to other interfaces, whose packets are then counted as foreign. If it does
    /// not, the program never reads a packet's interface: veth with GRO clears it while a program is being detached,
    /// and the kernel would follow a null pointer (`veth_disable_xdp`; seen on Linux 6.1).
    pub hands_on: bool,
}

impl Driven {
    /// Returns the constant that tells programs the interface.
    pub(crate) fn constant(self) -> u32 {
        if self.hands_on { self.index } else { no_number::ANY_INTERFACE.0 }
    }

    /// Returns the only interface that packets can come from, if there is just one.
    pub(crate) fn only(self) -> Option<u32> {
        (!self.hands_on).then_some(self.index)
    }
}

impl Writers {
    /// Returns the processors, if they are the writers.
    pub(crate) fn processors(&self) -> Option<&Processors> {
        match self {
            Self::Queues(_) => None,
            Self::Processors(processors) => Some(processors),
        }
    }
}

/// Sizes the map for all possible processors.
pub(crate) fn measure(
    map: &mut OpenMapMut<'_>,
    processors: Option<&Processors>,
) -> Result<(), libbpf_rs::Error> {
    map.set_max_entries(processors.map_or(1, Processors::possible))
}

/// Writes each processor's writer into the map.
pub(crate) fn enter(map: &impl MapCore, processors: Option<&Processors>) -> Result<(), libbpf_rs::Error> {
    let Some(processors) = processors else { return Ok(()) };
    for processor in 0..processors.possible() {
        let writer = processors.place(processor).unwrap_or(no_number::NO_WRITER.0);
        map.update(&processor.to_ne_bytes(), &writer.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}

/// Sets the constants of `chosen.h`, if queues were chosen.
macro_rules! prepare_chosen {
    ($constants:expr, $chosen:expr) => {
        if let Some(chosen) = $chosen {
            let $crate::writers::Chosen { first, count } = chosen;
            $constants.first_chosen = first;
            $constants.chosen = count;
        }
    };
}
pub(crate) use prepare_chosen;
