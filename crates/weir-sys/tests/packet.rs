//! Packet rings on real interfaces: a pair of veth ends in a namespace of the test's own.

use std::ops::ControlFlow;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_sys::link::{Link, Links};
use weir_sys::netns::NetNs;
use weir_sys::packet::{PacketRing, Promiscuous, RingOptions, Sender, Traffic, Walk};
use weir_sys::veth::{self, End};

/// Runs `test` in a new namespace with the interfaces `va` and `vb`, joined and up, without traffic of their own.
fn between(test: impl FnOnce(u32, u32) + Send) {
    let namespace = match NetNs::new() {
        Ok(namespace) => namespace,
        Err(error) => return weir_skip::this_test(error),
    };
    namespace.run(|| {
        let end = |name| End { mtu: Some(9000), ..End::named(name) };
        veth::create_ends(&end("va"), &end("vb")).unwrap();
        let links = Links::open().unwrap();
        for end in ["vb", "va"] {
            // No neighbour discovery. A kernel without IPv6 has none anyway.
            let _no_ipv6 = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
            links.bring_up_silent(end).unwrap();
        }
        test(ready("va").index, ready("vb").index);
    });
}

/// The interface, once frames can pass: one before is lost.
fn ready(name: &str) -> Link {
    veth::with_carrier(name).unwrap()
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {arguments}");
}

/// How long anything that is bound to come may take.
const PATIENCE: Duration = Duration::from_secs(30);

const OPTIONS: RingOptions = RingOptions {
    interface: Some(0),
    traffic: Traffic::Both,
    snap_len: 262_144,
    block_bytes: 32 << 10,
    // As many as a test sends frames: on a busy machine each may come into a block of its own.
    blocks: 512,
    retire_ms: 1,
};

fn open(interface: u32, traffic: Traffic) -> PacketRing {
    PacketRing::open(&RingOptions { interface: Some(interface), traffic, ..OPTIONS }).unwrap()
}

#[derive(Debug, PartialEq)]
struct Owned {
    data: Vec<u8>,
    original_len: u32,
    timestamp: u64,
    tag: Option<[u8; 4]>,
    sent: bool,
}

/// Waits until `count` packets have come, and takes them, with whatever has come with the last.
fn receive(ring: &mut PacketRing, count: usize) -> Vec<Owned> {
    let start = Instant::now();
    let mut packets = at_hand(ring);
    while packets.len() < count {
        let left = PATIENCE.saturating_sub(start.elapsed());
        assert!(readable(ring, left), "{} of {count} packets have come", packets.len());
        packets.append(&mut at_hand(ring));
    }
    packets
}

/// Takes the packets of all blocks that are closed.
fn at_hand(ring: &mut PacketRing) -> Vec<Owned> {
    let mut packets = Vec::new();
    let mut take = || {
        ring.walk(|packet| {
            packets.push(Owned {
                data: packet.data.to_vec(),
                original_len: packet.original_len,
                timestamp: packet.timestamp,
                tag: packet.tag,
                sent: packet.sent(),
            });
            ControlFlow::Continue(())
        })
    };
    while take() != Walk::Stopped {}
    packets
}

/// Waits until so many more packets have come by; then rings of the interface that were opened after the witness, and so
/// meet them before, have met them, too.
fn wait_for_more(witness: &mut (PacketRing, u64), packets: u64) {
    let start = Instant::now();
    witness.1 += packets;
    while witness.0.statistics().unwrap().packets < witness.1 {
        assert!(start.elapsed() < PATIENCE, "not all {packets} have come");
        thread::yield_now();
    }
}

fn readable(ring: &PacketRing, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).unwrap();
    poll(&mut [PollFd::new(ring, PollFlags::IN)], Some(&patience)).unwrap() > 0
}

/// A frame of `bytes` bytes that nobody else knows the protocol of, filled with a pattern that `seed` begins.
fn frame(bytes: usize, seed: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.extend((14..bytes).map(|at| low(at).wrapping_mul(31) ^ seed));
    frame.truncate(bytes);
    frame
}

fn low(number: usize) -> u8 {
    u8::try_from(number % 256).unwrap()
}

fn now() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since_epoch.as_nanos()).unwrap()
}

fn tagged(mut frame: Vec<u8>, tag: [u8; 4]) -> Vec<u8> {
    frame.splice(12..12, tag);
    frame
}

#[test]
fn root_every_byte_of_every_size() {
    between(|a, b| {
        let mut ring = open(b, Traffic::Received);
        let sender = Sender::new(a).unwrap();
        let sizes = (14..200).chain([1514, 1518, 4096, 9014]);
        let sent: Vec<_> = sizes.map(|size| frame(size, low(size))).collect();
        let before = now();
        for frame in &sent {
            sender.send(frame).unwrap();
        }
        let received = receive(&mut ring, sent.len());
        let after = now();
        assert_eq!(received.len(), sent.len());
        for (received, sent) in received.iter().zip(&sent) {
            assert_eq!(received.data, *sent);
            assert_eq!(received.original_len as usize, sent.len());
            assert!((before..=after).contains(&received.timestamp));
            assert!(!received.sent && received.tag.is_none());
        }
        assert!(received.is_sorted_by_key(|packet| packet.timestamp));
        let statistics = ring.statistics().unwrap();
        assert_eq!((statistics.packets, statistics.drops), (sent.len() as u64, 0));
        assert_eq!(ring.health().map_err(|error| error.errno()), Ok(()));
    });
}

