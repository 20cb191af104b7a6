//! What `weir replay` refuses or cannot finish, and what it says of it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_lab::{LinkCounters, Traffic, root_test};

use super::{START, Tcpdump, left, packets, pcap, replay, shown};
use crate::harness::{Running, directory, network, until, weir};
use crate::namespaces::inside;

#[root_test]
fn root_what_cannot_be_sent_is_told_before_anything_is() {
    let (network, directory) = (network(), directory());
    let before = left(&network);
    let mut all = packets(10, 1);
    all[3].1 = 2000;
    all[7].1 = 1500;
    let snapped = pcap(&directory, "snapped.pcap", 1, &all);
    let ended = replay(&network, &[&snapped]);
    let message = "cannot send 2 of 10 packets on `rx0`: the capture kept only their first bytes";
    ended.failed(&[message, "try --snapped skip, cut or pad"]);

    let raw = pcap(&directory, "raw.pcap", 101, &[(START, 20, vec![0x45; 20])]);
    let ended = replay(&network, &[&raw]);
    ended.failed(&["cannot send 1 of 1 packet on `rx0`: they are RAW", "the interface takes EN10MB"]);

    let traffic = Traffic::new(3000).expect("size");
    let mut long = packets(5, 1);
    long.push((START + 5, 3000, traffic.frame(0)));
    let long = pcap(&directory, "long.pcap", 1, &long);
    for options in [&[][..], &["--dry-run"]] {
        let ended = replay(&network, &[&[&*long], options].concat());
        ended.failed(&["cannot send 1 of 6 packets on `rx0`: they are longer than 1514 bytes (up to 3000)"]);
    }
    let ended = replay(&network, &[&long]);
    ended.failed(&["ip link set rx0 mtu 2986", "leave them out: -- less 1514"]);

    let ended = replay(&network, &[&long, "--dry-run", "--", "less", "1514"]).succeeded();
    assert!(ended.stderr.starts_with("would send 5 packets, "), "{}", ended.stderr);
    assert_eq!(left(&network), before, "nothing was sent");

    // A pipe cannot be read twice: what comes before is sent.
    let mut command = weir(&["replay", "-", "-i", "rx0", "--json"]);
    command.stdin(fs::File::open(&long).expect("a file")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = network.rx().spawn(&mut command).expect("it starts");
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.code() == Some(1) && stdout.contains("\"packets\":5,"), "{stdout}{stderr}");
    assert!(stderr.contains("cannot send 1 of 6 packets"), "{stderr}");
    assert_eq!(left(&network) - before, 5);
}

#[root_test]
fn root_an_interface_that_goes_leaves_the_exact_number() {
    for backend in ["ring", "plain"] {
        let (network, directory) = (network(), directory());
        let file = pcap(&directory, "a.pcap", 1, &packets(10, 1));
        let other_end = || LinkCounters::read(&network.pair().tx).expect("counters").rx_packets;
        let before = left(&network);
        let words =
            ["replay", &file, "-i", "rx0", "--rate", "500pps", "-l", "0", "--json", "--backend", backend];
        let running = Running::spawn(&network, &mut weir(&words));
        until("some packets", || match left(&network) - before {
            20.. => Ok(()),
            other => Err(other.to_string()),
        });
        assert!(other_end() >= 20);
        let ip = network.rx().run(|| Command::new("ip").args(["link", "delete", "rx0"]).status());
        assert!(ip.expect("ip").success());
        let ended = running.wait();
        let account = ended.account();
        assert!(account.number("packets") >= 20, "{}", ended.stderr);
        let error = account.0["error"].as_str().expect("an error");
        assert!(error.starts_with("cannot send on `rx0`: the interface is gone; try"), "{error}");
        ended.failed(&[error]);
    }
}

#[root_test]
fn root_the_interface_must_be_able_to_send() {
    let network = network();
    let directory = directory();
    let file = pcap(&directory, "a.pcap", 1, &packets(3, 1));
    let on = |interface: &str| {
        Running::spawn(&network, &mut weir(&["replay", &file, "-i", interface, "--dry-run"])).wait()
    };
    on("rx1").failed(&["no interface named `rx1`", "did you mean `rx0`?"]);
    let ip = |words: &[&str]| network.rx().run(|| Command::new("ip").args(words).status()).expect("ip");
    assert!(ip(&["link", "set", "rx0", "down"]).success());
    on("rx0").failed(&["interface `rx0` is down", "ip link set rx0 up"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let usage = |words: &[&str], part: &str| {
        let output = weir(&[&["replay", "t.pcap", "-i", "lo"], words].concat()).output().expect("weir");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(part), "{words:?}: {stderr}");
    };
    usage(&["--rate", "5"], "write 5pps");
    usage(&["--rate", "5pps", "-t"], "cannot be used with");
    usage(&["--speed", "fast"], "2.5x");
    usage(&["-", "-l", "2"], "try --preload");
    usage(&["-l", "0", "--dry-run"], "--loop 0 goes on until Ctrl-C");
    usage(&["-M", "10"], "--rate 100Mbps");
    usage(&["--backend", "live"], "try --top-speed");
    usage(&["--backend", "live", "-t", "--unique-ips"], "try --backend ring");
}

#[root_test]
fn root_the_intact_part_of_a_file_is_sent() {
    let (network, directory) = (network(), directory());
    let all = packets(20, 1);
    let whole = shown(Path::new(&pcap(&directory, "whole.pcap", 1, &all[..19])));
    let file = pcap(&directory, "cut.pcap", 1, &all);
    let bytes = fs::read(&file).expect("a file");
    fs::write(&file, &bytes[..bytes.len() - 1]).expect("a shorter file");
    let tcpdump = Tcpdump::start(&network, directory.path().join("got.pcap"), 19);
    let ended = replay(&network, &[&file, "-t", "--json"]);
    assert!(tcpdump.received() == whole, "other packets");
    assert_eq!(ended.account().number("packets"), 19);
    ended.failed(&["19 packets, ", "cut.pcap: "]);
}

#[root_test]
fn root_sending_takes_one_capability_and_a_dry_run_none() {
    let (network, directory) = (network(), directory());
    let file = pcap(&directory, "a.pcap", 1, &packets(3, 1));
    let with = |capabilities: &str, option: &str| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--bounding-set=-all{capabilities}"), env!("CARGO_BIN_EXE_weir")]);
        Running::spawn(&network, command.args(["replay", &file, "-i", "rx0", option])).wait()
    };
    let before = left(&network);
    with("", "-t").failed(&["cannot send on `rx0`: ", "permission denied", "cap_net_raw"]);
    with("", "--dry-run").succeeded();
    assert_eq!(left(&network), before);
    with(",+net_raw", "-t").succeeded();
    assert_eq!(left(&network) - before, 3);
}

#[root_test]
fn root_the_interface_may_be_in_another_namespace() {
    let (network, elsewhere, directory) = (network(), network(), directory());
    let file = pcap(&directory, "a.pcap", 1, &packets(30, 1));
    let holder = inside(&network);
    let name = format!("{}/rx0", holder.id());
    let before = [&network, &elsewhere].map(left);
    let mut command = weir(&["replay", &file, "-t", "--json", "-i", &name]);
    let ended = Running::spawn(&elsewhere, &mut command).wait().succeeded();
    assert_eq!(ended.account().0["interface"], *name);
    assert_eq!([&network, &elsewhere].map(left), [before[0] + 30, before[1]]);
}
