//! What a packet carries behind the headers of TCP and UDP.

use weir_packet::protocol::{TCP, UDP};
use weir_packet::{Endpoint, Ip, Layer, Walk};

use crate::bytes::{Bytes, Cut};

const SYN: u8 = 2;

/// The payload of TCP or UDP, and what its headers say of it.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The protocol in front of it (IANA): TCP or UDP.
    pub protocol: u8,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// The number of its first byte in a TCP connection; `None`: UDP, or a part of a fragmented datagram.
    pub sequence: Option<u32>,
    /// The payload. It is at [`Bytes::at`] in the frame.
    pub payload: Bytes<'a>,
}

impl Segment<'_> {
    /// Returns whether it is one of TCP.
    pub fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }
}

/// Returns the payloads in a frame, the outermost first: that of a tunnel comes before what it carries.
///
/// `link_type`: `LINKTYPE_*` (tcpdump.org/linktypes.html); `original_len`: length on the wire.
pub fn segments(link_type: u16, frame: &[u8], original_len: u32) -> impl Iterator<Item = Segment<'_>> {
    let all = Bytes::new(frame, original_len as usize);
    Walk::new(link_type, frame).filter_map(move |layer| match layer {
        Layer::Ip { at, ip } if matches!(ip.protocol, TCP | UDP) && !ip.is_later() => {
            let packet = all.from(at);
            // What is missing counts: the lengths are those in the header.
            let len = ip.length.unwrap_or(packet.len);
            let [source, destination] = ip.ends(packet.data);
            let packet = packet.sized(len);
            let [from, to] = ip.ports(packet.data)?;
            let end = |address, port| Endpoint { address, port };
            let (payload, sequence) = payload(&ip, packet.from(ip.payload)).ok()?;
            Some(Segment {
                protocol: ip.protocol,
                source: end(source, from),
                destination: end(destination, to),
                sequence: sequence.filter(|_| ip.fragment.is_none()),
                payload,
            })
        }
        _ => None,
    })
}

/// Returns what is behind the header of TCP or UDP, and the sequence number of its first byte.
fn payload<'a>(ip: &Ip, bytes: Bytes<'a>) -> Result<(Bytes<'a>, Option<u32>), Cut> {
    if ip.protocol == UDP {
        // The length is 0 in jumbograms.
        let len = match usize::from(bytes.u16(4)?) {
            0 if bytes.len > 0xffff => bytes.len,
            8.. => bytes.u16(4)?.into(),
            _ => return Err(Cut),
        };
        bytes.get(0, 8)?;
        // The rest of the datagram is in other fragments.
        let datagram = if ip.fragment.is_some() { bytes.sized(len) } else { bytes.first(len) };
        return Ok((datagram.from(8), None));
    }
    bytes.get(0, 20)?;
    let header = usize::from(bytes.u8(12)? >> 4) * 4;
    if header < 20 || header > bytes.len {
        return Err(Cut);
    }
    let opens = bytes.u8(13)? & SYN != 0;
    Ok((bytes.from(header), Some(bytes.u32(4)?.wrapping_add(opens.into()))))
}
