//! What else could tell who has sent a packet: options, headers that are not understood, and payload.

use std::fmt::Debug;
use std::net::IpAddr;

use weir_packet::bytes::be16;
use weir_packet::ethertype::{ARP, IPV4, IPV6};
use weir_packet::link_type::{COOKED, COOKED_2, NFLOG, PPI, RADIOTAP, WLAN};
use weir_packet::protocol::{ICMP, ICMPV6, IGMP, TCP, UDP};

use super::{Change, Left, Rewriter};
use crate::checksum::{OF_SCTP, crc};
use crate::layout::{Layout, network};

const SCTP: u8 = 132;

/// Takes the place of all addresses that no rule names.
pub trait Pseudonyms: Debug {
    /// Returns the address to write instead.
    fn address(&mut self, address: IpAddr) -> IpAddr;
    /// Returns the hardware address to write instead.
    fn mac(&mut self, mac: [u8; 6]) -> [u8; 6];
}

impl Rewriter {
    /// Replaces all addresses that no rule names, and removes options and headers that may have addresses which cannot be
    /// replaced.
    #[must_use]
    pub fn pseudonyms(self, pseudonyms: Box<dyn Pseudonyms>) -> Self {
        Self { pseudonyms: Some(pseudonyms.into()), ..self }
    }

    /// Overwrites with zeros what is behind transport headers, and all packets that are neither IP nor ARP. Lengths stay.
    #[must_use]
    pub fn zero_payload(self, zero_payload: bool) -> Self {
        Self { zero_payload, ..self }
    }

    /// Whether no address may stay.
    pub(super) fn is_strict(&self) -> bool {
        self.pseudonyms.is_some()
    }

    /// Replaces the sender in the header of a cooked packet.
    pub(super) fn cooked(&self, link_type: u16, frame: &mut [u8]) {
        const ARPHRD_ETHER: u16 = 1;
        // Where the hardware type, the length of the address, and the address are.
        let [kind, length, address] = match link_type {
            COOKED => [2, 4, 6],
            COOKED_2 => [8, 11, 12],
            _ => return,
        };
        let changes = self.is_strict() || !self.rules.macs.is_empty();
        if !changes || frame.len() < address + 8 {
            return;
        }
        let length = if link_type == COOKED { frame[length + 1] } else { frame[length] };
        let is_ethernet = be16(frame, kind) == Some(ARPHRD_ETHER) && length == 6;
        if is_ethernet {
            self.mac(&mut frame[address..address + 6]);
        }
        if self.is_strict() {
            let unknown = if is_ethernet { address + 6 } else { address };
            frame[unknown..address + 8].fill(0);
        }
    }

    /// Overwrites what is not understood, and what is behind a packet.
    pub(super) fn rest(&mut self, link_type: u16, frame: &mut [u8]) {
        let found = network(link_type, frame)
            .filter(|(_, at)| *at <= frame.len() && !(self.is_strict() && names_others(link_type)));
        let Some((kind, at)) = found else {
            if self.is_strict() || self.zero_payload {
                self.left = Left { emptied: true, ..Left::default() };
                frame.fill(0);
            }
            return;
        };
        let packet = &mut frame[at..];
        match kind {
            IPV4 | IPV6 => self.behind(packet, self.is_strict() || self.zero_payload),
            ARP if packet.starts_with(&[0, 1, 8, 0, 6, 4]) => {
                let end = match packet.len() {
                    // Cut: half an address may be left.
                    ..28 if self.is_strict() => 8,
                    _ if self.is_strict() || self.zero_payload => 28,
                    _ => packet.len(),
                };
                packet.iter_mut().skip(end).for_each(|byte| *byte = 0);
            }
            _ if self.zero_payload || (kind == ARP && self.is_strict()) => packet.fill(0),
            _ => {
                self.left.foreign = self.is_strict() && kind != ARP && self.left.carried.is_none();
                self.left.payload = false;
            }
        }
    }