#[test]
fn root_the_kernel_cuts_at_the_snap_length() {
    between(|a, b| {
        let options =
            RingOptions { interface: Some(b), traffic: Traffic::Received, snap_len: 100, ..OPTIONS };
        let mut ring = PacketRing::open(&options).unwrap();
        let sender = Sender::new(a).unwrap();
        for size in [60, 99, 100, 101, 9000] {
            sender.send(&frame(size, 7)).unwrap();
        }
        let received = receive(&mut ring, 5);
        let lengths: Vec<_> =
            received.iter().map(|packet| (packet.data.len(), packet.original_len)).collect();
        assert_eq!(lengths, [(60, 60), (99, 99), (100, 100), (100, 101), (100, 9000)]);
        assert!(received.iter().all(|packet| packet.data == frame(packet.data.len(), 7)));
    });
}

#[test]
fn root_a_frame_larger_than_a_block_is_cut_and_tells() {
    between(|a, b| {
        let mut ring =
            PacketRing::open(&RingOptions { interface: Some(b), block_bytes: 4096, ..OPTIONS }).unwrap();
        let sender = Sender::new(a).unwrap();
        for size in [3000, 9000, 60] {
            sender.send(&frame(size, 3)).unwrap();
        }
        let received = receive(&mut ring, 3);
        assert_eq!(received.iter().map(|packet| packet.original_len).collect::<Vec<_>>(), [3000, 9000, 60]);
        // What the block's head and the packet's head leave of 4096 bytes.
        assert_eq!(
            received.iter().map(|packet| packet.data.len()).collect::<Vec<_>>(),
            [3000, 4096 - 48 - 82, 60]
        );
        assert!(received.iter().all(|packet| packet.data == frame(packet.data.len(), 3)));
    });
}

#[test]
fn root_tags_come_off_and_are_told() {
    between(|a, b| {
        let mut ring = open(b, Traffic::Received);
        let sender = Sender::new(a).unwrap();
        let plain = frame(100, 9);
        let (inner, outer) = ([0x81, 0, 0xe0, 7], [0x88, 0xa8, 0x0f, 0xff]);
        sender.send(&plain).unwrap();
        sender.send(&tagged(plain.clone(), inner)).unwrap();
        sender.send(&tagged(tagged(plain.clone(), inner), outer)).unwrap();
        sender.send(&tagged(plain.clone(), [0x81, 0, 0, 0])).unwrap();
        let received = receive(&mut ring, 4);
        let tags: Vec<_> = received.iter().map(|packet| packet.tag).collect();
        assert_eq!(tags, [None, Some(inner), Some(outer), Some([0x81, 0, 0, 0])]);
        let double = tagged(plain.clone(), inner);
        let data: Vec<_> = received.into_iter().map(|packet| packet.data).collect();
        assert_eq!(data, [plain.clone(), plain.clone(), double, plain]);
    });
}

#[test]
fn root_directions_are_told_and_chosen() {
    between(|a, b| {
        let (from_a, from_b) = (Sender::new(a).unwrap(), Sender::new(b).unwrap());
        let mut rings = [Traffic::Both, Traffic::Received, Traffic::Sent].map(|traffic| open(a, traffic));
        let mut seen = rings.each_ref().map(|_| Vec::new());
        // The second round comes after all of the first: what is not wanted of that would be there, too.
        for size in [60, 70] {
            from_a.send(&frame(size, 1)).unwrap();
            from_b.send(&frame(size + 1, 2)).unwrap();
            for ((ring, wanted), seen) in rings.iter_mut().zip([2, 1, 1]).zip(&mut seen) {
                let packets = receive(ring, wanted);
                seen.extend(packets.iter().map(|packet| (packet.sent, packet.data.len())));
            }
        }
        let (sent, received) = ([(true, 60), (true, 70)], [(false, 61), (false, 71)]);
        let both = [sent[0], received[0], sent[1], received[1]];
        assert_eq!(seen, [both.to_vec(), received.to_vec(), sent.to_vec()]);
        let counted = rings.each_mut().map(|ring| ring.statistics().unwrap().packets);
        assert_eq!(counted, [4, 2, 2], "what is not wanted is not counted");
    });
}

