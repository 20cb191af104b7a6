//! Chunks that wait for the reader of a FIFO, so that the capture and its lines need not. They stay in their pool: when it is
//! full, further packets are lost, and counted.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use weir::Chunk;
use weir::writer::{WriteError, Writer};

/// Time after which whoever waits for the end should know why.
const PATIENCE: Duration = Duration::from_secs(1);

/// How chunks are written, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: VecDeque<Chunk>,
    /// Whether chunks hold few packets and are gathered.
    gathers: bool,
}

impl Backlog {
    pub(super) fn new(gathers: bool) -> Self {
        Self { waiting: VecDeque::new(), gathers }
    }

    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes a chunk after those that wait, or lets it wait.
    pub(super) fn write(&mut self, writer: &mut Writer, chunk: Chunk) -> Result<(), WriteError> {
        self.waiting.push_back(chunk);
        self.advance(writer)
    }

    /// Writes what the reader has room for.
    pub(super) fn advance(&mut self, writer: &mut Writer) -> Result<(), WriteError> {
        if writer.is_behind() {
            writer.flush_within(Duration::ZERO)?;
        }
        while !writer.is_behind()
            && let Some(chunk) = self.waiting.pop_front()
        {
            self.put(writer, chunk)?;
        }
        Ok(())
    }

    /// Writes everything, however long the reader takes. `late` is called once that takes long.
    pub(super) fn finish(&mut self, writer: &mut Writer, late: impl FnOnce()) -> Result<(), WriteError> {
        let (start, mut late) = (Instant::now(), Some(late));
        self.advance(writer)?;
        while !self.is_empty() || writer.is_behind() {
            writer.flush_within(PATIENCE)?;
            self.advance(writer)?;
            if let Some(late) = late.take_if(|_| start.elapsed() > PATIENCE) {
                late();
            }
        }
        Ok(())
    }

    fn put(&self, writer: &mut Writer, chunk: Chunk) -> Result<(), WriteError> {
        if self.gathers { writer.gather(chunk) } else { writer.write(chunk) }
    }
}
