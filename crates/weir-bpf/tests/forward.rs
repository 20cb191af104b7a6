//! What becomes of redirected packets is counted with its reason: as the kernel tells it, and as it would.

use std::fs;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use weir_bpf::forward::{Counters, Forward, Options, Witnesses};
use weir_bpf::writers::Driven;
use weir_sys::bpf::XdpHook;
use weir_sys::netns::NetNs;
use weir_sys::packet::Sender;
use weir_sys::testrun;
use weir_sys::veth::{self, End};
use weir_sys::xsk::{FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

const XDP_REDIRECT: u32 = 4;

/// Errors of the kernel, as a tracepoint passes them.
const ENOBUFS: i32 = -105;
const ENETDOWN: i32 = -100;
const EOPNOTSUPP: i32 = -95;
const EMSGSIZE: i32 = -90;
const ENOSPC: i32 = -28;
const ENXIO: i32 = -6;

/// A namespace of its own with a pair of interfaces, in which nobody else sends; `test` gets the indices of both.
fn with_pair(test: impl FnOnce([u32; 2]) + Send) {
    let namespace = match NetNs::new() {
        Ok(namespace) => namespace,
        Err(error) => return weir_skip::this_test(error),
    };
    namespace.run(|| {
        // Without IPv6 there are no neighbours to look for. A kernel without it has no such file.
        let _absent = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let end = |name| End { mtu: Some(3400), ..End::named(name) };
        veth::create_ends(&end("one"), &end("other")).expect("a pair");
        test(veth::bring_up(["one", "other"]).expect("they come up").map(|link| link.index));
    });
}

fn options(from: u32) -> Options {
    Options {
        from: Driven { index: from, hands_on: false },
        queues: 1,
        queues_back: 0,
        fragments: false,
        to_sockets: false,
        past_sockets: true,
        tags_of: None,
        rules: false,
        copies: None,
    }
}

/// Redirects packets to an interface and plays the kernel that says what became of them.
struct Played {
    forward: Forward,
    witnesses: Witnesses,
}

impl Played {
    fn new(to: u32) -> Self {
        // What is pending is known by processor.
        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        sched_setaffinity(None, &only).expect("this processor");
        // Test runs are on the loopback device.
        let (forward, _) = Forward::load(&options(1)).expect("it loads");
        forward.set_target(to).expect("it is there");
        let witnesses = forward.witnesses().expect("they are loaded");
        Self { forward, witnesses }
    }

    fn redirect(&self, packets: u32) {
        for _ in 0..packets {
            let answer = testrun::run(self.forward.program(), &[7; 60], 1).expect("it runs");
            assert_eq!(answer.value, XDP_REDIRECT);
        }
    }

    fn sent(&self, taken: u32, left: u32, error: i32) {
        let arguments = [0, 0, taken.into(), left.into(), i64::from(error).cast_unsigned()];
        testrun::run_tracepoint(self.witnesses.sent.as_fd(), &arguments).expect("it runs");
    }

    fn refused(&self, error: i32, map: u32) {
        let arguments = [0, 0, 0, i64::from(error).cast_unsigned(), 0, map.into(), 0];
        testrun::run_tracepoint(self.witnesses.refused.as_fd(), &arguments).expect("it runs");
    }

    fn counters(&self) -> Counters {
        self.forward.queues().counters(0).expect("a queue")
    }
}

#[test]
fn what_the_kernel_says_of_redirected_packets_is_counted_with_its_reason() {
    with_pair(|[_, to]| {
        let played = Played::new(to);
        let mut expected = Counters::default();
        let redirect = |expected: &mut Counters, packets: u32| {
            played.redirect(packets);
            expected.seen += u64::from(packets);
            expected.bytes += u64::from(packets) * 60;
        };
        redirect(&mut expected, 16);
        played.sent(10, 6, 0);
        (expected.forwarded, expected.no_room) = (10, 6);
        assert_eq!(played.counters(), expected, "the driver had no room for some");
        redirect(&mut expected, 5);
        played.sent(0, 5, ENXIO);
        expected.unable = 5;
        assert_eq!(played.counters(), expected, "the driver could not send at all");

        redirect(&mut expected, 4);
        played.refused(EMSGSIZE, played.witnesses.target);
        expected.too_long = 1;
        assert_eq!(played.counters(), expected);
        for error in [ENETDOWN, EOPNOTSUPP, ENOSPC] {
            played.refused(error, played.witnesses.target);
            expected.unable += 1;
            assert_eq!(played.counters(), expected);
        }
        // What is known of by now is not pending: all of that is about packets of other programs.
        played.sent(3, 4, 0);
        played.refused(EMSGSIZE, played.witnesses.target);
        assert_eq!(played.counters(), expected);
        redirect(&mut expected, 3);
        for map in [played.witnesses.sockets, played.witnesses.sockets.max(played.witnesses.target) + 1, 0] {
            played.refused(EMSGSIZE, map);
            played.refused(ENOBUFS, map);
        }
        assert_eq!(played.counters(), expected, "maps of others, and sockets that nothing is sent to");
        played.sent(3, 0, 0);
        expected.forwarded += 3;
        assert_eq!(played.counters(), expected);
        let queues = played.forward.queues();
        queues.counters(queues.len()).expect_err("there is no such queue");
    });
}

#[test]
fn what_a_socket_does_not_take_is_counted_with_its_reason() {
    with_pair(|[from, to]| {
        let sender = Sender::new(from).expect("a socket");
        let (forward, _) = Forward::load(&Options { to_sockets: true, past_sockets: false, ..options(to) })
            .expect("it loads");
        // Frames hold 1792 bytes; there are eight, and room for four in the ring.
        let memory =
            UmemOptions { frames: 8, frame_size: FrameSize::TwoKib, zero_copy: false, segments: false };
        let memory = Umem::new(memory).expect("memory");
        let mut socket =
            XskSocket::bind(&memory, to, 0, XskOptions { receive: 4, send: 0 }).expect("it is bound");
        let mut frames = Vec::new();
        memory.take(4, &mut frames);
        assert_eq!(socket.refill(&mut frames), 4);
        forward.insert(0, &socket).expect("it is a socket");
        let _attached = forward.attach(to, XdpHook::Native).expect("nobody else is there");

        let mut expected = Counters::default();
        let mut send = |length: usize, change: &dyn Fn(&mut Counters)| {
            sender.send(&vec![7; length]).expect("it is sent");
            expected.seen += 1;
            expected.bytes += length as u64;
            change(&mut expected);
            let began = Instant::now();
            loop {
                let found = forward.queues().counters(0).expect("a queue");
                if found == expected {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(30), "{found:?} instead of {expected:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        send(1792, &|counters| counters.handed += 1);
        send(1793, &|counters| counters.too_long += 1);
        send(3000, &|counters| counters.too_long += 1);
        for _ in 0..3 {
            send(60, &|counters| counters.handed += 1);
        }
        // The ring is full.
        send(60, &|counters| counters.no_room += 1);
        send(3000, &|counters| counters.too_long += 1);
        let mut received = Vec::new();
        assert_eq!(socket.receive(&memory, 4, &mut received), 4);
        // There is room in it, but no frame.
        send(60, &|counters| counters.no_room += 1);
    });
}
