//! `inbound`, `outbound` and `ifindex`, from cooked headers or metadata.

use super::layers::From;
use super::layers::Link;
use super::{Lowered, Lowering};
use crate::Beside;
use crate::graph::{Meta, Relation, Width};

/// `PACKET_OUTGOING` (linux/if_packet.h): sent by this host.
const OUTGOING: u32 = 4;

impl Lowering<'_> {
    /// Lowers `outbound` or `inbound`.
    pub(super) fn is_outbound(&mut self, outbound: bool) -> Lowered {
        let is_outgoing = match self.layers.link {
            Link::Slip => self.field(From::Link, 0, Width::Byte, 0).negated(),
            Link::Sll => self.field(From::Link, 0, Width::Half, OUTGOING),
            Link::Sll2 => self.field(From::Link, 10, Width::Byte, OUTGOING),
            Link::Juniper => {
                return Ok(self.masked((From::Link, 3, Width::Byte), 1, u32::from(!outbound)));
            }
            Link::Ipnet => return Ok(self.field(From::Link, 2, Width::Half, 2 - u32::from(outbound))),
            Link::PppWithDirection => {
                return Ok(self.field(From::Link, 0, Width::Byte, u32::from(outbound)));
            }
            Link::Pflog => return Ok(self.field(From::Link, 60, Width::Byte, 1 + u32::from(outbound))),
            _ if self.options.metadata == Beside::All => {
                let kind = self.graph.meta(Meta::PacketType);
                self.compare(Relation::Equal, kind, OUTGOING)
            }
            _ => return Err(self.cannot("the direction of packets in files")),
        };
        Ok(if outbound { is_outgoing } else { is_outgoing.negated() })
    }

    /// Lowers `ifindex`.
    pub(super) fn interface(&mut self, index: u32) -> Lowered {
        match self.layers.link {
            Link::Sll2 => Ok(self.field(From::Link, 4, Width::Word, index)),
            _ if self.options.metadata == Beside::All => {
                let interface = self.graph.meta(Meta::Interface);
                Ok(self.compare(Relation::Equal, interface, index))
            }
            _ => Err(self.cannot("the interface of packets in files")),
        }
    }
}
