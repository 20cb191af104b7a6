//! Programs that receive (`hooks.bpf.c`): two hooks that only count, one that checks, and one that only redirects; and one that
//! writes what a capture would (`limit.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_bpf::frames::fill;
use weir_bpf::{LoadError, get, leave_out_all, logged};
use weir_traffic::{Signature, Tables};

use super::limit;

weir_bpf::skeleton!("hooks");

use skeleton::types::{checked, count, head};

use super::layout::checked_frame;
use super::limit::skeleton::types::place;

/// What a counting program does with every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `drop_all`: the least work a receiver can do.
    Drop,
    /// `pass_all`: to the network stack.
    Pass,
    /// `write_all`: drops it, after its record was written into 64 MiB of the queue.
    Write,
}

/// Program `drop_all`, `pass_all` or `write_all`, loaded.
#[derive(Debug)]
pub struct Count {
    program: OwnedFd,
    counts: MapHandle,
    /// What `write_all` writes into.
    memory: Option<MapHandle>,
    queues: u32,
}

impl Count {
    /// Loads the program for an interface with `queues` receive queues. It counts once attached, in native mode.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or a kernel without a function that the program calls.
    pub fn load(action: Action, queues: u32) -> Result<Self, LoadError> {
        match action {
            Action::Drop => logged("drop_all", || Self::try_load(action, queues)),
            Action::Pass => logged("pass_all", || Self::try_load(action, queues)),
            Action::Write => logged("write_all", || {
                let limit = limit::load(queues)?;
                Ok(Self { program: limit.program, counts: limit.places, memory: Some(limit.memory), queues })
            }),
        }
    }

    fn try_load(action: Action, queues: u32) -> Result<Self, libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::HooksSkelBuilder::default().open(&mut storage)?;
        leave_out_all(open.open_object_mut())?;
        open.progs.drop_all.set_autoload(action == Action::Drop);
        open.progs.pass_all.set_autoload(action == Action::Pass);
        open.maps.counts.set_autocreate(true)?;
        open.maps.counts.set_max_entries(queues)?;

        let loaded = open.load()?;
        let program = if action == Action::Pass { &loaded.progs.pass_all } else { &loaded.progs.drop_all };
        Ok(Self {
            program: program.as_fd().try_clone_to_owned()?,
            counts: MapHandle::try_from(&loaded.maps.counts)?,
            memory: None,
            queues,
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns what [`Action::Write`] has written into the first MiB of the first queue: records as a capture has them.
    /// Of other actions, nothing.
    pub fn written(&self) -> Vec<u8> {
        let Some(memory) = &self.memory else { return Vec::new() };
        let chunk =
            memory.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).expect("a map that is held can be read");
        chunk.expect("array maps have all their values")
    }

    /// Returns the packets seen so far, by receive queue.
    pub fn packets(&self) -> Vec<u64> {
        let of = |queue| match entry(&self.counts, queue) {
            value if self.memory.is_some() => get!(&value, place.packets),
            value => get!(&value, count.packets),
        };
        (0..self.queues).map(of).collect()
    }
}

/// Size in bytes of the frames that [`Check`] can check.
pub const CHECKED: usize = checked_frame::CHECKED.0 as usize;

/// Bytes of their headers, and of an entry of the map that has them.
const HEAD: usize = checked_frame::CHECKED_HEAD.0 as usize;
const ENTRY: usize = size_of::<head>();

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
    /// Loads the program for an interface with `queues` receive queues. The traffic is UDP over IPv4 in frames of
    /// [`CHECKED`] bytes, stream 0 without times. It checks once attached, in native mode.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or a kernel without a function that the program calls.
    ///
    /// # Panics
    ///
    /// If the tables are of other traffic.
    pub fn load(tables: &Tables, queues: u32) -> Result<Self, LoadError> {
        assert!(
            tables.head_length == HEAD && tables.sizes == [checked_frame::CHECKED.0],
            "frames of this kind"
        );
        let entries = |length: usize| u32::try_from(length).expect("a table of less than 2^32 entries");
        let signature = Signature { stream: 0, sequence: 0, time: 0 }.to_bytes();
        logged("check_all", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::HooksSkelBuilder::default().open(&mut storage)?;
            leave_out_all(open.open_object_mut())?;
            open.progs.check_all.set_autoload(true);
            open.maps.rodata.set_autocreate(true)?;
            open.maps.checked.set_autocreate(true)?;
            open.maps.checked.set_max_entries(queues)?;
            let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
            constants.order_length = entries(tables.order.len());
            constants.mark = u32::from_ne_bytes(*signature.first_chunk().expect("four bytes"));
            open.maps.heads.set_autocreate(true)?;
            open.maps.heads.set_max_entries(entries(tables.heads.len()))?;
            open.maps.order.set_autocreate(true)?;
            open.maps.order.set_max_entries(entries(tables.order.len()))?;
            let loaded = open.load()?;
            let heads = tables.heads.iter().map(|head| *head.bytes.first_chunk::<ENTRY>().expect("more"));
            fill(&loaded.maps.heads, heads)?;
            fill(&loaded.maps.order, tables.order.iter().map(|flow| flow.to_ne_bytes()))?;
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
            let value = entry(&self.checked, queue);
            sum.packets += get!(&value, checked.packets);
            sum.wrong += get!(&value, checked.wrong);
            sum.backward += get!(&value, checked.backward);
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
            let mut open = skeleton::HooksSkelBuilder::default().open(&mut storage)?;
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
            let mut open = skeleton::HooksSkelBuilder::default().open(&mut storage)?;
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

/// Returns an entry of an array map.
fn entry(map: &MapHandle, index: u32) -> Vec<u8> {
    let value = map.lookup(&index.to_ne_bytes(), MapFlags::ANY).expect("a map that is held can be read");
    value.expect("array maps have all their values")
}
