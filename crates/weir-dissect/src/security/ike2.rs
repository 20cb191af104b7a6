//! Payloads of IKE version 2 (RFC 7296), with `-v`.

use crate::Printer;
use crate::base::bytes::Bytes;
use crate::base::text::put;
use crate::security::isakmp::{Attribute, GROUPS, Stop};

const HEADER: usize = 4;
const CRITICAL: u8 = 0x80;
const ASSOCIATION: u8 = 33;
const COOKIE: u16 = 16390;
const PROTOCOLS: [&str; 5] = ["", "isakmp", "ipsec-ah", "ipsec-esp", "ipcomp"];
/// Kinds of transforms, and their names; from 0.
const TRANSFORMS: [(&str, &[&str]); 6] = [
    ("", &[]),
    (
        "encr",
        &[
            "",
            "1des-iv64",
            "1des",
            "3des",
            "rc5",
            "idea",
            "cast",
            "blowfish",
            "3idea",
            "1des-iv32",
            "rc4",
            "null",
            "aes",
        ],
    ),
    ("prf", &["", "hmac-md5", "hmac-sha", "hmac-tiger", "aes128_xcbc"]),
    ("integ", &["", "hmac-md5", "hmac-sha", "dec-mac", "kpdk-md5", "aes-xcbc"]),
    ("dh", &GROUPS),
    ("esn", &["no-esn", "esn"]),
];
const KEY_LENGTH: usize = 14;
const METHODS: [&str; 4] = ["invalid", "rsasig", "shared-secret", "dsssig"];

