//! What a browser makes of the report and of the figures in the documentation.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Looks for what a reader would see wrong.
const SCRIPT: &str = include_str!("page.js");
/// Debian's names of the browser without windows, and of the whole one.
const BROWSERS: [&str; 2] = ["chromium-headless-shell", "chromium"];

/// How many figures a browser shows of a page, and what is wrong with what it shows.
fn seen(page: &str) -> (usize, Vec<String>) {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("page.html");
    fs::write(&file, page.replacen("</head>", &format!("<script>{SCRIPT}</script></head>"), 1))
        .expect("write");
    let has = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let browser = BROWSERS.iter().find(has).expect("no Chromium; try scripts/setup test");
    let mut shown = Command::new("timeout");
    shown.args(["60", browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"]);
    shown.arg(format!("--user-data-dir={}", place.path().join("browser").display()));
    let shown =
        shown.arg("--dump-dom").arg(format!("file://{}", file.display())).output().expect("run Chromium");
    let dom = String::from_utf8_lossy(&shown.stdout);
    let told = dom.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (told, _) = told.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&shown.stderr)));
    let told = told.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let faults = told["faults"].as_array().expect("a list").iter();
    let faults = faults.map(|fault| fault.as_str().expect("text").to_owned()).collect();
    (told["figures"].as_u64().expect("a number").try_into().expect("few"), faults)
}

/// An experiment of this name with `series` contestants at `places`, whose titles are as long as ours get.
fn outcome(name: &str, series: usize, places: &[f64], logarithmic: bool) -> Value {
    let names: Vec<String> = (0..series).map(|number| format!("s{number}")).collect();
    let titles =
        ["<script>throw 'run'</script> & more", "weir exclusive to tmpfs, with the kernel's time stamps"];
    let all = names.iter().enumerate().map(|(number, name)| {
        let role = ["ours", "peer", "limit", "model"][number % 4];
        json!({ "name": name, "title": format!("{} {number}", titles[number % 2]), "role": role })
    });
    let all: Vec<Value> = all.collect();
    let mut values = Vec::new();
    for (number, name) in (1_u32..).zip(&names) {
        for (step, at) in (1_u32..).zip(places) {
            for round in 0..=5_u32 {
                // From thousandths to thousands, and some the same.
                let value = f64::from(step * (number / 2))
                    * 7.1_f64.powi(i32::try_from(number % 5).expect("small") - 2);
                let value = value * (1.0 + f64::from(round) / 50.0);
                values.push(json!({ "series": name, "measure": "rate", "at": at, "round": round, "value": value, "turn": name }));
            }
        }
    }
    json!({
        "about": {
            "name": name, "title": format!("Made up: {name}"), "method": "Somehow.", "differs": ["All of it."],
            "axis": { "title": "burst", "unit": "packets", "logarithmic": logarithmic },
            "measures": [{ "name": "rate", "title": "packets that reached the reader", "unit": "Mpps", "better": "higher" }],
            "series": all, "missing": [["a program", "it is not installed"]], "versus": [["s0", "s1"]],
            "published": [{ "series": "WireCAP", "measure": "rate", "at": places[0], "value": 14.88 }],
        },
        "rounds": 5, "values": values, "seconds": 1.0,
        "bars": [{ "name": "rate", "wanted": ">= 0.95", "unit": "times", "measured": [0.9, 0.8, 1.0], "met": false }],
        "faults": [{ "turn": "s1", "round": 2, "message": "cannot send: \"no\" <b>route</b>; try again" }],
    })
}

/// The experiment `simulate` as if each of its turns had been taken: nothing is left to do but to show it.
fn taken() -> Value {
    let machines = ["basic", "advanced", "advanced-500", "advanced-8", "one"];
    let turns = [2, 50, 110].into_iter().flat_map(|load| machines.map(|machine| (machine, load)));
    let value = |(machine, load)| json!({ "series": machine, "measure": "lost", "at": load, "round": 1, "value": load / 2, "turn": format!("{machine} {load}") });
    let mut outcome = outcome("simulate", 0, &[60.0], false);
    outcome["values"] = turns.map(value).collect();
    outcome
}

#[test]
fn a_report_is_shown_whole() {
    let place = tempfile::tempdir().expect("a folder");
    let [results, page] = ["r.json", "r.html"].map(|name| place.path().join(name));
    let packets: Vec<f64> = (0..13).map(|step| 1000.0 * 2.0_f64.powi(step)).collect();
    let outcomes = [
        outcome("capture", 18, &[60.0, 256.0, 1514.0], false),
        outcome("bursts", 7, &packets, true),
        outcome("threshold", 3, &[60.0], false),
        taken(),
    ];
    let run = json!({
        "format": "weir-bench 1", "summary": format!("{} <i>2 x</i> Made-up CPU", "word ".repeat(60)), "quick": true,
        "machine": { "cpu": "Made-up CPU", "kernel": "word ".repeat(80) }, "outcomes": outcomes,
    });
    fs::write(&results, run.to_string()).expect("write");
    // The page is of all that the file has.
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(["run", "simulate", "--quick", "--resume", "--json"]).arg(&results).arg("--html").arg(&page);
    let output = bench.output().expect("run weir-bench");
    let page =
        fs::read_to_string(&page).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let (figures, faults) = seen(&page);
    assert!(figures >= 4 && faults.is_empty(), "{figures} figures, {faults:#?}");
}

#[test]
fn figures_of_the_documentation_are_shown_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    let mut page = "<!DOCTYPE html><html><head></head><body>".to_owned();
    let mut names = Vec::new();
    for file in fs::read_dir(&folder).expect("docs/figures") {
        let file = file.expect("a file").path();
        page.push_str(&fs::read_to_string(&file).expect("a figure"));
        names.push(file);
    }
    let (figures, faults) = seen(&page);
    assert!(figures == names.len() && figures >= 2 && faults.is_empty(), "{names:?}: {faults:#?}");
}

#[test]
fn what_a_reader_would_miss_is_found() {
    let page = "<!DOCTYPE html><html><head></head><body><div style=\"width: 2000px\">wide</div>\
                <svg width=\"300\" height=\"100\"><text x=\"10\" y=\"50\">one word</text><text x=\"20\" y=\"52\">another</text>\
                <text x=\"280\" y=\"20\">cut off here</text></svg><svg width=\"0\" height=\"0\"></svg>\
                <script>throw 'wrong'</script></body></html>";
    let (figures, faults) = seen(page);
    let expected = [
        "is 2008 pixels wide",
        "\"another\" covers \"one word\"",
        "\"cut off here\" is cut off",
        "figure 2 is empty",
        "wrong",
    ];
    assert!(figures == 2 && faults.len() == expected.len(), "{faults:#?}");
    for expected in expected {
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:#?}");
    }
}
