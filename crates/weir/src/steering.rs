//! Steering: the sources xdp and tc spread packets over targets themselves, where a device has one queue or cannot see the
//! flow.

use std::hash::{BuildHasher as _, RandomState};

use weir_bpf::pool::{self, SteerBy};

use crate::Error;

/// What a packet's target follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Its flow: both endpoints, whichever way, and the protocol, also behind VLAN tags, labels of MPLS and the header of a
    /// PPPoE session. Of a tunnel the outer one counts; later fragments follow the first of their datagram. What is not IP
    /// goes by its Ethernet addresses.
    Flow,
    /// The flow inside of a tunnel: VXLAN, Geneve, GTP-U, GRE or IP in IP, and one more of them in it. Elsewhere as [`Flow`](Self::Flow).
    Inner,
    /// The target of the packet before: each is the next one's turn. Flows are divided.
    RoundRobin,
    /// The number of its outermost VLAN tag, modulo the number of targets; without a tag 0.
    Vlan,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steering {
    by: Steer,
    pub(crate) targets: u32,
    /// Of all interfaces of a capture, so that a flow has one target wherever it passes.
    seed: u64,
}

/// Most targets that a capture can have.
pub const MOST_TARGETS: u32 = 256;

impl Steering {
    pub(crate) fn new(by: Steer, targets: u32) -> Self {
        Self { by, targets, seed: RandomState::new().hash_one(targets) }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let targets = self.targets;
        if (1..=MOST_TARGETS).contains(&targets) {
            return Ok(());
        }
        Err(Error::Options(format!("steering to {targets} targets: there can be 1 to {MOST_TARGETS}")))
    }

    /// As the programs are told of it.
    pub(crate) fn for_program(self) -> pool::Steering {
        let by = match self.by {
            Steer::Flow => SteerBy::Flow,
            Steer::Inner => SteerBy::Inner,
            Steer::RoundRobin => SteerBy::RoundRobin,
            Steer::Vlan => SteerBy::Vlan,
        };
        pool::Steering { by, targets: self.targets, seed: self.seed }
    }

    pub(crate) fn is_by_vlan(&self) -> bool {
        self.by == Steer::Vlan
    }

    /// For people: `by flow to 4 targets`.
    pub(crate) fn describe(&self) -> String {
        let by = match self.by {
            Steer::Flow => "by flow",
            Steer::Inner => "by inner flow",
            Steer::RoundRobin => "in turn",
            Steer::Vlan => "by VLAN",
        };
        format!("{by} to {} target{}", self.targets, if self.targets == 1 { "" } else { "s" })
    }
}
