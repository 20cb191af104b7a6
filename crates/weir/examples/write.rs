//! Writes a pcapng file of made-up packets: a hundred numbers in UDP, one millisecond apart.
//!
//! ```text
//! write FILE
//! ```

use std::env;
use std::error::Error;
use std::path::Path;

use weir::writer::{Writer, WriterOptions};
use weir::{CaptureStats, Direction, FileInterface, Notes, Packet};

/// Headers of a packet from 192.0.2.1, port 7000, to 192.0.2.2, port 7001, with two bytes of data.
const HEADERS: [u8; 42] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
    0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0xf6, 0xcb, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4
    0x1b, 0x58, 0x1b, 0x59, 0, 10, 0, 0, // UDP, without a checksum
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("usage: write FILE")?;
    let ethernet =
        FileInterface { link_type: 1, name: Some("made-up".to_owned()), ..FileInterface::default() };
    let mut writer = Writer::create(Path::new(&file), &[ethernet], &WriterOptions::default())?;
    for number in 0..100u16 {
        writer.packet(&Packet {
            data: &[&HEADERS[..], &number.to_be_bytes()].concat(),
            timestamp: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000,
            original_len: 44,
            interface: 0,
            queue: 0,
            direction: Some(Direction::Out),
            lost_before: 0,
            comment: None,
            notes: Notes::default(),
        })?;
    }
    Ok(writer.close(&CaptureStats::default())?)
}
