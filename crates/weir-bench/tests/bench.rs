//! Benchmarks by their own commands, in their shortest form: whether they measure and judge, not how fast anything is.
#![forbid(unsafe_code)]

mod results;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_lab::root_test;

use results::{experiment_by, missing, values};

/// The outcome of a short benchmark by its own command.
fn alone(words: &[&str]) -> Value {
    let (results, ..) = experiment_by(words, Command::output);
    results["outcomes"][0].clone()
}

/// Whether all targets are of something that was measured.
fn is_judged(outcome: &Value) -> bool {
    outcome["bars"].as_array().is_some_and(|bars| bars.iter().all(|bar| bar["met"].is_boolean()))
}

#[root_test]
fn root_sending_is_measured() {
    let outcome = alone(&["send"]);
    let [rate, sent, arrived] = ["rate", "sent", "arrived"].map(|measure| values(&outcome, measure));
    assert_eq!(rate.len() + missing(&outcome), 7, "{outcome}");
    assert!(rate.iter().all(|(.., rate)| *rate > 0.0) && sent == arrived, "{outcome}");
    assert!(is_judged(&outcome) || missing(&outcome) > 0, "{outcome}");
}

#[root_test]
fn root_steering_is_measured() {
    let outcome = alone(&["steer"]);
    for packet in ["IPv4", "IPv6", "VXLAN", "first fragment"] {
        assert_eq!(values(&outcome, packet).len(), 4, "a value for each kind: {outcome}");
    }
}

#[root_test]
fn root_compressing_is_measured() {
    // Whether zstd and a reader of its own agree with the file is checked in each turn.
    let outcome = alone(&["compress", "--duration", "50ms"]);
    assert!(values(&outcome, "share")[0].2 > 0.0 && is_judged(&outcome), "{outcome}");
}

#[root_test]
fn root_the_cost_for_a_host_is_measured() {
    // That no small packet is missing is checked in each turn.
    let outcome = alone(&["host", "--duration", "100ms"]);
    assert_eq!(values(&outcome, "tcp-in").len(), 4, "{outcome}");
    // Where tcpdump has added nothing, the target is not judged.
    assert!(outcome["bars"][1]["met"].is_boolean(), "{outcome}");
}

#[root_test]
fn root_replaying_is_measured() {
    let outcome = alone(&["replay"]);
    let [rate, off] = ["rate", "p99"].map(|measure| values(&outcome, measure).len());
    assert!((rate, off) == (3, 3) && is_judged(&outcome), "{outcome}");
}

const CONTESTANTS: &str = "limit limit-write weir-exclusive weir-exclusive-batch weir-exclusive-kernel weir-file af-xdp weir-af-xdp limit-pass \
    weir-pass weir-pass-kernel stack weir-tc weir-af-packet tcpdump tcpdump-file dumpcap-file netsniff-ng";

#[root_test]
fn root_everyone_is_measured_and_every_check_passes() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().to_str().expect("UTF-8");
    let (results, told, _) =
        experiment_by(&["capture", "--duration", "20ms", "--dir", place], Command::output);
    let [capture, trials] = [0, 1].map(|number| &results["outcomes"][number]);
    let names: Vec<_> = capture["about"]["series"].as_array().expect("a list").iter().collect();
    let names: Vec<_> = names.iter().filter_map(|series| series["name"].as_str()).collect();
    assert_eq!(names.join(" "), CONTESTANTS, "{told}");
    let missing = capture["about"]["missing"].as_array().expect("a list");
    assert!(missing.iter().all(|one| one[1].as_str().is_some_and(|why| why.contains("apt-get install"))));
    let [rate, kernel] = ["rate", "kernel"].map(|measure| values(capture, measure));
    assert_eq!(rate.len() + missing.len(), names.len(), "{told}");
    assert!(rate.iter().chain(&kernel).all(|(.., value)| *value > 0.0), "{told}");
    for measure in ["burst", "host"] {
        assert_eq!(values(trials, measure), [("weir", None, 0.0)], "{told}");
    }
    assert!(is_judged(trials) && values(trials, "latency")[0].2 > 0.0, "{told}");
    assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 0, "nothing is left");
}

#[test]
fn an_unknown_contestant_is_answered_with_the_known_ones() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    let output = bench.args(["capture", "--only", "wireshark"]).output().expect("run weir-bench");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(CONTESTANTS.split(' ').all(|name| stderr.contains(name)), "{stderr}");
}

