//! Forwarding inside the kernel.

use std::time::{Duration, Instant};

use weir::forward::{ForwardBuilder, ForwardCounters};
use weir::{Error, Event, Filter};
use weir_bpf::forward::{Forward as Programs, Options};
use weir_bpf::writers::Driven;
use weir_lab::{
    Action, FrameSender, Generator, Hook, SequenceCheck, Tagging, Traffic, Veth, require_kernel, root_test,
};
use weir_sys::bpf::XdpHook;
use weir_sys::ethtool::{Ethtool, Feature};
use weir_sys::kernel;

use crate::common::{self, PATIENCE, wait_until};
use crate::{RATE, at, between, closed, forth, frames, ip, lab, open, two, wait_for};

/// Since when veth tells XDP of tags beside the frame, and since when packets of several buffers are redirected.
const TOLD: (u32, u32) = (6, 8);
pub(crate) const REDIRECTED: (u32, u32) = (6, 3);
/// What tests need.
const TAGS: &str = "a tag beside a frame, which XDP is told of,";

#[root_test]
fn root_both_ways_at_once_each_packet_arrives_as_it_was() {
    const COUNT: u64 = 20_000;
    // As many queues as there are on one side only.
    for queues in [(1, 1), (2, 1), (1, 2)] {
        let network = lab(Veth::default().queues(queues.0), Veth::default().queues(queues.1));
        let forward = open(&network, forth().both(true)).expect("it forwards");
        let [here, there] = [0, 1].map(|number| &network.pairs()[number]);
        let captures = [at(there), at(here)];
        let traffics = [here, there].map(|pair| Traffic::new(60).unwrap().flows(8).unwrap().between(pair));
        std::thread::scope(|scope| {
            for (cpu, (pair, traffic)) in (0..).zip([here, there].into_iter().zip(&traffics)) {
                let generator = Generator::new(pair, traffic).expect("it loads").cpu(cpu).rate(RATE);
                let mut generator = generator.expect("a rate");
                scope.spawn(move || assert_eq!(generator.send(COUNT).expect("frames").accepted, COUNT));
            }
        });
        for (capture, traffic) in captures.into_iter().zip(&traffics) {
            let mut check = SequenceCheck::new(traffic, 0..COUNT);
            frames(capture, COUNT).iter().for_each(|frame| check.frame(frame));
            let report = check.finish();
            assert!(report.is_perfect(), "{queues:?}: {:?} {:?}", report.total, report.first_corrupt);
        }
        let account = closed(forward);
        let all =
            weir::with!(ForwardCounters::default(), seen = COUNT, forwarded = COUNT, bytes = COUNT * 60);
        assert_eq!(
            account.directions.iter().map(|way| way.total()).collect::<Vec<_>>(),
            [all, all],
            "{queues:?}"
        );
        assert!(!ip(&network, "-d link show").contains("xdp"), "nothing is left");
    }
}

#[root_test]
fn root_a_filter_is_exchanged_and_the_rest_is_for_the_stack() {
    const COUNT: u64 = 40_000;
    let network = two();
    let pair = network.pair();
    let forward = open(&network, forth().filter(Filter::new("udp src port 1024"))).expect("it forwards");
    let filter_control = forward.filter_control();
    let capture = at(&network.pairs()[1]);
    let traffic = Traffic::new(60).unwrap().flows(4).unwrap().between(pair);
    let mut generator = Generator::new(pair, &traffic).expect("it loads").rate(RATE).expect("a rate");
    let sending = std::thread::spawn(move || generator.send(COUNT).expect("frames").accepted);
    let mut exchanges = 0;
    while !sending.is_finished() {
        for text in ["udp src port 1024 or 1025", "udp src port 1024"] {
            let filter = Filter::new(text);
            let make = |place: weir::parts::FilterSlot| place.make(Some(&filter)).expect("a program");
            let programs: Vec<_> = filter_control.slots().expect("places").into_iter().map(make).collect();
            filter_control.put(&programs).expect("it is exchanged");
            exchanges += 1;
        }
    }
    assert_eq!(sending.join().expect("no panic"), COUNT);
    let counters = closed(forward).total();
    let frames = frames(capture, counters.forwarded);
    // Each packet met one filter or the other: flow 0 always came through, flow 1 sometimes, the others never.
    let flows = |flow: u16| {
        let port = (1024 + flow).to_be_bytes();
        frames.iter().filter(|frame| frame[34..36] == port).count() as u64
    };
    assert_eq!((flows(0), flows(2), flows(3)), (COUNT / 4, 0, 0));
    assert!(flows(1) <= COUNT / 4 && exchanges > 1, "{} after {exchanges} exchanges", flows(1));
    let forwarded = flows(0) + flows(1);
    assert_eq!((counters.seen, counters.forwarded, counters.filtered), (COUNT, forwarded, COUNT - forwarded));
}

