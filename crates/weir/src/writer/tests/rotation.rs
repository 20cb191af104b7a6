//! Rotation: no packet is lost or duplicated between files, and each file is complete.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::time::{Instant, SystemTime};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use weir_savefile::{pcap, record};

use super::judges::{agree, agree_quickly, output};
use super::*;

fn rotating(format: Format, rotation: Rotation) -> WriterOptions {
    WriterOptions { rotation, ..options(format) }
}

/// Returns the sorted names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// Returns the bytes of packets in a pcapng file, without everything around them.
fn packet_bytes(file: &Path, options: &WriterOptions) -> u64 {
    let start = encode::start(&interfaces(), options).unwrap().len();
    record::whole_records(&fs::read(file).unwrap()[start..]) as u64 + start as u64
}

const FORMATS: [Format; 2] = [Format::Pcapng, Format::Pcap { nanoseconds: true }];

#[test]
fn by_size_each_file_ends_with_the_packet_that_fills_it() {
    for format in FORMATS {
        [5_000, 100_000, 300_001].iter().for_each(|&size| by_size(format, size));
    }
}

/// Returns the number of packets in each of these files.
fn counts(directory: &Path, names: &[String]) -> Option<Vec<usize>> {
    let (last, others) = names.split_last().unwrap();
    let others: Vec<String> = others.iter().map(|name| directory.join(name).display().to_string()).collect();
    let arguments: Vec<&str> = ["-M", "-c"].into_iter().chain(others.iter().map(String::as_str)).collect();
    let text = output("capinfos", &arguments, &directory.join(last))?;
    let counts = text.lines().filter_map(|line| line.strip_prefix("Number of packets:"));
    Some(counts.map(|count| count.trim().parse().unwrap()).collect())
}

fn by_size(format: Format, size: u64) {
    let directory = tempfile::tempdir().unwrap();
    let options = rotating(format, Rotation { size: Some(size), ..Rotation::default() });
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    let packets = chunk(0, 0, 1200);
    for some in packets.chunks(257) {
        put(&mut writer, some).unwrap();
    }
    let files = writer.files().clone();
    let (written, result) = writer.finish(&account());
    result.unwrap();
    assert_eq!(written.packets, 1200);
    let names = names(directory.path());
    assert_eq!((files.count, names[0].as_str(), names[1].as_str()), (names.len() as u64, "f", "f1"));
    let Some(counts) = counts(directory.path(), &names) else { return };
    assert_eq!(counts.len(), names.len());
    let mut rest = &packets[..];
    for (n, name) in names.iter().enumerate() {
        let path = directory.path().join(name);
        let in_file = match format {
            Format::Pcapng => packet_bytes(&path, &options),
            Format::Pcap { .. } => len_of(&path),
        };
        assert!(in_file < size + 1600, "at most one packet beyond");
        assert!(in_file >= size || n + 1 == names.len(), "{n}: {in_file} of {size}");
        let (here, after) = rest.split_at(counts[n]);
        if n == 1 {
            agree(&path, here, 1, format == Format::Pcapng);
        } else if n == 0 || n + 1 == names.len() {
            agree_quickly(&path, here, 1);
        }
        rest = after;
    }
    assert!(rest.is_empty());
    let on_disk: u64 = names.iter().map(|name| len_of(&directory.path().join(name))).sum();
    assert_eq!(written.bytes, on_disk);
}

