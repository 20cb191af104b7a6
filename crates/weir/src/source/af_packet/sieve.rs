//! The filter in the pump: for what the kernel's socket filter cannot be asked.
//!
//! The packets of `any` have no link-layer header in the kernel; here they are asked about as they will be saved. Those of
//! one interface come here where no classic BPF can say what is wanted, and are asked about as in the kernel: with the tag
//! that was stripped beside them.

use std::sync::Arc;

use weir_filter::cbpf;
use weir_filter::interpret::{Metadata, Packet as Asked, VlanTag};
use weir_sys::packet::Packet;

use super::form::{self, Form};
use crate::filter::{self, Compiled};

/// Lets those packets through that are wanted.
#[derive(Debug)]
pub(super) struct Sieve {
    matcher: Matcher,
    /// A packet as it will be saved.
    saved: Vec<u8>,
    /// Packets that the kernel has cut to this length were let in by the filter before, which was asked in the kernel.
    cut: Option<u32>,
}

#[derive(Debug)]
enum Matcher {
    Own(filter::Matcher),
    /// What another process has made: it takes no names, no sets and no compiler here.
    Classic(cbpf::Program),
}

impl Sieve {
    pub(super) fn new(filter: &Arc<Compiled>) -> Self {
        Self { matcher: Matcher::Own(filter::Matcher::new(filter)), saved: Vec::new(), cut: None }
    }

    /// One that asks a program in classic BPF, which was checked.
    pub(super) fn classic(program: cbpf::Program) -> Self {
        Self { matcher: Matcher::Classic(program), saved: Vec::new(), cut: None }
    }

    /// The same behind a filter in the kernel that has packets cut to `length`: they cannot be asked about any more.
    pub(super) fn behind(self, length: u32) -> Self {
        Self { cut: Some(length), ..self }
    }

    /// Why no machine code asks; `None`: it does.
    pub(super) fn why_interpreted(&self) -> Option<&str> {
        match &self.matcher {
            Matcher::Own(matcher) => matcher.why_interpreted(),
            Matcher::Classic(_) => Some("it is classic BPF"),
        }
    }

    /// Whether `packet` is wanted.
    pub(super) fn wants(&mut self, packet: &Packet<'_>, form: &Form) -> bool {
        let asked = if form.cooked {
            let length = form::whole(packet, &mut self.saved);
            Asked { data: &self.saved, length, meta: Metadata::default() }
        } else {
            let length = u32::try_from(packet.data.len()).ok();
            if self.cut.is_some() && self.cut == length && length < Some(packet.original_len) {
                return true;
            }
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
        };
        match &self.matcher {
            Matcher::Own(matcher) => matcher.matches(&asked),
            Matcher::Classic(program) => program.run(&asked) > 0,
        }
    }
}
