//! L2TP version 2 (RFC 2661).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const CONTROL: u16 = 0x8000;
const LENGTH: u16 = 0x4000;
const SEQUENCE: u16 = 0x0800;
const OFFSET: u16 = 0x0200;
const FLAGS: [(u16, &str); 5] =
    [(CONTROL, "T"), (LENGTH, "L"), (SEQUENCE, "S"), (OFFSET, "O"), (0x0100, "P")];
/// Flags of an attribute, and the bits of its length.
const MANDATORY: u16 = 0x8000;
const HIDDEN: u16 = 0x4000;
const ATTRIBUTE_LENGTH: u16 = 0x03ff;
/// Length of an attribute without its value.
const ATTRIBUTE: usize = 6;

const MESSAGES: [Option<&str>; 17] = [
    None,
    Some("SCCRQ"),
    Some("SCCRP"),
    Some("SCCCN"),
    Some("StopCCN"),
    None,
    Some("HELLO"),
    Some("OCRQ"),
    Some("OCRP"),
    Some("OCCN"),
    Some("ICRQ"),
    Some("ICRP"),
    Some("ICCN"),
    None,
    Some("CDN"),
    Some("WEN"),
    Some("SLI"),
];
/// Ways to authenticate by proxy.
const PROXIES: [&str; 6] = ["Reserved", "Textual", "CHAP", "PAP", "No Auth", "MS-CHAPv1"];
const DIRECTIONS: [&str; 3] = ["global error", "at peer", "at local"];
const ERRORS: [&str; 6] = ["CRCErr", "FrameErr", "HardOver", "BufOver", "Timeout", "AlignErr"];

/// How a value is printed.
#[derive(Clone, Copy)]
enum Value {
    Message,
    Result,
    Version,
    /// Two bits, the second one first.
    Capabilities(&'static str, &'static str),
    Hex,
    /// Eight bytes.
    Hex64,
    Number16,
    Number32,
    Text,
    Cause,
    Obsolete,
    Proxy,
    /// One byte after a reserved one.
    Identifier,
    Errors,
    Masks,
    Disconnected,
    None,
}

/// Names and values of attributes, from number 0.
const ATTRIBUTES: [Option<(&str, Value)>; 47] = {
    use Value::{
        Capabilities, Cause, Disconnected, Errors, Hex, Hex64, Identifier, Masks, Message, Number16,
        Number32, Obsolete, Proxy, Result, Text, Version,
    };
    [
        Some(("MSGTYPE", Message)),
        Some(("RESULT_CODE", Result)),
        Some(("PROTO_VER", Version)),
        Some(("FRAMING_CAP", Capabilities("A", "S"))),
        Some(("BEARER_CAP", Capabilities("A", "D"))),
        Some(("TIE_BREAKER", Hex64)),
        Some(("FIRM_VER", Number16)),
        Some(("HOST_NAME", Text)),
        Some(("VENDOR_NAME", Text)),
        Some(("ASSND_TUN_ID", Number16)),
        Some(("RECV_WIN_SIZE", Number16)),
        Some(("CHALLENGE", Hex)),
        Some(("Q931_CC", Cause)),
        Some(("CHALLENGE_RESP", Hex)),
        Some(("ASSND_SESS_ID", Number16)),
        Some(("CALL_SER_NUM", Number32)),
        Some(("MINIMUM_BPS", Number32)),
        Some(("MAXIMUM_BPS", Number32)),
        Some(("BEARER_TYPE", Capabilities("A", "D"))),
        Some(("FRAMING_TYPE", Capabilities("A", "S"))),
        Some(("PACKET_PROC_DELAY", Obsolete)),
        Some(("CALLED_NUMBER", Text)),
        Some(("CALLING_NUMBER", Text)),
        Some(("SUB_ADDRESS", Text)),
        Some(("TX_CONN_SPEED", Number32)),
        Some(("PHY_CHANNEL_ID", Number32)),
        Some(("INI_RECV_LCP", Hex)),
        Some(("LAST_SENT_LCP", Hex)),
        Some(("LAST_RECV_LCP", Hex)),
        Some(("PROXY_AUTH_TYPE", Proxy)),
        Some(("PROXY_AUTH_NAME", Text)),
        Some(("PROXY_AUTH_CHAL", Hex)),
        Some(("PROXY_AUTH_ID", Identifier)),
        Some(("PROXY_AUTH_RESP", Hex)),
        Some(("CALL_ERRORS", Errors)),
        Some(("ACCM", Masks)),
        Some(("RANDOM_VECTOR", Hex)),
        Some(("PRIVATE_GRP_ID", Text)),
        Some(("RX_CONN_SPEED", Number32)),
        Some(("SEQ_REQUIRED", Value::None)),
        None,
        None,
        None,
        None,
        None,
        None,
        Some(("PPP_DISCON_CC", Disconnected)),
    ]
};

