//! Interfaces in other namespaces, all interfaces at once, and interfaces that come and go.

use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir::parts::tc_filters;
use weir::writer::{Writer, WriterOptions};
use weir::{
    Capture, Change, Chunk, Error, Event, FileInterface, Filter, Namespace, SourceChoice, SourceKind,
};
use weir_lab::{FrameSender, NetNs, Network, Port, Traffic, Veth};
use weir_sys::kernel;
use weir_sys::link::{Link, LinkChange, LinkMonitor};

#[path = "common/mod.rs"]
mod common;

use common::{PATIENCE, drain, take, wait_for, wait_until};

/// `$check` as a test for each source, so that they can run at the same time.
macro_rules! each_source {
    ($check:ident: $($test:ident($source:ident $(, $more:expr)?)),+ $(,)?) => {
        mod $check {
            $(
                #[test]
                fn $test() {
                    if weir_lab::require_root(concat!(stringify!($test), "_", stringify!($check))) {
                        super::$check(weir::SourceChoice::$source $(, $more)?);
                    }
                }
            )+
        }
    };
}

/// The lab's namespaces have no names; but their files have paths.
fn namespace(netns: &NetNs) -> Namespace {
    Namespace::find(&format!("/proc/self/fd/{}", netns.as_fd().as_raw_fd())).expect("a namespace")
}

fn ip(netns: &NetNs, arguments: &str) {
    let status = netns.run(|| Command::new("ip").args(arguments.split(' ')).status().expect("ip runs"));
    assert!(status.success(), "ip {arguments}");
}

/// Waits until so many events have come.
fn events(capture: &mut Capture, number: usize) -> Vec<Event> {
    let (start, mut events) = (Instant::now(), Vec::new());
    while events.len() < number {
        assert!(start.elapsed() < PATIENCE, "only {events:?}");
        drop(capture.next(Duration::from_millis(50)).expect("the capture goes on"));
        events.extend(capture.events());
    }
    events
}

fn changes(events: &[Event]) -> Vec<(&str, &Change)> {
    events.iter().map(|event| (event.name.as_str(), &event.change)).collect()
}

each_source!(two_namespaces_with_the_same_interface_are_one_file: root_af_packet(AfPacket), root_xdp(Xdp), root_tc(Tc));

fn two_namespaces_with_the_same_interface_are_one_file(source: SourceChoice) {
    const FRAMES: [u64; 2] = [300, 500];
    let networks = [(); 2].map(|()| Network::new(Veth::default()).unwrap());
    let directory = tempfile::tempdir().unwrap();
    let there = networks.each_ref().map(|network| namespace(network.rx()));
    let builder = common::capture().source(source);
    let builder = there.iter().fold(builder, |builder, namespace| builder.interface_in(namespace, "rx0"));
    let mut capture = builder.open().unwrap();
    let names = there.each_ref().map(|namespace| format!("{}/rx0", namespace.name()));
    assert_eq!(capture.interfaces().iter().map(|one| one.name.clone()).collect::<Vec<_>>(), names);

    let path = directory.path().join("two.pcapng");
    let described: Vec<_> = capture.interfaces().iter().map(FileInterface::from).collect();
    let mut writer = Writer::create(&path, &described, &WriterOptions::default()).unwrap();
    for (network, frames) in networks.iter().zip(FRAMES) {
        let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..frames);
        FrameSender::new(&network.pair().tx).unwrap().send_frames(&frames).unwrap();
    }
    wait_for(&mut capture, |account| account.total().captured >= FRAMES.iter().sum());
    drain(&mut capture, |chunk| writer.write(chunk).unwrap());
    let account = capture.stats().unwrap();
    assert_eq!(account.interfaces.iter().map(|one| one.total().captured).collect::<Vec<_>>(), FRAMES);
    writer.finish(&account).1.unwrap();

    let listing = tshark(&path, &["frame.interface_id", "frame.interface_name"]);
    for (id, (name, frames)) in names.iter().zip(FRAMES).enumerate() {
        let line = format!("{id}\t{name}");
        assert_eq!(listing.iter().filter(|found| **found == line).count() as u64, frames, "{source:?}");
    }
    let info = Command::new("capinfos").arg(&path).output().unwrap();
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    for name in &names {
        assert!(info.contains(&format!("Name = {name}")), "{info}");
    }
}

