//! Reading the context: the packet's location and metadata.

use super::{CONTEXT, Code, DATA, END};
use crate::emit::ebpf::Context;
use crate::emit::ebpf::instruction::{
    Alu, FP, Instruction, Jump, R0, R1, R2, R3, R4, Register, Size, XDP_GET_BUFF_LEN,
};
use crate::emit::ebpf::stack::tag;
use crate::graph::Meta;

/// Field offsets in `struct xdp_md` and `struct __sk_buff` (linux/bpf.h).
mod field {
    pub(super) const XDP_DATA: i16 = 0;
    pub(super) const XDP_DATA_END: i16 = 4;
    pub(super) const XDP_INGRESS_IFINDEX: i16 = 12;
    pub(super) const XDP_RX_QUEUE_INDEX: i16 = 16;
    pub(super) const SKB_LEN: i16 = 0;
    pub(super) const SKB_PKT_TYPE: i16 = 4;
    pub(super) const SKB_PROTOCOL: i16 = 16;
    pub(super) const SKB_VLAN_PRESENT: i16 = 20;
    pub(super) const SKB_VLAN_TCI: i16 = 24;
    pub(super) const SKB_VLAN_PROTO: i16 = 28;
    pub(super) const SKB_IFINDEX: i16 = 40;
    pub(super) const SKB_DATA: i16 = 76;
    pub(super) const SKB_DATA_END: i16 = 80;
}

/// `PACKET_OUTGOING` (linux/if_packet.h).
const OUTGOING: u32 = 4;
const ETHERTYPE_AT: i16 = 12;

impl Code<'_> {
    /// Saves the context and the stripped tag.
    pub(super) fn prologue(&mut self) {
        self.out.push(Instruction::alu64(Alu::Move, CONTEXT, R1));
        if matches!(self.context, Context::XdpTagged { .. }) {
            for (place, register) in [R2, R3, R4].into_iter().enumerate() {
                self.out.push(Instruction::store(Size::Word, FP, tag(place), register));
            }
        }
    }

    /// Loads the packet's location.
    pub(super) fn locate(&mut self) {
        let (data, end) = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => (field::XDP_DATA, field::XDP_DATA_END),
            Context::Tc { .. } => (field::SKB_DATA, field::SKB_DATA_END),
            Context::Socket => return self.length(END),
        };
        self.out.push(Instruction::load(Size::Word, DATA, CONTEXT, data));
        self.out.push(Instruction::load(Size::Word, END, CONTEXT, end));
    }

    /// Returns whether the packet's length needs a helper call.
    pub(super) fn length_by_call(&self) -> bool {
        matches!(
            self.context,
            Context::Xdp { fragments: true, .. } | Context::XdpTagged { fragments: true, .. }
        )
    }

    /// Loads the packet's length into a register, where no call is needed.
    pub(super) fn length(&mut self, register: Register) {
        match self.context {
            Context::Tc { .. } | Context::Socket => {
                self.out.push(Instruction::load(Size::Word, register, CONTEXT, field::SKB_LEN));
            }
            Context::Xdp { .. } | Context::XdpTagged { .. } => {
                self.out.push(Instruction::alu64(Alu::Move, register, END));
                self.out.push(Instruction::alu64(Alu::Subtract, register, DATA));
                self.out.push(Instruction::alu(Alu::Move, register, register));
            }
        }
    }

    /// Loads the packet's length into `r0` by a call.
    pub(super) fn length_of_all_buffers(&mut self) {
        self.out.push(Instruction::alu64(Alu::Move, R1, CONTEXT));
        self.out.push(Instruction::call(XDP_GET_BUFF_LEN));
        self.out.push(Instruction::alu(Alu::Move, R0, R0));
    }

    pub(super) fn meta(&mut self, meta: Meta, register: Register) {
        match self.context {
            Context::Tc { .. } | Context::Socket => self.skb_meta(meta, register),
            Context::Xdp { .. } | Context::XdpTagged { .. } => self.xdp_meta(meta, register),
        }
    }

    fn skb_meta(&mut self, meta: Meta, register: Register) {
        let at = match meta {
            Meta::PacketType if self.context == (Context::Tc { outgoing: true }) => {
                return self.out.push(Instruction::alu_number(Alu::Move, register, OUTGOING));
            }
            Meta::PacketType => field::SKB_PKT_TYPE,
            Meta::Protocol => field::SKB_PROTOCOL,
            Meta::Interface => field::SKB_IFINDEX,
            Meta::VlanTag => field::SKB_VLAN_TCI,
            Meta::VlanPresent => field::SKB_VLAN_PRESENT,
            Meta::VlanProtocol => field::SKB_VLAN_PROTO,
        };
        self.out.push(Instruction::load(Size::Word, register, CONTEXT, at));
        if matches!(meta, Meta::Protocol | Meta::VlanProtocol) {
            self.out.push(Instruction::swap(register, 16));
        }
    }

    fn xdp_meta(&mut self, meta: Meta, register: Register) {
        let tagged = matches!(self.context, Context::XdpTagged { .. });
        if let (
            Meta::Interface,
            Context::Xdp { interface: Some(interface), .. }
            | Context::XdpTagged { interface: Some(interface), .. },
        ) = (meta, self.context)
        {
            return self.out.push(Instruction::alu_number(Alu::Move, register, interface));
        }
        match meta {
            Meta::Interface => {
                let at = field::XDP_INGRESS_IFINDEX;
                self.out.push(Instruction::load(Size::Word, register, CONTEXT, at));
            }
            // What the driver would set when the packet goes on to the stack.
            Meta::Protocol => {
                let short = self.out.local();
                self.out.push(Instruction::alu_number(Alu::Move, register, 0));
                self.out.push(Instruction::alu64(Alu::Move, R2, DATA));
                self.out.push(Instruction::alu64_number(Alu::Add, R2, i32::from(ETHERTYPE_AT) + 2));
                self.out.jump(Instruction::jump64(Jump::Greater, R2, END), short);
                self.out.push(Instruction::load(Size::Half, register, DATA, ETHERTYPE_AT));
                self.out.push(Instruction::swap(register, 16));
                self.out.bind(short);
            }
            Meta::VlanPresent if tagged => {
                self.out.push(Instruction::load(Size::Word, register, FP, tag(0)));
            }
            Meta::VlanProtocol if tagged => {
                self.out.push(Instruction::load(Size::Word, register, FP, tag(1)));
            }
            Meta::VlanTag if tagged => {
                self.out.push(Instruction::load(Size::Word, register, FP, tag(2)));
            }
            Meta::PacketType | Meta::VlanPresent | Meta::VlanProtocol | Meta::VlanTag => {
                self.out.push(Instruction::alu_number(Alu::Move, register, 0));
            }
        }
    }

    /// Sets `r0` to zero without the verifier knowing. It tracks zeros on the stack, and would verify the code that
    /// follows again for each path with another number there.
    pub(super) fn forgettable_zero(&mut self) {
        let any = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => field::XDP_RX_QUEUE_INDEX,
            Context::Tc { .. } | Context::Socket => field::SKB_IFINDEX,
        };
        self.out.push(Instruction::load(Size::Word, R0, CONTEXT, any));
        self.out.push(Instruction::load(Size::Word, R1, CONTEXT, any));
        self.out.push(Instruction::alu(Alu::Subtract, R0, R1));
    }
}
