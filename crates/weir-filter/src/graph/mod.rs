//! Intermediate representation of a filter: values, which are functions of the packet, and a graph of tests on them.
//!
//! A packet does not change while it is filtered, so a [`Value`] does not depend on when it is evaluated: every load of
//! the half word at 12 gives the same result. Equal values are therefore stored once and have one ID
//! ([`Graph::value`]). Only control flow has an effect: [`Node`]s are executed in order until one decides about the
//! packet, with a [`Verdict`]. The graph has no cycles; walks along a chain of headers are unrolled.
//!
//! A [`Slot`] holds something that a path has found out, such as where the network header begins after a varying number
//! of tags. Each path assigns a slot at most once, and before reading it, so a slot is a function of the packet too.
//!
//! # Rules, verified by [`Graph::check`]
//!
//! - G1: a node's successors have smaller numbers than the node; 0 rejects the packet, 1 accepts it, and no other node
//!   does. Nodes with other verdicts may be anywhere ([`Graph::end`]).
//! - G2: a value's operands have smaller numbers than the value.
//! - G3: no two values are equal.
//! - G4: on each path from the root, a slot is assigned at most once, and before it is read.
//! - G5: a member test has as many key words as its set.
//!
//! # Semantics, on every back end
//!
//! - Arithmetic is 32-bit, unsigned, and wraps. So does the address `base + offset` of a load.
//! - A load beyond the captured bytes rejects the packet. So do division and remainder by zero.
//! - A shift by 32 bits or more gives zero.
//! - Every evaluation on the way to a node counts, even if its result is unused ([`Node::Read`]): a pass may drop an
//!   evaluation only if it cannot reject, or if another one on the same path rejects whenever it does. Rejection is
//!   final, so evaluations may be reordered along a path.

mod build;
mod check;
mod text;

use foldhash::HashMap;

use crate::set::SetId;

/// The number of a node in a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The number of a value in a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

/// A variable that paths assign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

/// The term that a test belongs to: an index into [`crate::ast::Ast::terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub u32);

impl TermId {
    /// Not a term: the test locates headers for all terms.
    pub const NONE: Self = Self(u32::MAX);
    /// Not a term either: the test locates headers, but few packets get that far.
    pub const RARE: Self = Self(u32::MAX - 1);

    /// Returns whether it is a term.
    pub fn is_some(self) -> bool {
        self < Self::RARE
    }
}

/// What a filter decides about a packet. Numbers from 2 on mean what the receiver says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Verdict(pub u16);

impl Verdict {
    /// The packet is rejected: no test has wanted it, or a value cannot be computed.
    pub const REFUSE: Self = Self(0);
    /// The packet is accepted.
    pub const ACCEPT: Self = Self(1);
}

/// The width of a load, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// A byte.
    Byte = 1,
    /// Two bytes.
    Half = 2,
    /// Four bytes.
    Word = 4,
}

/// A metadata field, available if the receiver provides it ([`crate::Options::metadata`]). Offsets are those of Linux's
/// extensions to classic BPF (`SKF_AD_*`, linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meta {
    /// EtherType of the frame, after a stripped tag (`SKF_AD_PROTOCOL`).
    Protocol,
    /// Packet type (`SKF_AD_PKTTYPE`): `PACKET_HOST` 0 ... `PACKET_OUTGOING` 4.
    PacketType,
    /// Interface index (`SKF_AD_IFINDEX`).
    Interface,
    /// Stripped VLAN tag, 0 if none (`SKF_AD_VLAN_TAG`).
    VlanTag,
    /// 1 if a VLAN tag was stripped, else 0 (`SKF_AD_VLAN_TAG_PRESENT`).
    VlanPresent,
    /// EtherType of the stripped tag (`SKF_AD_VLAN_TPID`).
    VlanProtocol,
}

/// A binary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the operations")]
pub enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// A function of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number.
    Constant(u32),
    /// Bytes of the packet at `base + offset`; without a base, at `offset`.
    Load {
        /// Value to add to the offset.
        base: Option<ValueId>,
        /// Offset in bytes from the start of the packet, or from `base`.
        offset: u32,
        /// Number of bytes.
        width: Width,
    },
    /// Length of the packet on the wire.
    Length,
    /// A metadata field.
    Meta(Meta),
    /// The content of a slot.
    Slot(Slot),
    /// A binary operation on two values.
    Binary {
        /// Operation.
        operation: Operation,
        /// Left operand.
        left: ValueId,
        /// Right operand.
        right: ValueId,
    },
}

/// An unsigned comparison. The others (`!=`, `<`, `<=`) are one of these with the branch targets swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `left == right`.
    Equal,
    /// `left > right`.
    Greater,
    /// `left >= right`.
    AtLeast,
    /// `left & right != 0`.
    AnyBit,
}

/// Number of slots at which graph construction gives up, leaving a few thousand in reserve for work in progress.
pub const MOST_SLOTS: u16 = 60_000;

/// Maximum number of words in a set's key: an IPv6 address.
pub const KEY_WORDS: usize = 4;

/// A yes-or-no test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Compares two values.
    Compare {
        /// Comparison.
        relation: Relation,
        /// Left operand.
        left: ValueId,
        /// Right operand.
        right: ValueId,
    },
    /// Looks a key up in a set.
    Member {
        /// Set.
        set: SetId,
        /// Words of the key, most significant first. After [`crate::set::Set::words`] words, the last one is repeated.
        key: [ValueId; KEY_WORDS],
    },
}

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// Ends the filter with this verdict.
    End(Verdict),
    /// Continues at `then` if the test is true, else at `other`.
    Branch {
        /// Test.
        test: Test,
        /// Successor if true.
        then: NodeId,
        /// Successor if false.
        other: NodeId,
        /// Term that the test belongs to.
        term: TermId,
    },
    /// Assigns a slot.
    Assign {
        /// Slot.
        slot: Slot,
        /// Value to assign.
        value: ValueId,
        /// Successor.
        next: NodeId,
    },
    /// Evaluates a value only because that may reject the packet.
    Read {
        /// Value.
        value: ValueId,
        /// Successor.
        next: NodeId,
    },
}

/// A filter in intermediate form: see the [module](self).
#[derive(Clone, Debug)]
pub struct Graph {
    values: Vec<Value>,
    /// For each value, whether evaluating it can reject a packet.
    refusing: Vec<bool>,
    known: HashMap<Value, ValueId>,
    nodes: Vec<Node>,
    root: NodeId,
    slots: u16,
    /// Snap length: the result of the filter for an accepted packet. For others it is 0.
    pub snap_len: u32,
}

impl Graph {
    /// The node that rejects the packet.
    pub const REFUSE: NodeId = NodeId(0);
    /// The node that accepts the packet.
    pub const ACCEPT: NodeId = NodeId(1);
}
