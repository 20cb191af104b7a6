//! `llc` and the kinds of its frames (IEEE 802.2).

use super::condition::Condition;
use super::layers::From;
use super::link::Link;
use super::{Lowered, Lowering};
use crate::ast::LlcKind;
use crate::graph::{Relation, Width};

/// How long a length field of IEEE 802.3 is at most.
const LONGEST: u32 = 1500;

impl Lowering<'_> {
    /// An LLC header, of this kind.
    pub(super) fn llc(&mut self, kind: LlcKind) -> Lowered {
        let is_llc = self.is_llc()?;
        let mut control = |mask, value| {
            let format = self.masked((From::Payload, 2, Width::Byte), mask, value);
            is_llc.clone().and(format)
        };
        Ok(match kind {
            LlcKind::Any => is_llc,
            LlcKind::Supervisory => control(0x03, 0x01),
            LlcKind::Unnumbered => control(0x03, 0x03),
            LlcKind::SupervisoryKind(function) => control(0x0f, function.into()),
            LlcKind::UnnumberedKind(function) => control(0xef, function.into()),
            LlcKind::Information => is_llc.and(self.bits(From::Payload, 2, 1).negated()),
        })
    }

    fn is_llc(&mut self) -> Lowered {
        Ok(match self.layers.link {
            Link::Ethernet => {
                let kind = self.load(From::Kind, 0, Width::Half);
                let is_length = self.compare(Relation::Greater, kind, LONGEST).negated();
                // Novell's frames have a length but no LLC.
                is_length.and(self.field(From::Payload, 0, Width::Half, 0xffff).negated())
            }
            Link::SunAtm => {
                let is_llc = self.atm_is_llc();
                self.layers.link = self.layers.previous_link;
                is_llc
            }
            Link::TokenRing | Link::Fddi | Link::Rfc1483 => Condition::Always(true),
            link if link.is_wlan() => self.is_wlan_data(),
            _ => return Err(self.cannot("`llc`")),
        })
    }
}
