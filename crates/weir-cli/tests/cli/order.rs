//! `--order time`: one order for packets of several queues and interfaces.

use std::io::Read as _;
use std::process::Command;

use weir::reader::Reader;
use weir_lab::{Generator, Network, Rate, SequenceCheck, Traffic, Veth, root_test};

use crate::files::{capinfos, files, plain};
use crate::harness::{arrive, directory, path, root_tests, run, start, start_piped, until};
use rustix::process::Signal;
use tempfile::TempDir;

/// Packets sent on each queue.
const COUNT: u64 = 2500;
/// Longer than any of these machines keeps a packet from us.
const WINDOW: &str = "500ms";

/// Two pairs of two queues each, and the traffic for them.
fn network() -> (Network, Vec<Traffic>) {
    let mut network = Network::new(Veth::default().queues(2)).expect("a private network");
    network.connect(Veth::default().queues(2)).expect("a second pair");
    let traffic = |pair| Traffic::new(60).expect("a size").between(pair);
    let traffic = network.pairs().iter().map(traffic).collect();
    (network, traffic)
}

/// Sends on all queues at the same time; all of it has arrived when this returns.
fn send(network: &Network, traffic: &[Traffic]) {
    let [one, other] = network.pairs() else { panic!("two pairs") };
    arrive(one, || {
        arrive(other, || {
            send_on_all_queues(network, traffic);
            2 * COUNT
        });
        2 * COUNT
    });
}

fn send_on_all_queues(network: &Network, traffic: &[Traffic]) {
    std::thread::scope(|scope| {
        for (pair, traffic) in network.pairs().iter().zip(traffic) {
            for cpu in [0, 1] {
                let first = u64::from(cpu) * COUNT;
                let generator = Generator::numbered_from(first, pair, traffic).expect("a generator");
                let mut generator = generator.cpu(cpu).rate(Rate::PerSecond(20_000)).expect("a rate");
                scope.spawn(move || assert_eq!(generator.send(COUNT).expect("frames").accepted, COUNT));
            }
        }
    });
}

root_tests! { files_are_in_the_order_of_time:
    root_files_are_in_the_order_of_time_xdp("f", &["--source", "xdp"]);
    root_files_are_in_the_order_of_time_tc("f", &["--source", "tc", "-U"]);
    root_files_are_in_the_order_of_time_af_packet("f", &["--source", "af_packet"]);
    root_files_are_in_the_order_of_time_rotated("f", &["--source", "xdp", "-C", "100KB"]);
    root_files_are_in_the_order_of_time_pcap("f", &["--source", "xdp+tc", "--format", "pcap", "--nano"]);
    root_files_are_in_the_order_of_time_compressed(
        "f.zst", &["--source", "xdp", "--mode", "exclusive", "-G", "100ms"]
    );
}

