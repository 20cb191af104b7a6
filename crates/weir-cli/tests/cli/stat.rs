//! `weir stat` on real interfaces.

use std::io::{BufRead, BufReader};
use std::process::Command;

use serde_json::{Value, json};
use weir_lab::{Network, Pair, Traffic, root_test};

use crate::harness::{
    Ended, Running, capture, directory, network, path, run, send, send_each, start, start_piped,
};

/// The program under test, for a shell.
fn weir_path() -> &'static str {
    env!("CARGO_BIN_EXE_weir")
}

/// Frames of the lab are UDP to port 9.
const FILTERS: [&str; 4] = ["lab: udp port 9", "tcp", "long: greater 61", "all:"];

fn stat(network: &Network, args: &[&str]) -> Running {
    start(network, &[&["stat", "-i", "rx0"], args].concat())
}

pub(crate) fn json_lines(ended: &Ended) -> Vec<Value> {
    let text = String::from_utf8_lossy(&ended.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub(crate) fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no number `{field}`: {value}"))
}

#[root_test]
fn root_intervals_of_each_filter_add_up_to_the_account() {
    let network = network();
    for source in ["tc", "xdp"] {
        let args = [&["--json", "--every", "50ms", "--source", source, "-v"], &FILTERS[..]].concat();
        let running = stat(&network, &args);
        running.wait_for("confined: no capabilities, no new privileges; user ");
        for intervals in 1..=5 {
            send(&network, 1000);
            running.wait_for_lines(intervals);
        }
        let ended = running.interrupt().succeeded();
        let lines = json_lines(&ended);
        let (account, intervals) = lines.split_last().expect("lines");
        assert!(intervals.len() >= 5 && intervals.iter().all(|line| line["type"] == "interval"));
        let ours = ["type", "source", "interface", "stopped_by"].map(|field| account[field].as_str());
        assert_eq!(ours, [Some("statistics"), Some(source), Some("rx0"), Some("signal")], "{account}");
        assert_eq!(number(&account["total"], "packets"), 5000);
        let expected =
            [("lab", "udp port 9", 5000), ("tcp", "tcp", 0), ("long", "greater 61", 0), ("all", "", 5000)];
        for (place, (name, filter, packets)) in expected.into_iter().enumerate() {
            let counted = &account["filters"][place];
            assert_eq!((&counted["name"], &counted["filter"]), (&name.into(), &filter.into()));
            assert_eq!((number(counted, "packets"), number(counted, "bytes")), (packets, packets * 60));
            assert_eq!(number(&counted["received"], "packets"), packets);
            assert_eq!(number(&counted["sent"], "packets"), 0);
            let grown = |field: &str| -> u64 {
                intervals.iter().map(|line| number(&line["filters"][place], field)).sum()
            };
            assert_eq!((grown("packets"), grown("bytes")), (packets, packets * 60), "{name}");
        }
        assert!(ended.stderr.contains(&format!("; source {source}: as requested")), "{}", ended.stderr);
    }
}

#[root_test]
fn root_comma_separated_values_add_up_too() {
    let network = network();
    let running = stat(&network, &["--csv", "--every", "50ms", "lab: udp", "a, \"b\": tcp or udp"]);
    send(&network, 700);
    // The head, and two intervals of two filters and all packets.
    running.wait_for_lines(7);
    let ended = running.interrupt().succeeded();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mut lines = text.lines();
    let head = lines.next().expect("a line");
    assert_eq!(
        head,
        "elapsed_seconds,seconds,filter,received_packets,received_bytes,sent_packets,sent_bytes"
    );
    let mut sums = std::collections::BTreeMap::new();
    for line in lines {
        // Names may have commas, numbers do not.
        let cells: Vec<&str> = line.rsplitn(5, ',').collect();
        let name = cells[4].splitn(3, ',').nth(2).expect("a name").to_owned();
        let (packets, bytes) = sums.entry(name).or_insert((0, 0));
        *packets += cells[3].parse::<u64>().expect("packets");
        *bytes += cells[2].parse::<u64>().expect("bytes");
        assert_eq!(cells[..2], ["0", "0"], "{line}");
    }
    let names = ["\"a, \"\"b\"\"\"", "(all)", "lab"];
    assert_eq!(sums, names.map(|name| (name.to_owned(), (700, 700 * 60))).into());
}

#[root_test]
fn root_a_table_for_people() {
    let network = network();
    let running = stat(&network, &["--every", "50ms", "lab: udp", "tcp"]);
    send(&network, 1234);
    running.wait_for_lines(7);
    let ended = running.interrupt().succeeded();
    let text = String::from_utf8_lossy(&ended.stdout);
    let head = text.lines().next().expect("a line");
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        ["elapsed", "filter", "packets/s", "bit/s", "packets", "bytes"]
    );
    assert!(!text.contains('\x1b'), "into a pipe: {text}");
    assert!(text.contains("1,234    72.3 KiB"), "{text}");
    for line in ["lab        1,234  72.3 KiB     0    0 B", "tcp            0       0 B     0    0 B"] {
        ended.says(line);
    }
}

