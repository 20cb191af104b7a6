//! Filters with each source: matching packets are captured, others are counted, and replacing a filter at full rate
//! neither loses nor duplicates packets.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use weir::filter::{Dialect, Matcher, Receiver, SystemNames};
use weir::filter_control::FilterControl;
use weir::parts::{FilterSlot, FilterSlotKind};
use weir::{
    Capture, CaptureStats, Chunk, Direction, Error, Filter, InterfaceWarning, Mode, Namespace, SourceChoice,
};
use weir_filter::interpret::Packet;
use weir_lab::{
    Call, FrameSender, Generator, Network, SequenceCheck, SequenceReport, Traffic, Veth, refuse, root_test,
    tcp_transfer,
};

use crate::common::{self, AtEnd, drain, on_one_processor, take, take_of, wait_for, wait_until};
use crate::{assert_closed, on_rx, on_rx_with_room};

/// The last byte of a frame's number.
const EVEN: &str = "udp and ether[51] & 1 = 0";
const ODD: &str = "udp and ether[51] & 1 = 1";

fn filter(text: &str) -> Filter {
    Filter::new(text).dialect(Dialect::Pcap).names(SystemNames::new())
}

/// Sends `count` frames while `capture` runs, and says what became of them.
fn run(
    network: &Network,
    capture: &mut Capture,
    traffic: &Traffic,
    count: u64,
) -> (SequenceReport, CaptureStats) {
    let mut generator = Generator::new(network.pair(), traffic).expect("the generator loads").cpu(1);
    let mut check = SequenceCheck::new(traffic, 0..count);
    let sending = thread::spawn(move || generator.send(count).expect("frames are sent"));
    while !sending.is_finished() {
        if let Some(chunk) = capture.next(Duration::from_millis(10)).expect("the capture goes on").taken() {
            chunk.packets().for_each(|packet| check.frame(packet.data));
        }
    }
    assert_eq!(sending.join().expect("the sender does not panic").accepted, count);
    take(capture, count, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
    drain(capture, |chunk| chunk.packets().for_each(|packet| check.frame(packet.data)));
    (check.finish(), capture.stats().expect("the account can be had"))
}

each_way!(what_a_filter_does_not_want_is_counted_and_not_captured);

fn what_a_filter_does_not_want_is_counted_and_not_captured(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 20_000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).filter(filter(EVEN)).open().unwrap();
        assert_eq!(capture.interfaces()[0].filter.as_deref(), Some(&*format!("{EVEN} (dialect pcap)")));
        let (report, account) = run(&network, &mut capture, &traffic, COUNT);
        let total = account.total();
        assert_closed(&account);
        assert_eq!((report.total.received, report.total.duplicated), (COUNT / 2, 0), "{source:?} {total:?}");
        assert_eq!((total.captured, total.lost, total.errors), (COUNT / 2, 0, 0), "{source:?} {total:?}");
        // The neighbours may have something to say of their own.
        let filtered = total.filtered.expect("counted");
        assert!(filtered >= COUNT / 2 && total.seen == total.captured + filtered, "{source:?} {total:?}");
    });
}

#[root_test]
fn root_what_classic_bpf_refuses_is_told_as_not_counted() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let builder = on_rx(&network).source(SourceChoice::AfPacket).direction(Direction::Out);
        let mut capture = builder.filter(filter("ether[0] & 1 = 0")).open().unwrap();
        let sender = FrameSender::new(&network.pair().rx).unwrap();
        for first in [0, 1, 2, 3] {
            let mut frame = vec![0; 60];
            frame[0] = first;
            sender.send(&frame).unwrap();
        }
        let mut taken = Vec::new();
        // What is refused is in no counter; but the last that is not comes behind the first that is.
        take(&mut capture, 2, |chunk| taken.extend(chunk.packets().map(|packet| packet.data[0])));
        drain(&mut capture, |_| panic!("everything was taken"));
        let total = capture.stats().unwrap().total();
        assert_eq!(taken, [0, 2]);
        assert_eq!((total.filtered, total.seen, total.captured), (None, 2, 2));
    });
}

