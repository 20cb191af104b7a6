//! `weir gen --template`: the other end of a cable receives the bytes of the templates, as often as was asked for.

use std::fs;
use std::path::Path;

use serde_json::Value;
use weir_lab::root_test;
use weir_traffic::Signature;

use super::{checked, generate, packets, plain, written};
use crate::harness::{self, directory, network, path};
use crate::replay::{Tcpdump, left};

/// Hexadecimal digits of bytes.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[root_test]
fn root_templates_arrive_byte_for_byte_in_turn() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "templates.pcap");
    written(&file, &["-c", "5", "--size", "80-300", "--vlan", "7"]);
    let odd: Vec<u8> = (0..77).map(|at| at * 3).collect();
    let mut wanted = packets(Path::new(&file));
    wanted.push(odd.clone());
    let hex = format!("hex:{}", digits(&odd));
    for (count, way) in
        [(17, &[][..]), (6, &["--rate", "1kpps"]), (4, &["--backend", "plain", "--no-confine"])]
    {
        let got = directory.path().join("got.pcap");
        let tcpdump = Tcpdump::start(&network, got.clone(), count);
        let before = left(&network);
        let text = count.to_string();
        let args = [&["--template", &file, "--template", &hex, "-c", &text], way].concat();
        let ended = generate(&network, &args).succeeded();
        tcpdump.received();
        let expected: Vec<_> = wanted.iter().cycle().take(count).cloned().collect();
        assert!(packets(&got) == expected, "{way:?}: other bytes");
        assert_eq!(left(&network) - before, count as u64);
        let account = ended.account().0;
        assert_eq!((&account["packets"], &account["templates"]), (&count.into(), &6.into()), "{account}");
        assert!(account["flows"].is_null() && account["seed"].is_null(), "{account}");
    }
}

#[test]
fn signed_templates_have_right_checksums_and_say_their_number() {
    let directory = directory();
    let (file, signed) = (path(&directory, "a.pcap"), path(&directory, "signed.pcap"));
    for stack in ["--proto udp", "--proto tcp --vlan 7", "--proto icmp", "-6 --proto udp", "-6 --proto icmp"]
    {
        let words: Vec<_> = stack.split(' ').chain(["-c", "3", "--size", "200-400"]).collect();
        written(&file, &words);
        // Templates without a signature of their own.
        let mut bytes = fs::read(&file).expect("a file");
        // Times in headers may begin with the same two bytes.
        let is_signature = |at: &usize| Signature::from_bytes(&bytes[*at..]).is_some();
        let places: Vec<_> = (0..bytes.len()).filter(is_signature).collect();
        assert_eq!(places.len(), 3);
        for at in places {
            bytes.swap(at, at + 2);
            bytes.swap(at + 1, at + 3);
        }
        fs::write(&file, bytes).expect("a file");
        let plain = packets(Path::new(&file));
        written(&signed, &["--template", &file, "--sign", "--stream", "9", "-c", "8"]);
        for (number, (frame, template)) in
            packets(Path::new(&signed)).iter().zip(plain.iter().cycle()).enumerate()
        {
            let found = Signature::find(frame, 0).expect("a signature");
            assert_eq!((found.signature.stream, found.signature.sequence), (9, number as u64), "{stack}");
            assert_eq!(frame.len(), template.len());
            assert_eq!(frame[found.offset + 18..], template[found.offset + 18..]);
        }
        let names = ["udp", "tcp", "icmp", "icmpv6"].map(|name| format!("{name}.checksum.status"));
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        for file in [&file, &signed] {
            for statuses in checked(file, &names) {
                assert_eq!(statuses.concat(), "1", "{stack}");
            }
        }
    }
}

#[test]
fn templates_without_room_for_a_signature_are_left_out() {
    let directory = directory();
    let (file, signed) = (path(&directory, "a.pcap"), path(&directory, "signed.pcap"));
    written(&file, &["-c", "2"]);
    let arp = "hex:ffffffffffff02000000000108060001";
    let args =
        ["gen", "--template", arp, "--template", &file, "--template", arp, "--sign", "-c", "4", "--json"];
    let output = harness::weir(&args).args(["-w", &signed]).output().expect("weir runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("--sign leaves out 2 of 4 templates without room for a signature: template 1"),
        "{said}"
    );
    let account: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&account["templates"], &account["unsigned"]), (&2.into(), &2.into()), "{account}");
    let sequences: Vec<_> = packets(Path::new(&signed))
        .iter()
        .map(|frame| Signature::find(frame, 0).expect("a signature").signature.sequence)
        .collect();
    assert_eq!(sequences, [0, 1, 2, 3]);
}

