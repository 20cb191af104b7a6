//! Turns: pieces of work that may be done side by side until a line is drawn, and not across it.

use crate::sync::{Arc, AtomicU64, Ordering};

/// Gives out turns, in the order of the work. Whoever has it draws the lines.
#[derive(Debug)]
pub struct Turns {
    /// Turns given out so far.
    given: u64,
    /// Those among them that were given out before the last line.
    before: u64,
    done: Arc<AtomicU64>,
}

/// Leave to do a piece of work, and the duty to be dropped when it is done.
#[derive(Debug)]
pub struct Turn {
    before: u64,
    done: Arc<AtomicU64>,
}

impl Turns {
    /// None given out.
    pub fn new() -> Self {
        Self { given: 0, before: 0, done: Arc::new(AtomicU64::new(0)) }
    }

    /// The next one.
    pub fn give(&mut self) -> Turn {
        self.given += 1;
        Turn { before: self.before, done: Arc::clone(&self.done) }
    }

    /// Draws a line: turns that are given out from now on come only when all others are done.
    pub fn draw_line(&mut self) {
        self.before = self.given;
    }

    /// Whether all turns that were given out before the last line are done.
    pub fn line_is_passed(&self) -> bool {
        has_come(&self.done, self.before)
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

impl Turn {
    /// Whether the work may be begun. Once it may, it may for good.
    pub fn has_come(&self) -> bool {
        has_come(&self.done, self.before)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Release, with the load in `has_come`: the work is done for whoever comes after it.
        self.done.fetch_add(1, Ordering::Release);
    }
}

/// Turns behind a line are not begun before those in front of it are done, so no count reaches the line by others.
fn has_come(done: &AtomicU64, before: u64) -> bool {
    // Acquire, with the addition in `drop`.
    done.load(Ordering::Acquire) >= before
}
