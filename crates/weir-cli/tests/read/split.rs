//! One file into several.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir::writer::Format;

use crate::support::{EPOCH, Place, frames, judge, pcap, succeeds, write};

/// Packets of each file, as capinfos counts them.
fn count(place: &Place, names: &[String]) -> Vec<u64> {
    let paths: Vec<PathBuf> = names.iter().map(|name| place.path(name)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let lines = judge("capinfos", &["-M", "-T", "-r", "-c"], &paths);
    let number = |line: &str| line.rsplit('\t').next().and_then(|field| field.parse().ok());
    let counts: Vec<u64> = lines.lines().filter_map(number).collect();
    assert_eq!(counts.len(), names.len(), "{lines}");
    counts
}

/// Splits all frames; gives the new files with their packets.
fn split(place: &Place, by: &str) -> Vec<(String, u64)> {
    let original = place.path("all.pcap");
    let packets = pcap(&original) as u64;
    succeeds(&["read", "--split-by", by, "-w"], &[&place.path("part.pcap"), &original]);
    let names: Vec<_> = place.names().into_iter().filter(|name| name.starts_with("part-")).collect();
    let counts = count(place, &names);
    let files: Vec<_> = names.into_iter().zip(counts).collect();
    assert_eq!(files.iter().map(|(_, packets)| packets).sum::<u64>(), packets, "{files:?}");
    files
}

#[test]
fn by_count() {
    let place = Place::new();
    let files = split(&place, "count:50");
    assert_eq!(files[0], ("part-00001.pcap".to_owned(), 50));
    assert!(files[..files.len() - 1].iter().all(|(_, packets)| *packets == 50), "{files:?}");
}

#[test]
fn by_time() {
    let place = Place::new();
    let files = split(&place, "time:20ms");
    assert!(files[..files.len() - 1].iter().all(|(_, packets)| *packets == 20), "{files:?}");
}

#[test]
fn by_size() {
    let place = Place::new();
    let files = split(&place, "size:2KB");
    assert!(files.len() > 4, "{files:?}");
    for (name, packets) in files {
        let size = std::fs::metadata(place.path(&name)).expect("a file").len();
        assert!(size <= 2_000 || packets == 1, "{name}: {size}");
    }
}

/// As many packets as fit, and no more, headers included.
#[test]
fn by_size_to_the_brim() {
    let place = Place::new();
    let packets: Vec<_> = (0..3_000).map(|n| (0, EPOCH + n, &[7; 100][..], u64::from(n % 7 == 0))).collect();
    let file = place.path("all.pcapng");
    write(&file, Format::Pcapng, &[("eth0", 1)], &packets);
    for (name, most) in [("a.pcapng", 156), ("b.pcap", 116)] {
        succeeds(&["read", "--split-by", "size:100KB", "-w"], &[&place.path(name), &file]);
        let names: Vec<_> = place
            .names()
            .into_iter()
            .filter(|other| other.starts_with(&name[..2].replace('.', "-")))
            .collect();
        assert!(names.len() > 3, "{names:?}");
        for part in &names[..names.len() - 1] {
            let size = std::fs::metadata(place.path(part)).expect("a file").len();
            assert!((100_000 - most + 1..=100_000).contains(&size), "{part}: {size}");
        }
        assert_eq!(count(&place, &names).iter().sum::<u64>(), 3_000);
    }
}

/// Each conversation in one file: as many as tshark finds by both ends and protocol.
#[test]
fn by_flow() {
    let place = Place::new();
    let files = split(&place, "flow");
    // One run of tshark over all, which tells files apart as interfaces.
    let (paths, merged) = (files.iter().map(|(name, _)| place.path(name)), place.path("merged.pcapng"));
    let paths: Vec<PathBuf> = [merged.clone()].into_iter().chain(paths).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    judge("mergecap", &["-a", "-I", "none", "-F", "pcapng", "-w"], &paths);
    let fields = ["frame.interface_id", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport"];
    let fields = fields.iter().flat_map(|field| ["-e", *field]);
    let letters: Vec<&str> = ["-T", "fields", "-E", "occurrence=f"].into_iter().chain(fields).collect();
    let lines = judge("tshark", &[&letters[..], &["-n", "-r"]].concat(), &[&merged]);
    assert_eq!(lines.lines().count() as u64, files.iter().map(|(_, packets)| packets).sum::<u64>());
    let mut ends = vec![BTreeSet::new(); files.len()];
    for line in lines.lines() {
        let mut fields: Vec<&str> = line.split('\t').collect();
        let file: usize = fields.remove(0).parse().unwrap_or_else(|_| panic!("{line}"));
        fields.sort_unstable();
        ends[file].insert(fields.concat());
    }
    for ((name, _), ends) in files.iter().zip(&ends) {
        assert!(name.contains("-other") || !name.contains("-tcp-") || ends.len() == 1, "{name}: {ends:?}");
    }
    assert!(files.iter().any(|(name, _)| name.contains("-tcp-10.0.0.1.1234-10.0.0.2.80")), "{files:?}");
    let kinds: BTreeSet<_> = files.iter().map(|(name, _)| name.get(11..14)).collect();
    assert!(kinds.len() >= 5, "{kinds:?}");
}

/// More flows than files may be open: each has one file all the same, also where it is compressed.
#[test]
fn by_more_flows_than_files_are_open() {
    let place = Place::new();
    let file = place.path("flows.pcapng");
    let template = frames().into_iter().find(|frame| frame.len() == 47 && frame[23] == 17).expect("UDP");
    let frames: Vec<Vec<u8>> = (0..200_u16)
        .map(|port| {
            let mut frame = template.clone();
            frame[34..36].copy_from_slice(&(1000 + port).to_be_bytes());
            frame
        })
        .collect();
    let rounds = (0..4).flat_map(|_| &frames);
    let packets: Vec<_> = (0..).zip(rounds).map(|(n, data)| (0, EPOCH + n, data.as_slice(), 0)).collect();
    write(&file, Format::Pcapng, &[("eth0", 1)], &packets);
    let weir = env!("CARGO_BIN_EXE_weir");
    let mut plain = Vec::new();
    for (name, unpack) in [
        ("p.pcap", "cat"),
        ("f.pcapng", "cat"),
        ("f.pcapng.zst", "zstdcat"),
        ("f.pcapng.gz", "zcat"),
        ("f.pcapng.lz4", "lz4cat"),
    ] {
        let directory = place.path(unpack);
        std::fs::create_dir_all(&directory).expect("a directory");
        let arguments = ["--nofile=24", weir, "read", "--split-by", "flow", "-w"];
        judge("prlimit", &arguments, &[&directory.join(name), &file]);
        let begins = format!("{}-", &name[..1]);
        let mut names: Vec<_> = std::fs::read_dir(&directory)
            .expect("it can be read")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .filter(|name| name.starts_with(&begins))
            .collect();
        names.sort();
        assert_eq!(names.len(), 200, "{name}");
        let names: Vec<_> = names.iter().map(|name| format!("{unpack}/{name}")).collect();
        if unpack == "cat" {
            assert!(count(&place, &names).iter().all(|packets| *packets == 4), "{name}");
        }
        let paths: Vec<_> = names.iter().map(|name| place.path(name)).collect();
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let bytes = output(unpack, &paths);
        if name == "f.pcapng" {
            plain = bytes;
        } else if unpack != "cat" {
            assert!(bytes == plain, "{name}");
        }
    }
}

/// A scan has a flow for each packet.
#[test]
fn an_input_does_not_decide_how_many_files_there_are() {
    let place = Place::new();
    let file = place.path("scan.pcapng");
    let template = frames().into_iter().find(|frame| frame.len() == 47 && frame[23] == 17).expect("UDP");
    let frames: Vec<Vec<u8>> = (0..1001_u16)
        .map(|port| {
            let mut frame = template.clone();
            frame[34..36].copy_from_slice(&(1000 + port).to_be_bytes());
            frame
        })
        .collect();
    let packets: Vec<_> = (0..).zip(&frames).map(|(n, data)| (0, EPOCH + n, data.as_slice(), 0)).collect();
    write(&file, Format::Pcapng, &[("eth0", 1)], &packets);
    let split = |directory: &str, options: &[&str]| {
        std::fs::create_dir_all(place.path(directory)).expect("a directory");
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(["read", "--split-by"]).args(options).arg("-w").arg(place.path(directory).join("f.pcap"));
        let output = weir.arg(&file).output().expect("weir runs");
        let files = std::fs::read_dir(place.path(directory)).expect("a directory").count();
        (output.status.code(), files, String::from_utf8(output.stderr).expect("UTF-8"))
    };
    for (directory, options, most, next, hint) in [
        ("usual", &["flow"][..], 1000, "1,001", "--max-files 10000 allows"),
        ("seven", &["count:100", "--max-files", "7"], 7, "8", "--max-files 70 allows"),
    ] {
        let (status, files, said) = split(directory, options);
        assert_eq!((status, files), (Some(1), most), "{said}");
        assert!(said.contains(&format!("cannot write file {next}: --split-by may make")), "{said}");
        assert!(said.contains(hint) && said.contains(" files"), "{said}");
        let names = std::fs::read_dir(place.path(directory)).expect("a directory");
        let names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        let names: Vec<_> = names.iter().map(|name| format!("{directory}/{}", name.display())).collect();
        // Nothing is lost of what came before.
        let written: u64 = count(&place, &names).into_iter().sum();
        assert_eq!(written, if most == 7 { 700 } else { 1000 });
    }
    let (status, files, said) = split("more", &["flow", "--max-files", "1001"]);
    assert_eq!((status, files), (Some(0), 1001), "{said}");
}

/// What a program prints of these files.
fn output(program: &str, paths: &[&Path]) -> Vec<u8> {
    let output = Command::new(program).args(paths).output().expect("it is installed");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn by_interface() {
    let place = Place::new();
    let file = place.path("two.pcapng");
    let frame = frames().swap_remove(20);
    let packets =
        [(0, EPOCH, frame.as_slice(), 0), (1, EPOCH, &frame[14..], 0), (1, EPOCH + 1, &frame[14..], 0)];
    write(&file, Format::Pcapng, &[("eth0", 1), ("tun/0", 101)], &packets);
    succeeds(&["read", "--split-by", "interface", "--format", "pcap", "-w"], &[&place.path("i.pcap"), &file]);
    assert_eq!(place.names(), ["i-eth0.pcap", "i-tun_0.pcap", "two.pcapng"]);
    assert_eq!(count(&place, &place.names()[..2]), [1, 2]);
    let about = judge("capinfos", &["-E"], &[&place.path("i-tun_0.pcap")]);
    assert!(about.contains("Raw IP"), "{about}");
}

/// Interfaces of the same name, and such whose names come to the same file name, are kept apart.
#[test]
fn by_interfaces_of_the_same_name() {
    let place = Place::new();
    let file = place.path("all.pcapng");
    let frame = frames().swap_remove(20);
    let names = ["eth0", "a/b", "a:b", "eth0", "interface5", ""];
    let interfaces = names.map(|name| (name, 1));
    let packets: Vec<_> = (0..6).map(|n| (n, EPOCH + u64::from(n), frame.as_slice(), 0)).collect();
    write(&file, Format::Pcapng, &interfaces, &packets);
    succeeds(&["read", "--split-by", "interface", "-w"], &[&place.path("i.pcapng"), &file]);
    let expected = ["a_b-2", "a_b", "eth0-2", "eth0", "interface5-2", "interface5"];
    let expected: Vec<String> = expected.iter().map(|name| format!("i-{name}.pcapng")).collect();
    let names = place.names();
    assert_eq!(names[1..], expected);
    assert_eq!(count(&place, &names[1..]), [1; 6]);
}
