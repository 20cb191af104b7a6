//! Headers between the link header and the network header: VLAN tags, MPLS labels, PPPoE.

use super::Site;
use crate::graph::{Graph, Operation, ValueId, Width};
use crate::lower::weir::formula::Formula;
use crate::lower::weir::link::{MOST_TAGS, TAGS};
use crate::lower::weir::stage::Stage;
use crate::lower::weir::tunnel::MOST_LABELS;

impl Site<'_> {
    /// Tests whether `matches` holds for the VLAN ID of any tag.
    pub(super) fn tagged(&mut self, matches: impl Fn(&mut Graph, ValueId) -> Formula) -> Formula {
        self.tags(|graph, _, control| {
            let number = graph.with(Operation::And, control, 0x0fff);
            matches(graph, number)
        })
    }

    /// Tests whether any VLAN tag has this EtherType.
    pub(super) fn tag_type(&mut self, number: u32) -> Formula {
        if !self.level.link.has_tags() {
            return Formula::Never;
        }
        self.tags(|graph, ether_type, _| Formula::equals(graph, ether_type, number))
    }

    /// Tests whether `matches` holds for any VLAN tag, given its EtherType and control information.
    fn tags(&mut self, matches: impl Fn(&mut Graph, ValueId, ValueId) -> Formula) -> Formula {
        // The network header is at the fixed offset only if there is no tag.
        if matches!(self.stage, Stage::Untagged | Stage::Fixed(_) | Stage::Plain) {
            return Formula::Never;
        }
        let link = self.level.link;
        let header = self.level.link_header(self.graph);
        let mut deeper = Formula::Never;
        for tag in (0..MOST_TAGS).rev() {
            let ether_type = header.load(self.graph, link.kind_behind(tag), Width::Half);
            let control = header.load(self.graph, link.header + 4 * tag, Width::Half);
            let is_tag = if tag == 0 && self.stage == Stage::Tagged {
                Formula::Always
            } else {
                Formula::one_of(self.graph, ether_type, &TAGS)
            };
            let this = matches(self.graph, ether_type, control);
            deeper = Formula::all(vec![is_tag, Formula::any(vec![this, deeper])]);
        }
        Formula::all(vec![self.has_link(), deeper])
    }

    /// Tests for a stack of MPLS labels, with `label` among them if given.
    pub(super) fn mpls(&mut self, label: Option<u32>) -> Formula {
        let is_mpls = Formula::any(vec![self.is_kind(0x8847), self.is_kind(0x8848)]);
        let (Some(label), None) = (label, is_mpls.known()) else { return is_mpls };
        let network = self.network();
        let mut deeper = Formula::Never;
        for entry in (0..MOST_LABELS).rev() {
            let word = network.load(self.graph, 4 * entry, Width::Word);
            let number = self.graph.with(Operation::ShiftRight, word, 12);
            let bottom = Formula::any_bit(self.graph, word, 0x100);
            let this = Formula::equals(self.graph, number, label);
            deeper = Formula::any(vec![this, Formula::all(vec![bottom.not(), deeper])]);
        }
        Formula::all(vec![is_mpls, deeper])
    }

    /// Tests for a PPPoE session, with this number if given.
    pub(super) fn pppoe(&mut self, session: Option<u32>) -> Formula {
        let is_session = self.is_kind(0x8864);
        let (Some(session), None) = (session, is_session.known()) else { return is_session };
        let number = self.network().load(self.graph, 2, Width::Half);
        Formula::all(vec![is_session, Formula::equals(self.graph, number, session)])
    }
}
