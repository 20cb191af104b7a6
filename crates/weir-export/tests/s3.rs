//! `weir-export ship` to an S3 store of somebody else: versitygw. `make test-s3` installs it and runs this; it is not among the tests
//! that everybody runs.

mod gateway;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gateway::{BUCKET, Gateway};

fn ship(from: &Path, port: u16, secret: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-export"));
    command.arg("ship").arg(from).arg(format!("s3://{BUCKET}/flows")).args(more);
    command.args(["--endpoint", &format!("http://127.0.0.1:{port}")]);
    let keys =
        [("AWS_ACCESS_KEY_ID", "weir"), ("AWS_SECRET_ACCESS_KEY", secret), ("AWS_REGION", "us-east-1")];
    command.env_remove("AWS_ENDPOINT_URL").envs(keys);
    command
}

fn once(from: &Path, port: u16, secret: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = ship(from, port, secret, &["--once"]).output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn files_are_in_the_bucket_whatever_stops_the_store_and_the_program() {
    let [from, store] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let large: Vec<u8> = (0..40 << 20).map(|number: u32| (number % 251) as u8).collect();
    fs::create_dir_all(from.path().join("day=1")).expect("a directory");
    fs::create_dir(store.path().join(BUCKET)).expect("a bucket");
    let bucket = |name: &str| store.path().join(BUCKET).join("flows").join(name);
    for (name, bytes) in [("day=1/a", &b"one"[..]), ("large", &large), ("empty", b"")] {
        fs::write(from.path().join(name), bytes).expect("a file");
    }
    let gateway = Gateway::start(store.path(), None);
    let port = gateway.port;
    let (code, said) = once(from.path(), port, "no secret");
    assert_eq!(code, Some(1));
    assert!(said.contains("The request signature we calculated does not match"), "{said}");

    // Killed again and again, it goes on where it was.
    for wait in (0..200).step_by(20) {
        let mut running = ship(from.path(), port, "a secret", &["--quiet"]).spawn().expect("it starts");
        sleep(Duration::from_millis(wait));
        running.kill().and_then(|()| running.wait()).expect("it runs");
    }
    let (code, said) = once(from.path(), port, "a secret");
    assert_eq!(code, Some(0), "{said}");
    for (name, bytes) in [("day=1/a", &b"one"[..]), ("large", &large), ("empty", b"")] {
        assert!(fs::read(bucket(name)).expect("it is there") == bytes, "{name}");
    }

    // The store goes away and comes back.
    drop(gateway);
    fs::write(from.path().join("late"), "two").expect("a file");
    let mut running = ship(from.path(), port, "a secret", &["--delete"]).spawn().expect("it starts");
    sleep(Duration::from_millis(500));
    let gateway = Gateway::start(store.path(), Some(port));
    let began = Instant::now();
    while from.path().join("late").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not shipped");
        sleep(Duration::from_millis(50));
    }
    assert_eq!(fs::read(bucket("late")).expect("it is there"), b"two");
    running.kill().and_then(|()| running.wait()).expect("it runs");

    // Somebody else's object stays.
    let theirs = tempfile::tempdir().expect("a directory");
    fs::write(theirs.path().join("x"), "theirs").expect("a file");
    assert_eq!(once(theirs.path(), port, "a secret").0, Some(0));
    fs::write(from.path().join("x"), "mine").expect("a file");
    let (code, said) = once(from.path(), port, "a secret");
    assert!(code == Some(1) && said.contains("holds something else"), "{said}");
    assert_eq!(fs::read(bucket("x")).expect("it is there"), b"theirs");
    drop(gateway);
}
