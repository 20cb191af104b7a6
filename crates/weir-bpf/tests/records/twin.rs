//! Super-frames, and the segments that the wire carries: each put together from its parts, with the kernel's rules for what
//! differs between them (tcp_gso_segment, inet_gso_segment).

use std::ops::Range;

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The checksum that a header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    /// The right one.
    Whole,
    /// That of the pseudo-header alone: the device does the rest.
    Partial,
}

/// The parts of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) name: String,
    /// Payload of each segment but the last; 0: this is no super-frame.
    pub(crate) size: usize,
    /// It is written as it is.
    pub(crate) whole: bool,
    pub(crate) ethernet: bool,
    /// With its EtherTypes, if there are any.
    tags: Vec<u8>,
    pub(crate) v6: bool,
    ip_options: Vec<u8>,
    /// Flags and offset of a fragment.
    place: u16,
    identification: u16,
    /// IPv6 with a hop-by-hop header that has the jumbo payload option.
    jumbo: bool,
    protocol: u8,
    sequence: u32,
    flags: u8,
    tcp_options: Vec<u8>,
    /// Of the whole frame.
    sum: Sum,
    payload: Vec<u8>,
    /// What is behind the IP packet.
    trailer: usize,
}

fn ones_sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    words.fold(0, |sum, word| ((sum + word) & 0xffff) + ((sum + word) >> 16))
}

impl Frame {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.put(0..self.payload.len(), 0, self.flags, self.sum, self.jumbo)
    }

    /// The segments.
    pub(crate) fn segments(&self) -> Vec<Vec<u8>> {
        if self.whole {
            return vec![self.bytes()];
        }
        let size = if self.size == 0 { usize::MAX } else { self.size };
        let count = self.payload.len().div_ceil(size).max(1);
        let segment = |index: usize| {
            let begin = index * size.min(self.payload.len());
            let end = begin.saturating_add(size).min(self.payload.len());
            let mut flags = self.flags;
            if index > 0 {
                flags &= !CWR;
            }
            if index + 1 < count {
                flags &= !(FIN | PSH);
            }
            self.put(begin..end, index, flags, Sum::Whole, false)
        };
        (0..count).map(segment).collect()
    }

    /// The frame with a part of the payload, as segment `index`.
    fn put(&self, part: Range<usize>, index: usize, flags: u8, sum: Sum, jumbo: bool) -> Vec<u8> {
        let payload = &self.payload[part.clone()];
        let mut transport = match self.protocol {
            TCP => {
                let words = u8::try_from(5 + self.tcp_options.len() / 4).unwrap();
                let sequence = self.sequence.wrapping_add(u32::try_from(part.start).unwrap()).to_be_bytes();
                let rest = [words << 4, flags, 0x12, 0x34, 0, 0, 0, 7];
                [&[0x30, 0x39, 0, 80][..], &sequence, &[9, 8, 7, 6], &rest, &self.tcp_options].concat()
            }
            UDP => {
                let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
                [&[0x30, 0x39, 0, 53][..], &length, &[0, 0]].concat()
            }
            _ => vec![7; 20],
        };
        let length = transport.len() + payload.len();
        let addresses: Vec<u8> = if self.v6 { (101..133).collect() } else { vec![10, 1, 2, 3, 10, 4, 5, 6] };
        let pseudo =
            [&addresses[..], &u32::try_from(length).unwrap().to_be_bytes(), &[0, 0, 0, self.protocol]]
                .concat();
        let at = if self.protocol == TCP { 16 } else { 6 };
        let check = match sum {
            Sum::Partial => ones_sum(&pseudo),
            Sum::Whole => 0xffff ^ ones_sum(&[&pseudo[..], &transport, payload].concat()),
        };
        let check = if self.protocol == UDP && check == 0 { 0xffff } else { check };
        if [TCP, UDP].contains(&self.protocol) {
            transport[at..at + 2].copy_from_slice(&u16::try_from(check).unwrap().to_be_bytes());
        }
        let ip = if self.v6 {
            let hop_by_hop =
                [&[self.protocol, 0, 0xc2, 4][..], &u32::try_from(length + 8).unwrap().to_be_bytes()]
                    .concat();
            let (next, told, hop_by_hop) = if jumbo {
                (0, 0, hop_by_hop)
            } else {
                (self.protocol, u16::try_from(length).unwrap(), vec![])
            };
            [&[0x60, 1, 2, 3][..], &told.to_be_bytes(), &[next, 64], &addresses, &hop_by_hop].concat()
        } else {
            let words = u8::try_from(5 + self.ip_options.len() / 4).unwrap();
            let total = u16::try_from(usize::from(words) * 4 + length).unwrap().to_be_bytes();
            let number = self.identification.wrapping_add(u16::try_from(index).unwrap()).to_be_bytes();
            let place = self.place.to_be_bytes();
            let head = [&[0x40 | words, 3][..], &total, &number, &place, &[64, self.protocol, 0, 0]].concat();
            let mut ip = [&head[..], &addresses, &self.ip_options].concat();
            let check = u16::try_from(0xffff ^ ones_sum(&ip)).unwrap();
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            ip
        };
        let kind: [u8; 2] = if self.v6 { [0x86, 0xdd] } else { [8, 0] };
        let link = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &self.tags, &kind].concat();
        let link = if self.ethernet { link } else { vec![] };
        [&link[..], &ip, &transport, payload, &vec![0xee; self.trailer]].concat()
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from(at * 31 % 251 + 1).unwrap()).collect()
}

