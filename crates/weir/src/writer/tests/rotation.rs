//! One file after the other: no packet is lost or doubled between two, and each is whole by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use weir_savefile::{pcap, record};

use super::judges::{agree, output};
use super::*;

fn rotating(format: Format, rotation: Rotation) -> WriterOptions {
    WriterOptions { rotation, ..options(format) }
}

/// The names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// Bytes of packets in a pcapng file, without what stands around them.
fn packet_bytes(file: &Path, options: &WriterOptions) -> u64 {
    let start = encode::start(&interfaces(), options).unwrap().len();
    record::whole_records(&fs::read(file).unwrap()[start..]) as u64 + start as u64
}

const FORMATS: [Format; 2] = [Format::Pcapng, Format::Pcap { nanoseconds: true }];

#[test]
fn by_size_each_file_ends_with_the_packet_that_fills_it() {
    for (format, size) in
        FORMATS.iter().flat_map(|format| [5_000, 100_000, 300_001].map(|size| (*format, size)))
    {
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
        let mut rest = &packets[..];
        for (n, name) in names.iter().enumerate() {
            let path = directory.path().join(name);
            let in_file = match format {
                Format::Pcapng => packet_bytes(&path, &options),
                Format::Pcap { .. } => len_of(&path),
            };
            assert!(in_file < size + 1600, "at most one packet beyond");
            assert!(in_file >= size || n + 1 == names.len(), "{n}: {in_file} of {size}");
            let text = output("capinfos", &["-M", "-c"], &path).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("Number of packets:"));
            let Some(count) = count.map(|count| count.trim().parse::<usize>().unwrap()) else { return };
            let (here, after) = rest.split_at(count);
            if n < 2 || n + 1 == names.len() {
                agree(&path, here, 1, format == Format::Pcapng);
            }
            rest = after;
        }
        assert!(rest.is_empty());
        let on_disk: u64 = names.iter().map(|name| len_of(&directory.path().join(name))).sum();
        assert_eq!(written.bytes, on_disk);
    }
}

#[test]
fn by_count_and_each_file_has_its_own_statistics() {
    let directory = tempfile::tempdir().unwrap();
    let options = rotating(Format::Pcapng, Rotation { packets: Some(100), ..Rotation::default() });
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces()[..1], &options).unwrap();
    let mut so_far = account();
    so_far.interfaces.truncate(1);
    for some in chunk(0, 0, 1000).chunks(130) {
        let tally = &mut so_far.interfaces[0].queues[0].tally;
        (tally.seen, tally.lost) = (tally.seen + 1000, tally.lost + 10);
        writer.note(&so_far);
        put(&mut writer, some).unwrap();
    }
    writer.finish(&so_far).1.unwrap();
    let names = names(directory.path());
    assert_eq!(names.len(), 10, "no empty file at the end: {names:?}");
    let (mut received, mut dropped) = (0, 0);
    for name in names {
        let arguments = ["-X", "read_format:MIME Files Format", "-V", "-r"];
        let Some(text) = output("tshark", &arguments, &directory.path().join(name)) else { return };
        let number = |what: &str| {
            let found = text.lines().filter_map(|line| {
                line.trim().strip_prefix("Option: ")?.strip_prefix(what)?.strip_prefix(" = ")
            });
            let found: Vec<u64> = found.map(|number| number.parse().unwrap()).collect();
            assert_eq!(found.len(), 1, "{what}: {text}");
            found[0]
        };
        assert_eq!(number("Number of Packets Delivered to the User"), 100);
        received += number("Number of Received Packets");
        dropped += number("Number of Dropped Packets");
    }
    assert_eq!((received, dropped), (8010, 83), "together what the account says in the end");
}

#[test]
fn packets_one_by_one_fill_files_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let options =
        rotating(Format::Pcapng, Rotation { packets: Some(700), size: Some(600_000), ..Rotation::default() });
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    let packets = chunk(1, 0, 2000);
    for packet in &packets {
        let Packet { interface, timestamp, original_len, ref data } = *packet;
        let (queue, direction, lost_before, comment) = (0, None, 0, None);
        let packet = crate::Packet {
            data,
            timestamp,
            original_len,
            interface,
            queue,
            direction,
            lost_before,
            comment,
            notes: Notes::default(),
        };
        writer.packet(&packet).unwrap();
    }
    writer.finish(&Account::default()).1.unwrap();
    let names = names(directory.path());
    assert_eq!(names, ["f", "f1", "f2"]);
    for (name, here) in names.iter().zip(packets.chunks(700)) {
        agree(&directory.path().join(name), here, 1, true);
    }
}