/// Packets wait in the pool, and losses for the record that tells of them, while the account has counted them already.
#[test]
fn each_file_has_its_own_statistics_although_the_account_is_ahead() {
    let directory = tempfile::tempdir().unwrap();
    // The last file is full, and more is lost behind its last packet.
    let options = rotating(Format::Pcapng, Rotation { packets: Some(200), ..Rotation::default() });
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces()[..1], &options).unwrap();
    let packets = chunk(0, 0, 1000);
    const BEHIND: u64 = 50;
    let mut ahead = account();
    ahead.interfaces.truncate(1);
    ahead.interfaces[0].nic = None;
    let filtered = 70;
    let all_lost = told(&packets) + BEHIND;
    ahead.interfaces[0].queues[0].counters = PacketCounters {
        seen: 1000 + all_lost + filtered,
        filtered: Some(filtered),
        captured: 1000,
        lost: all_lost,
        ..PacketCounters::default()
    };
    for (number, some) in packets.chunks(130).enumerate() {
        writer.set_stats(&ahead);
        if number == 3 {
            writer.statistics(&ahead).unwrap();
        }
        put(&mut writer, some).unwrap();
    }
    writer.finish(&ahead).1.unwrap();
    let names = names(directory.path());
    assert_eq!(names.len(), 5, "no empty file at the end: {names:?}");
    for (number, (name, packets)) in names.iter().zip(packets.chunks(200)).enumerate() {
        let arguments = ["-X", "read_format:MIME Files Format", "-V", "-r"];
        let Some(text) = output("tshark", &arguments, &directory.path().join(name)) else { return };
        let numbers = |what: &str| {
            let found = text.lines().filter_map(|line| {
                line.trim().strip_prefix("Option: ")?.strip_prefix(what)?.strip_prefix(" = ")
            });
            found.map(|number| number.parse().unwrap()).collect::<Vec<u64>>()
        };
        let (received, dropped) =
            (numbers("Number of Received Packets"), numbers("Number of Dropped Packets"));
        assert!(
            dropped.is_sorted() && dropped.len() == if number == 1 { 2 } else { 1 },
            "{name}: {dropped:?}"
        );
        let behind = if number == 4 { BEHIND } else { 0 };
        // The filter had rejected these before the first file ended.
        let left_out = if number == 0 { filtered } else { 0 };
        let lost = told(packets) + behind;
        assert_eq!(
            (dropped.last(), received.last()),
            (Some(&lost), Some(&(200 + lost + left_out))),
            "{name}"
        );
        assert_eq!(numbers("Number of Packets Delivered to the User").last(), Some(&200));
    }
}

/// Only a pcapng file waits for a later packet, as statistics can tell of losses that none of its records does.
#[test]
fn a_full_pcap_file_does_not_wait_to_tell_of_losses() {
    for format in FORMATS {
        let directory = tempfile::tempdir().unwrap();
        let options = rotating(format, Rotation { packets: Some(20), ..Rotation::default() });
        let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
        let packets = chunk(0, 0, 20);
        let mut ahead = account();
        ahead.interfaces[0].queues[0].counters.lost = told(&packets) + 1;
        writer.set_stats(&ahead);
        put(&mut writer, &packets).unwrap();
        assert_eq!(writer.file.is_some(), format == Format::Pcapng, "{format:?}");
        writer.finish(&ahead).1.unwrap();
    }
}

#[test]
fn a_file_that_a_packet_fills_to_the_byte_ends_with_it() {
    let packets = chunk(0, 0, 20);
    for (format, one_by_one) in FORMATS.into_iter().flat_map(|format| [(format, false), (format, true)]) {
        let first = |rotation| {
            let directory = tempfile::tempdir().unwrap();
            let options = rotating(format, rotation);
            let file = directory.path().join("f");
            let mut writer = Writer::create(&file, &interfaces(), &options).unwrap();
            match one_by_one {
                true => packets.iter().try_for_each(|packet| writer.packet(&packet.whole())).unwrap(),
                false => put(&mut writer, &packets).unwrap(),
            }
            assert!(writer.files().count > 1);
            writer.finish(&CaptureStats::default()).1.unwrap();
            if format == Format::Pcapng { packet_bytes(&file, &options) } else { len_of(&file) }
        };
        let [ten, eleven] =
            [10, 11].map(|most| first(Rotation { packets: Some(most), ..Rotation::default() }));
        for (size, bytes) in [(ten - 1, ten), (ten, ten), (ten + 1, eleven), (eleven, eleven)] {
            let in_file = first(Rotation { size: Some(size), ..Rotation::default() });
            assert_eq!(in_file, bytes, "{format:?}, one by one: {one_by_one}, size {size}");
        }
    }
}

#[test]
fn packets_one_by_one_fill_files_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(700), size: Some(600_000), ..Rotation::default() });
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    let packets = chunk(1, 0, 2000);
    for packet in &packets {
        writer.packet(&packet.whole()).unwrap();
    }
    writer.finish(&CaptureStats::default()).1.unwrap();
    let names = names(directory.path());
    assert_eq!(names, ["f", "f1", "f2"]);
    for (name, here) in names.iter().zip(packets.chunks(700)) {
        agree_quickly(&directory.path().join(name), here, 1);
    }
}

