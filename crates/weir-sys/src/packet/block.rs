//! Parsing one block of a packet ring.
//!
//! The words in a block come from the other side: each is copied once, and the copy is checked before use. Nothing here
//! is unsafe, and tests need no kernel.

use std::mem::offset_of;

use libc::{sockaddr_ll, tpacket_block_desc, tpacket_hdr_v1, tpacket_hdr_variant1, tpacket3_hdr};

/// Offset of the block's header (`struct tpacket_hdr_v1`).
const HEAD: usize = offset_of!(tpacket_block_desc, hdr);
/// Offset of the block's status, the word by which the kernel and the process hand over the block.
pub(super) const STATUS: usize = HEAD + offset_of!(tpacket_hdr_v1, block_status);
const PACKETS: usize = HEAD + offset_of!(tpacket_hdr_v1, num_pkts);
const FIRST: usize = HEAD + offset_of!(tpacket_hdr_v1, offset_to_first_pkt);

/// Bytes before each packet: its own header, and the link-layer address that recvfrom(2) would return.
const PACKET_HEAD: usize = size_of::<tpacket3_hdr>() + size_of::<sockaddr_ll>();
const TAG_CONTROL: usize = offset_of!(tpacket3_hdr, hv1) + offset_of!(tpacket_hdr_variant1, tp_vlan_tci);
const TAG_PROTOCOL: usize = offset_of!(tpacket3_hdr, hv1) + offset_of!(tpacket_hdr_variant1, tp_vlan_tpid);
const ORIGIN: usize = size_of::<tpacket3_hdr>();
const KIND: usize = offset_of!(sockaddr_ll, sll_pkttype);

// Linux aligns the headers to 16 and 8 bytes, and itself relies on these sizes (BUILD_BUG_ON in tpacket_rcv).
const _: () = assert!(size_of::<tpacket_block_desc>() == 48 && HEAD == 8);
const _: () = assert!(size_of::<tpacket3_hdr>() == 48 && size_of::<sockaddr_ll>() == 20);

/// The tag protocol if not reported by the kernel: 802.1Q.
const TPID_DEFAULT: u16 = 0x8100;

/// A packet in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Bytes from the link-layer header on, without a stripped tag, cut at the snap length.
    pub data: &'a [u8],
    /// Bytes of the link-layer header that are present. The kernel may include tags after it.
    pub link_header: usize,
    /// Length before the packet was cut, without a stripped tag.
    pub original_len: u32,
    /// Nanoseconds since the Unix epoch.
    pub timestamp: u64,
    /// The VLAN tag that the device or the stack has stripped, as on the wire: protocol, control information. It
    /// belongs after the two addresses.
    pub tag: Option<[u8; 4]>,
    /// Where the packet was seen.
    pub origin: Origin,
}

impl Packet<'_> {
    /// Returns whether this host sent the packet.
    #[inline]
    pub fn sent(&self) -> bool {
        self.origin.kind() == libc::PACKET_OUTGOING
    }
}

/// A packet's link-layer address (`struct sockaddr_ll`, packet(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin([u8; size_of::<sockaddr_ll>()]);

impl Origin {
    /// Creates the origin of a packet of `kind` on the interface with this index, with this protocol and sender
    /// address.
    pub fn new(interface: u32, kind: u8, protocol: u16, hardware: u16, address: [u8; 6]) -> Self {
        let mut bytes = [0; size_of::<sockaddr_ll>()];
        bytes[2..4].copy_from_slice(&protocol.to_be_bytes());
        bytes[4..8].copy_from_slice(&interface.to_ne_bytes());
        bytes[8..10].copy_from_slice(&hardware.to_ne_bytes());
        bytes[KIND] = kind;
        bytes[11] = 6;
        bytes[12..18].copy_from_slice(&address);
        Self(bytes)
    }

    /// Returns `ETH_P_*`, in network byte order.
    pub fn protocol(&self) -> [u8; 2] {
        [self.0[2], self.0[3]]
    }

    /// Returns the index of the interface.
    #[inline]
    pub fn interface(&self) -> u32 {
        u32::from_ne_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// Returns the `ARPHRD_*` type of the interface.
    pub fn hardware(&self) -> u16 {
        u16::from_ne_bytes([self.0[8], self.0[9]])
    }

    /// Returns `PACKET_*`: for this host, for all, for others, or sent by this host.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.0[KIND]
    }

    /// Returns the length in bytes of the sender's hardware address.
    pub fn address_len(&self) -> u8 {
        self.0[11]
    }

    /// Returns the sender's hardware address, up to 8 bytes of it.
    pub fn address(&self) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        [a, b, c, d, e, f, g, h]
    }
}

