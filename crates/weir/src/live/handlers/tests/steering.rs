//! The programs that steer packets and the sorter of handlers agree on flows.

use std::collections::HashMap;
use std::time::Duration;

use weir_lab::{FrameSender, Network, Veth, root_test};

use crate::live::flow::{FlowGroup, Sorter};
use crate::{Capture, SourceChoice, Steer};

/// Pseudo-random numbers (Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u8) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from((self.0 >> 33) % u64::from(sides)).expect("below 256")
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[usize::from(self.below(u8::try_from(some.len()).expect("few")))]
    }
}

/// Ports of one of a few flows, or other data.
fn transport(dice: &mut Dice) -> Vec<u8> {
    let (source, destination) = (dice.below(5), dice.below(5));
    vec![0, source, 0, destination, 0, 8, 0, 0]
}

fn ip4(dice: &mut Dice) -> Vec<u8> {
    let protocol = dice.of(&[6, 17, 17, 17, 1, 132, 136, 33, 4]);
    let [high, low] = dice.of(&[0_u16, 0, 0x4000, 0x2000, 0x2001, 0x0002, 0x8000]).to_be_bytes();
    let options = dice.of(&[0, 0, 0, 1, 10]);
    let (number, source, destination) = (dice.below(2), dice.below(2), dice.below(2));
    // Both treat a header whose length is too small in the same way.
    let first = if dice.below(20) == 0 { 0x42 } else { 0x45 + options };
    let head =
        [first, 0, 0, 60, 0, number, high, low, 64, protocol, 0, 0, 10, 0, 0, source, 10, 0, 0, destination];
    [&head[..], &vec![1; usize::from(options) * 4], &transport(dice)].concat()
}

fn ip6(dice: &mut Dice) -> Vec<u8> {
    let protocol = dice.of(&[6, 17, 17, 58, 41]);
    let mut next = protocol;
    let mut rest = transport(dice);
    for _ in 0..dice.of(&[0, 0, 0, 1, 1, 2, 3, 9]) {
        let kind = dice.of(&[0, 43, 44, 44, 51, 60, 135]);
        let length = dice.below(2);
        let mut header = vec![next, length];
        header.extend(dice.of(&[[0, 0], [0, 1], [0, 9], [0, 8], [0, 6]]));
        // For the hash of sorters, 0 would look like no identification.
        header.extend([0, 0, 0, 1 + dice.below(2)]);
        let bytes = match kind {
            44 => 8,
            51 => usize::from(length) * 4 + 8,
            _ => usize::from(length) * 8 + 8,
        };
        header.resize(bytes, 0);
        rest = [header, rest].concat();
        next = kind;
    }
    let (source, destination) = (dice.below(2), dice.below(2));
    let address = |host| [&[0xfd][..], &[0; 14], &[host]].concat();
    [&[0x60, 0, 0, 0, 0, 60, next, 64][..], &address(source), &address(destination), &rest].concat()
}

fn frame(dice: &mut Dice) -> Vec<u8> {
    let (source, destination) = (dice.below(2), dice.below(2));
    let mut frame = vec![2, 0, 0, 0, 0, source, 2, 0, 0, 0, 0, destination];
    for _ in 0..dice.of(&[0, 0, 0, 1, 2, 7, 8, 9]) {
        frame.extend(dice.of(&[[0x81, 0, 0, 5], [0x88, 0xa8, 0, 6], [0x91, 0, 0, 7]]));
    }
    let is_ip4 = dice.below(2) == 0;
    let packet = if is_ip4 { ip4(dice) } else { ip6(dice) };
    match dice.below(9) {
        0 => frame.extend([&[8, 6][..], &[0; 28]].concat()),
        1 => {
            frame.extend([0x88, 0x47 + dice.below(2)]);
            for _ in 0..dice.of(&[0, 1, 2, 7, 8]) {
                frame.extend([0, 1, 2, 64]);
            }
            frame.extend([&[0, 1, 3, 64][..], &packet].concat());
        }
        2 => {
            let carries = if is_ip4 { 0x21 } else { 0x57 };
            let head = dice.of(&[
                [0x88, 0x64, 0x11, 0],
                [0x88, 0x64, 0x11, 0],
                [0x88, 0x64, 0x11, 9],
                [0x88, 0x63, 0x11, 0],
            ]);
            frame.extend([&head[..], &[0, 7, 0, 60, 0, carries], &packet].concat());
        }
        _ => frame.extend([if is_ip4 { &[8, 0] } else { &[0x86, 0xdd] }, &packet[..]].concat()),
    }
    if dice.below(4) == 0 {
        frame.truncate(14 + usize::from(dice.below(60)));
    }
    frame
}

#[root_test]
fn root_programs_and_handlers_have_one_idea_of_flows() {
    const TARGETS: u32 = 256;
    const FRAMES: usize = 6000;
    const ETHERNET: u16 = 1;
    let network = Network::new(Veth::default()).expect("a private network");
    let mut dice = Dice(1);
    let frames: Vec<_> = (0..FRAMES).map(|_| frame(&mut dice)).collect();
    // The target of each packet, in order of arrival.
    let (mut packets, orphans) = network.rx().run(|| {
        let builder = Capture::builder().interface(&network.pair().rx.name).source(SourceChoice::Xdp);
        let builder = builder.chunks(2).chunk_size(1 << 20).steer(Steer::Flow, TARGETS);
        let mut capture = builder.open().expect("the capture opens");
        let sender = FrameSender::new(&network.pair().tx).expect("a socket");
        assert_eq!(sender.send_frames(&frames).expect("frames are sent"), FRAMES as u64);
        capture.stop().expect("the capture stops");
        let mut packets = Vec::new();
        while let Some(chunk) = capture.next(Duration::ZERO).expect("what was captured can be taken").taken()
        {
            let each = chunk.packets().map(|packet| (packet.timestamp, packet.queue, packet.data.to_vec()));
            packets.extend(each);
        }
        let account = capture.stats().expect("the account can be had");
        let orphans = account.interfaces[0].queues.iter().map(|queue| queue.orphans).sum::<u64>();
        (packets, orphans)
    });
    packets.sort_by_key(|&(timestamp, ..)| timestamp);
    assert!(packets.iter().map(|(.., data)| data).eq(&frames), "all of them, in this order");

    let mut sorters: Vec<Sorter> = (0..8).map(|_| Sorter::new()).collect();
    let mut target_of: HashMap<Vec<FlowGroup>, (u32, &[u8])> = HashMap::new();
    let mut met = 0;
    for (_, target, data) in &packets {
        // The places in eight sorters identify the flow.
        let flow: Vec<FlowGroup> = sorters.iter_mut().map(|sorter| sorter.group_of(ETHERNET, data)).collect();
        met += u64::from(matches!(flow[0], FlowGroup::Orphan(_)));
        let (known, first) = *target_of.entry(flow).or_insert((*target, data));
        assert_eq!(known, *target, "{first:02x?} {data:02x?}");
    }
    assert!(met > 10 && met == orphans, "{met} {orphans}");
    let mut by_target = vec![0_usize; TARGETS as usize];
    target_of.values().for_each(|&(target, _)| by_target[target as usize] += 1);
    let (flows, most) = (target_of.len(), by_target.iter().max().expect("targets"));
    assert!(flows > 100 && *most <= 4 + flows / 32, "{flows} flows, at most {most} in one target");
}