#[test]
fn time_passes_without_packets() {
    let directory = tempfile::tempdir().unwrap();
    let period = Duration::from_millis(40);
    let options =
        rotating(Format::Pcapng, Rotation { period: Some(period), files: Some(4), ..Rotation::default() });
    let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
    let began = Instant::now();
    while !writer.is_complete() {
        let due = writer.due().unwrap();
        assert!(due <= Instant::now() + period);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        writer.tick(&account()).unwrap();
    }
    assert!(began.elapsed() >= period * 4 - Duration::from_millis(1), "{:?}", began.elapsed());
    assert_eq!(writer.due(), None);
    put(&mut writer, &chunk(0, 0, 10)).unwrap();
    writer.finish(&account()).1.unwrap();
    assert_eq!(names(directory.path()), ["f", "f1", "f2", "f3"]);
    agree(&directory.path().join("f1"), &[], 1, true);
    agree(&directory.path().join("f3"), &chunk(0, 0, 10), 1, true);
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
        // Number 16, the last, is the one in place 16 modulo the ring's size.
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
    // Neither what an earlier run has left nor what somebody puts in the way.
    assert_eq!(names(directory.path()), ["f", "f1", "f2", "f3", "f4"]);
    assert_eq!(fs::read(path("f1")).unwrap(), [7; 9]);
    assert_eq!(fs::read(path("f2")).unwrap(), b"of somebody else");
    agree(&path("f3"), &chunk(0, 5, 5), 1, true);
    agree(&path("f4"), &chunk(0, 10, 5), 1, true);

    let careful = WriterOptions { no_clobber: true, ..options };
    let error = Writer::create(&path("f"), &interfaces(), &careful).unwrap_err();
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("--no-clobber"));
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
    agree(&path, &chunk(0, 0, 10), 1, true);
    Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap();
}

/// A program that does `what` with its argument.
fn script(directory: &Path, what: &str) -> PathBuf {
    let path = directory.join("script");
    fs::write(&path, format!("#!/bin/sh\n{what}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Five files with `command`; what is to be said of it.
fn with_command(directory: &Path, command: PathBuf) -> (Vec<String>, Duration) {
    let options = WriterOptions {
        command: Some(command.into_os_string()),
        fsync: true,
        ..rotating(Format::Pcapng, Rotation { packets: Some(5), ..Rotation::default() })
    };
    let mut writer = Writer::create(&directory.join("f"), &interfaces(), &options).unwrap();
    let began = Instant::now();
    for n in 0..5 {
        put(&mut writer, &chunk(0, n * 5, 5)).unwrap();
    }
    let taken = began.elapsed();
    writer.close(&account()).unwrap();
    (writer.warnings(), taken)
}

#[test]
fn a_program_for_each_finished_file() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let moved = other.path().display();
    let command = script(other.path(), &format!("sleep 0.4; cp \"$1\" {moved}/$(basename \"$1\").done"));
    let (warnings, taken) = with_command(directory.path(), command);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(taken < Duration::from_millis(400), "packets do not wait for it: {taken:?}");
    for (n, name) in ["f.done", "f1.done", "f2.done", "f3.done", "f4.done"].iter().enumerate() {
        agree(&other.path().join(name), &chunk(0, u32::try_from(n).unwrap() * 5, 5), 1, true);
    }
}

#[test]
fn a_program_that_fails_is_told_once_and_counted() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (warnings, _) = with_command(directory.path(), script(other.path(), "exit 3"));
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
            // Where other programs find it.
            let copy = tempfile::NamedTempFile::new().unwrap();
            fs::copy(disk.path(&name), copy.path()).unwrap();
            agree(copy.path(), here, 1, format == Format::Pcapng);
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
}
