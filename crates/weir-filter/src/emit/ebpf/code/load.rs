//! Loads of packet bytes, direct or by a helper.

use super::{CONTEXT, Code, DATA, END, is_linear};
use crate::emit::ebpf::assembler::Label;
use crate::emit::ebpf::instruction::{
    Alu, FP, Instruction, Jump, R0, R1, R2, R3, R4, Register, SKB_LOAD_BYTES, Size, XDP_LOAD_BYTES,
};
use crate::emit::ebpf::stack::BUFFER;
use crate::emit::ebpf::{Context, LINEAR_MOST};
use crate::graph::{Graph, Width};

pub(super) enum ByteOrder {
    /// The number they stand for.
    Number,
    /// The bytes in packet order: the number they are compared with was swapped instead.
    Wire,
}

impl Code<'_> {
    /// Loads from a fixed offset. Where [`Code::is_leaf`] holds, no register except `r2` is clobbered.
    pub(super) fn load_fixed(&mut self, offset: u32, width: Width, order: ByteOrder, register: Register) {
        if let Some(end) = self.end_of_direct(offset, width) {
            self.show(end);
            let offset = i16::try_from(offset).expect("below the most that is read directly");
            self.out.push(Instruction::load(size(width), register, DATA, offset));
            self.turn(width, order, register);
        } else {
            self.out.push(Instruction::alu_number(Alu::Move, R0, offset));
            self.load(0, width, order);
        }
    }

    /// Returns the end of a load from a fixed offset, if it needs no call.
    pub(super) fn end_of_direct(&self, offset: u32, width: Width) -> Option<u32> {
        let end = offset.checked_add(width as u32).filter(|end| *end <= LINEAR_MOST)?;
        self.fast.then_some(end)
    }

    /// Checks that the packet has `end` bytes, and all that are needed later in any case.
    fn show(&mut self, end: u32) {
        if self.known >= end {
            return;
        }
        let certain = self.analysis.certain[self.node as usize];
        let end = if certain == u32::MAX { end } else { end.max(certain) };
        let bytes = i32::try_from(end).expect("below the most that is read directly");
        self.out.push(Instruction::alu64(Alu::Move, R2, DATA));
        self.out.push(Instruction::alu64_number(Alu::Add, R2, bytes));
        let miss = self.beyond_first_buffer();
        self.out.jump(Instruction::jump64(Jump::Greater, R2, END), miss);
        self.known = end;
    }

    /// Returns where to continue if bytes are not in the first buffer.
    fn beyond_first_buffer(&mut self) -> Label {
        if is_linear(self.context) { Label::Fast(Graph::REFUSE.0) } else { self.slow_way() }
    }

    /// Returns the label of this node on the slow path.
    fn slow_way(&mut self) -> Label {
        self.slow[self.node as usize] = true;
        Label::Slow(self.node)
    }

    /// Sets `r0` to the bytes of the packet at `r0 + offset`.
    pub(super) fn load(&mut self, offset: u32, width: Width, order: ByteOrder) {
        if offset != 0 {
            self.out.push(Instruction::alu_number(Alu::Add, R0, offset));
        }
        if self.fast {
            if may_be_refused(offset) {
                self.out.push(Instruction::alu_number(Alu::Add, R0, 0));
            }
            self.load_direct(width)
        } else if self.context == Context::Socket {
            self.load_of_socket(width)
        } else {
            self.load_by_helper(width)
        }
        self.turn(width, order, R0);
    }

    fn load_direct(&mut self, width: Width) {
        let most = i32::try_from(LINEAR_MOST).expect("fifteen bits");
        let far = self.slow_way();
        self.out.jump(Instruction::jump64_number(Jump::Greater, R0, most), far);
        self.out.push(Instruction::alu64(Alu::Move, R2, DATA));
        self.out.push(Instruction::alu64(Alu::Add, R2, R0));
        self.out.push(Instruction::alu64(Alu::Move, R3, R2));
        self.out.push(Instruction::alu64_number(Alu::Add, R3, width as i32));
        let miss = self.beyond_first_buffer();
        self.out.jump(Instruction::jump64(Jump::Greater, R3, END), miss);
        self.out.push(Instruction::load(size(width), R0, R2, 0));
    }

    /// The instruction for it returns the number, without the copy that a helper makes, but ends the program if bytes are
    /// missing: a packet would be rejected without being counted.
    fn load_of_socket(&mut self, width: Width) {
        self.out.push(Instruction::alu64(Alu::Move, R2, R0));
        self.out.push(Instruction::alu64_number(Alu::Add, R2, width as i32));
        self.check(
            Instruction::jump64(Jump::Greater, R2, END),
            Instruction::jump64(Jump::AtMost, R2, END),
            Label::Fast(Graph::REFUSE.0),
        );
        self.out.push(Instruction::load_packet(size(width), R0));
    }

    fn load_by_helper(&mut self, width: Width) {
        let helper = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => XDP_LOAD_BYTES,
            Context::Tc { .. } => SKB_LOAD_BYTES,
            Context::Socket => unreachable!("it has an instruction for it"),
        };
        self.out.push(Instruction::alu(Alu::Move, R2, R0));
        self.out.push(Instruction::alu64(Alu::Move, R1, CONTEXT));
        self.out.push(Instruction::alu64(Alu::Move, R3, FP));
        self.out.push(Instruction::alu64_number(Alu::Add, R3, BUFFER.into()));
        self.out.push(Instruction::alu_number(Alu::Move, R4, width as u32));
        self.out.push(Instruction::call(helper));
        let refuse = Label::Fast(Graph::REFUSE.0);
        self.check(
            Instruction::jump64_number(Jump::NotEqual, R0, 0),
            Instruction::jump64_number(Jump::Equal, R0, 0),
            refuse,
        );
        self.out.push(Instruction::load(size(width), R0, FP, BUFFER));
    }

    /// Returns whether loads give numbers instead of bytes in packet order.
    pub(super) fn loads_numbers(&self) -> bool {
        self.context == Context::Socket
    }

    fn turn(&mut self, width: Width, order: ByteOrder, register: Register) {
        match (order, width) {
            _ if self.loads_numbers() => {}
            (ByteOrder::Wire, _) | (ByteOrder::Number, Width::Byte) => {}
            (ByteOrder::Number, Width::Half) => self.out.push(Instruction::swap(register, 16)),
            (ByteOrder::Number, Width::Word) => self.out.push(Instruction::swap(register, 32)),
        }
    }
}

/// Returns whether the verifier may reject `r0`, to which `offset` was just added, as an offset into the packet.
///
/// The verifier tracks the constant last added to a copy of another register (`BPF_ADD_CONST`) and rejects 2^29 or
/// more, even after a bounds check (seen on Linux 6.18.44). A second addition resets this. If `offset` is 0, the base
/// itself may have been computed by such an addition.
fn may_be_refused(offset: u32) -> bool {
    offset == 0 || offset.cast_signed().unsigned_abs() >= 1 << 29
}

fn size(width: Width) -> Size {
    match width {
        Width::Byte => Size::Byte,
        Width::Half => Size::Half,
        Width::Word => Size::Word,
    }
}
