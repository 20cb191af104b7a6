//! A payload, its ports, and the IP header in front of it.

use std::net::IpAddr;

use crate::base::bytes::Bytes;

/// The IP header of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Time to live, or hop limit.
    pub(crate) ttl: u8,
    /// Whether it is a first fragment: without the rest of the segment, its checksum cannot be verified.
    pub(crate) fragment: bool,
    /// Whether a header between IP and the segment has printed the addresses.
    pub(crate) shown: bool,
}

/// The payload of TCP or UDP, and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) tcp: bool,
    pub(crate) around: Around,
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) payload: Bytes<'a>,
}