fn tshark(file: &Path, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-n", "-T", "fields"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[weir_lab::root_test]
fn root_an_interface_is_named_once_and_any_stands_alone() {
    let network = Network::new(Veth::default()).unwrap();
    let there = namespace(network.rx());
    let open = |names: &[&str], source| {
        let builder = common::capture().source(source);
        names.iter().fold(builder, |builder, name| builder.interface_in(&there, *name)).open()
    };
    let again = common::capture().interface_in(&there, "rx0").interface_in(&namespace(network.rx()), "rx0");
    assert!(matches!(again.open(), Err(Error::InterfaceTwice { .. })));
    for names in [["any", "rx0"], ["lo", "any"]] {
        let error = open(&names, SourceChoice::Auto).unwrap_err();
        assert!(matches!(&error, Error::InterfaceIncluded { any, .. } if any.contains("/any")), "{error:?}");
    }
    for source in [SourceChoice::Xdp, SourceChoice::Tc] {
        let error = open(&["any"], source).unwrap_err();
        assert!(error.hint().unwrap().contains("use the af_packet source"), "{error}");
    }
    let error = open(&["rx1"], SourceChoice::Auto).unwrap_err();
    assert!(
        matches!(&error, Error::NoSuchInterface { nearest: Some(near), .. } if near == "rx0"),
        "{error:?}"
    );
    // In another namespace than this one's, and in none of its own: both at once.
    let both = common::capture().interface_in(&there, "lo").interface("lo").source(SourceChoice::AfPacket);
    assert_eq!(both.open().unwrap().interfaces()[1].name, "lo");
}

#[weir_lab::root_test]
fn root_any_sees_what_tcpdump_does() {
    let network = Network::new(Veth::default().ipv4()).unwrap();
    let there = namespace(network.rx());
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours.pcapng"), directory.path().join("theirs.pcap"));

    let mut capture = common::capture().interface_in(&there, "any").open().unwrap();
    assert_eq!(
        (capture.interfaces()[0].source, capture.interfaces()[0].link_type),
        (SourceKind::AfPacket, 276)
    );
    let described: Vec<_> = capture.interfaces().iter().map(FileInterface::from).collect();
    let mut writer = Writer::create(&ours, &described, &WriterOptions::default()).unwrap();
    let mut tcpdump = Command::new("tcpdump");
    // It writes each packet when it has it; its ring has room for more of those that are not too long.
    tcpdump
        .args(["-i", "any", "-U", "--immediate-mode", "-s", "2000", "-Z", "root", "-w"])
        .arg(&theirs)
        .stderr(Stdio::null());
    let mut tcpdump = network.rx().spawn(&mut tcpdump).unwrap();
    // The header is there when it captures.
    wait_until(
        || fs::metadata(&theirs).is_ok_and(|file| file.len() >= 24),
        || "tcpdump does not begin".to_owned(),
    );

    // In, out, and through the loopback.
    let frames = Traffic::new(90).unwrap().between(network.pair()).frames(0..100);
    FrameSender::new(&network.pair().tx).unwrap().send_frames(&frames).unwrap();
    FrameSender::new(&network.pair().rx).unwrap().send_frames(&frames[..50]).unwrap();
    network.rx().run(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in 0..25 {
            socket.send_to(&[number; 20], socket.local_addr().unwrap()).unwrap();
        }
    });
    wait_for(&mut capture, |account| account.total().captured >= 175);
    drain(&mut capture, |chunk| writer.write(chunk).unwrap());
    let account = capture.stats().unwrap();
    assert_eq!((account.total().seen, account.total().captured), (175, 175), "{account:?}");
    writer.finish(&account).1.unwrap();
    wait_until(|| pcap_packets(&theirs) >= 175, || format!("tcpdump has {} packets", pcap_packets(&theirs)));
    let pid = rustix::process::Pid::from_child(&tcpdump);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(tcpdump.wait().unwrap().success());

    let names = tshark(&ours, &["frame.interface_name", "frame.interface_description"]);
    let links = there.links().unwrap();
    let all: Vec<_> = links.iter().map(|link| format!("{} {}", link.index, link.name)).collect();
    assert!(all.len() >= 2 && all[0] == "1 lo", "{all:?}");
    assert_eq!(names[0], format!("{}/any\t{}", there.name(), all.join(", ")));
    let fields = ["frame.len", "frame.cap_len", "sll.ifindex", "sll.pkttype", "sll.hatype", "sll.etype"];
    let fields = [&fields[..], &["sll.src.eth", "udp.srcport", "udp.payload"]].concat();
    let listing = tshark(&ours, &fields);
    let judge = tshark(&theirs, &fields);
    assert_eq!((listing.len(), judge.len()), (175, 175));
    listing.iter().zip(&judge).for_each(|(ours, theirs)| assert_eq!(ours, theirs));
}

