//! Counting by key. tshark, which dissects a capture of the same traffic, is the judge.

use std::collections::BTreeMap;

use weir::send::{Pace, Sender};
use weir::statistics::{Key, KeyField};

use super::*;

/// What is counted of each key: received, and sent.
type ByKey = BTreeMap<String, [Count; 2]>;

/// The keys that are counted at once.
const COMBINATIONS: [&[KeyField]; 6] = [
    &KeyField::ALL,
    &[KeyField::Source],
    &[KeyField::Destination, KeyField::Port],
    &[KeyField::SourcePort, KeyField::DestinationPort],
    &[KeyField::Vlan],
    &[KeyField::Protocol],
];

/// Writes a key with all fields as the line that tshark's fields become.
fn line(key: &Key, fields: &[KeyField]) -> String {
    let texts = fields.iter().map(|field| key.field(*field).unwrap_or_else(|| "-".to_owned()));
    texts.collect::<Vec<_>>().join(" ")
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("it fits").to_be_bytes();
    let address = |last: u8| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    [&[0x60, 0, 0, 0][..], &length, &[next, 64], &address(1), &address(2), payload].concat()
}

/// The IPv4 packet as a fragment with this offset and flags.
fn fragment(mut packet: Vec<u8>, place: u16) -> Vec<u8> {
    packet[6..8].copy_from_slice(&place.to_be_bytes());
    packet
}

/// Packets with and without each field, with headers in between, and cut off.
fn varied() -> Vec<Vec<u8>> {
    let udp = |from: u16, to: u16| {
        [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0, 12, 0, 0, 1, 2, 3, 4]].concat()
    };
    let inner = ethernet(Some(0x3007), 0x800, &ipv4(4, 17, 53, 30));
    let labelled = [&[0, 0, 0x11, 0x40][..], &ipv4(7, 6, 443, 10)].concat();
    let mut cut = ipv4(8, 17, 53, 0);
    cut.truncate(22);
    let icmp = [&ipv4(9, 1, 0, 0)[..20], &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]].concat();
    let mut double = ethernet(Some(100), 0x8100, &[]);
    double.splice(18.., [&[0, 5, 8, 0][..], &ipv4(5, 17, 5353, 20)].concat());
    double.resize(90, 0);
    let mut short = ethernet(None, 0x800, &[]);
    short.truncate(14);
    short.extend(cut);
    vec![
        ethernet(None, 0x86dd, &ipv6(17, &udp(5353, 53))),
        ethernet(Some(9), 0x86dd, &ipv6(0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(53, 40_000)].concat())),
        // The first fragment, and one that is not: protocol 17, but no ports.
        ethernet(None, 0x86dd, &ipv6(44, &[&[17, 0, 0, 1, 0, 0, 0, 1][..], &udp(7, 9)].concat())),
        ethernet(None, 0x86dd, &ipv6(44, &[&[17, 0, 0, 8, 0, 0, 0, 1][..], &udp(7, 9)].concat())),
        ethernet(None, 0x800, &fragment(ipv4(1, 17, 4000, 16), 0x2000)),
        ethernet(None, 0x800, &fragment(ipv4(1, 17, 4000, 16), 2)),
        ethernet(Some(0xe000), 0x800, &ipv4(2, 6, 22, 0)),
        ethernet(None, 0x800, &icmp),
        ethernet(None, 0x8847, &labelled),
        ethernet(None, 0x88b5, &[1, 2, 3]),
        inner,
        double,
        short,
    ]
}

/// What tshark is asked for.
const ASKED: [&str; 16] = [
    "frame.len",
    "vlan.id",
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "ip.proto",
    "ipv6.nxt",
    "ipv6.hopopts.nxt",
    "ipv6.fraghdr.nxt",
    "tcp.srcport",
    "udp.srcport",
    "tcp.dstport",
    "udp.dstport",
    "_ws.malformed",
    "eth.type",
];