#[root_test]
fn root_templates_that_cannot_be_sent_are_told() {
    let (network, directory) = (network(), directory());
    let [file, raw, long, empty, snapped] =
        ["a.pcap", "raw.pcap", "long.pcap", "empty.pcap", "snapped.pcap"].map(|name| path(&directory, name));
    written(&file, &["-c", "2"]);
    written(&long, &["-c", "1", "--size", "2000"]);
    let bytes = fs::read(&file).expect("a file");
    // The link type of raw IP; no packets; a packet that was longer.
    let changed = |at: usize, byte: u8| [&bytes[..at], &[byte], &bytes[at + 1..]].concat();
    fs::write(&raw, changed(20, 101)).expect("a file");
    fs::write(&empty, &bytes[..24]).expect("a file");
    fs::write(&snapped, changed(36, 61)).expect("a file");
    let before = left(&network);
    for (words, why) in [
        (&["--template", &*raw][..], &["they are RAW (Raw IP), the interface takes EN10MB", "--dst-mac"][..]),
        (
            &["--template", &file, "--template", &long],
            &["cannot send template 3 on `rx0`: it has 2000 bytes", "mtu 1986"],
        ),
        (&["--template", "hex:00"], &["cannot send template 1 on `rx0`: it has 1 bytes", "a whole frame"]),
        (&["--template", &empty], &["there is no packet in it"]),
        (&["--template", &snapped], &["kept only the first bytes of packet 1", "--snapped"]),
        (&["--template", "/nowhere/a.pcap"], &["/nowhere/a.pcap"]),
        (
            &["--template", "hex:ffffffffffff02000000000108060001", "--sign"],
            &["cannot sign any template: template 1 is no packet of TCP, UDP or ICMP", "leave out --sign"],
        ),
    ] {
        generate(&network, &[words, &["-c", "5"]].concat()).failed(why);
    }
    assert_eq!(left(&network), before, "nothing was sent");
}

#[test]
fn templates_get_other_addresses_and_headers_and_are_sent_in_part_if_asked() {
    let directory = directory();
    let [file, raw, snapped, out] =
        ["a.pcap", "raw.pcap", "snapped.pcap", "out.pcap"].map(|name| path(&directory, name));
    written(&file, &["-c", "2"]);
    let bytes = fs::read(&file).expect("a file");
    let frames = packets(Path::new(&file));
    let [to, from] = [[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 8]];
    let macs = ["--dst-mac", "02:00:00:00:00:09", "--src-mac", "02:00:00:00:00:08"];
    let addressed = |frame: &[u8]| [&to[..], &from, &frame[12..]].concat();
    // The packets without their Ethernet headers; the first one of more bytes than there are.
    let head = [&bytes[..20], &101u32.to_ne_bytes()].concat();
    let record = |at: usize, frame: &[u8]| {
        let len = u32::try_from(frame.len()).expect("short").to_ne_bytes();
        [&bytes[at..at + 8], &len, &len, frame].concat()
    };
    let second = 24 + 16 + frames[0].len();
    let records = [record(24, &frames[0][14..]), record(second, &frames[1][14..])].concat();
    fs::write(&raw, [head, records].concat()).expect("a file");
    fs::write(&snapped, [&bytes[..36], &[61], &bytes[37..]].concat()).expect("a file");
    let expected: Vec<_> = frames.iter().map(|frame| addressed(frame)).collect();
    for template in [&file, &raw] {
        written(&out, &[&["--template", template, "-c", "2"][..], &macs].concat());
        assert_eq!(packets(Path::new(&out)), expected, "{template}");
    }
    let padded = [&frames[0][..], &[0]].concat();
    for (how, expected) in [
        ("cut", [&frames[0], &frames[1]]),
        ("pad", [&padded, &frames[1]]),
        ("skip", [&frames[1], &frames[1]]),
    ] {
        written(&out, &["--template", &snapped, "-c", "2", "--snapped", how]);
        assert_eq!(packets(Path::new(&out)).iter().collect::<Vec<_>>(), expected, "{how}");
    }
}

#[test]
fn mistakes_in_templates_are_usage_errors() {
    for (words, why) in [
        (&["--template", "hex:0a0"][..], "half a byte at the end, behind 1"),
        (&["--template", "hex:0a:zz"], "`z` at character 4"),
        (&["--template", "hex:"], "no bytes"),
        (&["--template", "a.pcap", "--size", "60"], "cannot be used with"),
        (&["--template", "a.pcap", "--proto", "tcp"], "cannot be used with"),
        (&["--sign"], "--template"),
        (&["--template", "a.pcap", "--backend", "live"], "the kernel makes its frames itself"),
    ] {
        let output = plain(&[&["-i", "lo", "-c", "1"], words].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(why), "{words:?}: {stderr}");
    }
}
