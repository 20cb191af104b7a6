//! Writes a pcapng file of made-up packets: a hundred numbers in UDP, one millisecond apart.
//!
//! ```text
//! write FILE
//! ```

use std::env;
use std::error::Error;
use std::path::Path;

use weir::writer::{Writer, WriterOptions};
use weir::{CaptureStats, Direction, FileInterface, Packet};

/// Headers of a packet from 192.0.2.1, port 7000, to 192.0.2.2, port 7001, with two bytes of data.
const HEADERS: [u8; 42] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
    0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0xf6, 0xcb, 192, 0, 2, 1, 192, 0, 2, 2, // IPv4
    0x1b, 0x58, 0x1b, 0x59, 0, 10, 0, 0, // UDP, without a checksum
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("usage: write FILE")?;
    let mut ethernet = FileInterface::new(1);
    ethernet.name = Some("made-up".to_owned());
    let mut writer = Writer::create(Path::new(&file), &[ethernet], &WriterOptions::default())?;
    for number in 0..100u16 {
        let data = [&HEADERS[..], &number.to_be_bytes()].concat();
        let mut packet = Packet::new(1_700_000_000_000_000_000 + u64::from(number) * 1_000_000, &data);
        packet.direction = Some(Direction::Out);
        writer.packet(&packet)?;
    }
    Ok(writer.close(&CaptureStats::default())?)
}
