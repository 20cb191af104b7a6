//! The lists of what programs rely on, themselves.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::contract::{JSON, TEXT};

/// A key that may be missing must not be forgotten, either: the program has a field of that name.
#[test]
fn each_key_of_json_is_still_in_the_program() {
    fn sources(directory: &Path, text: &mut String) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, text);
            } else if path.extension() == Some(OsStr::new("rs")) {
                text.push_str(&fs::read_to_string(path).expect("text"));
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates");
    let mut text = String::new();
    for name in ["weir-cli", "weir-service", "weir-render", "weir", "weir-bpf", "weir-traffic"] {
        sources(&crates.join(name).join("src"), &mut text);
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let code = || text.lines().filter(|line| !line.trim_start().starts_with("//"));
    // `name: type`, or `"name": value` in an object made by hand; or a word in quotation marks, where a field is renamed.
    let fields = code().flat_map(|line| line.split(": ")).filter_map(|before| {
        before.strip_suffix('"').unwrap_or(before).rsplit(|letter| !is_name(letter)).next()
    });
    let words = code().filter(|line| line.contains("rename")).flat_map(|line| line.split('"'));
    let known: BTreeSet<&str> = fields.chain(words).collect();
    let gone: Vec<_> = JSON.shapes.values().flat_map(|shape| &shape.keys).map(|key| key.name).collect();
    let gone: Vec<_> = gone.into_iter().filter(|name| !known.contains(name)).collect();
    assert!(gone.is_empty(), "programs may rely on these keys, which are in json.txt: {gone:?}");
}

/// The list itself: each shape is used, and says what it should of objects that are wrong.
#[test]
fn keys_that_are_new_or_missing_or_of_another_type_are_noticed() {
    for name in JSON.shapes.keys() {
        let named = |line: &&str| line.split([' ', '[', ']', '{', '}', '|', '.']).any(|word| word == *name);
        assert!(TEXT.lines().filter(named).count() > 1, "no command has the shape {name}");
    }
    let count = serde_json::json!({
        "type": "interval", "elapsed_seconds": 1.0, "seconds": 1.0, "packets": 1, "bytes": 60, "packets_per_second": 1.0,
        "bits_per_second": 480.0, "lost": 0, "nic_lost": 0,
        "queues": [{ "interface": "a", "queue": 0, "packets": 1, "bytes": 60, "packets_per_second": 1.0,
            "bits_per_second": 480.0, "lost": 0, "ready": 0 }],
    });
    let wrong = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut count = count.clone();
        change(count.as_object_mut().expect("an object"));
        JSON.complaints("count", &count)
    };
    assert_eq!(wrong(&|_| ()), [""; 0]);
    assert_eq!(wrong(&|count| drop(count.remove("nic_lost"))), ["`nic_lost` is missing"]);
    assert_eq!(wrong(&|count| drop(count.insert("losses".into(), 0.into()))), ["`losses` is new"]);
    assert_eq!(wrong(&|count| count["lost"] = "0".into()), ["`lost` is \"0\", not int"]);
    assert_eq!(wrong(&|count| count["seconds"] = 1.into()), ["`seconds` is 1, not float"]);
    assert_eq!(wrong(&|count| count["bytes"] = Value::Null), ["`bytes` is null, not int"]);
    let inside = wrong(&|count| {
        let queue = count["queues"][0].as_object_mut().expect("an object");
        let ready = queue.remove("ready").expect("a number");
        queue.insert("waiting".into(), ready);
    });
    assert_eq!(inside, ["`queues[].ready` is missing", "`queues[].waiting` is new"]);
}
