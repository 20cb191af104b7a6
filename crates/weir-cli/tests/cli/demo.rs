//! `weir demo`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use weir_lab::root_test;

use crate::harness::weir;

#[root_test]
fn root_the_demo_succeeds_and_leaves_the_file_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let before = namespaces();
    let output = weir(&["demo", "--dir"]).arg(directory.path()).output().expect("weir runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let left: Vec<_> = fs::read_dir(&directory).expect("the directory").flatten().collect();
    let [private] = &left[..] else { panic!("{left:?}") };
    assert_eq!(private.metadata().expect("a directory").permissions().mode() & 0o7777, 0o700);
    let files: Vec<_> = fs::read_dir(private.path()).expect("root may").flatten().collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let name = file.path().display().to_string();
    let (info, read) = (format!("$ weir info {name}\n"), format!("$ weir read -c 5 {name}\n"));
    for part in
        ["Nothing lost", "0 packets dropped by kernel", "the burst and", "tshark", "tcpdump", &info, &read]
    {
        assert!(text.contains(part), "`{part}`: {text}");
    }
    let lines = text.split_once(&read).expect("it is there").1.replace(" In  IP", " IP");
    let lines = lines.lines();
    let tcpdump =
        Command::new("tcpdump").args(["-nn", "-c", "5", "-r", &name]).output().expect("tcpdump runs");
    assert_eq!(
        lines.take(5).collect::<Vec<_>>(),
        stdout(&tcpdump).lines().collect::<Vec<_>>(),
        "as tcpdump has them"
    );
    assert_eq!(namespaces(), before, "namespaces with names");
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn namespaces() -> usize {
    fs::read_dir("/run/netns").map_or(0, Iterator::count)
}