#[test]
fn time_passes_without_packets() {
    let directory = tempfile::tempdir().unwrap();
    let period = Duration::from_millis(40);
    let options =
        rotating(Format::Pcapng, Rotation { period: Some(period), files: Some(4), ..Rotation::default() });
    // Periods start during the call below.
    let began = Instant::now();
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    while !writer.is_complete() {
        let due = writer.due().unwrap();
        assert!(due <= Instant::now() + period);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        writer.tick(&account()).unwrap();
    }
    assert!(began.elapsed() >= period * 4, "{:?}", began.elapsed());
    assert_eq!(writer.due(), None);
    put(&mut writer, &chunk(0, 0, 10)).unwrap();
    writer.finish(&account()).1.unwrap();
    assert_eq!(names(directory.path()), ["f", "f1", "f2", "f3"]);
    agree_quickly(&directory.path().join("f1"), &[], 1);
    agree_quickly(&directory.path().join("f3"), &chunk(0, 0, 10), 1);
}

#[test]
fn a_ring_keeps_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    for (format, files) in [(Format::Pcapng, 3), (Format::Pcap { nanoseconds: true }, 11)] {
        let options =
            rotating(format, Rotation { packets: Some(10), files: Some(files), ..Rotation::default() });
        let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
        for n in 0..17 {
            put(&mut writer, &chunk(0, n * 10, 10)).unwrap();
        }
        assert_eq!((writer.files().count, writer.files().deleted), (17, 17 - u64::from(files)));
        writer.finish(&account()).1.unwrap();
        let width = if files > 10 { 2 } else { 1 };
        let expected: Vec<_> = (0..files).map(|n| format!("f{n:0width$}")).collect();
        assert_eq!(names(directory.path()), expected);
        // Number 16, the last, is in place 16 modulo the size of the ring.
        let last = directory.path().join(&expected[16 % files as usize]);
        agree(&last, &chunk(0, 160, 10), 1, format == Format::Pcapng);
        expected.iter().for_each(|name| fs::remove_file(directory.path().join(name)).unwrap());
    }
}

#[test]
fn a_ring_by_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let most = 400_000;
    let options = rotating(
        Format::Pcap { nanoseconds: true },
        Rotation { size: Some(100_000), keep_bytes: Some(most), ..Rotation::default() },
    );
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    for n in 0..50 {
        put(&mut writer, &chunk(0, n * 40, 40)).unwrap();
        writer.flush().unwrap();
        let bytes: u64 =
            names(directory.path()).iter().map(|name| len_of(&directory.path().join(name))).sum();
        assert!(bytes < most + 1600, "{bytes}");
    }
    let list = writer.files().clone();
    assert_eq!(list.count - list.deleted, names(directory.path()).len() as u64);
    assert!(list.deleted > 10 && names(directory.path()).len() >= 3);
}

/// Writes `files` files of ten packets, numbered from `first`.
fn run(path: &Path, options: &WriterOptions, first: u32, files: u32) -> (FileList, Vec<String>) {
    let mut writer = Writer::create(path, &interfaces(), options).unwrap();
    for n in 0..files {
        put(&mut writer, &chunk(0, first + n * 10, 10)).unwrap();
    }
    writer.close(&account()).unwrap();
    (writer.files(), writer.warnings())
}

/// Sets modification times one second apart, the last one now.
fn age(directory: &Path, names: &[&str]) {
    for (name, seconds) in names.iter().rev().zip(0..) {
        let file = File::options().write(true).open(directory.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }
}

#[test]
fn a_ring_takes_in_the_files_of_earlier_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(3), ..Rotation::default() });
    for other in ["f", "f3.txt", "g0"] {
        fs::write(path(other), other).unwrap();
    }
    let (list, warnings) = run(&path("f"), &options, 0, 5);
    assert_eq!((list.adopted, list.deleted), (0, 2), "{warnings:?}");
    // A ring of three has no file without a number.
    fs::remove_file(path("f")).unwrap();
    // This run has left files 2 to 4.
    age(directory.path(), &["f2", "f0", "f1"]);
    let (list, warnings) = run(&path("f"), &options, 100, 2);
    assert_eq!((list.adopted, list.count, list.deleted), (3, 2, 2), "{warnings:?}");
    assert_eq!((&list.first, &list.last), (&path("f2"), &path("f0")), "the numbers go on");
    assert_eq!(names(directory.path()), ["f0", "f1", "f2", "g0", "f3.txt"]);
    for (name, first) in [("f1", 40), ("f2", 100), ("f0", 110)] {
        agree_quickly(&path(name), &chunk(0, first, 10), 1);
    }
    // This can be repeated.
    for n in 0..5 {
        age(directory.path(), &["f1", "f2", "f0"]);
        run(&path("f"), &options, n, 1);
        assert_eq!(names(directory.path()), ["f0", "f1", "f2", "g0", "f3.txt"]);
    }
}

