//! Payloads of ISAKMP and IKE (RFC 2407, RFC 2408, RFC 2409), with `-v`. Those of version 2 are in `ike2`.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Printer;
use crate::base::bytes::Bytes;
use crate::base::text::put;

/// From 0; `pay14` to `pay32` follow, and those of version 2.
const NAMES: [&str; 14] =
    ["none", "sa", "p", "t", "ke", "id", "cert", "cr", "hash", "sig", "nonce", "n", "d", "vid"];
/// From 33.
const NAMES2: [&str; 16] = [
    "v2sa", "v2ke", "v2IDi", "v2IDr", "v2cert", "v2cr", "v2auth", "v2nonce", "v2n", "v2d", "v2vid", "v2TSi",
    "v2TSr", "v2e", "v2cp", "v2eap",
];
/// Length of the header of a payload.
const HEADER: usize = 4;
const PROPOSAL: u8 = 2;
const TRANSFORM: u8 = 3;
/// Nested payloads are at most proposals and transforms.
const DEEPEST: usize = 3;
const IPSEC: u32 = 1;

/// From 0, as all that follow. An empty name is none.
const PROTOCOLS: [&str; 5] = ["", "isakmp", "ipsec-ah", "ipsec-esp", "ipcomp"];
const CERTIFICATES: [&str; 11] =
    ["none", "pkcs7", "pgp", "dns", "x509sign", "x509ke", "kerberos", "crl", "arl", "spki", "x509attr"];
const IDENTITIES: [&str; 12] = [
    "",
    "IPv4",
    "FQDN",
    "user FQDN",
    "IPv4net",
    "IPv6",
    "IPv6net",
    "IPv4range",
    "IPv6range",
    "ASN1 DN",
    "ASN1 GN",
    "keyid",
];
#[rustfmt::skip]
const NOTICES: [&str; 31] = [
    "", "INVALID-PAYLOAD-TYPE", "DOI-NOT-SUPPORTED", "SITUATION-NOT-SUPPORTED", "INVALID-COOKIE",
    "INVALID-MAJOR-VERSION", "INVALID-MINOR-VERSION", "INVALID-EXCHANGE-TYPE", "INVALID-FLAGS",
    "INVALID-MESSAGE-ID", "INVALID-PROTOCOL-ID", "INVALID-SPI", "INVALID-TRANSFORM-ID",
    "ATTRIBUTES-NOT-SUPPORTED", "NO-PROPOSAL-CHOSEN", "BAD-PROPOSAL-SYNTAX", "PAYLOAD-MALFORMED",
    "INVALID-KEY-INFORMATION", "INVALID-ID-INFORMATION", "INVALID-CERT-ENCODING", "INVALID-CERTIFICATE",
    "CERT-TYPE-UNSUPPORTED", "INVALID-CERT-AUTHORITY", "INVALID-HASH-INFORMATION", "AUTHENTICATION-FAILED",
    "INVALID-SIGNATURE", "ADDRESS-NOTIFICATION", "NOTIFY-SA-LIFETIME", "CERTIFICATE-UNAVAILABLE",
    "UNSUPPORTED-EXCHANGE-TYPE", "UNEQUAL-PAYLOAD-LENGTHS",
];
const RESPONDER_LIFETIME: u16 = 24576;
const REPLAY_STATUS: u16 = 24577;

#[rustfmt::skip]
pub(crate) const GROUPS: [&str; 19] = [
    "", "modp768", "modp1024", "EC2N 2^155", "EC2N 2^185", "modp1536", "iana-grp06", "iana-grp07", "iana-grp08",
    "iana-grp09", "iana-grp10", "iana-grp11", "iana-grp12", "iana-grp13", "modp2048", "modp3072", "modp4096",
    "modp6144", "modp8192",
];
/// Attributes and their values, of ISAKMP itself and of IPsec.
const ATTRIBUTES: [Attribute; 17] = [
    ("", &[]),
    ("enc", &["", "1des", "idea", "blowfish", "rc5", "3des", "cast", "aes"]),
    ("hash", &["", "md5", "sha1", "tiger", "sha2-256", "sha2-384", "sha2-512"]),
    ("auth", &["", "preshared", "dss", "rsa sig", "rsa enc", "rsa enc revised"]),
    ("group desc", &GROUPS),
    ("group type", &["", "MODP", "ECP", "EC2N"]),
    ("group prime", &[]),
    ("group gen1", &[]),
    ("group gen2", &[]),
    ("group curve A", &[]),
    ("group curve B", &[]),
    ("lifetype", &["", "sec", "kb"]),
    ("lifeduration", &[]),
    ("prf", &[]),
    ("keylen", &[]),
    ("field", &[]),
    ("order", &[]),
];
const ATTRIBUTES_IPSEC: [Attribute; 10] = [
    ("", &[]),
    ("lifetype", &["", "sec", "kb"]),
    ("life", &[]),
    ("group desc", &GROUPS),
    ("enc mode", &["", "tunnel", "transport"]),
    ("auth", &["", "hmac-md5", "hmac-sha1", "1des-mac", "keyed"]),
    ("keylen", &[]),
    ("rounds", &[]),
    ("dictsize", &[]),
    ("privalg", &[]),
];
/// What transforms of a protocol are called.
const TRANSFORMS: [&[&str]; 5] = [
    &[],
    &["", "ike"],
    &["", "(reserved)", "md5", "sha", "1des", "sha2-256", "sha2-384", "sha2-512"],
    &[
        "", "des-iv64", "des", "3des", "rc5", "idea", "cast", "blowfish", "3idea", "des-iv32", "rc4", "null",
        "aes",
    ],
    &["", "oui", "deflate", "lzs"],
];

