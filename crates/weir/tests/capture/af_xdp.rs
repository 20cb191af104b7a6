//! Special features of AF_XDP: sockets per queue, exhausted frames, other programs' sockets, the stack's share.

use std::net::UdpSocket;

use weir::filter::Dialect;
use weir::{Capture, Delivery, Error, ErrorKind, Filter, Mode, ModeKind, SourceChoice, SourceKind};
use weir_lab::{Generator, Network, SequenceCheck, StackCounters, Traffic, Veth, root_test};
use weir_sys::xsk::{FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

use crate::common::{self, PATIENCE, drain, take, take_of};
use crate::{assert_closed, on_rx};

#[root_test]
fn root_each_queue_has_its_socket_and_its_account() {
    // No more than a queue has frames: nothing is lost, however busy the machine is.
    const COUNT: u64 = 5_000;
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(SourceChoice::AfXdp).mode(Mode::Exclusive).open().unwrap();
        let interface = &capture.interfaces()[0];
        let detail = &interface.detail;
        assert!(detail.starts_with("native XDP to AF_XDP sockets, copied by the kernel"), "{detail}");
        assert!(detail.contains("2 queues of 8192 frames of 2 KiB"), "{detail}");
        assert_eq!(
            (interface.source, interface.mode, interface.queues),
            (SourceKind::AfXdp, ModeKind::Exclusive, 2)
        );
        let mut check = SequenceCheck::new(&traffic, 0..3 * COUNT);
        for (first, cpu) in [(0, 0), (COUNT, 1), (2 * COUNT, 1)] {
            let generator = Generator::numbered_from(first, network.pair(), &traffic);
            let mut generator = generator.unwrap().cpu(cpu);
            let send = || {
                assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
                COUNT
            };
            take_of(&mut capture, send, |chunk| {
                assert_eq!(chunk.queue(), cpu);
                chunk.packets().for_each(|packet| check.frame(packet.data));
            });
        }
        drain(&mut capture, |_| panic!("everything was taken"));
        assert!(check.finish().is_perfect());
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let captured: Vec<u64> =
            account.interfaces[0].queues.iter().map(|queue| queue.counters.captured).collect();
        assert_eq!(captured, [COUNT, 2 * COUNT]);
    });
}

#[root_test]
fn root_polling_busily_nothing_is_lost() {
    const COUNT: u64 = 5_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::AfXdp).mode(Mode::Exclusive);
        let mut capture = builder.delivery(Delivery::Active).open().unwrap();
        let detail = &capture.interfaces()[0].detail;
        assert!(detail.contains(", busy polling, 1 queue"), "{detail}");
        let mut check = SequenceCheck::new(&traffic, 0..COUNT);
        let sent = Generator::new(network.pair(), &traffic).unwrap().send(COUNT).unwrap();
        assert_eq!(sent.accepted, COUNT);
        take(&mut capture, COUNT, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
        drain(&mut capture, |_| panic!("everything was taken"));
        assert!(check.finish().is_perfect());
        assert_closed(&capture.stats().unwrap());
    });
}