#[root_test]
fn root_all_interfaces_are_filtered_as_they_are_saved() {
    const COUNT: u64 = 1000;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        // Behind the header of 20 bytes: IPv4, UDP, the number.
        let text = "udp and ether[0:2] = 0x0800 and ether[57] & 1 = 1";
        let mut capture = common::capture().interface("any").filter(filter(text)).open().unwrap();
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        let mut odd = 0;
        take(&mut capture, COUNT, |chunk| {
            for packet in chunk {
                assert!(packet.data[57] & 1 == 1 && packet.data.len() == 60 - 14 + 20);
                odd += 1;
            }
        });
        drain(&mut capture, drop);
        let account = capture.stats().unwrap();
        assert_closed(&account);
        assert_eq!(odd, COUNT / 2);
        assert!(account.total().filtered.is_some_and(|filtered| filtered >= COUNT / 2));
    });
}

/// Exchanges the filter between `texts` until `done`; counts how often.
fn alternate(filter_control: &FilterControl, texts: [&str; 2], exchanged: &AtomicU64, done: &AtomicBool) {
    let programs = texts.map(|text| {
        let places = filter_control.slots().expect("the places can be had").into_iter();
        places
            .map(|place: FilterSlot| place.make(Some(&filter(text))).expect("a program"))
            .collect::<Vec<_>>()
    });
    for programs in programs.iter().rev().cycle() {
        filter_control.put(programs).expect("it is put in place");
        exchanged.fetch_add(1, Ordering::Relaxed);
        if done.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(Duration::from_micros(300));
    }
}

each_way!(an_exchange_at_full_rate_loses_and_doubles_nothing);

fn an_exchange_at_full_rate_loses_and_doubles_nothing(source: SourceChoice, mode: Mode) {
    // In parts, each of which begins with another filter than the one before.
    const PARTS: u64 = 10;
    const PART: u64 = 5_000;
    const COUNT: u64 = PARTS * PART;
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    // Both want everything; then each wants the half that the other does not.
    for texts in [["udp", "ip or ether[51] & 1 = 1"], [EVEN, ODD]] {
        let mut generator = Generator::new(network.pair(), &traffic).unwrap().cpu(1);
        network.rx().run(|| {
            let builder = on_rx_with_room(&network, COUNT, 60).source(source).mode(mode);
            let mut capture = builder.filter(filter(texts[0])).open().unwrap();
            let (filter_control, exchanged, done) =
                (capture.filter_control(), AtomicU64::new(0), AtomicBool::new(false));
            let mut check = SequenceCheck::new(&traffic, 0..COUNT);
            let mut look = |chunk: &Chunk| chunk.packets().for_each(|packet| check.frame(packet.data));
            thread::scope(|scope| {
                let _done = AtEnd(&done);
                scope.spawn(|| alternate(&filter_control, texts, &exchanged, &done));
                let sending = scope.spawn(|| {
                    let exchanged = || exchanged.load(Ordering::Relaxed);
                    for part in 0..PARTS {
                        let before = exchanged();
                        wait_until(
                            || exchanged() > before,
                            || format!("{before} exchanges before part {part}"),
                        );
                        assert_eq!(generator.send(PART).expect("frames are sent").accepted, PART);
                    }
                });
                while !sending.is_finished() {
                    capture
                        .next(Duration::from_millis(10))
                        .expect("it goes on")
                        .taken()
                        .iter()
                        .for_each(&mut look);
                }
                sending.join().expect("all is sent");
                take(&mut capture, COUNT, &mut look);
            });
            drain(&mut capture, |chunk| look(&chunk));
            let (report, account) = (check.finish(), capture.stats().unwrap());
            assert_closed(&account);
            let total = account.total();
            let told = format!("{source:?} {mode:?} {texts:?}: {total:?} {report:?}");
            assert_eq!((report.total.duplicated, report.total.reordered, total.errors), (0, 0, 0), "{told}");
            if texts[1] != ODD {
                assert_eq!(report.total.lost, total.lost, "{told}");
                assert_eq!(total.captured - report.corrupt, COUNT - total.lost, "{told}");
            } else {
                let filtered = total.filtered.expect("counted");
                let own = total.captured - report.corrupt;
                assert!(own + total.lost + filtered >= COUNT, "{told}");
                assert!(filtered > 0 && own > 0, "{told}");
            }
            if !matches!(source, SourceChoice::AfPacket | SourceChoice::AfXdp) {
                assert_eq!(total.lost, 0, "the pool has room for all: {told}");
            }
        });
    }
}