/// A super-frame of TCP over IPv4 with every flag, whose numbers wrap around.
fn tcp(name: &str, payload: usize, size: usize) -> Frame {
    Frame {
        name: format!("{name}, {payload} bytes by {size}"),
        size,
        whole: false,
        ethernet: true,
        tags: vec![],
        v6: false,
        ip_options: vec![],
        place: 0x4000,
        identification: 0xfffe,
        jumbo: false,
        protocol: TCP,
        sequence: 0xffff_fe00,
        flags: 0xff,
        tcp_options: vec![],
        sum: Sum::Partial,
        payload: bytes(payload),
        trailer: 0,
    }
}

fn udp(name: &str, payload: usize) -> Frame {
    Frame { protocol: UDP, ..tcp(name, payload, 0) }
}

pub(crate) fn frames() -> Vec<Frame> {
    let mut frames = Vec::new();
    for v6 in [false, true] {
        for (payload, size) in [
            (3000, 1000),
            (3000, 999),
            (3000, 1001),
            (2999, 1500),
            (2001, 1000),
            (2000, 1999),
            (1000, 1000),
            (999, 1000),
            (1, 1000),
            (0, 1000),
            (130, 3),
            (60, 1),
            (1033, 513),
            (1536, 512),
            (3000, 1448),
            (7, 4),
        ] {
            // The last has more payload than a segment may have.
            let whole = size > 1500;
            frames.push(Frame { v6, whole, ..tcp("payloads", payload, size) });
        }
        for flag in 0..8 {
            frames.push(Frame { v6, flags: 1 << flag, ..tcp(&format!("flag {flag}"), 30, 10) });
            frames.push(Frame { v6, flags: !(1 << flag), ..tcp(&format!("all but flag {flag}"), 30, 10) });
        }
        for words in [1, 3, 10] {
            frames.push(Frame { v6, tcp_options: bytes(words * 4), ..tcp("TCP's options", 2000, 700) });
            if !v6 {
                frames.push(Frame { ip_options: bytes(words * 4), ..tcp("IP's options", 2000, 700) });
            }
        }
        let both = Frame { tcp_options: bytes(40), ..tcp("all options", 2000, 1500) };
        frames.push(if v6 { Frame { v6, ..both } } else { Frame { ip_options: bytes(40), ..both } });
        let tags = [
            &[0x81, 0, 0x30, 5][..],
            &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5],
            &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3],
        ];
        for (tags, whole) in tags.into_iter().zip([false, false, true]) {
            frames.push(Frame { v6, whole, tags: tags.to_vec(), ..tcp("tags", 2500, 900) });
        }
        frames.push(Frame { v6, ethernet: false, ..tcp("without Ethernet", 2500, 900) });
        // What is no super-frame, and has a checksum that is yet to be filled in, or is right.
        for payload in [0, 1, 2, 3, 4, 509, 510, 511, 512, 513, 1400, 1500, 1501, 1600] {
            let whole = payload > 1500;
            frames.push(Frame { v6, whole, ..tcp("a TCP packet", payload, 0) });
            frames.push(Frame { v6, whole, ..udp("a UDP packet", payload) });
        }
        frames.push(Frame {
            v6,
            whole: true,
            sum: Sum::Whole,
            ..tcp("a TCP packet with its checksum", 100, 0)
        });
        frames.push(Frame { v6, whole: true, sum: Sum::Whole, ..udp("a UDP packet with its checksum", 100) });
        frames.push(Frame { v6, whole: true, trailer: 4, ..tcp("a TCP packet with a trailer", 100, 0) });
        frames.push(Frame { v6, ethernet: false, ..udp("a UDP packet without Ethernet", 100) });
        // All but this word adds up to 0xffff, whose complement means that there is no checksum.
        let mut none = Frame { v6, ..udp("a UDP packet whose checksum is 0", 0) };
        none.payload = vec![0, 0];
        let rest = none.put(0..2, 0, 0, Sum::Whole, false);
        none.payload = rest[rest.len() - 4..rest.len() - 2].to_vec();
        frames.push(none);
        // They are left whole.
        frames.push(Frame { v6, whole: true, size: 500, ..udp("a super-frame of UDP", 1500) });
        frames.push(Frame { v6, whole: true, protocol: 47, ..tcp("a super-frame of GRE", 1500, 500) });
    }
    frames.push(Frame { v6: true, jumbo: true, ..tcp("the jumbo payload option", 2500, 900) });
    for (place, name) in [(0x2000, "a first fragment"), (0x2005, "a fragment"), (5, "a last fragment")] {
        frames.push(Frame { whole: true, place, ..tcp(name, 1500, 500) });
    }
    frames
}
