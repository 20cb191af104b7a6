//! The intermediate form of a filter: values that are functions of the packet, and a graph of questions about them.
//!
//! A packet does not change while it is filtered, so a [`Value`] needs no place in time: whoever loads the half word at 12
//! loads the same. Values are therefore kept once each ([`Graph::value`]), and two equal ones have one number. What has
//! an effect is control: [`Node`]s ask, in order, until one accepts or refuses. The graph has no cycle; what walks a chain
//! of headers is unrolled.
//!
//! A [`Slot`] is what a path has found out, say where the network header begins behind a varying number of tags. Each
//! path assigns a slot at most once, and before it reads it, so that a slot, too, is a function of the packet.
//!
//! # Rules, which [`Graph::check`] verifies
//!
//! - G1: a node's successors have smaller numbers than the node; 0 is [`Node::Refuse`], 1 is [`Node::Accept`].
//! - G2: a value's operands have smaller numbers than the value.
//! - G3: no two values are equal.
//! - G4: on each path from the root, a slot is assigned at most once, and before it is read.
//! - G5: a member test has as many key words as its set.
//!
//! # Meaning, on every back end
//!
//! - Arithmetic is of 32 bits, unsigned, and wraps; so does the address `base + offset` of a load.
//! - A load that reaches beyond the captured bytes refuses the packet; so do division and remainder by zero.
//! - A shift by 32 bits or more gives zero.
//! - What is evaluated on the way to a node counts, even if its result is of no use ([`Node::Read`]): a pass may drop an
//!   evaluation only if it cannot refuse, or if another on the same path refuses whenever it does.
//!   Since refusing is final, evaluations may trade places along a path.

mod build;
mod check;
mod text;

use foldhash::HashMap;

use crate::set::SetId;

/// A question or an answer of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A value of a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

/// What a path has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

/// Which term of the expression asked: its number in [`crate::ast::Ast::terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub u32);

impl TermId {
    /// Asked by no term, as what finds the headers for all of them.
    pub const NONE: Self = Self(u32::MAX);
    /// The same, of few packets.
    pub const RARE: Self = Self(u32::MAX - 1);

    /// Whether it is a term.
    pub fn is_some(self) -> bool {
        self < Self::RARE
    }
}

/// How much a load takes, in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// A byte.
    Byte = 1,
    /// Two bytes.
    Half = 2,
    /// Four bytes.
    Word = 4,
}

/// What is known of a packet beside its bytes, where the receiver tells ([`crate::Options::metadata`]). The offsets are
/// those of Linux's extensions to classic BPF (`SKF_AD_*`, linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meta {
    /// The EtherType of the frame, after a tag that was taken off (`SKF_AD_PROTOCOL`).
    Protocol,
    /// For whom the packet was or where it goes (`SKF_AD_PKTTYPE`): `PACKET_HOST` 0 ... `PACKET_OUTGOING` 4.
    PacketType,
    /// Number of the interface (`SKF_AD_IFINDEX`).
    Interface,
    /// The tag that was taken off, 0 if none (`SKF_AD_VLAN_TAG`).
    VlanTag,
    /// 1 if a tag was taken off, else 0 (`SKF_AD_VLAN_TAG_PRESENT`).
    VlanPresent,
    /// The tag's EtherType (`SKF_AD_VLAN_TPID`).
    VlanProtocol,
}

/// What two operands are made into.
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
    /// Bytes of the packet, from `base + offset` on; without a base from `offset`.
    Load {
        /// What is added to the offset.
        base: Option<ValueId>,
        /// Bytes from the packet's beginning, or from `base`.
        offset: u32,
        /// How many bytes.
        width: Width,
    },
    /// Length of the packet on the wire.
    Length,
    /// What is known of it beside its bytes.
    Meta(Meta),
    /// What the path has found out.
    Slot(Slot),
    /// An operation on two values.
    Binary {
        /// Which.
        operation: Operation,
        /// On the left.
        left: ValueId,
        /// On the right.
        right: ValueId,
    },
}

/// How two values are compared, unsigned. What is missing (`!=`, `<`, `<=`) is one of these with the ways exchanged.
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

/// Slots beyond which whoever makes a graph gives up, with a few thousand to spare for what is being made.
pub const MOST_SLOTS: u16 = 60_000;

/// Most words of a set's key: an IPv6 address.
pub const KEY_WORDS: usize = 4;

/// A question with two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Compares two values.
    Compare {
        /// How.
        relation: Relation,
        /// The first.
        left: ValueId,
        /// The second.
        right: ValueId,
    },
    /// Looks up a key, most significant word first, in a set.
    Member {
        /// The set.
        set: SetId,
        /// The key; behind [`crate::set::Set::words`] words it repeats the last.
        key: [ValueId; KEY_WORDS],
    },
}

/// A place in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The packet is not wanted.
    Refuse,
    /// The packet is wanted.
    Accept,
    /// Goes on at `then` if the answer is yes, else at `other`.
    Branch {
        /// The question.
        test: Test,
        /// If so.
        then: NodeId,
        /// If not.
        other: NodeId,
        /// For whom it is asked.
        term: TermId,
    },
    /// Notes a value.
    Assign {
        /// Where.
        slot: Slot,
        /// Which.
        value: ValueId,
        /// What comes next.
        next: NodeId,
    },
    /// Evaluates a value for no other reason than that it may refuse the packet.
    Read {
        /// The value.
        value: ValueId,
        /// What comes next.
        next: NodeId,
    },
}

/// A filter between expression and program: see the [module](self).
#[derive(Clone, Debug)]
pub struct Graph {
    values: Vec<Value>,
    /// Of each value, whether evaluating it can refuse a packet.
    refusing: Vec<bool>,
    known: HashMap<Value, ValueId>,
    nodes: Vec<Node>,
    root: NodeId,
    slots: u16,
    /// Bytes that an accepted packet is cut to; what the filter answers.
    pub snap_len: u32,
}

impl Graph {
    /// The filter's last word: not wanted.
    pub const REFUSE: NodeId = NodeId(0);
    /// The filter's last word: wanted.
    pub const ACCEPT: NodeId = NodeId(1);
}