each_way!(a_filter_comes_and_goes_while_the_capture_runs:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
    root_af_packet(AfPacket, Pass),
);

fn a_filter_comes_and_goes_while_the_capture_runs(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let mut capture = on_rx(&network).source(source).mode(mode).open().unwrap();
        assert_eq!(captured(&mut capture, &mut generator), COUNT, "{source:?}");
        capture.set_filter(Some(&filter(ODD))).unwrap();
        assert_eq!(capture.interfaces()[0].filter.as_deref(), Some(&*format!("{ODD} (dialect pcap)")));
        assert_eq!(captured(&mut capture, &mut generator), COUNT / 2, "{source:?}");
        capture.set_filter(Some(&filter("tcp"))).unwrap();
        assert_eq!(captured(&mut capture, &mut generator), 0, "{source:?}");
        capture.set_filter(None).unwrap();
        assert_eq!(captured(&mut capture, &mut generator), COUNT, "{source:?}");
        drain(&mut capture, |_| panic!("everything was taken"));
        assert_closed(&capture.stats().unwrap());
    });
}

/// Frames of a burst.
const COUNT: u64 = 500;

/// Sends a burst; how many of its frames are captured.
fn captured(capture: &mut Capture, generator: &mut Generator) -> u64 {
    let send = || {
        assert_eq!(generator.send(COUNT).unwrap().accepted, COUNT);
        COUNT
    };
    let mut frames = 0;
    take_of(capture, send, |chunk| {
        frames += chunk.packets().filter(|packet| packet.data.len() == 60).count() as u64;
    });
    frames
}

#[root_test]
fn root_what_cannot_be_is_refused() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        let wrong = on_rx(&network).filter(filter("udp prot 80")).open().unwrap_err();
        assert!(matches!(wrong, Error::Filter(_)), "{wrong}");
        let mut capture = on_rx(&network).source(SourceChoice::Tc).open().unwrap();
        assert!(matches!(capture.set_filter(Some(&filter("port"))), Err(Error::Filter(_))));
        capture.set_filter(Some(&filter("port 80"))).unwrap();
    });
}

