//! Packets of any origin with other addresses, ports and VLAN tags.
//!
//! - `rules`: what is changed, as text; `framing`: Ethernet headers; `messages`: addresses in ICMP; `fragments`: checksums
//!   that are in another fragment than the ports; `carried`: what has addresses that stay; `copies`: flows of their own for copies; `cut`: super-frames in pieces
//!   that the wire carries; `trailer`: the checksum of 802.11; `strict`: what else has addresses, and payload; `tests`.

mod carried;
mod copies;
mod cut;
mod fragments;
mod framing;
mod messages;
mod rules;
mod strict;
#[cfg(test)]
mod tests;
mod trailer;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_packet::bytes::be16;
use weir_packet::ethertype::{ARP, IPV4, IPV6, is_tag};
use weir_packet::link_type::{ETHERNET, NFLOG, PPI};
use weir_packet::protocol::{ICMP, ICMPV6, IGMP, TCP, UDP, UDP_LITE};
use weir_packet::{address, link};

pub use self::carried::Carried;
use self::carried::carried;
pub use self::copies::Copies;
pub use self::cut::cut;
use self::fragments::{Datagrams, Key};
pub use self::framing::Framing;
pub use self::rules::{NetworkMap, PortMap, Tag};
pub use self::strict::Pseudonyms;
use crate::checksum::{fold, sum};
use crate::layout::{Layout, network};

/// What is changed in packets. Of several rules for the same thing, the first that applies counts.
///
/// Checksums, that of a frame of 802.11 included, change with what they cover: right ones stay right, and wrong ones stay wrong. One that was left to a
/// network card, so that it has only the sum of the addresses, is filled in. Addresses and ports are changed in the outer
/// IP header, its options and routes, and the header that follows it, in ARP, in redirects, router and neighbour discovery, in who joins and leaves
/// multicast groups, and in the packets that ICMP quotes; not in tunnels, and not in payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Hardware addresses, and those that take their place.
    pub macs: Vec<([u8; 6], [u8; 6])>,
    /// IP networks.
    pub networks: Vec<NetworkMap>,
    /// Ports of TCP and UDP, and those that take their place.
    pub ports: Vec<PortMap>,
    /// VLAN tags; `None`: they stay.
    pub tag: Option<Tag>,
    /// What is added to each IP address, so that copies of a flow become flows of their own. Addresses stay unicast;
    /// multicast, broadcast and unspecified ones stay as they are.
    pub shift: u32,
}

impl Rewrite {
    /// Whether IP packets change.
    fn changes_ip(&self) -> bool {
        !self.networks.is_empty() || !self.ports.is_empty() || self.shift > 0
    }

    /// Whether the header of a frame's link layer should change, and does not.
    fn keeps_link(&self, link_type: u16, frame: &[u8]) -> bool {
        if link_type == ETHERNET {
            return false;
        }
        let has_addresses =
            || matches!(link_type, NFLOG | PPI) || link::begin_of_wlan(link_type, frame).is_some();
        let tag = match self.tag {
            None => false,
            Some(Tag::None) => link::outermost_tag(link_type, frame).is_some(),
            Some(Tag::Id(_) | Tag::Two(..)) => true,
        };
        tag || !self.macs.is_empty() && has_addresses()
    }

    fn maps_mac(&self, mac: &[u8]) -> bool {
        self.macs.iter().any(|(from, _)| *from == *mac)
    }

    fn retag(&self, frame: &mut Vec<u8>) {
        const OUTER: usize = 12;
        let is_tagged = |frame: &[u8]| be16(frame, OUTER).is_some_and(is_tag) && frame.len() >= OUTER + 6;
        match self.tag {
            None => {}
            Some(Tag::Id(id)) if is_tagged(frame) => {
                let [high, low] = id.to_be_bytes();
                frame[OUTER + 2] = frame[OUTER + 2] & 0xf0 | high;
                frame[OUTER + 3] = low;
            }
            Some(Tag::Id(id)) => {
                let [high, low] = id.to_be_bytes();
                frame.splice(OUTER..OUTER, [0x81, 0, high, low]);
            }
            Some(Tag::Two(outer, inner)) => {
                let mut priorities = Vec::new();
                while is_tagged(frame) {
                    priorities.push(frame[OUTER + 2] & 0xf0);
                    frame.drain(OUTER..OUTER + 4);
                }
                let first = priorities.first().copied().unwrap_or(0);
                let second = priorities.get(1).copied().unwrap_or(first);
                let [[a, b], [c, d]] = [outer, inner].map(u16::to_be_bytes);
                frame.splice(OUTER..OUTER, [0x88, 0xa8, first | a, b, 0x81, 0, second | c, d]);
            }
            Some(Tag::None) => {
                while is_tagged(frame) {
                    frame.drain(OUTER..OUTER + 4);
                }
            }
        }
    }