#[root_test]
fn root_a_tag_beside_the_frame_is_in_it_at_the_other_end() {
    let network = two();
    if kernel::version() < TOLD {
        let error = open(&network, forth().lose_tags(false)).expect_err("tags would be lost");
        assert!(error.to_string().contains("tagged packets would lose their tags"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("accept the loss")), "{error:?}");
        let way = open(&network, forth()).expect("it was asked for").directions().remove(0);
        assert!(way.notes.iter().any(|note| note.contains("lose their tags")), "{:?}", way.notes);
        let error = open(&network, forth().filter(Filter::new("vlan 6"))).expect_err("it matches nothing");
        assert!(error.to_string().contains("cannot match them"), "{error}");
        return;
    }
    let forth = || forth().lose_tags(false);
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let inline = Traffic::new(64).unwrap().vlan(7).unwrap().between(network.pair());
    for (tag, frame) in
        [(None, inline.frame(1)), (Some((0x8100, 5)), traffic.frame(2)), (Some((0x88a8, 6)), inline.frame(3))]
    {
        let forward = open(&network, forth()).expect("it forwards");
        let capture = at(&network.pairs()[1]);
        let tagging =
            tag.map(|(protocol, tci)| Tagging::on(&network.pair().tx, protocol, tci).expect("it tags"));
        FrameSender::new(&network.pair().tx).expect("a socket").send(&frame).expect("it is sent");
        let received = frames(capture, 1);
        drop(tagging);
        let mut expected = frame.clone();
        if let Some((protocol, tci)) = tag {
            expected.splice(12..12, [u16::to_be_bytes(protocol), u16::to_be_bytes(tci)].concat());
        }
        assert_eq!(received, [expected], "{tag:?}");
        assert_eq!(closed(forward).total().forwarded, 1);
    }
}

/// What a filter asks and what is forwarded is the packet as it was on the wire, from the first filter on.
#[root_test]
fn root_a_filter_finds_a_tag_beside_the_frame_and_it_is_forwarded() {
    if !require_kernel("root_a_filter_finds_a_tag_beside_the_frame_and_it_is_forwarded", TOLD, TAGS) {
        return;
    }
    let network = two();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    let _tagging = Tagging::on(&network.pair().tx, 0x8100, 5).expect("it tags");
    for first in [None, Some("vlan 5 and udp")] {
        let builder = first.map(Filter::new).into_iter().fold(forth(), ForwardBuilder::filter);
        let mut forward = open(&network, builder).expect("it forwards");
        let way = &forward.directions()[0];
        assert!(!way.notes.iter().any(|note| note.contains("tags")), "{:?}", way.notes);
        let filter_control = forward.filter_control();
        let mut forwarded = 0;
        for (number, (filter, wanted)) in
            [(first, true), (Some("not vlan"), false), (Some("vlan 5"), true), (None, true)]
                .into_iter()
                .enumerate()
        {
            if number > 0 {
                let filter = filter.map(Filter::new);
                let make = |place: weir::parts::FilterSlot| place.make(filter.as_ref()).expect("a program");
                let programs: Vec<_> =
                    filter_control.slots().expect("places").into_iter().map(make).collect();
                filter_control.put(&programs).expect("it is exchanged");
            }
            let capture = at(&network.pairs()[1]);
            let mut frame = traffic.frame(number as u64);
            FrameSender::new(&network.pair().tx).expect("a socket").send(&frame).expect("it is sent");
            frame.splice(12..12, [0x81, 0, 0, 5]);
            let expected = if wanted { vec![frame] } else { Vec::new() };
            wait_for(&mut forward, number as u64 + 1);
            assert_eq!(frames(capture, wanted.into()), expected, "{first:?} {filter:?}");
            forwarded += u64::from(wanted);
        }
        let counters = closed(forward).total();
        assert_eq!((counters.seen, counters.forwarded, counters.filtered), (4, forwarded, 4 - forwarded));
    }
}

