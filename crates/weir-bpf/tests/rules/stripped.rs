//! Test runs of tc programs on packets whose outer VLAN tag is beside them, where receivers and the kernel put it.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::testrun;

use crate::frames::tagged;

/// `bpf_tail_call` and `bpf_skb_vlan_pop` (linux/bpf.h).
const TAIL_CALL: u32 = 12;
const VLAN_POP: u32 = 19;

/// A program that takes a tag out of the packet, whereupon the kernel puts the next one beside it, and goes on with another program.
pub(crate) struct Stripper {
    next: MapHandle,
    first: OwnedFd,
}

impl Stripper {
    pub(crate) fn new() -> Self {
        let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
            ..Default::default()
        };
        let next = MapHandle::create(MapType::ProgArray, Some("next"), 4, 4, 1, &options).expect("a map");
        let word = |code: u64, registers: u64, number: u32| code | registers << 8 | u64::from(number) << 32;
        let map = u32::try_from(next.as_fd().as_raw_fd()).expect("a descriptor");
        let words = [
            word(0xbf, 0x16, 0),     // r6 = r1
            word(0x85, 0, VLAN_POP), // bpf_skb_vlan_pop(r1)
            word(0xbf, 0x61, 0),     // r1 = r6
            word(0x18, 0x12, map),   // r2 = the map
            0,
            word(0xb7, 3, 0),         // r3 = 0
            word(0x85, 0, TAIL_CALL), // bpf_tail_call(r1, r2, r3)
            word(0xb7, 0, 99),        // return 99
            word(0x95, 0, 0),
        ];
        let first = program::load(ProgramKind::Tc, "beside", &words).expect("it is loaded");
        Self { next, first }
    }

    /// Goes on with this program from now on.
    pub(crate) fn before(&self, program: BorrowedFd<'_>) {
        let program = program.as_raw_fd().to_ne_bytes();
        self.next.update(&0_u32.to_ne_bytes(), &program, MapFlags::ANY).expect("it is taken");
    }

    /// Runs the program on a frame, whose outer tag is beside it. Returns what it returns; `None`: the frame has no tag that the kernel
    /// would put there, or is short.
    pub(crate) fn run(&self, frame: &[u8]) -> Option<u32> {
        let has_tag = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8])) && frame.len() >= 60;
        has_tag.then(|| {
            let answer = testrun::run(self.first.as_fd(), &tagged(0x8100, 0, frame), 1).expect("it runs");
            assert_ne!(answer.value, 99, "no program is next");
            answer.value
        })
    }
}
