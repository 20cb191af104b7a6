//! The work that every method does for a packet. `intercept.c` and `weir-lab/bpf/inline.bpf.c` do the same.

use std::hint::black_box;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Packets are shorter; a power of two, as the program inside the kernel needs it.
const MOST: usize = 2048;
const IPV4: [u8; 2] = [8, 0];
const TCP: u8 = 6;

/// What a method has intercepted, and what it knows to have missed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Seen {
    /// Packets that were copied and summed.
    pub(super) packets: u64,
    /// Bytes of the copies: from the IP header on, which is where netfilter's packets begin.
    pub(super) bytes: u64,
    /// Of the copies, see [`add`].
    pub(super) sum: u64,
    /// Packets that are not TCP over IPv4 to the address.
    pub(super) others: u64,
    pub(super) lost: u64,
    /// Whether `lost` also counts packets that this host has sent.
    #[serde(default)]
    pub(super) lost_both_ways: bool,
}

/// Does the work.
#[derive(Debug)]
pub(super) struct Work {
    address: [u8; 4],
    copy: Vec<u8>,
    seen: Seen,
}

impl Work {
    pub(super) fn new(address: Ipv4Addr) -> Self {
        Self { address: address.octets(), copy: vec![0; MOST], seen: Seen::default() }
    }

    /// Takes a frame without a VLAN tag.
    pub(super) fn frame(&mut self, frame: &[u8]) {
        match frame.split_at_checked(ETHERNET) {
            Some((ethernet, packet)) if ethernet.ends_with(&IPV4) => self.packet(packet),
            _ => self.seen.others += 1,
        }
    }

    /// Takes a packet, from its IP header on.
    pub(super) fn packet(&mut self, packet: &[u8]) {
        let is_wanted = packet.len() < MOST
            && packet.get(9) == Some(&TCP)
            && packet.get(16..20) == Some(&self.address)
            && packet[0] >> 4 == 4;
        if !is_wanted {
            self.seen.others += 1;
            return;
        }
        let copy = &mut self.copy[..packet.len()];
        copy.copy_from_slice(packet);
        self.seen.packets += 1;
        self.seen.bytes += copy.len() as u64;
        self.seen.sum = add(self.seen.sum, copy);
        call_out(copy);
    }

    /// Gives the result.
    pub(super) fn seen(&self, lost: u64) -> Seen {
        Seen { lost, ..self.seen }
    }
}

/// Adds bytes to a sum: words of 64 bits as this machine has them, with end-around carry; the last one is filled up with
/// zeros. The sum of RFC 1071, in wider words (section 2), so that it can be compared with the checksums in packets.
pub(super) fn add(sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).fold(sum, |sum, word| {
        let (sum, carry) = sum.overflowing_add(u64::from_ne_bytes(*word));
        sum + u64::from(carry)
    })
}

/// What a method calls for each packet.
#[inline(never)]
fn call_out(copy: &[u8]) {
    black_box(copy);
}

#[cfg(test)]
mod tests {
    use weir_lab::programs::inline::{Hook, Inline, Intercepted};
    use weir_lab::root_test;
    use weir_sys::testrun;

    use super::*;

    #[test]
    fn the_sum_carries_around_and_fills_up() {
        assert_eq!(add(0, &[]), 0);
        assert_eq!(add(0, &[1]), u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(add(u64::MAX, &[0xff; 8]), u64::MAX);
        let two = u64::from_ne_bytes([2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(add(u64::MAX, &two.to_ne_bytes()), 2, "all ones are another zero");
    }

    #[test]
    fn only_tcp_to_the_address_is_copied() {
        let mut packet = [0; 40];
        (packet[0], packet[9]) = (0x45, TCP);
        packet[16..20].copy_from_slice(&[10, 77, 0, 2]);
        let taken = |change: fn(&mut Vec<u8>)| {
            let mut frame = [&[0; 12], &IPV4[..], &packet].concat();
            change(&mut frame);
            let mut work = Work::new(Ipv4Addr::new(10, 77, 0, 2));
            work.frame(&frame);
            let seen = work.seen(3);
            assert_eq!((seen.packets + seen.others, seen.lost), (1, 3));
            seen.packets == 1 && seen.bytes == frame.len() as u64 - 14
        };
        assert!(taken(|_| {}));
        assert!(taken(|frame| frame.resize(14 + MOST - 1, 0)));
        let others: [fn(&mut Vec<u8>); 7] = [
            |frame| frame[12] = 9,
            |frame| frame[14] = 0x65,
            |frame| frame[23] = 17,
            |frame| frame[33] = 1,
            |frame| frame.resize(14 + MOST, 0),
            |frame| frame.truncate(33),
            |frame| frame.truncate(3),
        ];
        assert!(others.into_iter().all(|change| !taken(change)));
    }

    /// With every length from that of an IPv4 header: all ends of blocks and words, and what is too long.
    #[root_test]
    fn root_programs_inside_the_kernel_do_the_same() {
        let address = Ipv4Addr::new(10, 77, 0, 2);
        for hook in [Hook::Xdp, Hook::Tc] {
            let inline = Inline::load(hook, address).expect("the program is loaded");
            let mut work = Work::new(address);
            for length in ETHERNET + 20..ETHERNET + MOST + 9 {
                let byte = |at: usize| u8::try_from((at * 41 + length) % 256).expect("a byte");
                let mut frame: Vec<u8> = (0..length).map(byte).collect();
                frame[12..15].copy_from_slice(&[8, 0, 0x45]);
                // Every fifth is UDP.
                frame[23] = if length % 5 == 0 { 17 } else { TCP };
                frame[30..34].copy_from_slice(&address.octets());
                testrun::run(inline.program(), &frame, 1).expect("it runs");
                work.frame(&frame);
                let Seen { packets, bytes, sum, others, .. } = work.seen(0);
                // All ones also mean zero, and each run may be on a different processor.
                let found = inline.intercepted();
                let found = Intercepted { sum: found.sum % u64::MAX, ..found };
                let expected = Intercepted { packets, bytes, sum: sum % u64::MAX, others };
                assert_eq!(found, expected, "{hook:?}, {length} bytes");
            }
            assert!(work.seen(0).packets > 1000 && work.seen(0).others > 400);
        }
    }
}