#[root_test]
fn root_a_term_is_false_where_an_interface_lacks_its_layer() {
    let network = Network::new(Veth::default()).unwrap();
    let pair = network.pair().clone();
    let mut frame = [&pair.rx.mac[..], &pair.tx.mac, &[8, 0, 0x45, 0, 0, 46]].concat();
    frame.resize(60, 7);
    let sender = FrameSender::new(&pair.tx).unwrap();
    network.rx().run(|| {
        for line in ["tuntap add tun0 mode tun", "address add 10.9.9.1/24 dev tun0", "link set tun0 up"] {
            let args: Vec<&str> = line.split(' ').collect();
            assert!(std::process::Command::new("ip").args(&args).status().unwrap().success(), "ip {line}");
        }
        let socket = std::net::UdpSocket::bind("10.9.9.1:0").unwrap();
        let mac: Vec<_> = pair.tx.mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let source = format!("ether src {}", mac.join(":"));
        let both = || on_rx(&network).interface("tun0").source(SourceChoice::Tc).direction(Direction::Both);
        let mut capture = both().filter(Filter::new(&*source)).open().unwrap();
        let ours = |capture: &mut Capture| {
            sender.send(&frame).unwrap();
            socket.send_to(b"no Ethernet here", "10.9.9.2:9").unwrap();
            let mut taken = Vec::new();
            drain(capture, |chunk| {
                let ours = |packet: &weir::Packet<'_>| {
                    packet.data == frame || packet.data.ends_with(b"no Ethernet here")
                };
                taken.extend(chunk.packets().filter(ours).map(|packet| packet.interface));
            });
            taken
        };
        assert_eq!(ours(&mut capture), [0]);
        let mut capture = both().open().unwrap();
        capture.set_filter(Some(&Filter::new(format!("not {source}")))).unwrap();
        assert_eq!(ours(&mut capture), [1]);
        let wrong = both().filter(Filter::new("type mgt or udp")).open().unwrap_err().to_string();
        assert!(wrong.contains(&pair.rx.name) || wrong.contains("tun0"), "{wrong}");
        let alone = common::capture().interface("tun0").filter(Filter::new(&*source)).open().unwrap_err();
        assert!(alone.to_string().contains("invalid filter for `tun0`: "), "{alone}");
    });
}

/// What the kernel does not take is asked in the process, which is told; what advises that is true.
#[root_test]
fn root_a_filter_that_is_too_long_is_asked_in_the_process_and_told() {
    let term = |n: usize| format!("(ip[{}] = {} and len > {})", n % 60, n % 256, n % 1400);
    let text: Vec<String> = (0..30_000).map(term).collect();
    let text = format!("{} or greater 60", text.join(" or "));
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(100).unwrap().between(network.pair());
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    network.rx().run(|| {
        let with = |source| on_rx(&network).source(source).filter(Filter::new(&*text)).open();
        let refused = with(SourceChoice::Tc).expect_err("too long for eBPF").to_string();
        assert!(refused.contains("source `af_packet`"), "{refused}");
        let mut capture = with(SourceChoice::AfPacket).expect("there is no limit");
        let warnings = &capture.interfaces()[0].warnings;
        let [InterfaceWarning::FilterInProcess { why }] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(why.contains("kernel accepts at most 4096"), "{why}");
        let mut packets = 0;
        let send = || sender.send_frames(&traffic.frames(0..4)).unwrap();
        take_of(&mut capture, send, |chunk| packets += chunk.packets().count());
        assert_eq!(packets, 4);
    });
}

/// What two captures have taken of one transfer over TCP, the first without a filter and the second with `text`.
fn side_by_side(text: &str, segment: bool) -> [(Vec<Vec<u8>>, CaptureStats); 2] {
    let network = Network::new(Veth::default().ipv4()).unwrap();
    let pair = network.pair().clone();
    network.rx().run(|| {
        let open = |filter: Option<Filter>| {
            // Room for all, once for each processor.
            let builder = on_rx_with_room(&network, 4 << 10, 1500).source(SourceChoice::Tc);
            let builder = builder.direction(Direction::Both).segment(segment);
            filter.into_iter().fold(builder, weir::Builder::filter).open().unwrap()
        };
        let mut captures = [open(None), open(Some(filter(text)))];
        let mut taken = [Vec::new(), Vec::new()];
        let transfer = thread::spawn(move || tcp_transfer(&pair, 1 << 20).expect("the transfer succeeds"));
        let mut last = false;
        while !last {
            last = transfer.is_finished();
            for (capture, taken) in captures.iter_mut().zip(&mut taken) {
                while let Some(chunk) = capture.next(Duration::from_millis(10)).unwrap().taken() {
                    taken.extend(chunk.packets().map(|packet| packet.data.to_vec()));
                }
            }
        }
        transfer.join().expect("the transfer does not panic");
        captures.iter_mut().zip(&mut taken).for_each(|(capture, taken)| {
            drain(capture, |chunk| taken.extend(chunk.packets().map(|packet| packet.data.to_vec())));
        });
        let stats = captures.map(|capture| capture.stats().unwrap());
        let mut taken = taken.into_iter();
        stats.map(|account| {
            assert_closed(&account);
            let total = account.total();
            assert_eq!((total.lost, total.errors), (0, 0), "{text}: {total:?}");
            (taken.next().expect("as many"), account)
        })
    })
}

