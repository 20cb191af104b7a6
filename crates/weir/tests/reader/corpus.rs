//! The files that fuzzing starts from: files of other programs, and corner cases. They are read and repaired, both
//! whole and truncated.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use weir::reader::repair_stream;

use crate::all;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

#[test]
fn the_corpus_does_no_harm_and_can_be_repaired() {
    let files = corpus();
    assert!(files.len() > 30);
    let mut packets = 0;
    for (name, file) in files {
        let read = all(&file);
        packets += read.packets.len();
        let without = ["records", "length-zero.pcapng", "length-4gib.pcapng", "cut.pcapng.zst"];
        let without = without.iter().any(|end| name.ends_with(end));
        assert_eq!(read.packets.is_empty(), without, "{name}");
        for cut in (0..file.len()).step_by(7) {
            assert!(all(&file[..cut]).packets.len() <= read.packets.len(), "{name} cut at {cut}");
        }
        let mut out = Vec::new();
        let told = repair_stream(Box::new(Cursor::new(file)), &name, &mut out, |error| panic!("{error}"));
        let Ok(told) = told else {
            assert!(without, "{name}: {told:?}");
            continue;
        };
        let repaired = all(&out);
        assert!(repaired.error.is_none(), "{name}: {:?}", repaired.error);
        assert_eq!(repaired.packets.len() as u64, told.packets);
        assert!(repaired.packets.len() >= read.packets.len(), "{name}");
    }
    assert!(packets > 100);
}