#[test]
fn a_ring_leaves_alone_what_is_no_capture_of_its_own() {
    let (directory, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    let start = |program: &str| {
        let options = WriterOptions { user_application: program.to_owned(), ..options(Format::Pcapng) };
        encode::start(&interfaces(), &options).unwrap()
    };
    let others = [
        ("f", start("weir tests")),
        ("f0", b"text".to_vec()),
        ("f00", start("weir tests")),
        ("f1", Vec::new()),
        ("f3", start("Dumpcap 4.0")),
        // Only three names are taken below, so the ring does not get this far.
        ("f7", start("weir tests")),
        ("f2024", start("weir tests")),
    ];
    others.iter().for_each(|(name, content)| fs::write(path(name), content).unwrap());
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(2), ..Rotation::default() });
    for round in 0..3 {
        age(directory.path(), &["f2", "f4"][..2 * usize::from(round > 0)]);
        let (list, warnings) = run(&path("f"), &options, 0, 5);
        assert_eq!(list.adopted, 2 * u64::from(round > 0), "{round}: {warnings:?}");
        let told: Vec<_> = warnings.iter().filter(|warning| warning.contains("left alone")).collect();
        assert_eq!(told.len(), 1, "{warnings:?}");
        for (name, content) in &others {
            let name = path(name);
            assert!(told[0].contains(&name.display().to_string()), "{warnings:?}");
            assert!(fs::read(&name).unwrap() == *content, "{}", name.display());
        }
        assert_eq!(names(directory.path()).len(), others.len() + 2);
        assert!(path("f2").exists() && path("f4").exists());
    }
    // The same in every format.
    for (n, (format, compression)) in [
        (Format::Pcap { nanoseconds: true }, Compression::None),
        (Format::Pcapng, Compression::Zstd { level: 1 }),
        (Format::Pcapng, Compression::Gzip),
        (Format::Pcap { nanoseconds: false }, Compression::Lz4),
    ]
    .into_iter()
    .enumerate()
    {
        let options = WriterOptions { format, compression, ..options.clone() };
        let name = aside.path().join(format!("{n}-"));
        assert_eq!(run(&name, &options, 0, 2).0.adopted, 0);
        let (list, warnings) = run(&name, &options, 0, 1);
        assert_eq!((list.adopted, list.deleted), (2, 1), "{format:?} {compression:?}: {warnings:?}");
    }
}

#[test]
fn a_ring_by_bytes_takes_in_the_files_of_earlier_runs() {
    let directory = tempfile::tempdir().unwrap();
    let rotation = Rotation { size: Some(50_000), keep_bytes: Some(200_000), ..Rotation::default() };
    let options = WriterOptions { strftime: true, ..rotating(Format::Pcapng, rotation) };
    fs::write(directory.path().join("t-mine"), [0; 300_000]).unwrap();
    let mut taken_in = 0;
    for _ in 0..6 {
        let mut writer = Writer::create(&directory.path().join("t-%s"), &interfaces(), &options).unwrap();
        for n in 0..6 {
            put(&mut writer, &chunk(0, n * 40, 40)).unwrap();
        }
        writer.close(&account()).unwrap();
        taken_in += writer.files().adopted;
        let ring = names(directory.path());
        let bytes =
            ring.iter().filter(|name| *name != "t-mine").map(|name| len_of(&directory.path().join(name)));
        let bytes: u64 = bytes.sum();
        assert!((100_000..200_000).contains(&bytes), "{bytes}: {ring:?}");
    }
    assert!(taken_in >= 5 * 2, "{taken_in}");
    assert_eq!(len_of(&directory.path().join("t-mine")), 300_000);
}

