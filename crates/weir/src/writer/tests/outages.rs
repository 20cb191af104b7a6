//! Writers that go on when the disk is full: what is in the files, what is not, and that both add up.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;

use super::compression::{ALL, decompress};
use super::judges::output;
use super::*;
use crate::reader::{Item, Reader};

const FORMATS: [Format; 2] = [Format::Pcapng, Format::Pcap { nanoseconds: false }];

/// Writes packets of both interfaces in turn, and knows how many there were.
struct Source {
    writer: Writer,
    packets: u32,
    per_chunk: u32,
}

impl Source {
    fn new(path: &Path, options: &WriterOptions, per_chunk: u32) -> Self {
        let options = WriterOptions { keep_going: true, ..options.clone() };
        let mut writer = Writer::create(path, &interfaces(), &options).unwrap();
        writer.outages.pause = Duration::ZERO;
        if writer.outages.is_open() {
            writer.outages.open();
        }
        writer.set_stats(&account());
        Self { writer, packets: 0, per_chunk }
    }

    fn put(&mut self) {
        let interface = self.packets / self.per_chunk % 2;
        put(&mut self.writer, &chunk(interface, self.packets, self.per_chunk)).unwrap();
        self.packets += self.per_chunk;
        assert!(self.packets < 1_000_000, "the disk is small");
    }

    fn put_until(&mut self, reached: impl Fn(&Self) -> bool) {
        while !reached(self) {
            self.put();
        }
    }

    fn lost(&self) -> u64 {
        self.writer.written().lost.values().sum()
    }

    /// Fills the disk, makes room by `make_room`, and fills it again.
    fn fill_twice(&mut self, make_room: impl FnOnce()) {
        self.put_until(|this| this.lost() > 0);
        (0..5).for_each(|_| self.put());
        let news = self.writer.warnings();
        assert!(
            news.len() == 1 && news[0].ends_with(": no room; packets are dropped until there is"),
            "{news:?}"
        );
        assert_eq!(self.writer.warnings(), <[String; 0]>::default());
        let (lost, written) = (self.lost(), self.writer.written().packets);
        self.writer.record_event(&account(), 1_700_000_000_000_000_000, "an event without room").unwrap();
        make_room();
        self.put_until(|this| !this.writer.outages.is_open());
        (0..3).for_each(|_| self.put());
        self.writer.flush().unwrap();
        assert!(self.writer.written().packets > written);
        self.writer.statistics(&account()).unwrap();
        self.put_until(|this| this.lost() > lost + u64::from(3 * this.per_chunk));
    }

    /// Ends, and checks the sums; returns the packets of both interfaces that were lost.
    fn finish(mut self) -> [u64; 2] {
        self.writer.close(&account()).unwrap();
        let news = self.writer.warnings();
        assert!(news.len() <= 1, "{news:?}");
        let written = self.writer.written();
        assert_eq!(written.packets + self.lost(), u64::from(self.packets), "each packet is written or lost");
        [0, 1].map(|interface| written.lost.get(&(interface, 7)).copied().unwrap_or_default())
    }
}

/// Returns the numbers of the packets in a file, with the losses before them beyond those of [`records`], if the format
/// has them.
fn read_by_tshark(path: &Path) -> Option<Vec<(u32, u64)>> {
    let arguments = [
        "-T",
        "fields",
        "-e",
        "frame.len",
        "-e",
        "frame.cap_len",
        "-e",
        "frame.drop_count",
        "-e",
        "data.data",
        "-r",
    ];
    let text = output("tshark", &arguments, path)?;
    let packet = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        let number = u32::from_str_radix(&fields[3][..8], 16).unwrap();
        let expected = packet(0, number);
        assert_eq!(fields[..2], [expected.original_len.to_string(), expected.data.len().to_string()]);
        let own = if expected.data.len().is_multiple_of(7) { expected.data.len() as u64 } else { 0 };
        (
            number,
            fields[2].parse().map_or(0, |lost: u64| lost.checked_sub(own).expect("the record's own losses")),
        )
    };
    Some(text.lines().map(packet).collect())
}

