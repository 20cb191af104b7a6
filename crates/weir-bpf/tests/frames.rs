//! Frames of test traffic: the program writes what weir-traffic writes, whose frames other tests judge.

use rustix::time::{ClockId, Timespec, clock_gettime};
use weir_bpf::frames::Frames;
use weir_sys::netns::NetNs;
use weir_sys::testrun;
use weir_traffic::{Description, Order, Payload, Protocol, Signature, Sizes, Tables, Vxlan};

const STREAM: u16 = 0x1234;
const XDP_TX: u32 = 3;
const PROTOCOLS: [Protocol; 3] = [Protocol::Udp, Protocol::Tcp(0x18), Protocol::Icmp];

fn nanoseconds(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    u64::try_from(i128::from(tv_sec) * 1_000_000_000 + i128::from(tv_nsec)).expect("after 1970")
}

fn now() -> u64 {
    nanoseconds(ClockId::Realtime)
}

/// Frames of all protocols, in one flow and many, of one size and of many.
fn descriptions() -> Vec<Description> {
    let mut descriptions = Vec::new();
    for v6 in [false, true] {
        for protocol in PROTOCOLS {
            for (flows, order, sizes) in [
                (1, Order::Turn, None),
                (1, Order::Turn, Some(Sizes::Fixed(1514))),
                (1000, Order::Turn, None),
                (777, Order::Random, Some(Sizes::Imix)),
                (500, Order::Zipf(1.1), Some(Sizes::Range(200, 1514))),
            ] {
                let plain = Description { protocol, flows, order, sizes, ..Description::new(v6) };
                let tagged = Description { vlans: vec![7, 9], ..plain.clone() };
                let tunnelled = Description { vxlan: Some(Vxlan::new(0x12_3456)), ..plain.clone() };
                descriptions.extend([plain, tagged, tunnelled]);
            }
            for size in [60, 67, 68, 100, 1514] {
                let (sizes, payload) = (Some(Sizes::Fixed(size)), Payload::Pattern);
                let description = Description { protocol, sizes, payload, flows: 3, ..Description::new(v6) };
                descriptions.extend(Tables::new(&description).is_ok().then_some(description));
            }
        }
    }
    descriptions
}

#[test]
fn root_the_kernel_writes_the_same_frames() {
    let Some(_namespace) = NetNs::new().map_err(weir_skip::this_test).ok() else { return };
    for description in descriptions() {
        let Ok(tables) = Tables::new(&description) else { panic!("{description:?}") };
        let frames = Frames::load(&tables, STREAM).expect("the verifier takes it");
        // The program leaves the rest of the payload as it is in the template.
        let mut template = vec![0xee; tables.largest() as usize];
        let written = tables.head_length + weir_traffic::SIGNATURE_LENGTH;
        template[written..].copy_from_slice(&tables.template()[written..]);
        let mut expected = Vec::new();
        for first in [0, 1499, (1 << 40) + 17] {
            let began = now();
            frames.begin(first, Some(now() - nanoseconds(ClockId::Monotonic)));
            let mut previous = None;
            for sequence in first..first + 150 {
                let (answer, frame) =
                    testrun::rewrite(frames.program(), &template, template.len()).expect("it runs");
                assert_eq!(answer.value, XDP_TX);
                let signed = Signature::from_bytes(&frame[tables.head_length..]).expect("a signature");
                tables.write(sequence, signed.time, STREAM, &mut expected);
                assert_eq!(frame, expected, "{sequence} of {description:?}");

                let shares = (sequence - first) % 64 != 0;
                let is_shared =
                    previous.replace(signed.time).is_none_or(|time| (time == signed.time) == shares);
                assert!(is_shared, "{sequence}");
                let age = signed.age(now());
                assert!(age >= 0 && age.unsigned_abs() <= now() - began, "{age}");
            }
            assert_eq!(frames.next_sequence(), first + 150);
        }
    }
}
