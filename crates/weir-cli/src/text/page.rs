//! Buffered text for standard output.

use std::io::{self, Write};

/// Size in bytes at which the text is written, if nothing has asked for it earlier.
const FULL: usize = 64 << 10;

/// Text that is not written yet. It goes out when there is much of it, and whenever nothing more is waiting.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: Vec<u8>,
}

impl Page {
    pub(crate) fn new() -> Self {
        Self { text: Vec::with_capacity(FULL + 4096) }
    }

    /// Returns whether it is time to write. To be asked between lines.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= FULL
    }

    /// Writes everything.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        // Bypasses the standard library's buffer, which would search for line feeds again.
        let result = io::stdout().lock().write_all(&self.text).and_then(|()| io::stdout().lock().flush());
        self.text.clear();
        result
    }
}
