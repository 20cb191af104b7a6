//! Where packets go.

use std::io::{self, Write};

use weir::reader::{InterfaceStatistics, Reader, Run};
use weir::writer::WriteError;
use weir::{FileInterface, Packet};

use crate::failure::Failure;

/// Takes what is read, in its order. Numbers of interfaces are those that [`Sink::interface`] has told.
pub(crate) trait Sink {
    /// Another interface; the first is number 0. `fine`: an interface so far counts time in less than microseconds.
    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End>;
    /// Comments of sections that have begun since the input was opened: options of pcapng.
    fn comments(&mut self, _list: &[u8]) {}
    /// A packet.
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End>;
    /// Whether packets of this file are taken [as they stand](Sink::run), as far as is known of it by now.
    fn takes_runs(&self, _input: &Reader) -> bool {
        false
    }
    /// Packets as they stand in the file.
    fn run(&mut self, _run: &Run<'_>) -> Result<(), End> {
        Err(Failure::new("packets are not taken as they stand").into())
    }
    /// Counters.
    fn statistics(&mut self, _statistics: &InterfaceStatistics) -> Result<(), End> {
        Ok(())
    }
    /// Any other pcapng block.
    fn block(&mut self, _kind: u32, _body: &[u8]) -> Result<(), End> {
        Ok(())
    }
    /// A file was refused, so that what is taken is not all that was asked for.
    fn refused(&mut self) {}
    /// All begins again, after [`End::Unordered`]: nothing was taken.
    fn begin_again(&mut self) -> Result<(), End> {
        Err(Failure::new("what was taken cannot be taken back").into())
    }
    /// It cannot go on: what was taken is brought to its place as far as that goes.
    fn give_up(&mut self) {}
    /// No more comes.
    fn finish(&mut self) -> Result<(), End>;
}

/// Why nothing more is taken.
#[derive(Debug)]
pub(crate) enum End {
    /// Whoever reads the output has enough (`| head`): no failure.
    Enough,
    /// A packet is earlier than one before, which was [hoped](super::hope) not to be: it can begin again.
    Unordered,
    /// It cannot go on.
    Failed(Failure),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Enough,
            _ => Self::Failed(Failure::new(format_args!("cannot write to standard output: {error}"))),
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

/// Text for standard output, in large pieces.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: Vec<u8>,
    /// Bytes that are gathered before they are written; 1 on a terminal, where somebody waits.
    piece: usize,
}

impl Page {
    pub(crate) fn new() -> Self {
        use std::io::IsTerminal;
        let piece = if io::stdout().is_terminal() { 1 } else { 64 << 10 };
        Self { text: Vec::with_capacity(piece + 4096), piece }
    }

    /// To be called between lines.
    #[inline]
    pub(crate) fn turn(&mut self) -> io::Result<()> {
        if self.text.len() < self.piece { Ok(()) } else { self.flush() }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        // Past the standard library's buffer, which would look for line feeds again.
        let result = io::stdout().lock().write_all(&self.text).and_then(|()| io::stdout().lock().flush());
        self.text.clear();
        result
    }
}
