//! Values, and where they are written.

use std::ops::{Deref, Range};

use crate::bytes::{Bytes, Cut, text};

/// A value, and where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// The bytes that say it, from the beginning of the message on. A name of DNS may go on elsewhere in the message.
    pub at: Range<usize>,
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl Placed<String> {
    /// Returns the `len` bytes at `from` as text, with U+FFFD in place of what is not UTF-8.
    pub fn text(bytes: Bytes<'_>, from: usize, len: usize) -> Result<Self, Cut> {
        let at = bytes.at + from;
        Ok(Self { value: text(bytes.get(from, len)?), at: at..at + len })
    }
}
