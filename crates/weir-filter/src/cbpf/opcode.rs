//! Operations of instructions: decoding and encoding the 16 bits of `code` (linux/bpf_common.h).

use crate::graph::{Meta, Operation, Relation, Width};

/// The source of the second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The instruction's `k`.
    Constant,
    /// The index register.
    X,
}

/// The operation of an instruction on the accumulator A, the index register X, and scratch memory M.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A = packet at `k`, or [metadata](ANCILLARY).
    LoadAbsolute(Width),
    /// A = packet at `X + k`.
    LoadIndirect(Width),
    /// A = `k`.
    LoadConstant,
    /// A = packet length.
    LoadLength,
    /// A = `M[k]`.
    LoadMemory,
    /// X = `k`.
    LoadXConstant,
    /// X = packet length.
    LoadXLength,
    /// X = `M[k]`.
    LoadXMemory,
    /// X = 4 * (packet byte at `k` & 15), the length of an IPv4 header.
    LoadXHeaderLength,
    /// `M[k]` = A.
    Store,
    /// `M[k]` = X.
    StoreX,
    /// A = A operation operand.
    Arithmetic(Operation, Operand),
    /// A = -A.
    Negate,
    /// Skips `k` instructions.
    Jump,
    /// Branches on a comparison of A with the operand.
    Branch(Relation, Operand),
    /// Returns `k`.
    ReturnConstant,
    /// Returns A.
    ReturnA,
    /// X = A.
    CopyToX,
    /// A = X.
    CopyToA,
}

pub(super) const LD: u16 = 0;
pub(super) const LDX: u16 = 1;
pub(super) const ST: u16 = 2;
pub(super) const STX: u16 = 3;
pub(super) const ALU: u16 = 4;
pub(super) const JMP: u16 = 5;
pub(super) const RET: u16 = 6;
const MISC: u16 = 7;

const ABS: u16 = 0x20;
const IND: u16 = 0x40;
pub(super) const MEM: u16 = 0x60;
const LEN: u16 = 0x80;
pub(super) const MSH: u16 = 0xa0;
/// The operand is X.
pub(super) const X: u16 = 0x08;

const WIDTHS: [(Width, u16); 3] = [(Width::Word, 0), (Width::Half, 0x08), (Width::Byte, 0x10)];
const OPERATIONS: [(Operation, u16); 10] = [
    (Operation::Add, 0x00),
    (Operation::Subtract, 0x10),
    (Operation::Multiply, 0x20),
    (Operation::Divide, 0x30),
    (Operation::Or, 0x40),
    (Operation::And, 0x50),
    (Operation::ShiftLeft, 0x60),
    (Operation::ShiftRight, 0x70),
    (Operation::Remainder, 0x90),
    (Operation::Xor, 0xa0),
];
const RELATIONS: [(Relation, u16); 4] =
    [(Relation::Equal, 0x10), (Relation::Greater, 0x20), (Relation::AtLeast, 0x30), (Relation::AnyBit, 0x40)];

impl Opcode {
    /// Decodes `code`; returns `None` if the kernel knows no such instruction.
    pub fn decode(code: u16) -> Option<Self> {
        let width = || WIDTHS.iter().find(|(_, bits)| *bits == code & 0x18).map(|(width, _)| *width);
        let operand = if code & X == 0 { Operand::Constant } else { Operand::X };
        let opcode = match code & 7 {
            LD => match code & 0xe0 {
                0 => Self::LoadConstant,
                ABS => Self::LoadAbsolute(width()?),
                IND => Self::LoadIndirect(width()?),
                MEM => Self::LoadMemory,
                LEN => Self::LoadLength,
                _ => return None,
            },
            LDX => match code & 0xe0 {
                0 => Self::LoadXConstant,
                MEM => Self::LoadXMemory,
                LEN => Self::LoadXLength,
                MSH => Self::LoadXHeaderLength,
                _ => return None,
            },
            ST => Self::Store,
            STX => Self::StoreX,
            ALU if code & 0xf0 == 0x80 => Self::Negate,
            ALU => Self::Arithmetic(known(&OPERATIONS, code & 0xf0)?, operand),
            JMP if code & 0xf0 == 0 => Self::Jump,
            JMP => Self::Branch(known(&RELATIONS, code & 0xf0)?, operand),
            RET if code & 0x18 == 0 => Self::ReturnConstant,
            RET => Self::ReturnA,
            MISC if code & 0xf8 == 0 => Self::CopyToX,
            MISC => Self::CopyToA,
            _ => return None,
        };
        (opcode.code() == code).then_some(opcode)
    }

