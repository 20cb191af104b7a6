//! Destinations of packets.

use std::io;

use weir::reader::{InterfaceStatistics, Reader, Run};
use weir::who::Whose;
use weir::writer::WriteError;
use weir::{FileInterface, Packet};
use weir_render::Ruling;

use crate::failure::{self, Failure};

/// A destination of the input, in its order. Interfaces are numbered as passed to [`Sink::interface`].
pub(crate) trait Sink {
    /// Adds an interface; the first is number 0. `fine`: an interface so far has timestamps finer than microseconds.
    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End>;
    /// Adds comments of sections that have begun since the input was opened, as pcapng options.
    fn comments(&mut self, _list: &[u8]) {}
    /// Is told what rules decide about the next packet.
    fn judged(&mut self, _ruling: &Ruling) {}
    /// Is told whose the next packet is.
    fn owned(&mut self, _whose: &Whose) {}
    /// Adds a packet.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End>;
    /// Is told of a packet that is left out because of its time, with the number of its interface and the losses before it.
    fn left(&mut self, _interface: u32, _lost: u64) {}
    /// Returns whether packets of this file are accepted [unchanged](Sink::run), as far as can be told yet.
    fn takes_runs(&self, _input: &Reader) -> bool {
        false
    }
    /// Adds packets as stored in the file.
    fn run(&mut self, _run: &Run<'_>) -> Result<(), End> {
        Err(Failure::new("packets are not taken as they stand").into())
    }
    /// Adds interface counters.
    fn statistics(&mut self, _statistics: &InterfaceStatistics) -> Result<(), End> {
        Ok(())
    }
    /// Adds any other pcapng block.
    fn block(&mut self, _kind: u32, _body: &[u8]) -> Result<(), End> {
        Ok(())
    }
    /// Is told that no more packets are waiting: what was taken should reach its readers.
    fn pause(&mut self) -> Result<(), End> {
        Ok(())
    }
    /// Adds a mark for what a file had before its writer began it anew: at least `bytes` bytes were not read.
    fn overwritten(&mut self, _bytes: u64) -> Result<(), End> {
        Ok(())
    }
    /// Records that a file was rejected, so that the result is incomplete.
    fn refused(&mut self) {}
    /// Starts over after [`End::Unordered`], with nothing accepted so far.
    fn begin_again(&mut self) -> Result<(), End> {
        Err(Failure::new("what was taken cannot be taken back").into())
    }
    /// Stops after an error and saves as much as possible.
    fn give_up(&mut self) {}
    /// Ends the input.
    fn finish(&mut self) -> Result<(), End>;
}

/// The reason why no more is accepted.
#[derive(Debug)]
pub(crate) enum End {
    /// The reader of the output has enough (`| head`), which is not a failure.
    Enough,
    /// A packet is earlier than a previous one, contrary to the [assumption](super::hope): it can start over.
    Unordered,
    /// An error.
    Failed(Failure),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Enough,
            _ => Self::Failed(failure::unprinted(&error)),
        }
    }
}

impl From<WriteError> for End {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Closed { .. } => Self::Enough,
            error => Self::Failed(error.into()),
        }
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
