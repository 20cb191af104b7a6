//! The filter in the pump, for what the kernel's socket filter cannot do.
//!
//! The packets of `any` have no link-layer header in the kernel; here the filter sees them as they will be saved. The
//! packets of a single interface are filtered here if classic BPF cannot express the filter. It sees them as in the
//! kernel: with the stripped tag beside them.

use std::sync::Arc;

use weir_filter::cbpf;
use weir_filter::interpret::{Metadata, Packet as Asked, VlanTag};
use weir_sys::packet::Packet;

use super::record_encoder::{self, RecordEncoder};
use crate::filter::{self, Compiled};
use crate::live::ruled::Decider;

/// A filter for packets of the ring.
#[derive(Debug)]
pub(super) struct PumpFilter {
    matcher: Matcher,
    /// Buffer for a packet as it will be saved.
    saved: Vec<u8>,
    /// Packets that the kernel has cut to this length were accepted by the previous filter, which ran in the kernel.
    cut: Option<u32>,
}

#[derive(Debug)]
enum Matcher {
    Own(filter::Matcher),
    /// A filter made by another process: it needs no names, sets or compiler here.
    Classic(cbpf::Program),
}

impl PumpFilter {
    pub(super) fn new(filter: &Arc<Compiled>) -> Self {
        Self { matcher: Matcher::Own(filter::Matcher::new(filter)), saved: Vec::new(), cut: None }
    }

    /// Makes a filter from a classic BPF program that was checked before.
    pub(super) fn classic(program: cbpf::Program) -> Self {
        Self { matcher: Matcher::Classic(program), saved: Vec::new(), cut: None }
    }

    /// Accepts packets that the kernel has cut to `length` for its previous filter: they can no longer be tested.
    pub(super) fn behind(self, length: u32) -> Self {
        Self { cut: Some(length), ..self }
    }

    /// Returns why the filter is interpreted; `None` if it is compiled to machine code.
    pub(super) fn why_interpreted(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Own(matcher) => matcher.why_interpreted(),
            Matcher::Classic(_) => Some("it is classic BPF"),
        }
    }

    /// Whether `packet` matches.
    pub(super) fn wants(&mut self, packet: &Packet<'_>, encoder: &RecordEncoder) -> bool {
        let asked = if encoder.cooked {
            let length = record_encoder::whole(packet, &mut self.saved);
            Asked { data: &self.saved, length, meta: Metadata::default() }
        } else {
            let length = u32::try_from(packet.data.len()).ok();
            if self.cut.is_some() && self.cut == length && length < Some(packet.original_len) {
                return true;
            }
            as_in_the_kernel(packet)
        };
        match &self.matcher {
            Matcher::Own(matcher) => matcher.matches(&asked),
            Matcher::Classic(program) => program.run(&asked) > 0,
        }
    }
}

/// Asks rules about a packet. `saved`: a buffer for it as it will be saved.
pub(super) fn decide(
    rules: &mut Decider,
    packet: &Packet<'_>,
    encoder: &RecordEncoder,
    saved: &mut Vec<u8>,
) -> bool {
    if encoder.cooked {
        let length = record_encoder::whole(packet, saved);
        return rules.wants(&Asked { data: saved, length, meta: Metadata::default() }, packet.timestamp);
    }
    rules.wants(&as_in_the_kernel(packet), packet.timestamp)
}

/// Returns a packet as a filter sees it in the kernel, with the stripped tag beside it.
pub fn as_in_the_kernel<'a>(packet: &Packet<'a>) -> Asked<'a> {
    let vlan = packet.tag.map(|[a, b, c, d]| VlanTag {
        protocol: u16::from_be_bytes([a, b]),
        tci: u16::from_be_bytes([c, d]),
    });
    let meta = Metadata {
        protocol: u16::from_be_bytes(packet.origin.protocol()),
        packet_type: packet.origin.kind(),
        interface: packet.origin.interface(),
        vlan,
    };
    Asked { data: packet.data, length: packet.original_len, meta }
}
