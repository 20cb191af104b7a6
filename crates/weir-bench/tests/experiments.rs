//! `weir-bench run`, in its shortest form: whether experiments measure and add up, not how fast anything is.
#![forbid(unsafe_code)]

mod results;

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_lab::{NetNs, root_test};
use weir_sys::link::Links;
use weir_sys::veth;

use results::{Row, experiment_by, missing, told, values};

/// How long a benchmark may take to begin, or its programs to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of a short `weir-bench run`, its words and its page.
fn experiment(name: &str) -> (Value, String, String) {
    let (results, told, page) = experiment_by(&["run", name], Command::output);
    (results["outcomes"][0].clone(), told, page)
}

/// Whether what was sent is what was received and what was lost, by this measure; how often that was measured.
fn adds_up(outcome: &Value, lost: &str) -> usize {
    let [sent, received, lost] = ["sent", "received", lost].map(|measure| values(outcome, measure));
    for ((sent, received), lost) in sent.iter().zip(&received).zip(&lost) {
        assert!(sent.2 > 0.0 && sent.2 == received.2 + lost.2, "{sent:?} {received:?} {lost:?}");
    }
    assert_eq!((received.len(), lost.len()), (sent.len(), sent.len()), "{outcome}");
    sent.len()
}

/// Processes that have this variable in their environment.
fn processes_with(variable: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let environments = processes.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.filter(|all| all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())).count()
}

#[root_test]
fn root_experiments_end_in_a_report() {
    let (results, told, page) = experiment_by(&["run", "stat"], Command::output);
    let outcome = &results["outcomes"][0];
    assert_eq!(adds_up(outcome, "lost"), 11, "{told}");
    assert_eq!(outcome["about"]["series"].as_array().map(Vec::len), Some(11));
    assert!(outcome["faults"].as_array().is_some_and(Vec::is_empty), "{told}");
    assert!(told.contains("weir, xdp, 1 filter / libpcap, 1 filter"), "{told}");
    assert_eq!(page.matches("<svg").count(), 1, "a figure for the one size");
    assert!(page.contains("Made with --quick") && !page.contains("<script"), "{page}");
    let machine = &results["machine"];
    assert!(
        machine["peers"]["tcpdump"].as_str().is_some_and(|version| version.starts_with('4')),
        "{machine}"
    );
    let private = &machine["interfaces"][0];
    assert_eq!((private["driver"].as_str(), private["rx_queues"].as_u64()), (Some("veth"), Some(2)));
    assert!(page.contains("<summary>The machine</summary>") && page.contains("<td>peers tcpdump</td>"));
}

#[root_test]
fn root_captures_with_chunks_of_all_sizes_add_up() {
    let (outcome, told, _) = experiment("chunks");
    assert_eq!(adds_up(&outcome, "lost"), 6, "{told}");
    assert!(values(&outcome, "received").iter().all(|(.., packets)| *packets > 0.0), "{told}");
}

#[root_test]
fn root_bursts_lose_what_arithmetic_says() {
    let (outcome, told, page) = experiment("bursts");
    let lost = values(&outcome, "lost");
    assert_eq!(adds_up(&outcome, "dropped"), 3 * 6, "{told}");
    // 25,600 cells, to the packet.
    for series in ["weir-64-400", "weir-128-200", "weir-256-100", "law"] {
        let of = |(name, at, _): &&Row<'_>| *name == series && *at == Some(100_000.0);
        let [(_, _, lost), ..] = lost.iter().filter(of).collect::<Vec<_>>()[..] else { panic!("{told}") };
        assert!((lost - 74.4).abs() < 1e-9, "{series}: {lost}");
    }
    assert_eq!(page.matches("<svg").count(), 1, "lines along the bursts");
}

