//! `protochain`: a protocol anywhere in the chain of headers.
//!
//! libpcap's program loops. A graph cannot loop, so it has a step per header, at most [`LONGEST`], and rejects packets
//! with longer chains. A bug of libpcap is reproduced: the end of an authentication header is not computed relative to
//! its start.

use super::condition::Condition;
use super::kind::{IP, IP6};
use super::layers::From;
use super::{Lowered, Lowering};
use crate::ast::Protocol;
use crate::graph::{Operation, Relation, ValueId, Width};

/// Maximum number of headers to examine.
pub(super) const LONGEST: usize = 16;

const NO_NEXT_HEADER: u32 = 59;
const AUTHENTICATION: u32 = 51;
/// Hop-by-hop options, destination options, routing, fragment.
const EXTENSIONS: [u32; 4] = [0, 60, 43, 44];

impl Lowering<'_> {
    /// Lowers `protochain` in IPv4, IPv6 or both.
    pub(super) fn chain(&mut self, protocol: Option<Protocol>, number: u32) -> Lowered {
        match protocol {
            None => {
                let ipv4 = self.chain(Some(Protocol::Ip), number)?;
                Ok(ipv4.or(self.chain(Some(Protocol::Ip6), number)?))
            }
            Some(protocol @ (Protocol::Ip | Protocol::Ip6)) => {
                if self.layers.payload.variable.is_some() {
                    return Err(
                        "`protochain` requires that all preceding headers have a fixed length".to_owned()
                    );
                }
                let is_ipv4 = protocol == Protocol::Ip;
                let carries = self.carries(if is_ipv4 { IP } else { IP6 })?;
                let first = self.load(From::Network, if is_ipv4 { 9 } else { 6 }, Width::Byte);
                let length = if is_ipv4 { self.behind_ipv4() } else { self.graph.constant(40) };
                Ok(carries.and(self.steps(is_ipv4, number, first, length)))
            }
            Some(_) => Err("`protochain` can only be used with `ip` and `ip6`".to_owned()),
        }
    }

    /// Builds the steps, beginning with a header of protocol `kind` at `place`, which counts from the end of the link
    /// layer.
    fn steps(&mut self, is_ipv4: bool, number: u32, kind: ValueId, place: ValueId) -> Condition {
        let (mut kind, mut place) = (kind, place);
        let mut questions = Vec::new();
        for _ in 0..LONGEST {
            let next = self.graph.slot();
            let found = self.compare(Relation::Equal, kind, number);
            let ends = self.compare(Relation::Equal, kind, NO_NEXT_HEADER).negated();
            let extensions = if is_ipv4 { &[][..] } else { &EXTENSIONS };
            let extension =
                extensions.iter().map(|&extension| self.compare(Relation::Equal, kind, extension)).collect();
            let authentication = self.compare(Relation::Equal, kind, AUTHENTICATION);

            let header = self.network().constant;
            let length = self.graph.load(Some(place), header.wrapping_add(1), Width::Byte);
            let eights = self.graph.with(Operation::Add, length, 1);
            let bytes = self.graph.with(Operation::Multiply, eights, 8);
            let behind_extension = self.graph.binary(Operation::Add, bytes, place);
            let fours = self.graph.with(Operation::Add, length, 2);
            let behind_authentication = self.graph.with(Operation::Multiply, fours, 4);
            let advance = Condition::Any(extension).choose(
                Condition::Note(next, behind_extension),
                authentication.and(Condition::Note(next, behind_authentication)),
            );
            questions.push((found, ends.and(advance)));
            kind = self.graph.load(Some(place), header, Width::Byte);
            place = self.slot(next);
        }
        questions
            .into_iter()
            .rev()
            .fold(Condition::Refuse, |rest, (found, advance)| found.or(advance.and(rest)))
    }
}