#[root_test]
fn root_what_is_forwarded_is_copied_as_it_goes_out() {
    if !require_kernel("root_what_is_forwarded_is_copied_as_it_goes_out", TOLD, TAGS) {
        return;
    }
    const COUNT: u64 = 20_000;
    let network = two();
    let [here, there] = [0, 1].map(|number| &network.pairs()[number]);
    let _tagging = Tagging::on(&here.tx, 0x8100, 5).expect("it tags");
    let builder = forth().both(true).filter(Filter::new("udp src port 1024 or vlan 5"));
    let mut forward = open(&network, builder.copied(common::with_room_for(COUNT, 60))).expect("it forwards");
    let mut copy = forward.take_copy().expect("it was asked for");
    assert!(forward.take_copy().is_none());
    let names: Vec<_> = copy.interfaces().iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["rx0", "rx1"]);
    // One way with a tag beside each frame, by a socket; the other way at a rate, every other frame wanted.
    let capture = at(there);
    let few = Traffic::new(60).unwrap().between(here);
    FrameSender::new(&here.tx).expect("a socket").send_frames(&few.frames(0..5)).expect("they are sent");
    let sent = frames(capture, 5);
    assert!(sent.len() == 5 && sent.iter().all(|frame| frame[12..16] == [0x81, 0, 0, 5]), "{sent:?}");
    let traffic = Traffic::new(60).unwrap().flows(2).unwrap().between(there);
    let mut generator = Generator::new(there, &traffic).expect("it loads").rate(RATE).expect("a rate");
    assert_eq!(generator.send(COUNT).expect("frames").accepted, COUNT);
    let counters = closed(forward).total();
    assert_eq!((counters.forwarded, counters.filtered), (5 + COUNT / 2, COUNT / 2));
    copy.stop().expect("it stops");
    let (mut back, mut check) = (Vec::new(), SequenceCheck::new(&traffic, 0..COUNT));
    while let Some(chunk) = copy.next(Duration::ZERO).expect("what was copied can be taken").taken() {
        for packet in &chunk {
            match packet.interface {
                0 => back.push(packet.data.to_vec()),
                _ => check.frame(packet.data),
            }
        }
    }
    assert_eq!(back, sent);
    let report = check.finish();
    assert_eq!((report.total.received, report.corrupt), (COUNT / 2, 0));
    let total = copy.stats().expect("it counts").total();
    assert_eq!((total.seen, total.captured, total.lost, total.errors), (5 + COUNT / 2, 5 + COUNT / 2, 0, 0));
}

#[root_test]
fn root_long_frames_in_several_buffers_arrive_whole() {
    let long = || Veth::default().mtu(9000);
    let network = lab(long(), long());
    if kernel::version() < REDIRECTED {
        let error = open(&network, forth()).expect_err("they would vanish");
        assert!(error.to_string().contains("this kernel cannot redirect multi-buffer packets"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("ip link set rx0 mtu 3498")), "{error:?}");
        // What the hint says does it, and what fits then arrives.
        let fitting = || Veth::default().mtu(3498);
        let network = lab(fitting(), fitting());
        let forward = open(&network, forth()).expect("it forwards");
        let frame = Traffic::new(3512).unwrap().between(network.pair()).frame(1);
        let capture = at(&network.pairs()[1]);
        FrameSender::new(&network.pair().tx).expect("a socket").send(&frame).expect("it is sent");
        assert_eq!(frames(capture, 1), [frame]);
        assert_eq!(closed(forward).total().lost(), 0);
        return;
    }
    let forward = open(&network, forth()).expect("it forwards");
    let capture = at(&network.pairs()[1]);
    let sender = FrameSender::new(&network.pair().tx).expect("a socket");
    let sizes = [60, 1514, 3000, 4096, 9014];
    let sent = sizes.map(|size| Traffic::new(size).unwrap().between(network.pair()).frame(size as u64));
    sent.iter().for_each(|frame| sender.send(frame).expect("it is sent"));
    assert_eq!(frames(capture, sent.len() as u64), sent);
    let counters = closed(forward).total();
    assert_eq!((counters.forwarded, counters.bytes), (5, sizes.iter().sum::<usize>() as u64));
}