#[weir_lab::root_test]
fn root_any_keeps_every_tag_of_a_frame() {
    let network = Network::new(Veth::default()).unwrap();
    let there = namespace(network.rx());
    let plain = Traffic::new(90).unwrap().between(network.pair()).frame(0);
    let tags: [&[u8]; 5] = [
        &[],
        &[0x81, 0, 0, 5],
        &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 5],
        &[0x81, 0, 0, 7, 0x81, 0, 0, 5],
        &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3],
    ];
    let tagged = tags.map(|tags| [&plain[..12], tags, &plain[12..]].concat());
    let length = u8::try_from(plain.len() - 14).unwrap();
    let llc = [&plain[..12], &[0, length, 0x42, 0x42, 3], &plain[17..]].concat();
    let frames = [&tagged[..], &[llc]].concat();
    let mut all = common::capture().interface_in(&there, "any").open().unwrap();
    let mut narrow = common::capture().interface_in(&there, "any").snap_len(40);
    narrow = narrow.filter(Filter::new("vlan 5"));
    let mut narrow = narrow.open().unwrap();
    for end in [&network.pair().tx, &network.pair().rx] {
        FrameSender::new(end).unwrap().send_frames(&frames).unwrap();
    }
    let whole = 2 * frames.len() as u64;
    wait_for(&mut all, |account| account.total().captured >= whole);
    let mut number = 0;
    drain(&mut all, |chunk| {
        for packet in chunk.packets() {
            let frame = &frames[number % frames.len()];
            // 802.3 with LLC is protocol 4 there, and the length is not kept.
            let protocol = if frame[12..14] == [0, length] { &[0, 4] } else { &frame[12..14] };
            assert_eq!((&packet.data[..2], &packet.data[20..]), (protocol, &frame[14..]), "frame {number}");
            assert_eq!(packet.original_len as usize, frame.len() + 6);
            number += 1;
        }
    });
    assert_eq!(number as u64, whole);
    // In each direction, wherever the tag stands.
    wait_for(&mut narrow, |account| account.total().captured >= 6);
    let mut lengths = Vec::new();
    drain(&mut narrow, |chunk| lengths.extend(chunk.packets().map(|packet| packet.data.len())));
    assert_eq!((lengths, narrow.stats().unwrap().total().seen), (vec![40; 6], whole));
}

/// Whole packets in a pcap file that is being written.
fn pcap_packets(file: &Path) -> usize {
    let file = fs::read(file).unwrap();
    let mut rest = file.get(24..).unwrap_or_default();
    let mut packets = 0;
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_ne_bytes(length.try_into().unwrap()) as usize;
        let Some(after) = rest.get(16 + length..) else { break };
        (rest, packets) = (after, packets + 1);
    }
    packets
}