    /// Overwrites what is behind an IP packet, if that is asked for, or all of it if it is not understood.
    pub(super) fn behind(&self, packet: &mut [u8], asked: bool) {
        match Layout::of(packet) {
            Some(layout) if asked => packet[layout.transport.end..].fill(0),
            None if self.is_strict() || self.zero_payload => packet.fill(0),
            _ => {}
        }
    }

    /// Removes or changes addresses between the IP header and that of the transport. Returns what has changed in the
    /// destination that the checksum covers; `None`: it is the one in the IP header.
    pub(super) fn between(&self, packet: &mut [u8], layout: &Layout) -> Option<Change> {
        if !layout.is_ipv6 {
            let header = usize::from(packet[0] & 0xf) * 4;
            let mut end = None;
            let change = Change::of(&mut packet[20..header], |options| match self.is_strict() {
                true => without_options(options),
                false => end = self.routes(options),
            });
            change.adjust(packet, 10, false);
            return end;
        }
        let mut end = Change::default();
        let (mut next, mut at) = (packet[6], 40);
        while at + 8 <= layout.transport.start {
            let header = &mut packet[at..layout.transport.start];
            let (after, units) = (header[0], usize::from(header[1]));
            let length = match next {
                44 => 8,
                51 => 4 * (units + 2),
                _ => 8 * (units + 1),
            };
            let Some(header) = header.get_mut(..length) else { break };
            match next {
                0 | 60 if self.is_strict() => without_options_6(&mut header[2..]),
                43 => end = self.route(header),
                _ => {}
            }
            (next, at) = (after, at + length);
        }
        layout.is_routed.then_some(end)
    }

    /// Changes the addresses in options of IPv4: routes, as they were or are to be, and times. Returns what has changed in
    /// the last one of a route, if it is still to be visited.
    fn routes(&self, options: &mut [u8]) -> Option<Change> {
        const NOTHING: u8 = 1;
        const RECORD: u8 = 7;
        const TIMES: u8 = 68;
        const LOOSE: u8 = 131;
        const STRICT: u8 = 137;
        let mut end = None;
        let mut rest = options;
        while let [kind, ..] = *rest {
            let length = match (kind, rest.get(1)) {
                (NOTHING, _) => 1,
                (1.., Some(&length)) if (2..=rest.len()).contains(&length.into()) => length.into(),
                _ => break,
            };
            let (option, after) = std::mem::take(&mut rest).split_at_mut(length);
            rest = after;
            let &mut [_, _, pointer, ref mut entries @ ..] = option else { continue };
            // Counts from 1, and from the begin of the option.
            let visited = usize::from(pointer).saturating_sub(4).min(entries.len());
            match kind {
                RECORD => entries[..visited].chunks_exact_mut(4).for_each(|entry| self.address(entry)),
                LOOSE | STRICT => {
                    let changes = entries
                        .chunks_exact_mut(4)
                        .map(|entry| Change::of(entry, |address| self.address(address)));
                    let last = changes.last();
                    end = last.filter(|_| visited < entries.len()).or(end);
                }
                TIMES => {
                    let Some((flag, entries)) = entries.split_first_mut() else { continue };
                    // Addresses that the sender chose, or those passed so far.
                    let count = match *flag & 0xf {
                        3 => entries.len() / 8,
                        1 => visited.saturating_sub(1) / 8,
                        _ => 0,
                    };
                    entries.chunks_exact_mut(8).take(count).for_each(|entry| self.address(&mut entry[..4]));
                }
                _ => {}
            }
        }
        end
    }

    /// Changes the addresses of a routing header. Returns what has changed in the last one, if it is still to be visited.
    fn route(&self, header: &mut [u8]) -> Change {
        const SOURCE_ROUTE: u8 = 0;
        const HOME: u8 = 2;
        const SEGMENTS: u8 = 4;
        let (kind, left) = (header[2], header[3]);
        let all = (header.len() - 8) / 16;
        let (count, last) = match kind {
            SOURCE_ROUTE | HOME => (all, all.checked_sub(1)),
            SEGMENTS => (all.min(usize::from(header[4]) + 1), Some(0)),
            _ => (0, None),
        };
        let mut change = Change::default();
        for (place, address) in header[8..8 + 16 * count].chunks_mut(16).enumerate() {
            let one = Change::of(address, |address| self.address(address));
            if Some(place) == last && left > 0 {
                change = one;
            }
        }
        if self.is_strict() {
            header[8 + 16 * count..].fill(0);
        }
        change
    }