fn files_are_in_the_order_of_time(name: &str, args: &[&str]) {
    let (directory, (network, traffic)) = (directory(), network());
    let order = ["capture", "-i", "rx0", "-i", "rx1", "--json", "--order", "time", "--window", WINDOW];
    let running = start(&network, &[&order, args, &["-w", &path(&directory, name)]].concat());
    send(&network, &traffic);
    let ended = running.interrupt().succeeded();
    let account = ended.account();
    account.closes();
    assert_eq!((account.number("lost"), account.number("written")), (0, 4 * COUNT), "{args:?}");
    let told = &account.0["time_order"];
    assert_eq!((told["late"].as_u64(), told["early"].as_u64()), (Some(0), Some(0)), "{args:?} {told}");
    assert!(ended.stderr.contains("Sorted by time (held back for 500 ms)"), "{}", ended.stderr);

    let mut checks: Vec<_> =
        traffic.iter().map(|traffic| SequenceCheck::new(traffic, 0..2 * COUNT)).collect();
    let files: Vec<_> = files(&directory).iter().map(|file| plain(file)).collect();
    let ordered = capinfos(&files, "-o", "Strict time order");
    assert!(ordered.iter().all(|ordered| ordered == "True"), "{args:?}: {ordered:?}");
    // As they are, one behind the other.
    let all = directory.path().join("all");
    let merged = Command::new("mergecap").args(["-a", "-w"]).arg(&all).args(&files).status();
    assert!(merged.expect("mergecap is installed").success());
    let stamps = tshark(&all);
    for file in files {
        let mut reader = Reader::open(&file).expect("a capture file");
        while let Some(packet) = reader.next_packet().expect("a whole file") {
            // Of a pcap file nothing else tells.
            let place = network.pairs().iter().position(|pair| packet.data.starts_with(&pair.rx.mac));
            checks[place.expect("one of ours")].frame(packet.data);
        }
    }
    assert_eq!(stamps.len() as u64, 4 * COUNT, "{args:?}");
    assert!(stamps.is_sorted(), "{args:?}");
    for check in checks {
        let report = check.finish();
        let total = report.total;
        assert_eq!((total.received, total.lost, report.corrupt), (2 * COUNT, 0, 0), "{args:?}");
    }
}

#[root_test]
fn root_a_file_that_is_not_in_order_says_how_to_sort_it() {
    let (directory, (network, traffic)) = (directory(), network());
    let file = path(&directory, "f.pcapng");
    let both = ["capture", "-i", "rx0", "-i", "rx1", "--source", "xdp", "--json", "-w", &file];
    let queue_by_queue = start(&network, &[&both[..], &["-B", "8MiB", "--order", "none"]].concat());
    send(&network, &traffic);
    let ended = queue_by_queue.interrupt().succeeded();
    let (what, command) = to_sort(&ended.stderr).expect("it is told");
    assert!(what.contains("within each of 4 queues"), "{what}");
    sorts(&network, &directory, command);

    // More than half of each pool waits for a process that is late: it has no time to sort.
    for more in [&[][..], &["-C", "50KB"]] {
        std::fs::remove_file(&file).expect("the one before");
        let running = start(&network, &[&both[..], &["-B", "384KiB"], more].concat());
        running.signal(Signal::STOP);
        send(&network, &traffic);
        running.signal(Signal::CONT);
        let all = || files(&directory).iter().map(|file| std::fs::metadata(file).expect("it").len()).sum();
        until("packets in files", || match all() {
            0..100_000 => Err("too few".to_owned()),
            _ => Ok(()),
        });
        let ended = running.interrupt().succeeded();
        let account = ended.account();
        account.closes();
        assert_eq!(account.number("written"), 4 * COUNT, "{}", account.0);
        let unsorted =
            account.0["time_order"]["unsorted"]["packets"].as_u64().expect("some are out of order");
        assert!((1..=account.0["time_order"]["early"].as_u64().expect("a number")).contains(&unsorted));
        let (what, command) = to_sort(&ended.stderr).expect("it is told");
        let told = "packets were written as they came, not sorted by time, from ";
        assert!(what.replace(',', "").contains(&format!("{unsorted} packets were")), "{what}");
        assert!(what.contains(told), "{what}");
        if more.is_empty() {
            let info = String::from_utf8_lossy(&run(&network, &["info", &file]).stdout).into_owned();
            assert!(info.contains("captured unsorted: ") && info.contains(told), "{info}");
            assert!(info.contains(" earlier than the packet before "), "{info}");
        } else {
            assert!(files(&directory).len() > 2 && command.contains("/f*.pcapng "), "{command}");
        }
        sorts(&network, &directory, command);
    }
    files(&directory).iter().for_each(|file| std::fs::remove_file(file).expect("ours"));
    // One queue is in order by itself.
    let one = start(&network, &["capture", "-i", "rx0", "--source", "af_packet", "--json", "-w", &file]);
    crate::harness::send(&network, 10);
    let ended = one.interrupt().succeeded();
    assert_eq!(to_sort(&ended.stderr), None);
    assert!(ended.account().0["time_order"].is_null(), "nothing waits for others");
}

