//! Steering: the sources xdp and tc spread packets over targets themselves, for devices that have one queue or cannot
//! see flows.

use std::hash::{BuildHasher as _, RandomState};

use weir_bpf::pool::{self, SteerBy};

use crate::{Error, Setting};

/// How a packet's target is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steer {
    /// By flow: both endpoints, in either direction, and the protocol. VLAN tags, MPLS labels and PPPoE session headers
    /// are skipped. In a tunnel the outer flow counts. Later fragments follow the first one of their datagram. Packets
    /// other than IP are spread by their Ethernet addresses.
    Flow,
    /// By the flow inside a tunnel: VXLAN, Geneve, GTP-U, GRE or IP in IP, up to two levels deep. Packets outside of
    /// tunnels are spread as with [`Flow`](Self::Flow).
    Inner,
    /// To each target in turn, regardless of flows.
    RoundRobin,
    /// By the number of the outermost VLAN tag, modulo the number of targets; target 0 without a tag.
    Vlan,
}

/// The requested steering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steering {
    by: Steer,
    pub(crate) targets: u32,
    /// Shared by all interfaces of a capture, so that a flow has the same target on each.
    seed: u64,
}

/// The most targets that a capture can have.
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
        let why = format!("cannot steer to {targets} targets: 1 to {MOST_TARGETS} are possible");
        Err(Error::setting(Setting::Targets, why))
    }

    /// Converts the settings for the programs.
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

    /// Describes the steering for people: `by flow to 4 targets`.
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
