//! Filters and VLAN tags: a filter finds a tag in the frame as well as one stripped by the device, and the captured
//! packet contains it.

use std::process::Command;

use weir::{Error, Filter, Mode, SourceChoice};
use weir_lab::{FrameSender, Network, Port, Tagging, Traffic, Veth, root_test};
use weir_sys::netns::NetNs;

use crate::common::{capture, drain, take_of};
use crate::{assert_closed, on_rx, on_wire, send_and_take};

/// A tag beside the frame (its EtherType and contents), one inside, and the tags as they are on the wire.
type Tags = (Option<(u16, u16)>, Option<u16>, &'static [u8]);

const TAGS: [Tags; 5] = [
    (None, None, &[]),
    (None, Some(5), &[0x81, 0, 0, 5]),
    (Some((0x8100, 0x2005)), None, &[0x81, 0, 0x20, 5]),
    (Some((0x88a8, 7)), Some(5), &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5]),
    (Some((0x8100, 6)), None, &[0x81, 0, 0, 6]),
];

/// Expressions, and which of the tags they want.
const EXPRESSIONS: [(&str, [bool; 5]); 9] = [
    ("vlan", [false, true, true, true, true]),
    ("not vlan", [true, false, false, false, false]),
    ("vlan 5", [false, true, true, true, false]),
    ("vlan 5 and udp", [false, true, true, true, false]),
    ("vlan 5 and tcp", [false; 5]),
    ("vlan 7 and vlan 5", [false, false, false, true, false]),
    ("vlan in {5, 77} and port in {9}", [false, true, true, true, false]),
    ("udp and greater 103", [false, false, true, true, true]),
    ("udp", [true; 5]),
];

each_way!(filters_find_tags_wherever_they_are:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
    root_af_packet(AfPacket, Pass),
    root_af_xdp(AfXdp, Exclusive),
);

fn filters_find_tags_wherever_they_are(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let tx = &network.pair().tx;
    for (index, (beside, inside, wire_tags)) in TAGS.into_iter().enumerate() {
        let mut traffic = Traffic::new(100).unwrap().between(network.pair());
        if let Some(tag) = inside {
            traffic = traffic.vlan(tag).unwrap();
        }
        let _tagging = beside.map(|(protocol, tci)| Tagging::on(tx, protocol, tci).unwrap());
        network.rx().run(|| {
            let builder = on_rx(&network).source(source).mode(mode);
            let mut capture = builder.filter(Filter::new("tcp port 1")).open().unwrap();
            let interface = &capture.interfaces()[0];
            assert!(!interface.tags_lost, "{source:?}: {interface:?}");
            let mut captured = 0;
            for (expression, wanted) in EXPRESSIONS {
                let what = format!("{source:?} {expression} {beside:?} {inside:?}");
                capture.set_filter(Some(&Filter::new(expression))).unwrap();
                let wire = |sequence| {
                    let wire = on_wire(&traffic, sequence, beside.is_some(), wire_tags);
                    (wire.clone(), wire.len())
                };
                let expected = if wanted[index] { 0..3 } else { 0..0 };
                captured += expected.end;
                let taken = send_and_take(&mut capture, tx, &traffic.frames(0..3));
                assert_eq!(taken, expected.map(wire).collect::<Vec<_>>(), "{what}");
            }
            drain(&mut capture, drop);
            let account = capture.stats().unwrap();
            assert_closed(&account);
            let total = account.total();
            assert_eq!((total.captured, total.lost, total.errors), (captured, 0, 0), "{source:?}");
            let filtered = total.filtered.expect("counted");
            let unwanted = 3 * EXPRESSIONS.len() as u64 - captured;
            assert!(filtered >= unwanted, "{source:?}: {total:?}");
        });
    }
}

