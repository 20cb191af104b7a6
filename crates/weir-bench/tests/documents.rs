//! `weir-bench document`: that the documentation says what was measured, and nothing else.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Of a machine that the results are not from.
const ELSEWHERE: &str = "| somewhere else | 77.7 |";

/// Whether `weir-bench document` succeeded, and what it said.
fn document(docs: &Path, args: &[&str]) -> (bool, String) {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    let output = bench.args(["document", "--docs"]).arg(docs).args(args).output().expect("run weir-bench");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Five rounds of a made-up experiment: three series at two places, and a third where only others have a value.
fn outcome() -> Value {
    let series = |name: &str, title: &str, role: &str| json!({ "name": name, "title": title, "role": role });
    let value = |series: &str, at: f64, round: u32, value: f64| json!({ "series": series, "measure": "lost", "at": at, "round": round, "value": value, "turn": series });
    let mut values = Vec::new();
    for round in 1..=5 {
        let step = f64::from(round);
        values.extend([
            value("ours", 1000.0, round, step),
            value("theirs", 1000.0, round, 10.0 * step),
            value("ours", 2000.0, round, 60.0 + step / 2.0),
            value("theirs", 2000.0, round, 50.0),
            value("law", 2000.0, round, 12.5),
        ]);
    }
    // The repetition of the first round is no sixth.
    values.push(value("ours", 1000.0, 0, 99.0));
    let bar = |name: &str, measured: [f64; 3], met: bool| json!({ "name": name, "wanted": "<= 5", "unit": "%", "measured": measured, "met": met });
    json!({
        "about": {
            "name": "bursts", "title": "Bursts", "method": "Somehow.", "differs": ["All of it."],
            "axis": { "title": "burst", "unit": "packets", "logarithmic": true },
            "measures": [
                { "name": "lost", "title": "packets lost", "unit": "%", "better": "lower" },
                { "name": "sent", "title": "packets sent", "unit": "packets", "better": "neither" },
            ],
            "series": [
                series("ours", "weir | pool", "ours"),
                series("theirs", "a ring", "peer"),
                series("law", "arithmetic", "model"),
            ],
            "missing": [], "versus": [["ours", "theirs"]],
            "published": [
                { "series": "WireCAP", "measure": "lost", "at": 2000.0, "value": 74.4 },
                { "series": "WireCAP", "measure": "lost", "at": 3000.0, "value": 97.4 },
                { "series": "WireCAP", "measure": "gain", "at": null, "value": 27.0 },
            ],
        },
        "rounds": 5, "values": values, "seconds": 1.0,
        "bars": [bar("short bursts", [3.0, 1.0, 5.0], true), bar("long bursts", [62.5, 60.5, 62.5], false)],
        "faults": [{ "turn": "ours", "round": 2, "message": "cannot send: no <route>\ntry again" }],
    })
}

fn run() -> Value {
    json!({
        "format": "weir-bench 1", "summary": "2026-01-02, 8 x Made-up CPU, Linux 9.9, weir 0.1.0 (0123abcd)",
        "machine": { "cpu": "Made-up CPU" }, "quick": false, "outcomes": [outcome()],
    })
}

/// Documents from the run in the folder, and what this said.
fn from_run(place: &TempDir) -> (bool, String) {
    let from = place.path().join("run.json");
    document(place.path(), &["--from", from.to_str().expect("a path")])
}

/// A folder of documents, with results beside it.
fn place(experiments: &str, run: &Value) -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("experiments.md"), experiments).expect("write");
    fs::write(place.path().join("run.json"), run.to_string()).expect("write");
    place
}

fn blocks() -> String {
    format!(
        "# Before\n\n<!-- weir-bench: bursts -->\n{ELSEWHERE}\n<!-- /weir-bench -->\n\nBetween | all.\n\n\
         <!-- weir-bench: capture -->\n{ELSEWHERE}\n<!-- /weir-bench -->\nAfter\n"
    )
}

#[test]
fn the_documents_are_what_their_results_give() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (success, told) = document(&docs, &["--check"]);
    assert!(success, "{told}");
    let results = read(&docs, "results.json");
    assert!(results.len() < 160_000, "{} bytes", results.len());
    assert!(!results.contains("\"values\""), "raw values");
}

