//! What must hold for any bytes.

#![allow(dead_code, reason = "each target uses its part")]

use std::io::Cursor;

use weir::reader::{Item, ReadReason, Reader};
use weir_savefile::decode::{Decoder, Found, Step};

/// Steps through a file that is in memory as a whole: forward, inside the bytes, and the short cut agrees.
pub fn decode(bytes: &[u8]) {
    let mut decoder = Decoder::new();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let plain = decoder.plain(rest);
        let step = decoder.step(rest);
        if let Some(plain) = plain {
            let Ok(Step::Found { used, found: Found::Packet(packet) }) = &step else { panic!("{step:?}") };
            assert_eq!((plain.used, plain.start..plain.start + plain.captured), (*used, packet.data.clone()));
            assert_eq!(plain.record.timestamp, packet.timestamp);
            assert_eq!(plain.record.interface, packet.interface);
            assert_eq!(plain.record.original_len, packet.original_len);
            assert_eq!((plain.record.flags, plain.record.dropcount), (packet.flags, packet.dropcount));
        }
        match step {
            Ok(Step::Found { used, found }) => {
                assert!(used > 0 && used <= rest.len());
                if let Found::Packet(packet) = found {
                    assert!(packet.data.end <= used);
                    assert!(packet.notes.end <= used);
                }
                at += used;
            }
            Ok(Step::Need(need)) => {
                assert!(need > rest.len());
                return;
            }
            Err(_) => return,
        }
    }
}

/// Reads to the end. `most`: packets at which it stops, since compressed files may be far longer than their bytes.
pub fn read(bytes: &[u8], most: u64) {
    let Ok(mut reader) = Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "fuzz") else { return };
    let mut packets = 0;
    loop {
        match reader.next() {
            Ok(Some(Item::Packet(packet))) => {
                assert!((packet.interface as usize) < 65_536);
                packets += 1;
            }
            Ok(Some(Item::Interface(number))) => assert!((number as usize) < reader.interfaces().len()),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.packets, packets);
                assert!(error.position.is_some());
                assert!(!error.to_string().is_empty());
                break;
            }
        }
        if packets == most {
            return;
        }
    }
    assert_eq!(reader.packets(), packets);
    assert!(reader.next().unwrap().is_none());
}

/// What repairing makes can be read to its end, and each byte is saved or lost.
pub fn repair(bytes: &[u8]) {
    let mut out = Vec::new();
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let told = weir::reader::repair_stream(input, "fuzz", &mut out, |error| panic!("{error}"));
    let Ok(told) = told else { return };
    assert_eq!(told.bytes, out.len() as u64);
    let plain = !matches!(bytes, [0x1f, 0x8b, ..] | [_, _, 0x2f, 0xfd, ..] | [_, _, 0x4d, 0x18, ..]);
    // Of files put together, headers are in neither, and records may be written anew.
    if plain && told.further.is_empty() {
        assert_eq!(told.bytes + told.lost_bytes, bytes.len() as u64);
    }
    let mut reader = Reader::from_read(Box::new(Cursor::new(out)), "repaired").unwrap();
    let mut packets = 0;
    loop {
        match reader.next_packet() {
            Ok(Some(_)) => packets += 1,
            Ok(None) => break,
            Err(error) => match error.reason {
                ReadReason::LeftOut { .. } => panic!("something damaged was saved: {error}"),
                _ => panic!("what was saved cannot be read: {error}"),
            },
        }
    }
    assert_eq!(packets, told.packets);
}
