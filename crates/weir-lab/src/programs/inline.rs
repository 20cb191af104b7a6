//! Programs that intercept packets inside the kernel and pass them on (`inline.bpf.c`).

use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use weir_bpf::{LoadError, get, logged};

weir_bpf::skeleton!("inline");

use skeleton::types::seen;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// `inline_xdp`.
    Xdp,
    /// `inline_tc`.
    Tc,
}

/// One of the programs, loaded.
#[derive(Debug)]
pub struct Inline {
    program: OwnedFd,
    seen: MapHandle,
}

/// What a program has intercepted, on all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intercepted {
    /// Packets that were copied and summed.
    pub packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub bytes: u64,
    /// Sum of the copies' 64-bit words with end-around carry; the last word of a packet is filled up with zeros.
    pub sum: u64,
    /// Packets that are not TCP over IPv4 to the address, or of 2048 bytes or more.
    pub others: u64,
}

impl Inline {
    /// Loads the program, for TCP over IPv4 to `address`. It works once attached to an Ethernet interface.
    ///
    /// # Errors
    ///
    /// Missing privileges (`CAP_BPF` and `CAP_NET_ADMIN`), or a kernel without a function that the program calls.
    pub fn load(hook: Hook, address: Ipv4Addr) -> Result<Self, LoadError> {
        logged("inline", || {
            let mut storage = MaybeUninit::uninit();
            let mut open = skeleton::InlineSkelBuilder::default().open(&mut storage)?;
            open.progs.inline_xdp.set_autoload(hook == Hook::Xdp);
            open.progs.inline_tc.set_autoload(hook == Hook::Tc);
            let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
            constants.address = u32::from_ne_bytes(address.octets());
            let loaded = open.load()?;
            let program = match hook {
                Hook::Xdp => &loaded.progs.inline_xdp,
                Hook::Tc => &loaded.progs.inline_tc,
            };
            let program = program.as_fd().try_clone_to_owned()?;
            Ok(Self { program, seen: MapHandle::try_from(&loaded.maps.seen)? })
        })
    }

    /// Returns the program, to attach it.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns what it has intercepted so far.
    pub fn intercepted(&self) -> Intercepted {
        let key = 0u32.to_ne_bytes();
        let values = self.seen.lookup_percpu(&key, MapFlags::ANY).expect("a map that is held can be read");
        let mut total = Intercepted::default();
        for value in values.expect("array maps have all their values") {
            total.packets += get!(&value, seen.packets);
            total.bytes += get!(&value, seen.bytes);
            let (sum, carry) = total.sum.overflowing_add(get!(&value, seen.sum));
            total.sum = sum + u64::from(carry);
            total.others += get!(&value, seen.others);
        }
        total
    }
}