/// What came is what was done and what was lost. A handler is never faster than its pace, so basic mode loses no less than
/// arithmetic and the simulation say, which agree; and others help in advanced mode only. Gives the outcome.
fn balanced(name: &str, series: usize) -> Value {
    let (outcome, told, page) = experiment(name);
    let [sent, received, lost, helped, alone] =
        ["sent", "received", "lost", "helped", "alone"].map(|measure| values(&outcome, measure));
    assert_eq!(adds_up(&outcome, "dropped"), series, "{told}");
    assert!(received.iter().all(|(.., packets)| *packets > 0.0), "{told}");
    let of = |values: &[Row<'_>], name: &str| {
        values.iter().find(|(series, ..)| *series == name).expect("a value").2
    };
    let [measured, law, simulated] =
        ["basic-100", "law-100", "simulated-basic-100"].map(|name| of(&lost, name));
    // As far as the experiment's own target allows: handlers catch up while others have the generator's processor.
    assert!(measured > law - 5.0 && (law - simulated).abs() < 1.0, "{told}");
    for (series, _, helped) in &helped {
        let is_advanced = series.starts_with("advanced-100") || series.starts_with("t-");
        // Where the generator was too slow, in this very run, to fill a pool by more than what is allowed above, nobody has to help.
        assert!(!is_advanced || *helped > 0.0 || of(&alone, series) < 5.0, "{series}: {told}");
        assert!(*helped == 0.0 || is_advanced || series.starts_with("advanced"), "{series}: {told}");
    }
    let pools = sent.iter().filter(|(series, ..)| !series.ends_with("ring")).count();
    let simulated = lost.iter().filter(|(series, ..)| series.starts_with("simulated-")).count();
    assert_eq!(simulated, pools, "{told}");
    assert!(page.contains("<svg"), "{page}");
    outcome.clone()
}

#[root_test]
fn root_handlers_of_a_group_share_what_is_too_much_for_one() {
    let outcome = balanced("imbalance", 6);
    let versus = outcome["about"]["versus"].as_array().expect("a list");
    assert_eq!(versus.len(), 2, "both kinds of rings: {outcome}");
}

#[root_test]
fn root_thresholds_are_compared() {
    balanced("threshold", 5);
}

#[root_test]
fn root_what_handlers_forward_is_counted_at_the_far_end() {
    let outcome = balanced("forwarding", 5);
    let [sent, received, forwarded, lost] =
        ["sent", "received", "forwarded", "lost"].map(|measure| values(&outcome, measure));
    assert_eq!(forwarded.len(), 5, "{outcome}");
    for ((sent, received), forwarded) in sent.iter().zip(&received).zip(&forwarded) {
        assert!(forwarded.2 > 0.0 && forwarded.2 <= received.2, "{received:?} {forwarded:?}");
        let lost = lost.iter().find(|(series, ..)| *series == sent.0).expect("a value").2;
        assert!((lost - 100.0 * (1.0 - forwarded.2 / sent.2)).abs() < 1e-9, "{sent:?} {forwarded:?}");
    }
}

