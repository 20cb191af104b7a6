//! Printing a program as `tcpdump -d`, `-dd` and `-ddd` do, byte for byte.

use std::fmt::Write;

use super::opcode::ancillary_name;
use super::{Instruction, Opcode, Operand, Program};
use crate::graph::{Operation, Relation, Width};

impl Program {
    /// Returns the output of `tcpdump -d`: a listing, one instruction per line.
    pub fn listing(&self) -> String {
        let line = |(at, instruction): (i32, &Instruction)| format!("{}\n", instruction.image(at));
        (0..).zip(&self.instructions).map(line).collect()
    }

    /// Returns the output of `tcpdump -dd`: code to include in a C program.
    pub fn as_c(&self) -> String {
        let line = |&Instruction { code, jt, jf, k }: &Instruction| {
            format!("{{ {code:#x}, {jt}, {jf}, 0x{k:08x} }},\n")
        };
        self.instructions.iter().map(line).collect()
    }

    /// Returns the output of `tcpdump -ddd`: decimal numbers, preceded by their count.
    pub fn as_numbers(&self) -> String {
        let mut text = format!("{}\n", self.len());
        for Instruction { code, jt, jf, k } in &self.instructions {
            writeln!(text, "{code} {jt} {jf} {k}").expect("a string takes all");
        }
        text
    }
}

impl Instruction {
    /// Returns the instruction, at index `at` of its program, as `tcpdump -d` prints it (`bpf_image`).
    pub fn image(&self, at: i32) -> String {
        let (name, operand) = self.words(at);
        let line = format!("({at:03}) {name:<8} ");
        // The class and operation of a branch, even of one unknown to the kernel.
        if self.code & 7 != Opcode::Jump.code() || self.code & 0xf0 == 0 {
            return line + &operand;
        }
        let target = |distance: u8| at.wrapping_add(1 + i32::from(distance));
        format!("{line}{operand:<16} jt {}\tjf {}", target(self.jt), target(self.jf))
    }

    fn words(&self, at: i32) -> (&'static str, String) {
        let k = self.k;
        let signed = k.cast_signed();
        let nothing = String::new;
        match self.opcode() {
            // The kernel knows the second, but libpcap has no word for it.
            None | Some(Opcode::LoadXLength) => ("unimp", format!("{:#x}", self.code)),
            Some(Opcode::LoadAbsolute(width)) => {
                let offset = ancillary_name(k).map_or_else(|| signed.to_string(), str::to_owned);
                (load(width), format!("[{offset}]"))
            }
            Some(Opcode::LoadIndirect(width)) => (load(width), format!("[x + {signed}]")),
            Some(Opcode::LoadConstant) => ("ld", format!("#{k:#x}")),
            Some(Opcode::LoadLength) => ("ld", "#pktlen".to_owned()),
            Some(Opcode::LoadMemory) => ("ld", format!("M[{signed}]")),
            Some(Opcode::LoadXConstant) => ("ldx", format!("#{k:#x}")),
            Some(Opcode::LoadXMemory) => ("ldx", format!("M[{signed}]")),
            Some(Opcode::LoadXHeaderLength) => ("ldxb", format!("4*([{signed}]&0xf)")),
            Some(Opcode::Store) => ("st", format!("M[{signed}]")),
            Some(Opcode::StoreX) => ("stx", format!("M[{signed}]")),
            Some(Opcode::Arithmetic(operation, operand)) => {
                let bits = matches!(operation, Operation::And | Operation::Or | Operation::Xor);
                let number = if bits { format!("{k:#x}") } else { signed.to_string() };
                (arithmetic(operation), or_x(operand, number))
            }
            Some(Opcode::Negate) => ("neg", nothing()),
            Some(Opcode::Jump) => ("ja", at.wrapping_add(1).wrapping_add(signed).to_string()),
            Some(Opcode::Branch(relation, operand)) => (jump(relation), or_x(operand, format!("{k:#x}"))),
            Some(Opcode::ReturnConstant) => ("ret", format!("#{signed}")),
            Some(Opcode::ReturnA) => ("ret", nothing()),
            Some(Opcode::CopyToX) => ("tax", nothing()),
            Some(Opcode::CopyToA) => ("txa", nothing()),
        }
    }
}

fn or_x(operand: Operand, number: String) -> String {
    match operand {
        Operand::Constant => format!("#{number}"),
        Operand::X => "x".to_owned(),
    }
}

fn load(width: Width) -> &'static str {
    match width {
        Width::Byte => "ldb",
        Width::Half => "ldh",
        Width::Word => "ld",
    }
}

fn arithmetic(operation: Operation) -> &'static str {
    match operation {
        Operation::Add => "add",
        Operation::Subtract => "sub",
        Operation::Multiply => "mul",
        Operation::Divide => "div",
        Operation::Remainder => "mod",
        Operation::And => "and",
        Operation::Or => "or",
        Operation::Xor => "xor",
        Operation::ShiftLeft => "lsh",
        Operation::ShiftRight => "rsh",
    }
}

fn jump(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "jeq",
        Relation::Greater => "jgt",
        Relation::AtLeast => "jge",
        Relation::AnyBit => "jset",
    }
}
