//! Reference interpreter: slow and obvious. Every back end is compared with it.

use std::borrow::Cow;

use crate::graph::{Graph, Meta, Node, TermId, Test, Value, ValueId, Verdict, Width};
use crate::set::{Lookup, Set};

/// A packet as a filter sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// The captured bytes.
    pub data: &'a [u8],
    /// Length on the wire, in bytes.
    pub length: u32,
    /// Metadata.
    pub meta: Metadata,
}

/// Metadata of a packet: see [`Meta`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// [`Meta::Protocol`].
    pub protocol: u16,
    /// [`Meta::PacketType`].
    pub packet_type: u8,
    /// [`Meta::Interface`].
    pub interface: u32,
    /// The VLAN tag that was stripped, if any.
    pub vlan: Option<VlanTag>,
}

/// A VLAN tag kept outside its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Its EtherType: 0x8100, 0x88a8 or 0x9100.
    pub protocol: u16,
    /// Priority, drop eligible indicator and VLAN ID.
    pub tci: u16,
}

/// The result of running a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was decided.
    pub verdict: Verdict,
    /// Term of the last test.
    pub decided_by: TermId,
    /// Number of tests evaluated.
    pub steps: u32,
}

/// Interprets a filter.
#[derive(Debug)]
pub struct Interpreter<'a> {
    graph: Cow<'a, Graph>,
    sets: Vec<Lookup>,
}

/// The packet is rejected because a value cannot be computed.
struct Refused;

impl<'a> Interpreter<'a> {
    /// Creates an interpreter of `graph`, whose sets are `sets`.
    pub fn new(graph: &'a Graph, sets: &[Set]) -> Self {
        Self { graph: Cow::Borrowed(graph), sets: sets.iter().map(Lookup::new).collect() }
    }

    /// Creates an interpreter that owns its graph.
    pub fn owning(graph: Graph, sets: &[Set]) -> Interpreter<'static> {
        Interpreter { graph: Cow::Owned(graph), sets: sets.iter().map(Lookup::new).collect() }
    }

    /// Returns the filter's result: the snap length if the packet is accepted, or 0.
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        if self.verdict(packet) == Verdict::ACCEPT { self.graph.snap_len } else { 0 }
    }

    /// Returns what the filter decides.
    pub fn verdict(&self, packet: &Packet<'_>) -> Verdict {
        self.trace(packet).verdict
    }

    /// Runs the filter and reports how it reached its result.
    pub fn trace(&self, packet: &Packet<'_>) -> Outcome {
        let mut slots = vec![0; self.graph.slots().into()];
        let mut outcome = Outcome { verdict: Verdict::REFUSE, decided_by: TermId::NONE, steps: 0 };
        outcome.verdict = self.walk(packet, &mut slots, &mut outcome).unwrap_or(Verdict::REFUSE);
        outcome
    }

    fn walk(
        &self,
        packet: &Packet<'_>,
        slots: &mut [u32],
        outcome: &mut Outcome,
    ) -> Result<Verdict, Refused> {
        let mut at = self.graph.root();
        loop {
            match self.graph.node(at) {
                Node::End(verdict) => return Ok(verdict),
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

    /// Evaluates a value without recursion: an expression may be nested as deep as its text is long.
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
    /// Returns the bytes at `offset`, if they were captured.
    pub(crate) fn load(&self, offset: u32, width: Width) -> Option<u32> {
        let bytes = self.data.get(offset as usize..)?;
        Some(match width {
            Width::Byte => (*bytes.first()?).into(),
            Width::Half => u16::from_be_bytes(*bytes.first_chunk()?).into(),
            Width::Word => u32::from_be_bytes(*bytes.first_chunk()?),
        })
    }
}

/// `PACKET_HOST` and `PACKET_OUTGOING` (linux/if_packet.h).
const INCOMING: u8 = 0;
const OUTGOING: u8 = 4;
/// Not one of the kernel's packet types, which end at 7.
const UNKNOWN_DIRECTION: u8 = 0xff;

impl Metadata {
    /// Creates metadata for a packet of which at most the direction is known: whether it is outgoing.
    pub fn of_direction(outgoing: Option<bool>) -> Self {
        let packet_type = match outgoing {
            Some(true) => OUTGOING,
            Some(false) => INCOMING,
            None => UNKNOWN_DIRECTION,
        };
        Self { packet_type, ..Self::default() }
    }

    /// Returns whether the packet is outgoing; `None`: nobody knows.
    pub fn outgoing(&self) -> Option<bool> {
        (self.packet_type != UNKNOWN_DIRECTION).then_some(self.packet_type == OUTGOING)
    }

    /// Returns one field as a number, 0 if it is absent.
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