#[root_test]
fn root_frames_that_run_out_are_counted_and_what_they_hold_is_delivered() {
    const COUNT: u64 = 100_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
    network.rx().run(|| {
        let builder = common::with_pool(2, 64 << 10).interface(&network.pair().rx.name);
        let mut capture = builder.source(SourceChoice::AfXdp).mode(Mode::Exclusive).open().unwrap();
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        // Nobody has taken anything: the pool is full, and all frames are. When the capture ends both are emptied.
        let mut check = SequenceCheck::new(&traffic, 0..COUNT);
        drain(&mut capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let total = account.total();
        let report = check.finish();
        assert_eq!((total.seen, total.errors), (COUNT, 0), "{total:?}");
        assert_eq!((report.total.received, report.total.duplicated, report.corrupt), (total.captured, 0, 0));
        // What two chunks hold, and 16384 frames.
        let room = 16_384 + 2 * ((64 << 10) / 92 + 1);
        assert!((16_384..=room).contains(&total.captured), "{total:?}");
    });
}

#[root_test]
fn root_what_the_filter_does_not_want_goes_to_the_stack() {
    const COUNT: u64 = 2000;
    let network = Network::new(Veth::default().ipv4()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    let to_stack = || StackCounters::read(network.rx()).unwrap().get("IpInReceives");
    network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::AfXdp).mode(Mode::Exclusive);
        let even = Filter::new("udp and ether[51] & 1 = 0").dialect(Dialect::Pcap);
        let mut capture = builder.filter(even).open().unwrap();
        let mut round = |capture: &mut Capture| {
            let before = to_stack();
            let send = || {
                assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
                COUNT
            };
            let mut captured = 0;
            take_of(capture, send, |chunk| captured += chunk.len() as u64);
            // What is counted as filtered is on its way.
            let wanted = COUNT - captured;
            let got = || to_stack() - before;
            common::wait_until(|| got() >= wanted, || format!("{} of {wanted} reach the stack", got()));
            (captured, got())
        };
        assert_eq!(round(&mut capture), (COUNT / 2, COUNT / 2));
        capture.set_filter(Some(&Filter::new("tcp"))).unwrap();
        assert_eq!(round(&mut capture), (0, COUNT));
        capture.set_filter(None).unwrap();
        assert_eq!(round(&mut capture), (COUNT, 0));
        drain(&mut capture, drop);
        let account = capture.stats().unwrap();
        assert_closed(&account);
        assert_eq!((account.total().seen, account.total().filtered), (3 * COUNT, Some(3 * COUNT / 2)));
    });
}

#[root_test]
fn root_a_queue_that_another_has_is_named() {
    let network = Network::new(Veth::default().queues(2)).unwrap();
    let port = &network.pair().rx;
    network.rx().run(|| {
        let options =
            UmemOptions { frames: 16, frame_size: FrameSize::TwoKib, zero_copy: false, segments: false };
        let umem = Umem::new(options).unwrap();
        let theirs = XskSocket::bind(&umem, port.index, 1, XskOptions { receive: 16, send: 0 }).unwrap();
        let open = || on_rx(&network).source(SourceChoice::AfXdp).mode(Mode::Exclusive).open();
        let refused = open().unwrap_err();
        assert!(matches!(refused, Error::QueueBusy { .. }), "{refused:?}");
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains("queue 1 of interface"), "{refused}");
        assert!(refused.hint().is_some_and(|hint| hint.contains("use the xdp or tc source")), "{refused:?}");
        // On other queues it does not matter.
        drop(on_rx(&network).queues(0..=0).source(SourceChoice::AfXdp).mode(Mode::Exclusive).open().unwrap());
        drop(theirs);
        open().unwrap();
    });
}

#[root_test]
fn root_in_the_stack_where_the_driver_has_no_xdp() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let builder = common::capture().interface("lo").source(SourceChoice::AfXdp);
        let mut capture = builder.mode(Mode::Exclusive).open().unwrap();
        let detail = &capture.interfaces()[0].detail;
        assert!(detail.starts_with("generic XDP to AF_XDP sockets"), "{detail}");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let to = socket.local_addr().unwrap();
        // Of one frame, of several, and of more than a frame of the wire can be.
        for length in [40, 4000, 20_000, 65_000] {
            let payload: Vec<u8> = (0..=250).cycle().take(length).collect();
            socket.send_to(&payload, to).unwrap();
            let chunk = capture.next(PATIENCE).unwrap().taken().expect("it is captured");
            let packet = chunk.packets().next().unwrap();
            assert_eq!(packet.original_len as usize, 42 + length, "{:x?}", &packet.data[..60]);
            assert!(packet.data[42..] == payload, "{length}");
            assert!(socket.recv(&mut [0; 64]).is_err(), "the host has it, too");
        }
        drain(&mut capture, drop);
        assert_closed(&capture.stats().unwrap());
    });
}