impl Printer<'_> {
    /// Prints a payload whose number is one of version 2.
    pub(crate) fn ike2_payload(&mut self, kind: u8, payload: Bytes<'_>, depth: usize) -> Result<(), Stop> {
        let body = payload.from(HEADER);
        if matches!(kind, 34..=36 | 39 | 41) && body.len < 4 {
            return Err(self.isakmp_cut(kind));
        }
        match kind {
            ASSOCIATION => self.text("sa"),
            40 => self.text("nonce"),
            41 => self.text("n"),
            _ => self.isakmp_name(kind),
        }
        if kind > 48 {
            return Ok(());
        }
        if payload.u8(1).is_ok_and(|flags| flags & CRITICAL != 0) {
            self.text("[C]");
        }
        self.text(":");
        match kind {
            41 => return self.ike2_notice(body),
            // The group is not counted.
            34 => put!(self, " len={}", body.len.saturating_sub(4)),
            _ => put!(self, " len={}", body.len),
        }
        match kind {
            ASSOCIATION => self.ike2_proposals(body, depth + 1)?,
            34 => {
                let Ok(group) = body.u16(0) else { return Err(self.isakmp_cut(kind)) };
                self.text(" group=");
                self.isakmp_word(&GROUPS, group.into());
                self.isakmp_everything(body.from(4).data);
            }
            35 | 36 => self.ike2_identity(body),
            39 => {
                self.text(" method=");
                self.isakmp_word(&METHODS, body.data[0].into());
                self.ike2_secret("data", "authdata", body.from(4).data);
            }
            40 => self.ike2_secret("data", "nonce", body.data),
            43 => {
                self.text(" vid=");
                self.ike2_text(body.data);
                self.isakmp_everything(body.data);
            }
            // What it contains is encrypted.
            46 => {
                self.isakmp_everything(body.data);
                return Err(Stop);
            }
            _ => self.isakmp_everything(body.data),
        }
        Ok(())
    }

    /// Prints a part of `data`, with `-vv` all of it.
    fn ike2_secret(&mut self, some: &str, all: &str, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        if self.options.verbose > 1 {
            put!(self, " {all}=(");
            self.isakmp_hex(data);
            self.text(") ");
        } else {
            put!(self, " {some}=(");
            self.isakmp_some(data);
            self.text(")");
        }
    }

    fn ike2_text(&mut self, text: &[u8]) {
        for &byte in text {
            self.line.push(if matches!(byte, b' '..=b'~') { byte } else { b'.' });
        }
    }

    fn ike2_identity(&mut self, body: Bytes<'_>) {
        self.isakmp_everything(body.data);
        let (kind, data) = (body.data[0], body.from(4).data);
        let name = match kind {
            1 => "ipv4",
            2 => "fqdn",
            3 => "rfc822",
            5 => "ipv6",
            9 => "dn",
            10 => "gn",
            11 => "keyid",
            _ => return,
        };
        put!(self, " {name}:");
        match kind {
            2 | 3 => self.ike2_text(data),
            _ => self.isakmp_hex(data),
        }
    }

    fn ike2_notice(&mut self, body: Bytes<'_>) -> Result<(), Stop> {
        let (Ok(protocol), Ok(size), Ok(kind)) = (body.u8(0), body.u8(1), body.u16(2)) else {
            return Err(self.isakmp_cut(41));
        };
        self.text(" prot_id=");
        self.isakmp_word(&PROTOCOLS, protocol.into());
        put!(self, " type={kind}({})", notice(kind));
        let size = usize::from(size);
        if size > 0 {
            self.text(" spi=");
            let Ok(index) = body.get(4, size) else { return Err(self.isakmp_cut(41)) };
            self.isakmp_hex(index);
        }
        let data = body.from(4 + size).data;
        if kind == COOKIE && !data.is_empty() {
            self.text(" data=(");
            self.isakmp_hex(data);
            self.text(")");
        }
        Ok(())
    }

    fn ike2_proposals(&mut self, mut rest: Bytes<'_>, depth: usize) -> Result<(), Stop> {
        let mut next = 2;
        while next != 0 {
            let payload = self.ike2_part(rest, "p", depth)?;
            let body = payload.from(HEADER);
            let (Ok(number), Ok(protocol), Ok(size), Ok(count)) =
                (body.u8(0), body.u8(1), body.u8(2), body.u8(3))
            else {
                return Err(self.ike2_end(2));
            };
            put!(self, " #{number} protoid=");
            self.isakmp_word(&PROTOCOLS, protocol.into());
            put!(self, " transform={count} len={}", payload.len);
            let size = usize::from(size);
            if size > 0 {
                self.text(" spi=");
                let Ok(index) = body.get(4, size) else { return Err(self.ike2_end(2)) };
                self.isakmp_hex(index);
            }
            let transforms = self.ike2_transforms(body.from(4 + size), depth + 1);
            self.text(")");
            transforms?;
            next = payload.data[0];
            rest = rest.from(payload.len);
        }
        Ok(())
    }

    fn ike2_transforms(&mut self, mut rest: Bytes<'_>, depth: usize) -> Result<(), Stop> {
        let mut next = 3;
        let mut number = 0;
        while next != 0 {
            number += 1;
            let payload = self.ike2_part(rest, "t", depth)?;
            let body = payload.from(HEADER);
            let (Ok(kind), Ok(id)) = (body.u8(0), body.u16(2)) else { return Err(self.ike2_end(3)) };
            let (name, names) = TRANSFORMS.get(usize::from(kind)).unwrap_or(&("", &[]));
            put!(self, " #{number} type=");
            match *name {
                "" => put!(self, "#{kind}"),
                name => self.text(name),
            }
            self.text(" id=");
            self.isakmp_word(names, id.into());
            self.text(" ");
            let mut attributes: [Attribute; KEY_LENGTH + 1] = [("", &[]); KEY_LENGTH + 1];
            attributes[KEY_LENGTH].0 = "keylen";
            self.isakmp_attributes(&attributes, body.from(4));
            self.text(")");
            next = payload.data[0];
            rest = rest.from(payload.len);
        }
        Ok(())
    }

    /// Begins the line of a proposal or transform, and returns it.
    fn ike2_part<'b>(&mut self, rest: Bytes<'b>, name: &str, depth: usize) -> Result<Bytes<'b>, Stop> {
        let len = rest.u16(2).map(usize::from);
        let Some(len) = len.ok().filter(|&len| rest.get(0, len).is_ok()) else {
            put!(self, " [|{name}]");
            return Err(Stop);
        };
        put!(self, "\n{}(", "    ".repeat(depth));
        if len <= HEADER {
            self.text(")");
            return Err(Stop);
        }
        put!(self, "{name}:");
        Ok(rest.first(len))
    }

    fn ike2_end(&mut self, kind: u8) -> Stop {
        let stop = self.isakmp_cut(kind);
        self.text(")");
        stop
    }
}

fn notice(kind: u16) -> &'static str {
    match kind {
        1 => "unsupported_critical_payload",
        4 => "invalid_ike_spi",
        5 => "invalid_major_version",
        7 => "invalid_syntax",
        9 => "invalid_message_id",
        11 => "invalid_spi",
        14 => "no_protocol_chosen",
        17 => "invalid_ke_payload",
        24 => "authentication_failed",
        34 => "single_pair_required",
        35 => "no_additional_sas",
        36 => "internal_address_failure",
        37 => "failed:cp_required",
        39 => "invalid_selectors",
        16384 => "initial_contact",
        16385 => "set_window_size",
        16386 => "additional_ts_possible",
        16387 => "ipcomp_supported",
        16388 => "nat_detection_source_ip",
        16389 => "nat_detection_destination_ip",
        COOKIE => "cookie",
        16391 => "use_transport_mode",
        16392 => "http_cert_lookup_supported",
        16393 => "rekey_sa",
        16394 => "tfc_padding_not_supported",
        16395 => "non_first_fragment_also",
        ..8192 => "error",
        8192..16384 => "private-error",
        16396..40960 => "status",
        40960.. => "private-status",
    }
}