    fn port(&self, port: &mut [u8]) {
        let Some(old) = be16(port, 0) else { return };
        if let Some(new) = self.ports.iter().find_map(|map| map.map(old)) {
            port.copy_from_slice(&new.to_be_bytes());
        }
    }
}

/// What of a packet should have changed and did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Addresses, ports, a checksum or what authenticates them: headers are cut, malformed, authenticated, or spread over
    /// several fragments.
    pub headers: bool,
    /// The MAC address: it is that of a multicast group, and the packet now goes to a single host.
    pub group: bool,
    /// The ports: the fragment with the checksum came before the one that has them.
    pub ports: bool,
    /// The header of the link layer, in which addresses or tags should have changed: it is not Ethernet's.
    pub link: bool,
    /// All behind the header of the link layer: it is neither IP nor ARP, and no address should have stayed, or the link
    /// layer is not understood, or has no packet that can be told (802.11: management, encrypted data).
    pub foreign: bool,
    /// Addresses in this, which weir does not look into.
    pub carried: Option<Carried>,
    /// The payload, in which addresses may have stayed that should not.
    pub payload: bool,
    /// Nothing: the header of the link layer is not understood, or has addresses that nothing replaces, and only the length
    /// is left.
    pub emptied: bool,
}

/// Changes packets, one after the other.
#[derive(Debug, Default)]
pub struct Rewriter {
    rules: Rewrite,
    /// What takes the place of other addresses.
    pseudonyms: Option<RefCell<Box<dyn Pseudonyms>>>,
    zero_payload: bool,
    datagrams: Datagrams,
    /// Of the packet that is changed.
    left: Left,
}

impl Rewriter {
    /// Changes packets by these rules.
    pub fn new(rules: Rewrite) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Shifts addresses of the next packets so far.
    pub fn shift(&mut self, shift: u32) {
        self.rules.shift = shift;
    }

    /// Forgets the packets so far: the next is the first of its capture.
    pub fn restart(&mut self) {
        self.datagrams = Datagrams::default();
    }

    /// Rewrites a packet. `link_type` is that of capture files; a packet stays as it is where weir-packet finds none in it.
    pub fn apply(&mut self, link_type: u16, frame: &mut Vec<u8>) -> Left {
        self.left = self.left_as_it_is(link_type, frame);
        self.left.link = self.rules.keeps_link(link_type, frame);
        let covered = trailer::covered(link_type, frame);
        let mut before = None;
        if link_type == ETHERNET && frame.len() >= 14 {
            before = destination(link_type, frame).filter(|_| !self.rules.maps_mac(&frame[..6]));
            let (macs, _) = frame.split_at_mut(12);
            macs.chunks_mut(6).for_each(|mac| self.mac(mac));
            self.rules.retag(frame);
        }
        self.cooked(link_type, frame);
        self.network(link_type, frame);
        if let Some(before) = before {
            self.group(link_type, frame, before);
        }
        self.rest(link_type, frame);
        if let Some(covered) = covered.filter(|_| !self.left.emptied) {
            trailer::write(frame, covered);
        }
        self.left
    }

    /// Returns what stays by design in a packet.
    fn left_as_it_is(&self, link_type: u16, frame: &[u8]) -> Left {
        let maps = !self.rules.networks.is_empty() || self.is_strict();
        if self.zero_payload || !maps {
            return Left::default();
        }
        let carried = carried(link_type, frame);
        // Of payloads, all is said at once.
        let carried = carried.filter(|carried| !self.is_strict() || matches!(carried, Carried::Packet(_)));
        Left {
            carried,
            payload: self.is_strict() && carried.is_none(),
            foreign: link::payload(link_type, frame).is_none(),
            ..Left::default()
        }
    }