/// Frames of both ways have arrived or are counted where they were lost; every series has a rate, and memory allows more.
fn scales(name: &str, size: u32) {
    let (outcome, told, page) = experiment(name);
    let [rate, lost, sent, received, dropped, no_room, bandwidth] =
        ["rate", "lost", "sent", "received", "dropped", "no-room", "bandwidth"]
            .map(|measure| values(&outcome, measure));
    let contestants =
        ["kernel", "redirect", "handler", "nic-ring", "basic-100", "advanced-100", "advanced-500", "ring"];
    assert_eq!(sent.iter().map(|(series, ..)| *series).collect::<Vec<_>>(), contestants, "{told}");
    for (number, (series, at, sent)) in sent.iter().enumerate() {
        let [received, dropped, no_room] = [&received, &dropped, &no_room].map(|values| values[number].2);
        assert!(received > 0.0 && *sent == received + dropped + no_room, "{series}: {told}");
        let share = lost.iter().find(|value| (value.0, value.1) == (series, *at)).expect("a share").2;
        assert!((share - 100.0 * (1.0 - received / sent)).abs() < 1e-9, "{series}: {told}");
    }
    let series = outcome["about"]["series"].as_array().expect("a list");
    for name in series.iter().map(|series| series["name"].as_str().expect("a name")) {
        assert!(rate.iter().any(|(series, ..)| *series == name), "{name}: {told}");
    }
    let lines = f64::from(size.next_multiple_of(64));
    for (memory, times) in [("memory", 1.0), ("memory-copied", 3.0), ("memory-one", 1.0)] {
        let of = |values: &[Row<'_>]| values.iter().find(|value| value.0 == memory).map(|v| v.2);
        let (rate, bandwidth) = of(&rate).zip(of(&bandwidth)).expect("both");
        assert!((rate - bandwidth * 1e3 / (2.0 * lines * times)).abs() < 1e-6, "{memory}: {told}");
    }
    // Simulated machines have other places than this one, and nobody is compared with them.
    let is_simulated = |name: &str| name.starts_with("simulated-");
    let measured: Vec<_> = rate.iter().filter(|value| !is_simulated(value.0)).map(|value| value.1).collect();
    assert!(
        rate.iter().filter(|value| is_simulated(value.0)).all(|value| !measured.contains(&value.1)),
        "{told}"
    );
    assert!(!outcome["about"]["versus"].to_string().contains("simulated"), "{outcome}");
    assert_eq!(page.matches("<svg").count(), 1, "lines along the queues");
}

#[root_test]
fn root_forwarding_both_ways_is_counted_by_stage() {
    scales("scaling", 60);
}

#[root_test]
fn root_longer_frames_are_forwarded_both_ways() {
    scales("scaling-96", 96);
}

#[test]
fn simulated_machines_lose_what_arithmetic_says() {
    let (outcome, told, page) = experiment("simulate");
    let [packets, done, lost] = ["packets", "done", "lost"].map(|measure| values(&outcome, measure));
    assert_eq!((packets.len(), lost.len()), (3 * 5, 3 * 6), "{told}");
    let of = |name: &str, load: f64| {
        let of = |value: &&Row<'_>| value.0 == name && value.1 == Some(load);
        lost.iter().find(of).expect("a value").2
    };
    for ((series, load, packets), (.., done)) in packets.iter().zip(&done) {
        let lost = packets * of(series, load.expect("a load")) / 100.0;
        assert!((packets - done - lost).abs() < 1.0, "{series}: {told}");
    }
    assert!(of("one", 110.0) > 1.0 && (of("one", 110.0) - of("law", 110.0)).abs() < 0.5, "{told}");
    assert!(of("advanced", 50.0) == 0.0 && of("basic", 50.0) > 10.0, "{told}");
    assert!(told.contains("simulation: 64 queues") && page.contains("Simulation: many queues"), "{told}");
}

#[test]
fn a_machine_is_simulated_from_the_command_line() {
    let simulate = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weir-bench")).arg("simulate").args(words).output();
        let output = output.expect("run weir-bench");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    // One queue gets 1 Mpps for 0.1 s, of which its handler does half and the pool holds 2560 packets.
    let one = ["--queues", "1", "--rate", "1Mpps", "--service", "2us", "--chunks", "10", "--time", "100ms"];
    let (status, told) = simulate(&one);
    let all: Vec<_> = told.lines().filter(|line| line.contains("1.00 Mpps")).collect();
    let lost = |line: &str| line.split_whitespace().nth(3).and_then(|word| word.parse::<f64>().ok());
    assert!((status, all.len()) == (Some(0), 2) && lost(all[0]) == lost(all[1]), "{told}");
    assert!(lost(all[0]).is_some_and(|lost| (lost - 47.4).abs() < 0.6), "{told}");
    let (status, told) =
        simulate(&["--queues", "1024", "--chunks", "10000", "--rate", "1Gpps", "--time", "1h"]);
    assert!(status == Some(1) && told.contains("try a shorter --time"), "{told}");
    for nonsense in [["--rate", "fast"], ["--skew", "-1"], ["--threshold", "0"], ["--chunks", "1"]] {
        assert_eq!(simulate(&nonsense).0, Some(2), "{nonsense:?}");
    }
}

#[root_test]
fn root_counters_of_packets_miss_none() {
    let (outcome, told, page) = experiment("counters");
    assert_eq!(outcome["about"]["series"].as_array().map(Vec::len), Some(20));
    let [rate, sent, received, stack] =
        ["rate", "sent", "received", "stack"].map(|measure| values(&outcome, measure));
    // With threads of NAPI there is one, unless the kernel has none.
    let threaded =
        rate.iter().filter(|(name, at, _)| name.ends_with("-threaded") && *at == Some(2.0)).count();
    let has_none = outcome["about"]["missing"].as_array().is_some_and(|missing| !missing.is_empty());
    assert!((rate.len(), threaded) == (11, 1) || has_none, "{told}");
    assert!(
        adds_up(&outcome, "dropped") == rate.len() && received.iter().all(|(.., packets)| *packets > 0.0)
    );
    for (sent, stack) in sent.iter().zip(&stack) {
        let passed = if sent.0.contains("-2") { 0.0 } else { sent.2 };
        assert!(stack.2 == passed, "{stack:?} of {sent:?}");
    }
    assert_eq!(outcome["about"]["published"].as_array().map(Vec::len), Some(35));
    assert!(page.contains("pfcount, igb with TNAPI, mode 2"), "{page}");
}

/// Runs one of WinPcap's experiments in which contestants take the same frames. All that is sent is received or lost.
fn contest(name: &str, all: &str) -> Value {
    let (outcome, told, page) = experiment(name);
    let rate = values(&outcome, "rate").len();
    let series = outcome["about"]["series"].as_array().expect("a list").iter();
    let series: Vec<_> = series.map(|series| series["name"].as_str().expect("a name")).collect();
    assert_eq!(series.join(" "), all, "{told}");
    let present = series.len() - missing(&outcome);
    assert_eq!((rate, adds_up(&outcome, "lost")), (present, present), "{told}");
    assert_eq!(page.matches("<svg").count(), 1, "a figure for the one size");
    outcome
}

#[root_test]
fn root_delivery_is_measured() {
    contest("winpcap-delivery", "weir-exclusive stack weir-xdp weir-tc weir-af-packet libpcap");
}

#[root_test]
fn root_dumps_are_measured() {
    let all = "stack weir-exclusive-68 weir-68 tcpdump-68 \
               dumpcap-68 weir-exclusive-whole weir-whole tcpdump-whole dumpcap-whole";
    let outcome = contest("winpcap-dump", all);
    assert_eq!(outcome["bars"].as_array().map(Vec::len), Some(2), "{outcome}");
}

#[root_test]
fn root_statistics_are_measured_beside_user_space() {
    let all = "stack stat-tc user-tc stat-xdp user-xdp libpcap stat-exclusive user-exclusive";
    let outcome = contest("winpcap-statistics", all);
    assert_eq!(outcome["bars"].as_array().map(Vec::len), Some(3), "{outcome}");
}

#[root_test]
fn root_each_improvement_is_measured_alone() {
    let all = "limit stamps-none stamps-batch stamps-kernel \
               copies-1 copies-2 copies-3 filter-native filter-interpreted";
    let outcome = contest("winpcap-gains", all);
    let published = outcome["about"]["published"].as_array().expect("a list").iter();
    let published: Vec<_> = published.filter_map(|row| row["value"].as_f64()).collect();
    assert_eq!(published, [8.0, 27.0, 5.0]);
    assert_eq!(outcome["bars"].as_array().map(Vec::len), Some(5), "{outcome}");
}

#[root_test]
fn root_filters_that_accept_nothing_are_measured() {
    let (outcome, told, page) = experiment("winpcap-filter");
    let [rate, sent, received, stack] =
        ["rate", "sent", "received", "stack"].map(|measure| values(&outcome, measure));
    assert_eq!(rate.len(), 2 * (6 - missing(&outcome)), "{told}");
    for ((sent, received), stack) in sent.iter().zip(&received).zip(&stack) {
        assert!(sent.2 > 0.0 && received.2 == 0.0 && stack.2 == sent.2, "{sent:?} {received:?} {stack:?}");
    }
    let filtered = values(&outcome, "filtered");
    for series in ["weir-xdp", "weir-tc"] {
        for place in [3.0, 13.0] {
            let of = |values: &[Row<'_>]| {
                let of = |(name, at, _): &&Row<'_>| *name == series && *at == Some(place);
                values.iter().find(of).map(|(.., value)| *value)
            };
            assert!(of(&filtered).is_some() && of(&filtered) == of(&sent), "{series}: {told}");
        }
    }
    assert_eq!(page.matches("<svg").count(), 2, "a figure for each filter");
}

#[root_test]
fn root_sending_by_size_is_measured() {
    let (outcome, told, page) = experiment("winpcap-send");
    let [rate, sent, arrived] = ["rate", "sent", "arrived"].map(|measure| values(&outcome, measure));
    assert_eq!(rate.len(), 2 * (8 - missing(&outcome)), "{told}");
    assert!(rate.iter().all(|(.., rate)| *rate > 0.0) && sent == arrived, "{told}");
    assert_eq!(page.matches("<svg").count(), 2, "a figure for each size");
}

#[root_test]
fn root_a_signal_leaves_neither_files_nor_programs() {
    let (place, results) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(["run", "capture", "--dir"]).arg(place.path()).env("TMPDIR", place.path());
    bench.arg("--json").arg(results.path().join("r.json")).arg("--html").arg(results.path().join("r.html"));
    bench.stdout(Stdio::null()).stderr(Stdio::null());
    let mut bench = bench.spawn().expect("run weir-bench");
    let variable = format!("TMPDIR={}", place.path().display());
    let files = || fs::read_dir(place.path()).expect("a folder").count();
    let wait_until = |what: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !what() {
            assert!(start.elapsed() < PATIENCE, "{} processes, {} files", processes_with(&variable), files());
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait_until(&|| processes_with(&variable) > 1 && files() > 0);
    kill_process(Pid::from_child(&bench), Signal::TERM).expect("a signal is sent");
    let status = bench.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(files(), 0);
    // Helpers of a capture end just after it.
    wait_until(&|| processes_with(&variable) == 0);
}

#[root_test]
fn root_the_highest_rate_without_loss_is_found() {
    let (outcome, told, _) = experiment("ndr");
    let [rates, offered] = ["rate", "offered"].map(|measure| values(&outcome, measure));
    assert_eq!(rates.len() + missing(&outcome), 13, "{told}");
    for (rate, offered) in rates.iter().zip(&offered) {
        assert!(rate.2 >= 0.0 && offered.2 > 0.0 && rate.2 <= offered.2 * 1.05, "{rate:?} {offered:?}");
    }
    // Whatever the machine does meanwhile, somebody keeps up with some rate.
    assert!(rates.iter().any(|(.., rate)| *rate > 0.0), "{told}");
}

#[root_test]
fn root_a_host_that_works_reads_what_is_captured() {
    // That the application and its socket have got every packet is checked in each turn.
    let (outcome, told, page) = experiment("ndr-host");
    let [rates, offered, served] = ["rate", "offered", "served"].map(|measure| values(&outcome, measure));
    assert_eq!(
        (rates.len(), offered.len()),
        (2 * (5 - missing(&outcome)), 2 * (5 - missing(&outcome))),
        "{told}"
    );
    assert!(rates.iter().any(|(.., rate)| *rate > 0.0), "{told}");
    for (series, _, share) in &served {
        assert!(series.ends_with("-beside") && (0.0..=100.0).contains(share), "{series} {share}: {told}");
    }
    let kept_up = |(series, _, rate): &&Row<'_>| series.ends_with("-beside") && *rate > 0.0;
    assert_eq!(served.len(), rates.iter().filter(kept_up).count(), "{told}");
    assert_eq!(page.matches("<svg").count(), 1, "a figure for the one size");
}

#[root_test]
fn root_bursts_that_64_mib_hold_are_found() {
    let (outcome, told, page) = experiment("ndr-burst");
    let [burst, bytes, lost_of] = ["burst", "bytes", "lost-of"].map(|measure| values(&outcome, measure));
    let present = 6 - missing(&outcome);
    assert_eq!((burst.len(), adds_up(&outcome, "dropped")), (present, present), "{told}");
    for ((burst, bytes), lost_of) in burst.iter().zip(&bytes).zip(&lost_of) {
        let expected = burst.2 * 1514.0 / f64::from(1 << 20);
        // Both are means: they are rounded in another order. Nothing at all is an answer, too: of two bursts a ring that is
        // emptied meanwhile may lose a packet each.
        assert!((bytes.2 - expected).abs() <= expected * 1e-12, "{burst:?} {bytes:?}");
        assert!(burst.2 < lost_of.2, "{burst:?} {lost_of:?}");
        // A pool keeps what comes first: records of 1552 bytes fill it but for the ends of chunks.
        let is_pool = ["weir-xdp", "weir-tc"].contains(&burst.0);
        assert!(!is_pool || (60.0..64.0).contains(&bytes.2), "{bytes:?}: {told}");
    }
    assert_eq!(page.matches("<svg").count(), 1, "a figure for the one size");
}

/// Runs a program in a namespace, and gives what it says.
fn run_in(home: &NetNs, command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    home.spawn(command).and_then(Child::wait_with_output)
}

/// All settings of two interfaces, in the words of `ip` and `ethtool`.
fn settings(home: &NetNs, cards: [&str; 2]) -> String {
    let of = |card: &str| {
        let say = |program: &str, words: &[&str]| {
            let output = run_in(home, Command::new(program).args(words)).expect("run a program");
            assert!(output.status.success(), "{program} {words:?}: {output:?}");
            String::from_utf8(output.stdout).expect("text")
        };
        let ipv6 = format!("/proc/sys/net/ipv6/conf/{card}/disable_ipv6");
        let ipv6 = home.run(|| fs::read_to_string(ipv6)).unwrap_or_default();
        say("ip", &["-details", "link", "show", card])
            + &say("ethtool", &["-k", card])
            + &say("ethtool", &["-l", card])
            + &ipv6
    };
    cards.map(of).concat()
}

#[root_test]
fn root_cards_are_measured_and_come_back_as_they_were() {
    let cards @ [tx, rx] = ["enp1s0f0", "enp1s0f1"];
    let home = NetNs::new().expect("a namespace");
    home.run(|| veth::create(tx, rx)).expect("a pair");
    let set = |program: &str, words: &[&str]| {
        let output = run_in(&home, Command::new(program).args(words)).expect("run a program");
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
    };
    for card in cards {
        set("ethtool", &["-K", card, "gro", "on", "tso", "off"]);
        set("ip", &["link", "set", card, "mtu", "1600", "promisc", "on"]);
    }
    home.run(|| fs::write(format!("/proc/sys/net/ipv6/conf/{tx}/disable_ipv6"), "1")).expect("a setting");
    let before = settings(&home, cards);
    assert!(before.contains("mtu 1600") && before.contains("promiscuity 1"), "{before}");

    let words = ["run", "winpcap-delivery", "--rx", rx, "--tx", tx];
    let (results, told, page) = experiment_by(&words, |bench| run_in(&home, bench));
    let outcome = &results["outcomes"][0];
    assert_eq!(adds_up(outcome, "lost"), 6 - missing(outcome), "{told}");
    let described = &results["machine"]["interfaces"];
    for (number, card) in cards.iter().enumerate() {
        let card_of = &described[number];
        assert_eq!((card_of["name"].as_str(), card_of["driver"].as_str()), (Some(*card), Some("veth")));
        assert_eq!((card_of["mtu"].as_u64(), &card_of["napi_threads"]), (Some(1600), &Value::Bool(false)));
        let offloads = card_of["offloads"].as_array().expect("a list");
        assert!(offloads.contains(&"rx-gro".into()) && !offloads.contains(&"tx-tcp-segmentation".into()));
    }
    assert!(page.contains("interfaces enp1s0f0 driver"), "{page}");
    assert_eq!(settings(&home, cards), before);
    let links = home.run(Links::open).and_then(|links| links.all()).expect("interfaces");
    assert!(links.iter().all(|link| link.xdp_program.is_none()), "{links:?}");
}

#[root_test]
fn root_interfaces_that_cannot_be_measured_are_refused() {
    let home = NetNs::new().expect("a namespace");
    home.run(|| veth::create("up0", "up1")).expect("a pair");
    home.run(|| veth::create_down("down0", "down1")).expect("a pair");
    home.run(|| veth::create("host0", "host1")).expect("a pair");
    let links = home.run(Links::open).expect("a socket");
    let index = links.get("host1").expect("it is there").index;
    links.add_address(index, [10, 9, 8, 7].into(), 24).expect("an address");
    let place = tempfile::tempdir().expect("a folder");
    let run = |name: &str, tx: &str, rx: &str, expected: &str| {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
        bench.args(["run", name, "--quick", "--tx", tx, "--rx", rx]).current_dir(&place);
        let output = run_in(&home, &mut bench).expect("run weir-bench");
        assert!(output.status.code() == Some(1) && told(&output).contains(expected), "{}", told(&output));
        assert_eq!(links.all().expect("interfaces").len(), 7, "nothing was moved");
    };
    for (tx, rx, expected) in [
        ("up0", "up9", "cannot measure on up9: there is no such interface; try weir devices"),
        ("up0", "down1", "cannot measure on down1: it is down; try ip link set down1 up"),
        ("up0", "up0", "cannot measure on up0: it cannot be both --rx and --tx; try two interfaces"),
        ("host0", "host1", "cannot measure on host1: it has IP addresses, which it would lose; try an"),
    ] {
        run("winpcap-delivery", tx, rx, expected);
        assert_eq!(fs::read_dir(&place).expect("a folder").count(), 0, "no results of nothing");
    }
    let expected = "cannot run send on two interfaces: it does not measure them; try without --rx and --tx";
    run("send", "up0", "up1", expected);
}

#[test]
fn runs_are_compared_and_nonsense_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let (old, new) = (dir.path().join("old.json"), dir.path().join("new.json"));
    let run = |rates: [f64; 5]| {
        let value = |(round, rate): (u32, &f64)| serde_json::json!({"series": "a", "measure": "rate", "at": null, "round": round, "value": rate, "turn": "a"});
        let values: Vec<Value> = (1..).zip(&rates).map(value).collect();
        let about = serde_json::json!({
            "name": "x", "title": "X", "method": "", "differs": [], "axis": null, "missing": [], "versus": [], "published": [],
            "measures": [{"name": "rate", "title": "rate", "unit": "Mpps", "better": "higher"}],
            "series": [{"name": "a", "title": "A", "role": "ours"}],
        });
        let outcome = serde_json::json!({
            "about": about, "rounds": 5, "values": values, "bars": [], "faults": [], "seconds": 1.0,
        });
        serde_json::json!({
            "format": "weir-bench 1", "summary": "here", "machine": {}, "quick": false, "outcomes": [outcome],
        })
    };
    fs::write(&old, run([2.0, 2.01, 2.0, 2.02, 2.0]).to_string()).expect("write");
    fs::write(&new, run([1.0, 1.01, 1.0, 1.02, 1.0]).to_string()).expect("write");
    let compare = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weir-bench")).arg("compare").args(words).output();
        let output = output.expect("run weir-bench");
        (output.status.success(), told(&output))
    };
    let [old, new] = [&old, &new].map(|path| path.to_str().expect("a path"));
    let (right, told) = compare(&[old, new]);
    assert!(right && told.contains("x: A") && told.contains("-50.0 %") && told.contains("WORSE"), "{told}");
    let (right, told) = compare(&["--fail", old, new]);
    assert!(!right && told.contains("values that are worse: 1"), "{told}");
    let (right, told) = compare(&["--fail", new, old]);
    assert!(right && told.contains("+100.0 %"), "{told}");
    assert!(!told.contains("machines differ"), "{told}");
    let (right, told) = compare(&[old, old]);
    assert!(right && told.contains("values compared: 1, changed: 0 (worse: 0)"), "{told}");
    let mut elsewhere: Value = serde_json::from_str(&fs::read_to_string(new).expect("read")).expect("JSON");
    elsewhere["machine"] =
        serde_json::json!({"kernel": "6.18", "peers": {"tcpdump": "4.99.3"}, "load": "0.1"});
    fs::write(new, elsewhere.to_string()).expect("write");
    let (right, told) = compare(&[old, new]);
    assert!(right && told.contains("The machines differ") && told.contains("peers tcpdump"), "{told}");
    assert!(told.contains("4.99.3") && !told.contains("load"), "{told}");
    fs::write(new, "{}").expect("write");
    let (right, told) = compare(&[old, new]);
    assert!(!right && told.contains("as results of weir-bench: "), "{told}");
}