/// What tshark finds in a file: a line for each packet. Nested headers, and those put together from fragments, do not count.
fn by_tshark(file: &Path) -> String {
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-T", "fields"]);
    command.args(["-E", "occurrence=f", "-r"]).arg(file);
    command.args(ASKED.iter().flat_map(|field| ["-e", field]));
    let output = command.output().expect("tshark is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Counts what tshark has found, by key.
fn judged(rows: &str, fields: &[KeyField], way: usize, found: &mut ByKey) {
    for row in rows.lines() {
        let cells: Vec<&str> = row.split('\t').collect();
        let cell = |name: &str| cells[ASKED.iter().position(|asked| *asked == name).expect("asked for")];
        let first = |names: &[&str]| names.iter().map(|name| cell(name)).find(|text| !text.is_empty());
        let ports: Vec<u16> = [["tcp.srcport", "udp.srcport"], ["tcp.dstport", "udp.dstport"]]
            .iter()
            .filter_map(|names| first(names)?.parse().ok())
            .collect();
        let both = |of: fn(&[u16]) -> u16| (ports.len() == 2).then(|| of(&ports).to_string());
        let text = |field: &KeyField| match field {
            KeyField::Source => first(&["ip.src", "ipv6.src"]).map(str::to_owned),
            KeyField::Destination => first(&["ip.dst", "ipv6.dst"]).map(str::to_owned),
            KeyField::SourcePort => both(|ports| ports[0]),
            KeyField::DestinationPort => both(|ports| ports[1]),
            KeyField::Port => both(|ports| ports[0].min(ports[1])),
            KeyField::Protocol => {
                let names = ["ip.proto", "ipv6.fraghdr.nxt", "ipv6.hopopts.nxt", "ipv6.nxt"];
                first(&names).map(str::to_owned)
            }
            KeyField::Vlan => first(&["vlan.id"]).map(str::to_owned),
        };
        let key = fields.iter().map(|field| text(field).unwrap_or_else(|| "-".to_owned()));
        let count = &mut found.entry(key.collect::<Vec<_>>().join(" ")).or_default()[way];
        *count = *count + Count { packets: 1, bytes: cell("frame.len").parse().expect("a number") };
    }
}

/// Sends packets both ways past statistics with these keys and tcpdump, and compares them.
fn agrees_with_tshark(source: SourceChoice, combinations: &[&[KeyField]], beside: Option<(u16, u16)>) {
    let directory = TempDir::new().expect("a directory");
    let files = ["in.pcap", "out.pcap"].map(|name| directory.path().join(name));
    let network = Network::new(Veth::default()).expect("a private network");
    let received = [mixture(10), varied(), varied(), mixture(3)].concat();
    let sent = [varied(), mixture(7)].concat();
    let _tagging =
        beside.map(|(protocol, tci)| Tagging::on(&network.pair().tx, protocol, tci).expect("tags"));
    let start = |fields: &&[KeyField]| {
        let builder = Statistics::on("rx0").source(source).by(fields.iter().copied());
        network.rx().run(|| builder.start().expect("it counts"))
    };
    let mut all: Vec<Statistics> = combinations.iter().map(start).collect();
    send_both_ways(&network, &received, &sent, &files);
    let (received, mut sent) = (by_tshark(&files[0]), None);
    for (statistics, fields) in all.iter_mut().zip(combinations) {
        statistics.stop().expect("it stops");
        let reading = statistics.read().expect("counters");
        let mut expected = ByKey::new();
        judged(&received, fields, 0, &mut expected);
        if statistics.info().source == SourceKind::Tc {
            judged(sent.get_or_insert_with(|| by_tshark(&files[1])), fields, 1, &mut expected);
        }
        let ours = |one: &weir::statistics::KeyCounts| {
            (line(&one.key, fields), [one.counts.received, one.counts.sent])
        };
        let keys: ByKey = reading.keys.iter().map(ours).collect();
        assert_eq!(keys, expected, "{fields:?}, tags {beside:?}, {:?}", statistics.info());
        assert_eq!(reading.keys.iter().map(|one| one.counts).sum::<Counts>(), reading.total);
        assert_eq!(reading.others, Counts::default());
        assert!(keys.len() > 2, "{keys:?}");
    }
}

#[root_test]
fn root_tc_counts_by_key_as_tshark_does() {
    agrees_with_tshark(SourceChoice::Tc, &COMBINATIONS, None);
    if require_kernel("root_tc_counts_by_key_as_tshark_does", TCX, TAGGING) {
        agrees_with_tshark(SourceChoice::Tc, &COMBINATIONS, Some((0x8100, 0xb005)));
    }
}

#[root_test]
fn root_xdp_counts_by_key_as_tshark_does() {
    if require_kernel("root_xdp_counts_by_key_as_tshark_does", TOLD, TAGS) {
        for fields in COMBINATIONS {
            agrees_with_tshark(SourceChoice::Xdp, &[fields], None);
        }
        // The tags beside frames are those that the driver is asked for.
        agrees_with_tshark(SourceChoice::Xdp, &COMBINATIONS[..1], Some((0x8100, 0xb005)));
    }
}

/// Frames from as many addresses.
fn from_many(addresses: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let frame = |number: u32| {
        let mut packet = ipv4(0, 17, 9, 0);
        packet[12..16].copy_from_slice(&(0x0a00_0000 + number).to_be_bytes());
        ethernet(None, 0x800, &packet)
    };
    addresses.map(frame).collect()
}

/// Sends these frames as fast as they go, and waits where there is no room for one.
fn send_all(network: &Network, frames: &[Vec<u8>]) {
    let mut sender = network.tx().run(|| Sender::to("tx0").open()).expect("a sender");
    let mut transmission = sender.begin(Pace::Top);
    frames.iter().for_each(|frame| assert!(transmission.packet(None, frame).expect("it is sent")));
    transmission.finish().expect("they are sent");
}

#[root_test]
fn root_keys_without_room_are_counted_together() {
    let network = Network::new(Veth::default()).expect("a private network");
    for source in [SourceChoice::Tc, SourceChoice::Xdp] {
        let builder = Statistics::on("rx0").source(source).by([KeyField::Source]).most_keys(10_000);
        let mut statistics = network.rx().run(|| builder.start().expect("it counts"));
        // Twice from two threads, so that keys are new on two processors at once, and met again.
        let frames = from_many(0..100_000);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| send_all(&network, &frames));
            }
        });
        wait_for(&mut statistics, 200_000);
        statistics.stop().expect("it stops");
        let reading = statistics.read().expect("counters");
        assert_eq!(reading.keys.len(), 10_000);
        let keyed: Counts = reading.keys.iter().map(|one| one.counts).sum();
        assert_eq!(reading.total.received, Count { packets: 200_000, bytes: 60 * 200_000 });
        assert_eq!(keyed + reading.others, reading.total);
        assert!(reading.keys.iter().all(|one| (1..=2).contains(&one.counts.received.packets)));
        assert!(reading.keys.iter().filter(|one| one.counts.received.packets == 2).count() > 5000);
    }
}

#[root_test]
fn root_with_a_filter_what_it_accepts_is_counted_by_key() {
    let network = Network::new(Veth::default()).expect("a private network");
    for source in [SourceChoice::Tc, SourceChoice::Xdp] {
        let builder = Statistics::on("rx0").source(source).filter("dns", Filter::new("udp port 53"));
        let builder = builder.by([KeyField::Source]).most_keys(3);
        let mut statistics = network.rx().run(|| builder.start().expect("it counts"));
        send(&network.pair().tx, &mixture(50));
        wait_for(&mut statistics, 350);
        statistics.stop().expect("it stops");
        let reading = statistics.read().expect("counters");
        let filter = reading.filters[0].counts;
        assert_eq!((filter.received.packets, reading.total.received.packets), (100, 350));
        let keys: BTreeMap<_, _> =
            reading.keys.iter().map(|one| (one.key.source, one.counts.received.packets)).collect();
        let expected = [0, 1, 2].map(|last| (Some([10, 0, 0, last].into()), 20));
        assert_eq!(keys, expected.into());
        assert_eq!(reading.others.received.packets, 40);
        assert_eq!(reading.keys.iter().map(|one| one.counts).sum::<Counts>() + reading.others, filter);
    }
}
