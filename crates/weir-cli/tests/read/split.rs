//! One file into several.

use std::collections::BTreeSet;

use weir::writer::Format;

use crate::support::{EPOCH, Place, frames, judge, pcap, succeeds, write};

/// Packets of a file, as capinfos counts them.
fn count(place: &Place, name: &str) -> u64 {
    let line = judge("capinfos", &["-M", "-T", "-r", "-c"], &[&place.path(name)]);
    line.trim().rsplit('\t').next().expect("a field").parse().unwrap_or_else(|_| panic!("{line}"))
}

/// Splits all frames; gives the new files with their packets.
fn split(place: &Place, by: &str) -> Vec<(String, u64)> {
    let original = place.path("all.pcap");
    let packets = pcap(&original) as u64;
    succeeds(&["read", "--split-by", by, "-w"], &[&place.path("part.pcap"), &original]);
    let names = place.names().into_iter().filter(|name| name.starts_with("part-"));
    let files: Vec<_> = names.map(|name| (name.clone(), count(place, &name))).collect();
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
        assert!(size <= 2_024 || packets == 1, "{name}: {size}");
    }
}

/// Each conversation in one file: as many as tshark finds by both ends and protocol.
#[test]
fn by_flow() {
    let place = Place::new();
    let files = split(&place, "flow");
    for (name, _) in &files {
        let fields = [
            "-T",
            "fields",
            "-E",
            "occurrence=f",
            "-e",
            "ip.src",
            "-e",
            "ip.dst",
            "-e",
            "tcp.srcport",
            "-e",
            "tcp.dstport",
            "-n",
            "-r",
        ];
        let lines = judge("tshark", &fields, &[&place.path(name)]);
        let ends: BTreeSet<_> = lines
            .lines()
            .map(|line| {
                let mut fields: Vec<&str> = line.split('\t').collect();
                fields.sort_unstable();
                fields.concat()
            })
            .collect();
        assert!(name.contains("-other") || !name.contains("-tcp-") || ends.len() == 1, "{name}: {ends:?}");
    }
    assert!(files.iter().any(|(name, _)| name.contains("-tcp-10.0.0.1.1234-10.0.0.2.80")), "{files:?}");
    let kinds: BTreeSet<_> = files.iter().map(|(name, _)| name.get(11..14)).collect();
    assert!(kinds.len() >= 5, "{kinds:?}");
}

/// More flows than files may be open: what comes late goes on in another file, and nothing is lost.
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
    let twice = frames.iter().chain(&frames);
    let packets: Vec<_> = (0..).zip(twice).map(|(n, data)| (0, EPOCH + n, data.as_slice(), 0)).collect();
    write(&file, Format::Pcapng, &[("eth0", 1)], &packets);
    succeeds(&["read", "--split-by", "flow", "-w"], &[&place.path("f.pcapng"), &file]);
    let names: Vec<_> = place.names().into_iter().filter(|name| name.starts_with("f-")).collect();
    assert!(names.len() > 200 && names.iter().any(|name| name.ends_with(".2.pcapng")), "{}", names.len());
    assert_eq!(names.iter().map(|name| count(&place, name)).sum::<u64>(), 400);
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
    assert_eq!((count(&place, "i-eth0.pcap"), count(&place, "i-tun_0.pcap")), (1, 2));
    let about = judge("capinfos", &["-E"], &[&place.path("i-tun_0.pcap")]);
    assert!(about.contains("Raw IP"), "{about}");
}
