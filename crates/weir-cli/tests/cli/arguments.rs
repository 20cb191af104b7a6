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
        "manual",
        "read",
        "run",
        "stat",
        "top",
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
        "stat",
        "top",
    ] {
        for columns in ["80", "100"] {
            let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
            let help = weir.args([command, "-h"]).env("COLUMNS", columns).output().expect("run weir");
            assert_eq!(help.status.code(), Some(0), "{command}");
            let text = String::from_utf8_lossy(&help.stdout);
            assert!(text.lines().count() <= 68, "{columns} columns: {text}");
        }
    }
}

#[test]
fn usage_errors_name_the_option_and_exit_with_2() {
    let table: [(&[&str], &[&str]); 56] = [
        (&[], &["Usage"]),
        (&["forward", "a,b"], &["two words", "forward a b"]),
        (&["forward", "a,b", "tcp", "port", "80"], &["forward a b tcp port 80"]),
        (&["forward", "a"], &["OUT is missing"]),
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
        (&["capture", "--sample", "1/0"], &["--sample", "`1/0`", "one in 0 is none", "try 1/100"]),
        (&["count", "--sample", "flow:3"], &["--sample", "`flow:3`", "not one in N", "try flow:1/3"]),
        (&["capture", "--sample", "p=2"], &["--sample", "probability 2", "at most 1", "try p=0.01"]),
        (&["capture", "--sample", "-1/3"], &["--sample", "`-1/3`", "try 1/3"]),
        (&["capture", "-i", "lo", "--source", "af_packet", "--no-own"], &["--no-own", "af_packet", "marks"]),
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
        (&["stat", "-r", "f", "-i", "lo"], &["--read <FILE>", "cannot be used with", "--interface <IF>"]),
        (&["stat", "-r", "f", "--duration", "1s"], &["--read <FILE>", "--duration <TIME>"]),
        (&["stat", "-r", "f", "--source", "tc"], &["--read <FILE>", "--source"]),
        (&["read", "f", "--stream", "sctp:1"], &["--stream", "try 0, udp:0, 10.0.0.1:4321-10.0.0.2:80"]),
        (&["read", "f", "--stream", "0", "-w", "g"], &["as a capture file", "add --raw"]),
        (&["read", "f", "--stream", "0", "--raw"], &["-w - is standard output"]),
        (&["read", "f", "--hex"], &["without --stream", "with text -X"]),
        (&["read", "f", "--stream", "0", "--json"], &["--stream <STREAM>", "--json"]),
        (&["top", "-r", "f", "-i", "lo"], &["--read <FILE>", "--interface <IF>"]),
        (&["top", "tcp", "prot", "5"], &["did you mean `port`?"]),
        (&["stat", "-r", "-", "-F", "-"], &["standard input (-) can be read only once"]),
        (&["stat", "-r", "f", "Cargo.toml"], &["`Cargo.toml` is a file", "an -r of its own"]),
        (&["stat", "-r", "f", "a: udp", "a: tcp"], &["cannot count two filters called `a`"]),
        (&["stat", "-r", "f", "udp prot 5"], &["did you mean `port`?"]),
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
fn a_filter_without_dashes_is_answered_with_the_command_to_copy() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("a.pcap");
    // A header: little-endian, version 2.4, 65535 bytes, Ethernet.
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1_u32];
    std::fs::write(&file, header.map(u32::to_le_bytes).concat()).expect("room");
    let output = weir(&["read", &file.display().to_string(), "-n", "port", "53"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    let command = text.split("after --: ").nth(1).expect(&text).trim();
    assert!(command.ends_with("/a.pcap -n -- port 53"), "{command}");
    let pasted = Command::new("sh").args(["-c", command]).output().expect("sh runs");
    assert!(pasted.status.success(), "{}", stderr(&pasted));
}

#[test]
fn an_interface_may_have_the_name_of_an_option() {
    let text = stderr(&weir(&["capture", "-i", "-x"]));
    assert!(text.contains("no interface named `-x`") && !text.contains("-- -x"), "{text}");
    let text = stderr(&weir(&["count", "-i", "lo,none-such"]));
    assert!(text.contains("no interface named `none-such`"), "two interfaces: {text}");
}

/// A file that may grow to less than the script: the last piece of it, too, is written or missed.
#[test]
fn an_end_that_does_not_fit_on_standard_output_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("script");
    for shell in ["bash", "zsh", "fish"] {
        let script = weir(&["completions", shell]).stdout;
        let blocks = (script.len() - 1) / 512;
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_weir"), "completions", shell]);
        let output = command.stdout(std::fs::File::create(&path).expect("a file")).output().expect("sh runs");
        assert_eq!(std::fs::read(&path).expect("a file"), script[..blocks * 512], "{shell}");
        assert_eq!(output.status.code(), Some(1), "{shell}");
        let message = "weir: cannot write to standard output: File too large (os error 27)\n";
        assert_eq!(stderr(&output), message, "{shell}");
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
    let zsh = String::from_utf8(weir(&["completions", "zsh"]).stdout).expect("text");
    for name in ["interfaces", "namespaces", "captures"] {
        assert!(
            zsh.contains(&format!(":_weir_{name}' \\")) && zsh.contains(&format!("\n_weir_{name}() {{")),
            "{name}"
        );
    }
    assert!(zsh.starts_with("#compdef weir\n") && !zsh.contains(":IF:_default"), "{zsh}");
    let fish = String::from_utf8(weir(&["completions", "fish"]).stdout).expect("text");
    assert!(fish.contains("-s '#' -l number"), "{fish}");
    let interfaces: Vec<_> = fish.lines().filter(|line| line.contains("-l interface ")).collect();
    assert_eq!(
        interfaces.len(),
        10,
        "weir itself, capture, count, doctor, flows, gen, guard, replay, stat, top"
    );
    assert!(interfaces.iter().all(|line| line.ends_with("-x -a \"(__weir_interfaces)\"")), "{interfaces:?}");
}

/// What bash itself completes `words` to, of which the last is incomplete.
fn completed(words: &[&str]) -> Vec<String> {
    completed_by(Command::new("bash"), words)
}

/// The same with a command that ends in `bash`.
fn completed_by(mut bash: Command, words: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("weir");
    std::fs::write(&script, weir(&["completions", "bash"]).stdout).expect("a file");
    let complete = r#"
        . "$0"
        spec=$(complete -p weir)
        [[ $spec =~ -F\ ([a-z_]+) ]] || exit 9
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "${BASH_REMATCH[1]}" weir "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    bash.args(["-c", complete]).arg(&script).args(words);
    // `weir ctl list` is this program's.
    let ours = std::path::Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a directory");
    let path = format!("{}:{}", ours.display(), std::env::var("PATH").expect("a path"));
    let output = bash.env("PATH", path).output().expect("bash is there");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_options_and_interfaces() {
    assert_eq!(completed(&["weir", "capture", "--snap"]), ["--snapshot-length"]);
    assert_eq!(completed(&["weir", "capture", "-i", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "count", "--interface", "an"]), ["any"]);
    assert_eq!(completed(&["weir", "devices", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "devices", "eth0", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "devices", "eth0", "--js"]), ["--json"]);
    assert_eq!(completed(&["weir", "forward", "eth0", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "replay", "f.pcap", "-i", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "gen", "-i", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "-i", "an"]), ["any"], "it captures");
    assert_eq!(completed(&["weir", "-n", "-i", "l"]), ["lo"]);
    assert_eq!(completed(&["weir", "-n", "--snap"]), ["--snapshot-length"]);
    assert_eq!(completed(&["weir", "-r", "f.pcap", "--split"]), ["--split-by"], "it reads");
    assert_eq!(completed(&["weir", "--vers"]), ["--version"]);
    assert_eq!(completed(&["weir", "doctor", "-i", "an"]), [""; 0], "it takes no `any`");
    assert_eq!(completed(&["weir", "capture", "-i", "no-such"]), [""; 0]);
}

#[weir_lab::root_test]
fn root_bash_completes_namespaces() {
    let mut bash = Command::new("unshare");
    // A /run that nobody else sees.
    let script =
        "mount -t tmpfs none /run && mkdir /run/netns && touch /run/netns/web /run/netns/db && exec \"$@\"";
    bash.args(["--mount", "sh", "-c", script, "sh", "bash"]);
    assert_eq!(completed_by(bash, &["weir", "capture", "--netns", ""]), ["db", "web"]);
}

#[weir_lab::root_test]
fn root_bash_never_executes_a_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let bash = |script: &str| {
        let mut bash = Command::new("unshare");
        bash.args(["--net", "--mount", "sh", "-ec", &format!("{script}; exec \"$@\""), "sh", "bash"]);
        bash.current_dir(directory.path());
        bash
    };
    let interface = || bash("mount -t sysfs none /sys; ip link add 'x$(id>inj)' type veth peer name 'x*'");
    let namespace = || bash("mount -t tmpfs none /run; mkdir /run/netns; touch '/run/netns/x$(id>inj)'");
    // What is inserted means the name itself.
    let quoted = r"x\$\(id\>inj\)";
    assert_eq!(completed_by(interface(), &["weir", "capture", "-i", "x"]), [quoted, r"x\*"]);
    assert_eq!(completed_by(interface(), &["weir", "capture", "-i", r"x\$"]), [quoted], "what Tab inserted");
    assert_eq!(completed_by(namespace(), &["weir", "capture", "--netns", ""]), [quoted]);
    assert!(!directory.path().join("inj").exists(), "a name was executed");
}

#[weir_lab::root_test]
fn root_bash_completes_running_captures() {
    let network = crate::harness::network();
    let running = crate::harness::start(&network, &["count", "-i", "rx0"]);
    let process = running.id().to_string();
    assert!(completed(&["weir", "ctl", "status", "-t", ""]).contains(&process), "{process}");
    running.interrupt().succeeded();
}

/// `weir capture lo` is what many expect to work.
#[test]
fn a_filter_that_is_an_interface_is_answered_with_the_option() {
    for (command, word, meant) in
        [("capture", "lo", "-i lo"), ("count", "lo@0-3", "-i lo@0-3"), ("stat", "lo", "-i lo")]
    {
        let output = weir(&[command, word]);
        let text = stderr(&output);
        let again = format!("weir {command} {meant}\n");
        assert!(text.contains("hint: if the interface lo is meant: ") && text.ends_with(&again), "{text}");
        assert_eq!(output.status.code(), Some(2), "{text}");
    }
    let text = stderr(&weir(&["top", "Cargo.toml"]));
    assert!(
        text.ends_with(
            "hint: Cargo.toml is a file: read it with weir read, weir flows -r, weir stat -r or weir top -r\n"
        ),
        "{text}"
    );
    let output = weir(&["capture", "-b", "filesize:100"]);
    let text = stderr(&output);
    assert!(text.contains("filesize:100 is no filter\nhint: to begin a new file: -C "), "{text}");
}
