//! What `weir replay` changes in packets: tshark finds the new addresses and right checksums at the other end, and
//! tcprewrite makes the same of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use weir_lab::{LinkCounters, Network, Veth, root_test, tcp_transfer};

use super::{START, Tcpdump, left, pcap, replay, shown};
use crate::harness::{Ended, directory, network, path, until, weir};

/// A file of test traffic.
fn generated(directory: &TempDir, name: &str, options: &str) -> String {
    let file = path(directory, name);
    let words: Vec<_> = ["gen", "-q", "-w", &file].into_iter().chain(options.split(' ')).collect();
    let output = weir(&words).output().expect("weir runs");
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    file
}

/// The same packets as captured on `any`, from this address, without an Ethernet header.
fn cooked(directory: &TempDir, file: &str, from: [u8; 6]) -> String {
    let bytes = fs::read(file).expect("a file");
    let (head, mut rest) = bytes.split_at(24);
    let mut cooked = [&head[..20], &113_u32.to_le_bytes()].concat();
    while let Some((record, after)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(record[8..12].try_into().expect("four bytes"));
        let (frame, after) = after.split_at(length as usize);
        cooked.extend_from_slice(&record[..8]);
        cooked.extend([length + 2; 2].map(u32::to_le_bytes).concat());
        cooked.extend([&[0, 0, 0, 1, 0, 6][..], &from, &[0; 2], &frame[12..]].concat());
        rest = after;
    }
    let path = path(directory, "cooked.pcap");
    fs::write(&path, cooked).expect("a file");
    path
}

/// Replays, and returns what the other end received, in a file.
fn received(network: &Network, directory: &TempDir, packets: usize, args: &[&str]) -> (Ended, PathBuf) {
    let file = directory.path().join("got.pcap");
    let tcpdump = Tcpdump::start(network, file.clone(), packets);
    let ended = replay(network, &[&["-t", "--json"], args].concat()).succeeded();
    tcpdump.received();
    (ended, file)
}

