//! Sampling in the pump, with the rules of the programs (`crates/weir-bpf/bpf/pool/sample.h`).

use weir_bpf::pool::SampleBy;
use weir_sys::packet::Packet;

use super::record_encoder::{self, RecordEncoder};
use crate::live::flow::Sorter;
use crate::live::request::sampling::Sampling;

/// Selects packets of the ring.
#[derive(Debug)]
pub(super) struct Sampler {
    by: SampleBy,
    /// Packets that could have been selected so far.
    turns: u64,
    dice: Dice,
    sorter: Sorter,
    link_type: u16,
    /// Buffer for a packet as it will be saved.
    saved: Vec<u8>,
    orphans: u64,
}

impl Sampler {
    /// `link_type`: of the packets as they are saved.
    pub(super) fn new(sampling: Sampling, link_type: u16) -> Self {
        let pool_sampling = sampling.for_program();
        Self {
            by: pool_sampling.by,
            turns: 0,
            dice: Dice(pool_sampling.seed),
            sorter: Sorter::seeded(pool_sampling.seed),
            link_type,
            saved: Vec::new(),
            orphans: 0,
        }
    }

    /// Whether `packet` is selected. To be asked once for each packet.
    pub(super) fn selects(&mut self, packet: &Packet<'_>, encoder: &RecordEncoder) -> bool {
        let turn = self.turns;
        self.turns += 1;
        match self.by {
            SampleBy::Turns(every) => turn.is_multiple_of(every.get().into()),
            SampleBy::Chance(below) => u64::from(self.dice.roll()) < below,
            SampleBy::Flows(below) => {
                let data = if encoder.cooked {
                    record_encoder::whole(packet, &mut self.saved);
                    &self.saved
                } else {
                    packet.data
                };
                let flow = self.sorter.flow(self.link_type, data);
                self.orphans += u64::from(flow.orphan);
                flow.hash >> 32 < below
            }
        }
    }

    /// Returns how many later fragments came without the first of their datagram, as far as flows matter.
    pub(super) fn orphans(&self) -> u64 {
        self.orphans
    }
}

/// Random numbers: splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from((x ^ x >> 31) >> 32).expect("the high half")
    }
}