#[test]
fn reading_is_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().to_str().expect("UTF-8");
    let outcome = alone(&["read", "--packets", "3000", "--dir", place]);
    assert_eq!(values(&outcome, "time").len() + missing(&outcome), 18, "{outcome}");
    assert!(values(&outcome, "memory")[0].2 > 0.0, "{outcome}");
    assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 0, "nothing is left");
}

#[root_test]
fn root_forwarding_is_measured() {
    let outcome = alone(&["forward", "--duration", "50ms"]);
    let arrived = values(&outcome, "arrived");
    assert!(arrived.len() == 6 && arrived.iter().all(|(.., frames)| *frames > 0.0), "{outcome}");
    assert!(is_judged(&outcome), "{outcome}");
}

#[root_test]
fn root_lines_and_a_terminal_are_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().to_str().expect("UTF-8");
    // It fails if a line is wrong, or if lines and packets that were not printed are not all that were captured.
    let outcome = alone(&["look", "--duration", "50ms", "--dir", place]);
    let count = |measure: &str| values(&outcome, measure).len();
    assert_eq!((count("tried"), count("p99"), count("written")), (4, 3, 3), "{outcome}");
    let shown = ["lines", "not-printed"].map(|measure| values(&outcome, measure));
    let [[quiet, scrolling, _], [.., stopped]] = shown.map(|way| [0, 1, 2].map(|at| way[at].2));
    assert!(quiet == 0.0 && scrolling > 0.0 && stopped > 0.0, "{outcome}");
    assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 0, "nothing is left");
}

#[root_test]
fn root_captures_through_both_libraries_are_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().to_str().expect("UTF-8");
    // It fails unless packets captured and packets reported as dropped are all that were sent.
    let words = ["libpcap", "--duration", "5ms", "--only", "tcpdump,count", "--disk", place, "--dir", place];
    let outcome = alone(&words);
    let [sent, received, stack, verified] =
        ["sent", "received", "stack", "verified"].map(|measure| values(&outcome, measure));
    assert_eq!(sent.len(), 24, "six programs, four ways: {outcome}");
    for (((sent, received), stack), verified) in sent.iter().zip(&received).zip(&stack).zip(&verified) {
        assert!(received.2 > 0.0 && (stack.2 == 0.0) == sent.0.ends_with("exclusive"), "{sent:?} {stack:?}");
        // Bytes are known to be right only where every frame that was made is in a file.
        let is_file = sent.0.contains("-w FILE");
        assert!(verified.2 == 0.0 || is_file && sent.2 == received.2, "{verified:?} {sent:?} {received:?}");
    }
    let bars = outcome["bars"].as_array().expect("a list");
    assert_eq!(bars.iter().filter(|bar| bar["met"].is_boolean()).count(), 15, "{outcome}");
    assert_eq!(fs::read_dir(dir.path()).expect("the folder").count(), 0, "nothing is left");
}

#[test]
fn files_and_filters_are_measured_on_both_libraries() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().to_str().expect("UTF-8");
    let outcome = alone(&["libpcap", "--packets", "3000", "--only", "files,compile", "--dir", place]);
    assert!(outcome["about"]["method"].as_str().is_some_and(|method| method.contains("(weir ")), "{outcome}");
    let [file, compile] = ["file", "compile"].map(|measure| values(&outcome, measure).len());
    assert_eq!((file, compile), (10, 2), "{outcome}");
}

#[root_test]
fn root_handlers_that_help_are_measured() {
    // Problems, such as an account that does not close, would make it fail. What is lost is a matter of speed.
    let outcome = alone(&["queues"]);
    for (measure, count) in [("rate", 4), ("lost", 3), ("chunk", 4), ("packet", 2), ("law", 2)] {
        assert_eq!(values(&outcome, measure).len(), count, "{measure}: {outcome}");
    }
    let [offloaded, reordered, longest] =
        ["offloaded", "reordered", "longest"].map(|measure| values(&outcome, measure));
    assert_eq!((offloaded[0].2, reordered[2].2), (0.0, 0.0), "basic, order flow: {outcome}");
    // 32 chunks of 32 KiB, full of records of 92 bytes; not told where the interface has refused a frame.
    let held = longest.iter().find(|(series, ..)| series.ends_with("held up"));
    assert!(held.is_none_or(|(.., packets)| *packets == 32.0 * 357.0), "{outcome}");
}

