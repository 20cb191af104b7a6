//! The reader returns everything in a file, whichever machine and program wrote it.

mod corpus;
mod damage;
mod files;
mod formats;
mod judges;
mod large;
mod merge;
mod packed;
mod repair;

use std::io::Cursor;

use weir::reader::{ReadError, Reader, Warning};

/// A packet, as a test keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) timestamp: u64,
    pub(crate) interface: u32,
    pub(crate) original_len: u32,
    pub(crate) data: Vec<u8>,
}

/// Everything in a file.
pub(crate) struct All {
    pub(crate) packets: Vec<Kept>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) error: Option<ReadError>,
}

pub(crate) fn reader(bytes: &[u8]) -> Result<Reader, ReadError> {
    Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "test")
}

pub(crate) fn all(bytes: &[u8]) -> All {
    let mut packets = Vec::new();
    let mut reader = match reader(bytes) {
        Ok(reader) => reader,
        Err(error) => return All { packets, warnings: Vec::new(), error: Some(error) },
    };
    let error = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push(Kept {
                timestamp: packet.timestamp,
                interface: packet.interface,
                original_len: packet.original_len,
                data: packet.data.to_vec(),
            }),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    // The end stays the end.
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.packets(), packets.len() as u64);
    All { packets, warnings: reader.warnings().to_vec(), error }
}
