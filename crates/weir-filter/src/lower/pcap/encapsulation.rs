//! Terms that move the headers for all later terms: `vlan`, `mpls`, `pppoes`.

use weir_packet::ethertype;

use super::condition::Condition;
use super::kind::{MPLS, PPPOE_SESSION};
use super::layers::Link;
use super::layers::{From, Place};
use super::{Lowered, Lowering};
use crate::Beside;
use crate::graph::{Meta, Operation, Relation, Width};

const VLAN_NUMBER: u32 = 0xfff;
/// MPLS in PPP (RFC 3032).
const MPLS_IN_PPP: u32 = 0x0281;

impl Lowering<'_> {
    /// Lowers `vlan`: later terms look behind the tag.
    pub(super) fn vlan(&mut self, number: Option<u32>) -> Lowered {
        if self.layers.labels > 0 {
            return Err("`vlan` cannot follow `mpls`".to_owned());
        }
        let link = self.layers.link;
        if !link.is_ethernet() && !link.has_wlan_types() {
            return Err(self.cannot("`vlan`"));
        }
        let tags = ethertype::TAGS_OF_LIBPCAP.map(|tag| self.carries(tag.into()));
        let tagged = Condition::Any(tags.into_iter().collect::<Result<_, _>>()?);
        let numbered = number.map(|number| self.masked((From::Network, 0, Width::Half), VLAN_NUMBER, number));
        let is_outermost = self.layers.link_header == Place::at(self.layers.outermost);
        let may_be_beside = self.options.metadata == Beside::All
            && link.is_ethernet()
            && self.layers.tags == 0
            && is_outermost;
        self.layers.tags += 1;
        let (tagged, numbered) = if may_be_beside {
            (
                self.tag_beside(tagged),
                numbered.zip(number).map(|(inline, number)| self.number_beside(inline, number)),
            )
        } else {
            self.layers.payload = self.layers.payload.plus(4);
            self.layers.kind = self.layers.kind.plus(4);
            (tagged, numbered)
        };
        Ok(match numbered {
            Some(numbered) => tagged.and(numbered),
            None => tagged,
        })
    }

    /// Handles a tag that the receiver may have stripped: if so, the headers stay where they are. Otherwise they move,
    /// whether or not there is a tag.
    fn tag_beside(&mut self, inline: Condition) -> Condition {
        let slot = self.graph.slot();
        self.assigned_always.insert(slot);
        self.layers.payload.variable = Some(slot);
        self.layers.kind.variable = Some(slot);
        let [stay, moved] = [0, 4].map(|bytes| self.graph.constant(bytes));
        let beside = self.is_beside().and(Condition::Note(slot, stay));
        beside.or(Condition::Note(slot, moved).and(inline))
    }

    /// Tests the VLAN ID, wherever the tag is.
    fn number_beside(&mut self, inline: Condition, number: u32) -> Condition {
        let tag = self.graph.meta(Meta::VlanTag);
        let tag = self.graph.with(Operation::And, tag, VLAN_NUMBER);
        let numbered = self.compare(Relation::Equal, tag, number);
        self.is_beside().choose(numbered, inline)
    }

    fn is_beside(&mut self) -> Condition {
        let present = self.graph.meta(Meta::VlanPresent);
        self.compare(Relation::Equal, present, 1)
    }

    /// Lowers `mpls`: later terms look behind the label.
    pub(super) fn mpls(&mut self, label: Option<u32>) -> Lowered {
        let labelled = if self.layers.labels > 0 {
            // The previous label must not be at the bottom of the stack.
            self.masked((From::Network, 2u32.wrapping_neg(), Width::Byte), 1, 0)
        } else {
            match self.layers.link {
                Link::Ethernet | Link::NetAnalyzer | Link::CiscoHdlc => self.carries(MPLS)?,
                Link::Ppp => self.carries(MPLS_IN_PPP)?,
                _ => return Err(self.cannot("`mpls`")),
            }
        };
        let numbered =
            label.map(|label| self.masked((From::Network, 0, Width::Word), 0xffff_f000, label << 12));
        self.layers.network = self.layers.network.wrapping_add(4);
        self.layers.network_without_snap = self.layers.network_without_snap.wrapping_add(4);
        self.layers.labels += 1;
        Ok(match numbered {
            Some(numbered) => labelled.and(numbered),
            None => labelled,
        })
    }

    /// Lowers `pppoes`: later terms look at PPP, behind six bytes of PPPoE.
    pub(super) fn pppoe_session(&mut self, session: Option<u32>) -> Lowered {
        let carries = self.carries(PPPOE_SESSION)?;
        let numbered = session.map(|session| self.masked((From::Network, 0, Width::Word), 0xffff, session));
        let ppp = self.network().plus(6);
        self.layers.enter(Link::Ppp, ppp);
        self.layers.kind = ppp;
        self.layers.payload = ppp.plus(2);
        (self.layers.network, self.layers.network_without_snap) = (0, 0);
        Ok(match numbered {
            Some(numbered) => carries.and(numbered),
            None => carries,
        })
    }
}