#[root_test]
fn root_a_terminal_has_one_table_that_is_redrawn() {
    let network = network();
    let command = format!("stty rows 24 cols 80; {} stat -i rx0 --every 20ms -c 3 udp tcp", weir_path());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm");
    let ended = Running::spawn(&network, &mut script).wait().succeeded();
    let text = String::from_utf8_lossy(&ended.stdout);
    // Up over the head, two filters and all packets, before each table but the first.
    assert_eq!(text.matches("\x1b[4A").count(), 2, "{text}");
    assert_eq!(text.matches("packets/s").count(), 3, "{text}");
    let (_, account) = text.rsplit_once("\x1b[J").expect("the end of the table");
    assert!(account.contains("received") && account.contains("(all)"), "{text}");
}

#[root_test]
fn root_it_ends_after_so_many_intervals_or_a_time() {
    let network = network();
    let args = ["stat", "-i", "rx0", "--every", "20ms", "--json", "udp"];
    let ended = run(&network, &[&args[..], &["-c", "3"]].concat()).succeeded();
    let lines = json_lines(&ended);
    assert_eq!((lines.len(), &lines[3]["stopped_by"]), (4, &"count".into()));
    let ended = run(&network, &[&args[..], &["--duration", "70ms", "-q"]].concat()).succeeded();
    assert_eq!(json_lines(&ended).last().expect("the account")["stopped_by"], "duration");
    assert_eq!(ended.stderr, "");

    let (running, stdout) = start_piped(&network, &["stat", "-i", "rx0", "--every", "20ms", "udp"]);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    running.wait().succeeded();
}

#[root_test]
fn root_filters_are_read_from_a_file() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "filters");
    std::fs::write(&file, "# of the lab\nlab: udp port 9\n\ntcp\n").expect("a file");
    let running = stat(&network, &["--json", "all:", "-F", &file]);
    send(&network, 20);
    let ended = running.interrupt().succeeded();
    let account = json_lines(&ended).pop().expect("the account");
    let filters = account["filters"].as_array().expect("filters");
    let found: Vec<_> = filters.iter().map(|one| (&one["name"], number(one, "packets"))).collect();
    assert_eq!(found, [(&"all".into(), 20), (&"lab".into(), 20), (&"tcp".into(), 0)]);

    std::fs::write(&file, "udp\n: tcp\n").expect("a file");
    let refused = run(&network, &["stat", "-i", "rx0", "-F", &file]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&format!("cannot read filters from {file}: line 2: ")),
        "{}",
        refused.stderr
    );
    let refused = run(&network, &["stat", "-i", "rx0", "-F", "/nowhere"]);
    assert!(refused.status.code() == Some(2) && refused.stderr.contains("/nowhere"), "{}", refused.stderr);
}

/// Sends so many packets from each port of the list, to port 53 of the pair's receiving end.
pub(crate) fn send_from(pair: &Pair, ports: &[(u16, usize)]) {
    let from = |&(port, packets): &(u16, usize)| {
        let mut frame =
            Traffic::new(60).expect("a size").between(pair).to([10, 77, 0, 2].into(), 53).frame(0);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        vec![frame; packets]
    };
    send_each(pair, &ports.iter().flat_map(from).collect::<Vec<_>>());
}

