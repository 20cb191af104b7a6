//! ATM with a SunATM header: direction and traffic type, VPI, VCI, then the packet.

use super::arithmetic::relation;
use super::condition::Condition;
use super::layers::Link;
use super::layers::{From, Place};
use super::{Lowered, Lowering};
use crate::Dialect;
use crate::ast::{AtmKind, Comparison};
use crate::graph::{ValueId, Width};

/// Offset of the packet.
const PACKET: u32 = 4;
/// Traffic types.
const LANE: u32 = 1;
const LLC: u32 = 2;

/// Messages of Q.2931: release complete, release, connect acknowledge, connect, setup, call proceeding.
const RELEASE_COMPLETE: u32 = 0x5a;
const RELEASE: u32 = 0x4d;
const CONNECT_ACKNOWLEDGE: u32 = 0x0f;
const CONNECT: u32 = 0x07;
const SETUP: u32 = 0x05;
const CALL_PROCEEDING: u32 = 0x02;

impl Lowering<'_> {
    /// Lowers ATM terms.
    pub(super) fn atm(&mut self, kind: &AtmKind) -> Lowered {
        if self.outermost != Link::SunAtm {
            return Err(self.cannot("ATM cell contents"));
        }
        Ok(match kind {
            AtmKind::Vpi(values) => self.any_of(values, |this| this.load(From::Link, 1, Width::Byte)),
            AtmKind::Vci(values) => self.any_of(values, |this| this.load(From::Link, 2, Width::Half)),
            AtmKind::Lane => {
                let is_lane = self.traffic(LANE);
                let frame = PACKET + 2;
                self.layers.enter(Link::Ethernet, Place::at(frame));
                self.layers.kind.constant = frame + 12;
                self.layers.payload.constant = frame + 14;
                (self.layers.network, self.layers.network_without_snap) = (0, 3);
                is_lane
            }
            AtmKind::Llc => {
                let is_llc = self.atm_is_llc();
                self.layers.link = self.layers.previous_link;
                is_llc
            }
            AtmKind::Metac => self.circuit(1),
            AtmKind::Bcc => self.circuit(2),
            AtmKind::Oamf4sc => self.circuit(3),
            AtmKind::Oamf4ec => self.circuit(4),
            AtmKind::Sc => self.circuit(5),
            AtmKind::Ilmic => self.circuit(16),
            AtmKind::Oam | AtmKind::Oamf4 => {
                let maintenance = self.channel(3).or(self.channel(4));
                self.path().and(maintenance)
            }
            AtmKind::Connectmsg => self.circuit(5).and(self.messages(&[
                RELEASE_COMPLETE,
                RELEASE,
                CONNECT_ACKNOWLEDGE,
                CONNECT,
                SETUP,
                CALL_PROCEEDING,
            ])),
            AtmKind::Metaconnect => self.circuit(1).and(self.messages(&[
                RELEASE_COMPLETE,
                RELEASE,
                CONNECT,
                SETUP,
                CALL_PROCEEDING,
            ])),
        })
    }

    /// Tests for LLC frames, as opposed to frames of LAN emulation.
    pub(super) fn atm_is_llc(&mut self) -> Condition {
        self.traffic(LLC)
    }

    fn traffic(&mut self, kind: u32) -> Condition {
        self.masked((From::Link, 0, Width::Byte), 0x0f, kind)
    }

    fn path(&mut self) -> Condition {
        self.field(From::Link, 1, Width::Byte, 0)
    }

    fn channel(&mut self, number: u32) -> Condition {
        self.field(From::Link, 2, Width::Half, number)
    }

    /// Tests for a channel of path 0.
    fn circuit(&mut self, channel: u32) -> Condition {
        self.path().and(self.channel(channel))
    }

    /// Tests for any of these messages.
    fn messages(&mut self, types: &[u32]) -> Condition {
        Condition::Any(
            types.iter().map(|&number| self.field(From::Link, PACKET + 5, Width::Byte, number)).collect(),
        )
    }

    /// Tests a value against any of the comparisons. In libpcap 1.10, `!=` does the same as `=`.
    pub(super) fn any_of(
        &mut self,
        values: &[(Comparison, u32)],
        load: impl Fn(&mut Self) -> ValueId,
    ) -> Condition {
        let parts = values.iter().map(|&(comparison, number)| {
            let value = load(self);
            let (relation, negated) = relation(comparison);
            let compared = self.compare(relation, value, number);
            let forgotten = self.options.dialect == Dialect::Pcap && comparison == Comparison::NotEqual;
            if negated && !forgotten { compared.negated() } else { compared }
        });
        Condition::Any(parts.collect())
    }
}
