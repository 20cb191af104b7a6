//! A payload, its ports, and the IP header in front of it.

use std::net::IpAddr;

use weir_packet::Endpoint;
use weir_packet::protocol::TCP;

use crate::Printer;
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
    /// TCP or UDP.
    pub(crate) protocol: u8,
    pub(crate) around: Around,
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) payload: Bytes<'a>,
}

impl Segment<'_> {
    pub(crate) fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }
}

impl Printer<'_> {
    /// Passes a payload to its reader. `sequence`: the number of its first byte.
    pub(crate) fn read_segment(&mut self, segment: &Segment<'_>, sequence: Option<u32>) {
        let Some(read) = self.segments.as_deref_mut() else { return };
        let Segment { protocol, around, source, destination, payload } = *segment;
        let end = |address, port| Endpoint { address, port };
        let (source, destination) = (end(around.source, source), end(around.destination, destination));
        let segment = weir_parse::Segment { protocol, source, destination, sequence, payload };
        if let Some(protocol) = read(&segment) {
            self.facts.protocol = Some(protocol);
        }
    }
}