impl Printer<'_> {
    pub(crate) fn l2tp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "l2tp";
        self.facts.protocol = Some("l2tp");
        let flags = bytes.u16(0)?;
        match flags & 15 {
            1 => {
                self.text(" l2f:");
                return Ok(());
            }
            2 => self.text(" l2tp:"),
            _ => {
                self.text(" Unknown Version, neither L2F(1) nor L2TP(2)");
                return Ok(());
            }
        }
        self.text("[");
        FLAGS.iter().filter(|(bit, _)| flags & bit != 0).for_each(|(_, letter)| self.text(letter));
        self.text("]");
        let mut at = 2;
        let mut length = None;
        if flags & LENGTH != 0 {
            length = Some(usize::from(bytes.u16(at)?));
            at += 2;
        }
        put!(self, "({}/", bytes.u16(at)?);
        put!(self, "{})", bytes.u16(at + 2)?);
        at += 4;
        if flags & SEQUENCE != 0 {
            put!(self, "Ns={},", bytes.u16(at)?);
            put!(self, "Nr={}", bytes.u16(at + 2)?);
            at += 4;
        }
        if flags & OFFSET != 0 {
            at += 2 + usize::from(bytes.u16(at)?);
            bytes.get(0, at)?;
        }
        match length {
            Some(length) if length < at => {
                put!(self, " Length {length} smaller than header length");
                return Ok(());
            }
            Some(length) if length > bytes.len => {
                put!(self, " Length {length} larger than packet");
                return Ok(());
            }
            None if flags & CONTROL != 0 => {
                self.text(" No length");
                return Ok(());
            }
            _ => {}
        }
        if flags & CONTROL == 0 {
            self.text(" {");
            self.nested(|printer| printer.ppp(bytes.from(at)))?;
            self.text("}");
            return Ok(());
        }
        let mut rest = bytes.first(length.unwrap_or(bytes.len)).from(at);
        if rest.len == 0 {
            self.text(" ZLB");
        }
        while rest.len > 0 {
            self.text(" ");
            let flags = rest.u16(0)?;
            let len = usize::from(flags & ATTRIBUTE_LENGTH);
            if len < ATTRIBUTE || len > rest.len {
                return Err(Cut);
            }
            self.l2tp_attribute(flags, rest.first(len))?;
            rest = rest.from(len);
        }
        Ok(())
    }

    fn l2tp_attribute(&mut self, flags: u16, attribute: Bytes<'_>) -> Result<(), Cut> {
        attribute.get(0, attribute.len)?;
        self.text(if flags & MANDATORY != 0 { "*" } else { "" });
        self.text(if flags & HIDDEN != 0 { "?" } else { "" });
        let (vendor, kind) = (attribute.u16(2)?, attribute.u16(4)?);
        let value = attribute.from(ATTRIBUTE);
        let known = ATTRIBUTES.get(usize::from(kind)).copied().flatten();
        let how = match known {
            _ if vendor != 0 => {
                put!(self, "VENDOR{vendor:04x}:ATTR{kind:04x}");
                Value::Hex
            }
            Some((name, how)) => {
                self.text(name);
                how
            }
            None => {
                put!(self, "AVP-#{kind}");
                Value::None
            }
        };
        self.text("(");
        if vendor == 0 && flags & HIDDEN != 0 {
            self.text("???");
        } else if self.l2tp_value(how, value).is_err() {
            self.text("AVP too short");
        }
        self.text(")");
        Ok(())
    }

    fn l2tp_value(&mut self, how: Value, value: Bytes<'_>) -> Result<(), Cut> {
        match how {
            Value::Message => {
                let kind = value.u16(0)?;
                match MESSAGES.get(usize::from(kind)).copied().flatten() {
                    Some(name) => self.text(name),
                    None => put!(self, "MSGTYPE-#{kind}"),
                }
            }
            Value::Result => {
                self.number(value.u16(0)?);
                if value.len > 2 {
                    put!(self, "/{}", value.u16(2)?);
                    self.l2tp_advice(value.from(4));
                }
            }
            Value::Version => put!(self, "{}.{}", value.u8(0)?, value.u8(1)?),
            Value::Capabilities(second, first) => {
                let bits = value.u32(0)?;
                self.text(if bits & 2 != 0 { second } else { "" });
                self.text(if bits & 1 != 0 { first } else { "" });
            }
            Value::Hex => value.data.iter().for_each(|&byte| self.hex_byte(byte)),
            Value::Hex64 => value.get(0, 8)?.iter().for_each(|&byte| self.hex_byte(byte)),
            Value::Number16 => self.number(value.u16(0)?),
            Value::Number32 => self.number(value.u32(0)?),
            Value::Text => self.harmless(value.data),
            Value::Cause => {
                put!(self, "{}, {:02x}", value.u16(0)?, value.u8(2)?);
                self.l2tp_advice(value.from(3));
            }
            Value::Obsolete => self.text("obsolete"),
            Value::Proxy => {
                let kind = value.u16(0)?;
                match PROXIES.get(usize::from(kind)) {
                    Some(name) => self.text(name),
                    None => put!(self, "AuthType-#{kind}"),
                }
            }
            Value::Identifier => self.number(value.u8(1)?),
            Value::Errors => {
                for (number, name) in ERRORS.into_iter().enumerate() {
                    put!(self, "{name}={} ", value.u32(2 + number * 4)?);
                }
            }
            Value::Masks => {
                put!(self, "send={:08x} ", value.u32(2)?);
                put!(self, "recv={:08x} ", value.u32(6)?);
            }
            Value::Disconnected => {
                put!(self, "{:04x}, {:04x} ", value.u16(0)?, value.u16(2)?);
                let direction = value.u8(4)?;
                match DIRECTIONS.get(usize::from(direction)) {
                    Some(name) => self.text(name),
                    None => put!(self, "DirectionType-#{direction}"),
                }
                self.l2tp_advice(value.from(5));
            }
            Value::None => {}
        }
        Ok(())
    }

    /// Prints text for people, if there is any.
    fn l2tp_advice(&mut self, text: Bytes<'_>) {
        if text.len > 0 {
            self.text(" ");
            self.harmless(text.data);
        }
    }
}