    /// Encodes the operation.
    pub fn code(self) -> u16 {
        match self {
            Self::LoadAbsolute(width) => LD | ABS | bits(&WIDTHS, width),
            Self::LoadIndirect(width) => LD | IND | bits(&WIDTHS, width),
            Self::LoadConstant => LD,
            Self::LoadLength => LD | LEN,
            Self::LoadMemory => LD | MEM,
            Self::LoadXConstant => LDX,
            Self::LoadXLength => LDX | LEN,
            Self::LoadXMemory => LDX | MEM,
            Self::LoadXHeaderLength => LDX | MSH | bits(&WIDTHS, Width::Byte),
            Self::Store => ST,
            Self::StoreX => STX,
            Self::Arithmetic(operation, operand) => ALU | bits(&OPERATIONS, operation) | operand.bit(),
            Self::Negate => ALU | 0x80,
            Self::Jump => JMP,
            Self::Branch(relation, operand) => JMP | bits(&RELATIONS, relation) | operand.bit(),
            Self::ReturnConstant => RET,
            Self::ReturnA => RET | 0x10,
            Self::CopyToX => MISC,
            Self::CopyToA => MISC | 0x80,
        }
    }
}

impl Operand {
    fn bit(self) -> u16 {
        match self {
            Self::Constant => 0,
            Self::X => X,
        }
    }
}

fn known<T: Copy>(table: &[(T, u16)], bits: u16) -> Option<T> {
    table.iter().find(|(_, known)| *known == bits).map(|(meaning, _)| *meaning)
}

fn bits<T: PartialEq>(table: &[(T, u16)], meaning: T) -> u16 {
    table.iter().find(|(known, _)| *known == meaning).expect("all are in the table").1
}

/// First offset at which an absolute load reads metadata (`SKF_AD_OFF`).
pub const ANCILLARY: u32 = 0xffff_f000;

/// First offset that the kernel counts from its link-layer header (`SKF_LL_OFF`); from 0xfff00000 on, it counts from
/// its network header (`SKF_NET_OFF`). Offsets from 2^31 up to this one find nothing
/// (`bpf_internal_load_pointer_neg_helper`).
pub(super) const LINK_LAYER: u32 = 0xffe0_0000;

/// Linux's metadata fields (`SKF_AD_*`), at offsets four apart, by their names in `tcpdump -d`.
pub(super) const ANCILLARY_NAMES: [&str; 16] = [
    "proto",
    "type",
    "ifidx",
    "nla",
    "nlan",
    "mark",
    "queue",
    "hatype",
    "rxhash",
    "cpu",
    "xor_x",
    "vlan_tci",
    "vlanp",
    "poff",
    "random",
    "vlan_tpid",
];

/// A = A ^ X, encoded as a load (`SKF_AD_ALU_XOR_X`).
pub(super) const ANCILLARY_XOR_X: u32 = ANCILLARY + 40;

/// Returns the name of the metadata field that an absolute load at `offset` reads, if Linux has one.
pub(super) fn ancillary_name(offset: u32) -> Option<&'static str> {
    let index = offset.checked_sub(ANCILLARY)?;
    ANCILLARY_NAMES.get(index as usize / 4).filter(|_| index % 4 == 0).copied()
}

/// Returns the [`Meta`] that an absolute load at `offset` reads, if any. The other fields are useless to packet filters
/// or known only to the kernel.
pub fn ancillary_meta(offset: u32) -> Option<Meta> {
    const ALL: [Meta; 6] = [
        Meta::Protocol,
        Meta::PacketType,
        Meta::Interface,
        Meta::VlanTag,
        Meta::VlanPresent,
        Meta::VlanProtocol,
    ];
    ALL.into_iter().find(|meta| meta.offset() == offset)
}

impl Meta {
    /// Returns the offset of the field in classic BPF.
    pub fn offset(self) -> u32 {
        ANCILLARY
            + match self {
                Self::Protocol => 0,
                Self::PacketType => 4,
                Self::Interface => 8,
                Self::VlanTag => 44,
                Self::VlanPresent => 48,
                Self::VlanProtocol => 60,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_has_the_same_code() {
        let known = (0..=u16::MAX).filter_map(|code| Some((code, Opcode::decode(code)?)));
        let codes: Vec<u16> =
            known.inspect(|(code, opcode)| assert_eq!(opcode.code(), *code)).map(|(code, _)| code).collect();
        // The number of instructions that chk_code_allowed in net/core/filter.c lists.
        assert_eq!(codes.len(), 49, "{codes:x?}");
    }
}
