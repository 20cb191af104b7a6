//! Packets that are kept in the kernel and sent in turn (`trace.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::layout::{self, get, set};
use crate::log::{LoadError, logged};

skeleton!("trace");

use skeleton::types::{block, bss, place};

/// Most bytes of a packet. Live frames of a kernel with pages of 4 KiB are shorter.
pub const LONGEST: usize = layout::trace::TRACE_LONGEST.0 as usize;
/// In a block of packets, all begin below this.
const BLOCK: usize = layout::trace::TRACE_BLOCK.0 as usize;

/// Program `repeat`, loaded, for `BPF_PROG_TEST_RUN`.
#[derive(Debug)]
pub struct Trace {
    program: OwnedFd,
    variables: MapHandle,
    packets: u64,
}

/// Packets as the program finds them: block after block, and the place of each.
#[derive(Debug, Default)]
struct Packed {
    blocks: Vec<Vec<u8>>,
    places: Vec<[u8; size_of::<place>()]>,
    longest: usize,
}

impl Packed {
    fn add(&mut self, packet: &[u8]) {
        assert!((1..=LONGEST).contains(&packet.len()), "a packet of this length");
        if self.blocks.last().is_none_or(|block| block.len() >= BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK + LONGEST));
        }
        let number = u32::try_from(self.blocks.len() - 1).expect("blocks fit into memory");
        let block = self.blocks.last_mut().expect("there is one");
        let word = |value: usize| u16::try_from(value).expect("below 64 KiB");
        let mut here = [0; size_of::<place>()];
        set!(&mut here, place.block = number);
        set!(&mut here, place.at = word(block.len()));
        set!(&mut here, place.last = word(packet.len() - 1));
        block.extend_from_slice(packet);
        self.places.push(here);
        self.longest = self.longest.max(packet.len());
    }
}

impl Trace {
    /// Loads the program and the packets.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or memory for the packets is short.
    ///
    /// # Panics
    ///
    /// Without packets, or with an empty one or one longer than [`LONGEST`].
    pub fn load(packets: &[&[u8]]) -> Result<Self, LoadError> {
        let mut packed = Packed::default();
        packets.iter().for_each(|packet| packed.add(packet));
        assert!(!packed.places.is_empty(), "there are packets");
        logged("trace", || Self::try_load(&packed))
    }

    fn try_load(packed: &Packed) -> Result<Self, libbpf_rs::Error> {
        let entries = |length: usize| u32::try_from(length).expect("fewer than 2^32");
        let count = entries(packed.places.len());
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::TraceSkelBuilder::default().open(&mut storage)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.longest = entries(packed.longest);
        constants.packets = count;
        open.maps.places.set_max_entries(count)?;
        open.maps.blocks.set_max_entries(entries(packed.blocks.len()))?;
        let loaded = open.load()?;
        let keys: Vec<u8> = (0..count).flat_map(u32::to_ne_bytes).collect();
        let places = packed.places.as_flattened();
        loaded.maps.places.update_batch(&keys, places, count, MapFlags::ANY, MapFlags::ANY)?;
        let mut value = vec![0; size_of::<block>()];
        for (number, block) in (0_u32..).zip(&packed.blocks) {
            value[..block.len()].copy_from_slice(block);
            loaded.maps.blocks.update(&number.to_ne_bytes(), &value, MapFlags::ANY)?;
        }
        Ok(Self {
            program: loaded.progs.repeat.as_fd().try_clone_to_owned()?,
            variables: MapHandle::try_from(&loaded.maps.bss)?,
            packets: packed.places.len() as u64,
        })
    }

    /// Returns the program, to run it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Sets the number of the next packet, counted from 0 through all rounds.
    ///
    /// # Panics
    ///
    /// If the kernel refuses to write to a map that is held.
    pub fn begin(&self, sequence: u64) {
        let turn = u32::try_from(sequence % self.packets).expect("fewer than 2^32");
        let mut variables = [0; size_of::<bss>()];
        set!(&mut variables, bss.position.sequence = sequence);
        set!(&mut variables, bss.position.turn = turn);
        let written = self.variables.update(&0_u32.to_ne_bytes(), &variables, MapFlags::ANY);
        written.expect("a map that is held can be written");
    }

    /// Returns the number of the next packet.
    ///
    /// # Panics
    ///
    /// If the kernel refuses to read a map that is held.
    pub fn next_sequence(&self) -> u64 {
        let variables = self.variables.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let variables = variables.expect("a map that is held can be read");
        get!(&variables.expect("it has one value"), bss.position.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_where_they_were_put() {
        let packets: Vec<Vec<u8>> =
            (0..400_u32).map(|n| vec![n.to_le_bytes()[0]; 60 + (n * 37 % 1455) as usize]).collect();
        let mut packed = Packed::default();
        packets.iter().for_each(|packet| packed.add(packet));
        assert!(packed.blocks.len() > 3 && packed.longest > 1500);
        for (packet, place) in packets.iter().zip(&packed.places) {
            let block = &packed.blocks[get!(place, place.block) as usize];
            let (at, last) = (usize::from(get!(place, place.at)), usize::from(get!(place, place.last)));
            assert_eq!(&block[at..][..=last], packet);
        }
    }

    #[test]
    #[should_panic(expected = "a packet of this length")]
    fn too_long_a_packet_is_refused() {
        Packed::default().add(&[0; LONGEST + 1]);
    }
}
