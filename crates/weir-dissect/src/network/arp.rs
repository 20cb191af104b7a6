//! ARP and its relatives (RFC 826, RFC 903, RFC 2390).

use std::net::IpAddr;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

impl Printer<'_> {
    pub(crate) fn arp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "arp";
        self.facts.protocol = Some("arp");
        let (hardware, network) = (bytes.u16(0)?, bytes.u16(2)?);
        let (mac_len, ip_len, operation) = (bytes.u8(4)?, bytes.u8(5)?, bytes.u16(6)?);
        let (sender_ip, target_mac) =
            (8 + usize::from(mac_len), 8 + usize::from(mac_len) + usize::from(ip_len));
        let target_ip = target_mac + usize::from(mac_len);
        // All or nothing: the addresses in half an ARP packet are useless.
        bytes.get(0, target_ip + usize::from(ip_len))?;
        if !self.options.link {
            self.text("ARP, ");
        }
        if (network, mac_len, ip_len) != (0x0800, 6, 4) {
            put!(self, "Unknown Hardware ({hardware}) (len {mac_len}), ");
            put!(
                self,
                "Unknown Protocol (0x{network:04x}) (len {ip_len}), oper {operation}, length {}",
                bytes.len
            );
            return Ok(());
        }
        let (sender, target) = (bytes.ip4(sender_ip)?, bytes.ip4(target_ip)?);
        let (sender_mac, target_mac) = (bytes.mac(8)?, bytes.mac(target_mac)?);
        self.facts.source.get_or_insert(IpAddr::V4(sender));
        self.facts.destination.get_or_insert(IpAddr::V4(target));
        if self.options.verbose > 0 {
            // IEEE 802 networks (6) have tcpdump's name for the first of them.
            self.text(if bytes.u16(0)? == 6 { "TokenRing" } else { "Ethernet" });
            self.text(" (len 6), IPv4 (len 4), ");
        }
        match operation {
            1 => {
                self.text("Request who-has ");
                self.ip4_address(target);
                if target_mac != [0; 6] {
                    self.text(" (");
                    self.mac(target_mac);
                    self.text(")");
                }
                self.text(" tell ");
                self.ip4_address(sender);
            }
            2 => {
                self.text("Reply ");
                self.ip4_address(sender);
                self.text(" is-at ");
                self.mac(sender_mac);
            }
            3 => {
                self.text("Reverse Request who-is ");
                self.mac(target_mac);
                self.text(" tell ");
                self.mac(sender_mac);
            }
            4 => {
                self.text("Reverse Reply ");
                self.mac(target_mac);
                self.text(" at ");
                self.ip4_address(target);
            }
            8 => {
                self.text("Inverse Request who-is ");
                self.mac(target_mac);
                self.text(" tell ");
                self.mac(sender_mac);
            }
            9 => {
                self.text("Inverse Reply ");
                self.mac(sender_mac);
                self.text(" at ");
                self.ip4_address(sender);
            }
            10 => self.text("NACK Reply "),
            _ => put!(self, "Unknown ({operation}) "),
        }
        match operation {
            1..=4 | 8 | 9 => put!(self, ", length {}", bytes.len),
            _ => self.unknown(bytes.data),
        }
        Ok(())
    }
}
