//! Chunks of a few packets each, written together.

use super::*;
use crate::live::source::simulated;
use crate::reader::Reader;

const PACKETS: u64 = 300;

/// Returns the number and timestamp of each packet in `files`.
fn read(files: &[PathBuf]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for file in files {
        let mut reader = Reader::open(file).unwrap();
        while let Some(packet) = reader.next_packet().unwrap() {
            found.push((u64::from_be_bytes(*packet.data.first_chunk().unwrap()), packet.timestamp));
        }
    }
    found
}

#[test]
fn short_chunks_are_written_together_and_go_home_at_once() {
    let formats = [Format::Pcapng, Format::Pcap { nanoseconds: true }];
    for (format, in_a_file) in formats.into_iter().flat_map(|format| [(format, None), (format, Some(70))]) {
        let directory = tempfile::tempdir().unwrap();
        let rotation = Rotation { packets: in_a_file, ..Rotation::default() };
        let options = WriterOptions { rotation, flush_each: true, ..options(format) };
        let mut writer = Writer::create(&directory.path().join("f"), &interfaces(), &options).unwrap();
        let (mut kernel, mut outlets) = simulated::queues(1, 4);
        for number in 0..PACKETS {
            let mut packet = [0; 60];
            packet[..8].copy_from_slice(&number.to_be_bytes());
            assert!(simulated::write(&mut kernel[0], number, &packet));
            if number % 3 == 0 {
                writer.gather(outlets[0].take().unwrap().unwrap()).unwrap();
                assert_eq!(outlets[0].gauge().fill().held, 0, "it is copied");
            }
        }
        writer.gather(outlets[0].take().unwrap().unwrap()).unwrap();
        if in_a_file.is_none() {
            assert_eq!(writer.written().packets, 0, "they wait for one another, or to be asked for");
        }
        writer.flush().unwrap();
        assert_eq!(writer.written().packets, PACKETS);
        let (written, result) = writer.finish(&account());
        result.unwrap();
        assert_eq!(written.queues, [((0, 0), PACKETS)].into());
        let mut files: Vec<_> =
            std::fs::read_dir(&directory).unwrap().map(|one| one.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), if in_a_file.is_some() { 5 } else { 1 });
        assert!(read(&files).into_iter().eq((0..PACKETS).map(|number| (number, number))), "{format:?}");
    }
}
