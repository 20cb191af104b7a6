//! The walker of live chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_savefile::record::{OVERHEAD, Records, whole_records};

fuzz_target!(|bytes: &[u8]| {
    let mut records = Records::new(bytes);
    let mut before = 0;
    while let Some(record) = records.next() {
        match record {
            Ok(record) => assert!(records.offset() >= before + OVERHEAD + record.data.len()),
            Err(malformed) => assert_eq!((malformed.offset, records.offset()), (before, before)),
        }
        before = records.offset();
    }
    assert_eq!(whole_records(bytes), before);
});
