//! What is read: one file, or several merged by time.

use std::path::PathBuf;

use weir::reader::{Item, ReadError, Reader, Warning};
use weir::{FileInterface, Packet};

use super::failure;
use crate::failure::Failure;

/// The files of the command line.
#[derive(Debug)]
pub(crate) struct Input {
    reader: Reader,
}

impl Input {
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Self, Failure> {
        let reader = Reader::open(&paths[0]).map_err(failure)?;
        Ok(Self { reader })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        self.reader.next()
    }

    /// Whether there was another packet: the fastest way through.
    #[inline]
    pub(crate) fn next_packet(&mut self) -> Result<bool, ReadError> {
        self.reader.next_packet().map(|packet: Option<Packet<'_>>| packet.is_some())
    }

    pub(crate) fn interfaces(&self) -> &[FileInterface] {
        self.reader.interfaces()
    }

    /// Bytes in all.
    pub(crate) fn size(&self) -> Option<u64> {
        self.reader.size()
    }

    /// Bytes that are read.
    pub(crate) fn position(&self) -> u64 {
        self.reader.position()
    }

    /// The text at the start of the first file.
    pub(crate) fn comment(&self) -> Option<String> {
        self.reader.sections().first()?.comment.clone()
    }

    /// The first file: what it is, others shall be.
    pub(crate) fn first(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn warnings(&self) -> impl Iterator<Item = (&str, &Warning)> {
        self.reader.warnings().iter().map(|warning| (self.reader.name(), warning))
    }
}