/// A position in a block: the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Offset of the packet's header.
    at: usize,
    /// Packets from there on, according to the kernel.
    left: u32,
}

impl Cursor {
    /// Creates a cursor at the first packet of `block`.
    pub(super) fn new(block: &[u8]) -> Self {
        // No block can hold more than this, whatever its header says.
        let most = u32::try_from(block.len() / PACKET_HEAD).unwrap_or(u32::MAX);
        Self {
            at: word(block, FIRST).map_or(usize::MAX, |at| at as usize),
            left: word(block, PACKETS).unwrap_or(0).min(most),
        }
    }

    /// Returns the number of packets left.
    pub(super) fn left(self) -> u32 {
        self.left
    }

    /// Returns the packet at this position, and the next position. `None` if nothing is left or the block is damaged.
    #[inline]
    pub(super) fn packet(self, block: &[u8]) -> Option<(Packet<'_>, Self)> {
        let left = self.left.checked_sub(1)?;
        let head: &[u8; PACKET_HEAD] = block.get(self.at..)?.first_chunk()?;
        let head = *head;
        let data_at = usize::from(half(&head, offset_of!(tpacket3_hdr, tp_mac)));
        let data_len = whole(&head, offset_of!(tpacket3_hdr, tp_snaplen)) as usize;
        let data_end = data_at.checked_add(data_len)?;
        if data_at < PACKET_HEAD {
            return None;
        }
        let data = block.get(self.at.checked_add(data_at)?..self.at.checked_add(data_end)?)?;
        let step = whole(&head, offset_of!(tpacket3_hdr, tp_next_offset)) as usize;
        if left > 0 && step < data_end {
            return None; // would go backwards or never end
        }

        let status = whole(&head, offset_of!(tpacket3_hdr, tp_status));
        let seconds = u64::from(whole(&head, offset_of!(tpacket3_hdr, tp_sec)));
        let nanoseconds = u64::from(whole(&head, offset_of!(tpacket3_hdr, tp_nsec)));
        let packet = Packet {
            data,
            link_header: usize::from(half(&head, offset_of!(tpacket3_hdr, tp_net)))
                .saturating_sub(data_at)
                .min(data_len),
            // Never less than the data present.
            original_len: whole(&head, offset_of!(tpacket3_hdr, tp_len)).max(u32::try_from(data_len).ok()?),
            timestamp: seconds * 1_000_000_000 + nanoseconds,
            tag: (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| tag(&head, status)),
            origin: Origin(*head[ORIGIN..].first_chunk()?),
        };
        Some((packet, Self { at: self.at.saturating_add(step), left }))
    }
}