#[weir_lab::root_test]
fn root_any_takes_a_bridged_frame_once_and_new_interfaces_by_itself() {
    const FRAMES: u64 = 200;
    let mut network = Network::new(Veth::default()).unwrap();
    let there = namespace(network.rx());
    let frames = Traffic::new(60).unwrap().frames(0..FRAMES);
    for stacked in [false, true] {
        let mut capture = common::capture().interface_in(&there, "any").stacked(stacked).open().unwrap();
        let bridge = if stacked { "br1" } else { "br0" };
        ip(network.rx(), &format!("link add {bridge} up type bridge mcast_snooping 0"));
        ip(network.rx(), &format!("link set {bridge} addrgenmode none"));
        // While it has no port, what the host sends through it is met nowhere else.
        let sender = weir_lab_port(&network, bridge);
        FrameSender::new(&sender).unwrap().send_frames(&frames[..7]).unwrap();
        let alone = take_of_66(&mut capture, 7);
        assert_eq!(alone, BTreeMap::from([(sender.index, 7)]));

        // A new pair, whose end is a port of the bridge: the frames are for nobody, so they go up to the bridge alone.
        let pair = network.connect(Veth::default()).unwrap().clone();
        ip(network.rx(), &format!("link set {} master {bridge}", pair.rx.name));
        ip(network.rx(), &format!("link set {bridge} promisc on"));
        wait_until(|| forwards(&network, &pair.rx.name), || format!("{} does not forward", pair.rx.name));
        FrameSender::new(&pair.tx).unwrap().send_frames(&frames).unwrap();
        let wanted = if stacked { 2 * FRAMES } else { FRAMES };
        let mut by_interface = take_of_66(&mut capture, wanted);
        drain(&mut capture, |chunk| count_of_66(&mut by_interface, &chunk));
        let bridge_too = if stacked { Some(FRAMES) } else { None };
        assert_eq!(by_interface.get(&pair.rx.index), Some(&FRAMES), "stacked {stacked}: {by_interface:?}");
        assert_eq!(by_interface.get(&sender.index).copied(), bridge_too, "{by_interface:?}");
        let total = capture.stats().unwrap().total();
        let filtered = total.filtered.expect("counted");
        assert_eq!(total.seen, total.captured + filtered, "{total:?}");
        assert_eq!(filtered >= FRAMES, !stacked, "{total:?}");
    }
}

/// Counts packets of 66 bytes, those of this test, by interface.
fn count_of_66(by_interface: &mut BTreeMap<u32, u64>, chunk: &Chunk) {
    for packet in chunk.packets().filter(|packet| packet.data.len() == 66) {
        let index = u32::from_be_bytes(packet.data[4..8].try_into().unwrap());
        *by_interface.entry(index).or_default() += 1;
    }
}

/// Takes chunks until there are so many of them.
fn take_of_66(capture: &mut Capture, packets: u64) -> BTreeMap<u32, u64> {
    let (began, mut by_interface) = (Instant::now(), BTreeMap::new());
    while by_interface.values().sum::<u64>() < packets {
        assert!(began.elapsed() < PATIENCE, "{by_interface:?} {:?}", capture.stats());
        let chunk = capture.next(Duration::from_millis(10)).expect("the capture goes on").taken();
        chunk.iter().for_each(|chunk| count_of_66(&mut by_interface, chunk));
    }
    by_interface
}

/// Whether a port of a bridge forwards.
fn forwards(network: &Network, port: &str) -> bool {
    let state = network.rx().run(|| Command::new("bridge").args(["link", "show", "dev", port]).output());
    String::from_utf8_lossy(&state.expect("bridge runs").stdout).contains("state forwarding")
}

/// An interface of the receiving namespace, as a place to send from.
fn weir_lab_port(network: &Network, name: &str) -> Port {
    let links = namespace(network.rx()).links().unwrap();
    let index = links.iter().find(|link| link.name == name).expect("it is there").index;
    Port { name: name.to_owned(), index, ..network.pair().rx.clone() }
}

each_source!(an_interface_that_goes_down_comes_back: root_af_packet(AfPacket), root_xdp(Xdp), root_tc(Tc));

