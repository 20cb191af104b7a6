//! Files of weir are converted in the hope that they are in the order of time; where they are not, all begins again.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use weir::writer::{Writer, WriterOptions};
use weir::{CaptureStats, FileInterface};

use crate::support::{EPOCH, Place, judge, packet, stderr, succeeds, weir};

/// Together they are some pieces of what a writer gathers, so that there is something in the file to be taken back.
const PACKETS: u64 = 5_000;

/// A file of two interfaces of two queues each; `time` of each packet by its number, in microseconds.
fn file(place: &Place, name: &str, time: impl Fn(u64) -> u64) -> PathBuf {
    let path = place.path(name);
    let data: Vec<u8> = (0..1000).map(|n| u8::try_from(n % 251).expect("small")).collect();
    let packets: Vec<_> = (0..PACKETS)
        .map(|n| {
            // Runs of a hundred.
            let lane = u32::try_from(n / 100 % 4).expect("small");
            weir::with!(packet(EPOCH + time(n) * 1000, &data), interface = lane % 2, queue = lane / 2)
        })
        .collect();
    let interface =
        |name: &str| weir::with!(FileInterface::new(1), name = Some(name.to_owned()), snap_len = 262_144);
    let options = weir::with!(WriterOptions::default(), user_application = "weir 0.1.0".to_owned());
    let mut writer =
        Writer::create(&path, &[interface("eth0"), interface("eth1")], &options).expect("a file");
    packets.iter().for_each(|packet| writer.packet(packet).expect("a packet"));
    writer.finish(&CaptureStats::default()).1.expect("whole");
    path
}

fn is_strict(path: &Path) -> bool {
    let table = judge("capinfos", &["-M", "-T", "-r", "-o"], &[path]);
    table.trim().ends_with("\tTrue")
}

fn held(path: &Path) -> usize {
    let table = judge("capinfos", &["-M", "-T", "-r", "-c"], &[path]);
    table.trim().rsplit('\t').next().and_then(|field| field.parse().ok()).expect("a number")
}

/// Bytes that weir has read meanwhile, as the kernel counts them, and what it has said.
fn bytes_read(args: &[&Path]) -> u64 {
    let counted = ["-c", "\"$@\" && cat /proc/$$/io", "sh", env!("CARGO_BIN_EXE_weir"), "read", "-q", "-w"];
    let told = judge("sh", &counted, args);
    let field = told.lines().find_map(|line| line.strip_prefix("rchar: "));
    field.and_then(|bytes| bytes.parse().ok()).expect("Linux counts what is read")
}

#[test]
fn what_is_in_order_is_read_once() {
    let place = Place::new();
    let (sorted, other) = (file(&place, "a.pcapng", |n| n), file(&place, "b.pcapng", |n| n / 2 * 2));
    let out = place.path("out.pcapng");
    let size = sorted.metadata().expect("a file").len();
    let read = bytes_read(&[&out, &sorted]);
    assert!((size..size * 3 / 2).contains(&read), "{read} of {size}");
    assert_eq!(held(&out), 5_000);
    let read = bytes_read(&[&out, &sorted, &other]);
    assert!((2 * size..size * 3).contains(&read), "{read} of {size} and {size}");
    assert_eq!((held(&out), is_strict(&out)), (10_000, true));
    // What cannot be taken back is looked at before.
    symlink(&out, &place.path("link.pcapng"));
    let read = bytes_read(&[&place.path("link.pcapng"), &sorted]);
    assert!(read >= 2 * size, "{read} of {size}");
}

fn symlink(to: &Path, path: &Path) {
    std::os::unix::fs::symlink(to, path).expect("a link");
}

