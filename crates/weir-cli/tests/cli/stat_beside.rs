//! Statistics beside a capture, and switched on and off while it runs. tcpdump, which reads what was captured, is the judge.

use std::fs;

use serde_json::Value;
use weir_lab::{FrameSender, Generator, Traffic, root_test};

use crate::control::{ctl, ctl_succeeds, ended_at};
use crate::harness::{capture, directory, generate, network, path, root_tests, run, send};
use crate::stat::{number, send_from};
use crate::stat_several::judged;

const FILTERS: [(&str, &str); 4] =
    [("dns", "udp port 53"), ("some", "src portrange 4001-4002"), ("long", "greater 61"), ("tcp", "tcp")];

/// Received and sent packets and bytes.
fn both(counts: &Value, field: &str) -> u64 {
    number(&counts["received"], field) + number(&counts["sent"], field)
}

root_tests! { what_is_counted_beside_a_capture_is_what_tcpdump_finds_in_it:
    root_what_is_counted_beside_a_capture_is_what_tcpdump_finds_in_it_tc("tc");
    root_what_is_counted_beside_a_capture_is_what_tcpdump_finds_in_it_af_packet("af_packet");
    root_what_is_counted_beside_a_capture_is_what_tcpdump_finds_in_it_xdp_and_tc("xdp+tc");
}

fn what_is_counted_beside_a_capture_is_what_tcpdump_finds_in_it(source: &str) {
    for filter in ["", "src port 4003"] {
        let (network, directory) = (network(), directory());
        let file = path(&directory, "all.pcap");
        let whole = path(&directory, "whole.pcap");
        let named = FILTERS.map(|(name, expression)| format!("{name}: {expression}"));
        let mut args = vec!["--source", source, "--json", "-w", &file];
        args.extend(named.iter().flat_map(|named| ["--stat", named]));
        args.push(filter);
        // What the filter leaves out is in the file of another capture.
        let all = capture(&network, &["--source", "af_packet", "-w", &whole, "--no-control"]);
        let running = capture(&network, &args);
        send_from(network.pair(), &[(4001, 10), (4002, 40), (4003, 20), (5000, 3)]);
        let sent = FrameSender::new(&network.pair().rx).expect("a sender");
        let traffic = Traffic::new(90).expect("a size").between(network.pair());
        (0..25).for_each(|number| sent.send(&traffic.frame(number)).expect("a frame"));
        let account = ended_at(running);
        all.interrupt().succeeded();
        let expected = if filter.is_empty() { judged(&[&whole], "") } else { 20 };
        assert_eq!((account.number("captured"), account.number("lost")), (expected, 0), "{source}");
        let statistics = &account.0["statistics"][0];
        // The end of a capture switches nothing off.
        assert_eq!((&statistics["interface"], &statistics["on"]), (&"rx0".into(), &true.into()));
        assert_eq!(both(&statistics["total"], "packets"), judged(&[&whole], ""), "{source}: {statistics}");
        assert_eq!(both(&statistics["total"], "packets"), 98);
        for ((name, expression), place) in FILTERS.into_iter().zip(0..) {
            let counted = &statistics["filters"][place];
            assert_eq!((&counted["name"], &counted["filter"]), (&name.into(), &expression.into()));
            assert_eq!(both(counted, "packets"), judged(&[&whole], expression), "{source}: {counted}");
        }
        assert_eq!(number(&statistics["filters"][2]["sent"], "bytes"), 25 * 90);
    }
}

#[root_test]
fn root_statistics_are_switched_while_packets_flow() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "all.pcapng");
    for source in ["tc", "xdp", "af_packet"] {
        let args = ["--source", source, "-w", &file, "--json", "--stat", "lab: udp port 9", "-v"];
        let running = capture(&network, &args);
        running.wait_for("confined: no capabilities, no new privileges; user ");
        let process = running.id().to_string();
        let turn = |how: &str| ctl_succeeds(&network, &["stat", "-t", &process, how]);
        let traffic = Traffic::new(60).expect("size").between(network.pair());
        let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
        generate(&mut generator, network.pair(), 100);
        turn("off");
        generate(&mut generator, network.pair(), 50);
        let shown: Value = serde_json::from_str(&turn("show")).expect("JSON");
        assert_eq!((both(&shown["total"], "packets"), &shown["on"]), (100, &false.into()));
        turn("on");
        generate(&mut generator, network.pair(), 30);
        let shown: Value = serde_json::from_str(&turn("show")).expect("JSON");
        assert_eq!((both(&shown["filters"][0], "packets"), &shown["on"]), (130, &true.into()), "{source}");

        // Now nobody knows which packets are counted, but each is captured, once.
        let switching = std::thread::scope(|scope| {
            let switching = scope.spawn(|| {
                for how in ["off", "on"].repeat(8) {
                    turn(how);
                }
            });
            let mut sent = 0;
            while !switching.is_finished() {
                generate(&mut generator, network.pair(), 1000);
                sent += 1000;
            }
            switching.join().expect("it switches");
            sent
        });
        let account = ended_at(running);
        account.closes();
        let all = 180 + switching;
        assert_eq!((account.number("captured"), account.number("lost")), (all, 0), "{source}");
        assert_eq!(account.number("written"), all);
        assert_eq!(judged(&[&file], ""), all, "{source}");
        let counted = both(&account.0["statistics"][0]["total"], "packets");
        assert!((130..=130 + switching).contains(&counted), "{source}: {counted} of {all}");
        assert_eq!(both(&account.0["statistics"][0]["filters"][0], "packets"), counted);
        let marked = fs::read(&file).expect("the file");
        let marks = marked.windows(23).filter(|text| text == b"statistics switched off").count();
        assert_eq!(marks, 9, "in the file");
    }
}

#[root_test]
fn root_what_cannot_be_counted_beside_a_capture_is_told() {
    let network = network();
    let table: [(&[&str], &str); 4] = [
        (&["-i", "rx0", "--mode", "exclusive"], "cannot count beside a capture in exclusive mode: "),
        (&["-i", "rx0@0"], "cannot count by receive queue beside a capture: "),
        (&["-i", "any"], "cannot count on `any`: "),
        (&["-i", "rx0", "--stat", "dns: udp prot 53"], "did you mean `port`?"),
    ];
    for (args, said) in table {
        let ended = run(&network, &[&["capture", "--stat", "udp", "-w", "/dev/null"], args].concat());
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
    let running = capture(&network, &["-w", "/dev/null"]);
    let process = running.id().to_string();
    for (how, said) in
        [("off", "cannot switch statistics: this capture has none; try "), ("show", "has none")]
    {
        let refused = ctl(&network, &["stat", "-t", &process, how]);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && text.contains(said), "{how}: {text}");
    }
    running.interrupt().succeeded();

    let running = capture(&network, &["-w", "/dev/null", "--stat", "lab: udp port 9"]);
    send(&network, 40);
    let ended = running.interrupt().succeeded();
    for line in ["rx0    received     bytes  sent  bytes", "lab          40  2.34 KiB     0    0 B"] {
        ended.says(line);
    }
}
