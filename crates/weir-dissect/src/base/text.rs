//! Appends text and numbers to the line, without `core::fmt` on the path of every packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::BitAnd;

use crate::Printer;

/// Formats into the line. Writing to memory cannot fail.
macro_rules! put {
    ($printer:expr, $($format:tt)*) => {{
        use std::io::Write as _;
        let _cannot_fail = write!($printer.line, $($format)*);
    }};
}
pub(crate) use put;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Printer<'_> {
    #[inline]
    pub(crate) fn text(&mut self, text: &str) {
        self.line.extend_from_slice(text.as_bytes());
    }

    /// Appends a decimal number.
    pub(crate) fn number(&mut self, number: impl Into<u64>) {
        decimal(self.line, number.into());
    }

    /// Appends a number of bytes.
    pub(crate) fn size(&mut self, size: usize) {
        decimal(self.line, size as u64);
    }

    pub(crate) fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.ip4_address(address),
            IpAddr::V6(address) => self.ip6_address(address),
        }
    }

    /// Appends the name of an address, or the address.
    pub(crate) fn ip4_address(&mut self, address: Ipv4Addr) {
        if !self.host(address.into()) {
            self.ip4_number(address);
        }
    }

    /// Appends the name of an address, or the address.
    pub(crate) fn ip6_address(&mut self, address: Ipv6Addr) {
        if !self.host(address.into()) {
            self.ip6_number(address);
        }
    }

    /// Appends the name of an address, if it has one. Returns whether it has.
    fn host(&mut self, address: IpAddr) -> bool {
        let name = self.resolve.as_mut().and_then(|resolve| resolve.host(address));
        self.line.extend_from_slice(name.unwrap_or_default().as_bytes());
        name.is_some()
    }

    /// Appends the name of a port over `protocol` (`tcp`, `udp`), or the port.
    pub(crate) fn port(&mut self, protocol: &str, port: u16) {
        match self.resolve.as_mut().and_then(|resolve| resolve.service(port, protocol)) {
            Some(name) => self.line.extend_from_slice(name.as_bytes()),
            None => self.number(port),
        }
    }

    pub(crate) fn ip4_number(&mut self, address: Ipv4Addr) {
        for (position, byte) in address.octets().into_iter().enumerate() {
            if position > 0 {
                self.line.push(b'.');
            }
            decimal(self.line, byte.into());
        }
    }

    /// Appends an address as `inet_ntop` does: without the longest run of zeros, and with an embedded IPv4 address in
    /// dotted form.
    pub(crate) fn ip6_number(&mut self, address: Ipv6Addr) {
        let words = address.segments();
        let (start, len) = longest_zeroes(&words);
        let ip4 = start == 0 && (len == 6 || len == 5 && words[5] == 0xffff);
        let mut at = 0;
        while at < 8 {
            if at == start && len > 1 {
                self.text(if at == 0 || at + len == 8 { "::" } else { ":" });
                if at > 0 && at + len < 8 {
                    self.text(":");
                }
                at += len;
                continue;
            }
            if at > 0 && at != start + len {
                self.text(":");
            }
            if ip4 && at == 6 {
                let [.., a, b, c, d] = address.octets();
                return self.ip4_number(Ipv4Addr::new(a, b, c, d));
            }
            self.short_hex(words[at]);
            at += 1;
        }
    }

    pub(crate) fn mac(&mut self, address: [u8; 6]) {
        if self.resolve.is_some() && address == [0xff; 6] {
            return self.text("Broadcast");
        }
        for (position, byte) in address.into_iter().enumerate() {
            if position > 0 {
                self.line.push(b':');
            }
            self.hex_byte(byte);
        }
    }

    pub(crate) fn hex_byte(&mut self, byte: u8) {
        hex_byte(self.line, byte);
    }

    /// Prints the names of the bits that are set in `flags`; `none` if there are none.
    pub(crate) fn flag_names<T>(&mut self, flags: T, names: &[(T, &str)])
    where
        T: Copy + Default + PartialEq + BitAnd<Output = T>,
    {
        let mut before = "";
        for (_, name) in names.iter().filter(|(bit, _)| flags & *bit != T::default()) {
            self.text(before);
            self.text(name);
            before = ", ";
        }
        if before.is_empty() {
            self.text("none");
        }
    }

    fn short_hex(&mut self, word: u16) {
        let mut shift = 12;
        while shift > 0 && word >> shift == 0 {
            shift -= 4;
        }
        loop {
            self.line.push(DIGITS[usize::from(word >> shift & 15)]);
            if shift == 0 {
                return;
            }
            shift -= 4;
        }
    }

    /// Appends bytes from the packet with `^A` or `M-a` in place of all but printable ASCII, as in tcpdump.
    pub(crate) fn harmless(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte & 0x80 != 0 {
                self.text("M-");
            }
            match byte & 0x7f {
                0x7f => self.text("^?"),
                low @ 0..0x20 => {
                    self.line.push(b'^');
                    self.line.push(low ^ 0x40);
                }
                printable => self.line.push(printable),
            }
        }
    }
}

pub(crate) fn hex_byte(line: &mut Vec<u8>, byte: u8) {
    line.push(DIGITS[usize::from(byte >> 4)]);
    line.push(DIGITS[usize::from(byte & 15)]);
}

fn decimal(line: &mut Vec<u8>, mut number: u64) {
    // Most numbers are short: no call to copy so few bytes.
    if number < 1000 {
        let digit = |number: u64| DIGITS[(number % 10) as usize];
        if number >= 100 {
            line.push(digit(number / 100));
        }
        if number >= 10 {
            line.push(digit(number / 10));
        }
        return line.push(digit(number));
    }
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = DIGITS[(number % 10) as usize];
        number /= 10;
        if number == 0 {
            return line.extend_from_slice(&digits[at..]);
        }
    }
}

/// Returns the start and length of the first of the longest runs of two or more zeros; (8, 0) if there is none.
fn longest_zeroes(words: &[u16; 8]) -> (usize, usize) {
    let mut best = (8, 0);
    let mut at = 0;
    while at < 8 {
        let len = words[at..].iter().take_while(|&&word| word == 0).count();
        if len > 1 && len > best.1 {
            best = (at, len);
        }
        at += len.max(1);
    }
    best
}