fn an_interface_that_goes_down_comes_back(source: SourceChoice) {
    let frame = Traffic::new(60).unwrap().frame(0);
    let network = Network::new(Veth::default()).unwrap();
    let mut capture =
        common::capture().interface_in(&namespace(network.rx()), "rx0").source(source).open().unwrap();
    let name = capture.interfaces()[0].name.clone();
    let send = || FrameSender::new(&network.pair().tx).unwrap().send(&frame).unwrap();
    assert_eq!(capture.events(), []);
    send();
    assert_eq!(capture.next(PATIENCE).unwrap().taken().expect("a packet").len(), 1);

    ip(network.rx(), "link set rx0 down");
    assert_eq!(changes(&events(&mut capture, 1)), [(name.as_str(), &Change::Down)], "{source:?}");
    ip(network.rx(), "link set rx0 up");
    let mut told = events(&mut capture, 1);
    assert_eq!(told.remove(0).change, Change::Up, "{source:?}");
    wait_for_carrier(&network);
    send();
    let mut packets = 0;
    take(&mut capture, 2, |chunk| packets += chunk.len());
    assert_eq!(packets, 1, "{source:?}");

    // The other end takes the carrier away; and a name is only a name, which changes while it is up from Linux 6.2 on.
    capture.events();
    ip(network.tx(), "link set tx0 down");
    assert_eq!(events(&mut capture, 1)[0].change, Change::NoCarrier, "{source:?}");
    ip(network.tx(), "link set tx0 up");
    assert_eq!(events(&mut capture, 1)[0].change, Change::Carrier, "{source:?}");
    if kernel::version() >= (6, 2) {
        ip(network.rx(), "link set rx0 name lan0");
        assert_eq!(events(&mut capture, 1)[0].change, Change::Renamed { to: "lan0".into() }, "{source:?}");
    }
    wait_for_carrier(&network);
    send();
    take(&mut capture, 3, |chunk| packets += chunk.len());
    assert_eq!(packets, 2, "{source:?}");
    assert_eq!(capture.stats().unwrap().interfaces[0].name, name);
}

/// Waits until both ends of the pair carry packets again: what is sent before that the kernel drops.
fn wait_for_carrier(network: &Network) {
    // There may be others, which the kernel puts into each namespace.
    let runs = |port: &Port| {
        let links = namespace(&port.netns).links().unwrap();
        links.iter().any(|link| link.index == port.index && carries(link))
    };
    let pair = network.pair();
    wait_until(|| runs(&pair.tx) && runs(&pair.rx), || "there is no carrier".to_owned());
}

/// IFF_RUNNING and IFF_LOWER_UP.
fn carries(link: &Link) -> bool {
    link.flags & 0x1_0040 == 0x1_0040
}