fn is_tcp(frame: &[u8]) -> bool {
    frame[12..14] == [8, 0] && frame[23] == 6
}

#[root_test]
fn root_bytes_behind_the_first_buffer_are_found_by_tc() {
    // Of a super-frame the first buffer has the headers, and pages have the rest.
    for text in
        ["tcp and ether[700] & 1 = 1", "tcp and ether[20000:4] & 3 != 1", "ether[ether[3000] + 9000] > 99"]
    {
        let compiled = filter(text).compile(Receiver {
            link_type: 1,
            metadata: false,
            swapped: false,
            netmask: None,
            tags_lost: false,
        });
        let matcher = Matcher::new(&compiled.unwrap());
        let wants = |frame: &[u8]| {
            let length = u32::try_from(frame.len()).expect("a packet");
            matcher.matches(&Packet { data: frame, length, ..Packet::default() })
        };
        let [(all, _), (mut taken, account)] = side_by_side(text, false);
        let (mut wanted, unwanted): (Vec<_>, Vec<_>) = all.into_iter().partition(|frame| wants(frame));
        let large = |frames: &[Vec<u8>]| frames.iter().filter(|frame| frame.len() > 20_000).count();
        assert!(large(&wanted) > 1 && large(&unwanted) > 1, "{text}: {} {}", wanted.len(), unwanted.len());
        // Each processor has a queue of its own.
        wanted.sort();
        taken.sort();
        assert!(taken == wanted, "{text}: {} packets, not {}", taken.len(), wanted.len());
        assert!(
            account.total().filtered >= Some(unwanted.iter().filter(|frame| is_tcp(frame)).count() as u64)
        );
    }
}

#[root_test]
fn root_super_frames_are_filtered_whole_and_counted_as_segments() {
    let tcp = |frames: &[Vec<u8>]| frames.iter().filter(|frame| is_tcp(frame)).count() as u64;
    let longest = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).max().unwrap_or(0);
    for text in ["not tcp", "not (tcp and greater 2000)"] {
        let [(all, _), (taken, account)] = side_by_side(text, true);
        assert!(longest(&all) <= 1514);
        let filtered = account.total().filtered.expect("counted");
        // A segment has 1448 bytes of the stream at most.
        assert!(filtered > (1 << 20) / 1448 / 2, "{text}: {filtered}");
        assert_eq!(tcp(&all), tcp(&taken) + filtered, "{text}");
        assert_eq!(tcp(&taken) > 0, text != "not tcp", "{text}");
    }
    let [(all, _), (taken, _)] = side_by_side("tcp and greater 2000", true);
    assert!(longest(&taken) <= 1514 && tcp(&taken) == taken.len() as u64);
    assert!(taken.len() > all.len() / 2 && taken.len() < all.len(), "{} of {}", taken.len(), all.len());
}

/// Asks for so many different things that it does not become a set.
fn long(terms: u32) -> String {
    let term = |index: u32| format!("ether[60:4] & {} = {}", index | 1 << 20, index & 0xffff | 1);
    let wanted = "ether[51] & 1 = 1".to_owned();
    (0..terms).map(term).chain([wanted]).collect::<Vec<_>>().join(" or ")
}

