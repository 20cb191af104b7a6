//! `weir filter`, judged by tcpdump.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use weir_judge::packets;

use crate::contract;
use crate::harness::{directory, weir};

/// Exit status, standard output and standard error.
fn filter(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = weir(&[&["filter"], args].concat());
    let output = command.output().expect("weir runs");
    contract::printed(&contract::words(&command), &output.stdout, &output.stderr);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn succeeds(args: &[&str]) -> String {
    let (status, stdout, stderr) = filter(args);
    assert_eq!(status, Some(0), "{args:?}: {stderr}");
    stdout
}

fn object(args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(args)).expect("JSON")
}

/// What tcpdump prints, with what it says of the file left out.
fn tcpdump(file: &Path, args: &[&str]) -> String {
    let output =
        Command::new("tcpdump").arg("-n").arg("-r").arg(file).args(args).output().expect("tcpdump runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A file of Ethernet with these packets.
fn pcap(path: &Path, packets: &[packets::Captured]) {
    let mut bytes = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1].map(u32::to_ne_bytes).concat();
    for packet in packets {
        let captured = u32::try_from(packet.data.len()).expect("a short packet");
        bytes.extend([1, 0, captured, packet.length].map(u32::to_ne_bytes).concat());
        bytes.extend(&packet.data);
    }
    fs::write(path, bytes).expect("a file");
}

#[test]
fn how_terms_are_joined_is_shown() {
    let expression = "tcp port 80 or 443 and host 10.0.0.1";
    let understood = "(tcp port 80 or tcp port 443) and host 10.0.0.1";
    let text = succeeds(&[expression]);
    assert!(text.contains(&format!("understood as: {understood}\n")), "{text}");
    assert_eq!(object(&["--json", expression])["understood"], understood);
    assert_eq!(object(&["--json", "--", understood])["understood"], understood);
    assert!(!succeeds(&["tcp"]).contains("understood"));
    let text = succeeds(&["tcp port 80 and not inner(udp port 53)"]);
    assert!(text.contains("port is 80\n") && text.contains("port is 53, inside a tunnel\n"), "{text}");
}

#[test]
fn what_no_bytes_tell_is_shown_for_those_who_know_it() {
    for (expression, needs) in [("ip", "bytes"), ("ip and inbound", "direction"), ("ifindex 2", "live")] {
        assert_eq!(object(&["--json", expression])["needs"], needs, "{expression}");
    }
    assert_eq!(object(&["--json", "--dialect", "pcap", "inbound"])["needs"], "live", "files have none there");
    assert!(succeeds(&["outbound"]).contains("pcapng files that record the direction"));
    for form in [&["-d"][..], &["--emit", "ebpf"], &["--emit", "asm"], &["--emit", "ir"], &["--cost"]] {
        let (status, _, stderr) = filter(&[form, &["inbound"]].concat());
        let told = form == ["--cost"] || stderr.contains("for live captures");
        assert!(status == Some(0) && told, "{form:?}: {stderr}");
    }
    for (expression, load) in [("inbound", "[type]"), ("ifindex 7", "[ifidx]")] {
        assert!(
            succeeds(&["-d", expression]).contains(load),
            "{expression}: Linux's extension, as of tcpdump -i"
        );
    }
    // Where a header has it, nobody else is asked.
    assert_eq!(object(&["--json", "-y", "LINUX_SLL2", "inbound"])["needs"], "bytes");
}

#[test]
fn listings_look_as_those_of_tcpdump() {
    let directory = directory();
    let empty = directory.path().join("empty.pcap");
    pcap(&empty, &[]);
    for expression in ["ip", "arp", "ip6", "ether proto 0x88cc"] {
        for form in ["-d", "-dd", "-ddd"] {
            let theirs = tcpdump(&empty, &[form, expression]);
            assert_eq!(succeeds(&["--dialect", "pcap", form, expression]), theirs, "{form} {expression}");
        }
    }
}

#[test]
fn as_many_packets_match_as_tcpdump_prints() {
    let directory = directory();
    let file = directory.path().join("packets.pcap");
    let packets = packets::fixed(1, 400);
    pcap(&file, &packets);
    let name = file.to_str().expect("a plain name");
    for expression in
        ["tcp port 80 or udp", "host 10.1.2.3 and not tcp", "vlan 5 and ip", "ip[8] < 64", "5 = 5"]
    {
        let counted = object(&["--dialect", "pcap", "--json", "--run", name, expression]);
        let theirs = tcpdump(&file, &["-O", "--count", expression]);
        let theirs: usize =
            theirs.split_whitespace().next().and_then(|count| count.parse().ok()).expect("a count");
        assert_eq!(counted["packets"], packets.len(), "{expression}");
        assert_eq!(counted["matched"], theirs, "{expression}");
        let terms = counted["terms"].as_array().expect("terms");
        let decided = |key| terms.iter().filter_map(|term| term[key].as_u64()).sum::<u64>();
        let all =
            decided("accepted") + decided("refused") + counted["without_term"].as_u64().expect("a number");
        assert_eq!(all, packets.len() as u64, "{expression}: each packet is decided once");
    }
}

#[test]
fn what_is_printed_is_read_back() {
    let numbers = succeeds(&["-ddd", "tcp port 443 and net 10.0.0.0/8"]);
    let mut decode = weir(&["filter", "--decode", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("weir runs");
    decode.stdin.take().expect("a pipe").write_all(numbers.as_bytes()).expect("room in the pipe");
    let output = decode.wait_with_output().expect("its end");
    let listing = succeeds(&["-d", "tcp port 443 and net 10.0.0.0/8"]);
    let decoded = String::from_utf8(output.stdout).expect("text");
    assert!(decoded.starts_with(&listing), "{decoded}");
}

#[test]
fn each_form_is_printed() {
    let forms =
        [("cbpf", "ret"), ("ebpf", "exit"), ("asm", "ret"), ("ir", "accept"), ("ast", "t0 tcp port 80")];
    for (form, word) in forms {
        let text = succeeds(&["--emit", form, "tcp port 80"]);
        assert!(text.contains(word), "{form}: {text}");
    }
}

#[test]
fn terms_are_explained_with_the_bytes_that_they_read() {
    let explained = object(&["--json", "--dialect", "pcap", "ip proto 17 and ether[0] = 1"]);
    assert_eq!(explained["never_matches"], false);
    let terms = explained["terms"].as_array().expect("terms");
    assert_eq!(terms[0]["matches"], "IPv4 packets that carry protocol 17");
    let texts: Vec<_> = terms.iter().map(|term| term["text"].as_str().expect("text")).collect();
    assert_eq!(texts, ["ip proto 17", "ether[0] = 1"]);
    assert_eq!(terms[0]["reads"], serde_json::json!(["[12:2]", "[23:1]"]));
    assert_eq!(terms[1]["reads"], serde_json::json!(["[0:1]"]));
}

#[test]
fn bytes_are_listed_for_those_who_ask() {
    let words = ["tcp", "port", "80"];
    let text = succeeds(&words);
    assert!(text.contains("matches") && !text.contains("reads") && !text.contains("[12:2]"), "{text}");
    let text = succeeds(&[&["--bytes"][..], &words].concat());
    assert!(text.contains("      reads [") && text.contains("to find the headers: [12:2]"), "{text}");
}

#[test]
fn a_protocol_that_is_no_keyword_is_suggested_as_a_term_that_works() {
    for (expression, number) in [("gre", 47), ("tcp port 80 and gre", 47), ("not ospf", 89), ("eigrp", 88)] {
        let (status, _, stderr) = filter(&[expression]);
        assert_eq!(status, Some(2), "{expression}");
        let term = stderr.split("did you mean `").nth(1).and_then(|rest| rest.split('`').next());
        let term = term.unwrap_or_else(|| panic!("{expression}: {stderr}"));
        assert!(term.starts_with("proto "), "{stderr}");
        // Whether by name or by number depends on the system's protocols(5).
        assert_eq!(succeeds(&["-d", term]), succeeds(&["-d", &format!("proto {number}")]), "{term}");
    }
    // A slip of the finger stays one.
    assert!(filter(&["icmpv6"]).2.contains("did you mean `icmp6`?"));
}

#[test]
fn costs_stand_beside_those_of_libpcap() {
    let costs = object(&["--json", "--dialect", "pcap", "--cost", "ip"]);
    assert_eq!(costs["cbpf"], serde_json::json!({"instructions": 4, "longest": 3, "typical": 3.0}));
    assert_eq!(costs["cbpf"], costs["libpcap"]);
    assert!(costs["native_bytes"].as_u64().expect("a number") > 0);
    let text = succeeds(&["--cost", "tcp port 80"]);
    assert!(text.contains("libpcap without its optimiser"), "{text}");
}

/// What packets of a link type never are is refused as tcpdump does, where nothing else can match.
#[test]
fn classic_bpf_is_longer_without_the_optimiser() {
    let length = |options: &[&str]| {
        let (status, stdout, stderr) = filter(&[options, &["tcp port 80 and host 10.0.0.1"]].concat());
        assert_eq!(status, Some(0), "{stderr}");
        stdout.lines().count()
    };
    for dialect in ["weir", "pcap"] {
        for form in [&["-d"][..], &["--emit", "cbpf"]] {
            let plain = [&["--dialect", dialect], form].concat();
            let (optimised, unoptimised) = (length(&plain), length(&[&["-O"], &plain[..]].concat()));
            assert!(optimised < unoptimised, "{dialect} {form:?}: {optimised} {unoptimised}");
        }
    }
}

#[test]
fn what_a_link_type_does_not_have_is_refused_as_by_tcpdump() {
    let mut refused = 0;
    for link_type in ["RAW", "NULL", "LOOP", "IPV4", "IPV6", "PFLOG", "IPNET", "C_HDLC", "PPP", "EN10MB"] {
        for expression in [
            "arp host 1.2.3.4",
            "rarp",
            "arp[0] = 1",
            "ether proto 0x88cc",
            "ip6 and tcp",
            "ip6 host ::1",
            "ip and udp",
            "stp and less 100",
            "decnet",
            "arp or icmp6 or icmp",
            "not arp",
        ] {
            let theirs =
                Command::new("tcpdump").args(["-y", link_type, "-d", expression]).output().expect("runs");
            let said = String::from_utf8_lossy(&theirs.stderr);
            assert!(theirs.status.success() || said.contains("rejects all packets"), "{said}");
            for dialect in ["weir", "pcap"] {
                let (status, _, stderr) = filter(&["-y", link_type, "--dialect", dialect, "-d", expression]);
                let wanted = if theirs.status.success() { Some(0) } else { Some(2) };
                assert_eq!(status, wanted, "{link_type} {dialect} {expression}: {stderr} {said}");
                refused += usize::from(
                    status == Some(2) && stderr.contains("packets of this link type can never match"),
                );
            }
        }
    }
    assert!(refused > 50, "{refused}");
    // A contradiction is no mistake about the link type.
    assert_eq!(filter(&["-d", "ip6 and igmp"]).2, "No packet can match this.\n");
}

#[test]
fn what_is_wrong_is_said() {
    let (status, _, stderr) = filter(&["tcp", "prot", "80"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("\n  tcp prot 80\n      ^^^^\ndid you mean `port`?\n"), "{stderr}");
    let (status, stdout, stderr) = filter(&["-d", "tcp", "and", "udp"]);
    assert_eq!((status, stdout.as_str()), (Some(0), "(000) ret      #0\n"));
    assert_eq!(stderr, "No packet can match this.\n");
    let (status, _, stderr) = filter(&["-y", "EN10GB", "ip"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("LINUX_SLL2"), "{stderr}");
    let (status, _, stderr) = filter(&["--run", "/nonexistent", "ip"]);
    assert_eq!(status, Some(1));
    assert!(stderr.contains("/nonexistent"), "{stderr}");
    let (status, _, _) = filter(&["-d", "--cost", "ip"]);
    assert_eq!(status, Some(2), "one question at a time");
}