/// Returns what a summary says of a file that is not in order, and the command that sorts it.
fn to_sort(summary: &str) -> Option<(&str, &str)> {
    summary.lines().find_map(|line| line.split_once("; to sort: "))
}

/// Checks that `command` sorts its file.
fn sorts(network: &Network, directory: &TempDir, command: &str) {
    let sorted = path(directory, "sorted.pcapng");
    let command = command.replace("SORTED", &sorted).replacen("weir", "\"$0\"", 1);
    let program = crate::harness::weir(&[]).get_program().to_owned();
    let status = Command::new("sh").args(["-c", &command]).arg(program).status().expect("sh runs");
    assert!(status.success());
    let ordered = capinfos(&[sorted.clone().into()], "-o", "Strict time order");
    assert_eq!(ordered, ["True"]);
    assert_eq!(tshark(sorted.as_ref()).len() as u64, 4 * COUNT);
    let info = run(network, &["info", &sorted]).stdout;
    assert!(!String::from_utf8_lossy(&info).contains("captured unsorted"), "it is sorted now");
    std::fs::remove_file(sorted).expect("it is ours");
}

#[root_test]
fn root_standard_output_is_in_the_order_of_time() {
    let (network, traffic) = network();
    let args = ["capture", "-i", "rx0", "-i", "rx1", "-w", "-"];
    for (order, sorted) in [(&[][..], true), (&["--order", "none"], false)] {
        let (running, mut stdout) = start_piped(&network, &[&args[..], order].concat());
        let reading = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes)
        });
        send(&network, &traffic);
        let ended = running.interrupt().succeeded();
        // On a busy machine some may be late, which is told instead.
        let told =
            ["Sorted by time", "written after newer ones"].iter().any(|part| ended.stderr.contains(part));
        assert_eq!(told, sorted, "{}", ended.stderr);
        let directory = directory();
        let file = directory.path().join("f");
        std::fs::write(&file, reading.join().expect("a thread").expect("a pipe")).expect("room");
        assert_eq!(tshark(&file).len() as u64, 4 * COUNT);
    }
    let (running, stdout) = start_piped(&network, &[&args[..], &["--timestamps", "none"]].concat());
    drop(stdout);
    assert!(!running.interrupt().stderr.contains("Sorted by time"));
}

/// The timestamps that tshark finds: seconds and nanoseconds.
fn tshark(file: &std::path::Path) -> Vec<(u64, u64)> {
    let stamp = |line: String| {
        let (seconds, nanoseconds) = line.split_once('.')?;
        Some((seconds.parse().ok()?, nanoseconds.parse().ok()?))
    };
    let lines = crate::harness::tshark(file, &["frame.time_epoch"]).into_iter();
    lines.map(|line| stamp(line).expect("a time")).collect()
}

#[root_test]
fn root_packets_are_counted_in_the_order_of_time() {
    let (network, traffic) = network();
    let order = ["count", "-i", "rx0", "-i", "rx1", "--source", "xdp", "--order", "time", "--json"];
    let running = start(&network, &[&order[..], &["--load", "1", "--load-filter", "udp"]].concat());
    send(&network, &traffic);
    let account = running.interrupt().succeeded().account();
    account.closes();
    assert_eq!(account.number("delivered"), 4 * COUNT);
    assert_eq!(account.0["load"]["matched"], 4 * COUNT);
    // What the source says of itself, unless asked for something else.
    assert_eq!(account.0["time_order"]["window_seconds"], 0.002);
    let running = start(&network, &[&order[..], &["--timestamps", "batch"]].concat());
    assert_eq!(running.interrupt().succeeded().account().0["time_order"]["window_seconds"], 0.012);
    let refused = run(&network, &[&order[..], &["--timestamps", "none"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("timestamps"), "{}", refused.stderr);
}
