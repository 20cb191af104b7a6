//! A payload and its ports.

use crate::bytes::Bytes;
use crate::ip::Around;

/// The payload of TCP or UDP, and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) tcp: bool,
    pub(crate) around: Around,
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) payload: Bytes<'a>,
}