#[root_test]
fn root_the_busiest_keys_and_the_rest_add_up() {
    let network = network();
    let ports = [(4001, 10), (4002, 40), (4003, 20), (4004, 30), (4005, 5)];
    let args =
        ["--by", "sport,proto", "--top", "2", "--keys", "4", "--every", "20ms", "dns: udp dst port 53"];
    for source in ["tc", "xdp"] {
        let running = stat(&network, &[&args[..], &["--json", "--source", source]].concat());
        send_from(network.pair(), &ports);
        running.wait_for_lines(3);
        let ended = running.interrupt().succeeded();
        let lines = json_lines(&ended);
        let (account, intervals) = lines.split_last().expect("lines");
        let keys = account["keys"].as_array().expect("keys");
        let found: Vec<_> = keys.iter().map(|one| (&one["key"], number(one, "packets"))).collect();
        let (second, fourth) = (json!({"sport": 4002, "proto": 17}), json!({"sport": 4004, "proto": 17}));
        assert_eq!(found, [(&second, 40), (&fourth, 30)]);
        assert_eq!(number(&account["rest"], "packets"), 30, "{account}");
        assert_eq!(number(&account["others"], "packets"), 5, "{account}");
        assert_eq!(number(&account["filters"][0], "packets"), 105, "{account}");
        let grown: u64 = intervals
            .iter()
            .flat_map(|line| {
                line["keys"].as_array().expect("keys").iter().chain([&line["rest"], &line["others"]])
            })
            .map(|one| number(one, "packets"))
            .sum();
        assert_eq!(grown, 105);
        assert_eq!(number(&keys[0]["received"], "bytes"), 40 * 60);
    }

    let running = stat(&network, &args);
    send_from(network.pair(), &ports);
    running.wait_for_lines(7);
    let ended = running.interrupt().succeeded();
    assert!(ended.stderr.contains(", 1 filter, by sport, proto; source tc"), "{}", ended.stderr);
    for line in [
        "sport  proto  received     bytes  sent  bytes",
        "4002   udp          40  2.34 KiB     0    0 B",
        "(rest)              30  1.76 KiB     0    0 B",
        "(others)             5     300 B     0    0 B",
    ] {
        ended.says(line);
    }

    let running = stat(&network, &[&args[..], &["--csv"]].concat());
    send_from(network.pair(), &ports);
    running.wait_for_lines(7);
    let ended = running.interrupt().succeeded();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let head = "elapsed_seconds,seconds,filter,sport,proto,received_packets,";
    assert!(text.starts_with(head), "{text}");
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let keyed = rows.filter(|cells| ["(key)", "(rest)", "(others)"].contains(&cells[2]));
    assert_eq!(keyed.map(|cells| cells[5].parse::<u64>().expect("packets")).sum::<u64>(), 105);
}

#[root_test]
fn root_a_file_of_the_same_packets_has_the_same_counts() {
    let (network, directory) = (network(), directory());
    let file = path(&directory, "kept.pcapng");
    let frames = weir_judge::packets::fixed(1, 400).into_iter().map(|one| one.data);
    let frames: Vec<_> = frames.filter(|data| (60..1500).contains(&data.len())).collect();
    let args =
        ["--by", "src,sport,dst,dport,port,proto,vlan", "--top", "50", "--keys", "200", "--sizes", "--json"];
    let saving = capture(&network, &["--source", "tc", "-w", &file]);
    let running = stat(&network, &[&args[..], &["--source", "tc", "not arp"]].concat());
    let top = ["--ports", "--json", "--top", "50", "--keys", "200", "not", "arp"];
    let talking = start(&network, &[&["top", "-i", "rx0"], &top[..]].concat());
    send_each(network.pair(), &frames);
    let live = json_lines(&running.interrupt().succeeded()).pop().expect("the account");
    let talked = json_lines(&talking.interrupt().succeeded());
    saving.interrupt().succeeded();
    let ended = run(&network, &[&["stat", "-r", &file], &args[..], &["not arp"]].concat()).succeeded();
    let lines = json_lines(&ended);
    let (interval, kept) = (&lines[0], &lines[1]);
    for field in ["total", "filters", "keys", "rest", "others", "sizes"] {
        assert_eq!(live[field], kept[field], "{field}");
    }
    assert_eq!(number(&live["total"], "packets"), frames.len() as u64);
    let keyed = kept["keys"].as_array().expect("keys").iter().chain([&kept["rest"], &kept["others"]]);
    let keyed: u64 = keyed.map(|one| number(one, "packets")).sum();
    assert_eq!(keyed, number(&kept["filters"][0], "packets"));
    assert!(keyed > 100 && number(&kept["rest"], "packets") > 0, "{kept}");
    let shown = ["interface", "source", "detail"].map(|field| kept[field].as_str());
    assert_eq!(shown, [Some("rx0"), Some("file"), Some(&*file)]);
    assert_eq!(interval["total"]["packets"], kept["total"]["packets"], "the file is one interval");

    let ended = run(&network, &[&["top", "-r", &file], &top[..]].concat()).succeeded();
    let talks = json_lines(&ended);
    assert_eq!((talked.len(), talks.len()), (1, 1), "one object at the end");
    let counted = |object: &Value| -> Vec<_> {
        let talks = object["conversations"].as_array().expect("conversations").iter();
        let all = talks.chain([&object["rest"], &object["others"], &object["filter"], &object["total"]]);
        let fields = ["a", "b", "proto", "a_to_b", "b_to_a", "packets", "bytes"];
        all.map(|one| fields.map(|field| one[field].clone())).collect()
    };
    assert_eq!(counted(&talked[0]), counted(&talks[0]));
    let rows = talks[0]["conversations"].as_array().expect("conversations").iter();
    let rows: u64 = rows.chain([&talks[0]["rest"]]).map(|one| number(one, "packets")).sum();
    assert_eq!(rows, number(&talks[0]["filter"], "packets"));
}

