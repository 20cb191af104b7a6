//! Super-frames in pieces that the wire carries.

use weir_packet::ethertype::{IPV4, IPV6, PPPOE};
use weir_packet::link;
use weir_packet::link_type::NFLOG;
use weir_packet::protocol::TCP;

use super::{complete, trailer};
use crate::checksum::sum;
use crate::layout::{Layout, network};

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Cuts a TCP packet of an offload into segments whose IP packets have at most `longest` bytes, as the sender's network
/// card would have done, and gives each to `take`. `link_type` is that of capture files. Returns how many there are;
/// `None`: the packet has no more than that, or it cannot be cut because it is no TCP packet, a fragment, or not whole.
///
/// Headers, sequence numbers, flags and checksums are those of segments, and the identification of IPv4 counts up.
///
/// # Errors
///
/// The error of `take`, after which no segment follows.
pub fn cut<E>(
    link_type: u16,
    frame: &[u8],
    longest: usize,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    let Some(segmentation) = Segmentation::of(link_type, frame, longest) else { return Ok(None) };
    let mut segment = Vec::with_capacity(segmentation.headers.len() + segmentation.size);
    let mut count = 0;
    for piece in segmentation.payload.chunks(segmentation.size) {
        segment.clear();
        segment.extend_from_slice(&segmentation.headers);
        segment.extend_from_slice(piece);
        segmentation.finish(&mut segment, count, piece.len());
        take(&segment)?;
        count += 1;
    }
    Ok(Some(count))
}

/// How a packet is cut.
struct Segmentation<'a> {
    /// All headers of a segment.
    headers: Vec<u8>,
    /// Where the IP header begins in them.
    network: usize,
    payload: &'a [u8],
    /// Bytes of payload in each segment but the last.
    size: usize,
}

impl<'a> Segmentation<'a> {
    fn of(link_type: u16, frame: &'a [u8], longest: usize) -> Option<Self> {
        let (IPV4 | IPV6, network) = network(link_type, frame)? else { return None };
        // The header of a session has a length, too, and so has the attribute that is a packet; 802.11 may have a checksum.
        if link_type == NFLOG
            || trailer::covered(link_type, frame).is_some()
            || link::payload(link_type, frame)?.behind_tags(frame).kind == PPPOE
        {
            return None;
        }
        let packet = frame.get(network..)?;
        let layout = Layout::of(packet)?;
        let longest = longest.min(usize::from(u16::MAX));
        if layout.transport.end <= longest
            || layout.protocol != TCP
            || layout.is_fragment
            || layout.is_routed
            || !layout.is_whole
        {
            return None;
        }
        let transport = &packet[layout.transport.clone()];
        let header = usize::from(transport.get(12)? >> 4) * 4;
        let (header, payload) =
            transport.split_at_checked(header).filter(|(header, _)| header.len() >= 20)?;
        let mut network_header = packet[..layout.transport.start].to_vec();
        // A header for the option that tells the length of a packet of more than 65,535 bytes (RFC 2675).
        if let [next, 0, 0xc2, 4, ..] = network_header[if layout.is_ipv6 { 40 } else { 0 }..]
            && network_header.len() == 48
            && network_header[6] == 0
        {
            network_header.truncate(40);
            network_header[6] = next;
        }
        let size = longest.checked_sub(network_header.len() + header.len()).filter(|&size| size > 0)?;
        let headers = [&frame[..network], &network_header, header].concat();
        Some(Self { headers, network, payload, size })
    }

    /// Writes what depends on the segment.
    fn finish(&self, segment: &mut [u8], index: u64, piece: usize) {
        let offset = usize::try_from(index).unwrap_or(usize::MAX) * self.size;
        let is_last = offset + piece == self.payload.len();
        let packet = &mut segment[self.network..];
        let length = low_16(packet.len());
        if packet[0] >> 4 == 4 {
            let header = usize::from(packet[0] & 0xf) * 4;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            let identification = u16::from_be_bytes([packet[4], packet[5]])
                .wrapping_add(low_16(usize::try_from(index & 0xffff).expect("16 bits")));
            packet[4..6].copy_from_slice(&identification.to_be_bytes());
            packet[10..12].fill(0);
            let checksum = !sum(&[&packet[..header]]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
        }
        let Some(layout) = Layout::of(packet) else { return };
        let tcp = &mut packet[layout.transport.clone()];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let advance = u32::try_from(offset & 0xffff_ffff).expect("32 bits");
        tcp[4..8].copy_from_slice(&sequence.wrapping_add(advance).to_be_bytes());
        if !is_last {
            tcp[13] &= !FIN_PSH;
        }
        if index > 0 {
            tcp[13] &= !CWR;
        }
        complete(packet, &layout);
    }
}

fn low_16(number: usize) -> u16 {
    u16::try_from(number).expect("a segment is no longer than a packet may be")
}