#[test]
fn every_experiment_has_its_block() {
    let experiments = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"), "experiments.md");
    let list = Command::new(env!("CARGO_BIN_EXE_weir-bench")).arg("list").output().expect("run weir-bench");
    let list = String::from_utf8(list.stdout).expect("text");
    assert!(list.lines().count() > 20, "{list}");
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let begin = format!("<!-- weir-bench: {name} -->");
        assert!(experiments.contains(&begin), "docs/experiments.md lacks {begin} and <!-- /weir-bench -->");
    }
}

#[test]
fn a_block_says_what_was_measured_published_met_and_missed() {
    let place = place(&blocks(), &run());
    let (success, told) = from_run(&place);
    assert!(success, "{told}");
    let expected = "\
# Before

<!-- weir-bench: bursts -->

**bursts**: packets lost, %

| burst, packets | 1000 | 2000 | 3000 |
|---|---|---|---|
| weir \\| pool | 3 (1..5) | 61.50 (60.50..62.50) | - |
| a ring | 30 (10..50) | 50 | - |
| arithmetic | - | 12.50 | - |
| published: WireCAP | - | 74.40 | 97.40 |

- Published (gain): WireCAP 27
- Targets: 1 met, 1 missed.
- Missed: long bursts: wanted \\<= 5 %, measured 62.50 (60.50..62.50)
- Of 2 comparisons within rounds, weir is ahead in 1 and behind in 1.
- Behind: weir \\| pool / a ring, lost, 2000 packets: 1.23 (1.21..1.25)
- Failed or wrong: ours, round 2: cannot send: no \\<route> try again
- Measured: 2026-01-02, 8 x Made-up CPU, Linux 9.9, weir 0.1.0 (0123abcd); 5 rounds.

<!-- /weir-bench -->

Between | all.

<!-- weir-bench: capture -->

**capture**: not measured.

<!-- /weir-bench -->
After
";
    assert_eq!(read(place.path(), "experiments.md"), expected);
    let results = read(place.path(), "results.json");
    assert!(!results.contains("\"values\"") && !results.contains("Somehow"), "{results}");
    for name in ["capture", "imbalance"] {
        let figure = read(place.path(), &format!("figures/{name}.svg"));
        assert!(figure.contains(&format!("{name}: not measured")), "{figure}");
    }
}

#[test]
fn figures_say_where_they_are_from() {
    let mut run = run();
    run["quick"] = json!(true);
    run["outcomes"][0]["about"]["name"] = json!("capture");
    let place = place("<!-- weir-bench: capture -->\n<!-- /weir-bench -->\n", &run);
    let (success, told) = from_run(&place);
    assert!(success, "{told}");
    let [figure, text] = ["figures/capture.svg", "experiments.md"].map(|name| read(place.path(), name));
    for document in [&figure, &text] {
        assert!(document.contains("Made-up CPU") && document.contains("--quick, 5 rounds"), "{document}");
    }
    assert!(
        figure.contains("weir | pool") && figure.contains("Blue: weir. Orange: others. Violet"),
        "{figure}"
    );
    assert!(!figure.contains("Grey"), "no limits were measured: {figure}");
}

#[test]
fn values_that_no_axis_can_hold_are_not_drawn() {
    let mut run = run();
    run["outcomes"][0]["about"]["name"] = json!("imbalance");
    run["outcomes"][0]["values"][0]["value"] = json!(1.7e308);
    run["outcomes"][0]["values"][1]["at"] = json!(-1.7e308);
    let place = place("<!-- weir-bench: imbalance -->\n<!-- /weir-bench -->\n", &run);
    let (success, told) = from_run(&place);
    assert!(success, "{told}");
    let figure = read(place.path(), "figures/imbalance.svg");
    assert!(figure.contains("a ring") && !figure.contains("inf"), "{figure}");
}

