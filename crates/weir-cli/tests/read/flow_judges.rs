//! `weir flows` of a file, judged by other programs that count flows: tshark, softflowd, nfpcapd and argus. All they agree on has to be equal, and each
//! difference is here: docs/flows.md has a table of them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, thread};

use serde_json::Value;
use weir_lab::{FrameSender, Network, Traffic, Veth, root_test};

use crate::support::{Guarded, Place, judge, record, succeeds, until};

/// Datagrams that are sent in three fragments each, and their bytes.
const LARGE: (u64, u64) = (10, 4000);
/// The port that they are sent to.
const LARGE_PORT: u16 = 4000;
/// Datagrams of each VLAN, and without one.
const TAGGED: [u64; 3] = [2, 5, 6];
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const FRAGMENT: u8 = 44;

/// One way: the protocol, and both ends. ICMP has no ports.
type Way = (u8, [(IpAddr, u16); 2]);

/// What was sent that way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    packets: u64,
    /// Of IP.
    bytes: u64,
    /// Of TCP, as the header has them.
    flags: u8,
}

impl AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.flags |= other.flags;
    }
}

type Ways = BTreeMap<Way, Sent>;

fn add(ways: &mut Ways, protocol: u8, ends: [(IpAddr, u16); 2], sent: Sent) {
    let ends = if protocol == ICMP || protocol == ICMP6 { ends.map(|(ip, _)| (ip, 0)) } else { ends };
    if sent.packets > 0 {
        *ways.entry((protocol, ends)).or_default() += sent;
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.trim().parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// Returns the bits of flags whose letters are these, the lowest bit first.
fn bits(letters: &str, text: &str) -> u8 {
    (0..8)
        .zip(letters.chars())
        .filter(|(_, letter)| text.contains(*letter))
        .fold(0, |bits, (bit, _)| bits | 1 << bit)
}

/// What weir finds: bytes of IP, and those of the frames, which some count.
fn ours(file: &Path) -> [Ways; 2] {
    let args = ["flows", "--json", "-q", "--idle-timeout", "1000h", "--active-timeout", "1000h", "-r"];
    let mut both = [Ways::new(), Ways::new()];
    for line in succeeds(&args, &[file]).lines() {
        let flow: Value = serde_json::from_str(line).expect("JSON");
        if flow["type"] != "flow" {
            continue;
        }
        let end = |ip: &str, port: &str| {
            let port = flow[port].as_u64().map_or(0, |port| u16::try_from(port).expect("a port"));
            (number(flow[ip].as_str().expect("text")), port)
        };
        let ends = [end("src", "sport"), end("dst", "dport")];
        let protocol = u8::try_from(flow["proto"].as_u64().expect("a number")).expect("small");
        let header = if flow["vlan"].is_null() { 14 } else { 18 };
        for (way, ends) in [("src_to_dst", ends), ("dst_to_src", [ends[1], ends[0]])] {
            let way = &flow[way];
            let of = |field: &str| way[field].as_u64().expect("a number");
            let flags = way["tcp_flags"].as_str().map_or(0, |text| bits("FSRP.UEW", text));
            let sent = Sent { packets: of("packets"), bytes: of("bytes"), flags };
            add(&mut both[0], protocol, ends, sent);
            add(&mut both[1], protocol, ends, Sent { bytes: sent.bytes + sent.packets * header, ..sent });
        }
    }
    both
}

/// What nfdump prints of the files in a directory.
fn nfdump(directory: &Path) -> Ways {
    let format = "fmt:%pr|%sa|%sp|%da|%dp|%pkt|%byt|%flg";
    let mut ways = Ways::new();
    for line in judge("nfdump", &["-6", "-q", "-N", "-o", format, "-R"], &[directory]).lines() {
        let [protocol, from, from_port, to, to_port, packets, bytes, flags] =
            line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        // Of ICMP, there are type and code.
        let port = |text: &str| if text.contains('.') { 0 } else { number(text) };
        let ends = [(number(from), port(from_port)), (number(to), port(to_port))];
        let flags = bits("FSRPAUEC", flags);
        add(
            &mut ways,
            number(protocol),
            ends,
            Sent { packets: number(packets), bytes: number(bytes), flags },
        );
    }
    ways
}

fn softflowd(network: &Network, file: &Path, place: &Place) -> Ways {
    let directory = place.path("softflowd");
    fs::create_dir(&directory).expect("room");
    let address = network.pair().rx.ipv4.expect("an address").to_string();
    let mut collector = Command::new("nfcapd");
    collector.args(["-p", "2055", "-b", &address, "-l"]).arg(&directory);
    let collector = network.rx().spawn(collector.stdout(Stdio::null()).stderr(Stdio::null()));
    let mut collector = Guarded(collector.expect("nfcapd: `scripts/setup test` installs it"));
    // The bytes that its socket has and it has not read.
    let unread = || {
        let sockets = network.rx().run(|| fs::read_to_string("/proc/thread-self/net/udp")).expect("sockets");
        let own = sockets.lines().find(|line| line.contains(":0807 "))?.to_owned();
        own.split_whitespace().nth(4).map(str::to_owned)
    };
    until("nfcapd to listen", || unread().ok_or_else(String::new));

    let mut exporter = Command::new("softflowd");
    exporter.args(["-d", "-a", "-6", "-v", "9", "-T", "full", "-c", "none", "-p"]).arg(place.path("pid"));
    exporter.args(["-n", &format!("{address}:2055"), "-r"]).arg(file);
    for timeout in ["maxlife", "tcp", "tcp.rst", "tcp.fin", "udp", "icmp", "general"] {
        exporter.args(["-t", &format!("{timeout}=604800")]);
    }
    let exporter = network.tx().spawn(exporter.stdout(Stdio::null()).stderr(Stdio::null()));
    let exporter = exporter.expect("softflowd: `scripts/setup test` installs it").wait().expect("it ends");
    assert!(exporter.success(), "softflowd: {exporter}");
    until("nfcapd to read all", || match unread() {
        Some(queues) if queues.ends_with(":00000000") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let pid = rustix::process::Pid::from_child(&collector.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    collector.0.wait().expect("it ends");
    nfdump(&directory)
}

fn nfpcapd(file: &Path, place: &Place) -> Ways {
    let directory = place.path("nfpcapd");
    fs::create_dir(&directory).expect("room");
    judge("nfpcapd", &["-e", "3600,3600", "-t", "86400", "-w"], &[&directory, Path::new("-r"), file]);
    nfdump(&directory)
}

/// Bytes are those of frames.
fn argus(file: &Path, place: &Place) -> Ways {
    let found = place.path("argus");
    judge("argus", &["-w"], &[&found, Path::new("-r"), file]);
    let fields = ["saddr", "sport", "daddr", "dport", "proto", "spkts", "dpkts", "sbytes", "dbytes", "state"];
    let args = [&["-n", "-Z", "b", "-c", ",", "-s"], &fields[..], &["-r"]].concat();
    let mut ways = Ways::new();
    for line in judge("ra", &args, &[&found]).lines() {
        let [from, from_port, to, to_port, protocol, out, back, out_bytes, back_bytes, flags] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let protocol = match protocol {
            "icmp" => ICMP,
            "tcp" => TCP,
            "udp" => UDP,
            "ipv6-icmp" => ICMP6,
            // The head, its own counters, and what is not IP.
            "Proto" | "man" | "arp" => continue,
            _ => panic!("{line}"),
        };
        let port = |text: &str| if protocol == TCP || protocol == UDP { number(text) } else { 0 };
        let [from, to] = [(number(from), port(from_port)), (number(to), port(to_port))];
        let (flags, back_flags) = flags.split_once('_').unwrap_or_default();
        let sent = |packets, bytes, flags| Sent {
            packets: number(packets),
            bytes: number(bytes),
            flags: if protocol == TCP { bits("FSRPAUEC", flags) } else { 0 },
        };
        add(&mut ways, protocol, [from, to], sent(out, out_bytes, flags));
        add(&mut ways, protocol, [to, from], sent(back, back_bytes, back_flags));
    }
    ways
}

/// The conversations of a protocol. Bytes are those of frames, [`rounded`].
fn tshark(file: &Path, protocol: u8, name: &str) -> Ways {
    let mut ways = Ways::new();
    for line in judge("tshark", &["-n", "-q", "-z", &format!("conv,{name}"), "-r"], &[file]).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [one, "<->", other, back, back_bytes, back_unit, out, out_bytes, out_unit, ..] = words[..] else {
            continue;
        };
        let end = |text: &str| {
            let (ip, port) = text.rsplit_once(':').expect("a port");
            (number(ip), number(port))
        };
        let sent = |packets, bytes, unit| {
            let unit = match unit {
                "bytes" => 1,
                "kB" => 1000,
                "MB" => 1_000_000,
                _ => panic!("{line}"),
            };
            Sent { packets: number(packets), bytes: number::<u64>(bytes) * unit, flags: 0 }
        };
        let [one, other] = [end(one), end(other)];
        add(&mut ways, protocol, [one, other], sent(out, out_bytes, out_unit));
        add(&mut ways, protocol, [other, one], sent(back, back_bytes, back_unit));
    }
    ways
}

/// Returns bytes as tshark prints them: from 10,000 on in thousands, from 10 millions on in millions.
fn rounded(bytes: u64) -> u64 {
    match bytes {
        0..10_000 => bytes,
        10_000..10_000_000 => bytes / 1000 * 1000,
        _ => bytes / 1_000_000 * 1_000_000,
    }
}

fn transfer(network: &Network, to: IpAddr, bytes: usize) {
    let listener = network.rx().run(|| TcpListener::bind((to, 0))).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let mut client = network.tx().run(|| TcpStream::connect(address)).expect("a connection");
    let mut server = listener.accept().expect("a connection").0;
    thread::scope(|scope| {
        scope.spawn(move || {
            client.write_all(&vec![7; bytes]).expect("it takes them");
            drop(client);
        });
        let mut all = Vec::new();
        server.read_to_end(&mut all).expect("bytes");
        assert_eq!(all.len(), bytes);
    });
}

/// Sends datagrams, and as many short ones back.
fn datagrams(network: &Network, [from, to]: [IpAddr; 2], port: u16, (count, bytes): (u64, u64)) {
    let receiver = network.rx().run(|| UdpSocket::bind((to, port))).expect("a socket");
    let sender = network.tx().run(|| UdpSocket::bind((from, 0))).expect("a socket");
    let own = sender.local_addr().expect("an address");
    let data = vec![9; usize::try_from(bytes).expect("small")];
    for _ in 0..count {
        sender.send_to(&data, (to, port)).expect("a datagram");
        let (length, address) = receiver.recv_from(&mut vec![0; 65_536]).expect("a datagram");
        assert_eq!((length, address), (data.len(), own));
        receiver.send_to(b"thanks", address).expect("a datagram");
    }
}

/// Real traffic: connections that end by FIN and by RST, scans, pings, datagrams in fragments, and VLANs.
fn traffic(network: &Network) {
    let pair = network.pair();
    let v4 = [pair.tx.ipv4, pair.rx.ipv4].map(|ip| IpAddr::from(ip.expect("an address")));
    let v6 = [pair.tx.ipv6, pair.rx.ipv6].map(|ip| IpAddr::from(ip.expect("an address")));
    for ends in [v4, v6] {
        transfer(network, ends[1], 300);
        transfer(network, ends[1], 1_000_000);
        datagrams(network, ends, 3000, (5, 200));
        datagrams(network, ends, LARGE_PORT, LARGE);
    }
    // Pings, and ports that nobody listens on.
    for (more, [_, to]) in [(&["--disable-arp-ping"][..], v4), (&["-6"], v6)] {
        let mut nmap = Command::new("nmap");
        nmap.args(["-n", "-PE", "-sS", "--max-retries", "0", "-p", "22,80,443"])
            .args(more)
            .arg(to.to_string());
        let nmap = network.tx().spawn(nmap.stdout(Stdio::null()).stderr(Stdio::null()));
        let status = nmap.expect("nmap: `scripts/setup test` installs it").wait().expect("it ends");
        assert!(status.success(), "nmap: {status}");
    }
    let sender = FrameSender::new(&pair.tx).expect("a socket");
    for (tag, count) in [None, Some(5), Some(6)].into_iter().zip(TAGGED) {
        let plain = Traffic::new(100).expect("a size").between(pair);
        let traffic = tag.into_iter().fold(plain, |traffic, tag| traffic.vlan(tag).expect("a tag"));
        for _ in 0..count {
            sender.send(&traffic.frame(0)).expect("a frame");
        }
    }
}

/// Takes ways out, and returns their sum.
fn take(ways: &mut Ways, which: impl Fn(&Way) -> bool) -> Sent {
    let mut sum = Sent::default();
    ways.retain(|way, sent| {
        let is_one = which(way);
        if is_one {
            sum += *sent;
        }
        !is_one
    });
    sum
}

/// Takes the datagrams out that are sent in fragments, as far as they are where their ports say: those of IPv4 and of IPv6.
fn take_large(ways: &mut Ways) -> [Sent; 2] {
    [true, false].map(|v4| {
        take(ways, |(protocol, [(from, _), (_, port)])| {
            *protocol == UDP && *port == LARGE_PORT && from.is_ipv4() == v4
        })
    })
}

/// Whatever is left has to be equal.
fn agree(who: &str, theirs: &Ways, ours: &Ways) {
    let all = ours.keys().chain(theirs.keys().filter(|way| !ours.contains_key(way)));
    let differ = all.filter(|way| ours.get(way) != theirs.get(way));
    let differences: Vec<_> =
        differ.map(|way| format!("{way:?}: weir {:?}, {who} {:?}", ours.get(way), theirs.get(way))).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}

#[root_test]
fn root_flows_of_a_file_are_those_of_other_programs() {
    let network = Network::new(Veth::default().ipv4().ipv6()).expect("a network");
    let place = Place::new();
    let file = place.path("mixed.pcap");
    record(&network, &file, || traffic(&network));
    let [mut ours, mut framed] = ours(&file);
    let (count, length) = LARGE;
    let sent = |packets, bytes| Sent { packets, bytes, flags: 0 };
    // A header of IPv4, and one of IPv6 with that of a fragment; the first two fragments are as long as they can be.
    let fragments = [20, 48].map(|header| sent(3 * count, count * (length + 8 + 3 * header)));
    let first = [1500, 1496].map(|longest| sent(count, count * longest));
    let later = [0, 1].map(|at| sent(2 * count, fragments[at].bytes - first[at].bytes));
    assert_eq!(take_large(&mut ours), fragments, "weir counts fragments where their datagrams are");
    let with_frames = take_large(&mut framed);
    assert!(ours.len() > 20 && ours.values().filter(|sent| sent.flags > 0).count() > 12, "{ours:?}");

    let mut theirs = softflowd(&network, &file, &place);
    assert_eq!(take_large(&mut theirs), first, "softflowd has later fragments elsewhere");
    let without_ports =
        take(&mut theirs, |(protocol, [(from, port), _])| *protocol == UDP && *port == 0 && from.is_ipv4());
    let without_protocol = take(&mut theirs, |(protocol, _)| *protocol == 0);
    assert_eq!([without_ports, without_protocol], later, "namely where they have no ports, or no protocol");
    agree("softflowd", &theirs, &ours);

    let mut theirs = nfpcapd(&file, &place);
    let whole = sent(count, count * (length + 8 + 20));
    assert_eq!(take_large(&mut theirs), [whole, Sent::default()], "nfpcapd puts fragments of IPv4 together");
    let of_fragments = take(&mut theirs, |(protocol, _)| *protocol == FRAGMENT);
    assert_eq!(of_fragments, fragments[1], "and has those of IPv6 by the protocol of the fragment");
    agree("nfpcapd", &theirs, &ours);

    let mut theirs = argus(&file, &place);
    let large = take_large(&mut theirs);
    let header = |sent: Sent| Sent { bytes: sent.bytes + 14 * sent.packets, ..sent };
    assert_eq!(large, [with_frames[0], header(first[1])], "argus finds the later fragments of IPv4 alone");
    let misread = take(&mut theirs, |way| way.0 == UDP && way.1[0].0.is_ipv6() && !framed.contains_key(way));
    assert_eq!(misread, header(later[1]), "and reads ports in those of IPv6");
    agree("argus", &theirs, &framed);

    for (protocol, name) in [(TCP, "tcp"), (UDP, "udp")] {
        let mut theirs = tshark(&file, protocol, name);
        if protocol == UDP {
            let last = [0, 1].map(|at| 14 + fragments[at].bytes / count - 2 * (first[at].bytes / count));
            let last = last.map(|bytes| sent(count, rounded(count * bytes)));
            assert_eq!(take_large(&mut theirs), last, "tshark counts the last fragment alone");
        }
        let ours = framed.iter().filter(|((of, _), _)| *of == protocol);
        let ours =
            ours.map(|(way, sent)| (*way, Sent { flags: 0, bytes: rounded(sent.bytes), ..*sent })).collect();
        agree("tshark", &theirs, &ours);
    }
}
