//! What a short `weir-bench` has measured.

use std::fs;
use std::io;
use std::process::{Command, Output};

use serde_json::Value;

/// The results of a short run by these words, its words and its page.
pub(crate) fn experiment_by(
    words: &[&str],
    run: impl FnOnce(&mut Command) -> io::Result<Output>,
) -> (Value, String, String) {
    let place = tempfile::tempdir().expect("a folder");
    let files = [place.path().join("r.json"), place.path().join("r.html")];
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(words).args(["--quick", "--json"]).arg(&files[0]).arg("--html").arg(&files[1]);
    let output = run(&mut bench).expect("run weir-bench");
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    let [json, page] = files.map(|file| fs::read_to_string(file).expect("a file"));
    (serde_json::from_str(&json).expect("valid JSON"), told, page)
}

pub(crate) fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The values of a measure by series and place.
pub(crate) fn values<'a>(outcome: &'a Value, measure: &str) -> Vec<Row<'a>> {
    let values = outcome["values"].as_array().expect("a list").iter();
    let of = values.filter(|value| value["measure"] == measure);
    let number = |value: &Value| value["value"].as_f64().expect("a number");
    of.map(|value| (value["series"].as_str().expect("a name"), value["at"].as_f64(), number(value))).collect()
}

/// A value by series, place and value.
pub(crate) type Row<'a> = (&'a str, Option<f64>, f64);

/// Series that cannot be measured here.
pub(crate) fn missing(outcome: &Value) -> usize {
    outcome["about"]["missing"].as_array().expect("a list").len()
}