#[root_test]
fn root_what_classic_bpf_has_no_room_for_the_process_asks() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        // Classic BPF alone could be asked of what is sent: the process asks.
        let builder = on_rx(&network).source(SourceChoice::AfPacket).direction(Direction::Out);
        let mut capture = builder.filter(filter(&long(3000))).open().unwrap();
        let sender = FrameSender::new(&network.pair().rx).unwrap();
        for last in [0, 1, 2, 3] {
            let mut frame = vec![0; 70];
            frame[51] = last;
            sender.send(&frame).unwrap();
        }
        let mut taken = Vec::new();
        take(&mut capture, 4, |chunk| taken.extend(chunk.packets().map(|packet| packet.data[51])));
        drain(&mut capture, |_| panic!("everything was taken"));
        let account = capture.stats().unwrap();
        assert_closed(&account);
        assert_eq!(taken, [1, 3]);
        // The neighbours may have something to say of their own.
        assert!(account.total().filtered >= Some(2), "{:?}", account.total());
    });
}

/// Arithmetic so deep that its results have no room in an eBPF program.
fn deep() -> String {
    fn sum(depth: u32, first: u32) -> String {
        match depth {
            0 => format!("ether[{first}]"),
            _ => format!("({} - {})", sum(depth - 1, first), sum(depth - 1, first + (1 << (depth - 1)))),
        }
    }
    format!("{} = 1", sum(13, 0))
}

each_way!(what_has_no_room_in_a_program_is_refused_and_the_filter_before_stays:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
);

fn what_has_no_room_in_a_program_is_refused_and_the_filter_before_stays(source: SourceChoice, mode: Mode) {
    const COUNT: u64 = 100;
    let told = |error: Error| {
        let said = error.to_string();
        let refused = matches!(error, Error::FilterRefused { .. });
        assert!(
            refused && said.contains("`rx0`") && said.contains("use less deeply nested arithmetic"),
            "{said}"
        );
    };
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    network.rx().run(|| {
        let on_rx = || on_rx(&network).source(source).mode(mode);
        told(on_rx().filter(filter(&deep())).open().unwrap_err());
        // Nothing was left there, so another capture may come.
        let mut capture = on_rx().filter(filter(EVEN)).open().unwrap();
        told(capture.set_filter(Some(&filter(&deep()))).unwrap_err());
        let (report, account) = run(&network, &mut capture, &traffic, COUNT);
        assert_closed(&account);
        assert_eq!(report.total.received, COUNT / 2, "{source:?}: even ones of {account:?}");
    });
}

each_way!(a_filter_that_is_not_taken_everywhere_is_put_back:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
    root_af_packet(AfPacket, Pass),
);

fn a_filter_that_is_not_taken_everywhere_is_put_back(source: SourceChoice, mode: Mode) {
    let mut network = Network::new(Veth::default()).unwrap();
    network.connect(Veth::default()).unwrap();
    let names: Vec<_> = network.pairs().iter().map(|pair| pair.rx.name.clone()).collect();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        let builder = names.iter().fold(common::capture(), |builder, name| builder.interface(name));
        let mut capture = builder.source(source).mode(mode).filter(filter(ODD)).open().unwrap();
        let filter_control = capture.filter_control();
        let make = |place: FilterSlot| place.make(Some(&filter("tcp"))).unwrap();
        let mut programs: Vec<_> = filter_control.slots().unwrap().into_iter().map(make).collect();
        // No program, as the kernel will find; with several hooks those in front of it are taken.
        let last = programs[1].descriptors.last_mut().unwrap();
        *last = File::open("/dev/null").unwrap().into();
        match filter_control.put(&programs).unwrap_err() {
            Error::FilterPutBack { back, kept, .. } => {
                assert_eq!(back, [names[0].clone()]);
                assert!(kept.is_empty(), "{kept:?}");
            }
            other => panic!("{source:?}: {other}"),
        }
        assert_eq!(captured(&mut capture, &mut generator), COUNT / 2, "{source:?}");
        // Where nobody has had it there is nothing to tell of.
        programs.reverse();
        programs[0].interface = 0;
        let refused = filter_control.put(&programs).unwrap_err();
        assert!(!matches!(refused, Error::FilterPutBack { .. }), "{source:?}: {refused}");
        assert_eq!(captured(&mut capture, &mut generator), COUNT / 2, "{source:?}");
        // No filter is put back as well.
        capture.set_filter(None).unwrap();
        programs.reverse();
        programs[1].interface = 1;
        assert!(matches!(filter_control.put(&programs), Err(Error::FilterPutBack { .. })));
        assert_eq!(captured(&mut capture, &mut generator), COUNT, "{source:?}");
        drain(&mut capture, drop);
        assert_closed(&capture.stats().unwrap());
    });
}

