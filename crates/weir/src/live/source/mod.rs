//! Sources of packets. Each turns its input into chunks of records, so that the rest of the library cannot tell sources
//! apart.

pub(crate) mod af_packet;
pub(crate) mod af_xdp;
mod losses;
pub(crate) mod outlet;
pub mod probe;
pub(crate) mod programmed;
mod pumped;
mod signals;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod tc;
pub(crate) mod writers;
pub(crate) mod xdp;
pub(crate) mod xdp_tc;

use std::sync::Arc;
use std::time::Duration;

use weir_bpf::Strays;
use weir_ring::{Counters, Fill, Gauge, Part, Ways};
use weir_sys::CallError;

use crate::Error;
use crate::live::filter_control::Gate;
use crate::live::ruled::InForce;
use crate::live::wait::{Notifier, Ready};

/// Bytes of the direction in a record, which a [`weir_ring::Shape`] does not include.
const DIRECTION_BYTES: u32 = 8;

/// One of a source's queues. Any thread may use it, one at a time.
pub(crate) trait Queue: std::fmt::Debug + Send {
    /// Returns what can be taken.
    fn ready(&mut self) -> Result<Ready, Error>;

    /// Takes it, up to the end of a chunk.
    fn take(&mut self) -> Result<Option<Part>, Error>;

    /// Makes the source notify once `bytes` more are ready. The caller checks [`Queue::ready`] again before it
    /// sleeps.
    fn wake_after(&mut self, bytes: u32);

    /// Cancels [`Queue::wake_after`].
    fn wake_never(&mut self);

    /// Returns a view of the queue for other threads.
    fn gauge(&self) -> Gauge;
}

/// An open interface. Queues are numbered from 0 without gaps.
pub(crate) trait Source: std::fmt::Debug + Send {
    /// Returns the number of queues.
    fn queues(&self) -> u32;

    /// Returns the number by which users know the first queue; the others follow.
    fn first_number(&self) -> u32 {
        0
    }

    /// Gives away the queues, once. The source keeps what is not needed to take packets.
    fn give_queues(&mut self) -> Vec<Box<dyn Queue>>;

    /// Returns the notifiers that ring when queues should be checked.
    fn notifiers(&self) -> Vec<Arc<dyn Notifier>>;

    /// Begins to stop: detaches programs, and orders pumps to finish. [`finish`](Self::finish) does the rest.
    fn detach(&mut self) -> Result<(), Error>;

    /// Waits until no program that was detached before is running; `None` if this source has detached none. One source
    /// waits for those of all.
    fn settle(&self) -> Option<Result<(), CallError>> {
        None
    }

    /// Completes the stop of a detached source. Once this returns, nothing more arrives and the counters are final. What
    /// has arrived can still be taken.
    fn finish(&mut self) -> Result<(), Error>;

    /// Does all of this.
    fn stop(&mut self) -> Result<(), Error> {
        let detached = self.detach();
        let settled = self.settle().unwrap_or(Ok(()));
        let finished = self.finish();
        settled?;
        detached.and(finished)
    }

    /// Returns the counters of `queue`.
    fn counters(&self, queue: u32) -> Counters;

    /// Returns where the chunks of `queue` are.
    fn fill(&self, queue: u32) -> Fill;

    /// Returns the bytes that the source uses for packets.
    fn memory(&self) -> u64;

    /// Returns the packets that are counted outside of the queues.
    fn strays(&self) -> Strays {
        Strays::default()
    }

    /// Returns the packets that the filter rejected and that are in no queue's counters; `None` if they were not
    /// counted.
    fn filtered(&self) -> Option<u64> {
        Some(0)
    }

    /// Returns the rules that have the filter's place, if there are some.
    fn rules(&mut self) -> Option<&mut InForce> {
        None
    }

    /// Returns the flows that are counted in the kernel, if any are.
    #[cfg_attr(
        not(feature = "flows"),
        expect(dead_code, reason = "`Builder::count_flows` is why they are read")
    )]
    fn ways(&mut self) -> Option<&mut Ways> {
        None
    }

    /// Returns where the filter is replaced.
    fn gate(&self) -> Arc<dyn Gate>;

    /// Returns the longest time from a packet's timestamp until it can be taken, if no CPU is overloaded. (Timestamps
    /// shared by many packets are older.)
    fn lag(&self) -> Duration;

    /// Does periodic work, about once a second.
    fn tick(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
