//! A file large enough to be read by blocks, compared with the same bytes as a stream.

use std::fs;
use std::io::Cursor;

use weir::Filter;
use weir::filter::FileFilter;
use weir::reader::{ByteOrder, Item, Reader};

use super::all;
use super::files::Bytes;

/// Packets of all lengths from 1 byte to beyond what is kept in front of a block, so that each place of a block's end is
/// met.
fn file() -> Vec<u8> {
    let mut bytes = Bytes::new(ByteOrder::Little).section().interface(Some(9));
    let mut length = 1;
    for number in 0..3000_u32 {
        let byte = u8::try_from(number % 256).unwrap();
        bytes = bytes.packet(0, u64::from(number) + 1, &vec![byte; length]);
        length = match number % 100 {
            99 => 130_000,
            _ => length * 5 / 3 % 9001 + 1,
        };
    }
    bytes.bytes
}

#[test]
fn blocks_give_what_a_stream_gives() {
    let bytes = file();
    assert!(bytes.len() > 12 << 20, "{} bytes are no large file", bytes.len());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.pcapng");
    // The last one is cut within a packet.
    for end in [bytes.len(), bytes.len() - 1001] {
        fs::write(&path, &bytes[..end]).unwrap();
        let expected = all(&bytes[..end]);
        let mut reader = Reader::open(&path).unwrap();
        let mut number = 0;
        let error = loop {
            match reader.next_packet() {
                Ok(Some(packet)) => {
                    let kept = &expected.packets[number];
                    assert_eq!((packet.timestamp, packet.data), (kept.timestamp, &kept.data[..]));
                    number += 1;
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        assert_eq!(number, expected.packets.len());
        let place =
            |error: Option<weir::reader::ReadError>| error.map(|error| (error.position, error.packets));
        assert_eq!(place(error), place(expected.error));
        assert!(end < bytes.len() || reader.position() == end as u64, "at {}", reader.position());
    }
}

/// By blocks and as a stream, packet by packet and run by run.
#[test]
fn what_does_not_match_is_counted_and_metered() {
    let bytes = file();
    let size = bytes.len() as u64;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    fs::write(&path, &bytes).unwrap();
    let lengths: Vec<usize> = all(&bytes).packets.iter().map(|packet| packet.data.len()).collect();
    for (expression, wanted) in [("ip6", usize::MAX), ("greater 5000", 5000), ("greater 1", 1)] {
        let expected = lengths.iter().filter(|&&length| length >= wanted).count() as u64;
        for by_runs in [false, true] {
            let stream = Reader::from_read(Box::new(Cursor::new(bytes.clone())), "large").unwrap();
            for reader in [stream, Reader::open(&path).unwrap()] {
                let mut reader = reader.filter(FileFilter::new(Filter::new(expression)).unwrap());
                let meter = reader.meter();
                assert_eq!(meter.began(), None);
                let mut packets = 0;
                loop {
                    if by_runs && let Some(run) = reader.next_run() {
                        packets += run.packets;
                    } else if let Some(item) = reader.next().unwrap() {
                        packets += u64::from(matches!(item, Item::Packet(_)));
                    } else {
                        break;
                    }
                }
                let counted = (packets, reader.packets(), reader.filtered());
                assert_eq!(counted, (expected, expected, lengths.len() as u64 - expected), "{expression}");
                assert_eq!((meter.began(), meter.taken()), (Some(1), size), "{expression}");
            }
        }
    }
}
