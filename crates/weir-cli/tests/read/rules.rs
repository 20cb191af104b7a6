//! Rule sets: what `weir rules check` says of them, and what they decide in `weir read`.

use std::fs;

use serde_json::Value;
use weir::reader::{Item, Reader};
use weir::writer::Format;

use crate::support::{EPOCH, Place, pcap, stderr, stdout, succeeds, weir, write};

/// Rules with all that the language has.
const RULES: &str = "\
# comment
dns:   port 53                            -> capture
bad:   host in @blocklist                 -> capture, block
bulk:  tcp port 443                       -> capture first 2 of each flow
scan:  tcp[tcpflags] == tcp-syn           -> capture, learn block for 30s if over 1/s by src
       arp                                -> continue, log if over 5/min by dst
late:  udp port 53 and \\
       host 10.0.0.1                      -> reflect eth1
rest:                                     -> sample 1/3
";

#[test]
fn a_rule_set_is_shown_and_what_never_matches_is_told() {
    let place = Place::new();
    let file = place.path("edge.rules");
    fs::write(&file, RULES).expect("a file");
    fs::write(place.path("blocklist"), "10.0.0.9").expect("a file");
    let output = weir(&["rules", "check"], &[&file]);
    assert_eq!(output.status.code(), Some(0));
    let expected = "\
rule    expression                     capture               packet        also
dns     port 53                        capture               pass
bad     host in @blocklist             capture               block         needs a filter
bulk    tcp port 443                   first 2 of each flow  pass
scan    tcp[tcpflags] == tcp-syn       capture               pass          learn block for 30s if over 1/s by src, needs a filter
line-6  arp                            -                     -             continue, log if over 5/min by dst
late    udp port 53 and host 10.0.0.1  ignore                reflect eth1
rest    (every packet)                 sample 1/3            pass
";
    assert_eq!(stdout(&output), expected);
    let said = stderr(&output);
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines[0].ends_with("edge.rules:7: `late` matches no whole packet: `dns` decides before"),
        "{said}"
    );
    assert!(
        lines.len() == 2 && lines[1].contains("not checked: whether `eth1` can be reflected to"),
        "{said}"
    );
    // As an editor on Windows leaves it.
    fs::write(&file, format!("\u{feff}{}", RULES.replace('\n', "\r\n"))).expect("a file");
    assert_eq!(stdout(&weir(&["rules", "check"], &[&file])), expected);

    let object: Value =
        serde_json::from_str(&succeeds(&["rules", "check", "--json"], &[&file])).expect("JSON");
    let rules = object["rules"].as_array().expect("rules");
    let late = &rules[5];
    assert_eq!((&late["name"], &late["line"]), (&"late".into(), &7.into()));
    assert_eq!((&late["fate"], &late["because_of"][0]), (&"reflect eth1".into(), &"dns".into()));
    assert_eq!(rules[4]["continue"], true);
    assert_eq!(rules.len(), 7);
}