    fn network(&mut self, link_type: u16, frame: &mut [u8]) {
        let Some((kind, at)) = network(link_type, frame) else { return };
        let Some(packet) = frame.get_mut(at..) else { return };
        let whole = match kind {
            IPV4 | IPV6 => {
                let had_length = !fill_in_length(packet);
                fill_in(packet, had_length);
                self.packet(packet, false)
            }
            ARP => self.arp(packet),
            _ => Some(()),
        };
        let changes = self.rules.changes_ip() || self.is_strict() || self.zero_payload;
        self.left.headers = whole.is_none() && changes;
    }

    fn mac(&self, mac: &mut [u8]) {
        if let Some((_, to)) = self.rules.macs.iter().find(|(from, _)| *from == *mac) {
            mac.copy_from_slice(to);
        } else if let (Some(pseudonyms), Ok(old)) = (&self.pseudonyms, (&*mac).try_into()) {
            mac.copy_from_slice(&pseudonyms.borrow_mut().mac(old));
        }
    }

    /// Changes the address of these bytes.
    fn address(&self, bytes: &mut [u8]) {
        let Some(old) = address(bytes) else { return };
        let mapped = self.rules.networks.iter().find_map(|map| map.map(old));
        let other = || self.pseudonyms.as_ref().map(|pseudonyms| pseudonyms.borrow_mut().address(old));
        match shifted(mapped.or_else(other).unwrap_or(old), self.rules.shift) {
            IpAddr::V4(new) => bytes.copy_from_slice(&new.octets()),
            IpAddr::V6(new) => bytes.copy_from_slice(&new.octets()),
        }
    }

    /// Changes a prefix of so many bits, unless it has addresses that do not change.
    fn prefix(&self, bytes: &mut [u8], bits: u8) {
        let Some(IpAddr::V6(old)) = address(bytes) else { return };
        let mapped = self.rules.networks.iter().find_map(|map| map.map_prefix(old, bits));
        match (mapped, &self.pseudonyms) {
            (Some(IpAddr::V6(new)), _) => bytes.copy_from_slice(&new.octets()),
            (_, Some(_)) => {
                self.address(bytes);
                let hosts = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
                let new = address(bytes).and_then(|new| match new {
                    IpAddr::V6(new) => Some(new.to_bits() & !hosts),
                    IpAddr::V4(_) => None,
                });
                bytes.copy_from_slice(&new.unwrap_or_default().to_be_bytes());
            }
            _ => {}
        }
    }

    /// Changes the MAC address of a multicast group with the group. `before`: the destination as it was.
    fn group(&mut self, link_type: u16, frame: &mut [u8], before: IpAddr) {
        let Some(after) = destination(link_type, frame).filter(|&after| after != before) else { return };
        let was_right = group_mac(before).is_some_and(|mac| frame.starts_with(&mac));
        match group_mac(after) {
            Some(mac) if was_right || !before.is_multicast() => frame[..6].copy_from_slice(&mac),
            Some(_) => {}
            None => self.left.group = was_right,
        }
    }

    fn arp(&self, packet: &mut [u8]) -> Option<()> {
        // Ethernet and IPv4.
        if packet.starts_with(&[0, 1, 8, 0, 6, 4]) {
            for end in packet.get_mut(8..28)?.chunks_mut(10) {
                let (mac, address) = end.split_at_mut(6);
                self.mac(mac);
                self.address(address);
            }
        }
        Some(())
    }