#[root_test]
fn root_what_does_not_arrive_is_counted_with_its_reason() {
    let network = two();
    let mut forward = open(&network, forth()).expect("it forwards");
    let sender = FrameSender::new(&network.pair().tx).expect("a socket");
    let short = Traffic::new(60).unwrap().between(network.pair()).frame(1);
    let long = Traffic::new(1400).unwrap().between(network.pair()).frame(2);
    let mut sent = 0;
    let mut send = |times: u64, frame: &[u8]| {
        (0..times).for_each(|_| sender.send(frame).expect("it is sent"));
        sent += times;
        wait_for(&mut forward, sent)
    };
    assert_eq!(send(3, &long).forwarded, 3);
    ip(&network, "link set rx1 mtu 1000");
    assert_eq!(send(5, &long).too_long, 5);
    ip(&network, "link set rx1 down");
    assert_eq!(send(7, &short).unable, 7);
    ip(&network, "link set rx1 up");
    // The interface is gone, and with it what forwarding is for.
    ip(&network, "link del rx1");
    assert_eq!(send(11, &short).errors, 11);
    let (start, mut events) = (Instant::now(), Vec::<Event>::new());
    let error = loop {
        assert!(start.elapsed() < PATIENCE, "{events:?}");
        match forward.wait(Duration::from_millis(100)) {
            Ok(more) => events.extend(more),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, Error::InterfaceGone { name } if name == "rx1"), "{error}");
    let told: Vec<String> = events.iter().map(Event::to_string).collect();
    assert!(told.iter().any(|text| text.starts_with("rx1 is down")), "{told:?}");
    assert!(told.last().is_some_and(|text| text.starts_with("rx1 is gone")), "{told:?}");
    let counters = closed(forward).total();
    assert_eq!((counters.seen, counters.lost()), (3 + 5 + 7 + 11, 5 + 7 + 11));
}

/// What becomes of packets when a process with handlers is gone, and its sockets with it.
#[root_test]
fn root_without_sockets_packets_go_past_them_or_nowhere() {
    let network = two();
    let traffic = Traffic::new(60).unwrap().between(network.pair());
    for past_sockets in [true, false] {
        let (from, to) = (network.pair().rx.index, network.pairs()[1].rx.index);
        let options = Options {
            from: Driven { index: from, hands_on: false },
            queues: 1,
            queues_back: 0,
            fragments: false,
            to_sockets: true,
            past_sockets,
            tags_of: None,
            rules: false,
            copies: None,
        };
        let (programs, attached) = network.rx().run(|| {
            let (programs, _) = Programs::load(&options).expect("it loads");
            programs.set_target(to).expect("it is there");
            let attached = programs.attach(from, XdpHook::Native).expect("nobody else is there");
            (programs, attached)
        });
        let capture = at(&network.pairs()[1]);
        Generator::new(network.pair(), &traffic).expect("it loads").send(100).expect("frames");
        let counters = || programs.queues().counters(0).expect("a queue");
        wait_until(
            || counters().forwarded + counters().errors == 100,
            || format!("100 packets: {:?}", counters()),
        );
        let forwarded = if past_sockets { 100 } else { 0 };
        assert_eq!(frames(capture, forwarded).len() as u64, forwarded);
        let counters = counters();
        let expected = if past_sockets { (100, 100, 0) } else { (100, 0, 100) };
        assert_eq!((counters.seen, counters.forwarded, counters.errors), expected, "{counters:?}");
        drop(attached);
    }
}

