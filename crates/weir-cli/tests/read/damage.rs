//! Files that are cut or damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use weir::writer::Format;

use crate::support::{EPOCH, Place, frames, judge, packets, pcap, stderr, stdout, succeeds, weir, write};

#[test]
fn what_is_whole_is_printed_and_the_place_is_told() {
    let place = Place::new();
    let [whole, cut] = ["a.pcap", "b.pcap"].map(|name| place.path(name));
    pcap(&whole);
    let bytes = fs::read(&whole).expect("a file");
    fs::write(&cut, &bytes[..5000]).expect("a file");
    let theirs = judge("tshark", &["-T", "fields", "-e", "frame.number", "-r"], &[&whole]);
    let output = weir(&["read"], &[&cut]);
    assert_eq!(output.status.code(), Some(1));
    let lines = stdout(&output).lines().count();
    assert!(lines > 20 && lines < theirs.lines().count());
    assert!(succeeds(&["read", "-c", &lines.to_string()], &[&whole]) == stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("b.pcap: at byte ") && said.contains(&format!("{lines} packets")), "{said}");
    assert!(said.contains("--repair"), "{said}");

    let output = weir(&["read", "--count"], &[&cut]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), format!("{lines}\n")));
}

#[test]
fn other_files_are_read_on() {
    let place = Place::new();
    let [whole, cut] = ["a.pcap", "b.pcap"].map(|name| place.path(name));
    let count = pcap(&whole);
    fs::write(&cut, &fs::read(&whole).expect("a file")[..5000]).expect("a file");
    let output = weir(&["read"], &[&cut, &whole]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).lines().filter(|line| !line.starts_with('\t')).count() > count);
    assert!(stderr(&output).contains("b.pcap: at byte "), "{}", stderr(&output));
}

#[test]
fn repair_saves_what_is_whole() {
    let place = Place::new();
    let [original, broken, mended] = ["a.pcapng", "b.pcapng", "c.pcapng"].map(|name| place.path(name));
    let frames = frames();
    let all: Vec<_> = (0..).zip(&frames).map(|(n, data)| (0, EPOCH + n, data.as_slice(), 0)).collect();
    write(&original, Format::Pcapng, &[("eth0", 1)], &all);
    let mut bytes = fs::read(&original).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 300].fill(0xff);
    bytes.truncate(bytes.len() - 7);
    fs::write(&broken, bytes).expect("a file");
    let output = weir(&["read", "--repair", "-w"], &[&mended, &broken]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lost: bytes ") && said.contains("bytes lost"), "{said}");
    let saved = packets(&mended);
    let before = packets(&original);
    assert!(
        saved.len() > before.len() - 20 && saved.len() < before.len(),
        "{} of {}",
        saved.len(),
        before.len()
    );
    // Heads of packets that were saved are those of the original.
    assert!(saved[..saved.len() - 1].iter().all(|head| before.contains(head)));
    succeeds(&["info"], &[&mended]);
    assert_eq!(fs::metadata(&mended).expect("it").permissions().mode() & 0o7777, 0o600);

    let output = weir(&["read", "--repair", "-w"], &[&mended, &broken]);
    assert_eq!(output.status.code(), Some(1), "an existing file is not touched");
}

/// Damage is the first thing that goes wrong, and is told, whatever becomes of standard output: full, or closed by its reader.
#[test]
fn damage_is_told_if_the_output_fails_too() {
    let place = Place::new();
    let cut = place.path("b.pcap");
    pcap(&cut);
    fs::write(&cut, &fs::read(&cut).expect("a file")[..5000]).expect("a file");
    for args in [
        &["read"][..],
        &["read", "--json"],
        &["read", "--count"],
        &["info"],
        &["info", "--json"],
        &["info", "--long"],
        &["stat", "--json", "-r"],
        &["stat", "--json", "--every", "1s", "-r"],
        &["top", "--json", "-r"],
    ] {
        let run = |output: Stdio| {
            let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
            let output = weir.args(args).arg(&cut).stdout(output).output().expect("weir runs");
            (output.status.code(), stderr(&output))
        };
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let (status, said) = run(full.into());
        let (damage, room) = (said.find("b.pcap: at byte "), said.find("o space left"));
        assert!(status == Some(1) && damage.is_some() && damage < room, "{args:?}: {said}");
        let (_, closed) = std::io::pipe().expect("a pipe");
        let (status, said) = run(closed.into());
        assert!(status == Some(1) && said.contains("b.pcap: at byte "), "{args:?}: {said}");
        assert!(!said.contains("roken pipe"), "{args:?}: {said}");
    }
}
