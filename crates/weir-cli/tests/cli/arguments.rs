//! What the command line says of itself and what it refuses; needs no privilege.

use std::process::{Command, Output};

fn weir(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).output().expect("run weir")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn version_and_help_succeed_and_teach() {
    let version = weir(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&version.stdout), concat!("weir ", env!("CARGO_PKG_VERSION"), "\n"));
    for command in [
        "capture",
        "completions",
        "count",
        "demo",
        "devices",
        "doctor",
        "filter",
        "info",
        "libpcap",
        "read",
        "run",
    ] {
        let help = weir(&[command, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{command}");
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(text.contains("Example") && text.contains(&format!("weir {command}")), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(110), "{widest:?}");
    }
}

#[test]
fn the_short_help_fits_a_screen() {
    for command in [
        "capture",
        "completions",
        "count",
        "ctl",
        "demo",
        "devices",
        "doctor",
        "filter",
        "info",
        "libpcap",
        "read",
        "run",
    ] {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        let help = weir.args([command, "-h"]).env("COLUMNS", "100").output().expect("run weir");
        assert_eq!(help.status.code(), Some(0), "{command}");
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(text.lines().count() <= 60, "{text}");
    }
}

#[test]
fn usage_errors_name_the_option_and_exit_with_2() {
    let table: [(&[&str], &[&str]); 34] = [
        (&[], &["Usage"]),
        (&["captrue"], &["captrue", "capture"]),
        (&["capture", "--no-such"], &["--no-such"]),
        (&["libpcap"], &["<DIR>"]),
        (&["run"], &["PROGRAM", "weir run [OPTIONS] [--] PROGRAM"]),
        (&["run", "--no-such", "tcpdump"], &["--no-such"]),
        (&["capture", "-c", "0"], &["--count", "whole number of at least 1"]),
        (&["capture", "-c", "-5"], &["--count", "whole number of at least 1"]),
        (&["capture", "-c", "many"], &["--count"]),
        (&["capture", "-s", "-1"], &["--snapshot-length", "1 to 262144"]),
        (&["capture", "--chunks", "0"], &["--chunks"]),
        (&["capture", "--chunk-size", "0"], &["--chunk-size", "zero", "allowed"]),
        (&["capture", "--chunk-size", "-4K"], &["--chunk-size", "negative", "allowed"]),
        (&["capture", "--chunk-size", "8E"], &["--chunk-size", "unknown unit `E`", "KiB"]),
        (&["capture", "-B", "64"], &["--buffer-size", "64KiB", "64MiB"]),
        (&["capture", "-B", "99999999999T"], &["--buffer-size", "too large"]),
        (&["capture", "-B", "1MiB", "--chunks", "4"], &["--buffer-size", "--chunks"]),
        (&["capture", "--duration", "5"], &["--duration", "5s", "5ms"]),
        (&["capture", "--source", "pfring"], &["--source", "af_packet"]),
        (&["capture", "-w", "f", "--micro"], &["--micro", "--format pcap"]),
        (&["capture", "-w", "f", "--format", "pcap", "--comment", "x"], &["--comment", "pcapng"]),
        (&["capture", "-i", "lo", "--source", "xdp", "-Q", "out"], &["xdp", "-Q out"]),
        (&["capture", "-i", "lo", "--source", "af_packet", "--mode", "exclusive"], &["af_packet", "host"]),
        (&["capture", "-i", "lo", "--source", "tc", "--mode", "exclusive"], &["tc", "host"]),
        (&["capture", "-i", "lo", "--source", "af_xdp"], &["af_xdp", "--mode exclusive"]),
        (&["capture", "-i", "lo", "-i", "lo"], &["lo", "twice"]),
        (&["count", "--interval", "0s"], &["--interval", "zero"]),
        (&["count", "--handlers", "2", "--order", "time"], &["--order time", "one thread", "--handlers"]),
        (&["count", "--handlers", "2", "--order", "flow"], &["--order flow", "--advanced"]),
        (&["capture", "--order", "flow"], &["--order flow", "weir count"]),
        (&["capture", "--window", "5ms"], &["--window", "--order time"]),
        (&["count", "--steer", "flow"], &["--handlers"]),
        (&["count", "--handlers", "2", "--steer", "hash"], &["--steer", "round-robin"]),
        (
            &["count", "-i", "lo", "--source", "af_packet", "--handlers", "1", "--steer", "flow"],
            &["--steer", "xdp and tc"],
        ),
    ];
    for (args, expected) in table {
        let output = weir(args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        for part in expected {
            assert!(text.contains(part), "{args:?} should say `{part}`: {text}");
        }
    }
}

#[test]
fn completions_are_scripts_that_know_the_options() {
    for (shell, option) in
        [("bash", "--snapshot-length"), ("zsh", "--snapshot-length"), ("fish", "-l snapshot-length")]
    {
        let output = weir(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains(option), "{shell}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("weir");
    std::fs::write(&script, weir(&["completions", "bash"]).stdout).expect("a file");
    // What bash itself makes of `weir capture --snap<Tab>`.
    let complete = format!(
        ". {}; COMP_WORDS=(weir capture --snap); COMP_CWORD=2; _weir weir --snap capture; echo ${{COMPREPLY[@]}}",
        script.display()
    );
    let output = Command::new("bash").args(["-c", &complete]).output().expect("bash is there");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--snapshot-length\n", "{}", stderr(&output));
}