#[root_test]
fn root_what_does_not_go_together_is_refused_with_nothing_attached() {
    let network = lab(Veth::default(), Veth::default().mtu(1400));
    let refused = |builder: ForwardBuilder, parts: &[&str]| {
        let error = open(&network, builder).expect_err("must be refused");
        let text = format!("{error}; {}", error.hint().unwrap_or_default());
        parts.iter().for_each(|part| assert!(text.contains(part), "no `{part}` in: {text}"));
        assert!(!ip(&network, "-d link show").contains("xdp"), "{text}");
    };
    refused(between("rx0", "rx0"), &["cannot forward `rx0` to itself"]);
    refused(between("rx0", "rx2"), &["no interface named `rx2`", "did you mean `rx"]);
    refused(between("any", "rx1"), &["`any`"]);
    refused(forth(), &["MTU 1500", "MTU 1400", "ip link set rx1 mtu 1500"]);
    refused(between("rx1", "rx0").both(true), &["MTU 1500", "ip link set rx1 mtu 1500"]);
    refused(between("lo", "rx0"), &["lo"]);
    refused(between("rx1", "rx0").filter(Filter::new("tcp prot 80")), &["invalid filter"]);
    ip(&network, "link set rx1 down");
    refused(between("rx1", "rx0"), &["`rx1` is down", "ip link set rx1 up"]);

    // Without GRO at its other end veth takes no redirected packets.
    let network = lab(Veth::default(), Veth::default().feature("gro", false));
    if kernel::version() < REDIRECTED {
        let way = open(&network, forth()).expect("nobody tells").directions().remove(0);
        assert!(way.notes.iter().any(|note| note.contains("ethtool -K PEER gro on")), "{:?}", way.notes);
    } else {
        let error = open(&network, forth()).expect_err("must be refused");
        assert!(error.to_string().contains("veth requires GRO or an XDP program"), "{error}");
        // All that has to be changed is told at once.
        ip(&network, "link set rx1 mtu 1400");
        let error = open(&network, forth()).expect_err("must be refused");
        let hint = error.hint().expect("what to do");
        assert!(matches!(&error, Error::ForwardFaults { faults } if faults.len() == 2), "{error:?}");
        for part in ["veth requires GRO or an XDP program", "; packets from `rx0` (MTU 1500)"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        for part in ["ethtool -K PEER gro on", "; then: ip link set rx1 mtu 1500"] {
            assert!(hint.contains(part), "{hint}");
        }
        ip(&network, "link set rx1 mtu 1500");
    }
    assert!(open(&network, between("rx1", "rx0")).is_ok(), "the other way it does");

    // What the other end does with checksums is known where it is found; the note names it.
    let network = two();
    ip(&network, "link add near type veth peer name far");
    ip(&network, "link set near up");
    ip(&network, "link set far up");
    let notes = || open(&network, between("near", "rx1")).expect("it forwards").directions().remove(0).notes;
    assert!(notes().iter().any(|note| note.ends_with("ethtool -K far tx off")), "{:?}", notes());
    let checksums = || {
        let ethtool = Ethtool::new().expect("a socket");
        let on = |feature: &Feature| feature.on && feature.name.starts_with("tx-checksum-");
        let on: Vec<_> = ethtool.features("far").into_iter().filter(on).map(|feature| feature.name).collect();
        assert!(!on.is_empty());
        let off: Vec<_> = on.iter().map(|name| (&**name, false)).collect();
        ethtool.set_features("far", &off).expect("they are off");
    };
    network.rx().run(checksums);
    assert!(!notes().iter().any(|note| note.contains("checksums")), "{:?}", notes());

    // So is whether it has GRO, before Linux 6.3 too.
    let error = open(&network, between("rx1", "near")).expect_err("must be refused");
    assert!(error.hint().is_some_and(|hint| hint.ends_with("ethtool -K far gro on")), "{error:?}");
    network.rx().run(|| Ethtool::new()?.set_features("far", &[("rx-gro", true)])).expect("it is on");
    let notes = open(&network, between("rx1", "near")).expect("it forwards").directions().remove(0).notes;
    assert!(!notes.iter().any(|note| note.contains("GRO")), "{notes:?}");

    let others = Hook::attach(&network.pair().rx, Action::Pass).expect("a program");
    let error = open(&network, forth().both(true)).expect_err("must be refused");
    assert!(error.to_string().contains("another XDP program is attached to `rx0`"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("end process ")), "{error:?}");
    // One way back its program is in nobody's way.
    assert!(open(&network, between("rx1", "rx0")).is_ok());
    drop(others);
    assert!(open(&network, forth()).is_ok());
}