/// Name of an attribute, and its values from 0.
pub(crate) type Attribute = (&'static str, &'static [&'static str]);

/// The payloads end here.
#[derive(Debug)]
pub(crate) struct Stop;

impl Printer<'_> {
    /// Prints payloads, each on a line. `next`: the kind of the first; `protocol`: what transforms are for.
    pub(crate) fn isakmp_payloads(
        &mut self,
        mut next: u8,
        mut rest: Bytes<'_>,
        protocol: u8,
        depth: usize,
    ) -> Result<(), Stop> {
        while next != 0 && depth <= DEEPEST {
            let len = rest.u16(2).map(usize::from);
            let Some(len) = len.ok().filter(|&len| rest.get(0, len).is_ok()) else {
                self.text(" [|");
                self.isakmp_name(next);
                self.text("]");
                return Err(Stop);
            };
            put!(self, "\n{}(", "    ".repeat(depth));
            let printed = match len {
                ..=HEADER => Err(Stop),
                _ => self.isakmp_payload(next, rest.first(len), protocol, depth),
            };
            self.text(")");
            printed?;
            next = rest.u8(0).map_err(|_| Stop)?;
            rest = rest.from(len);
        }
        Ok(())
    }

    pub(crate) fn isakmp_name(&mut self, kind: u8) {
        let at = usize::from(kind);
        match NAMES.get(at).or_else(|| NAMES2.get(at.wrapping_sub(33))) {
            Some(name) => self.text(name),
            None if kind < 33 => put!(self, "pay{kind}"),
            None => put!(self, "#{kind}"),
        }
    }

    /// Says that a payload ends too early.
    pub(crate) fn isakmp_cut(&mut self, kind: u8) -> Stop {
        self.text(" [|");
        self.isakmp_name(kind);
        self.text("]");
        Stop
    }

    fn isakmp_payload(
        &mut self,
        kind: u8,
        payload: Bytes<'_>,
        protocol: u8,
        depth: usize,
    ) -> Result<(), Stop> {
        if kind >= 33 {
            return self.ike2_payload(kind, payload, depth);
        }
        self.isakmp_name(kind);
        let body = payload.from(HEADER);
        match kind {
            1..=13 => self.text(":"),
            _ => return Ok(()),
        }
        match kind {
            1 => self.isakmp_association(body, depth),
            PROPOSAL => self.isakmp_proposal(body, depth),
            TRANSFORM => self.isakmp_transform(body, protocol),
            5 => self.isakmp_identity(body),
            6 | 7 if body.len < 2 => Err(self.isakmp_cut(kind)),
            6 | 7 => {
                put!(self, " len={} type=", body.len);
                self.isakmp_word(&CERTIFICATES, body.data[0].into());
                self.isakmp_everything(body.data);
                Ok(())
            }
            11 => self.isakmp_notice(body),
            12 => self.isakmp_deletion(body),
            _ => {
                self.text(match kind {
                    4 => " key",
                    10 => " n",
                    _ => "",
                });
                put!(self, " len={}", body.len);
                if kind == 10 && self.options.verbose == 2 {
                    self.text("  data=(");
                    self.isakmp_some(body.data);
                    self.text(")");
                }
                self.isakmp_everything(body.data);
                Ok(())
            }
        }
    }

    /// Prints a name, or the number.
    pub(crate) fn isakmp_word(&mut self, words: &[&str], number: usize) {
        match words.get(number).filter(|word| !word.is_empty()) {
            Some(word) => self.text(word),
            None => put!(self, "#{number}"),
        }
    }

    pub(crate) fn isakmp_hex(&mut self, data: &[u8]) {
        data.iter().for_each(|&byte| self.hex_byte(byte));
    }

    /// Prints data with `-vvv`.
    pub(crate) fn isakmp_everything(&mut self, data: &[u8]) {
        if self.options.verbose > 2 {
            self.text(" ");
            self.isakmp_hex(data);
        }
    }

    /// Prints the first bytes and the last ones.
    pub(crate) fn isakmp_some(&mut self, data: &[u8]) {
        let (first, last) = data.split_at(data.len().min(10));
        self.isakmp_hex(first);
        self.text("...");
        self.isakmp_hex(&last[last.len().saturating_sub(20)..]);
    }

    fn isakmp_association(&mut self, body: Bytes<'_>, depth: usize) -> Result<(), Stop> {
        let (Ok(doi), Ok(situation)) = (body.u32(0), body.u32(4)) else { return Err(self.isakmp_cut(1)) };
        if doi != IPSEC {
            put!(self, " doi={doi} situation={situation}");
            return Err(Stop);
        }
        self.text(" doi=ipsec situation=");
        let mut before = "";
        for (bit, name) in [(1, "identity"), (2, "secrecy"), (4, "integrity")] {
            if situation & bit != 0 {
                put!(self, "{before}{name}");
                before = "+";
            }
        }
        let Ok(identifier) = body.u32(8) else { return Err(self.isakmp_cut(1)) };
        let mut at = 8;
        if situation != 1 {
            put!(self, " ident={identifier}");
            at += 4;
        }
        self.isakmp_payloads(PROPOSAL, body.from(at), 0, depth + 1)
    }

    fn isakmp_proposal(&mut self, body: Bytes<'_>, depth: usize) -> Result<(), Stop> {
        let Ok(&[number, protocol, size, transforms]) =
            body.get(0, 4).map(|head| head.first_chunk().unwrap_or(&[0; 4]))
        else {
            return Err(self.isakmp_cut(PROPOSAL));
        };
        put!(self, " #{number} protoid=");
        self.isakmp_word(&PROTOCOLS, protocol.into());
        put!(self, " transform={transforms}");
        let size = usize::from(size);
        if size > 0 {
            self.text(" spi=");
            let Ok(index) = body.get(4, size) else { return Err(self.isakmp_cut(PROPOSAL)) };
            self.isakmp_hex(index);
        }
        self.isakmp_payloads(TRANSFORM, body.from(4 + size), protocol, depth + 1)
    }

    fn isakmp_transform(&mut self, body: Bytes<'_>, protocol: u8) -> Result<(), Stop> {
        let (Ok(number), Ok(id)) = (body.u8(0), body.u8(1)) else { return Err(self.isakmp_cut(TRANSFORM)) };
        if body.len < 4 {
            return Err(self.isakmp_cut(TRANSFORM));
        }
        put!(self, " #{number} id=");
        let attributes: &[Attribute] = match protocol {
            1..=4 => {
                self.isakmp_word(TRANSFORMS[usize::from(protocol)], id.into());
                if protocol == 1 { &ATTRIBUTES } else { &ATTRIBUTES_IPSEC }
            }
            _ => {
                put!(self, "{id}");
                &[]
            }
        };
        self.text(" ");
        self.isakmp_attributes(attributes, body.from(4));
        Ok(())
    }

    pub(crate) fn isakmp_attributes(&mut self, attributes: &[Attribute], mut rest: Bytes<'_>) {
        while rest.len > 0 {
            let (Ok(kind), Ok(value)) = (rest.u16(0), rest.u16(2)) else { return self.text("[|attr]") };
            let short = kind & 0x8000 != 0;
            let len = 4 + if short { 0 } else { usize::from(value) };
            let Ok(data) = rest.get(0, len) else { return self.text("[|attr]") };
            let kind = usize::from(kind & 0x7fff);
            let (name, words) = attributes.get(kind).unwrap_or(&("", &[]));
            match *name {
                "" => put!(self, "(type=#{kind} "),
                name => put!(self, "(type={name} "),
            }
            match words.get(usize::from(value)).filter(|word| short && !word.is_empty()) {
                Some(word) => put!(self, "value={word}"),
                None if short => put!(self, "value={value:04x}"),
                None => {
                    put!(self, "len={value} value=");
                    self.isakmp_hex(&data[4..]);
                }
            }
            self.text(")");
            rest = rest.from(len);
        }
    }

    fn isakmp_identity(&mut self, body: Bytes<'_>) -> Result<(), Stop> {
        let (Ok(kind), Ok(protocol), Ok(port)) = (body.u8(0), body.u8(1), body.u16(2)) else {
            return Err(self.isakmp_cut(5));
        };
        let data = body.from(4).data;
        self.text(" idtype=");
        self.isakmp_word(&IDENTITIES, kind.into());
        put!(self, " protoid={protocol} port={port} len={}", data.len());
        let least = match kind {
            1 => 4,
            4 | 7 => 8,
            5 => 16,
            6 => 20,
            8 => 32,
            _ => 0,
        };
        if data.len() < least {
            put!(self, " [bad: < {least}]");
            return Ok(());
        }
        let ip4 = |at: usize| {
            data[at..].first_chunk().copied().map_or(Ipv4Addr::UNSPECIFIED, <Ipv4Addr as From<[u8; 4]>>::from)
        };
        let ip6 = |at: usize| {
            data[at..]
                .first_chunk()
                .copied()
                .map_or(Ipv6Addr::UNSPECIFIED, <Ipv6Addr as From<[u8; 16]>>::from)
        };
        if least > 0 {
            self.text(" ");
        }
        match kind {
            1 => self.ip4_address(ip4(0)),
            4 | 7 => {
                self.ip4_address(ip4(0));
                put!(self, "{}{}", if kind == 4 { "/" } else { "-" }, ip4(4));
            }
            5 => self.ip6_address(ip6(0)),
            6 => {
                self.ip6_address(ip6(0));
                self.text("/0x");
                self.isakmp_hex(&data[16..data.len().min(32)]);
            }
            8 => {
                self.ip6_address(ip6(0));
                self.text("-");
                self.ip6_address(ip6(16));
            }
            2 | 3 => {
                self.text(" ");
                self.harmless(data);
            }
            9..=11 => self.isakmp_everything(data),
            _ => {}
        }
        Ok(())
    }

    fn isakmp_notice(&mut self, body: Bytes<'_>) -> Result<(), Stop> {
        let (Ok(doi), Ok(protocol), Ok(size), Ok(kind)) = (body.u32(0), body.u8(4), body.u8(5), body.u16(6))
        else {
            return Err(self.isakmp_cut(11));
        };
        if doi == IPSEC {
            self.text(" doi=ipsec proto=");
            self.isakmp_word(&PROTOCOLS, protocol.into());
        } else {
            put!(self, " doi={doi} proto={protocol}");
        }
        self.text(" type=");
        match kind {
            ..8192 => self.isakmp_word(&NOTICES, kind.into()),
            8192 => self.text("RESERVED"),
            8193..16384 => put!(self, "#{}", kind - 8192),
            16384 => self.text("CONNECTED"),
            RESPONDER_LIFETIME if doi == IPSEC => self.text("RESPONDER-LIFETIME"),
            REPLAY_STATUS if doi == IPSEC => self.text("REPLAY-STATUS"),
            24578 if doi == IPSEC => self.text("INITIAL-CONTACT"),
            _ => put!(self, "#{kind}"),
        }
        let size = usize::from(size);
        if size > 0 {
            self.text(" spi=");
            let Ok(index) = body.get(8, size) else { return Err(self.isakmp_cut(11)) };
            self.isakmp_hex(index);
        }
        let data = body.from(8 + size);
        match kind {
            _ if data.len == 0 => {}
            RESPONDER_LIFETIME if doi == IPSEC => {
                self.text(" attrs=(");
                self.isakmp_attributes(&ATTRIBUTES, data);
                self.text(")");
            }
            REPLAY_STATUS if doi == IPSEC => {
                let Ok(status) = data.u32(0) else { return Err(self.isakmp_cut(11)) };
                let word = if status != 0 { "en" } else { "dis" };
                put!(self, " status=(replay detection {word}abled)");
            }
            _ => {
                self.text(" data=(");
                self.isakmp_some(data.data);
                self.text(")");
            }
        }
        Ok(())
    }

    fn isakmp_deletion(&mut self, body: Bytes<'_>) -> Result<(), Stop> {
        let (Ok(doi), Ok(protocol), Ok(size), Ok(count)) = (body.u32(0), body.u8(4), body.u8(5), body.u16(6))
        else {
            return Err(self.isakmp_cut(12));
        };
        if doi == IPSEC {
            self.text(" doi=ipsec proto=");
            self.isakmp_word(&PROTOCOLS, protocol.into());
        } else {
            put!(self, " doi={doi} proto={protocol}");
        }
        put!(self, " spilen={size} nspi={count} spi=");
        let size = usize::from(size);
        for number in 0..if size > 0 { usize::from(count) } else { 0 } {
            let Ok(index) = body.get(8 + number * size, size) else { return Err(self.isakmp_cut(12)) };
            self.text(if number > 0 { "," } else { "" });
            self.isakmp_hex(index);
        }
        Ok(())
    }
}