#[test]
fn names_that_tell_nothing_are_not_taken_for_files_of_the_ring() {
    let directory = tempfile::tempdir().unwrap();
    let rotation = Rotation { packets: Some(10), files: Some(2), ..Rotation::default() };
    let options = WriterOptions { strftime: true, ..rotating(Format::Pcapng, rotation) };
    fs::write(directory.path().join("t-mine"), "").unwrap();
    let (list, warnings) = run(&directory.path().join("t-%Z"), &options, 0, 4);
    assert_eq!((list.adopted, list.deleted), (0, 2));
    assert!(warnings[0].contains("files of earlier runs are not counted"), "{warnings:?}");
    assert!(directory.path().join("t-mine").exists());
}

#[test]
fn a_ring_that_another_writes_to_is_not_taken_in() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(3), ..Rotation::default() });
    let mut first = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    let error = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap_err();
    assert!(matches!(error, WriteError::Locked { .. }), "{error}");
    put(&mut first, &chunk(0, 0, 15)).unwrap();
    first.finish(&account()).1.unwrap();
    assert_eq!(names(directory.path()), ["f0", "f1"]);
}

#[test]
fn root_files_of_other_users_are_not_of_the_ring() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(2), ..Rotation::default() });
    fs::set_permissions(disk.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(disk.path("f0"), "of somebody else").unwrap();
    chown(disk.path("f0"), Some(NOBODY), None).unwrap();
    let (list, _) = run(&disk.path("f"), &options, 0, 4);
    assert_eq!((list.adopted, list.deleted), (0, 2));
    assert_eq!(fs::read(disk.path("f0")).unwrap(), b"of somebody else");
    assert_eq!(names(&disk.path("")).len(), 3);
}

#[test]
fn a_file_that_cannot_be_deleted_stays_until_it_can_and_the_writer_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(3), ..Rotation::default() });
    let mut writer = Writer::create(&path("f"), &interfaces(), &options).unwrap();
    for n in 0..9 {
        put(&mut writer, &chunk(0, n * 10, 10)).unwrap();
        if n == 1 {
            // No file of this name can be removed any more.
            fs::remove_file(path("f0")).unwrap();
            fs::create_dir(path("f0")).unwrap();
        }
        if n == 7 {
            assert_eq!(writer.files().deleted, 8 - 1 - 3, "all but it and the newest");
            fs::remove_dir(path("f0")).unwrap();
            fs::write(path("f0"), "removable").unwrap();
        }
    }
    writer.close(&account()).unwrap();
    assert_eq!(names(directory.path()).len(), 3);
    let warnings = writer.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("f0") && warnings[0].contains("the file stays, and the capture continues"),
        "{warnings:?}"
    );
    assert_eq!((writer.written().packets, writer.files().count), (90, 9));
    assert_eq!(writer.files().deleted, 9 - 3, "all but the newest");
    let last = writer.files().last;
    agree_quickly(&last, &chunk(0, 80, 10), 1);
}

/// Fills `disk`, of 1 MiB, with a ring that should keep more than fits: everything written is in the files, except for
/// those deleted.
fn fill_a_ring(disk: &SmallDisk, options: &WriterOptions) {
    let mut writer = Writer::create(&disk.path("f"), &interfaces(), options).unwrap();
    let packets = chunk(0, 0, 4000);
    for some in packets.chunks(50) {
        put(&mut writer, some).unwrap();
    }
    writer.close(&account()).unwrap();
    let (list, warnings) = (writer.files(), writer.warnings());
    assert_eq!(writer.written().packets, 4000);
    assert!(list.deleted_for_room > 5 && list.deleted == list.deleted_for_room, "{list:?}");
    assert_eq!(warnings, ["the disk is full; deleting the oldest files one by one"]);
    let there = names(&disk.path(""));
    assert_eq!(there.len() as u64, list.count - list.deleted);
    assert!(there.len() >= 3, "no more go than have to: {there:?}");
    let copy = tempfile::NamedTempFile::new().unwrap();
    fs::copy(disk.path(list.last.file_name().unwrap().to_str().unwrap()), copy.path()).unwrap();
    let start = encode::start(&interfaces(), options).unwrap().len();
    let bytes = fs::read(copy.path()).unwrap();
    let last = match options.format {
        Format::Pcapng => record::Records::new(&bytes[start..]).filter(Result::is_ok).count(),
        Format::Pcap { .. } => pcap::whole_records(&bytes[start..]).0,
    };
    agree_quickly(copy.path(), &packets[packets.len() - last..], 1);
    there.iter().for_each(|name| fs::remove_file(disk.path(name)).unwrap());
}