#[root_test]
fn root_a_filter_in_the_process_is_exchanged_and_put_back() {
    // Behind the header of 20 bytes, without that of Ethernet.
    let texts = ["udp and ether[57] & 1 = 0", "udp and ether[57] & 1 = 1"];
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    let other = Namespace::find(&format!("/proc/{}/ns/net", std::process::id())).unwrap();
    network.rx().run(|| {
        let mut capture = common::capture()
            .interface("any")
            .interface_in(&other, "lo")
            .source(SourceChoice::AfPacket)
            .filter(filter(texts[0]))
            .open()
            .unwrap();
        let mut parity = |capture: &mut Capture| {
            // Others may have something to say on their loopback.
            let known = |account: &CaptureStats| {
                let total = account.interfaces[0].total();
                total.captured + total.filtered.expect("counted")
            };
            let sent = known(&capture.stats().unwrap()) + generator.send(COUNT).unwrap().accepted;
            wait_for(capture, |account| known(account) >= sent);
            let mut numbers = Vec::new();
            take(capture, 0, |chunk| {
                let ours = chunk.packets().filter(|packet| packet.interface == 0);
                numbers.extend(ours.map(|packet| packet.data[57] & 1));
            });
            assert_eq!(numbers.len() as u64, COUNT / 2);
            numbers.dedup();
            numbers
        };
        assert_eq!(parity(&mut capture), [0]);
        let filter_control = capture.filter_control();
        let make = |place: FilterSlot| place.make(Some(&filter(texts[1]))).unwrap();
        let mut programs: Vec<_> = filter_control.slots().unwrap().into_iter().map(make).collect();
        filter_control.put(&programs[..1]).unwrap();
        assert_eq!(parity(&mut capture), [1]);
        let make = |place: FilterSlot| place.make(Some(&filter(texts[0]))).unwrap();
        programs = filter_control.slots().unwrap().into_iter().map(make).collect();
        programs[1].interface = 7;
        match filter_control.put(&programs) {
            Err(Error::FilterPutBack { back, .. }) => assert_eq!(back, ["any"]),
            other => panic!("{other:?}"),
        }
        assert_eq!(parity(&mut capture), [1]);
        // When the pump has ended nobody waits for it.
        capture.stop().unwrap();
        programs[1].interface = 1;
        filter_control.put(&programs).unwrap();
        // Where a sandbox forbids executable memory the filter is interpreted, which is told.
        refuse(Call::Code);
        let builder = common::capture().interface("any").source(SourceChoice::AfPacket);
        let mut capture = builder.filter(filter(texts[1])).open().unwrap();
        let detail = &capture.interfaces()[0].detail;
        let why = "filter interpreted (slower): executable memory is forbidden, by a sandbox or by the service \
                   manager (MemoryDenyWriteExecute=yes)";
        assert!(detail.contains(why), "{detail}");
        assert_eq!(parity(&mut capture), [1]);
    });
}

