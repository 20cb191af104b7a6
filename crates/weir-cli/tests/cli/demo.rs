//! `weir demo`.

use std::fs;

use weir_lab::require_root;

use crate::harness::weir;

#[test]
fn root_the_demo_succeeds_and_leaves_the_file_only() {
    if !require_root("root_the_demo_succeeds_and_leaves_the_file_only") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let before = namespaces();
    let output = weir(&["demo", "--dir"]).arg(directory.path()).output().expect("weir runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in
        ["Nothing lost", "0 packets dropped by kernel", "the burst and", "capinfos", "tshark", "tcpdump"]
    {
        assert!(text.contains(part), "`{part}`: {text}");
    }
    let left: Vec<_> = fs::read_dir(&directory).expect("the directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(namespaces(), before, "namespaces with names");
}

fn namespaces() -> usize {
    fs::read_dir("/run/netns").map_or(0, Iterator::count)
}