#[test]
fn root_where_the_disk_is_full_the_oldest_files_of_a_ring_go() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    for format in FORMATS {
        let size = Some(200_000);
        for rotation in [
            Rotation { size, files: Some(50), ..Rotation::default() },
            Rotation { size, keep_bytes: Some(100 << 20), ..Rotation::default() },
        ] {
            fill_a_ring(&disk, &rotating(format, rotation));
        }
    }
}

#[test]
fn root_files_of_earlier_runs_make_room_too() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(50), ..Rotation::default() });
    let mut full = encode::start(&interfaces(), &options).unwrap();
    full.resize(1 << 20, 0);
    fs::write(disk.path("f00"), full).unwrap();
    let (list, _) = run(&disk.path("f"), &options, 0, 2);
    assert_eq!((list.adopted, list.deleted, list.deleted_for_room), (1, 1, 1));
    assert_eq!(names(&disk.path("")), ["f01", "f02"]);
}

#[test]
fn root_a_disk_that_is_full_of_what_is_not_of_the_ring_fails_and_nothing_is_left() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    let rotation = Rotation { packets: Some(10), files: Some(50), ..Rotation::default() };
    for rotation in [rotation, Rotation::default()] {
        fs::write(disk.path("other"), vec![0; 1 << 20]).unwrap();
        let error =
            Writer::create(&disk.path("f"), &interfaces(), &rotating(Format::Pcapng, rotation)).unwrap_err();
        assert!(matches!(error, WriteError::Full { kept: Kept { packets: 0, bytes: 0 }, .. }), "{error}");
        assert_eq!(names(&disk.path("")), ["other"], "no empty file each time that it is tried");
    }
}

#[test]
fn a_rotation_overwrites_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("f1"), [7; 9]).unwrap();
    let options = rotating(Format::Pcapng, Rotation { packets: Some(5), ..Rotation::default() });
    let mut writer = Writer::create(&path("f"), &interfaces(), &options).unwrap();
    fs::write(path("f2"), "of somebody else").unwrap();
    for n in 0..3 {
        put(&mut writer, &chunk(0, n * 5, 5)).unwrap();
    }
    writer.finish(&account()).1.unwrap();
    // Neither files of an earlier run nor those of others are overwritten.
    assert_eq!(names(directory.path()), ["f", "f1", "f2", "f3", "f4"]);
    assert_eq!(fs::read(path("f1")).unwrap(), [7; 9]);
    assert_eq!(fs::read(path("f2")).unwrap(), b"of somebody else");
    agree_quickly(&path("f3"), &chunk(0, 5, 5), 1);
    agree_quickly(&path("f4"), &chunk(0, 10, 5), 1);

    let careful = WriterOptions { no_clobber: true, ..options };
    let error = Writer::create(&path("f"), &interfaces(), &careful).unwrap_err();
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("it exists"));
}

#[test]
fn nobody_else_writes_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let mut first = Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap();
    put(&mut first, &chunk(0, 0, 10)).unwrap();
    first.flush().unwrap();
    let error = Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap_err();
    let WriteError::Locked { holder, .. } = &error else { panic!("{error}") };
    assert!(holder.contains(&format!("process {}", std::process::id())), "{error}");
    first.finish(&account()).1.unwrap();
    agree_quickly(&path, &chunk(0, 0, 10), 1);
    Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap();
}

#[test]
fn who_reads_a_file_is_not_in_the_way_of_who_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let ring =
        rotating(Format::Pcapng, Rotation { packets: Some(10), files: Some(3), ..Rotation::default() });
    run(&path("f"), &ring, 0, 2);
    let reader = File::open(path("f0")).unwrap();
    flock(&reader, FlockOperation::NonBlockingLockExclusive).unwrap();
    let (list, warnings) = run(&path("f"), &ring, 0, 1);
    assert_eq!((list.adopted, warnings), (2, Vec::new()));
    let (list, warnings) = run(&path("f0"), &options(Format::Pcapng), 0, 1);
    assert_eq!((list.count, warnings), (1, Vec::new()));
}

