//! Instructions of eBPF (RFC 9669), as far as filters are made of them, and their notation.

use std::fmt;

/// A register: `r0` answers, `r1` to `r5` are arguments and lost in calls, `r6` to `r9` are kept, `r10` is the stack's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u8);

/// One instruction, or half of the only one that takes two: a load of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub code: u8,
    /// The register that it changes or compares.
    pub destination: Register,
    /// The register that it reads.
    pub source: Register,
    /// Instructions to jump over, or bytes to add to an address.
    pub offset: i16,
    /// A number.
    pub immediate: i32,
}

/// Bytes that are moved between memory and a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
    Double = 0x18,
}

/// Operations, by their codes: those of the graph, and moving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Remainder = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
}

/// Unsigned comparisons, by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    Equal = 0x10,
    Greater = 0x20,
    AtLeast = 0x30,
    AnyBit = 0x40,
    NotEqual = 0x50,
    Less = 0xa0,
    AtMost = 0xb0,
}

const CLASS_LOAD: u8 = 0x00;
const CLASS_LOAD_MEMORY: u8 = 0x01;
const CLASS_STORE_NUMBER: u8 = 0x02;
const CLASS_STORE: u8 = 0x03;
const CLASS_ALU: u8 = 0x04;
const CLASS_JUMP: u8 = 0x05;
const CLASS_JUMP32: u8 = 0x06;
const CLASS_ALU64: u8 = 0x07;
const MODE_MEMORY: u8 = 0x60;
/// The second operand is a register, not the immediate number.
const REGISTER: u8 = 0x08;
const ALWAYS: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const SWAP: u8 = 0xd0;
/// A load of 64 bits: the size of a double word, an immediate number.
const WIDE: u8 = CLASS_LOAD | 0x18;

pub(super) const R0: Register = Register(0);
pub(super) const R1: Register = Register(1);
pub(super) const R2: Register = Register(2);
pub(super) const R3: Register = Register(3);
pub(super) const R4: Register = Register(4);
/// The frame pointer.
pub(super) const FP: Register = Register(10);

/// `BPF_PSEUDO_MAP_FD`: the number of a wide load is a map's descriptor.
const MAP: Register = Register(1);

impl Instruction {
    fn new(code: u8, destination: Register, source: Register, offset: i16, immediate: i32) -> Self {
        Self { code, destination, source, offset, immediate }
    }

    /// `destination = *(size *)(base + offset)`
    pub(super) fn load(size: Size, destination: Register, base: Register, offset: i16) -> Self {
        Self::new(CLASS_LOAD_MEMORY | MODE_MEMORY | size as u8, destination, base, offset, 0)
    }

    /// `*(size *)(base + offset) = source`
    pub(super) fn store(size: Size, base: Register, offset: i16, source: Register) -> Self {
        Self::new(CLASS_STORE | MODE_MEMORY | size as u8, base, source, offset, 0)
    }

    /// `*(size *)(base + offset) = number`
    pub(super) fn store_number(size: Size, base: Register, offset: i16, number: i32) -> Self {
        Self::new(CLASS_STORE_NUMBER | MODE_MEMORY | size as u8, base, R0, offset, number)
    }

    /// 32 bits, with zeros above: `destination = destination operation source`
    pub(super) fn alu(operation: Alu, destination: Register, source: Register) -> Self {
        Self::new(CLASS_ALU | REGISTER | operation as u8, destination, source, 0, 0)
    }

    /// 32 bits, with zeros above: `destination = destination operation number`
    pub(super) fn alu_number(operation: Alu, destination: Register, number: u32) -> Self {
        Self::new(CLASS_ALU | operation as u8, destination, R0, 0, number.cast_signed())
    }

    /// 64 bits: `destination = destination operation source`
    pub(super) fn alu64(operation: Alu, destination: Register, source: Register) -> Self {
        Self::new(CLASS_ALU64 | REGISTER | operation as u8, destination, source, 0, 0)
    }

    /// 64 bits: `destination = destination operation number`
    pub(super) fn alu64_number(operation: Alu, destination: Register, number: i32) -> Self {
        Self::new(CLASS_ALU64 | operation as u8, destination, R0, 0, number)
    }

    /// From network byte order: `destination = be16(destination)`, or of 32 bits.
    pub(super) fn swap(destination: Register, bits: i32) -> Self {
        Self::new(CLASS_ALU | REGISTER | SWAP, destination, R0, 0, bits)
    }

    /// 32 bits: `if (destination jump source) goto ...`
    pub(super) fn jump(jump: Jump, destination: Register, source: Register) -> Self {
        Self::new(CLASS_JUMP32 | REGISTER | jump as u8, destination, source, 0, 0)
    }

    /// 32 bits: `if (destination jump number) goto ...`
    pub(super) fn jump_number(jump: Jump, destination: Register, number: u32) -> Self {
        Self::new(CLASS_JUMP32 | jump as u8, destination, R0, 0, number.cast_signed())
    }

    /// 64 bits: `if (destination jump source) goto ...`
    pub(super) fn jump64(jump: Jump, destination: Register, source: Register) -> Self {
        Self::new(CLASS_JUMP | REGISTER | jump as u8, destination, source, 0, 0)
    }

