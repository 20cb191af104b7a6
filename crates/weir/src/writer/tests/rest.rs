//! Files that are closed temporarily and continued.

use std::fs;

use super::*;

const ALL: [Compression; 4] = [
    Compression::None,
    Compression::Zstd { level: Compression::ZSTD_LEVEL },
    Compression::Lz4,
    Compression::Gzip,
];

/// Writes records and single packets alternately, calling `between` after each.
fn write(path: &Path, format: Format, compression: Compression, between: fn(&mut Writer)) -> Vec<u8> {
    let options = WriterOptions { compression, ..options(format) };
    let interface = interface("eth0", 1);
    let mut writer = Writer::create(path, std::slice::from_ref(&interface), &options).unwrap();
    between(&mut writer);
    for round in 0..4 {
        put(&mut writer, &chunk(0, round * 100, 100)).unwrap();
        between(&mut writer);
        let packet = Packet { interface: 0, timestamp: 1, original_len: 300, data: vec![7; 300] };
        writer.packet(&packet.whole()).unwrap();
        between(&mut writer);
    }
    let (written, result) = writer.finish(&CaptureStats::default());
    result.unwrap();
    assert_eq!((written.packets, written.bytes), (404, len_of(path)));
    fs::read(path).unwrap()
}

#[test]
fn a_file_that_rests_becomes_what_it_would_have_been() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    for format in [Format::Pcapng, Format::Pcap { nanoseconds: true }] {
        for compression in ALL {
            let rested = write(&one, format, compression, |writer| {
                writer.suspend().unwrap();
                assert!(!writer.is_open());
            });
            assert!(rested == write(&other, format, compression, |_| {}), "{format:?}, {compression:?}");
        }
    }
}

#[test]
fn a_file_that_somebody_changed_meanwhile_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let changes: [fn(&Path); 3] = [
        |path| fs::write(path, "precious").unwrap(),
        |path| fs::remove_file(path).unwrap(),
        |path| {
            let copy = path.with_extension("copy");
            fs::copy(path, &copy).unwrap();
            fs::rename(copy, path).unwrap();
        },
    ];
    for change in changes {
        let mut writer = Writer::create(&path, &interfaces(), &options(Format::Pcapng)).unwrap();
        writer.suspend().unwrap();
        change(&path);
        let there = fs::read(&path).ok();
        let refused = put(&mut writer, &chunk(0, 0, 1)).unwrap_err();
        assert!(matches!(refused, WriteError::Changed { .. }), "{refused}");
        drop(writer);
        assert_eq!(fs::read(&path).ok(), there);
    }
}
