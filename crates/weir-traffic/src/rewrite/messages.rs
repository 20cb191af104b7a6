//! Addresses in the messages of ICMP: redirects, routers and neighbours (RFC 792, 1256, 4861, 4191, 8106); and multicast
//! groups in those of IGMP and MLD (RFC 2236, 3376, 2710, 3810).

use weir_packet::bytes::be16;
use weir_packet::protocol::IGMP;

use super::Rewriter;
use crate::layout::Layout;

impl Rewriter {
    /// Changes a message of ICMP or IGMP. `quoted`: it is itself in an error. Returns `None` if it ends too early, or has a length
    /// that cannot be.
    pub(super) fn message(&mut self, layout: &Layout, message: &mut [u8], quoted: bool) -> Option<()> {
        let kind = *message.first()?;
        match layout.is_ipv6 {
            true => self.icmpv6(kind, message, quoted),
            false if layout.protocol == IGMP => self.igmp(kind, message),
            false => self.icmp(kind, message, quoted),
        }
    }

    fn igmp(&mut self, kind: u8, message: &mut [u8]) -> Option<()> {
        const QUERY: u8 = 0x11;
        const REPORTS: [u8; 3] = [0x12, 0x16, 0x17];
        const REPORT_3: u8 = 0x22;
        match kind {
            QUERY => self.query::<4>(message, 4),
            REPORT_3 => self.records::<4>(message),
            _ if REPORTS.contains(&kind) => {
                self.address(message.get_mut(4..8)?);
                Some(())
            }
            _ => Some(()),
        }
    }

    /// Changes the group at this place, whose addresses have so many bytes, and the sources that a query of a newer version
    /// has behind it.
    fn query<const BYTES: usize>(&mut self, message: &mut [u8], group: usize) -> Option<()> {
        self.address(message.get_mut(group..group + BYTES)?);
        let sources = group + BYTES + 4;
        let Some(number) = be16(message, sources - 2) else { return Some(()) };
        let end = sources + usize::from(number) * BYTES;
        message.get_mut(sources..end)?.chunks_mut(BYTES).for_each(|source| self.address(source));
        Some(())
    }

    /// Changes groups and sources in a report of a newer version.
    fn records<const BYTES: usize>(&mut self, message: &mut [u8]) -> Option<()> {
        let number = be16(message, 6)?;
        let mut records = message.get_mut(8..)?;
        for _ in 0..number {
            let sources = usize::from(be16(records, 2)?);
            let auxiliary = 4 * usize::from(records[1]);
            let (record, rest) = records.split_at_mut_checked(4 + BYTES * (1 + sources) + auxiliary)?;
            let (addresses, auxiliary) = record[4..].split_at_mut(BYTES * (1 + sources));
            if self.zero_payload {
                auxiliary.fill(0);
            }
            addresses.chunks_mut(BYTES).for_each(|address| self.address(address));
            records = rest;
        }
        if self.zero_payload {
            records.fill(0);
        }
        Some(())
    }

    fn icmp(&mut self, kind: u8, message: &mut [u8], quoted: bool) -> Option<()> {
        const REDIRECT: u8 = 5;
        const ROUTERS: u8 = 9;
        match kind {
            REDIRECT => {
                self.address(message.get_mut(4..8)?);
                self.quote(message.get_mut(8..)?, quoted)
            }
            3 | 4 | 11 | 12 => self.quote(message.get_mut(8..)?, quoted),
            ROUTERS => {
                let (count, words) = (*message.get(4)?, *message.get(5)?);
                let mut entries = message.get_mut(8..)?;
                for _ in 0..count {
                    let (entry, rest) = entries.split_at_mut_checked(4 * usize::from(words))?;
                    self.address(entry.get_mut(..4)?);
                    entries = rest;
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn icmpv6(&mut self, kind: u8, message: &mut [u8], quoted: bool) -> Option<()> {
        const SOLICITED_ROUTER: u8 = 133;
        const ROUTER: u8 = 134;
        const SOLICITED_NEIGHBOUR: u8 = 135;
        const NEIGHBOUR: u8 = 136;
        const REDIRECT: u8 = 137;
        const QUERY: u8 = 130;
        const REPORT: u8 = 131;
        const DONE: u8 = 132;
        const REPORT_2: u8 = 143;
        let options = match kind {
            QUERY => return self.query::<16>(message, 8),
            REPORT_2 => return self.records::<16>(message),
            REPORT | DONE => {
                self.address(message.get_mut(8..24)?);
                return Some(());
            }
            1..=4 => return self.quote(message.get_mut(8..)?, quoted),
            SOLICITED_ROUTER => 8,
            ROUTER => 16,
            SOLICITED_NEIGHBOUR | NEIGHBOUR => 24,
            REDIRECT => 40,
            _ => return Some(()),
        };
        if matches!(kind, SOLICITED_NEIGHBOUR | NEIGHBOUR | REDIRECT) {
            let addresses = message.get_mut(8..options)?;
            addresses.chunks_mut(16).for_each(|address| self.address(address));
        }
        let mut options = message.get_mut(options..)?;
        while !options.is_empty() {
            let length = 8 * usize::from(*options.get(1)?);
            let (option, rest) = options.split_at_mut_checked(length).filter(|_| length > 0)?;
            self.option(option, quoted)?;
            options = rest;
        }
        Some(())
    }

    /// Changes an option of neighbour discovery.
    fn option(&mut self, option: &mut [u8], quoted: bool) -> Option<()> {
        const SOURCE: u8 = 1;
        const TARGET: u8 = 2;
        const PREFIX: u8 = 3;
        const REDIRECTED: u8 = 4;
        const MTU: u8 = 5;
        const ROUTE: u8 = 24;
        const SERVERS: u8 = 25;
        match option[0] {
            SOURCE | TARGET => self.mac(&mut option[2..8]),
            PREFIX => {
                let bits = option[2];
                self.prefix(option.get_mut(16..32)?, bits);
            }
            REDIRECTED => return self.quote(&mut option[8..], quoted),
            ROUTE => {
                let (bits, present) = (option[2], (option.len() - 8).min(16));
                let mut whole = [0; 16];
                whole[..present].copy_from_slice(&option[8..8 + present]);
                self.prefix(&mut whole, bits);
                option[8..8 + present].copy_from_slice(&whole[..present]);
            }
            SERVERS => option[8..].chunks_exact_mut(16).for_each(|address| self.address(address)),
            MTU => {}
            // Names, among others.
            _ if self.zero_payload => option[2..].fill(0),
            _ => {}
        }
        Some(())
    }

    /// Changes the packet that an error quotes; never one that is in there.
    fn quote(&mut self, packet: &mut [u8], quoted: bool) -> Option<()> {
        if quoted {
            if self.is_strict() || self.zero_payload {
                packet.fill(0);
            }
            return Some(());
        }
        let whole = self.packet(packet, true);
        self.behind(packet, self.is_strict() || self.zero_payload);
        whole
    }
}
