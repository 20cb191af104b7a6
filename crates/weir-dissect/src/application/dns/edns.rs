//! Options of extended DNS messages (RFC 6891), with `-vv`.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const UNDERSTOOD: u16 = 5;
const HASHES: u16 = 6;
const HASHES_3: u16 = 7;
const SUBNET: u16 = 8;
const EXPIRE: u16 = 9;
const COOKIE: u16 = 10;
const KEEPALIVE: u16 = 11;
const PADDING: u16 = 12;
const CHAIN: u16 = 13;
const KEY_TAGS: u16 = 14;

fn name(code: u16) -> &'static str {
    match code {
        1 => "LLQ",
        2 => "UL",
        3 => "NSID",
        UNDERSTOOD => "DAU",
        HASHES => "DHU",
        HASHES_3 => "N3U",
        SUBNET => "ECS",
        EXPIRE => "EXPIRE",
        COOKIE => "COOKIE",
        KEEPALIVE => "KEEPALIVE",
        PADDING => "PADDING",
        CHAIN => "CHAIN",
        KEY_TAGS => "KEY-TAG",
        16 => "CLIENT-TAG",
        17 => "SERVER-TAG",
        _ => "",
    }
}

/// Algorithms of DNSSEC.
fn algorithm(number: u8) -> &'static str {
    match number {
        0 => "DELETE",
        1 => "RSAMD5",
        2 => "DH",
        3 => "DS",
        5 => "RSASHA1",
        6 => "DSA-NSEC3-SHA1",
        7 => "RSASHA1-NSEC3-SHA1",
        8 => "RSASHA256",
        10 => "RSASHA512",
        12 => "ECC-GOST",
        13 => "ECDSAP256SHA256",
        14 => "ECDSAP384SHA384",
        15 => "ED25519",
        16 => "ED448",
        252 => "INDIRECT",
        253 => "PRIVATEDNS",
        254 => "PRIVATEOID",
        _ => "",
    }
}

fn hash(option: u16, number: u8) -> &'static str {
    match (option, number) {
        (_, 1) => "SHA-1",
        (HASHES, 2) => "SHA-256",
        (HASHES, 3) => "GOST_R_34.11-94",
        (HASHES, 4) => "SHA-384",
        _ => "",
    }
}

impl Printer<'_> {
    /// Prints the options in `bytes`, the data of the record.
    pub(crate) fn edns_options(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let mut rest = bytes;
        let mut before = " [";
        while rest.len > 0 {
            self.text(before);
            before = ",";
            let code = rest.u16(0)?;
            match name(code) {
                "" => put!(self, "Opt{code}"),
                name => self.text(name),
            }
            let len = usize::from(rest.u16(2)?);
            if len > 0 {
                self.text(" ");
                rest.get(4, len)?;
                self.edns_option(code, rest.from(4).first(len))?;
            }
            rest = rest.from(4 + len);
        }
        if before == "," {
            self.text("]");
        }
        Ok(())
    }

    fn edns_option(&mut self, code: u16, option: Bytes<'_>) -> Result<(), Cut> {
        match (code, option.len) {
            (UNDERSTOOD | HASHES | HASHES_3, _) => {
                for (at, &number) in option.data.iter().enumerate() {
                    let name = if code == UNDERSTOOD { algorithm(number) } else { hash(code, number) };
                    self.text(if at == 0 { "" } else { " " });
                    match name {
                        "" => put!(self, "Alg_{number}"),
                        name => self.text(name),
                    }
                }
            }
            (SUBNET, 4..) => self.client_subnet(option)?,
            (EXPIRE, 4) => put!(self, "{} sec", option.u32(0)?),
            (COOKIE, 8 | 16..=40) => self.digits(option),
            (KEEPALIVE, 2) => {
                let tenths = option.u16(0)?;
                put!(self, "{}.{} sec", tenths / 10, tenths % 10);
            }
            (PADDING, len) => put!(self, "({len})"),
            (CHAIN, _) => {
                self.domain_end(option, 0)?;
            }
            (KEY_TAGS, 2..) if option.len.is_multiple_of(2) => {
                for at in (0..option.len).step_by(2) {
                    put!(self, "{}{}", if at == 0 { "" } else { " " }, option.u16(at)?);
                }
            }
            (SUBNET | EXPIRE | COOKIE | KEEPALIVE | KEY_TAGS, _) => self.text(" (invalid)"),
            _ => self.digits(option),
        }
        Ok(())
    }

    /// Prints the network of the client for which a resolver asks (RFC 7871).
    fn client_subnet(&mut self, option: Bytes<'_>) -> Result<(), Cut> {
        let (family, source, scope) = (option.u16(0)?, option.u8(2)?, option.u8(3)?);
        let given = option.from(4).data;
        match family {
            1 if given.len() <= 4 => {
                let mut address = [0; 4];
                address[..given.len()].copy_from_slice(given);
                self.ip4_address(Ipv4Addr::from(address));
            }
            2 if given.len() <= 16 => {
                let mut address = [0; 16];
                address[..given.len()].copy_from_slice(given);
                self.ip6_address(Ipv6Addr::from(address));
            }
            _ => {
                self.text(" (invalid)");
                return Ok(());
            }
        }
        put!(self, "/{source}/{scope}");
        Ok(())
    }

    fn digits(&mut self, bytes: Bytes<'_>) {
        bytes.data.iter().for_each(|&byte| self.hex_byte(byte));
    }
}
