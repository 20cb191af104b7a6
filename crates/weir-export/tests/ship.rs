//! `weir-export ship` into a directory, by the program itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Files to ship, and where they go.
struct Place {
    from: TempDir,
    to: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            from: tempfile::tempdir().expect("a directory"),
            to: tempfile::tempdir().expect("a directory"),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.from.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }

    fn shipped(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.to.path().join(name)).ok()
    }

    fn ship(&self, more: &[&str]) -> Ended {
        let to = format!("file://{}", self.to.path().display());
        Ended::of(self.from.path(), &to, more)
    }
}

/// How a run ended.
struct Ended {
    output: Output,
    /// What it has printed.
    objects: Vec<Value>,
}

impl Ended {
    fn of(from: &Path, to: &str, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-export"));
        command.arg("ship").arg(from).args([to, "--once", "--json"]).args(more);
        let output = command.output().expect("it starts");
        let text = String::from_utf8(output.stdout.clone()).expect("text");
        let objects = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        Self { output, objects }
    }

    fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn says(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Numbers of the account: shipped, there already, refused, waiting.
    fn account(&self) -> [u64; 4] {
        let account = self.objects.last().expect("the account");
        assert_eq!(account["type"], "ship_account");
        ["shipped", "were_there", "refused", "waiting"].map(|key| account[key].as_u64().expect("a number"))
    }
}

#[test]
fn each_finished_file_is_shipped_once() {
    let place = Place::new();
    // One takes several pieces.
    let large: Vec<u8> = (0..40 << 20).map(|number: u32| (number % 251) as u8).collect();
    place.write("sensor=a/day=2026-11-30/x.json", b"one\n");
    place.write("sensor=a/large", &large);
    place.write("sensor=a/empty", b"");
    place.write("sensor=a/.y.json.tmp", b"tw");
    let first = place.ship(&[]);
    assert_eq!((first.code(), first.account()), (Some(0), [3, 0, 0, 0]), "{}", first.says());
    assert_eq!(place.shipped("sensor=a/day=2026-11-30/x.json").as_deref(), Some(&b"one\n"[..]));
    assert_eq!(place.shipped("sensor=a/large"), Some(large));
    assert_eq!(place.shipped("sensor=a/empty"), Some(Vec::new()));
    assert_eq!(place.shipped("sensor=a/.y.json.tmp"), None);
    let found = first.objects.iter().find(|object| object["bytes"] == 4).expect("it was shipped");
    // Of sha256sum.
    assert_eq!(found["sha256"], "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806");

    place.write("new", b"two\n");
    assert_eq!(place.ship(&[]).account(), [1, 0, 0, 0]);
    assert_eq!(place.ship(&[]).account(), [0; 4]);
    // Without the journal, objects are compared.
    fs::remove_file(place.from.path().join(".weir-shipped")).expect("it was there");
    let again = place.ship(&["--delete"]);
    assert_eq!((again.code(), again.account()), (Some(0), [0, 4, 0, 0]), "{}", again.says());
    assert!(
        !place.from.path().join("new").exists() && place.from.path().join("sensor=a/.y.json.tmp").exists()
    );
}

#[test]
fn another_object_is_never_overwritten() {
    let place = Place::new();
    place.write("a", b"mine");
    place.write("b", b"mine, too");
    fs::write(place.to.path().join("a"), "theirs").expect("a file");
    let ended = place.ship(&["--delete"]);
    assert_eq!((ended.code(), ended.account()), (Some(1), [1, 0, 1, 0]), "{}", ended.says());
    assert!(ended.says().contains("cannot ship a: "), "{}", ended.says());
    assert_eq!(place.shipped("a").as_deref(), Some(&b"theirs"[..]));
    assert_eq!(fs::read(place.from.path().join("a")).expect("it stays"), b"mine");
    assert_eq!(place.shipped("b").as_deref(), Some(&b"mine, too"[..]));
}

#[test]
fn what_an_earlier_run_has_shipped_is_compared_before_it_is_deleted() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.write(name, b"mine");
    }
    assert_eq!(place.ship(&[]).account(), [2, 0, 0, 0]);
    let again = place.ship(&[]);
    assert_eq!(again.account(), [0, 0, 0, 0]);
    assert!(again.says().contains("by earlier runs: 2;"), "{}", again.says());
    fs::write(place.to.path().join("b"), "worn").expect("a file");
    let ended = place.ship(&["--delete"]);
    assert_eq!((ended.code(), ended.account()), (Some(1), [0, 1, 1, 0]), "{}", ended.says());
    let is_there = |name: &str| place.from.path().join(name).exists();
    assert!(!is_there("a") && is_there("b"));
}

#[test]
fn what_cannot_be_reached_is_told() {
    let place = Place::new();
    place.write("a", b"mine");
    for to in ["s3:/x", "ftp://x/y", "/x", "s3://x?y"] {
        let ended = Ended::of(place.from.path(), to, &[]);
        assert_eq!(ended.code(), Some(2), "{}", ended.says());
        assert!(ended.says().contains("allowed: s3://BUCKET"), "{}", ended.says());
    }
    let ended = Ended::of(place.from.path(), "file:///nowhere/at/all", &[]);
    assert_eq!(ended.code(), Some(2));
    assert!(
        ended.says().contains("there is no such directory; make it, or mount its disk"),
        "{}",
        ended.says()
    );
    assert!(!Path::new("/nowhere").exists());
    let ended = Ended::of(Path::new("/nowhere"), "file:///tmp", &[]);
    assert_eq!(ended.code(), Some(1));
    assert!(
        ended.says().contains("cannot ship files of /nowhere: there is no such directory"),
        "{}",
        ended.says()
    );
    assert_eq!(fs::read_dir(place.to.path()).expect("it is there").count(), 0);
}