#[root_test]
fn root_sizes_and_gaps_add_up() {
    let network = network();
    let args = ["--sizes", "--gaps", "--by", "dport", "--every", "20ms", "lab: udp port 9"];
    let running = stat(&network, &[&args[..], &["--json"]].concat());
    send(&network, 300);
    running.wait_for_lines(3);
    let ended = running.interrupt().succeeded();
    let lines = json_lines(&ended);
    let (account, intervals) = lines.split_last().expect("lines");
    let sum = |line: &Value, of: &str| -> u64 {
        let buckets = line[of].as_array().into_iter().flatten();
        buckets.map(|bucket| number(bucket, "packets")).sum()
    };
    let at_64 = &account["sizes"][1];
    assert_eq!((number(at_64, "from"), number(at_64, "to"), number(at_64, "packets")), (64, 64, 300));
    assert_eq!((&account["sizes"][10]["to"], sum(account, "sizes")), (&Value::Null, 300));
    let first = number(&account["first"], "packets");
    assert!(first > 0 && sum(account, "gaps") + first == 300, "{account}");
    let grown: u64 = intervals.iter().map(|line| sum(line, "gaps") + number(&line["first"], "packets")).sum();
    assert_eq!(grown, 300);
    assert_eq!(intervals.iter().map(|line| sum(line, "sizes")).sum::<u64>(), 300);

    let running = stat(&network, &args);
    send(&network, 300);
    running.wait_for_lines(20);
    let ended = running.interrupt().succeeded();
    let row =
        |name: &str| ended.stderr.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
    assert!(row("(64 bytes)").contains(" 300 "), "{}", ended.stderr);
    assert!(row("(9217 or more bytes)").contains(" 0 "), "{}", ended.stderr);
    assert!(row("(gap ").contains(" ns)") && row("(first)").contains("60 B"), "{}", ended.stderr);
}

#[root_test]
fn root_the_end_of_the_interface_is_told_with_the_account() {
    let network = network();
    let running = stat(&network, &["--json", "lab: udp"]);
    send(&network, 10);
    let deleted = network.rx().run(|| Command::new("ip").args(["link", "del", "rx0"]).status());
    assert!(deleted.expect("ip runs").success());
    let ended = running.wait().failed(&["interface `rx0` is gone"]);
    let lines = json_lines(&ended);
    let account = lines.last().expect("the account");
    assert_eq!(number(&account["filters"][0], "packets"), 10);
    assert_eq!(
        (&account["stopped_by"], &account["error"]),
        (&"error".into(), &"interface `rx0` is gone".into())
    );
}

#[root_test]
fn root_what_cannot_be_counted_is_told() {
    let network = network();
    let many: Vec<String> = (0..129).map(|port| format!("udp port {port}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let elsewhere = format!("/proc/{}/ns/net", std::process::id());
    let table: [(&[&str], &str); 12] = [
        (&["dns: udp prot 53"], "  udp prot 53\n      ^^^^\ndid you mean `port`?"),
        (&["a: udp", "a: tcp"], "cannot count two filters called `a`: try a name for each (FILTER)"),
        (&many, "cannot count 129 filters: a program has room for 128; try "),
        (&[": udp"], "the name is missing; write NAME: EXPRESSION"),
        (&["--by", "src,host"], "cannot count by `host`: it is no field of packets; try one of src, "),
        (&["--by", "src", "udp", "tcp"], "cannot count by key, size or gap what 2 filters accept: "),
        (
            &["--by", "src", "--keys", "0"],
            "cannot count 0 keys: their memory is allocated at the start; try ",
        ),
        (&["--top", "3"], "--by <FIELD,...>"),
        (&["-i", "rx0,rx0", "udp"], "interface `rx0` is named twice"),
        (&["-i", "rx0@0", "--source", "tc", "udp"], "try the xdp source (-i, --source tc)"),
        (&["--source", "tc", "--mode", "exclusive"], "cannot keep packets from the host with the tc source"),
        (&["-i", "lo", "--netns", &elsewhere, "--mode", "exclusive"], "its traffic for 127.0.0.1"),
    ];
    for (args, said) in table {
        let interface: &[&str] = if args.contains(&"-i") { &[] } else { &["-i", "rx0"] };
        let ended = run(&network, &[&["stat"], interface, args].concat());
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
}
