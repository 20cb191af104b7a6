//! `llc` and its frame types (IEEE 802.2).

use super::condition::Condition;
use super::layers::From;
use super::layers::Link;
use super::{Lowered, Lowering};
use crate::ast::LlcKind;
use crate::graph::Width;

impl Lowering<'_> {
    /// Lowers `llc`: an LLC header of this kind.
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
                // Novell's frames have a length but no LLC.
                self.is_length().and(self.access_points(0xffff).negated())
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