/// Creates a program that does `what` with its argument.
fn script(directory: &Path, what: &str) -> PathBuf {
    let path = directory.join("script");
    fs::write(&path, format!("#!/bin/sh\n{what}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Writes five files with `command`, calls `written`, and returns the warnings.
fn with_command(directory: &Path, command: PathBuf, written: impl FnOnce()) -> Vec<String> {
    let options = WriterOptions {
        command: Some(command.into_os_string()),
        fsync: true,
        ..rotating(Format::Pcapng, Rotation { packets: Some(5), ..Rotation::default() })
    };
    let mut writer = Writer::create(&directory.join("f"), &interfaces(), &options).unwrap();
    for n in 0..5 {
        put(&mut writer, &chunk(0, n * 5, 5)).unwrap();
    }
    written();
    writer.close(&account()).unwrap();
    writer.warnings()
}

#[test]
fn a_program_for_each_finished_file() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let moved = other.path().display();
    // Packets do not wait for the program, which ends only when all of them are written.
    let (gate, done) = (other.path().join("gate"), format!("{moved}/$(basename \"$1\").done"));
    let wait = format!("while ! [ -e {} ]; do sleep 0.01; done", gate.display());
    let command = script(other.path(), &format!("{wait}; cp \"$1\" {done}"));
    let warnings = with_command(directory.path(), command, || fs::write(&gate, "").unwrap());
    assert!(warnings.is_empty(), "{warnings:?}");
    for (n, name) in ["f.done", "f1.done", "f2.done", "f3.done", "f4.done"].iter().enumerate() {
        agree_quickly(&other.path().join(name), &chunk(0, u32::try_from(n).unwrap() * 5, 5), 1);
    }
}

#[test]
fn a_program_that_fails_is_told_once_and_counted() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let warnings = with_command(directory.path(), script(other.path(), "exit 3"), || {});
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("exit status: 3") && warnings[1].contains("5 files"), "{warnings:?}");
    let options = WriterOptions { command: Some("no-such-program".into()), ..options(Format::Pcapng) };
    let error = Writer::create(&directory.path().join("g"), &interfaces(), &options).unwrap_err();
    assert!(error.to_string().contains("`no-such-program`"), "{error}");
    assert!(!directory.path().join("g").exists());
}

#[test]
fn root_the_disk_fills_up_in_the_middle() {
    let Some(disk) = SmallDisk::new("1m", MountAttrFlags::empty()) else { return };
    for format in FORMATS {
        let options = rotating(format, Rotation { size: Some(200_000), ..Rotation::default() });
        let mut writer = Writer::create(&disk.path("f"), &interfaces(), &options).unwrap();
        let packets = chunk(0, 0, 3000);
        let error =
            packets.chunks(100).find_map(|some| put(&mut writer, some).err()).expect("the disk is small");
        let error = if matches!(error, WriteError::Full { .. }) { error } else { panic!("{error}") };
        let (written, _) = writer.finish(&account());
        assert!(error.to_string().contains(&format!("{} packets", written.packets)), "{error}");
        let mut rest = &packets[..usize::try_from(written.packets).unwrap()];
        let count = |file: &Path| {
            let start = encode::start(&interfaces(), &options).unwrap();
            let bytes = fs::read(file).unwrap();
            match format {
                Format::Pcapng => record::Records::new(&bytes[start.len()..]).filter(Result::is_ok).count(),
                Format::Pcap { .. } => pcap::whole_records(&bytes[start.len()..]).0,
            }
        };
        for name in names(&disk.path("")) {
            let (here, after) = rest.split_at(count(&disk.path(&name)));
            // A copy that other programs can find.
            let copy = tempfile::NamedTempFile::new().unwrap();
            fs::copy(disk.path(&name), copy.path()).unwrap();
            agree_quickly(copy.path(), here, 1);
            rest = after;
            fs::remove_file(disk.path(&name)).unwrap();
        }
        assert!(rest.is_empty());
    }
}

#[test]
fn pipes_do_not_rotate() {
    let options = rotating(Format::Pcapng, Rotation { packets: Some(5), ..Rotation::default() });
    for name in ["-", "/dev/null"] {
        let error = Writer::create(Path::new(name), &interfaces(), &options).unwrap_err();
        assert!(matches!(error, WriteError::NoRotation { .. }), "{error}");
    }
    // A FIFO without a reader; nothing waits for one.
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("f");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let error = Writer::create(&pipe, &interfaces(), &options).unwrap_err();
    assert!(matches!(error, WriteError::NoRotation { .. }), "{error}");
}
