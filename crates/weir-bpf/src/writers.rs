//! Who fills a pool's queues: receive queues of an interface, or processors (`processor.h`).

use libbpf_rs::{MapCore, MapFlags, OpenMapMut};
use weir_sys::cpu::Processors;

/// What a writer is. Each has a queue of its own, or where packets are steered one for each target.
#[derive(Clone, Debug)]
pub enum Writers {
    /// A receive queue of the interface with this index. Packets of other interfaces are counted as foreign.
    Queues {
        /// Not 0.
        of: u32,
    },
    /// One of these processors, in their order. Packets on others are counted as apart.
    Processors(Processors),
}

impl Writers {
    /// The processors, if there are any.
    pub(crate) fn processors(&self) -> Option<&Processors> {
        match self {
            Self::Queues { .. } => None,
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
