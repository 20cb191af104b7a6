//! `weir gen`: tcpdump and tshark find nothing wrong with its frames, and the other end of a cable receives the same ones as
//! a file.

mod templates;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::Signal;
use weir_lab::{Network, Veth, root_test};

use crate::harness::{Ended, Running, directory, network, path, until, weir};
use crate::namespaces::inside;
use crate::replay::{Tcpdump, left};

/// Offset of the signature in UDP over IPv4; what it begins with, its number, and what depends on the time.
const SIGNATURE: usize = 42;
const TIME: std::ops::Range<usize> = SIGNATURE + 10..SIGNATURE + 18;

fn plain(args: &[&str]) -> Output {
    weir(&[&["gen"], args].concat()).output().expect("weir runs")
}

fn generate(network: &Network, args: &[&str]) -> Ended {
    Running::spawn(network, &mut weir(&[&["gen", "-i", "rx0", "--json"], args].concat())).wait()
}

/// Writes frames to a file.
fn written(file: &str, args: &[&str]) {
    let output = plain(&[&["-q", "-w", file], args].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The packets of a pcap file of this machine's byte order.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).expect("a file");
    let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("a word"));
    let (mut packets, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        assert_eq!(word(at + 8), word(at + 12), "cut");
        let end = at + 16 + word(at + 8) as usize;
        packets.push(bytes[at + 16..end].to_vec());
        at = end;
    }
    packets
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// tshark's fields of each packet, with checksums verified.
fn checked(file: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", file, "-T", "fields"]);
    for protocol in ["ip", "udp", "tcp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let lines = output(&mut command);
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn tcpdump_and_tshark_find_every_checksum_right() {
    const GOOD: &str = "1";
    // Without a checksum: 3.
    const OUTER_AND_GOOD: &str = "3,1";
    let directory = directory();
    let file = path(&directory, "a.pcapng");
    let sizes: [&[&str]; 2] = [&[], &["--size", "150-450"]];
    // Options, and for each packet the checksums of IPv4 and of what is in it, the inner ones last.
    let stacks: [(&str, &str, &str); 9] = [
        ("--proto udp", GOOD, GOOD),
        ("--proto tcp:syn,ack --vlan 7", GOOD, GOOD),
        ("--proto icmp --vlan 7,8", GOOD, GOOD),
        ("-6 --proto udp", "", GOOD),
        ("-6 --proto tcp", "", GOOD),
        ("-6 --proto icmp --vlan 4094", "", GOOD),
        ("--vxlan 42 --proto udp", "1,1", OUTER_AND_GOOD),
        ("--vxlan 42 --proto tcp:psh,ack -6 --vlan 7", GOOD, OUTER_AND_GOOD),
        ("--vxlan 42 --proto icmp --drawn", "1,1", OUTER_AND_GOOD),
    ];
    let fields = [
        "ip.checksum.status",
        "udp.checksum.status",
        "tcp.checksum.status",
        "icmp.checksum.status",
        "icmpv6.checksum.status",
        "_ws.malformed",
    ];
    for (stack, ip, inside) in stacks {
        for size in sizes {
            let words: Vec<_> = stack.split(' ').chain(["-c", "300", "--flows", "50"]).collect();
            written(&file, &[&words, size].concat());
            let frames = checked(&file, &fields);
            assert_eq!(frames.len(), 300, "{stack}");
            for frame in frames {
                let statuses: Vec<_> = frame[1..5].iter().filter(|status| !status.is_empty()).collect();
                let all = statuses.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",");
                assert_eq!((&*frame[0], &*all, &*frame[5]), (ip, inside, ""), "{stack}");
            }
            let lines = output(Command::new("tcpdump").args(["-vv", "-n", "-r", &file]));
            for wrong in ["bad", "incorrect", "wrong", "invalid", "malformed", "[|", "truncated", "missing"] {
                assert!(!lines.contains(wrong), "{stack}: {wrong}: {lines}");
            }
            let sums = ["udp sum ok", "(correct)", "icmp6 sum ok", "ICMP echo request"];
            let right: usize = sums.iter().map(|sum| lines.matches(sum).count()).sum();
            assert_eq!(right, 300, "{stack}: {lines}");
        }
    }
}

#[test]
fn sizes_and_flows_come_as_often_as_described() {
    fn counted<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
        all.fold(BTreeMap::new(), |mut counts, one| {
            *counts.entry(one).or_default() += 1;
            counts
        })
    }
    let directory = directory();
    let file = path(&directory, "a.pcap");
    written(&file, &["-c", "1200", "--size", "imix"]);
    let sizes = checked(&file, &["frame.len"]).into_iter().map(|fields| fields[0].clone());
    let expected = [("1514", 100), ("590", 400), ("60", 700)].map(|(size, count)| (size.to_owned(), count));
    assert_eq!(counted(sizes), BTreeMap::from(expected));
    written(&file, &["-c", "202", "--size", "100-200"]);
    let sizes = counted(packets(Path::new(&file)).iter().map(Vec::len));
    assert!(sizes.keys().copied().eq(100..=200) && sizes.values().all(|&count| count == 2), "{sizes:?}");

    let flows =
        ["--flows", "8", "--src", "10.1.0.0/30", "--sport", "5-6", "--dst", "10.2.0.9", "--dport", "80"];
    written(&file, &[&flows[..], &["-c", "16"]].concat());
    let fields = ["ip.src", "udp.srcport", "ip.dst", "udp.dstport"];
    let found = checked(&file, &fields).into_iter().map(|fields| fields.join(" "));
    let mut all = Vec::new();
    for address in 0..4 {
        all.extend([5, 6].map(|port| (format!("10.1.0.{address} {port} 10.2.0.9 80"), 2)));
    }
    assert_eq!(counted(found), BTreeMap::from_iter(all));

    // 65536 frames before the order repeats: each flow has its part of 1 + 1/2 + ... + 1/8.
    written(&file, &[&flows[..], &["-c", "65536", "--order", "zipf:1"]].concat());
    let addresses = |packet: &Vec<u8>| packet[26..38].to_vec();
    let mut counts: Vec<_> = counted(packets(Path::new(&file)).iter().map(addresses)).into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let whole: f64 = (1..=8).map(|rank| 1.0 / f64::from(rank)).sum();
    for (rank, count) in (1..=8).zip(&counts) {
        let expected = 65_536.0 / f64::from(rank) / whole;
        let count = f64::from(u32::try_from(*count).expect("few"));
        assert!((count - expected).abs() <= 1.0, "{rank}: {count}, not {expected}");
    }
    assert_eq!(counts.len(), 8);
}

#[test]
fn times_in_a_file_are_those_of_the_plan() {
    let directory = directory();
    let file = path(&directory, "a.pcapng.zst");
    written(&file, &["--burst", "2/1h", "--duration", "3h"]);
    let plain_file = path(&directory, "a.pcapng");
    let read = weir(&["read", &file, "-w", &plain_file]).output().expect("weir runs");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let times = checked(&plain_file, &["frame.time_relative"]);
    let hours: Vec<f64> =
        times.iter().map(|time| time[0].parse::<f64>().expect("seconds") / 3600.0).collect();
    assert_eq!(hours, [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn what_cannot_be_is_refused_with_place_reason_and_remedy() {
    for (options, place, why, remedy) in [
        ("--size 40", "--size", "40 bytes have no room for 42 of headers and 18 of signature", "60 or more"),
        ("-6 --size 60 --proto tcp", "--size", "60 bytes have no room", "92 or more"),
        ("--size 1514-60", "--size", "the last size is less", "60-1514"),
        ("--size 70000", "--size", "no size of up to 65549", "imix"),
        ("--flows 0", "--flows", "no traffic without a flow", "1 or more"),
        ("--flows 5 --src 10.0.0.0/30 --sport 7", "--flows", "addresses and ports give 4", "larger ranges"),
        ("--order zipf:0", "--order", "no exponent above 0", "zipf:1.1"),
        ("--src 10.0.0.0/33", "--src", "0 to 32 bits", "198.18.0.0/16"),
        ("--src ::1 --dst 10.0.0.1", "--dst", "different IP versions", "both of IPv4"),
        ("-6 --src 10.0.0.1", "-6", "addresses of IPv4", "leave out"),
        ("--sport 9-8", "--sport", "the last port is before", "0 to 65535"),
        ("--vlan 4095", "--vlan", "no ID of a VLAN", "0 to 4094"),
        ("--vlan 1,2,3", "--vlan", "3 tags", "one or two"),
        ("--vxlan 16777216", "--vxlan", "24 bits", "16777215"),
        ("--proto tcp:sin", "--proto", "no flag `sin`", "syn"),
        ("--rate 0pps", "--rate", "zero", "500kpps"),
        ("--rate 100", "--rate", "unit is missing", "100pps"),
        ("--burst 10", "--burst", "no `/`", "100/10ms"),
        ("--dst-mac 1:2", "--dst-mac", "MAC address", "02:00:00:00:00:02"),
    ] {
        let words: Vec<_> = ["-w", "-", "-c", "1"].into_iter().chain(options.split(' ')).collect();
        let output = plain(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options}: {said}");
        assert!([place, why, remedy].iter().all(|part| said.contains(part)), "{options}: {said}");
        assert!(output.stdout.is_empty(), "{options}");
    }
    let endless = plain(&["-w", "-"]);
    assert!(String::from_utf8_lossy(&endless.stderr).contains("try -c 1000"));
}

#[root_test]
fn root_the_other_end_receives_what_a_file_has() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "wanted.pcap");
    let numbered = |packet: &Vec<u8>, number: usize| {
        let sequence = &(number as u64).to_be_bytes()[2..];
        packet[SIGNATURE..][..10] == [&b"wr\x00\x09"[..], sequence].concat()
    };
    let same = "-c 2000 --flows 30 --order random --drawn --seed 5 --stream 9 --size 60-1514 --src-mac 02:00:00:00:00:07";
    let same: Vec<_> = same.split(' ').collect();
    written(&file, &same);
    let mut wanted = packets(Path::new(&file));
    for ways in [
        &["--backend", "ring"][..],
        &["--backend", "plain"],
        &["--backend", "live"],
        &["--backend", "live", "--rate", "50kpps"],
        &["--burst", "7/1ms"],
    ] {
        let got = directory.path().join("got.pcap");
        let tcpdump = Tcpdump::start(&network, got.clone(), 2000);
        let before = left(&network);
        let account = generate(&network, &[&same, ways].concat()).succeeded().account();
        tcpdump.received();
        assert_eq!(left(&network) - before, 2000, "{ways:?}");
        let mut got = packets(&got);
        let bytes: usize = got.iter().map(Vec::len).sum();
        assert_eq!((account.number("packets"), account.number("bytes")), (2000, bytes as u64), "{ways:?}");
        for (number, (got, wanted)) in got.iter_mut().zip(&mut wanted).enumerate() {
            assert!(numbered(got, number), "{ways:?}: frame {number}: {got:02x?}");
            for frame in [&mut *got, wanted] {
                frame[TIME].fill(0);
            }
            assert_eq!(got, wanted, "{ways:?}: frame {number}");
        }
        assert_eq!(got.len(), 2000);
    }
}

#[root_test]
fn root_full_speed_is_that_of_the_kernel() {
    let network = network();
    let before = left(&network);
    let ended = generate(&network, &["-c", "100000"]).succeeded();
    // Before Linux 6.3 nobody knows whether the driver takes such frames.
    let way = if weir_sys::kernel::version() < (6, 3) { "plain" } else { "live frames" };
    assert!(
        ended.stderr.starts_with(&format!("100,000 packets, 5.72 MiB sent on rx0 ({way}) in ")),
        "{}",
        ended.stderr
    );
    assert_eq!(left(&network) - before, 100_000);
    assert_eq!(ended.account().number("refused"), 0);

    let deaf = Network::new(Veth::default().feature("gro", false)).expect("a private network");
    let ended = generate(&deaf, &["-c", "100"]).succeeded();
    assert!(ended.stderr.contains("sent on rx0 (plain) in "), "{}", ended.stderr);
    let refused = generate(&deaf, &["-c", "100", "--backend", "live"]);
    refused.failed(&["cannot send live frames: its driver takes no redirected packets"]);
}

#[root_test]
fn root_frames_come_from_the_interface() {
    let (network, directory) = (network(), directory());
    let got = directory.path().join("got.pcap");
    let tcpdump = Tcpdump::start(&network, got.clone(), 3);
    let ended = generate(&network, &["-c", "3", "--rate", "1000pps"]).succeeded();
    assert!(ended.stderr.starts_with("3 packets, 180 B sent on rx0 (plain) in "), "{}", ended.stderr);
    assert_eq!(ended.account().0["asked_packets_per_second"], 1000.0);
    tcpdump.received();
    let links = network.rx().run(weir::link::links).expect("links");
    let own = links.iter().find(|link| link.name == "rx0").expect("the interface");
    for packet in packets(&got) {
        assert_eq!((&packet[..6], &packet[6..12]), (&[2, 0, 0, 0, 0, 2][..], &own.address[..]));
    }

    let ended = generate(&network, &["-c", "20000", "--rate", "1000Gpps"]).succeeded();
    assert_eq!(ended.account().0["reached"], false);
    assert!(ended.stderr.contains("note: 1.00 Tpps was asked for and not reached"), "{}", ended.stderr);
}

#[root_test]
fn root_too_long_frames_are_refused_before_any_is_sent() {
    let network = network();
    let before = left(&network);
    let mtu = mtu_of(&network);
    let size = format!("60-{}", mtu + 15);
    let message = format!("frames have up to {} bytes; the interface takes up to {}", mtu + 15, mtu + 14);
    let ended = generate(&network, &["-c", "9", "--size", &size]);
    ended.failed(&[&message, &format!("ip link set rx0 mtu {}", mtu + 1)]);
    assert_eq!(left(&network), before);
    generate(&network, &["-c", "9", "--size", &format!("60-{}", mtu + 14)]).succeeded();
}

fn mtu_of(network: &Network) -> u32 {
    let links = network.rx().run(weir::link::links).expect("links");
    links.iter().find(|link| link.name == "rx0").expect("the interface").mtu
}

#[root_test]
fn root_a_signal_ends_bursts_with_the_exact_number() {
    let network = network();
    let before = left(&network);
    let command = ["gen", "-i", "rx0", "--json", "--burst", "5/1h", "--flows", "3"];
    let running = Running::spawn(&network, &mut weir(&command));
    until("a burst", || match left(&network) - before {
        5 => Ok(()),
        other => Err(other.to_string()),
    });
    // While it waits for an hour, it has no rights.
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it runs");
    for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.lines().any(|found| found == line), "no {line}: {status}");
    }
    running.signal(Signal::INT);
    let ended = running.wait().succeeded();
    let account = ended.account();
    assert_eq!((account.number("packets"), &account.0["stopped"]), (5, &true.into()));
    assert!(ended.stderr.contains("note: stopped by a signal"), "{}", ended.stderr);
    assert_eq!(left(&network) - before, 5);
}

#[root_test]
fn root_frames_leave_in_another_namespace_with_one_capability() {
    let (network, elsewhere) = (network(), network());
    let process = inside(&network);
    let holder = process.id().to_string();
    let name = format!("{holder}/rx0");
    for place in [&["-i", &*name][..], &["-i", "rx0", "--netns", &holder]] {
        let before = [&network, &elsewhere].map(left);
        let mut command = weir(&[&["gen", "--json", "-c", "30"], place].concat());
        let ended = Running::spawn(&elsewhere, &mut command).wait().succeeded();
        assert_eq!(ended.account().0["interface"], *name);
        assert_eq!([&network, &elsewhere].map(left), [before[0] + 30, before[1]]);
    }
    let with = |capabilities: &str| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--bounding-set=-all{capabilities}"), env!("CARGO_BIN_EXE_weir")]);
        Running::spawn(&network, command.args(["gen", "-i", "rx0", "-c", "3"])).wait()
    };
    let before = left(&network);
    with("").failed(&["cannot send on `rx0`: ", "permission denied", "cap_net_raw"]);
    assert_eq!(left(&network), before);
    with(",+net_raw").succeeded();
    assert_eq!(left(&network) - before, 3);
}
