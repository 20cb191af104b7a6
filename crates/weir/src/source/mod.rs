//! Sources: where packets come from. Each turns what it gets into chunks of records, so that nothing behind it can tell
//! them apart.

pub(crate) mod af_packet;
pub(crate) mod af_xdp;
mod losses;
pub(crate) mod programmed;
mod pumped;
mod signals;
pub(crate) mod tc;
pub(crate) mod writers;
pub(crate) mod xdp;
pub(crate) mod xdp_tc;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use weir_bpf::Strays;
use weir_ring::{Counters, Fill, Gauge, Part};

use crate::Error;
use crate::filter::Gate;

/// What the direction takes in a record, beyond what a [`weir_ring::Shape`] reckons with.
const DIRECTION_BYTES: u32 = 8;

/// What can be taken from a queue at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// Bytes of records.
    pub(crate) bytes: u32,
    /// Nothing can be added to them: waiting for more is of no use.
    pub(crate) closed: bool,
}

/// One of a source's queues. One thread at a time has it, whichever.
pub(crate) trait Queue: std::fmt::Debug + Send {
    /// What can be taken from it.
    fn ready(&mut self) -> Result<Ready, Error>;

    /// Takes it, as far as one chunk reaches.
    fn take(&mut self) -> Result<Option<Part>, Error>;

    /// Has a bell of the source rung once `bytes` more are ready. The caller looks at [`Queue::ready`] once more before it
    /// sleeps.
    fn wake_after(&mut self, bytes: u32);

    /// Ends what [`Queue::wake_after`] began.
    fn wake_never(&mut self);

    /// What is to be seen of it from outside.
    fn gauge(&self) -> Gauge;
}

/// What a source rings for queues that somebody waits for.
pub(crate) trait Bell: std::fmt::Debug + Send + Sync {
    /// Readable once it was rung.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Forgets all rings so far. Whoever does so looks at the queues next.
    fn quiet(&self);
}

/// One interface, opened. Queues are numbered from 0 without gaps.
pub(crate) trait Source: std::fmt::Debug + Send {
    /// Queues that it fills.
    fn queues(&self) -> u32;

    /// Gives its queues away, once; the source keeps what has nothing to do with taking packets.
    fn give_queues(&mut self) -> Vec<Box<dyn Queue>>;

    /// What is rung when it is worth looking at queues.
    fn bells(&self) -> Vec<Arc<dyn Bell>>;

    /// Ends the capture: when this returns nothing arrives any more, and the counters are final. What has arrived can
    /// still be taken.
    fn stop(&mut self) -> Result<(), Error>;

    /// The counters of `queue`.
    fn counters(&self, queue: u32) -> Counters;

    /// Where the chunks of `queue` are.
    fn fill(&self, queue: u32) -> Fill;

    /// Bytes that it has taken for packets.
    fn memory(&self) -> u64;

    /// Packets that are counted beside the queues.
    fn strays(&self) -> Strays {
        Strays::default()
    }

    /// Packets that were seen and not wanted; they are in no queue's counters. `None`: nobody has counted them.
    fn filtered(&self) -> Option<u64> {
        Some(0)
    }

    /// Where its filter is exchanged.
    fn gate(&self) -> Arc<dyn Gate>;

    /// How long after it was stamped a packet can be taken, at most, where no processor is overloaded. (Stamps that many
    /// packets share are older.)
    fn lag(&self) -> Duration;

    /// Does what is due about once a second.
    fn tick(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
