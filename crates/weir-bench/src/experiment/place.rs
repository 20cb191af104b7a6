//! The machine of a run as rows of a table, and what differs between the machines of two runs.

use serde_json::Value;

/// Fields that differ in every run; `compare` shows them in other ways.
const PASSING: [&str; 4] = ["time", "load", "commit", "weir"];

/// Name and value of each known field: `interfaces rx0 driver`, `veth`.
pub(crate) fn rows(machine: &Value) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    flatten("", machine, &mut rows);
    rows
}

/// Name, value before and value after, a dash where there is none.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<[String; 3]> {
    let (before, after) = (rows(before), rows(after));
    let names = before.iter().chain(after.iter().filter(|[name, _]| of(&before, name).is_none()));
    let names = names.map(|[name, _]| name).filter(|name| !PASSING.contains(&name.as_str()));
    let differs = |name: &String| {
        let [a, b] = [&before, &after].map(|rows| of(rows, name).unwrap_or("-"));
        (a != b).then(|| [name.clone(), a.to_owned(), b.to_owned()])
    };
    names.filter_map(differs).collect()
}

fn of<'a>(rows: &'a [[String; 2]], name: &str) -> Option<&'a str> {
    rows.iter().find(|[known, _]| known == name).map(|[_, value]| value.as_str())
}

fn flatten(name: &str, value: &Value, rows: &mut Vec<[String; 2]>) {
    let below = |key: &str| format!("{name} {}", key.replace('_', " ")).trim_start().to_owned();
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(&below(key), value, rows)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (number, item) in (1..).zip(items) {
                let number: i32 = number;
                let mut item = item.clone();
                let name = item.as_object_mut().and_then(|fields| fields.remove("name"));
                flatten(&below(&name.as_ref().map_or_else(|| number.to_string(), text)), &item, rows);
            }
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(text).collect();
            rows.push([name.to_owned(), words.join(", ")]);
        }
        value => rows.push([name.to_owned(), text(value)]),
    }
    rows.retain(|[_, value]| !value.is_empty());
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(kernel: &str, tcpdump: &str, offloads: &[&str]) -> Value {
        serde_json::json!({
            "kernel": kernel, "processors": 2, "governor": "", "time": kernel.len(),
            "peers": { "tcpdump": tcpdump },
            "interfaces": [{ "name": "rx0", "rx_ring": null, "offloads": offloads }],
        })
    }

    #[test]
    fn all_that_is_known_is_a_row() {
        let mut rows = rows(&machine("6.18", "4.99.3", &["rx-gro", "rx-checksum"]));
        rows.sort();
        let expected = [
            ["interfaces rx0 offloads", "rx-gro, rx-checksum"],
            ["kernel", "6.18"],
            ["peers tcpdump", "4.99.3"],
            ["processors", "2"],
            ["time", "4"],
        ];
        assert_eq!(rows, expected.map(|row| row.map(str::to_owned)));
    }

    #[test]
    fn machines_differ_in_what_numbers_depend_on() {
        let one = machine("6.18", "4.99.3", &["rx-gro"]);
        assert!(differences(&one, &machine("6.18", "4.99.3", &["rx-gro"])).is_empty());
        let other = differences(&one, &machine("6.1.0", "4.99.5", &[]));
        let expected = [
            ["interfaces rx0 offloads", "rx-gro", "-"],
            ["kernel", "6.18", "6.1.0"],
            ["peers tcpdump", "4.99.3", "4.99.5"],
        ];
        let mut other = other;
        other.sort();
        assert_eq!(other, expected.map(|row| row.map(str::to_owned)));
        let older = serde_json::json!({ "kernel": "6.18" });
        let told = differences(&older, &one);
        assert!(told.contains(&["peers tcpdump", "-", "4.99.3"].map(str::to_owned)), "{told:?}");
        assert!(!told.iter().any(|[name, ..]| name == "kernel" || name == "time"), "{told:?}");
    }
}