#[root_test]
fn root_without_room_in_the_socket_the_process_asks_and_the_remedy_helps() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let mut generator = Generator::new(network.pair(), &traffic).unwrap();
    network.rx().run(|| {
        // Of this namespace alone, or else of the whole machine.
        if weir_sys::kernel::version() < (6, 9) {
            return weir_skip::this_test("before Linux 6.9 sockets of all namespaces have the same room");
        }
        let set_room = |bytes: &str| fs::write("/proc/sys/net/core/optmem_max", bytes).unwrap();
        let told = |said: &str| {
            let why = "it does not fit into a packet socket (net.core.optmem_max = 1500); to make room: ";
            assert!(said.contains(why) && said.ends_with("sysctl -w net.core.optmem_max=131072"), "{said}");
        };
        let open =
            |text: &str| on_rx(&network).source(SourceChoice::AfPacket).filter(filter(text)).open().unwrap();
        // Odd ones: in front of that it asks for the first bytes of the number, which are zeros.
        let long = format!("udp and ({})", long(100).replace("ether[60:4]", "ether[46:4]"));

        set_room("1500");
        let mut capture = open(&long);
        let warnings = &capture.interfaces()[0].warnings;
        let [InterfaceWarning::FilterInProcess { why }] = &warnings[..] else { panic!("{warnings:?}") };
        told(why);
        assert_eq!(captured(&mut capture, &mut generator), COUNT / 2);
        drain(&mut capture, drop);
        assert_closed(&capture.stats().unwrap());

        set_room("131072");
        let mut capture = open(EVEN);
        let filter_control = capture.filter_control();
        let program = || filter_control.slots().unwrap().remove(0).make(Some(&filter(&long))).unwrap();
        let mut parity = |capture: &mut Capture| {
            let mut numbers = Vec::new();
            take_of(
                capture,
                || generator.send(COUNT).unwrap().accepted,
                |chunk| {
                    let ours = chunk.packets().filter(|packet| packet.data.len() == 60);
                    numbers.extend(ours.map(|packet| packet.data[51] & 1));
                },
            );
            assert_eq!(numbers.len() as u64, COUNT / 2);
            numbers.dedup();
            numbers
        };
        // The room is gone when the program comes: the filter before stays.
        let roomy = program();
        set_room("1500");
        told(&filter_control.put(&[roomy]).unwrap_err().to_string());
        assert_eq!(parity(&mut capture), [0]);
        // One that is made for that room moves into the process.
        filter_control.put(&[program()]).unwrap();
        assert!(matches!(filter_control.slots().unwrap()[0].kind, FilterSlotKind::Process));
        assert_eq!(parity(&mut capture), [1]);
        drain(&mut capture, drop);
        assert_closed(&capture.stats().unwrap());

        set_room("131072");
        assert!(open(&long).interfaces()[0].warnings.is_empty(), "as it was told");
    });
}

#[root_test]
fn root_a_broadcast_is_one_of_the_interfaces_network() {
    let frame = |destination: [u8; 4]| {
        let mut frame = vec![0; 60];
        frame[..6].fill(0xff);
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 253]);
        frame[30..34].copy_from_slice(&destination);
        frame
    };
    let network = Network::new(Veth::default().ipv4()).unwrap();
    let [a, b, c, _] = network.pair().rx.ipv4.unwrap().octets();
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    for source in [SourceChoice::Tc, SourceChoice::AfPacket] {
        network.rx().run(|| {
            let wanted = Filter::new("ip broadcast");
            let mut capture = on_rx(&network).source(source).filter(wanted).open().unwrap();
            let destinations = [[255; 4], [a, b, c, 255], [a, b, c, 254], [a, b, c, 0], [a, b, c, 1]];
            on_one_processor(|| destinations.iter().for_each(|&one| sender.send(&frame(one)).unwrap()));
            let mut taken = Vec::new();
            take(&mut capture, 5, |chunk| taken.extend(chunk.packets().map(|packet| packet.data[33])));
            assert_eq!(taken, [255, 255, 0], "{source:?}");
        });
    }
    let silent = Network::new(Veth::default()).unwrap();
    silent.rx().run(|| {
        let refused = on_rx(&silent).filter(Filter::new("ip broadcast")).open().unwrap_err();
        assert!(matches!(refused, Error::Filter(_)) && refused.to_string().contains("mask"), "{refused}");
        on_rx(&silent).filter(filter("ip broadcast")).open().expect("as tcpdump: 255.255.255.255 alone");
    });
}