#[root_test]
fn root_filters_are_measured() {
    // Verdicts other than libpcap's, and packets that an exchange loses, would make it fail.
    let outcome = alone(&["filter"]);
    for (measure, count) in [("ours", 6), ("libpcap", 1), ("compile", 2), ("added", 2), ("command", 2)] {
        assert_eq!(values(&outcome, measure).len(), count, "{measure}: {outcome}");
    }
}

/// It fails where a frame is not as it was, not in its turn, or not in the account.
#[root_test]
fn root_forwarding_is_checked_frame_by_frame() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    let output = bench.args(["forward", "--check", "200ms"]).output().expect("run weir-bench");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.matches(" 0 wrong, 0 out of order\n").count(), 4, "{told}");
}

/// A compiler that changes the counting program: it counts every packet twice, and expects of a filter the opposite.
const WRONG_CC: &str = r#"#!/bin/sh
for word in "$@"; do
  case $word in
  *.c) sed -i 's/packets++/packets += 2/; s/number % 2 == 0/number % 2 == 1/' "$word" ;;
  esac
done
PATH=${PATH#*:}
exec cc "$@"
"#;

#[test]
fn wrong_answers_of_programs_on_libpcap_are_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let cc = dir.path().join("cc");
    fs::write(&cc, WRONG_CC).expect("a script");
    fs::set_permissions(&cc, fs::Permissions::from_mode(0o755)).expect("permissions");
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").expect("PATH"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench
        .args(["libpcap", "--quick", "--packets", "3000", "--only", "files,compile", "--dir"])
        .arg(dir.path());
    let output = bench.env("PATH", path).output().expect("run weir-bench");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches(r#"wrong packets: {"packets": 6000,"#).count(), 6, "{stderr}");
    assert_eq!(stderr.matches("the filter errs about 400 addresses").count(), 2, "{stderr}");
    assert!(stderr.contains("turns that failed or are wrong: 8"), "{stderr}");
}

#[test]
fn without_a_compiler_or_a_library_of_weir_nothing_is_compared() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = |bench: &mut Command| {
        let output = bench.output().expect("run weir-bench");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let bench = || {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
        bench.args(["libpcap", "--quick", "--only", "compile"]);
        bench
    };
    let no_compiler = refused(bench().env("PATH", dir.path()));
    assert!(no_compiler.contains("cannot find cc"), "{no_compiler}");
    assert!(no_compiler.contains("apt-get install gcc libc6-dev libpcap-dev"), "{no_compiler}");
    let no_library = refused(bench().args(["--library", "/no/such.so"]));
    assert!(no_library.contains("cannot use /no/such.so: "), "{no_library}");
    assert!(no_library.contains("cargo build --package weir-pcap"), "{no_library}");
    // A file that is no library: the loader takes the next one, the system's.
    let other = dir.path().join("other.so");
    fs::write(&other, "").expect("a file");
    let not_ours = refused(bench().arg("--library").arg(&other));
    assert!(not_ours.contains("does not run on weir"), "{not_ours}");
}

#[root_test]
fn root_wrong_lines_are_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let weir = Path::new(env!("CARGO_BIN_EXE_weir-bench")).with_file_name("weir");
    // One that prints more lines than packets.
    let script = dir.path().join("weir");
    fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\" -x\n", weir.display())).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(["look", "--quick", "--duration", "50ms", "--only", "lone,terminal", "--weir"]).arg(&script);
    let output = bench.output().expect("run weir-bench");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches("a wrong line: ").count(), 2, "{stderr}");
    assert_eq!(stderr.matches(" not printed of ").count(), 2, "{stderr}");
    assert!(stderr.contains("turns that failed or are wrong: 4"), "{stderr}");
}

#[test]
fn without_the_program_it_says_where_that_was_looked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let alone = dir.path().join("weir-bench");
    fs::copy(env!("CARGO_BIN_EXE_weir-bench"), &alone).expect("a copy");
    let bench = |words: &[&str]| {
        let output = Command::new(&alone).args(words).output().expect("run weir-bench");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let beside = bench(&["read", "--packets", "1", "--quick"]);
    assert!(beside.contains(&format!("cannot run {}: ", dir.path().join("weir").display())), "{beside}");
    assert!(beside.contains("; try cargo build --package weir-cli, or --weir PATH"), "{beside}");
    let named = bench(&["capture", "--quick", "--weir", "/no/such/weir"]);
    assert!(named.contains("cannot run /no/such/weir: "), "{named}");
}