    /// 64 bits: `if (destination jump number) goto ...`
    pub(super) fn jump64_number(jump: Jump, destination: Register, number: i32) -> Self {
        Self::new(CLASS_JUMP | jump as u8, destination, R0, 0, number)
    }

    /// `goto ...`
    pub(super) fn always() -> Self {
        Self::new(CLASS_JUMP | ALWAYS, R0, R0, 0, 0)
    }

    /// `r0 = helper(r1, ...)`, by its number in `enum bpf_func_id`
    pub(super) fn call(helper: i32) -> Self {
        Self::new(CLASS_JUMP | CALL, R0, R0, 0, helper)
    }

    /// `return r0`
    pub(super) fn exit() -> Self {
        Self::new(CLASS_JUMP | EXIT, R0, R0, 0, 0)
    }

    /// `destination = map`, to be filled in with a descriptor; in two halves.
    pub(super) fn map(destination: Register) -> [Self; 2] {
        [Self::new(WIDE, destination, MAP, 0, 0), Self::new(0, R0, R0, 0, 0)]
    }

    /// As the kernel takes it: `struct bpf_insn` as a word of this machine.
    pub fn to_word(self) -> u64 {
        let (low, high) = if cfg!(target_endian = "little") {
            (self.destination.0, self.source.0)
        } else {
            (self.source.0, self.destination.0)
        };
        let mut bytes = [0; 8];
        bytes[0] = self.code;
        bytes[1] = high << 4 | low;
        bytes[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.immediate.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    /// Whether the next one is its other half.
    pub fn is_wide(self) -> bool {
        self.code == WIDE
    }

    /// Whether it calls a function of its own program; the number then counts instructions from the next one on.
    pub fn is_local_call(self) -> bool {
        /// `BPF_PSEUDO_CALL`
        const LOCAL: Register = Register(1);
        self.code == CLASS_JUMP | CALL && self.source == LOCAL
    }

    fn is_32(self) -> bool {
        matches!(self.code & 7, CLASS_ALU | CLASS_JUMP32)
    }
}

/// A register in the notation of the kernel's verifier: `w3` for the lower half of `r3`.
struct Shown(Register, bool);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.1 { 'w' } else { 'r' }, self.0.0)
    }
}

impl fmt::Display for Instruction {
    /// In the notation of the kernel's verifier.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination = Shown(self.destination, self.is_32());
        let base = Shown(self.destination, false);
        let from = Shown(self.source, false);
        let (offset, number) = (self.offset, self.immediate);
        let operand = if self.code & REGISTER == 0 {
            format!("{number:#x}")
        } else {
            Shown(self.source, self.is_32()).to_string()
        };
        let size = match self.code & 0x18 {
            0x10 => "u8",
            0x08 => "u16",
            0x00 => "u32",
            _ => "u64",
        };
        match self.code & 7 {
            CLASS_LOAD if self.is_wide() => write!(f, "{base} = map {number}"),
            CLASS_LOAD => write!(f, "(second half)"),
            CLASS_LOAD_MEMORY => write!(f, "{base} = *({size} *)({from} {offset:+})"),
            CLASS_STORE_NUMBER => write!(f, "*({size} *)({base} {offset:+}) = {number}"),
            CLASS_STORE => write!(f, "*({size} *)({base} {offset:+}) = {from}"),
            CLASS_ALU | CLASS_ALU64 => match self.code & 0xf0 {
                SWAP => write!(f, "{base} = be{number} {base}"),
                0xb0 => write!(f, "{destination} = {operand}"),
                code => write!(f, "{destination} {}= {operand}", sign(code)),
            },
            _ => match self.code & 0xf0 {
                ALWAYS => write!(f, "goto {offset:+}"),
                CALL => write!(f, "call {}", helper(number)),
                EXIT => write!(f, "exit"),
                code => write!(f, "if {destination} {} {operand} goto {offset:+}", comparison(code)),
            },
        }
    }
}

fn sign(code: u8) -> &'static str {
    match code {
        0x00 => "+",
        0x10 => "-",
        0x20 => "*",
        0x30 => "/",
        0x40 => "|",
        0x50 => "&",
        0x60 => "<<",
        0x70 => ">>",
        0x90 => "%",
        _ => "^",
    }
}

fn comparison(code: u8) -> &'static str {
    match code {
        0x10 => "==",
        0x20 => ">",
        0x30 => ">=",
        0x40 => "&",
        0x50 => "!=",
        0xa0 => "<",
        _ => "<=",
    }
}

/// Numbers of helpers in `enum bpf_func_id` (linux/bpf.h).
pub(super) const MAP_LOOKUP_ELEM: i32 = 1;
pub(super) const TAIL_CALL: i32 = 12;
pub(super) const SKB_LOAD_BYTES: i32 = 26;
pub(super) const XDP_GET_BUFF_LEN: i32 = 188;
pub(super) const XDP_LOAD_BYTES: i32 = 189;

fn helper(number: i32) -> String {
    let name = match number {
        MAP_LOOKUP_ELEM => "map_lookup_elem",
        TAIL_CALL => "tail_call",
        SKB_LOAD_BYTES => "skb_load_bytes",
        XDP_GET_BUFF_LEN => "xdp_get_buff_len",
        XDP_LOAD_BYTES => "xdp_load_bytes",
        other => return other.to_string(),
    };
    name.to_owned()
}