    /// Removes what may have addresses in the header of TCP.
    pub(super) fn tcp_options(&self, transport: &mut [u8]) {
        const HARMLESS: [u8; 5] = [2, 3, 4, 5, 8];
        if !self.is_strict() || transport.len() < 20 {
            return;
        }
        let header = (usize::from(transport[12] >> 4) * 4).clamp(20, transport.len());
        keep_options(&mut transport[20..header], &HARMLESS);
    }

    /// Returns how many bytes of a transport are no payload; `None`: the protocol is not understood.
    pub(super) fn kept(layout: &Layout, transport: &[u8]) -> Option<usize> {
        if layout.is_later() {
            return None;
        }
        let kind = transport.first().copied().unwrap_or(0);
        let listed = |head: usize, count: usize, bytes: usize| {
            be16(transport, count).map_or(head, |count| head.max(count_end(head, count, bytes)))
        };
        let kept = match (layout.protocol, layout.is_ipv6) {
            (TCP, _) => transport.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4).max(20),
            (UDP, _) => 8,
            (SCTP, _) => 12,
            (ICMP, false) => match kind {
                3 | 4 | 5 | 11 | 12 => transport.len(),
                0 | 8 | 10 => 8,
                9 if transport.len() > 6 => 8 + 4 * usize::from(transport[4]) * usize::from(transport[5]),
                13 | 14 => 20,
                _ => 4,
            },
            (IGMP, false) => match kind {
                0x11 if transport.len() >= 12 => listed(12, 10, 4),
                0x11 | 0x12 | 0x16 | 0x17 => 8,
                0x22 => transport.len(),
                _ => 4,
            },
            (ICMPV6, true) => match kind {
                1..=4 | 133..=137 | 143 => transport.len(),
                128 | 129 => 8,
                130 if transport.len() >= 28 => listed(28, 26, 16),
                130..=132 => 24,
                _ => 4,
            },
            _ => return None,
        };
        Some(kept.min(transport.len()))
    }

    /// Overwrites payload, and makes the checksum right that covers it. Returns `None` if that cannot be done: the checksum
    /// is in another fragment, or covers one.
    pub(super) fn empty(&self, layout: &Layout, transport: &mut [u8]) -> Option<()> {
        let is_optional = layout.protocol == UDP && !layout.is_ipv6;
        let fits = !layout.is_fragment || layout.checksum().is_none() || is_optional;
        let Some(kept) = Self::kept(layout, transport) else {
            transport.fill(0);
            return fits.then_some(());
        };
        let change = Change::of(transport, |transport| transport[kept..].fill(0));
        match (layout.protocol, layout.checksum()) {
            (SCTP, _) if transport.len() >= 12 => {
                transport[8..12].fill(0);
                let checksum = crc(OF_SCTP, transport).to_le_bytes();
                transport[8..12].copy_from_slice(&checksum);
            }
            // 0: none.
            (UDP, _) if layout.is_fragment && is_optional && transport.len() >= 8 => {
                transport[6..8].fill(0);
            }
            (protocol, Some(at)) => change.adjust(transport, at, protocol == UDP),
            _ => {}
        }
        fits.then_some(())
    }
}

/// Whether headers of this link type have addresses or names which nothing replaces.
fn names_others(link_type: u16) -> bool {
    matches!(link_type, WLAN | RADIOTAP | PPI | NFLOG)
}

fn count_end(head: usize, count: u16, bytes: usize) -> usize {
    head + usize::from(count) * bytes
}

/// Overwrites options of IPv4, but the alert for routers: routes and times have addresses.
fn without_options(options: &mut [u8]) {
    const ROUTER_ALERT: u8 = 148;
    keep_options(options, &[ROUTER_ALERT]);
}