#[test]
fn root_every_drop_is_counted_and_marked() {
    between(|a, b| {
        // 144 bytes a packet: 28 fit in a block, less when it is closed for its age.
        let options =
            RingOptions { interface: Some(b), block_bytes: 4096, blocks: 2, retire_ms: 100, ..OPTIONS };
        let mut witness = (open(b, Traffic::Received), 0);
        let mut ring = PacketRing::open(&options).unwrap();
        let sender = Sender::new(a).unwrap();
        let mut send = |frames| {
            (0..frames).for_each(|_| assert_eq!(sender.send(&frame(60, 0)), Ok(60)));
            wait_for_more(&mut witness, frames);
        };
        send(1000);
        let block = ring.ready().unwrap();
        assert_eq!((block.number, block.losing), (0, false));
        let full = ring.statistics().unwrap();
        assert!(full.packets == 1000 && (944..1000).contains(&full.drops), "{full:?}");
        let kept = usize::try_from(full.packets - full.drops).unwrap();
        assert_eq!(receive(&mut ring, kept).len(), kept);
        assert_eq!((ring.look_ahead(0), ring.ready()), ((None, 2), None));

        // Drops that the counter was read of mark no block, later ones mark the next that is closed.
        send(1);
        assert!(readable(&ring, PATIENCE));
        assert!(!ring.ready().unwrap().losing && ring.ready().unwrap().aged);
        send(100);
        // The ring is full, and its blocks are closed.
        let taken = 1 + at_hand(&mut ring).len() as u64;
        send(1);
        assert!(readable(&ring, PATIENCE));
        assert!(ring.ready().unwrap().losing);
        let all = ring.statistics().unwrap();
        assert_eq!(all.packets, 1102);
        assert_eq!(all.packets - all.drops, full.packets - full.drops + taken);
    });
}

#[test]
fn root_nothing_comes_in_after_the_door_is_shut() {
    between(|a, b| {
        let mut witness = (open(b, Traffic::Received), 0);
        let mut ring = open(b, Traffic::Received);
        let sender = Sender::new(a).unwrap();
        let mut send = |seed| {
            (0..500).for_each(|_| assert_eq!(sender.send(&frame(60, seed)), Ok(60)));
            wait_for_more(&mut witness, 500);
        };
        send(1);
        ring.shut().unwrap();
        send(2);
        let received = receive(&mut ring, 500);
        assert_eq!(received.len(), 500);
        assert!(received.iter().all(|packet| packet.data == frame(60, 1)));
        assert_eq!(ring.statistics().unwrap().packets, 500);
    });
}

#[test]
fn root_an_interface_that_goes_down_or_away_is_told_once() {
    between(|_, b| {
        let ring = open(b, Traffic::Both);
        let errno = || ring.health().map_err(|error| error.errno());
        let links = Links::open().unwrap();
        links.take_down("vb").unwrap();
        assert!(readable(&ring, PATIENCE));
        assert_eq!((errno(), errno()), (Err(libc::ENETDOWN), Ok(())));
        assert!(!readable(&ring, Duration::ZERO));
        links.bring_up("vb").unwrap();
        ip("link delete vb");
        assert!(readable(&ring, PATIENCE));
        assert_eq!(errno(), Err(libc::ENODEV));
    });
}

#[test]
fn root_packets_come_again_when_the_interface_is_up_again() {
    between(|a, b| {
        let mut ring = open(b, Traffic::Received);
        let links = Links::open().unwrap();
        links.take_down("vb").unwrap();
        links.bring_up("vb").unwrap();
        assert!(["va", "vb"].map(ready).iter().all(Link::has_carrier));
        ring.health().unwrap_err();
        Sender::new(a).unwrap().send(&frame(60, 1)).unwrap();
        assert_eq!(receive(&mut ring, 1).len(), 1);
    });
}

#[test]
fn root_promiscuous_mode_ends_with_who_asked() {
    const IFF_PROMISC: u32 = 0x100;
    between(|a, _| {
        let promiscuous = || {
            let listing = Command::new("ip").args(["-d", "link", "show", "va"]).output().unwrap();
            String::from_utf8(listing.stdout).unwrap().contains("promiscuity 1")
        };
        assert!(!promiscuous());
        let asked = Promiscuous::new(a).unwrap();
        assert!(promiscuous());
        drop(asked);
        assert!(!promiscuous() && ready("va").flags & IFF_PROMISC == 0);
    });
}

#[test]
fn root_what_is_not_there_is_an_error_that_says_so() {
    between(|_, _| {
        for interface in [4711, u32::MAX] {
            let error = PacketRing::open(&RingOptions { interface: Some(interface), ..OPTIONS }).unwrap_err();
            assert_eq!(error.errno(), libc::ENODEV, "{error}");
            assert!(error.to_string().contains(&interface.to_string()), "{error}");
            assert_eq!(Promiscuous::new(interface).unwrap_err().errno(), libc::ENODEV);
        }
        let error =
            PacketRing::open(&RingOptions { interface: Some(1), block_bytes: 4095, ..OPTIONS }).unwrap_err();
        assert_eq!(error.errno(), libc::EINVAL, "{error}");
    });
}