/// Returns the same, without starting a program.
fn read(path: &Path) -> Vec<(u32, u64)> {
    let (mut packets, mut reader) = (Vec::new(), Reader::open(path).unwrap());
    while let Some(item) = reader.next().unwrap() {
        if let Item::Packet(packet) = item {
            let number = u32::from_be_bytes(packet.data[14..18].try_into().unwrap());
            assert_eq!(packet.data, self::packet(0, number).data);
            let own = if packet.data.len().is_multiple_of(7) { packet.data.len() as u64 } else { 0 };
            packets.push((number, packet.lost_before - own));
        }
    }
    packets
}

/// Checks the packets of files in a row: each record tells exactly what is missing in front of it.
fn check_packets(files: &[Vec<(u32, u64)>], per_chunk: u32, lost: [u64; 2], tells: bool) {
    let (mut next, mut missing) = ([0, 0], [0, 0]);
    for &(number, lost_before) in files.iter().flatten() {
        let interface = (number / per_chunk % 2) as usize;
        let between =
            (next[interface]..number).filter(|n| (n / per_chunk % 2) as usize == interface).count() as u64;
        assert!(number >= next[interface], "in order");
        if tells {
            assert_eq!(lost_before, between, "before packet {number}");
        }
        missing[interface] += between;
        next[interface] = number + 1;
    }
    assert!((0..2).all(|interface| missing[interface] <= lost[interface]));
    assert!(missing.iter().sum::<u64>() > 0, "there is an outage in between");
}

/// Returns the packets dropped according to the last statistics of each interface, and all comments.
fn statistics(path: &Path) -> ([u64; 2], Vec<String>) {
    let (mut dropped, mut comments) = ([0, 0], Vec::new());
    let mut reader = Reader::open(path).unwrap();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Statistics(statistics) = item {
            dropped[statistics.interface as usize] = statistics.dropped.unwrap();
            comments.extend(statistics.comment);
        }
    }
    (dropped, comments)
}

/// Losses of [`account`], by interface.
const LOST_BEFORE: u64 = 3;

fn ballast(disk: &SmallDisk, bytes: usize) -> PathBuf {
    let path = disk.path("ballast");
    let _full = File::create(&path).unwrap().write_all(&vec![0; bytes]);
    path
}

#[test]
fn root_a_full_disk_does_not_end_a_file() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    for (format, per_chunk) in [(FORMATS[0], 5), (FORMATS[0], 700), (FORMATS[1], 130)] {
        let (path, ballast) = (disk.path("f"), ballast(&disk, 700 << 10));
        let mut source = Source::new(&path, &options(format), per_chunk);
        source.fill_twice(|| fs::remove_file(&ballast).unwrap());
        source.writer.flush().unwrap();
        let written = source.writer.written();
        assert_eq!(written.bytes, len_of(&path));
        let lost = source.finish();
        let Some(packets) = read_by_tshark(&path) else { return };
        check_packets(&[packets], per_chunk, lost, format == Format::Pcapng);
        if format == Format::Pcapng {
            let (_, comments) = statistics(&path);
            let count = |part: &str| comments.iter().filter(|comment| comment.contains(part)).count();
            assert!(count("no room on the disk for ") >= 2, "{comments:?}");
            assert_eq!(count("an event without room"), 2, "{comments:?}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn root_the_last_statistics_have_all_losses() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let (path, full) = (disk.path("f"), ballast(&disk, 2 << 20));
    // There is no room from the start.
    let mut source = Source::new(&path, &options(Format::Pcapng), 50);
    (0..5).for_each(|_| source.put());
    assert_eq!((source.lost(), source.writer.written().bytes, len_of(&path)), (250, 0, 0));
    fs::remove_file(&full).unwrap();
    let number = source.writer.interface(&interface("veth2", 1)).unwrap();
    source.put();
    put(&mut source.writer, &[packet(number, 300)]).unwrap();
    source.packets += 1;
    let lost = source.finish();
    assert_eq!(lost, [150, 100]);
    let (dropped, comments) = statistics(&path);
    assert_eq!(dropped, lost.map(|lost| lost + LOST_BEFORE));
    assert!(comments.iter().any(|comment| comment.ends_with(": 250 packets lost")), "{comments:?}");
    let Some(packets) = read_by_tshark(&path) else { return };
    assert_eq!((packets.len(), packets[0]), (51, (250, 100)));
    assert!(output("capinfos", &["-M"], &path).unwrap().contains("Number of interfaces in file: 3"));
}

#[test]
fn root_a_full_disk_does_not_end_a_compressed_file() {
    let Some(disk) = SmallDisk::new("400k", MountAttrFlags::empty()) else { return };
    // One level of zstd is enough.
    for (compression, program, name) in &ALL[1..] {
        let (path, ballast) = (disk.path(name), ballast(&disk, 200 << 10));
        fs::write(disk.path("reserve"), [0; 32 << 10]).unwrap();
        let options = WriterOptions { compression: *compression, ..options(Format::Pcapng) };
        let mut source = Source::new(&path, &options, 150);
        source.fill_twice(|| fs::remove_file(&ballast).unwrap());
        // Room for the end.
        fs::remove_file(disk.path("reserve")).unwrap();
        let lost = source.finish();
        if program == &"zstd" {
            check_table(&path);
        }
        let Some((plain, whole)) = decompress(program, &path) else { return };
        assert!(whole, "{program}");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), plain).unwrap();
        let Some(packets) = read_by_tshark(file.path()) else { return };
        check_packets(&[packets], 150, lost, true);
        fs::remove_file(&path).unwrap();
    }
}

