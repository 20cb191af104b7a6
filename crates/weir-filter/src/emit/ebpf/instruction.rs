//! The eBPF instructions (RFC 9669) that filters use, and their text form.

use std::fmt;

/// A register: `r0` holds results, `r1` to `r5` arguments (clobbered by calls), `r6` to `r9` are preserved, and `r10`
/// is the end of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(pub u8);

/// An instruction, or half of a 64-bit load, the only one that takes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation code.
    pub code: u8,
    /// Register to change or compare.
    pub destination: Register,
    /// Register to read.
    pub source: Register,
    /// Number of instructions to jump over, or bytes to add to an address.
    pub offset: i16,
    /// Immediate operand.
    pub immediate: i32,
}

/// The size of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
    Double = 0x18,
}

/// An arithmetic operation, by its code: those of the graph, and moves.
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

/// An unsigned comparison, by its code.
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
const MODE_INDIRECT: u8 = 0x40;
/// Flag: the second operand is a register rather than the immediate.
const REGISTER: u8 = 0x08;
const ALWAYS: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const SWAP: u8 = 0xd0;
/// A 64-bit load of an immediate.
const WIDE: u8 = CLASS_LOAD | 0x18;

pub(super) const R0: Register = Register(0);
pub(super) const R1: Register = Register(1);
pub(super) const R2: Register = Register(2);
pub(super) const R3: Register = Register(3);
pub(super) const R4: Register = Register(4);
/// The frame pointer.
pub(super) const FP: Register = Register(10);

/// `BPF_PSEUDO_MAP_FD`: the immediate of a wide load is a map's file descriptor.
const MAP: Register = Register(1);
/// `BPF_PSEUDO_CALL`: the immediate of a call is a distance to a function of the same program.
const FUNCTION: Register = Register(1);

impl Instruction {
    fn new(code: u8, destination: Register, source: Register, offset: i16, immediate: i32) -> Self {
        Self { code, destination, source, offset, immediate }
    }

    /// `destination = *(size *)(base + offset)`
    pub(super) fn load(size: Size, destination: Register, base: Register, offset: i16) -> Self {
        Self::new(CLASS_LOAD_MEMORY | MODE_MEMORY | size as u8, destination, base, offset, 0)
    }

    /// `r0 = *(size *)packet[offset]` as a number, for socket filters. The context has to be in `r6`; `r1` to `r5` are
    /// clobbered. Beyond the packet's end the program returns 0 at once.
    pub(super) fn load_packet(size: Size, offset: Register) -> Self {
        Self::new(CLASS_LOAD | MODE_INDIRECT | size as u8, R0, offset, 0, 0)
    }

    /// `*(size *)(base + offset) = source`
    pub(super) fn store(size: Size, base: Register, offset: i16, source: Register) -> Self {
        Self::new(CLASS_STORE | MODE_MEMORY | size as u8, base, source, offset, 0)
    }

    /// `*(size *)(base + offset) = number`
    pub(super) fn store_number(size: Size, base: Register, offset: i16, number: i32) -> Self {
        Self::new(CLASS_STORE_NUMBER | MODE_MEMORY | size as u8, base, R0, offset, number)
    }

    /// `destination = destination operation source`, 32 bits, zero-extended
    pub(super) fn alu(operation: Alu, destination: Register, source: Register) -> Self {
        Self::new(CLASS_ALU | REGISTER | operation as u8, destination, source, 0, 0)
    }

    /// `destination = destination operation number`, 32 bits, zero-extended
    pub(super) fn alu_number(operation: Alu, destination: Register, number: u32) -> Self {
        Self::new(CLASS_ALU | operation as u8, destination, R0, 0, number.cast_signed())
    }

    /// `destination = destination operation source`, 64 bits
    pub(super) fn alu64(operation: Alu, destination: Register, source: Register) -> Self {
        Self::new(CLASS_ALU64 | REGISTER | operation as u8, destination, source, 0, 0)
    }

    /// `destination = destination operation number`, 64 bits
    pub(super) fn alu64_number(operation: Alu, destination: Register, number: i32) -> Self {
        Self::new(CLASS_ALU64 | operation as u8, destination, R0, 0, number)
    }

    /// `destination = be16(destination)`, or `be32`: from network byte order
    pub(super) fn swap(destination: Register, bits: i32) -> Self {
        Self::new(CLASS_ALU | REGISTER | SWAP, destination, R0, 0, bits)
    }

    /// `if (destination jump source) goto ...`, 32 bits
    pub(super) fn jump(jump: Jump, destination: Register, source: Register) -> Self {
        Self::new(CLASS_JUMP32 | REGISTER | jump as u8, destination, source, 0, 0)
    }

    /// `if (destination jump number) goto ...`, 32 bits
    pub(super) fn jump_number(jump: Jump, destination: Register, number: u32) -> Self {
        Self::new(CLASS_JUMP32 | jump as u8, destination, R0, 0, number.cast_signed())
    }

    /// `if (destination jump source) goto ...`, 64 bits
    pub(super) fn jump64(jump: Jump, destination: Register, source: Register) -> Self {
        Self::new(CLASS_JUMP | REGISTER | jump as u8, destination, source, 0, 0)
    }

    /// `if (destination jump number) goto ...`, 64 bits
    pub(super) fn jump64_number(jump: Jump, destination: Register, number: i32) -> Self {
        Self::new(CLASS_JUMP | jump as u8, destination, R0, 0, number)
    }

    /// `goto ...`
    pub(super) fn always() -> Self {
        Self::new(CLASS_JUMP | ALWAYS, R0, R0, 0, 0)
    }

    /// `r0 = helper(r1, ...)`, where `helper` is a number of `enum bpf_func_id`
    pub(super) fn call(helper: i32) -> Self {
        Self::new(CLASS_JUMP | CALL, R0, R0, 0, helper)
    }

    /// `r0 = function(r1, ...)`, which begins `distance` instructions after the next one
    pub(super) fn call_function(distance: i32) -> Self {
        Self::new(CLASS_JUMP | CALL, R0, FUNCTION, 0, distance)
    }

    /// `return r0`
    pub(super) fn exit() -> Self {
        Self::new(CLASS_JUMP | EXIT, R0, R0, 0, 0)
    }

    /// `destination = map`, in two halves; the descriptor is filled in later
    pub(super) fn map(destination: Register) -> [Self; 2] {
        [Self::new(WIDE, destination, MAP, 0, 0), Self::new(0, R0, R0, 0, 0)]
    }

    /// Returns the kernel's encoding: `struct bpf_insn` as a word in native byte order.
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

    /// Returns whether the next instruction is its second half.
    pub fn is_wide(self) -> bool {
        self.code == WIDE
    }

    /// Returns whether it calls a function of the same program. The immediate is then relative to the next instruction.
    pub fn is_local_call(self) -> bool {
        self.code == CLASS_JUMP | CALL && self.source == FUNCTION
    }

    fn is_32(self) -> bool {
        matches!(self.code & 7, CLASS_ALU | CLASS_JUMP32)
    }
}

/// A register in the notation of the kernel's verifier: `w3` is the lower half of `r3`.
struct Shown(Register, bool);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.1 { 'w' } else { 'r' }, self.0.0)
    }
}

impl fmt::Display for Instruction {
    /// Writes the notation of the kernel's verifier.
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
            CLASS_LOAD if self.code & 0xe0 == MODE_INDIRECT => write!(f, "r0 = *({size} *)skb[{from}]"),
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
                CALL if self.is_local_call() => write!(f, "call pc{number:+}"),
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

/// Helper numbers in `enum bpf_func_id` (linux/bpf.h).
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
