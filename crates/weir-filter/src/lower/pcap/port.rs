//! TCP, UDP and SCTP ports: in IPv4 if the packet is not a later fragment, in IPv6 directly after the fixed header.

use super::condition::Condition;
use super::kind::{IP, IP6};
use super::layers::From;
use super::{Lowered, Lowering};
use crate::ast::{Direction, Protocol};
use crate::graph::{Relation, Width};

pub(super) const TCP: u32 = 6;
pub(super) const UDP: u32 = 17;
pub(super) const SCTP: u32 = 132;

/// Ports to test for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ports {
    /// One port.
    One(u16),
    /// First and last port of a range.
    Range(u16, u16),
}

impl Lowering<'_> {
    /// Lowers `port` and `portrange`.
    pub(super) fn port(&mut self, protocol: Option<Protocol>, direction: Direction, ports: Ports) -> Lowered {
        let protocols: &[u32] = match protocol {
            None => &[SCTP, TCP, UDP],
            Some(Protocol::Tcp) => &[TCP],
            Some(Protocol::Udp) => &[UDP],
            Some(Protocol::Sctp) => &[SCTP],
            Some(_) => return Err("only `tcp`, `udp` and `sctp` have ports".to_owned()),
        };
        let ipv6 = self.ports_in(From::Transport6, protocols, direction, ports)?;
        Ok(ipv6.or(self.ports_in(From::Transport4, protocols, direction, ports)?))
    }

    /// Tests ports of any of `protocols`, in the family that `transport` belongs to.
    pub(super) fn ports_in(
        &mut self,
        transport: From,
        protocols: &[u32],
        direction: Direction,
        ports: Ports,
    ) -> Lowered {
        let is_ipv4 = matches!(transport, From::Transport4);
        let carries = self.carries(if is_ipv4 { IP } else { IP6 })?;
        let mut parts = Vec::new();
        for &protocol in protocols {
            let mut all = vec![self.field(From::Network, if is_ipv4 { 9 } else { 6 }, Width::Byte, protocol)];
            if is_ipv4 {
                all.push(self.is_first_fragment());
            }
            all.push(self.ends(direction, |this, is_source| {
                let port = this.load(transport, if is_source { 0 } else { 2 }, Width::Half);
                Ok(match ports {
                    Ports::One(number) => this.compare(Relation::Equal, port, number.into()),
                    Ports::Range(first, last) => {
                        let least = this.compare(Relation::AtLeast, port, first.min(last).into());
                        least.and(this.compare(Relation::Greater, port, last.max(first).into()).negated())
                    }
                })
            })?);
            parts.push(Condition::All(all));
        }
        Ok(carries.and(Condition::Any(parts)))
    }

    /// Tests whether the IPv4 fragment offset is zero.
    pub(super) fn is_first_fragment(&mut self) -> Condition {
        let offset = self.load(From::Network, 6, Width::Half);
        self.compare(Relation::AnyBit, offset, 0x1fff).negated()
    }
}