/// tshark's fields of each packet, with checksums verified.
fn fields(file: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-r"]).arg(file);
    for protocol in ["ip", "udp", "tcp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    for name in names {
        command.args(["-e", name]);
    }
    let output = command.output().expect("tshark is installed");
    // A file that is being written may end inside a packet.
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || errors.contains("cut short"), "{errors}");
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[root_test]
fn root_rewritten_packets_are_those_of_tcprewrite() {
    let (network, directory) = (network(), directory());
    for (protocol, is_cooked) in [("udp", true), ("tcp:syn,ack", false), ("icmp", false)] {
        let options = format!("--proto {protocol} --flows 50 -c 200 --size 80-300 --src 198.18.0.0/16");
        let mut file = generated(&directory, "a.pcap", &options);
        let theirs = path(&directory, "theirs.pcap");
        let mut command = Command::new("tcprewrite");
        command.args(["--pnat=198.18.0.0/16:10.1.0.0/16,198.19.0.0/16:10.2.0.0/16", "--portmap=9:4000"]);
        command.args(["--enet-dmac=02:77:00:00:00:09", "--enet-smac=02:77:00:00:00:08"]);
        command.args(["-i", &file, "-o", &theirs]);
        let output = command.output().expect("tcprewrite is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let maps =
            ["--map-ip=198.18.0.0/16=10.1.0.0/16", "--map-ip=198.19.0.0/16=10.2.0.0/16", "--map-port=9=4000"];
        let header = if is_cooked {
            file = cooked(&directory, &file, [2, 0x77, 0, 0, 0, 8]);
            replay(&network, &[&file]).failed(&["the interface takes EN10MB", "--dst-mac"]);
            ["--dst-mac=02:77:00:00:00:09", "--vlan=none"]
        } else {
            ["--map-mac=02:00:00:00:00:02=02:77:00:00:00:09", "--src-mac=02:77:00:00:00:08"]
        };
        let (_, ours) = received(&network, &directory, 200, &[&[&*file], &maps[..], &header].concat());
        assert!(shown(&ours) == shown(Path::new(&theirs)), "{protocol}: tcprewrite makes other packets");
    }
}

#[root_test]
fn root_checksums_stay_right_and_wrong_ones_wrong() {
    let (network, directory) = (network(), directory());
    let names = [
        "vlan.id",
        "ip.dst",
        "ipv6.dst",
        "ip.checksum.status",
        "udp.checksum.status",
        "tcp.checksum.status",
        "icmp.checksum.status",
        "icmpv6.checksum.status",
    ];
    for (options, vlan, tag) in [
        ("--proto udp", "none", ""),
        ("--proto tcp --vlan 7,8", "none", ""),
        ("--proto icmp", "99", "99"),
        ("-6 --proto udp --vlan 7", "99", "99"),
        ("-6 --proto tcp", "none", ""),
        ("-6 --proto icmp", "99", "99"),
    ] {
        let file = generated(&directory, "a.pcap", &format!("{options} -c 100 --flows 30 --size 100-300"));
        let mut bytes = fs::read(&file).expect("a file");
        // The last byte of the last packet.
        *bytes.last_mut().expect("bytes") ^= 1;
        fs::write(&file, bytes).expect("a file");
        let args = [&*file, "--vlan", vlan, "--map-port", "9=7"];
        let maps = ["--map-ip=0.0.0.0/0=10.9.0.0/16", "--map-ip=::/0=fd09::/112"];
        let (_, got) = received(&network, &directory, 100, &[&args[..], &maps].concat());
        let packets = fields(&got, &names);
        assert_eq!(packets.len(), 100, "{options}");
        for (number, packet) in packets.iter().enumerate() {
            let v6 = options.starts_with("-6");
            let (v4_address, v6_address) = if v6 { ("", "fd09::1") } else { ("10.9.0.1", "") };
            assert_eq!(packet[..3], [tag, v4_address, v6_address], "{options}");
            assert_eq!(packet[3], if v6 { "" } else { "1" }, "{options}");
            let right = if number < 99 { "1" } else { "0" };
            assert_eq!(packet[4..].concat(), right, "{options}: packet {number}");
        }
    }
    another_receiver_gets_whole_checksums(&network, &directory);
    fragments_have_right_checksums(&network, &directory);
    addresses_in_icmp_are_replaced(&network, &directory);
}

/// A checksum that was left to the network card is filled in, even if nothing that it covers changes.
fn another_receiver_gets_whole_checksums(network: &Network, directory: &TempDir) {
    let text = "left to the card: 02000000000202000000000108004500002400010000401166c60a0000010a00000204d20050001014240000000000000000";
    let (file, packets) = frames(directory, "partial.pcap", text);
    let (_, got) = received(network, directory, packets, &[&file, "--dst-mac", "02:00:00:00:00:09"]);
    assert_eq!(fields(&got, &["udp.checksum.status", "eth.dst"]), [["1", "02:00:00:00:00:09"]]);
}

/// Redirects, routers, neighbours and groups: tshark sees the new addresses wherever the old ones were.
fn addresses_in_icmp_are_replaced(network: &Network, directory: &TempDir) {
    let text = include_str!("../../../../weir-traffic/src/rewrite/messages.txt");
    let (file, packets) = frames(directory, "messages.pcap", text);
    let shown = |file: &Path| {
        let mut command = Command::new("tshark");
        let output = command.args(["-n", "-V", "-r"]).arg(file).output().expect("tshark is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_address =
            |line: &&str| ["ddress", "refix", "Server", "Src:"].iter().any(|word| line.contains(word));
        text.lines().filter(is_address).collect::<Vec<_>>().join("\n")
    };
    let maps = [
        "--map-ip=10.0.0.0/24=198.18.7.0/24",
        "--map-ip=2001:db8::/32=3fff:9::/32",
        "--map-ip=239.1.0.0/16=239.192.0.0/16",
        "--map-ip=ff15::/16=ff05::/16",
    ];
    let macs = ["--map-mac", "02:00:00:00:00:01=02:00:00:00:00:09"];
    let args = [&[&*file], &maps[..], &macs].concat();
    let (_, got) = received(network, directory, packets, &args);
    let expected = shown(Path::new(&file)).replace("10.0.0.", "198.18.7.").replace("2001:db8:", "3fff:9:");
    let expected = expected.replace("02:00:00:00:00:01", "02:00:00:00:00:09");
    let expected = expected.replace("239.1.2.", "239.192.2.").replace("ff15::", "ff05::");
    assert!(expected.contains("239.192.2.4") && expected.contains("ff05::1:4"), "{expected}");
    assert!(expected.contains("3fff:9::fe") && expected.contains("198.18.7.254"), "{expected}");
    assert_eq!(shown(&got), expected);
    for fields in fields(&got, &["icmp.checksum.status", "icmpv6.checksum.status", "igmp.checksum.status"]) {
        assert_eq!(fields.concat(), "1");
    }
}

/// The frames of a text, in a file.
fn frames(directory: &TempDir, name: &str, text: &str) -> (String, usize) {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let frames: Vec<_> = lines.map(|(_, hex)| weir_traffic::hex(hex).expect("hex")).collect();
    let packets: Vec<_> = frames.into_iter().map(|frame| (START, frame.len(), frame)).collect();
    (pcap(directory, name, 1, &packets), packets.len())
}

/// tshark puts the fragments together. From the last to the first, ports stay and this is told.
fn fragments_have_right_checksums(network: &Network, directory: &TempDir) {
    let text = include_str!("../../../../weir-traffic/src/rewrite/fragments.txt");
    let reversed: Vec<_> = text.lines().rev().collect();
    for (text, port) in [(text, "8080"), (&reversed.join("\n"), "80")] {
        let (file, packets) = frames(directory, "tiny.pcap", text);
        let maps = ["--map-port", "80=8080", "--map-ip", "10.0.0.0/24=198.18.7.0/24"];
        let (ended, got) = received(network, directory, packets, &[&[&*file], &maps[..]].concat());
        let told = fields(&got, &["tcp.checksum.status", "tcp.dstport", "ip.src"]);
        let whole: Vec<_> = told.iter().filter(|fields| fields[0] == "1").map(|fields| &*fields[1]).collect();
        assert_eq!(whole, [port], "{told:?}");
        let kept = u64::from(port == "80");
        assert_eq!(ended.account().number("ports_kept"), kept);
        assert_eq!(ended.stderr.contains("1 packet with ports that stay"), kept == 1, "{}", ended.stderr);
    }
    let cut = [&[2; 12][..], &[8, 0], &[0x45; 16]].concat();
    let cut = pcap(directory, "cut.pcap", 1, &[(START, cut.len(), cut)]);
    let plan = replay(network, &[&cut, "--dry-run", "--json", "--map-port", "1=2"]).succeeded();
    assert_eq!(plan.account().number("headers_kept"), 1, "{}", plan.stderr);
    assert!(plan.stderr.contains("not everything is right"), "{}", plan.stderr);
}

#[root_test]
fn root_super_frames_are_cut_as_a_card_cuts_them() {
    const BYTES: u64 = 1 << 20;
    let veth = || Veth::default().ipv4().feature("gro", false);
    let (recorded, directory) = (Network::new(veth()).expect("network"), directory());
    let file = path(&directory, "super.pcap");
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-i", "tx0", "-Z", "root", "-B", "65536", "-U", "--immediate-mode", "-w", &file, "tcp"]);
    let mut child = recorded.tx().spawn(tcpdump.stderr(Stdio::piped())).expect("it starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().expect("a pipe")));
    assert!(lines.any(|line| line.expect("text").contains("listening on")), "tcpdump does not start");
    let report = tcp_transfer(recorded.pair(), BYTES).expect("a transfer");
    assert_eq!(report.bytes, BYTES);
    // tcpdump leaves behind what it has not read when a signal ends it.
    let payload = |file: &Path| {
        let lengths = fields(file, &["tcp.len"]);
        lengths.iter().map(|length| length[0].parse::<u64>().expect("a number")).sum::<u64>()
    };
    until("the whole transfer", || match payload(Path::new(&file)) {
        // More, if something was sent again.
        BYTES.. => Ok(()),
        other => Err(other.to_string()),
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let _said = lines.count();
    assert!(child.wait().expect("it ends").success());
    let longest = fields(Path::new(&file), &["frame.len"]);
    assert!(
        longest.iter().any(|length| length[0].parse::<u32>().expect("a number") > 1514),
        "no super-frame"
    );

    let network = Network::new(Veth::default().feature("gro", false)).expect("network");
    replay(&network, &[&file, "-t"]).failed(&["try --segment for TCP super-frames"]);
    let plan = replay(&network, &[&file, "--segment", "--dry-run", "--json"]).succeeded().account();
    let packets = usize::try_from(plan.number("packets")).expect("few");
    let (ended, got) = received(&network, &directory, packets, &[&file, "--segment", "--map-port", "1=2"]);
    let account = ended.account();
    let [sent, cut, segments] = ["packets", "cut", "segments"].map(|field| account.number(field));
    assert_eq!(sent - segments + cut, longest.len() as u64, "{}", account.0);
    assert!(ended.stderr.contains(" cut into "), "{}", ended.stderr);

    let names = ["ip.checksum.status", "tcp.checksum.status", "frame.len"];
    let segments = fields(&got, &names);
    let number = |text: &str| text.parse::<u64>().expect("a number");
    assert_eq!(payload(&got), payload(Path::new(&file)));
    for segment in &segments {
        assert_eq!(segment[..2], ["1", "1"], "{segment:?}");
        assert!(number(&segment[2]) <= 1514, "{segment:?}");
    }
    // tshark puts the stream together: the same bytes as before.
    let stream = |file: &Path| {
        let mut command = Command::new("tshark");
        command.args(["-n", "-q", "-z", "follow,tcp,raw,0", "-r"]).arg(file);
        let output = command.output().expect("tshark is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| line.bytes().all(|byte| byte.is_ascii_hexdigit())).collect::<String>()
    };
    let whole = stream(Path::new(&file));
    assert_eq!(whole.len() as u64, 2 * BYTES);
    assert!(stream(&got) == whole, "another stream");
}

#[root_test]
fn root_each_round_has_addresses_of_its_own() {
    let (network, directory) = (network(), directory());
    let file = generated(&directory, "a.pcap", "--flows 2 -c 4 --src 10.0.0.255 --dst 10.3.0.1");
    for way in [&[][..], &["--preload"]] {
        let args = [&[&*file, "--loop", "3", "--unique-ips"], way].concat();
        let (_, got) = received(&network, &directory, 12, &args);
        let mut pairs = BTreeMap::new();
        for fields in fields(&got, &["ip.src", "ip.dst", "ip.checksum.status", "udp.checksum.status"]) {
            assert_eq!(fields[2..], ["1", "1"]);
            *pairs.entry(fields[..2].join(" ")).or_insert(0) += 1;
        }
        let expected = ["10.0.0.255 10.3.0.1", "10.0.1.0 10.3.0.2", "10.0.1.1 10.3.0.3"];
        assert_eq!(pairs, expected.map(|pair| (pair.to_owned(), 4)).into(), "{way:?}");
    }
    // Neighbouring hosts: one more would be a flow of another round.
    let options = "--flows 10 -c 10 --src 10.0.0.1-10.0.0.10 --dst 10.1.0.1-10.1.0.10";
    let file = generated(&directory, "ten.pcap", options);
    let (_, got) = received(&network, &directory, 100, &[&file, "--loop", "10", "--unique-ips"]);
    let pairs: BTreeSet<_> = fields(&got, &["ip.src", "ip.dst"]).into_iter().collect();
    assert_eq!(pairs.len(), 100);
    let file = generated(&directory, "group.pcap", "-c 3 --src 0.0.0.0 --dst 255.255.255.255");
    let plan = replay(&network, &[&file, "--dry-run", "--json", "--loop", "2", "--unique-ips"]).succeeded();
    assert_eq!(plan.account().number("same"), 3);
    assert!(plan.stderr.contains("3 packets that stay the same in each round"), "{}", plan.stderr);
    let file = generated(&directory, "one.pcap", "-c 1");
    let endless = ["--loop", "4000000000", "--unique-ips"];
    replay(&network, &[&[&*file], &endless[..]].concat()).failed(&["there are not enough addresses"]);
}

#[root_test]
fn root_what_servers_sent_leaves_by_the_second_interface() {
    let (mut network, directory) = (network(), directory());
    network.connect(Veth::default()).expect("a second pair");
    let ends = |from: &str, to: &str, ports: [&str; 2], flags: &str, packets: u32| {
        format!(
            "--proto tcp:{flags} --src {from} --dst {to} --sport {} --dport {} -c {packets}",
            ports[0], ports[1]
        )
    };
    let there = ends("10.0.0.1", "10.0.0.2", ["5000", "80"], "syn", 1);
    let back = ends("10.0.0.2", "10.0.0.1", ["80", "5000"], "syn,ack", 3);
    let files = [
        generated(&directory, "there.pcap", &there),
        generated(&directory, "back.pcap", &back),
        // Without a beginning: who comes first is the client.
        generated(&directory, "later.pcap", &ends("10.0.0.2", "10.0.0.9", ["7", "8"], "ack", 2)),
    ];
    let sent = |pair: usize| LinkCounters::read(&network.pairs()[pair].rx).expect("counters").tx_packets;
    for (clients, packets) in [(&[][..], [3, 3]), (&["--clients", "10.0.0.2"], [5, 1])] {
        let before = [sent(0), sent(1)];
        let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
        args.extend(["--second", "rx1", "--json", "-t"]);
        let ended = replay(&network, &[&args, clients].concat()).succeeded();
        assert_eq!([sent(0) - before[0], sent(1) - before[1]], packets, "{clients:?}: {}", ended.stderr);
        let account = ended.account().0;
        let told = [&account["packets"], &account["second"]["packets"]].map(|number| number.as_u64());
        assert_eq!(told, packets.map(Some), "{account}");
        assert_eq!(account["second"]["interface"], "rx1");
    }
    // A connection in the middle, whose server has the higher port, and later its beginning.
    let ports = ["80", "50000"];
    let middle = [
        generated(&directory, "middle.pcap", &ends("10.0.0.2", "10.0.0.1", ["50000", "80"], "ack", 2)),
        generated(&directory, "begin.pcap", &ends("10.0.0.1", "10.0.0.2", ports, "syn", 1)),
    ];
    for (files, packets) in [(&middle[..], [1, 2]), (&middle[..1], [2, 0])] {
        let before = [sent(0), sent(1)];
        let mut words = vec!["--second", "rx1", "-t"];
        words.extend(files.iter().map(String::as_str));
        replay(&network, &words).succeeded();
        assert_eq!([sent(0) - before[0], sent(1) - before[1]], packets, "{files:?}");
    }
    // Packets of both sides keep their distance.
    let mut spread = Vec::new();
    for (at, file) in (0..).zip(&files[..2]) {
        let bytes = fs::read(file).expect("a file");
        spread.push((START + at * 50_000_000, 60, bytes[40..100].to_vec()));
    }
    let file = pcap(&directory, "spread.pcap", 1, &spread);
    let account = replay(&network, &[&file, "--second", "rx1", "--json"]).succeeded().account().0;
    assert!(account["second"]["seconds"].as_f64().expect("a number") >= 0.05, "{account}");
}

#[root_test]
fn root_step_by_step_enter_sends_the_next_packet() {
    let (network, directory) = (network(), directory());
    let file = generated(&directory, "a.pcap", "-c 5");
    for (last, all) in [("q\n", 2), ("", 2), ("c\n", 5)] {
        let before = left(&network);
        let mut command = weir(&["replay", &file, "-i", "rx0", "--step", "--json"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = network.rx().spawn(&mut command).expect("it starts");
        let mut keys = child.stdin.take().expect("a pipe");
        for packets in 1..=2 {
            keys.write_all(b"\n").expect("a reader");
            until("a packet", || match left(&network) - before {
                sent if sent == packets => Ok(()),
                other => Err(other.to_string()),
            });
        }
        keys.write_all(last.as_bytes()).expect("a reader");
        drop(keys);
        let output = child.wait_with_output().expect("it ends");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() && stdout.contains(&format!("\"packets\":{all},")),
            "{stdout}{stderr}"
        );
        assert!(stderr.contains("packet 2, 60 bytes: Enter sends it"), "{stderr}");
        assert_eq!(left(&network) - before, all);
    }
    // A signal ends the wait for a key.
    let mut command = weir(&["replay", &file, "-i", "rx0", "--step", "--json"]);
    let mut child = command.stdin(Stdio::piped());
    child = child.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = network.rx().spawn(child).expect("it starts");
    let keys = child.stdin.take().expect("a pipe");
    let stderr = child.stderr.take().expect("a pipe");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
    assert!(lines.any(|line| line.expect("text").contains("packet 1, ")), "it does not ask");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert!(lines.any(|line| line.expect("text").contains("stopped by a signal")), "it goes on");
    assert!(child.wait().expect("it ends").success());
    drop(keys);
}

#[test]
fn what_cannot_be_rewritten_is_told() {
    for (words, why) in [
        (&["--map-ip", "10.0.0.0/8"][..], "no `=`"),
        (&["--map-ip", "10.0.0.0/8=fd00::/8"], "the other of IPv6"),
        (&["--map-mac", "1=2"], "`1` is no MAC address"),
        (&["--map-port", "80=x"], "`x` is no port"),
        (&["--vlan", "4095"], "is no VLAN"),
        (&["--step", "--rate", "1kpps"], "cannot be used with"),
        (&["--clients", "10.0.0.1"], "--second"),
    ] {
        let output = weir(&[&["replay", "a.pcap", "-i", "lo"], words].concat()).output().expect("weir runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(why), "{words:?}: {stderr}");
    }
}
