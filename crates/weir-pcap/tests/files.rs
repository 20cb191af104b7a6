//! Runs the C programs about handles, files and filters on both libraries: see `conformance.rs`.

mod programs;

use std::path::PathBuf;

use programs::{Difference, Program};

/// The differences that the programs without any accept.
const NONE: &[Difference] = &[];

/// Returns the capture files of the repository that libpcap's formats have, and that are not compressed.
fn corpus() -> Vec<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = directory.read_dir().expect("the corpus");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng"));
    assert!(files.len() > 20, "{files:?}");
    files.sort();
    files
}

/// Runs a program on both libraries, with the files of the corpus as arguments.
fn compare_on_corpus(name: &'static str) {
    Program::compile(name).compare_by(NONE, |command| command.args(corpus()).output().expect("it starts"));
}

#[test]
fn handles() {
    Program::compile("handles")
        .compare(&[Difference { line: "version libpcap version 1.10.3", why: "the text names weir, too" }]);
}

#[test]
fn savefiles() {
    compare_on_corpus("savefiles");
}

#[test]
fn loops() {
    Program::compile("loops").compare(NONE);
}

#[test]
fn dumping() {
    compare_on_corpus("dumping");
}

#[test]
fn filters() {
    Program::compile("filters").compare(NONE);
}