fn tag(head: &[u8; PACKET_HEAD], status: u32) -> [u8; 4] {
    let told = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let protocol = if told { half(head, TAG_PROTOCOL) } else { TPID_DEFAULT };
    // The control information is 16 bits in a 32-bit field.
    let [.., high, low] = whole(head, TAG_CONTROL).to_be_bytes();
    let [first, second] = protocol.to_be_bytes();
    [first, second, high, low]
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn whole(head: &[u8; PACKET_HEAD], at: usize) -> u32 {
    u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

#[inline]
fn half(head: &[u8; PACKET_HEAD], at: usize) -> u16 {
    u16::from_ne_bytes([head[at], head[at + 1]])
}

/// A stand-in for the kernel.
#[cfg(test)]
pub(super) mod fake {
    use super::*;

    /// The kernel's own bytes at the start of a block (`BLK_HDR_LEN`).
    pub(in super::super) const BLOCK_HEAD: usize = size_of::<tpacket_block_desc>();

    /// What the kernel would write for one packet.
    pub(in super::super) struct Sample<'a> {
        pub(in super::super) data: &'a [u8],
        pub(in super::super) original_len: u32,
        pub(in super::super) status: u32,
        pub(in super::super) tag: (u16, u16),
        pub(in super::super) kind: u8,
    }

    impl<'a> Sample<'a> {
        pub(in super::super) fn of(data: &'a [u8]) -> Self {
            Self { data, original_len: u32::try_from(data.len()).unwrap(), status: 1, tag: (0, 0), kind: 0 }
        }
    }

    pub(in super::super) fn set(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Offset of the data from a packet's header for Ethernet (`tpacket_rcv`): the network header is at 96.
    pub(in super::super) const MAC: usize = 82;

    /// Writes `samples` as the kernel does, but leaves the status alone. Returns the offsets of the headers.
    pub(in super::super) fn fill(block: &mut [u8], samples: &[Sample<'_>]) -> Vec<usize> {
        let mut at = BLOCK_HEAD;
        let mut places = Vec::new();
        set(block, PACKETS, u32::try_from(samples.len()).unwrap());
        set(block, FIRST, u32::try_from(at).unwrap());
        for (number, sample) in samples.iter().enumerate() {
            let step = (MAC + sample.data.len()).next_multiple_of(8);
            let last = number + 1 == samples.len();
            let head = &mut block[at..at + step];
            set(
                head,
                offset_of!(tpacket3_hdr, tp_next_offset),
                if last { 0 } else { u32::try_from(step).unwrap() },
            );
            set(head, offset_of!(tpacket3_hdr, tp_sec), 1_700_000_000);
            set(head, offset_of!(tpacket3_hdr, tp_nsec), u32::try_from(number).unwrap());
            set(head, offset_of!(tpacket3_hdr, tp_snaplen), u32::try_from(sample.data.len()).unwrap());
            set(head, offset_of!(tpacket3_hdr, tp_len), sample.original_len);
            set(head, offset_of!(tpacket3_hdr, tp_status), sample.status);
            // tp_mac, then tp_net.
            head[24..28].copy_from_slice(&[82, 0, 96, 0]);
            set(head, TAG_CONTROL, u32::from(sample.tag.1));
            head[TAG_PROTOCOL..TAG_PROTOCOL + 2].copy_from_slice(&sample.tag.0.to_ne_bytes());
            head[ORIGIN + KIND] = sample.kind;
            head[MAC..MAC + sample.data.len()].copy_from_slice(sample.data);
            places.push(at);
            at += step;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{BLOCK_HEAD, MAC, Sample, fill, set};
    use super::*;

    const NEXT: usize = offset_of!(tpacket3_hdr, tp_next_offset);
    const SNAP: usize = offset_of!(tpacket3_hdr, tp_snaplen);

    fn all(block: &[u8]) -> (Vec<Packet<'_>>, u32) {
        let mut cursor = Cursor::new(block);
        let mut packets = Vec::new();
        while let Some((packet, next)) = cursor.packet(block) {
            assert!(next.at > cursor.at || next.left == 0);
            packets.push(packet);
            cursor = next;
        }
        (packets, cursor.left())
    }

    #[test]
    fn a_block_is_read_as_it_was_written() {
        let mut block = vec![0; 4096];
        fill(
            &mut block,
            &[
                Sample::of(&[1; 60]),
                Sample { kind: libc::PACKET_OUTGOING, original_len: 1514, ..Sample::of(&[2; 61]) },
                Sample::of(&[]),
                Sample { kind: 3, ..Sample::of(&[3; 1514]) },
            ],
        );
        let (packets, left) = all(&block);
        assert_eq!(left, 0);
        assert_eq!(packets.iter().map(|p| p.data.len()).collect::<Vec<_>>(), [60, 61, 0, 1514]);
        assert_eq!(packets.iter().map(|p| p.original_len).collect::<Vec<_>>(), [60, 1514, 0, 1514]);
        assert_eq!(packets.iter().map(|p| p.link_header).collect::<Vec<_>>(), [14, 14, 0, 14]);
        assert_eq!(packets.iter().map(Packet::sent).collect::<Vec<_>>(), [false, true, false, false]);
        assert_eq!(packets[3].timestamp, 1_700_000_000_000_000_003);
        assert!(packets.iter().all(|p| p.tag.is_none()));
        assert!(packets[1].data.iter().all(|&byte| byte == 2));
    }

    #[test]
    fn an_origin_is_laid_out_as_the_kernel_does() {
        let origin = Origin::new(7, 4, 0x86dd, 772, [1, 2, 3, 4, 5, 6]);
        assert_eq!((origin.interface(), origin.kind(), origin.hardware()), (7, 4, 772));
        assert_eq!(origin.protocol(), [0x86, 0xdd]);
        assert_eq!((origin.address_len(), origin.address()), (6, [1, 2, 3, 4, 5, 6, 0, 0]));
        assert_eq!(offset_of!(sockaddr_ll, sll_protocol), 2);
        assert_eq!(offset_of!(sockaddr_ll, sll_ifindex), 4);
        assert_eq!(offset_of!(sockaddr_ll, sll_hatype), 8);
        assert_eq!(offset_of!(sockaddr_ll, sll_halen), 11);
        assert_eq!(offset_of!(sockaddr_ll, sll_addr), 12);
    }

    #[test]
    fn tags_are_told_as_on_the_wire() {
        const VALID: u32 = libc::TP_STATUS_VLAN_VALID;
        const BOTH: u32 = VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let mut block = vec![0; 4096];
        let sample = |status, tag| Sample { status: 1 | status, tag, ..Sample::of(&[0; 60]) };
        fill(
            &mut block,
            &[
                sample(BOTH, (0x88a8, 0xe123)),
                sample(VALID, (0x88a8, 7)), // the kernel does not mark the protocol as valid
                sample(BOTH, (0x8100, 0)),  // a priority tag of zeros is a tag
                sample(libc::TP_STATUS_VLAN_TPID_VALID, (0x8100, 7)),
                sample(
                    libc::TP_STATUS_COPY | libc::TP_STATUS_LOSING | libc::TP_STATUS_CSUMNOTREADY,
                    (0x8100, 7),
                ),
            ],
        );
        let tags: Vec<_> = all(&block).0.iter().map(|packet| packet.tag).collect();
        assert_eq!(
            tags,
            [Some([0x88, 0xa8, 0xe1, 0x23]), Some([0x81, 0, 0, 7]), Some([0x81, 0, 0, 0]), None, None]
        );
    }

    #[test]
    fn wild_values_end_the_block() {
        let samples = || [Sample::of(&[1; 60]), Sample::of(&[2; 60]), Sample::of(&[3; 60])];
        let mut good = vec![0; 4096];
        let places = fill(&mut good, &samples());
        let spoilt = |at: usize, value: u32| {
            let mut block = good.clone();
            set(&mut block, at, value);
            let (packets, left) = all(&block);
            (packets.len(), left)
        };
        assert_eq!(spoilt(0, u32::MAX), (3, 0)); // the version is not checked
        assert_eq!(spoilt(PACKETS, 0), (0, 0));
        assert_eq!(spoilt(PACKETS, 2), (2, 0));
        // The last packet has no successor; that reveals a count that is too high.
        assert_eq!(spoilt(PACKETS, 4), (2, 2));
        assert_eq!(spoilt(PACKETS, u32::MAX), (2, 4096 / 68 - 2));
        for first in [4096, 4095, 4096 - 67, u32::MAX] {
            assert_eq!(spoilt(FIRST, first), (0, 3));
        }
        for snap_len in [4096, u32::MAX, u32::MAX - 82] {
            assert_eq!(spoilt(places[1] + SNAP, snap_len), (1, 2));
        }
        // The data reaches into the next packet, but not beyond the block: the step is too short.
        assert_eq!(spoilt(places[1] + SNAP, 100), (1, 2));
        for step in [0, 8, 141, u32::MAX] {
            let (packets, left) = spoilt(places[0] + NEXT, step);
            assert!(packets <= 1 && left >= 2, "step {step}: {packets}, {left}");
        }
        for mac in [0, 67, 4096, 65535] {
            assert_eq!(spoilt(places[2] + 24, mac), (2, 1));
        }
        assert_eq!(spoilt(places[2] + NEXT, u32::MAX), (3, 0)); // nothing follows, so it is not checked
        // A packet's original length is never less than its data.
        let mut block = good.clone();
        set(&mut block, places[0] + offset_of!(tpacket3_hdr, tp_len), 3);
        assert_eq!(all(&block).0[0].original_len, 60);
        // The latest time that the fields can express.
        set(&mut block, places[0] + offset_of!(tpacket3_hdr, tp_sec), u32::MAX);
        set(&mut block, places[0] + offset_of!(tpacket3_hdr, tp_nsec), u32::MAX);
        assert_eq!(all(&block).0[0].timestamp, u64::from(u32::MAX) * 1_000_000_001);
    }

    #[test]
    fn any_bytes_end_within_the_block() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let samples: Vec<_> = (0..8).map(|n| vec![n; 60]).collect();
        for round in 0..20_000 {
            let mut block = vec![0; if round % 7 == 0 { 90 } else { 1500 }];
            if block.len() == 1500 {
                fill(&mut block, &samples.iter().map(|data| Sample::of(data)).collect::<Vec<_>>());
            }
            for _ in 0..random() % 4 {
                let at = usize::try_from(random() % (block.len() as u64 - 4)).unwrap();
                let value = random().to_ne_bytes();
                let bytes = usize::try_from(random() % 4).unwrap() + 1;
                block[at..at + bytes].copy_from_slice(&value[..bytes]);
            }
            let (packets, left) = all(&block);
            let range = block.as_ptr_range();
            for packet in &packets {
                let data = packet.data.as_ptr_range();
                assert!(range.start <= data.start && data.end <= range.end);
            }
            assert!(packets.len() as u64 + u64::from(left) <= block.len() as u64 / 68);
        }
    }

    #[test]
    fn the_first_packet_of_an_empty_or_short_block() {
        assert_eq!(all(&[0; 4096]), (vec![], 0));
        assert_eq!(all(&[]), (vec![], 0));
        assert_eq!(all(&[255; BLOCK_HEAD]), (vec![], 0));
        assert!(Cursor::new(&[0; MAC]).packet(&[0; MAC]).is_none());
    }
}