#[weir_lab::root_test]
fn root_without_a_carrier_it_is_said_at_the_beginning() {
    let network = Network::new(Veth::default()).unwrap();
    ip(network.tx(), "link set tx0 down");
    let mut capture = common::capture().interface_in(&namespace(network.rx()), "rx0").open().unwrap();
    assert_eq!(capture.events()[0].change, Change::NoCarrier);
    ip(network.rx(), "link set rx0 down");
    let error = common::capture().interface_in(&namespace(network.rx()), "rx0").open().unwrap_err();
    assert!(matches!(error, Error::InterfaceDown { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("nsenter --net=/proc/self/fd/"), "{error:?}");
}

each_source!(the_others_go_on_when_one_is_gone: root_af_packet(AfPacket, false), root_xdp(Xdp, false), root_tc(Tc, false), root_tc_filters(Tc, true));

fn the_others_go_on_when_one_is_gone(source: SourceChoice, filters: bool) {
    const FRAMES: u64 = 100;
    let mut network = Network::new(Veth::default()).unwrap();
    network.connect(Veth::default()).unwrap();
    let there = namespace(network.rx());
    let builder = common::capture().interface_in(&there, "rx0").interface_in(&there, "rx1");
    let mut capture = tc_filters(builder.source(source), filters).open().unwrap();
    let send = |pair: usize| {
        let pair = &network.pairs()[pair];
        let frames = Traffic::new(60).unwrap().between(pair).frames(0..FRAMES);
        FrameSender::new(&pair.tx).unwrap().send_frames(&frames).unwrap();
    };
    send(0);
    send(1);
    wait_for(&mut capture, |account| account.total().captured == 2 * FRAMES);
    ip(network.rx(), "link delete rx0");
    let mut packets = [0; 2];
    let (start, mut gone) = (Instant::now(), Vec::new());
    while gone.is_empty() {
        assert!(start.elapsed() < PATIENCE, "{source:?}: nothing is told");
        if let Some(chunk) = capture.next(Duration::from_millis(50)).unwrap().taken() {
            packets[chunk.interface() as usize] += chunk.len() as u64;
        }
        gone = capture.events();
        gone.retain(|event| event.change == Change::Gone);
    }
    assert_eq!((gone.len(), gone[0].interface), (1, 0), "{source:?}");
    send(1);
    take(&mut capture, 3 * FRAMES, |chunk| packets[chunk.interface() as usize] += chunk.len() as u64);
    assert_eq!(packets, [FRAMES, 2 * FRAMES], "{source:?}");

    ip(network.rx(), "link delete rx1");
    let start = Instant::now();
    let error = loop {
        assert!(start.elapsed() < PATIENCE, "{source:?}: it does not end");
        if let Err(error) = capture.next(Duration::from_secs(1)) {
            break error;
        }
    };
    assert!(matches!(&error, Error::InterfaceGone { name } if name.ends_with("/rx1")), "{error:?}");
    drain(&mut capture, |_| panic!("everything was taken"));
    let account = capture.stats().unwrap();
    let seen: Vec<_> =
        account.interfaces.iter().map(|one| (one.total().seen, one.total().captured)).collect();
    assert_eq!(seen, [(FRAMES, FRAMES), (2 * FRAMES, 2 * FRAMES)], "{source:?}");
    assert!(account.interfaces.iter().all(|one| one.nic.is_some()));
}

#[weir_lab::root_test]
fn root_more_changes_than_the_kernel_keeps_are_made_up_for() {
    let network = Network::new(Veth::default()).unwrap();
    let there = namespace(network.rx());
    let mut monitor = network.rx().run(LinkMonitor::open).unwrap();
    let mut capture = common::capture().interface_in(&there, "rx0").open().unwrap();
    let script = tempfile::NamedTempFile::new().unwrap();
    let changes = (0..1000).map(|number| format!("link set rx0 mtu {}\n", 1400 + number % 2));
    fs::write(&script, changes.chain(["link delete rx0\n".to_owned()]).collect::<String>()).unwrap();
    ip(network.rx(), &format!("-batch {}", script.path().display()));

    let (mut missed, mut gone) = (false, false);
    monitor
        .changes(|change| match change {
            LinkChange::Missed => missed = true,
            LinkChange::Gone(_) => gone = true,
            LinkChange::Is(_) => {}
        })
        .unwrap();
    assert!(missed && !gone, "the last of so many notices has no room");
    let error = loop {
        if let Err(error) = capture.next(PATIENCE) {
            break error;
        }
    };
    assert!(matches!(error, Error::InterfaceGone { .. }), "{error:?}");
    assert_eq!(capture.events().iter().filter(|event| event.change == Change::Gone).count(), 1);
}

each_source!(a_namespace_ends_with_what_it_was_named_by: root_af_packet(AfPacket, "rx0"), root_xdp(Xdp, "rx0"), root_tc(Tc, "rx0"), root_any(AfPacket, "any"));

fn a_namespace_ends_with_what_it_was_named_by(source: SourceChoice, name: &str) {
    let network = Network::new(Veth::default()).unwrap();
    let mut inside = network.rx().spawn(Command::new("sleep").arg("1000")).unwrap();
    let named = Namespace::find(&inside.id().to_string()).unwrap();
    let mut capture = common::capture().interface_in(&named, name).source(source).open().unwrap();
    drop(named);
    assert_eq!(capture.interfaces()[0].name, format!("{}/{name}", inside.id()));
    let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..10);
    FrameSender::new(&network.pair().tx).unwrap().send_frames(&frames).unwrap();
    let mut packets = 0;
    take(&mut capture, 10, |chunk| packets += chunk.len());
    assert_eq!(packets, 10, "{source:?}");

    inside.kill().unwrap();
    inside.wait().unwrap();
    drop(network); // the sending namespace holds nothing of the receiving one
    let start = Instant::now();
    let error = loop {
        assert!(start.elapsed() < PATIENCE, "{source:?}: it does not end");
        if let Err(error) = capture.next(Duration::from_secs(1)) {
            break error;
        }
    };
    assert!(matches!(error, Error::InterfaceGone { .. }), "{error:?}");
    assert_eq!(capture.events().last().map(|event| event.change.clone()), Some(Change::Gone));
    assert_eq!(capture.stats().unwrap().total().captured, 10);
    assert!(Namespace::find(&inside.id().to_string()).is_err());
}
