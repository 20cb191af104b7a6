//! The meaning of a graph, spelled out: slow, obvious, and what every back end is compared with.

use std::borrow::Cow;

use crate::graph::{Graph, Meta, Node, TermId, Test, Value, ValueId, Width};
use crate::set::{Lookup, Set};

/// A packet as a filter sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// The captured bytes.
    pub data: &'a [u8],
    /// Bytes on the wire.
    pub length: u32,
    /// What is known beside the bytes.
    pub meta: Metadata,
}

/// What is known of a packet beside its bytes: see [`Meta`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// [`Meta::Protocol`].
    pub protocol: u16,
    /// [`Meta::PacketType`].
    pub packet_type: u8,
    /// [`Meta::Interface`].
    pub interface: u32,
    /// The tag that was taken off, and its EtherType.
    pub vlan: Option<VlanTag>,
}

/// A VLAN tag beside its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Its EtherType: 0x8100, 0x88a8 or 0x9100.
    pub protocol: u16,
    /// Priority, drop eligibility and number.
    pub tci: u16,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// It is wanted.
    pub accepted: bool,
    /// The term whose question was the last.
    pub decided_by: TermId,
    /// Questions that were asked.
    pub steps: u32,
}

/// A filter to be run by interpretation.
#[derive(Debug)]
pub struct Interpreter<'a> {
    graph: Cow<'a, Graph>,
    sets: Vec<Lookup>,
}

/// The packet is refused because a value cannot be computed.
struct Refused;

impl<'a> Interpreter<'a> {
    /// Prepares `graph`, whose sets are `sets`.
    pub fn new(graph: &'a Graph, sets: &[Set]) -> Self {
        Self { graph: Cow::Borrowed(graph), sets: sets.iter().map(Lookup::new).collect() }
    }

    /// The same with a graph of its own.
    pub fn owning(graph: Graph, sets: &[Set]) -> Interpreter<'static> {
        Interpreter { graph: Cow::Owned(graph), sets: sets.iter().map(Lookup::new).collect() }
    }

    /// What the filter answers: the snap length, or 0.
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        if self.trace(packet).accepted { self.graph.snap_len } else { 0 }
    }

    /// Runs the filter and tells how it came to its answer.
    pub fn trace(&self, packet: &Packet<'_>) -> Outcome {
        let mut slots = vec![0; self.graph.slots().into()];
        let mut outcome = Outcome { accepted: false, decided_by: TermId::NONE, steps: 0 };
        outcome.accepted = self.walk(packet, &mut slots, &mut outcome).unwrap_or(false);
        outcome
    }

    fn walk(&self, packet: &Packet<'_>, slots: &mut [u32], outcome: &mut Outcome) -> Result<bool, Refused> {
        let mut at = self.graph.root();
        loop {
            match self.graph.node(at) {
                Node::Refuse => return Ok(false),
                Node::Accept => return Ok(true),
                Node::Read { value, next } => {
                    self.evaluate(value, packet, slots)?;
                    at = next;
                }
                Node::Assign { slot, value, next } => {
                    slots[usize::from(slot.0)] = self.evaluate(value, packet, slots)?;
                    at = next;
                }
                Node::Branch { test, then, other, term } => {
                    outcome.steps += 1;
                    if term.is_some() {
                        outcome.decided_by = term;
                    }
                    at = if self.holds(test, packet, slots)? { then } else { other };
                }
            }
        }
    }

    fn holds(&self, test: Test, packet: &Packet<'_>, slots: &[u32]) -> Result<bool, Refused> {
        match test {
            Test::Compare { relation, left, right } => {
                let left = self.evaluate(left, packet, slots)?;
                Ok(relation.holds(left, self.evaluate(right, packet, slots)?))
            }
            Test::Member { set, key } => {
                let mut words = [0; 4];
                for (word, value) in words.iter_mut().zip(key) {
                    *word = self.evaluate(value, packet, slots)?;
                }
                Ok(self.sets[set.0 as usize].contains(&words))
            }
        }
    }

    /// Evaluates without recursion: an expression may be nested as deep as its text is long.
    fn evaluate(&self, id: ValueId, packet: &Packet<'_>, slots: &[u32]) -> Result<u32, Refused> {
        enum Task {
            Visit(ValueId),
            Combine(ValueId),
        }
        let mut tasks = vec![Task::Visit(id)];
        let mut results = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit(id) => match self.graph.get(id) {
                    Value::Constant(number) => results.push(number),
                    Value::Length => results.push(packet.length),
                    Value::Meta(meta) => results.push(packet.meta.get(meta)),
                    Value::Slot(slot) => results.push(slots[usize::from(slot.0)]),
                    Value::Load { base: None, offset, width } => {
                        results.push(packet.load(offset, width).ok_or(Refused)?)
                    }
                    Value::Load { base: Some(base), .. } => {
                        tasks.extend([Task::Combine(id), Task::Visit(base)]);
                    }
                    Value::Binary { left, right, .. } => {
                        tasks.extend([Task::Combine(id), Task::Visit(right), Task::Visit(left)]);
                    }
                },
                Task::Combine(id) => {
                    let mut take = || results.pop().expect("operands were visited first");
                    let result = match self.graph.get(id) {
                        Value::Load { offset, width, .. } => {
                            packet.load(take().wrapping_add(offset), width).ok_or(Refused)?
                        }
                        Value::Binary { operation, .. } => {
                            let (right, left) = (take(), take());
                            operation.apply(left, right).ok_or(Refused)?
                        }
                        value => unreachable!("{value:?} has no operands"),
                    };
                    results.push(result);
                }
            }
        }
        Ok(results.pop().expect("the value was visited"))
    }
}

impl Packet<'_> {
    /// The bytes at `offset`, if they were captured.
    pub(crate) fn load(&self, offset: u32, width: Width) -> Option<u32> {
        let bytes = self.data.get(offset as usize..)?.get(..width as usize)?;
        Some(bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }
}

/// `PACKET_HOST` and `PACKET_OUTGOING` (linux/if_packet.h).
const INCOMING: u8 = 0;
const OUTGOING: u8 = 4;
/// None of the kernel's, of which the last is 7.
const UNKNOWN_DIRECTION: u8 = 0xff;

impl Metadata {
    /// Of a packet of which nothing is known but perhaps the direction: whether it went out.
    pub fn of_direction(outgoing: Option<bool>) -> Self {
        let packet_type = match outgoing {
            Some(true) => OUTGOING,
            Some(false) => INCOMING,
            None => UNKNOWN_DIRECTION,
        };
        Self { packet_type, ..Self::default() }
    }

    /// One of them as a number; what is not there is 0.
    pub fn get(&self, meta: Meta) -> u32 {
        match meta {
            Meta::Protocol => self.protocol.into(),
            Meta::PacketType => self.packet_type.into(),
            Meta::Interface => self.interface,
            Meta::VlanTag => self.vlan.map_or(0, |tag| tag.tci.into()),
            Meta::VlanPresent => self.vlan.is_some().into(),
            Meta::VlanProtocol => self.vlan.map_or(0, |tag| tag.protocol.into()),
        }
    }
}