/// The table at the end of a zstd file has the frames that are in front of it.
fn check_table(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let end = bytes.len();
    assert_eq!(word(end - 4), 0x8f92_eab1);
    let table = end - 9 - 8 * word(end - 9);
    assert_eq!((table..end - 9).step_by(8).map(word).sum::<usize>(), table - 8);
}

#[test]
fn root_a_full_disk_does_not_end_a_rotation() {
    // The blocks or the inodes of the disk are used up.
    for limits in [&[("size", "1m")][..], &[("size", "100m"), ("nr_inodes", "6")]] {
        let Some(disk) = SmallDisk::of(limits, MountAttrFlags::empty()) else { return };
        let rotation = Rotation { packets: Some(250), ..Rotation::default() };
        let options = WriterOptions { rotation, ..options(Format::Pcapng) };
        let mut source = Source::new(&disk.path("f.pcapng"), &options, 50);
        let gone = disk.path("f1.pcapng");
        let mut removed = Vec::new();
        source.fill_twice(|| {
            removed = read(&gone);
            fs::remove_file(&gone).unwrap();
        });
        let (files, sent) = (source.writer.files().count, source.packets);
        let lost = source.finish();
        let (mut packets, mut dropped) = (Vec::new(), [0, 0]);
        for number in 0..files {
            let path =
                disk.path(&if number == 0 { "f.pcapng".to_owned() } else { format!("f{number}.pcapng") });
            if number == 1 {
                packets.push(removed.clone());
            }
            // One for which there was not even room for its header does not stay.
            if !path.exists() {
                continue;
            }
            packets.push(read(&path));
            let (of_file, _) = statistics(&path);
            (0..2).for_each(|interface| dropped[interface] += of_file[interface]);
        }
        check_packets(&packets, 50, lost, true);
        // The records have drop counts of their own.
        let mut most = lost.map(|lost| lost + LOST_BEFORE);
        for first in (0..sent).step_by(50) {
            most[first as usize / 50 % 2] += told(&chunk(0, first, 50));
        }
        assert!((0..2).all(|interface| dropped[interface] <= most[interface]), "{dropped:?} {most:?}");
    }
}

#[test]
fn news_of_a_disk_that_is_full_now_and_then_is_rare() {
    let mut outages = Outages::default();
    assert_eq!(outages.news("f", true), None);
    let mut told = Vec::new();
    for _ in 0..100 {
        outages.open();
        outages.lose(0, 0, 12);
        told.extend(outages.news("f", false));
        outages.end();
        told.extend(outages.news("f", false));
    }
    let first =
        ["f: no room; packets are dropped until there is", "f: room again after 0.0 s; 12 packets dropped"];
    assert_eq!(told, first);
    assert_eq!(outages.news("f", true).unwrap(), "f: room again after 0.0 s; 1,188 packets dropped");
    assert_eq!(outages.news("f", true), None);
    assert_eq!(outages.lost(), &BTreeMap::from([((0, 0), 1200)]));
}
