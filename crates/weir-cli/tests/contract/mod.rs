//! What programs rely on: the keys of JSON (`json.txt`). Whatever weir prints in a test is compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::iter;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

pub(crate) const TEXT: &str = include_str!("json.txt");
pub(crate) static JSON: LazyLock<Json> = LazyLock::new(|| Json::read(TEXT));

/// Lines of an output that are compared; and the last one.
const LINES: usize = 1000;

/// Shapes of objects, by name.
pub(crate) struct Json {
    pub(crate) shapes: BTreeMap<&'static str, Shape>,
    /// The shapes that a command prints.
    commands: BTreeMap<&'static str, Vec<&'static str>>,
}

#[derive(Default)]
pub(crate) struct Shape {
    /// Shapes whose keys it has, too.
    whole: Vec<&'static str>,
    pub(crate) keys: Vec<Key>,
}

#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    may_be_missing: bool,
    types: &'static str,
}

/// The words of a command line.
pub(crate) fn words(command: &Command) -> Vec<String> {
    let words = iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).map(Into::into).collect()
}

/// Compares the objects that weir has printed with `json.txt`.
#[track_caller]
pub(crate) fn printed(words: &[String], stdout: &[u8], stderr: &[u8]) {
    let Some(weir) = words.iter().position(|word| Path::new(word).ends_with("weir")) else { return };
    let Some(command) = words.get(weir + 1) else { return };
    if command != "ctl" && !words.iter().any(|word| word == "--json") {
        return;
    }
    for output in [stdout, stderr] {
        let text = String::from_utf8_lossy(output);
        // One that was killed may have printed a part of a line.
        let objects =
            text.split_inclusive('\n').filter(|line| line.starts_with('{') && line.ends_with("}\n"));
        let last = objects.clone().skip(LINES).last();
        for line in objects.take(LINES).chain(last) {
            let object = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let wrong = JSON.complaints(command, &object);
            assert!(
                wrong.is_empty(),
                "`weir {command}` has printed other keys than those in crates/weir-cli/tests/contract/json.txt, on which \
                 programs rely: {}. A key may be added: put it there and into CHANGELOG.md. If one has to change or go, \
                 CHANGELOG.md says so below `Changed`. The object: {line}",
                wrong.join("; ")
            );
        }
    }
}

impl Json {
    fn read(text: &'static str) -> Self {
        let (mut shapes, mut commands) = (BTreeMap::<_, Shape>::new(), BTreeMap::new());
        let mut name = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(command) = line.strip_prefix("weir ") {
                let (command, names) = command.split_once(": ").expect("a command and its shapes");
                commands.insert(command, names.split(' ').collect());
            } else if let Some(key) = line.strip_prefix("  ") {
                let shape = shapes.get_mut(name).expect("a shape");
                match key.strip_prefix("..") {
                    Some(other) => shape.whole.push(other),
                    None => shape.keys.push(Key::read(key)),
                }
            } else {
                name = line;
                assert!(shapes.insert(name, Shape::default()).is_none(), "{name} twice");
            }
        }
        Self { shapes, commands }
    }

    /// What is wrong with an object of a command.
    pub(crate) fn complaints(&self, command: &str, object: &Value) -> Vec<String> {
        let Some(names) = self.commands.get(command) else { return vec![format!("no shape of {command}")] };
        // That of its type, or the one it resembles most.
        let complaints = names.iter().map(|name| {
            let mut wrong = Vec::new();
            self.compare(name, object, "", &mut wrong);
            let is_other = wrong.iter().any(|wrong| wrong.starts_with("`type`"));
            (is_other, wrong)
        });
        complaints.min_by_key(|(is_other, wrong)| (*is_other, wrong.len())).expect("a shape").1
    }

    fn compare(&self, name: &str, value: &Value, at: &str, wrong: &mut Vec<String>) {
        let keys = self.keys(name);
        let Some(object) = value.as_object() else { return wrong.push(format!("`{at}` is no {name}")) };
        let place = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
        for Key { name: key, may_be_missing, types } in &keys {
            match object.get(*key) {
                Some(value) if self.is_one_of(types, value, &place(key), wrong) => {}
                Some(value) => wrong.push(format!("`{}` is {value}, not {types}", place(key))),
                None if *may_be_missing => {}
                None => wrong.push(format!("`{}` is missing", place(key))),
            }
        }
        let known: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
        let new = object.keys().filter(|key| !known.contains(key.as_str()));
        wrong.extend(new.map(|key| format!("`{}` is new", place(key))));
    }

    /// Whether a value has one of these types. What is wrong inside an object is noted.
    fn is_one_of(&self, types: &str, value: &Value, at: &str, wrong: &mut Vec<String>) -> bool {
        let inside = |open, close| {
            types.split('|').find_map(|one: &str| one.strip_prefix(open)?.strip_suffix::<char>(close))
        };
        let is = |name: &str| types.split('|').any(|one| one == name);
        match value {
            Value::Null => is("null"),
            Value::Bool(_) => is("bool"),
            Value::String(text) => is("text") || is(&format!("\"{text}\"")),
            Value::Number(number) => is(if number.is_f64() { "float" } else { "int" }),
            Value::Array(all) => inside('[', ']').is_some_and(|of| {
                let mut each = all.iter().map(|one| self.is_one_of(of, one, &format!("{at}[]"), wrong));
                each.all(|fits| fits)
            }),
            Value::Object(all) => match (inside('{', '}'), types.split('|').next()) {
                (Some(of), _) => {
                    all.iter().all(|(key, one)| self.is_one_of(of, one, &format!("{at}.{key}"), wrong))
                }
                (None, Some(name)) if self.shapes.contains_key(name) => {
                    self.compare(name, value, at, wrong);
                    true
                }
                _ => false,
            },
        }
    }

    fn keys(&self, name: &str) -> Vec<Key> {
        let shape = self.shapes.get(name).unwrap_or_else(|| panic!("no shape `{name}` in json.txt"));
        let others = shape.whole.iter().flat_map(|other| self.keys(other));
        others.chain(shape.keys.iter().cloned()).collect()
    }
}

impl Key {
    fn read(line: &'static str) -> Self {
        let (name, types) = line.split_once(' ').expect("a key and its types");
        let (name, may_be_missing) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
        Self { name, may_be_missing, types }
    }
}