    /// Changes an IP packet. `quoted`: it is in an error, which never quotes another one. Returns `None` if something
    /// stays that should have changed.
    fn packet(&mut self, packet: &mut [u8], quoted: bool) -> Option<()> {
        let layout = Layout::of(packet)?;
        let [source, destination] = layout.addresses();
        let key = layout
            .is_fragment
            .then(|| (packet[source.start..destination.end].to_vec(), layout.identification));
        let mut addresses = [source, destination].map(|place| {
            let bytes = &mut packet[place];
            Change::of(bytes, |bytes| self.address(bytes))
        });
        if !layout.is_ipv6 {
            addresses.iter().for_each(|change| change.adjust(packet, 10, false));
        }
        // What authenticates them has a key that nobody has here.
        let mut is_astray = layout.is_authenticated && addresses.into_iter().any(Change::is_any);
        if let Some(end) = self.between(packet, &layout) {
            addresses[1] = end;
        }
        if !layout.covers_addresses() {
            addresses = Default::default();
        }
        // Offsets count from the begin of the transport header, in any fragment.
        let at = layout.checksum().and_then(|at| at.checked_sub(layout.offset));
        let transport = &mut packet[layout.transport.clone()];
        let Some(at) = at else {
            let emptied = if self.zero_payload { self.empty(&layout, transport) } else { Some(()) };
            return emptied.filter(|()| !is_astray);
        };
        let checksum = be16(transport, at);
        let mut whole = true;
        let payload = match layout.protocol {
            _ if layout.is_later() => match (checksum, key) {
                (Some(_), Some(key)) if quoted => self.datagrams.quoted(&key),
                (Some(checksum), Some(key)) if !self.rules.ports.is_empty() => {
                    self.datagrams.checksum(key, checksum)
                }
                _ => Change::default(),
            },
            TCP | UDP => self.ports(transport, key.filter(|_| checksum.is_none() && !quoted), &layout),
            ICMP | ICMPV6 | IGMP => Change::of(transport, |message| {
                whole = self.message(&layout, message, quoted).is_some();
                if !whole && (self.is_strict() || self.zero_payload) {
                    message.iter_mut().skip(4).for_each(|byte| *byte = 0);
                }
            }),
            _ => Change::default(),
        };
        let options = match layout.protocol {
            TCP if !layout.is_later() => Change::of(transport, |transport| self.tcp_options(transport)),
            _ => Change::default(),
        };
        let never_zero = matches!(layout.protocol, UDP | UDP_LITE);
        let changes = addresses.into_iter().chain([payload, options]);
        changes.clone().for_each(|change| change.adjust(transport, at, never_zero));
        // Fragments end in the middle of the headers, and not as TCP allows.
        let is_split = checksum.is_none()
            && layout.is_fragment
            && !layout.is_later()
            && (layout.is_deep || layout.protocol != TCP);
        is_astray |= (is_split || layout.is_authenticated) && changes.into_iter().any(Change::is_any);
        if self.zero_payload {
            is_astray |= self.empty(&layout, transport).is_none();
        }
        (whole && !is_astray).then_some(())
    }

    /// Changes ports. `elsewhere`: the fragment with the checksum is another one of this datagram.
    fn ports(&mut self, transport: &mut [u8], elsewhere: Option<Key>, layout: &Layout) -> Change {
        let Some(ports) = transport.first_chunk_mut::<4>() else { return Change::default() };
        let mut new = *ports;
        let change = Change::of(&mut new, |ports| ports.chunks_mut(2).for_each(|port| self.rules.port(port)));
        if layout.protocol == TCP
            && !self.rules.ports.is_empty()
            && let Some(key) = elsewhere
            && !self.datagrams.ports(key, change)
        {
            self.left.ports |= new != *ports;
            return Change::default();
        }
        *ports = new;
        change
    }
}

/// The sums of bytes before and after they were changed, for the checksums that cover them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    before: u16,
    after: u16,
}

impl Change {
    /// Changes bytes that begin at an even offset.
    pub(crate) fn of(bytes: &mut [u8], change: impl FnOnce(&mut [u8])) -> Self {
        let before = sum(&[bytes]);
        change(bytes);
        Self { before, after: sum(&[bytes]) }
    }

    fn is_any(self) -> bool {
        self.before != self.after
    }

    /// Updates a checksum (RFC 1624, equation 3), if it is there. `never_zero`: that of UDP, where 0 means that there is
    /// none.
    pub(crate) fn adjust(self, bytes: &mut [u8], at: usize, never_zero: bool) {
        let Some(old) = be16(bytes, at) else { return };
        if !self.is_any() || (never_zero && old == 0) {
            return;
        }
        let new = !fold(u64::from(!old) + u64::from(!self.before) + u64::from(self.after));
        let new = if new == 0 && never_zero { 0xffff } else { new };
        bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    }
}

/// Returns the sum of what the transport checksum covers besides the packet: addresses, length and protocol.
fn pseudo(packet: &[u8], layout: &Layout) -> u16 {
    let [source, destination] = layout.addresses().map(|place| &packet[place]);
    let length = u32::try_from(layout.transport.len()).unwrap_or(u32::MAX).to_be_bytes();
    sum(&[source, destination, &length, &[0, layout.protocol]])
}

