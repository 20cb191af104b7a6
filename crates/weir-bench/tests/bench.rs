//! `weir-bench`, in its shortest form: whether it measures, not how fast anything is.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_lab::root_test;

/// It fails where a frame is not as it was, not in its turn, or not in the account.
#[root_test]
fn root_forwarding_is_checked_frame_by_frame() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    let output = bench.args(["forward", "--check", "200ms"]).output().expect("run weir-bench");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(told.matches(" 0 wrong, 0 out of order\n").count(), 4, "{told}");
}

#[test]
fn filters_are_measured() {
    let report = short(&["filter", "--rounds", "1", "--quick"], Path::new(""));
    assert!(report["lengths"]["expressions"].as_u64() > Some(500), "{}", report["lengths"]);
    let speeds = report["speeds"].as_array().expect("speeds");
    assert!(!speeds.is_empty() && speeds.iter().all(|sample| sample["same_verdicts"] == true), "{speeds:?}");
    let compiled = report["compiling"].as_array().expect("compilations");
    assert!(compiled.iter().any(|sample| sample["hosts"] == 100_000), "{compiled:?}");
}

/// A compiler that changes the counting program: it counts every packet twice, and expects of a filter the opposite.
const WRONG_CC: &str = r#"#!/bin/sh
for word in "$@"; do
  case $word in
  *.c) sed -i 's/packets++/packets += 2/; s/number % 2 == 0/number % 2 == 1/' "$word" ;;
  esac
done
PATH=${PATH#*:}
exec cc "$@"
"#;

#[test]
fn wrong_answers_of_programs_on_libpcap_are_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let cc = dir.path().join("cc");
    fs::write(&cc, WRONG_CC).expect("a script");
    fs::set_permissions(&cc, fs::Permissions::from_mode(0o755)).expect("permissions");
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").expect("PATH"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench
        .args(["libpcap", "--quick", "--packets", "3000", "--only", "files,compile", "--dir"])
        .arg(dir.path());
    let output = bench.env("PATH", path).output().expect("run weir-bench");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches(r#"wrong packets: {"packets": 6000,"#).count(), 6, "{stderr}");
    assert_eq!(stderr.matches("the filter errs about 400 addresses").count(), 2, "{stderr}");
    assert!(stderr.contains("turns that failed or are wrong: 8"), "{stderr}");
}

#[test]
fn without_a_compiler_or_a_library_of_weir_nothing_is_compared() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = |bench: &mut Command| {
        let output = bench.output().expect("run weir-bench");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let bench = || {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
        bench.args(["libpcap", "--quick", "--only", "compile"]);
        bench
    };
    let no_compiler = refused(bench().env("PATH", dir.path()));
    assert!(no_compiler.contains("cannot find cc"), "{no_compiler}");
    assert!(no_compiler.contains("apt-get install gcc libc6-dev libpcap-dev"), "{no_compiler}");
    let no_library = refused(bench().args(["--library", "/no/such.so"]));
    assert!(no_library.contains("cannot use /no/such.so: "), "{no_library}");
    assert!(no_library.contains("cargo build --package weir-pcap"), "{no_library}");
    // A file that is no library: the loader takes the next one, the system's.
    let other = dir.path().join("other.so");
    fs::write(&other, "").expect("a file");
    let not_ours = refused(bench().arg("--library").arg(&other));
    assert!(not_ours.contains("does not run on weir"), "{not_ours}");
}

#[root_test]
fn root_wrong_lines_are_found() {
    let dir = tempfile::tempdir().expect("a folder");
    let weir = Path::new(env!("CARGO_BIN_EXE_weir-bench")).with_file_name("weir");
    // One that prints more lines than packets.
    let script = dir.path().join("weir");
    fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\" -x\n", weir.display())).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(["look", "--quick", "--duration", "50ms", "--only", "lone,terminal", "--weir"]).arg(&script);
    let output = bench.output().expect("run weir-bench");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.matches("a wrong line: ").count(), 2, "{stderr}");
    assert_eq!(stderr.matches(" not printed of ").count(), 2, "{stderr}");
    assert!(stderr.contains("turns that failed or are wrong: 4"), "{stderr}");
}

#[test]
fn without_the_program_it_says_where_that_was_looked_for() {
    let dir = tempfile::tempdir().expect("a folder");
    let alone = dir.path().join("weir-bench");
    fs::copy(env!("CARGO_BIN_EXE_weir-bench"), &alone).expect("a copy");
    let bench = |words: &[&str]| {
        let output = Command::new(&alone).args(words).output().expect("run weir-bench");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let beside = bench(&["read", "--packets", "1", "--quick"]);
    assert!(beside.contains(&format!("cannot run {}: ", dir.path().join("weir").display())), "{beside}");
    assert!(beside.contains("; try cargo build --package weir-cli, or --weir PATH"), "{beside}");
    let named = bench(&["capture", "--quick", "--weir", "/no/such/weir"]);
    assert!(named.contains("cannot run /no/such/weir: "), "{named}");
}

/// One of the shorter benchmarks, and what it reports; `dir` is added to the words if there is one.
fn short(words: &[&str], dir: &Path) -> Value {
    let place = tempfile::tempdir().expect("a folder");
    let json = place.path().join("bench.json");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir-bench"));
    bench.args(words).args(Some(dir).filter(|dir| !dir.as_os_str().is_empty()));
    let output = bench.arg("--json").arg(&json).output().expect("run weir-bench");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&fs::read_to_string(&json).expect("JSON")).expect("valid JSON")
}
