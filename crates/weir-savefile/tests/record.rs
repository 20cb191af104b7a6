//! Properties of records: encoded records decode, and any input is safe.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use weir_savefile::record::{
    OVERHEAD, RecordHeader, Records, Timestamps, encode, first_records, whole_records,
};

fn header() -> impl Strategy<Value = RecordHeader> {
    (
        any::<u32>(),
        any::<u64>(),
        any::<u32>(),
        option::of(any::<u32>()),
        option::of(any::<u64>()),
        option::of(any::<u32>()),
    )
        .prop_map(|(interface, timestamp, original_len, flags, dropcount, queue)| RecordHeader {
            interface,
            timestamp,
            original_len,
            flags,
            dropcount,
            queue,
        })
}

/// Headers with the parts of their packets.
fn packets() -> impl Strategy<Value = Vec<(RecordHeader, Vec<Vec<u8>>)>> {
    vec((header(), vec(vec(any::<u8>(), 0..40), 0..4)), 0..20)
}

/// Returns the sequence of records and the end of each one.
fn run(packets: &[(RecordHeader, Vec<Vec<u8>>)]) -> (Vec<u8>, Vec<usize>) {
    let mut buf = vec![0xee; 1 << 16];
    let (mut at, mut ends) = (0, vec![0]);
    for (header, parts) in packets {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        at += encode(&mut buf[at..], header, &parts).expect("the buffer is large enough");
        ends.push(at);
    }
    buf.truncate(at);
    (buf, ends)
}

/// Reads to the end and checks what must hold for any input.
fn walk(bytes: &[u8]) {
    let mut records = Records::new(bytes);
    let (mut errors, mut before) = (0, 0);
    while let Some(record) = records.next() {
        match record {
            Ok(record) => {
                assert!(records.offset() >= before + OVERHEAD + record.data.len());
                assert!(bytes.as_ptr_range().contains(&record.data.as_ptr()));
            }
            Err(malformed) => {
                assert_eq!(malformed.offset, before);
                assert_eq!(records.offset(), before);
                errors += 1;
            }
        }
        before = records.offset();
    }
    assert!(records.offset() <= bytes.len());
    let mut timestamps = Timestamps::new(bytes);
    timestamps.by_ref().for_each(drop);
    assert!((records.offset()..=bytes.len()).contains(&timestamps.offset()), "they look at less");
    Timestamps::last(bytes);
    assert_eq!(errors, usize::from(records.offset() < bytes.len()));
    assert!(records.next().is_none());
}

proptest! {
    #[test]
    fn round_trip(packets in packets()) {
        let (bytes, _) = run(&packets);
        let records: Vec<_> = Records::new(&bytes).map(Result::unwrap).collect();
        prop_assert_eq!(records.len(), packets.len());
        for (record, (header, parts)) in records.iter().zip(&packets) {
            prop_assert_eq!(record.data, parts.concat());
            prop_assert_eq!(record.timestamp, header.timestamp);
            prop_assert_eq!(record.interface, header.interface);
            prop_assert_eq!(record.original_len, header.original_len);
            prop_assert_eq!(record.flags, header.flags);
            prop_assert_eq!(record.dropcount, header.dropcount.unwrap_or(0));
            prop_assert_eq!(record.queue, header.queue.unwrap_or(0));
        }
        let mut timestamps = Timestamps::new(&bytes);
        let of_headers = packets.iter().map(|(header, _)| header.timestamp);
        prop_assert!(timestamps.by_ref().eq(of_headers));
        prop_assert_eq!(timestamps.offset(), bytes.len());
        prop_assert_eq!(Timestamps::last(&bytes), packets.last().map(|(header, _)| header.timestamp));
    }

    #[test]
    fn a_cut_run_keeps_its_whole_records(packets in packets(), cut in any::<prop::sample::Index>()) {
        let (bytes, ends) = run(&packets);
        let cut = cut.index(bytes.len() + 1);
        let whole = ends.iter().copied().filter(|end| *end <= cut).max().unwrap_or(0);
        prop_assert_eq!(whole_records(&bytes[..cut]), whole);
    }

    #[test]
    fn first_records_ends_where_the_record_ends(packets in packets(), n in 0..30usize) {
        let (bytes, ends) = run(&packets);
        prop_assert_eq!(first_records(&bytes, n), ends[n.min(packets.len())]);
    }

    #[test]
    fn encode_uses_the_whole_buffer_or_nothing(packets in packets(), room in 0..200usize) {
        for (header, parts) in &packets {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let mut large = vec![0; 1024];
            let used = encode(&mut large, header, &parts).unwrap();
            let mut small = vec![0xee; room];
            let fits = encode(&mut small, header, &parts);
            prop_assert_eq!(fits, (used <= room).then_some(used));
            if fits.is_none() {
                prop_assert!(small.iter().all(|byte| *byte == 0xee));
            }
        }
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..400)) {
        walk(&bytes);
    }

    /// Small random words pass for lengths and types far more often than random bytes do.
    #[test]
    fn random_words_do_no_harm(words in vec(prop_oneof![Just(6u32), 0..80u32, any::<u32>()], 0..100)) {
        walk(&words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn damaged_records_do_no_harm(
        packets in packets(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (mut bytes, _) = run(&packets);
        for (at, value) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        walk(&bytes);
    }
}
