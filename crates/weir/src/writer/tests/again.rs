//! Starting a file over.

use std::fs;

use super::*;

#[test]
fn a_file_begun_again_is_as_if_nothing_had_been_taken() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    let zstd = Compression::Zstd { level: Compression::ZSTD_LEVEL };
    for compression in [Compression::None, zstd] {
        let options = WriterOptions { compression, ..options(Format::Pcapng) };
        let mut writer = Writer::create(&one, &interfaces()[..1], &options).unwrap();
        put(&mut writer, &chunk(0, 0, 500)).unwrap();
        assert!(writer.begin_again(&interfaces()).unwrap());
        let mut judge = Writer::create(&other, &interfaces(), &options).unwrap();
        for writer in [&mut writer, &mut judge] {
            put(writer, &chunk(1, 500, 7)).unwrap();
            writer.close(&CaptureStats::default()).unwrap();
        }
        assert_eq!(writer.written(), judge.written());
        assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{compression:?}");
    }
    let rotation = Rotation { size: Some(1 << 20), ..Rotation::default() };
    let options = WriterOptions { rotation, ..options(Format::Pcapng) };
    let mut writer = Writer::create(&directory.path().join("ring"), &interfaces(), &options).unwrap();
    assert!(!writer.begin_again(&interfaces()).unwrap());
}
