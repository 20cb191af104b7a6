//! Captures, by XDP for received packets and by tc for sent ones, that have rules in front.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::thread::sched_getcpu;
use weir_bpf::filter::{Behind, Filter, Gate};
use weir_bpf::pool::{PoolMaps, PoolOptions};
use weir_bpf::rules::Rules;
use weir_bpf::writers::Writers;
use weir_bpf::{tc, xdp};
use weir_ring::{Consumer, Pool, Shape, SharedMaps};
use weir_sys::cpu::Processors;

pub(crate) struct Captures {
    received: (xdp::Program, PoolMaps),
    sent: (tc::Programs, PoolMaps),
    /// Those with which the pools begin: this processor's.
    processors: Processors,
}

/// Few packets have room: the rest is lost.
fn shape() -> Shape {
    Shape::new(1, 2, 4096, 4096).expect("it is possible")
}

fn pool() -> PoolOptions {
    let shape = shape();
    PoolOptions::of(&shape, 1500)
}

impl Captures {
    pub(crate) fn load() -> Self {
        let here = u32::try_from(sched_getcpu()).expect("a processor");
        let processors = Processors::of(&[here], here + 1);
        let received = xdp::Options {
            pool: pool(),
            steering: None,
            sampling: None,
            exclusive: false,
            fragments: false,
            writers: Writers::Processors(processors.clone()),
            chosen: None,
            tags_of: None,
            rules: true,
            counting: None,
        };
        let sent = tc::Options {
            pool: pool(),
            processors: processors.clone(),
            steering: None,
            sampling: None,
            segments: None,
            left_out: None,
            left_out_mark: None,
            ingress: false,
            egress: true,
            rules: true,
        };
        Self {
            received: xdp::Program::load(&received).expect("it is loaded"),
            sent: tc::Programs::load(&sent).expect("they are loaded"),
            processors,
        }
    }

    /// What rules go on with, for received packets and for sent ones.
    pub(crate) fn behind(&self) -> [Option<Behind<'_>>; 3] {
        let [received, sent] = [&self.received.1, &self.sent.1].map(|maps| match &**maps.gate() {
            Gate::Calls(calls) => calls.behind(),
            Gate::Bound(_) => None,
        });
        [received, sent, None]
    }

    /// Puts rules in front.
    pub(crate) fn put(&self, rules: &Rules) {
        for (maps, program) in [(&self.received.1, &rules.received), (&self.sent.1, &rules.sent)] {
            let program: &OwnedFd = program.as_ref().expect("it was asked for");
            let program = program.try_clone().expect("a descriptor");
            let filter = Filter::from_programs(vec![program], Vec::new());
            maps.gate().set(Some(&filter)).expect("it is taken");
        }
    }

    pub(crate) fn program(&self, sent: bool) -> BorrowedFd<'_> {
        match sent {
            true => self.sent.0.egress().expect("it was asked for"),
            false => self.received.0.as_fd(),
        }
    }

    /// Packets that were captured, or would have been if there were room, and those that were not wanted.
    pub(crate) fn counts(&self) -> [u64; 2] {
        assert_eq!(self.processors.count(), 1);
        let counters = [&self.received.1, &self.sent.1].map(|maps| {
            let shared = SharedMaps {
                pool: maps.pool(),
                chunks: maps.chunks(),
                queues: maps.queues(),
                orders: maps.orders(),
            };
            let consumers = Pool::shared(shape(), &shared).expect("it fits");
            let counters = consumers.first().map(Consumer::gauge).expect("one queue").counters();
            let wanted = counters.captured + counters.lost;
            assert_eq!(counters.seen, wanted + counters.filtered, "{counters:?}");
            assert_eq!((counters.errors, maps.strays().nobodys()), (0, 0));
            [wanted, counters.filtered]
        });
        [0, 1].map(|kind| counters.iter().map(|one| one[kind]).sum())
    }
}