#[test]
fn mistakes_have_places_and_fail() {
    let place = Place::new();
    let file = place.path("edge.rules");
    fs::write(&file, "dns: port 53 -> capture\nbad: host in @elsewhere -> capture, blck\nudp -> drop\n")
        .expect("a file");
    let output = weir(&["rules", "check"], &[&file]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let said = stderr(&output);
    for part in [
        "edge.rules:2:37: unknown action `blck`\n",
        "\n  bad: host in @elsewhere -> capture, blck\n                                      ^^^^\ndid you mean `block`?\n",
        "edge.rules:3:8: unknown action `drop`\n  udp -> drop\n         ^^^^\nweir's word is `block`\n",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let output = weir(&["rules", "check", "--json"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    let object: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let mistakes = object["mistakes"].as_array().expect("mistakes");
    let places: Vec<_> = mistakes.iter().map(|mistake| [&mistake["line"], &mistake["column"]]).collect();
    // That the set cannot be read does not hide the other one, nor the other way round.
    assert_eq!(places, [[2, 14], [2, 37], [3, 8]]);
    assert_eq!(mistakes[2]["help"], "weir's word is `block`");

    // Sets are beside the rules, or elsewhere.
    fs::write(&file, "bad: host in @elsewhere -> block\n").expect("a file");
    let said = stderr(&weir(&["rules", "check"], &[&file]));
    assert!(
        said.contains(":1:14: the set `@elsewhere` cannot be read") && said.contains("--set elsewhere=FILE"),
        "{said}"
    );
    fs::write(place.path("list"), "10.0.0.9").expect("a file");
    let set = format!("elsewhere={}", place.path("list").display());
    let said = stderr(&weir(&["rules", "check", "--set", &set], &[&file]));
    assert!(!said.contains("warning"), "{said}");
    fs::rename(place.path("list"), place.path("elsewhere")).expect("a file");
    succeeds(&["rules", "check"], &[&file]);
    let said = stderr(&weir(&["rules", "check", "--set", "elsewhare=b"], &[&file]));
    let wanted = "asks for `@elsewhare`; did you mean `elsewhere`?";
    assert!(said.contains("warning: --set elsewhare: no rule in ") && said.contains(wanted), "{said}");
    assert_eq!(weir(&["rules", "check", "--set", "a"], &[&file]).status.code(), Some(2));
    assert_eq!(weir(&["rules", "check"], &[&place.path("none")]).status.code(), Some(1));
}

/// A UDP packet without link layer, from 10.0.0.`host`.
fn udp(host: u8, port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 0, 2];
    packet.extend([4, 0]);
    packet.extend(port.to_be_bytes());
    packet.extend([0, 8, 0, 0]);
    packet
}

/// The same in an Ethernet frame.
fn framed(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], packet].concat()
}

/// Packets of two interfaces, half a second apart: Ethernet and raw IP.
fn two_kinds(place: &Place) -> std::path::PathBuf {
    let file = place.path("a.pcapng");
    let packets: Vec<(u32, Vec<u8>, u64)> = vec![
        (0, framed(&udp(1, 53)), 0),
        (1, udp(9, 9), 0),
        (1, udp(9, 9), 3),
        (0, framed(&udp(3, 9)), 4),
        (0, [&[255; 6][..], &framed(&udp(3, 9))[6..]].concat(), 0),
        (1, udp(1, 53), 0),
    ];
    let packets: Vec<_> = (0..)
        .zip(&packets)
        .map(|(n, (interface, data, lost))| (*interface, EPOCH + n * 500_000_000, data.as_slice(), *lost))
        .collect();
    write(&file, Format::Pcapng, &[("eth0", 1), ("tun0", 101)], &packets);
    file
}

#[test]
fn lines_and_objects_say_what_rules_decide_and_the_summary_adds_up() {
    let place = Place::new();
    let (file, rules) = (two_kinds(&place), place.path("a.rules"));
    fs::write(
        &rules,
        "dns: port 53 -> capture\nall: -> continue, log if over 1/min by src\nwide: ether broadcast -> bounce\n\
         bad: src host 10.0.0.9 -> learn block for 1m\n",
    )
    .expect("a file");
    let rules = format!("--rules={}", rules.display());
    let output = weir(&["read", "-t", &rules], &[&file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let ends: Vec<_> = text.lines().map(|line| &line[line.rfind("  [").expect(line) + 2..]).collect();
    let expected = [
        "[dns: capture, pass]",
        "[bad: ignore, pass, learn block]",
        "[bad, learned: ignore, block]",
        "[no rule: ignore, pass]",
        "[wide: ignore, bounce, log]",
        "[dns: capture, pass]",
    ];
    assert_eq!(ends, expected, "{text}");
    let said = stderr(&output);
    let row = |name: &str| {
        let row =
            said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}\n{said}"));
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let words: Vec<_> = row.split_whitespace().collect();
        (number(words[0]), number(words[1]))
    };
    let parts = ["dns ", "wide ", "bad ", "bad, learned ", "no rule "].map(row);
    assert_eq!(parts.map(|(packets, _)| packets), [2, 1, 1, 1, 1]);
    let sum = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert_eq!((sum, sum), (row("total "), (6, 3 * 42 + 3 * 28)));
    assert_eq!(row("all (continue) ").0, 3);
    assert!(said.contains("can match these rules: `wide`"), "raw IP has no Ethernet: {said}");
    assert!(!said.contains("interpreted"), "there is machine code: {said}");

    let objects: Vec<Value> = succeeds(&["read", "--json", &rules], &[&file])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let fields = |object: &Value| {
        let [rule, capture, fate] = ["rule", "capture", "fate"].map(|name| object[name].to_string());
        format!("{rule} {capture} {fate} {} {}", object["by_learned"], object["also"])
    };
    let expected = [
        r#""dns" true "pass" null null"#,
        r#""bad" false "pass" null ["learn block"]"#,
        r#""bad" false "block" true null"#,
        r#"null false "pass" null null"#,
        r#""wide" false "bounce" null ["log"]"#,
        r#""dns" true "pass" null null"#,
    ];
    assert_eq!(objects.iter().map(fields).collect::<Vec<_>>(), expected);

    // A filter comes first, and names nothing that it has rejected.
    let output = weir(&["read", &rules, "-f", "port 53", "--count"], &[&file]);
    assert_eq!(stdout(&output), "2\n");
    assert!(stderr(&output).lines().any(|line| line.starts_with("total ") && line.contains(" 2  ")));
}

#[test]
fn a_copy_has_what_rules_capture_and_tells_all_losses() {
    let place = Place::new();
    let (file, copy, rules) = (two_kinds(&place), place.path("b.pcapng"), place.path("a.rules"));
    fs::write(&rules, "net 10.0.0.0/24 and port 53 -> capture\nsrc host 10.0.0.3 -> sample 1/2\n")
        .expect("a file");
    let rules = format!("--rules={}", rules.display());
    assert_eq!(succeeds(&["read", "-q", "-s", "20", &rules, "-w"], &[&copy, &file]), "");
    let mut reader = Reader::open(&copy).expect("a file");
    let mut found = Vec::new();
    while let Some(item) = reader.next().expect("whole") {
        if let Item::Packet(packet) = item {
            found.push(((packet.timestamp - EPOCH) / 500_000_000, packet.data.len(), packet.lost_before));
        }
    }
    assert_eq!(
        found,
        [(0, 20, 0), (3, 20, 4), (5, 20, 3)],
        "lost before a packet that is not captured: told by the next"
    );
}

#[test]
fn rules_without_memory_are_a_filter() {
    let place = Place::new();
    let [original, ruled, filtered] = ["a.pcap", "b.pcap", "c.pcap"].map(|name| place.path(name));
    pcap(&original);
    let rules = place.path("a.rules");
    fs::write(
        &rules,
        "tcp -> ignore\nudp port 53 -> capture, block\nip6 -> ignore\narp or icmp -> capture\n",
    )
    .expect("a file");
    let rules = format!("--rules={}", rules.display());
    succeeds(&["read", "-q", &rules, "-w"], &[&ruled, &original]);
    let filter = "not tcp and (udp port 53 or (not ip6 and (arp or icmp)))";
    succeeds(&["read", "-q", "-f", filter, "-w"], &[&filtered, &original]);
    let [ruled, filtered] = [ruled, filtered].map(|path| fs::read(path).expect("a file"));
    assert!(ruled == filtered && ruled.len() > 1000, "{} and {} bytes", ruled.len(), filtered.len());
}

#[test]
fn no_copy_replaces_rules_or_their_sets() {
    let place = Place::new();
    let (trace, rules, set) = (two_kinds(&place), place.path("a.rules"), place.path("bad"));
    let text = "host in @bad -> capture\nhost in @other -> capture\n";
    fs::write(&rules, text).expect("a file");
    fs::write(&set, "10.0.0.9").expect("a file");
    let other = format!("other={}", place.path("more").display());
    fs::write(place.path("more"), "10.0.0.8").expect("a file");
    for output in [&rules, &set, &place.path("more")] {
        let before = fs::read(output).expect("a file");
        let words = ["read", "--rules", rules.to_str().expect("text"), "--set", &other];
        let output_words = ["-w", output.to_str().expect("text")];
        let done = weir(&[&words[..], &output_words].concat(), &[&trace]);
        assert_eq!(done.status.code(), Some(2));
        assert!(stderr(&done).contains("are the same file"), "{}", stderr(&done));
        assert_eq!(fs::read(output).expect("a file"), before);
    }
}

#[test]
fn no_copy_replaces_a_key_a_filter_or_its_sets() {
    let place = Place::new();
    let trace = two_kinds(&place);
    let (key, filter, set) = (place.path("key"), place.path("filter"), place.path("bad"));
    fs::write(&key, [7; 32]).expect("a file");
    fs::write(&set, "10.0.0.9").expect("a file");
    let member = format!("not host in @{}", set.display());
    fs::write(&filter, &member).expect("a file");
    let (anonymise, in_file) = (format!("--anonymise=@{}", key.display()), filter.display().to_string());
    for (output, words) in [
        (&key, vec![anonymise.as_str()]),
        (&set, vec!["-f", &member]),
        (&set, vec!["-F", &in_file]),
        (&filter, vec!["-F", &in_file]),
    ] {
        let before = fs::read(output).expect("a file");
        let done =
            weir(&[&["read"], &words[..], &["-w", output.to_str().expect("text")]].concat(), &[&trace]);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(stderr(&done).contains("are the same file"), "{words:?}: {}", stderr(&done));
        assert_eq!(fs::read(output).expect("a file"), before);
        let copy = place.path("copy.pcapng");
        succeeds(&[&["read"], &words[..], &["-w", copy.to_str().expect("text")]].concat(), &[&trace]);
    }
}

#[test]
fn files_without_rules_warn_and_marks_of_utf_8_are_skipped() {
    let place = Place::new();
    let file = place.path("a.rules");
    fs::write(&file, "# ip -> capture\n").expect("a file");
    let output = weir(&["rules", "check"], &[&file]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output)
            .ends_with("a.rules: there are no rules: no packet is captured, and every packet passes\n"),
        "{}",
        stderr(&output)
    );
    fs::write(&file, "a: tcp -> reflect eth9\nb: udp -> block, learn reflect eth9 for 1s\n").expect("a file");
    let said = stderr(&weir(&["rules", "check"], &[&file]));
    assert!(said.contains("not checked: whether `eth9` can be reflected to"), "{said}");
    fs::write(&file, "bad: host in @blocklist -> block\n").expect("a file");
    fs::write(place.path("blocklist"), "\u{feff}10.0.0.9\r\n").expect("a file");
    assert_eq!(stderr(&weir(&["rules", "check"], &[&file])), "");
    fs::write(&file, b"# one\n# \xe9\n").expect("a file");
    let output = weir(&["rules", "check"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a.rules: line 2 is not UTF-8\n"), "{}", stderr(&output));
    fs::write(&file, "ip -> a\nip -> b\n").expect("a file");
    let said = stderr(&weir(&["rules", "check"], &[&file]));
    assert_eq!(
        said.lines().filter(|line| line.starts_with("weir: ") && line.contains("a.rules:")).count(),
        2,
        "{said}"
    );
}

#[test]
fn wrong_rules_are_a_wrong_command_line() {
    let place = Place::new();
    let (file, rules) = (two_kinds(&place), place.path("a.rules"));
    fs::write(&rules, "dns: prot 53 -> capture\n").expect("a file");
    let output = weir(&["read", &format!("--rules={}", rules.display())], &[&file]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(
        stderr(&output).contains("a.rules:1:6: ") && stderr(&output).contains("^^^^"),
        "{}",
        stderr(&output)
    );
}