#[test]
fn documents_are_made_again_from_their_own_results() {
    let place = place(&blocks(), &run());
    let (success, told) = document(place.path(), &["--check"]);
    assert!(!success && told.contains("cannot read") && told.contains("results.json"), "{told}");
    assert!(told.contains("hint: try it in the folder of the sources"), "{told}");
    let from = place.path().join("run.json");
    let from = from.to_str().expect("a path");
    let (success, told) = document(place.path(), &["--from", from, "--check"]);
    let made = ["results.json", "experiments.md", "figures/capture.svg", "figures/imbalance.svg"];
    assert!(!success && made.iter().all(|name| told.contains(name)), "{told}");
    assert!(!place.path().join("results.json").exists(), "a check has written");

    assert!(document(place.path(), &["--from", from]).0);
    let first = made.map(|name| read(place.path(), name));
    let (success, told) = document(place.path(), &["--check"]);
    assert!(success && told.is_empty(), "{told}");
    let forged = first[1].replace("3 (1..5)", "2 (1..5)");
    assert_ne!(forged, first[1]);
    fs::write(place.path().join("experiments.md"), &forged).expect("write");
    let (success, told) = document(place.path(), &["--check"]);
    assert!(!success && told.contains("experiments.md; try weir-bench document"), "{told}");
    assert_eq!(read(place.path(), "experiments.md"), forged, "a check has written");
    assert!(document(place.path(), &[]).0);
    assert_eq!(made.map(|name| read(place.path(), name)), first);
}

#[test]
fn results_of_other_experiments_stay() {
    let place = place(&blocks(), &run());
    let from = place.path().join("run.json");
    let put = |run: &Value| {
        fs::write(&from, run.to_string()).expect("write");
        let (success, told) = from_run(&place);
        assert!(success, "{told}");
        read(place.path(), "experiments.md")
    };
    let measured = |name: &str, commit: &str| {
        let mut run = run();
        run["summary"] = json!(format!("Made-up CPU, weir 0.1.0 ({commit})"));
        run["outcomes"][0]["about"]["name"] = json!(name);
        run
    };
    put(&measured("bursts", "first"));
    let both = put(&measured("capture", "second"));
    assert!(both.contains("(first); 5 rounds") && both.contains("(second); 5 rounds"), "{both}");
    let newer = put(&measured("bursts", "third"));
    assert!(newer.contains("(third); 5 rounds") && newer.contains("(second); 5 rounds"), "{newer}");
    let results = read(place.path(), "results.json");
    assert!(!newer.contains("(first)") && !results.contains("(first)"), "{results}");

    fs::write(place.path().join("results.json"), "{\"format\":\"weir-bench results 1\"}").expect("write");
    let (success, told) = from_run(&place);
    assert!(!success && told.contains("its format is") && told.contains("hint: "), "{told}");
}

#[test]
fn wrong_markers_are_refused() {
    let block = "<!-- weir-bench: bursts -->\n<!-- /weir-bench -->\n";
    for (document_text, expected) in [
        ("<!-- weir-bench: bursts -->\ntext\n", "the block of bursts, which line 1 begins, has no end; try"),
        (&format!("<!-- weir-bench: capture -->\n{block}"), "capture, which line 1 begins, has no end; try"),
        (&format!("{block}text\n<!-- /weir-bench -->\n"), "line 4 ends a block that has not begun; try"),
        (&format!("{block}{block}"), "line 3 begins a second block for bursts; try"),
        (
            &format!("{block}<!-- weir-bench: nonsense -->\n<!-- /weir-bench -->\n"),
            "line 3 begins a block for \"nonsense\", which is no experiment; try",
        ),
        ("text\n", "the results of bursts have no block; try the lines <!-- weir-bench: bursts -->"),
    ] {
        let place = place(document_text, &run());
        let (success, told) = from_run(&place);
        assert!(!success && told.contains("cannot make") && told.contains(expected), "{told}");
        assert_eq!(read(place.path(), "experiments.md"), document_text);
        assert!(!place.path().join("results.json").exists(), "{document_text}");
    }
}

#[test]
fn other_files_are_no_results() {
    for (run, expected) in [
        (
            json!({ "format": "weir-bench results 2" }),
            "its format is \"weir-bench results 2\", not \"weir-bench 1\"",
        ),
        (json!({ "format": "weir-bench 1" }), "as results of weir-bench: missing field `summary`"),
        (json!([1, 2]), "as results of weir-bench: "),
    ] {
        let place = place(&blocks(), &run);
        let (success, told) = from_run(&place);
        assert!(!success && told.contains("cannot read") && told.contains(expected), "{told}");
    }
}
