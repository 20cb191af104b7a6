//! Standard output whose writes are interrupted or refused for a moment: what arrives is what arrives otherwise.

use std::process::Command;

use crate::support::{Place, pcap, stderr, stdout, succeeds};

#[test]
fn writes_that_are_interrupted_or_would_wait_are_repeated() {
    let place = Place::new();
    let file = place.path("a.pcap");
    pcap(&file);
    for args in [
        &["read"][..],
        &["read", "--json"],
        &["read", "-w", "-"],
        &["info"],
        &["info", "--json"],
        &["stat", "--json", "-r"],
    ] {
        let expected = succeeds(args, &[&file]);
        for error in ["EINTR", "EAGAIN"] {
            // Every other write.
            let inject = format!("inject=write:error={error}:when=1+2");
            let mut strace = Command::new("strace");
            strace.args(["-f", "-o", "/dev/null", "-e", "trace=write", "-e", &inject]);
            strace.arg(env!("CARGO_BIN_EXE_weir")).args(args).arg(&file).env("TZ", "Asia/Kolkata");
            let output = strace.output().expect("strace is installed");
            assert_eq!(output.status.code(), Some(0), "{error} {args:?}: {}", stderr(&output));
            assert!(stdout(&output) == expected, "{error} {args:?}: {}", stdout(&output));
        }
    }
}