/// Writes the checksum of TCP or UDP.
fn complete(packet: &mut [u8], layout: &Layout) {
    let Some(at) = layout.checksum().map(|at| layout.transport.start + at) else { return };
    if at + 2 > layout.transport.end {
        return;
    }
    packet[at..at + 2].fill(0);
    let covered = [pseudo(packet, layout), sum(&[&packet[layout.transport.clone()]])];
    let checksum = !fold(covered.into_iter().map(u64::from).sum());
    let checksum = if checksum == 0 && layout.protocol == UDP { 0xffff } else { checksum };
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Fills in a length that the sender left to its network card (TSO), with the checksum of the IPv4 header. Returns whether
/// it was missing.
fn fill_in_length(packet: &mut [u8]) -> bool {
    // Where a short frame ends, the padding of Ethernet does not tell.
    const PADDED: usize = 46;
    const HOP_BY_HOP: u8 = 0;
    const NOTHING: u8 = 59;
    let Ok(length) = u16::try_from(packet.len()) else { return false };
    if packet.len() <= PADDED {
        return false;
    }
    match packet[0] >> 4 {
        4 if packet[2..4] == [0; 2] => {
            let header = usize::from(packet[0] & 0xf) * 4;
            if !(20..=packet.len()).contains(&header) {
                return false;
            }
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[10..12].fill(0);
            let checksum = !sum(&[&packet[..header]]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            true
        }
        // Options for each hop may have the length (RFC 2675).
        6 if packet[4..6] == [0; 2] && !matches!(packet[6], HOP_BY_HOP | NOTHING) => {
            packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            true
        }
        _ => false,
    }
}

/// Fills in a checksum that the sender left to its network card. `had_length`: the IP header had its length; otherwise the
/// sum of the addresses may be without it, too.
fn fill_in(packet: &mut [u8], had_length: bool) {
    let Some(layout) = Layout::of(packet) else { return };
    if !matches!(layout.protocol, TCP | UDP) || layout.is_fragment || layout.is_routed || !layout.is_whole {
        return;
    }
    let Some(found) = layout.checksum().and_then(|at| be16(&packet[layout.transport.clone()], at)) else {
        return;
    };
    let pseudo = pseudo(packet, &layout);
    let is_right = fold(u64::from(pseudo) + u64::from(sum(&[&packet[layout.transport.clone()]]))) == u16::MAX;
    let [source, destination] = layout.addresses().map(|place| &packet[place]);
    let is_open =
        found == pseudo || (!had_length && found == sum(&[source, destination, &[0, layout.protocol]]));
    if is_open && !is_right {
        complete(packet, &layout);
    }
}

/// Returns the source of an IP packet.
fn source(link_type: u16, frame: &[u8]) -> Option<IpAddr> {
    let (kind, at) = network(link_type, frame)?;
    address(frame.get(if kind == IPV6 { at + 8..at + 24 } else { at + 12..at + 16 })?)
}

/// Returns the destination of an IP packet.
fn destination(link_type: u16, frame: &[u8]) -> Option<IpAddr> {
    let (kind, at) = network(link_type, frame)?;
    let place = match kind {
        IPV4 => at + 16..at + 20,
        IPV6 => at + 24..at + 40,
        _ => return None,
    };
    address(frame.get(place)?)
}

/// Returns the MAC address of a multicast group (RFC 1112, section 6.4, and RFC 2464, section 7).
fn group_mac(group: IpAddr) -> Option<[u8; 6]> {
    match group {
        _ if !group.is_multicast() => None,
        IpAddr::V4(group) => {
            let [_, a, b, c] = group.octets();
            Some([1, 0, 0x5e, a & 0x7f, b, c])
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            Some([0x33, 0x33, a, b, c, d])
        }
    }
}

/// The last IPv4 address before multicast.
const LAST: u32 = 0xdfff_ffff;

/// Returns the unicast address that comes so much later; any other address as it is.
fn shifted(address: IpAddr, shift: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) if (1..=LAST).contains(&address.to_bits()) => {
            let place = u64::from(address.to_bits() - 1) + u64::from(shift);
            let place = u32::try_from(place % u64::from(LAST)).expect("less than 32 bits");
            Ipv4Addr::from_bits(place + 1).into()
        }
        IpAddr::V6(address) if !address.is_multicast() && !address.is_unspecified() => {
            let [.., a, b, c, d] = address.octets();
            let low = u32::from_be_bytes([a, b, c, d]);
            let high = address.to_bits() - u128::from(low);
            Ipv6Addr::from_bits(high + u128::from(low.wrapping_add(shift))).into()
        }
        other => other,
    }
}