#[test]
fn at_the_first_packet_that_is_late_all_begins_again() {
    let place = Place::new();
    let last = PACKETS - 1;
    let in_run = file(&place, "run.pcapng", |n| if n == 2_550 { 2_000 } else { n });
    let at_end = file(&place, "end.pcapng", move |n| if n == last { 0 } else { n });
    let between = file(&place, "between.pcapng", |n| if n / 100 % 2 == 1 { n - 100 } else { n });
    let sorted = file(&place, "sorted.pcapng", |n| n * 3 / 4);
    let later = file(&place, "later.pcapng", |n| n + 100);
    let sections = place.path("sections.pcapng");
    fs::write(&sections, [&later, &sorted].map(|path| fs::read(path).expect("a file")).concat())
        .expect("a file");
    let inputs: [&[&Path]; 5] =
        [&[&in_run], &[&at_end], &[&between], &[&sections], &[&sorted, &at_end, &later]];
    for (input, name) in
        inputs.iter().flat_map(|input| ["a.pcapng", "a.pcapng.zst", "a.pcap"].map(|name| (input, name)))
    {
        let out = place.path(name);
        // Longer than what will be in it, and open to others, who are kept from it.
        fs::write(&out, vec![0; 20 << 20]).expect("a file");
        fs::set_permissions(&out, fs::Permissions::from_mode(0o644)).expect("it is ours");
        let before = out.metadata().expect("a file");
        let format = if name.ends_with(".pcap") { "--format=pcap" } else { "--format=pcapng" };
        // Standard output is looked at before.
        let looked = weir(&["read", format, "-w", "-"], input);
        let hoped = weir(&["read", "-w"], &[&[&*out], *input].concat());
        assert_eq!((looked.status.code(), hoped.status.code()), (Some(0), Some(0)), "{}", stderr(&hoped));
        assert!(is_strict(&out), "{input:?}");
        let packets = input.len() * 5_000 * if *input == [&*sections] { 2 } else { 1 };
        assert_eq!(held(&out), packets, "{input:?}");
        let said = stderr(&hoped);
        let (notes, told) = said.trim_end().rsplit_once('\n').unwrap_or_else(|| ("", said.trim_end()));
        assert_eq!(notes, stderr(&looked).trim_end(), "{input:?}");
        let expected = format!("{} packets, ", packets / 1000).replace(" packets", ",000 packets");
        assert!(told.starts_with(&expected), "{told}");
        let bytes = fs::read(&out).expect("a file");
        let plain = if name.ends_with(".zst") {
            let plain = place.path("plain.pcapng");
            judge("zstd", &["-q", "-d", "-f", "-o"], &[&plain, &out]);
            fs::read(plain).expect("a file")
        } else {
            bytes
        };
        assert!(plain == looked.stdout, "{input:?} {name}");
        let there = out.metadata().expect("a file");
        assert_eq!((there.ino(), there.mode() & 0o777), (before.ino(), 0o600));
    }
}

/// What was filtered out need be in no order; the first so many in the order of time are not those that stand first.
#[test]
fn what_is_chosen_counts() {
    let place = Place::new();
    let between = file(&place, "between.pcapng", |n| if n / 100 % 2 == 1 { n - 100 } else { n });
    let out = place.path("out.pcapng");
    succeeds(&["read", "-c", "150", "-w"], &[&out, &between]);
    assert_eq!((held(&out), is_strict(&out)), (150, true));
    let looked = weir(&["read", "-c", "150", "-w", "-"], &[&between]);
    assert!(fs::read(&out).expect("a file") == looked.stdout);

    // What is out of order is none of those.
    let early = file(&place, "early.pcapng", |n| if n == 150 { 10 } else { n });
    let later = file(&place, "later.pcapng", |n| PACKETS + n);
    let said = stderr(&weir(&["read", "--from", "+500us", "-w"], &[&out, &early, &later]));
    assert!(!said.contains("out of order") && is_strict(&out), "{said}");
}

/// A file that is full the second time.
#[test]
fn a_failure_is_that_of_the_second_attempt() {
    let place = Place::new();
    let unsorted = file(&place, "a.pcapng", |n| if n == 1_500 { 0 } else { n });
    let out = place.path("out.pcapng");
    let limited = ["--ignore-signal=XFSZ", "prlimit", "--fsize=3000000", env!("CARGO_BIN_EXE_weir")];
    let mut command = Command::new("env");
    let output = command.args(limited).args(["read", "-w"]).args([&out, &unsorted]).output().expect("env");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let packets = held(&out);
    assert!(packets > 2_000 && is_strict(&out), "{packets}");
    let told = said.lines().find(|line| line.contains(" -> ")).unwrap_or_else(|| panic!("{said}"));
    assert!(told.replace(',', "").starts_with(&format!("{packets} packets")), "{packets}: {said}");
}
