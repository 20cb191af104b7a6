//! The lab's programs (`lab.bpf.c`): two hooks that only count, one that checks, and one that only redirects.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::leave_out_all;
use crate::log::{LoadError, logged};

skeleton!("lab");

/// What a counting program does with every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `drop_all`: the least work a receiver can do.
    Drop,
    /// `pass_all`: to the network stack.
    Pass,
}

/// Program `drop_all` or `pass_all`, loaded.
#[derive(Debug)]
pub struct Count {
    program: OwnedFd,
    counts: MapHandle,
    queues: u32,
}

impl Count {
    /// Loads the program for an interface with `queues` receive queues. It counts once attached, in native mode.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or a kernel without a function that the program calls.
    pub fn load(verdict: Verdict, queues: u32) -> Result<Self, LoadError> {
        let name = if verdict == Verdict::Drop { "drop_all" } else { "pass_all" };
        logged(name, || Self::try_load(verdict, queues))
    }

    fn try_load(verdict: Verdict, queues: u32) -> Result<Self, libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::LabSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        open.progs.drop_all.set_autoload(verdict == Verdict::Drop);
        open.progs.pass_all.set_autoload(verdict == Verdict::Pass);
        open.maps.counts.set_autocreate(true)?;
        open.maps.counts.set_max_entries(queues)?;

        let loaded = open.load()?;
        let program = match verdict {
            Verdict::Drop => &loaded.progs.drop_all,
            Verdict::Pass => &loaded.progs.pass_all,
        };
        Ok(Self {
            program: program.as_fd().try_clone_to_owned()?,
            counts: MapHandle::try_from(&loaded.maps.counts)?,
            queues,
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns the packets seen so far, by receive queue.
    pub fn packets(&self) -> Vec<u64> {
        (0..self.queues).map(|queue| first_words(&self.counts, queue)).map(|[packets]| packets).collect()
    }
}

/// Size in bytes of the frames that [`Check`] can check.
pub const CHECKED: usize = 60;

/// Offset and size of each field that depends on a frame's number and flow. [`Check`] handles these separately.
const FIELDS: [(usize, usize); 6] = [(18, 2), (28, 2), (34, 2), (42, 8), (50, 4), (56, 4)];

/// Program `check_all`, loaded: checks each byte of each frame, at full rate.
#[derive(Debug)]
pub struct Check {
    program: OwnedFd,
    checked: MapHandle,
    queues: u32,
}

/// The results of a [`Check`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Packets received.
    pub packets: u64,
    /// Packets that are not frames of the traffic: changed, of another length, or foreign.
    pub wrong: u64,
    /// Intact frames that arrived on their queue after one with a higher number, or twice.
    pub backward: u64,
}

impl Check {
    /// Loads the program for an interface with `queues` receive queues. `frame` is any frame of the traffic, untagged;
    /// `flows` and `scattered` are as for the generator. It checks once attached, in native mode.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or a kernel without a function that the program calls.
    pub fn load(frame: &[u8; CHECKED], flows: u32, scattered: bool, queues: u32) -> Result<Self, LoadError> {
        let mut template = *frame;
        FIELDS.iter().for_each(|&(at, bytes)| template[at..at + bytes].fill(0));
        logged("check_all", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::LabSkelBuilder::default().open(&mut storage)?;
            leave_out_all(open.open_object_mut())?;
            open.progs.check_all.set_autoload(true);
            open.maps.rodata.set_autocreate(true)?;
            open.maps.checked.set_autocreate(true)?;
            open.maps.checked.set_max_entries(queues)?;
            let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
            constants.flows = flows;
            constants.scattered = scattered;
            for (word, bytes) in constants.template.iter_mut().zip(template.chunks_exact(4)) {
                *word = u32::from_ne_bytes(*bytes.first_chunk().expect("four"));
            }
            let loaded = open.load()?;
            let checked = MapHandle::try_from(&loaded.maps.checked)?;
            Ok(Self { program: loaded.progs.check_all.as_fd().try_clone_to_owned()?, checked, queues })
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns the results so far.
    pub fn checked(&self) -> Checked {
        let mut sum = Checked::default();
        for queue in 0..self.queues {
            let [packets, wrong, backward] = first_words(&self.checked, queue);
            sum.packets += packets;
            sum.wrong += wrong;
            sum.backward += backward;
        }
        sum
    }
}

/// Program `redirect_all`, loaded: the least work that forwarding can do.
#[derive(Debug)]
pub struct RedirectTo {
    program: OwnedFd,
}

impl RedirectTo {
    /// Loads the program. Once it is attached in native mode, all packets go to the interface with this index in the
    /// calling thread's namespace.
    ///
    /// # Errors
    ///
    /// Missing privileges, or no such interface.
    pub fn load(interface: u32) -> Result<Self, LoadError> {
        logged("redirect_all", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::LabSkelBuilder::default().open(&mut storage)?;
            leave_out_all(open.open_object_mut())?;
            open.progs.redirect_all.set_autoload(true);
            open.maps.out.set_autocreate(true)?;
            let loaded = open.load()?;
            loaded.maps.out.update(&0u32.to_ne_bytes(), &interface.to_ne_bytes(), MapFlags::ANY)?;
            Ok(Self { program: loaded.progs.redirect_all.as_fd().try_clone_to_owned()? })
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// Program `transmit_all`, loaded, for live frames of `BPF_PROG_TEST_RUN`: the least work that generating can do.
#[derive(Debug)]
pub struct TransmitAll {
    program: OwnedFd,
}

impl TransmitAll {
    /// Loads the program.
    ///
    /// # Errors
    ///
    /// Missing privileges.
    pub fn load() -> Result<Self, LoadError> {
        logged("transmit_all", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::LabSkelBuilder::default().open(&mut storage)?;
            leave_out_all(open.open_object_mut())?;
            open.progs.transmit_all.set_autoload(true);
            let loaded = open.load()?;
            Ok(Self { program: loaded.progs.transmit_all.as_fd().try_clone_to_owned()? })
        })
    }

    /// Returns the program, to run it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }
}

/// The first words of an array map's value.
fn first_words<const N: usize>(map: &MapHandle, index: u32) -> [u64; N] {
    let value = map.lookup(&index.to_ne_bytes(), MapFlags::ANY).expect("a map that is held can be read");
    let value = value.expect("array maps have all their values");
    let word = |at: usize| value.get(8 * at..).and_then(|rest| rest.first_chunk());
    std::array::from_fn(|at| {
        u64::from_ne_bytes(*word(at).expect("every value here begins with as many words"))
    })
}
