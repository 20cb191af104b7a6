//! `weir-bench run methods`: whether every method does its work, and whether one that does less is found out.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_lab::root_test;

const METHODS: [&str; 8] =
    ["none", "libpcap", "xdp", "tc", "af_packet", "inline-xdp", "inline-tc", "nfqueue"];

const RESULTS: &str = "bench.json";

/// Runs the experiment as far as `dir` does not have its results yet, and gives its outcome and what it said.
fn methods(dir: &Path, path: Option<&str>) -> (Value, String) {
    let (json, html) = (dir.join(RESULTS), dir.join("bench.html"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(["run", "methods", "--quick", "--resume", "--json"]).arg(&json).arg("--html").arg(&html);
    bench.envs(path.map(|path| ("PATH", path)));
    let output = bench.output().expect("run weir-bench");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let run: Value = serde_json::from_str(&fs::read_to_string(&json).expect("JSON")).expect("valid JSON");
    let outcome = run["outcomes"][0].clone();
    let right = outcome["faults"].as_array().is_some_and(Vec::is_empty);
    assert_eq!(output.status.success(), right, "{stderr}");
    (outcome, stderr)
}

#[root_test]
fn root_methods_of_interception_are_measured() {
    let dir = tempfile::tempdir().expect("a folder");
    let (outcome, stderr) = methods(dir.path(), None);
    assert_eq!(outcome["faults"], Value::Array(Vec::new()), "{stderr}");
    let values = outcome["values"].as_array().expect("a list");
    for method in METHODS {
        let value = |measure: &str| {
            let of = |value: &&Value| value["series"] == method && value["measure"] == measure;
            values.iter().find(of).and_then(|value| value["value"].as_f64())
        };
        let [rate, min, max] =
            ["rate", "rate_min", "rate_max"].map(|measure| value(measure).expect("a rate"));
        assert!(0.0 < rate && min <= rate && rate <= max, "{method}: {stderr}");
        assert!(value("cpu") > Some(0.0), "{method}: {stderr}");
        assert_eq!(value("intercepted") > Some(0.0), method != "none", "{stderr}");
        assert_eq!(value("lost").is_some(), method != "none", "{stderr}");
    }
    a_method_that_does_less_is_found_out(dir.path());
}

/// A compiler that changes the intercepting program: it overlooks one packet in a thousand, and copies every second only.
const CARELESS_CC: &str = r#"#!/bin/sh
for word in "$@"; do
  case $word in
  *.c) sed -i 's/if (!is_wanted/static int calls; if (++calls % 1000 == 0) return; if (!is_wanted/
    s/memcpy(copied/if (seen.packets % 2) memcpy(copied/' "$word" ;;
  esac
done
PATH=${PATH#*:}
exec cc "$@"
"#;

/// Has libpcap's turn taken again, with another compiler.
fn a_method_that_does_less_is_found_out(dir: &Path) {
    let json = dir.join(RESULTS);
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&json).expect("JSON")).expect("valid JSON");
    let values = run["outcomes"][0]["values"].as_array_mut().expect("a list");
    values.retain(|value| value["turn"] != "libpcap");
    fs::write(&json, run.to_string()).expect("results");
    let cc = dir.join("cc");
    fs::write(&cc, CARELESS_CC).expect("a script");
    fs::set_permissions(&cc, fs::Permissions::from_mode(0o755)).expect("permissions");
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("PATH"));
    let (outcome, stderr) = methods(dir, Some(&path));
    let faults = outcome["faults"].as_array().expect("a list");
    assert!(faults.iter().all(|fault| fault["turn"] == "libpcap"), "{stderr}");
    let told = |words: &[&str]| {
        let message = |fault: &Value| fault["message"].as_str().expect("text").to_owned();
        faults.iter().map(message).filter(|text| words.iter().all(|word| text.contains(word))).count()
    };
    assert_eq!(told(&["known frames: 1998 packets intercepted and 0 lost are not the 2000"]), 1, "{stderr}");
    assert_eq!(told(&["intercepted and", "lost are not the"]), 2, "{stderr}");
    assert_eq!(told(&["known frames: the sum", "not every byte was copied"]), 1, "{stderr}");
    assert_eq!(told(&["the sum", "does not fit their checksums"]), 1, "{stderr}");
}

#[root_test]
fn root_methods_without_their_programs_say_what_to_install() {
    let dir = tempfile::tempdir().expect("a folder");
    let taskset = dir.path().join("taskset");
    std::os::unix::fs::symlink("/usr/bin/taskset", taskset).expect("a link");
    let (outcome, stderr) = methods(dir.path(), dir.path().to_str());
    let faults = outcome["faults"].as_array().expect("a list");
    assert_eq!(faults.len(), METHODS.len(), "{stderr}");
    for (fault, method) in faults.iter().zip(METHODS) {
        let message = fault["message"].as_str().expect("text");
        let [what, package] = if method == "libpcap" {
            ["cannot find cc, ", "gcc libc6-dev libpcap-dev"]
        } else {
            ["cannot find iperf3: ", "iperf3"]
        };
        assert_eq!(fault["turn"], method);
        assert!(message.starts_with(what), "{message}");
        assert!(message.ends_with(&format!("; try apt-get install {package}")), "{message}");
    }
}