/// Overwrites all options of IPv4 or TCP but these.
fn keep_options(options: &mut [u8], harmless: &[u8]) {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    let mut rest = options;
    while let [kind, ..] = *rest {
        let length = match (kind, rest.get(1)) {
            (END, _) => break,
            (NOTHING, _) => 1,
            (_, Some(&length)) if (2..=rest.len()).contains(&length.into()) => length.into(),
            _ => rest.len(),
        };
        let (option, after) = std::mem::take(&mut rest).split_at_mut(length);
        if !harmless.contains(&kind) {
            option.fill(NOTHING);
        }
        rest = after;
    }
    rest.fill(END);
}

/// Overwrites options of IPv6, but the alert for routers and the length of long packets, with padding.
fn without_options_6(options: &mut [u8]) {
    const HARMLESS: [u8; 3] = [1, 5, 0xc2];
    const PADDING: u8 = 1;
    let mut rest = options;
    while let [kind, ..] = *rest {
        let length = match (kind, rest.get(1)) {
            (0, _) => 1,
            (_, Some(&length)) if usize::from(length) + 2 <= rest.len() => usize::from(length) + 2,
            _ => break,
        };
        let (option, after) = std::mem::take(&mut rest).split_at_mut(length);
        if kind != 0 && (!HARMLESS.contains(&kind) || kind == PADDING) {
            option[0] = PADDING;
            option[2..].fill(0);
        }
        rest = after;
    }
    rest.fill(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Carried, Rewrite, sum};
    use super::*;
    use crate::check::{Integrity, integrity};
    use weir_packet::link_type::ETHERNET;

    /// Turns all bits, so that nothing stays.
    #[derive(Debug)]
    struct Turned;

    impl Pseudonyms for Turned {
        fn address(&mut self, address: IpAddr) -> IpAddr {
            match address {
                IpAddr::V4(address) => std::net::Ipv4Addr::from_bits(!address.to_bits()).into(),
                IpAddr::V6(address) => std::net::Ipv6Addr::from_bits(!address.to_bits()).into(),
            }
        }

        fn mac(&mut self, mac: [u8; 6]) -> [u8; 6] {
            mac.map(|byte| !byte)
        }
    }

    fn strict() -> Rewriter {
        Rewriter::new(Rewrite::default()).pseudonyms(Box::new(Turned)).zero_payload(true)
    }

    #[test]
    fn packets_of_linux_are_sound_without_payload() {
        let lines = include_str!("../check/packets.txt").lines().filter_map(|line| line.split_once(": "));
        for (name, hex) in lines {
            let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16);
            let packet: Vec<u8> = digits.chunks(2).map(|pair| byte(pair).expect("hex")).collect();
            let kind = if packet[0] >> 4 == 6 { IPV6 } else { IPV4 };
            let mut frame =
                [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), &packet].concat();
            let length = frame.len();
            let left = strict().apply(ETHERNET, &mut frame);
            assert_eq!((left.emptied, frame.len()), (false, length), "{name}");
            let layout = Layout::of(&frame[14..]).expect("an IP packet");
            if let Some(kept) = Rewriter::kept(&layout, &frame[14..][layout.transport.clone()]) {
                assert_eq!(integrity(ETHERNET, &frame), Integrity::Sound, "{name}: {frame:02x?}");
                assert!(frame[14 + layout.transport.start + kept..].iter().all(|byte| *byte == 0), "{name}");
            }
        }
    }

    /// As it is, with pseudonyms, without payload, and both.
    fn modes() -> [Rewriter; 4] {
        let named = || Rewriter::default().pseudonyms(Box::new(Turned));
        [Rewriter::default(), named(), Rewriter::default().zero_payload(true), named().zero_payload(true)]
    }

    /// Bytes that differ from one another and from 0, also when they are turned.
    fn bytes(count: u8) -> Vec<u8> {
        (1..=count).collect()
    }

    /// What becomes of bytes: so many stay, are turned, or are overwritten.
    fn fate(before: &[u8], after: &[u8]) -> String {
        let mut runs: Vec<(char, usize)> = Vec::new();
        for (&before, &after) in before.iter().zip(after) {
            let kind = match after {
                _ if after == before => '=',
                0 => '0',
                _ if after == !before => '!',
                _ => '?',
            };
            match runs.last_mut() {
                Some((last, count)) if *last == kind => *count += 1,
                _ => runs.push((kind, 1)),
            }
        }
        runs.iter().map(|(kind, count)| format!("{kind}{count}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_not_understood_goes() {
        const OF_ETHERNET: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
        let arp = |head: [u8; 8], length: usize| [&head[..], &bytes(40)[8..length]].concat();
        for (link_type, kind, packet, expected) in [
            // Its padding, and half an address.
            (1, ARP, arp(OF_ETHERNET, 40), ["=40", "=8 !20 012", "=28 012", "=8 !20 012"]),
            (1, ARP, arp(OF_ETHERNET, 20), ["=20", "=8 012", "=20", "=8 012"]),
            // Of other kinds of networks.
            (1, ARP, arp([9, 6, 8, 9, 6, 4, 9, 1], 40), ["=40", "040", "040", "040"]),
            (1, 0x1234, bytes(40), ["=40", "=40", "040", "040"]),
            (1, 0x8847, bytes(40), ["=40", "=40", "040", "040"]),
            (1, IPV4, bytes(40), ["=40", "040", "040", "040"]),
            (1, IPV6, bytes(40), ["=40", "040", "040", "040"]),
            (105, 0, bytes(40), ["=40", "040", "040", "040"]),
        ] {
            for (mode, (mut rewriter, expected)) in modes().into_iter().zip(expected).enumerate() {
                let head = if link_type == 1 { [&[2; 12][..], &kind.to_be_bytes()].concat() } else { vec![] };
                let mut frame = [&head[..], &packet].concat();
                let left = rewriter.apply(link_type, &mut frame);
                let what = format!("{link_type} {kind:#x}, mode {mode}");
                assert_eq!(fate(&packet, &frame[head.len()..]), expected, "{what}");
                assert_eq!(left.foreign, mode == 1 && kind == 0x1234, "{what}");
                assert_eq!(left.carried.is_some(), mode == 1 && kind == 0x8847, "{what}");
                assert_eq!(left.emptied, mode > 0 && link_type == 105, "{what}");
            }
        }
    }

    /// Addresses of 802.11, and what may be in front of it, have no place in a capture that is to tell no one; without
    /// payload alone, they may stay.
    #[test]
    fn headers_that_name_others_go() {
        let packet = ipv4(UDP, &[0, 9, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4]);
        let wlan = [&[8][..], &[0; 23], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
        for (link_type, header) in [
            (105, wlan.clone()),
            (127, [&[0, 0, 8, 0, 0, 0, 0, 0], &wlan[..]].concat()),
            (192, [&[0, 0, 8, 0, 105, 0, 0, 0], &wlan[..]].concat()),
            (239, vec![2, 0, 0, 5, 36, 0, 9, 0]),
            (9, vec![0x21]),
        ] {
            let frame = [&header[..], &packet].concat();
            let [_, mut named, mut zero, _] = modes();
            let [mut by_name, mut by_payload] = [frame.clone(), frame.clone()];
            let is_told = link_type != 9;
            assert_eq!(named.apply(link_type, &mut by_name).emptied, is_told, "{link_type}");
            assert_eq!(by_name.iter().all(|byte| *byte == 0), is_told, "{link_type}");
            assert!(!zero.apply(link_type, &mut by_payload).emptied, "{link_type}");
            let (kept, payload) = frame.split_at(frame.len() - 4);
            assert_eq!(fate(&kept[..header.len() + 20], &by_payload), format!("={}", header.len() + 20));
            assert_eq!(fate(payload, &by_payload[kept.len()..]), "04", "{link_type}");
        }
    }

    /// A packet of IPv4 of this protocol.
    fn ipv4(protocol: u8, transport: &[u8]) -> Vec<u8> {
        let length = u8::try_from(20 + transport.len()).expect("a short packet");
        let head = [0x45, 0, 0, length, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&head[..], transport].concat()
    }

    #[test]
    fn what_is_behind_a_packet_and_quoted_twice_goes() {
        let error = |quoted: &[u8]| ipv4(ICMP, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], quoted].concat());
        let packet = [error(&error(&bytes(30))), bytes(6)].concat();
        assert_eq!(packet.len(), 28 + 28 + 30 + 6);
        for (rewriter, zeros) in modes().iter_mut().zip([0, 36, 36, 36]) {
            let mut after = packet.clone();
            let left = rewriter.apply(101, &mut after);
            assert!(!left.headers);
            let end = if zeros > 0 { "036" } else { "=36" };
            assert_eq!(fate(&packet[56..], &after[56..]), end);
        }
    }

    #[test]
    fn what_is_behind_a_quoted_packet_goes() {
        let quoted = ipv4(UDP, &[0, 9, 0, 9, 0, 8, 0, 0]);
        let packet = ipv4(ICMP, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], &quoted, &bytes(12)].concat());
        for (rewriter, end) in modes().iter_mut().zip(["=12", "012", "012", "012"]) {
            let mut after = packet.clone();
            rewriter.apply(101, &mut after);
            assert_eq!(fate(&packet[56..], &after[56..]), end);
        }
    }

    #[test]
    fn what_stays_by_design_is_told() {
        let datagram = |port: u16| {
            let [high, low] = port.to_be_bytes();
            ipv4(UDP, &[0x99, 0x99, high, low, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6])
        };
        let told = |mut rewriter: Rewriter, link_type: u16, packet: &[u8]| {
            let Left { carried, payload, foreign, .. } = rewriter.apply(link_type, &mut packet.to_vec());
            (carried, payload, foreign)
        };
        let (message, packet) = (Some(Carried::Message("DNS")), Some(Carried::Packet("VXLAN")));
        // By rules for networks, with pseudonyms, and with neither or without payload.
        for (link_type, port, by_rules, named) in [
            (101, 9, (None, false, false), (None, true, false)),
            (101, 53, (message, false, false), (None, true, false)),
            (101, 4789, (packet, false, false), (packet, false, false)),
            (105, 9, (None, false, true), (None, false, false)),
        ] {
            let networks = vec!["10.0.0.0/8=11.0.0.0/8".parse().expect("a map")];
            let rules = Rewrite { networks, ..Rewrite::default() };
            assert_eq!(
                told(Rewriter::new(rules), link_type, &datagram(port)),
                by_rules,
                "{link_type} {port}"
            );
            let [plain, strict, zero, both] = modes();
            assert_eq!(told(strict, link_type, &datagram(port)), named, "{link_type} {port}");
            for rewriter in [plain, zero, both] {
                assert_eq!(
                    told(rewriter, link_type, &datagram(port)),
                    (None, false, false),
                    "{link_type} {port}"
                );
            }
        }
    }

    #[test]
    fn addresses_in_routing_headers_are_all_that_stays() {
        // Kind, addresses left, last entry: addresses that change, and the one that is the destination.
        for (kind, left, last, count, end) in [
            (0, 1, 0, 3, Some(2)),
            (0, 0, 0, 3, None),
            (2, 1, 0, 3, Some(2)),
            (4, 1, 1, 2, Some(0)),
            (4, 0, 1, 2, None),
            (4, 2, 2, 3, Some(0)),
            (4, 1, 200, 3, Some(0)),
            (4, 1, 0, 1, Some(0)),
            (3, 1, 1, 0, None),
        ] {
            let before = [&[6, 6, kind, left, last, 7, 7, 7], &bytes(48)[..]].concat();
            let mut after = before.clone();
            let change = strict().route(&mut after);
            let expected = ["=8".to_owned()].into_iter();
            let changed = (count > 0).then(|| format!("!{}", 16 * count));
            let gone = (count < 3).then(|| format!("0{}", 16 * (3 - count)));
            let expected: Vec<String> = expected.chain(changed).chain(gone).collect();
            assert_eq!(fate(&before, &after), expected.join(" "), "{kind} {left} {last}");
            let of = |bytes: &[u8]| end.map_or(0, |end| sum(&[&bytes[8 + 16 * end..][..16]]));
            assert_eq!((change.before, change.after), (of(&before), of(&after)), "{kind} {left} {last}");
            // By rules alone, what is not understood stays.
            let mut after = before.clone();
            let networks = vec!["::/0=::/0".parse().expect("a map")];
            Rewriter::new(Rewrite { networks, ..Rewrite::default() }).route(&mut after);
            assert_eq!(before, after);
        }
    }

    #[test]
    fn senders_of_cooked_packets_are_replaced() {
        for (link_type, kind, length, address) in [(COOKED, 2, 5, 6), (COOKED_2, 8, 11, 12)] {
            for (hardware, size, expected) in
                [(1, 6, "!6 02"), (1, 8, "08"), (512, 6, "08"), (772, 6, "08"), (1, 0, "08")]
            {
                let mut before = bytes(40);
                before[kind..kind + 2].copy_from_slice(&u16::to_be_bytes(hardware));
                before[length] = size;
                let mut after = before.clone();
                strict().cooked(link_type, &mut after);
                assert_eq!(fate(&before[address..address + 8], &after[address..address + 8]), expected);
                assert_eq!(
                    (&before[..address], &before[address + 8..]),
                    (&after[..address], &after[address + 8..])
                );
                let mut kept = before.clone();
                Rewriter::default().zero_payload(true).cooked(link_type, &mut kept);
                assert_eq!(kept, before, "it is no payload");
                let mut cut = before[..address + 7].to_vec();
                strict().cooked(link_type, &mut cut);
                assert_eq!(cut, before[..address + 7]);
            }
        }
    }

    #[test]
    fn only_harmless_options_stay() {
        for (before, after) in [
            (&[7, 4, 5, 6, 148, 4, 1, 2][..], &[1, 1, 1, 1, 148, 4, 1, 2][..]),
            (&[1, 148, 4, 3, 4, 0, 9, 9], &[1, 148, 4, 3, 4, 0, 0, 0]),
            (&[68, 3, 9, 148, 4, 3, 4, 7], &[1, 1, 1, 148, 4, 3, 4, 1]),
            // Lengths that cannot be.
            (&[1, 148, 1, 3, 4, 5, 6, 7], &[1, 148, 1, 3, 4, 5, 6, 7]),
            (&[1, 7, 9, 3, 4, 5, 6, 7], &[1, 1, 1, 1, 1, 1, 1, 1]),
            (&[1, 7, 0, 3, 4, 5, 6, 7], &[1, 1, 1, 1, 1, 1, 1, 1]),
        ] {
            let mut options = before.to_vec();
            without_options(&mut options);
            assert_eq!(options, after, "{before:?}");
        }
        for (before, after) in [
            (&[5, 2, 7, 8, 1, 0][..], &[5, 2, 7, 8, 1, 0][..]),
            (&[0xc2, 4, 1, 2, 3, 4], &[0xc2, 4, 1, 2, 3, 4]),
            (&[0, 0, 9, 2, 3, 4], &[0, 0, 1, 2, 0, 0]),
            (&[1, 4, 5, 6, 7, 8], &[1, 4, 0, 0, 0, 0]),
            (&[9, 1, 5, 9, 7, 8], &[1, 1, 0, 0, 0, 0]),
            (&[5, 0, 5, 5, 7, 8], &[5, 0, 0, 0, 0, 0]),
        ] {
            let mut options = before.to_vec();
            without_options_6(&mut options);
            assert_eq!(options, after, "{before:?}");
        }
    }

    /// Bytes of a transport that are no payload.
    #[test]
    fn headers_stay_without_payload() {
        let kept = |v6: bool, protocol: u8, transport: &[u8]| {
            let mut layout = Layout::of(&ipv4(protocol, transport)).expect("a packet");
            layout.is_ipv6 = v6;
            Rewriter::kept(&layout, transport)
        };
        let with = |changes: &[(usize, u8)]| {
            let mut transport = vec![0; 60];
            changes.iter().for_each(|&(at, byte)| transport[at] = byte);
            transport
        };
        for (v6, protocol, transport, expected) in [
            (false, TCP, with(&[(12, 0x50)]), Some(20)),
            (true, TCP, with(&[(12, 0x80)]), Some(32)),
            (true, TCP, with(&[(12, 0x20)]), Some(20)),
            (true, TCP, vec![0; 12], Some(12)),
            (false, UDP, with(&[]), Some(8)),
            (false, SCTP, with(&[]), Some(12)),
            (false, ICMP, with(&[(0, 3)]), Some(60)),
            (false, ICMP, with(&[(0, 12)]), Some(60)),
            (false, ICMP, with(&[(0, 8)]), Some(8)),
            (false, ICMP, with(&[(0, 9), (4, 2), (5, 3)]), Some(32)),
            (false, ICMP, vec![9, 0, 0, 0, 2, 2], Some(4)),
            (false, ICMP, with(&[(0, 13)]), Some(20)),
            (false, ICMP, with(&[(0, 42)]), Some(4)),
            (true, ICMP, with(&[]), None),
            (false, IGMP, with(&[(0, 0x11), (11, 3)]), Some(24)),
            (false, IGMP, with(&[(0, 0x11)])[..11].to_vec(), Some(8)),
            (false, IGMP, with(&[(0, 0x16)]), Some(8)),
            (false, IGMP, with(&[(0, 0x22)]), Some(60)),
            (false, IGMP, with(&[(0, 0x99)]), Some(4)),
            (true, ICMPV6, with(&[(0, 1)]), Some(60)),
            (true, ICMPV6, with(&[(0, 143)]), Some(60)),
            (true, ICMPV6, with(&[(0, 128)]), Some(8)),
            (true, ICMPV6, with(&[(0, 130), (27, 1)]), Some(44)),
            (true, ICMPV6, with(&[(0, 130), (27, 200)]), Some(60)),
            (true, ICMPV6, with(&[(0, 130)])[..27].to_vec(), Some(24)),
            (true, ICMPV6, with(&[(0, 131)]), Some(24)),
            (true, ICMPV6, with(&[(0, 200)]), Some(4)),
            (false, ICMPV6, with(&[]), None),
            (false, 47, with(&[]), None),
        ] {
            assert_eq!(kept(v6, protocol, &transport), expected, "{v6} {protocol} {transport:?}");
        }
    }

    #[test]
    fn datagrams_in_fragments_are_told() {
        for (flags, protocol, told) in
            [(0x2000_u16, TCP, true), (0x2000, UDP, false), (1, UDP, false), (1, TCP, true)]
        {
            let [high, low] = flags.to_be_bytes();
            let head = [0x45, 0, 0, 60, 0, 7, high, low, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let mut packet = [&head[..], &[0x50; 40]].concat();
            assert_eq!(strict().apply(101, &mut packet).headers, told, "{flags} {protocol}");
            assert!(packet[60 - 20..].iter().all(|byte| *byte == 0));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(
            mut frame in prop::collection::vec(any::<u8>(), 0..120),
            link_type in prop::sample::select(vec![0_u16, 1, 9, 50, 101, 104, 105, 107, 127, 192, 239, COOKED, COOKED_2]),
            kind in prop::sample::select(vec![0x0800_u16, 0x86dd, 0x0806, 0x8100]),
            version in prop::sample::select(vec![0x45_u8, 0x47, 0x4f, 0x60]),
            protocol in prop::sample::select(vec![0_u8, 1, 2, 6, 17, 43, 44, 51, 58, 60, 132]),
        ) {
            let at = match link_type { 1 => 14, COOKED => 16, COOKED_2 => 20, 0 => 4, _ => 0 };
            let place = match link_type { COOKED_2 => 0, _ => at.max(2) - 2 };
            for (at, byte) in [
                (place, kind.to_be_bytes()[0]), (place + 1, kind.to_be_bytes()[1]), (at, version),
                (at + if version == 0x60 { 6 } else { 9 }, protocol),
            ] {
                frame.iter_mut().skip(at).take(1).for_each(|old| *old = byte);
            }
            let length = frame.len();
            strict().apply(link_type, &mut frame);
            prop_assert_eq!(frame.len(), length);
        }
    }
}
