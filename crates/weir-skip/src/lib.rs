//! Tests that cannot run on this machine: they report that and pass, or fail where all tests must run. Below all crates.

#![forbid(unsafe_code)]

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::thread;

/// Reports that `test` does not run here, and why.
///
/// # Panics
///
/// If the environment requires all tests to run: `WEIR_REQUIRE_ROOT=1` or `CI=true`.
pub fn unless_required(test: &str, reason: impl Display) {
    assert!(!required(|name| env::var(name).ok()), "{test} must not be skipped: {reason}");
    report(test, reason);
}

/// Like [`unless_required`], for the test that the calling thread runs: the harness names the thread after it.
///
/// # Panics
///
/// See [`unless_required`].
pub fn this_test(reason: impl Display) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("a test");
    unless_required(name.rsplit("::").next().unwrap_or(name), reason);
}

/// Reports that `test` does not run here, and why, whatever the environment requires. The report goes to standard
/// error, bypassing the harness, which captures a test's output, and is a line in the file that `WEIR_SKIPS` names.
///
/// # Panics
///
/// If that file cannot be written.
pub fn report(test: &str, reason: impl Display) {
    // One call per line: several processes write there.
    let line = format!("{test}: {reason}\n");
    // A closed standard error is no reason to fail: nobody is listening.
    let _nobody_left = io::stderr().write_all(format!("SKIP: {line}").as_bytes());
    let Some(path) = env::var_os("WEIR_SKIPS").filter(|path| !path.is_empty()) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("write to {} (WEIR_SKIPS): {error}", path.display()));
}

fn required(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable("WEIR_REQUIRE_ROOT").as_deref() == Some("1") || variable("CI").as_deref() == Some("true")
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::{env, fs};

    use super::{required, this_test};

    #[test]
    fn one_or_true_and_nothing_else_has_every_test_run() {
        let wanted = |root: Option<&str>, ci: Option<&str>| {
            required(|name| if name == "CI" { ci } else { root }.map(str::to_owned))
        };
        for (root, ci) in
            [(Some("1"), None), (None, Some("true")), (Some("0"), Some("true")), (Some("1"), Some("false"))]
        {
            assert!(wanted(root, ci), "{root:?} {ci:?}");
        }
        for (root, ci) in
            [(None, None), (Some("0"), None), (Some(""), Some("")), (None, Some("1")), (Some("0"), Some("0"))]
        {
            assert!(!wanted(root, ci), "{root:?} {ci:?}");
        }
    }

    /// Set for the process that runs [`child`].
    const REASON: &str = "WEIR_SKIP_REASON";

    /// Not a test by itself; run as one, it does nothing. The next test starts it in a process of its own.
    #[test]
    fn child() {
        if let Ok(reason) = env::var(REASON) {
            this_test(reason);
        }
    }

    #[test]
    fn a_skipped_test_is_told_on_standard_error_and_in_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("skips");
        let run = |root: &str| {
            let mut command = Command::new(env::current_exe().expect("this program"));
            command.args(["--exact", "tests::child"]).env(REASON, "no moon").env("WEIR_SKIPS", &file);
            command.env("WEIR_REQUIRE_ROOT", root).env_remove("CI").output().expect("it runs")
        };
        for lines in ["child: no moon\n", "child: no moon\nchild: no moon\n"] {
            let output = run("0");
            assert!(output.status.success());
            assert!(String::from_utf8_lossy(&output.stderr).contains("SKIP: child: no moon\n"), "{output:?}");
            assert_eq!(fs::read_to_string(&file).expect("it is written"), lines);
        }
        let output = run("1");
        assert!(!output.status.success());
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("child must not be skipped: no moon"),
            "{output:?}"
        );
    }
}
