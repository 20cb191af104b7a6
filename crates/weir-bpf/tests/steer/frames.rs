//! Frames, put together by hand from the inside out.

pub(crate) const UDP: u8 = 17;
pub(crate) const TCP: u8 = 6;
pub(crate) const ICMP: u8 = 1;
pub(crate) const GRE: u8 = 47;
pub(crate) const BRIDGED: u16 = 0x6558;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
}

pub(crate) use Way::{Back, There};

fn turned<T>(pair: [T; 2], way: Way) -> [T; 2] {
    let [one, other] = pair;
    if way == There { [one, other] } else { [other, one] }
}

/// The beginning of UDP's header, TCP's or another's.
pub(crate) fn ports(pair: [u16; 2], way: Way, payload: &[u8]) -> Vec<u8> {
    let [source, destination] = turned(pair, way).map(u16::to_be_bytes);
    [&source[..], &destination, &[0, 20, 0, 0], payload].concat()
}

/// An IPv4 packet between two hosts of 10.0.0.0/24. `piece`: identification, and the flags and offset of a fragment.
pub(crate) fn ip4(hosts: [u8; 2], way: Way, protocol: u8, piece: (u16, u16), payload: &[u8]) -> Vec<u8> {
    ip4_with(&[], hosts, way, protocol, piece, payload)
}

/// The same with options, a multiple of four bytes.
pub(crate) fn ip4_with(
    options: &[u8],
    hosts: [u8; 2],
    way: Way,
    protocol: u8,
    (number, place): (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let words = 5 + u8::try_from(options.len() / 4).unwrap();
    let length = u16::try_from(20 + options.len() + payload.len()).unwrap().to_be_bytes();
    let (number, place) = (number.to_be_bytes(), place.to_be_bytes());
    let [from, to] = turned(hosts, way).map(|host| [10, 0, 0, host]);
    let head = [&[0x40 | words, 0], &length[..], &number, &place, &[64, protocol, 0, 0], &from, &to].concat();
    [&head, options, payload].concat()
}

/// An IPv6 packet between two hosts of fd00::/64.
pub(crate) fn ip6(hosts: [u8; 2], way: Way, next: u8, payload: &[u8]) -> Vec<u8> {
    let address = |host| [&[0xfd][..], &[0; 14], &[host]].concat();
    let [from, to] = turned(hosts, way).map(address);
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [&[0x60, 0, 0, 0][..], &length, &[next, 64], &from, &to, payload].concat()
}

/// IPv6's fragment header.
pub(crate) fn piece6(next: u8, number: u8, place: u16, payload: &[u8]) -> Vec<u8> {
    [&[next, 0][..], &place.to_be_bytes(), &[0, 0, 0, number], payload].concat()
}

/// An Ethernet frame.
pub(crate) fn ethernet(way: Way, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let [to, from] = turned([[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]], way);
    [&to[..], &from, &ether_type.to_be_bytes(), payload].concat()
}

/// The same with IP in it.
pub(crate) fn on_ethernet(way: Way, packet: &[u8]) -> Vec<u8> {
    ethernet(way, if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd }, packet)
}

/// A frame with another tag outermost.
pub(crate) fn tagged(protocol: u16, tci: u16, frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &protocol.to_be_bytes(), &tci.to_be_bytes(), &frame[12..]].concat()
}

/// A frame with labels of MPLS in front of its IP packet.
pub(crate) fn labelled(labels: u8, frame: &[u8]) -> Vec<u8> {
    let label = |number| [0, number, u8::from(number == labels), 64];
    [&frame[..12], &[0x88, 0x47], &(1..=labels).flat_map(label).collect::<Vec<_>>(), &frame[14..]].concat()
}

/// A frame with the header of a PPPoE session in front of its IP packet.
pub(crate) fn in_session(frame: &[u8]) -> Vec<u8> {
    let carries = if frame[14] >> 4 == 4 { 0x21 } else { 0x57 };
    [&frame[..12], &[0x88, 0x64, 0x11, 0, 0, 7, 0, 60, 0, carries], &frame[14..]].concat()
}

/// A datagram of GTP-U with an IP packet; with a number and so many extension headers, if asked for.
pub(crate) fn gtp(way: Way, extensions: Option<u8>, packet: &[u8]) -> Vec<u8> {
    let more = extensions.map_or(vec![], |most| {
        let next = |number| if number < most { 0x85 } else { 0 };
        let extension = |number| [1, 0, 9, next(number + 1)];
        [&[0, 1, 0, next(0)][..], &(0..most).flat_map(extension).collect::<Vec<_>>()].concat()
    });
    let flags = 0x30 | extensions.map_or(0, |most| if most > 0 { 6 } else { 2 });
    let inside = [&[flags, 255, 0, 60, 0, 0, 0, 7][..], &more, packet].concat();
    ip4([1, 2], way, UDP, (0, 0), &ports([2152, 2152], way, &inside))
}

/// A datagram of VXLAN.
pub(crate) fn vxlan(way: Way, frame: &[u8]) -> Vec<u8> {
    vxlan_to(4789, way, frame)
}

/// The same with the port that it had before the RFC.
pub(crate) fn linux_vxlan(way: Way, frame: &[u8]) -> Vec<u8> {
    vxlan_to(8472, way, frame)
}

fn vxlan_to(port: u16, way: Way, frame: &[u8]) -> Vec<u8> {
    let inside = [&[8, 0, 0, 0, 0, 0, 7, 0], frame].concat();
    ip4([1, 2], way, UDP, (0, 0), &ports([5555, port], There, &inside))
}

/// A datagram of Geneve with eight bytes of options.
pub(crate) fn geneve(way: Way, carries: u16, payload: &[u8]) -> Vec<u8> {
    let inside = [&[2, 0][..], &carries.to_be_bytes(), &[0, 0, 9, 0], &[1; 8], payload].concat();
    ip4([1, 2], way, UDP, (0, 0), &ports([5555, 6081], There, &inside))
}

/// A packet of GRE, with key and number if asked for.
pub(crate) fn gre(way: Way, keyed: bool, carries: u16, payload: &[u8]) -> Vec<u8> {
    let flags = if keyed { 0x3000_u16 } else { 0 }.to_be_bytes();
    let options: &[u8] = if keyed { &[9; 8] } else { &[] };
    ip4([1, 2], way, GRE, (0, 0), &[&flags[..], &carries.to_be_bytes(), options, payload].concat())
}