#[root_test]
fn root_a_filter_is_exchanged_from_another_namespace() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(100).unwrap().between(network.pair());
    let tx = &network.pair().tx;
    let _tagging = Tagging::on(tx, 0x8100, 5).unwrap();
    let mut capture = network.rx().run(|| on_rx(&network).source(SourceChoice::Xdp).open().unwrap());
    let mut captured = 0;
    for (filter, wanted) in [(None, 4), (Some("vlan 5"), 4), (Some("not vlan"), 0), (None, 4)] {
        capture.set_filter(filter.map(Filter::new).as_ref()).unwrap();
        let sender = FrameSender::new(tx).unwrap();
        let mut packets = 0;
        let send = || sender.send_frames(&traffic.frames(0..4)).unwrap();
        take_of(&mut capture, send, |chunk| packets += chunk.packets().count());
        assert_eq!(packets, wanted, "{filter:?}");
        captured += wanted as u64;
    }
    // A place that is over takes any filter, and none is asked for.
    let filter_control = capture.filter_control();
    drain(&mut capture, drop);
    assert!(filter_control.slots().unwrap().is_empty());
    capture.set_filter(Some(&Filter::new("udp"))).unwrap();
    let account = capture.stats().unwrap();
    assert_closed(&account);
    assert_eq!((account.total().captured, account.total().filtered), (captured, Some(4)));
}

/// In the stack XDP sees no tag that is beside the frame, so nothing that asks for one is taken, until the other end puts tags
/// into its frames.
#[root_test]
fn root_a_filter_that_xdp_cannot_answer_is_refused() {
    let network = Network::new(Veth::default()).unwrap();
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{line}");
    };
    network.rx().run(|| {
        // What the kernel says of IPv6 on a new interface is tagged, too.
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        // With fewer queues than the other end sends on, veth runs no program itself.
        run("ip link add far0 numtxqueues 2 type veth peer name near0 numtxqueues 1 numrxqueues 1");
        run("ip link set far0 up");
        run("ip link set near0 up");
        let near = || capture().interface("near0").source(SourceChoice::Xdp);
        let with = |builder: weir::Builder, text: &str| builder.filter(Filter::new(text)).open();
        let remedy = "ethtool -K far0 txvlan off tx-vlan-stag-hw-insert off";
        for text in ["vlan 5", "not vlan", "udp and not vlan in {5, 6}", "ether proto 0x8100"] {
            for builder in [
                near(),
                near().mode(Mode::Exclusive),
                near().source(SourceChoice::AfXdp).mode(Mode::Exclusive),
                near().source(SourceChoice::XdpTc),
            ] {
                let refused = with(builder, text).expect_err(text);
                assert!(matches!(refused, Error::Unsupported { .. }), "{text}: {refused}");
                assert!(refused.to_string().contains(remedy), "{text}: {refused}");
                assert!(
                    refused.hint().is_some_and(|hint| hint.contains("use the tc source")),
                    "{text}: {refused:?}"
                );
            }
        }
        for text in ["udp", "inner(vlan 5)"] {
            let mut capture = with(near(), text).expect(text);
            let interface = &capture.interfaces()[0];
            assert!(
                interface.tags_lost && interface.warnings[0].to_string().contains(remedy),
                "{interface:?}"
            );
            let refused = capture.set_filter(Some(&Filter::new("vlan 5"))).expect_err("as at the beginning");
            assert!(matches!(refused, Error::Filter(_)), "{refused}");
        }
        run(remedy);
        let mut capture = with(near(), "vlan 5").expect("tags are in the frames");
        let interface = &capture.interfaces()[0];
        assert!(!interface.tags_lost && interface.warnings.is_empty(), "{interface:?}");
        let links = weir_sys::link::links().unwrap();
        let far = links.iter().find(|link| link.name == "far0").unwrap();
        let far = Port {
            netns: NetNs::current().unwrap().into(),
            name: far.name.clone(),
            index: far.index,
            mac: [2; 6],
            ipv4: None,
            ipv6: None,
            queues: 2,
        };
        let sender = FrameSender::new(&far).unwrap();
        let traffic = Traffic::new(100).unwrap().between(network.pair());
        let _tagging = Tagging::on(&far, 0x8100, 5).unwrap();
        let mut packets = Vec::new();
        let send = || sender.send_frames(&traffic.frames(0..4)).unwrap();
        take_of(&mut capture, send, |chunk| {
            packets.extend(chunk.packets().map(|packet| packet.data[12..16].to_vec()));
        });
        assert_eq!(packets, vec![[0x81, 0, 0, 5]; 4]);
    });
}
