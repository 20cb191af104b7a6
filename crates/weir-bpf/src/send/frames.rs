//! Frames of test traffic, from tables (`frames.bpf.c`).

use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_traffic::{Head, LONGEST_HEAD, Signature, Tables};

use crate::layout::{get, set, width};
use crate::log::{LoadError, logged};

skeleton!("frames");

use skeleton::types::{bss, head};

/// Program `make`, loaded, for `BPF_PROG_TEST_RUN`: it writes the frames that [`Tables::write`] writes.
#[derive(Debug)]
pub struct Frames {
    program: OwnedFd,
    variables: MapHandle,
    turns: u64,
    sizes: u64,
}

impl Frames {
    /// Loads the program and its tables.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or memory for the tables is short.
    ///
    /// # Panics
    ///
    /// If the tables are not what [`Tables::new`] makes.
    pub fn load(tables: &Tables, stream: u16) -> Result<Self, LoadError> {
        logged("frames", || Self::try_load(tables, stream))
    }

    fn try_load(tables: &Tables, stream: u16) -> Result<Self, libbpf_rs::Error> {
        assert!((8..=LONGEST_HEAD).contains(&tables.head_length), "headers of this length");
        let entries = |length: usize| u32::try_from(length).expect("a table of less than 2^32 entries");
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::FramesSkelBuilder::default().open(&mut storage)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.largest = tables.largest();
        constants.numbered = tables.numbered;
        constants.head_length = entries(tables.head_length);
        constants.order_length = entries(tables.order.len());
        constants.sizes_length = entries(tables.sizes.len());
        let signature = Signature { stream, sequence: 0, time: 0 }.to_bytes();
        constants.mark = u32::from_ne_bytes(*signature.first_chunk().expect("four bytes"));
        for (at, length) in tables.lengths.iter().enumerate() {
            constants.lengths[at].at = length.at;
            constants.lengths[at].minus = length.minus;
        }
        for (at, checksum) in tables.checksums.iter().enumerate() {
            constants.checksums[at].at = checksum.at;
            constants.checksums[at].weight = checksum.weight;
            constants.checksums[at].never_zero = checksum.never_zero.into();
        }
        open.maps.heads.set_max_entries(entries(tables.heads.len()))?;
        open.maps.order.set_max_entries(entries(tables.order.len()))?;
        open.maps.sizes.set_max_entries(entries(tables.sizes.len()))?;

        let loaded = open.load()?;
        fill(&loaded.maps.heads, tables.heads.iter().map(bytes))?;
        fill(&loaded.maps.order, tables.order.iter().map(|flow| flow.to_ne_bytes()))?;
        fill(&loaded.maps.sizes, tables.sizes.iter().map(|size| size.to_ne_bytes()))?;
        Ok(Self {
            program: loaded.progs.make.as_fd().try_clone_to_owned()?,
            variables: MapHandle::try_from(&loaded.maps.bss)?,
            turns: tables.order.len() as u64,
            sizes: tables.sizes.len() as u64,
        })
    }

    /// Returns the program, to run it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Sets the number of the next frame, and the nanoseconds from `CLOCK_MONOTONIC` to `CLOCK_REALTIME`; `None`: the time
    /// in signatures is 0. To be called before each run, of less than 2^32 frames: its first frame reads the clock.
    ///
    /// # Panics
    ///
    /// If the kernel refuses to write to a map that is held.
    pub fn begin(&self, sequence: u64, epoch: Option<u64>) {
        let place = |length: u64| u32::try_from(sequence % length).expect("less than the length");
        let mut variables = [0; size_of::<bss>()];
        set!(&mut variables, bss.position.sequence = sequence);
        set!(&mut variables, bss.position.epoch = epoch.unwrap_or(0));
        set!(&mut variables, bss.position.turn = place(self.turns));
        set!(&mut variables, bss.position.size = place(self.sizes));
        // A time that was never read is shared by all frames.
        set!(&mut variables, bss.position.fresh = if epoch.is_some() { 0 } else { u32::MAX });
        let written = self.variables.update(&0_u32.to_ne_bytes(), &variables, MapFlags::ANY);
        written.expect("a map that is held can be written");
    }

    /// Returns the number of the next frame.
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

/// Returns a head as the program reads it.
fn bytes(flow: &Head) -> [u8; size_of::<head>()] {
    const WORDS: usize = offset_of!(head, words);
    const _: () = assert!(width(|of: &head| &of.words) == LONGEST_HEAD, "as long as those of weir-traffic");
    let mut bytes = [0; size_of::<head>()];
    bytes[WORDS..WORDS + LONGEST_HEAD].copy_from_slice(&flow.bytes);
    // The program adds words in the byte order of the processor: the sum of swapped words is the swapped sum.
    set!(&mut bytes, head.sums = flow.sums.map(|sum| u16::from_ne_bytes(sum.to_be_bytes()).into()));
    bytes
}

/// Writes all entries of an array.
///
/// # Errors
///
/// There are more values than entries, or memory is short.
///
/// # Panics
///
/// With 2^32 values.
pub fn fill<const N: usize>(
    map: &impl MapCore,
    values: impl ExactSizeIterator<Item = [u8; N]>,
) -> libbpf_rs::Result<()> {
    let count = u32::try_from(values.len()).expect("fewer than 2^32 values");
    let keys: Vec<u8> = (0..count).flat_map(u32::to_ne_bytes).collect();
    let values: Vec<u8> = values.flatten().collect();
    map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY)
}
