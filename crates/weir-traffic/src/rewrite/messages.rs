//! Addresses in the messages of ICMP: neighbours, and packets that errors quote (RFC 792, 4861).

use super::Rewriter;
use crate::layout::Layout;

impl Rewriter {
    /// Changes an ICMP message. `quoted`: it is itself in an error. Returns `None` if it ends too early, or has a length
    /// that cannot be.
    pub(super) fn message(&mut self, layout: &Layout, message: &mut [u8], quoted: bool) -> Option<()> {
        let kind = *message.first()?;
        if layout.is_ipv6 { self.icmpv6(kind, message, quoted) } else { self.icmp(kind, message, quoted) }
    }

    fn icmp(&mut self, kind: u8, message: &mut [u8], quoted: bool) -> Option<()> {
        match kind {
            3 | 4 | 5 | 11 | 12 => self.quote(message.get_mut(8..)?, quoted),
            _ => Some(()),
        }
    }

    fn icmpv6(&mut self, kind: u8, message: &mut [u8], quoted: bool) -> Option<()> {
        const SOLICITED_NEIGHBOUR: u8 = 135;
        const NEIGHBOUR: u8 = 136;
        let options = match kind {
            1..=4 => return self.quote(message.get_mut(8..)?, quoted),
            SOLICITED_NEIGHBOUR | NEIGHBOUR => 24,
            _ => return Some(()),
        };
        self.rules.address(message.get_mut(8..options)?);
        let mut options = message.get_mut(options..)?;
        while !options.is_empty() {
            let length = 8 * usize::from(*options.get(1)?);
            let (option, rest) = options.split_at_mut_checked(length).filter(|_| length > 0)?;
            self.option(option);
            options = rest;
        }
        Some(())
    }

    /// Changes an option of neighbour discovery.
    fn option(&self, option: &mut [u8]) {
        const SOURCE: u8 = 1;
        const TARGET: u8 = 2;
        if let SOURCE | TARGET = option[0] {
            self.rules.mac(&mut option[2..8]);
        }
    }

    /// Changes the packet that an error quotes; never one that is in there.
    fn quote(&mut self, packet: &mut [u8], quoted: bool) -> Option<()> {
        if quoted { Some(()) } else { self.packet(packet, true) }
    }
}
