//! SNMP (RFC 1157, RFC 3416, RFC 3412), in BER (X.690).

mod v3;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
const ADDRESS: u8 = 0x40;
const COUNTER64: u8 = 0x46;
const GET: u8 = 0xa0;
const NEXT: u8 = 0xa1;
const RESPONSE: u8 = 0xa2;
const BULK: u8 = 0xa5;
const TRAP: u8 = 0xa4;

const ERRORS: [&str; 19] = [
    "noError",
    "tooBig",
    "noSuchName",
    "badValue",
    "readOnly",
    "genErr",
    "noAccess",
    "wrongType",
    "wrongLength",
    "wrongEncoding",
    "wrongValue",
    "noCreation",
    "inconsistentValue",
    "resourceUnavailable",
    "commitFailed",
    "undoFailed",
    "authorizationError",
    "notWritable",
    "inconsistentName",
];

/// A value with its tag.
pub(crate) struct Item<'a> {
    pub(crate) tag: u8,
    pub(crate) value: Bytes<'a>,
}

/// Why a message cannot be read further.
pub(crate) enum Odd {
    Cut,
    /// The line already says what is wrong.
    Said,
}

impl From<Cut> for Odd {
    fn from(Cut: Cut) -> Self {
        Self::Cut
    }
}

/// Returns a signed number.
pub(crate) fn integer(bytes: Bytes<'_>) -> Result<i64, Odd> {
    let data = bytes.get(0, bytes.len)?;
    let negative = data.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    Ok(data.iter().fold(start, |number: i64, &byte| number.wrapping_shl(8) | i64::from(byte)))
}

fn unsigned(bytes: Bytes<'_>) -> Result<u64, Odd> {
    let data = bytes.get(0, bytes.len)?;
    Ok(data.iter().fold(0, |number: u64, &byte| number.wrapping_shl(8) | u64::from(byte)))
}

impl Printer<'_> {
    pub(crate) fn snmp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "snmp";
        self.facts.protocol = Some("snmp");
        self.text(" ");
        match self.snmp_message(bytes) {
            Err(Odd::Cut) => Err(Cut),
            Ok(()) | Err(Odd::Said) => Ok(()),
        }
    }

    /// Says what is wrong.
    pub(crate) fn odd<T>(&mut self, text: &str) -> Result<T, Odd> {
        put!(self, "[{text}]");
        Err(Odd::Said)
    }

    /// Returns the item at the start, and the rest.
    pub(crate) fn item<'b>(&mut self, bytes: Bytes<'b>) -> Result<(Item<'b>, Bytes<'b>), Odd> {
        if bytes.len == 0 {
            return self.odd("nothing to parse");
        }
        let tag = bytes.u8(0)?;
        if bytes.len < 2 {
            return self.odd("no asnlen");
        }
        let short = bytes.u8(1)?;
        let (mut len, mut at) = (usize::from(short), 2);
        if short & 0x80 != 0 {
            let count = usize::from(short & 0x7f);
            if count > 4 || count + 2 > bytes.len {
                return self.odd(&format!("asnlen? {}<{count}", bytes.len - 2));
            }
            len = bytes.get(2, count)?.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
            at += count;
        }
        if at + len > bytes.len {
            return self.odd(&format!("len{}<asnlen{len}", bytes.len - at));
        }
        bytes.get(at, len)?;
        let value = bytes.from(at).first(len);
        Ok((Item { tag, value }, bytes.from(at + len)))
    }

    /// Returns the value at the start if it has the tag `tag`, and the rest.
    pub(crate) fn expect<'b>(
        &mut self,
        bytes: Bytes<'b>,
        tag: u8,
        what: &str,
    ) -> Result<(Bytes<'b>, Bytes<'b>), Odd> {
        let (item, rest) = self.item(bytes)?;
        if item.tag == tag {
            return Ok((item.value, rest));
        }
        put!(self, "[{what}]");
        self.snmp_value(&item)?;
        Err(Odd::Said)
    }

    /// Prints the end of what `read` read if it is odd, too.
    pub(crate) fn braced(&mut self, result: Result<(), Odd>) -> Result<(), Odd> {
        if let Err(Odd::Cut) = result {
            return result;
        }
        if self.options.verbose > 0 {
            self.text("} ");
        }
        Ok(())
    }

    fn snmp_message(&mut self, bytes: Bytes<'_>) -> Result<(), Odd> {
        let (message, _) = self.expect(bytes, SEQUENCE, "!init SEQ")?;
        let (version, rest) = self.expect(message, INTEGER, "version!=INT")?;
        let version = integer(version)?;
        let name = match version {
            0 => "SNMPv1",
            1 => "SNMPv2c",
            3 => "SNMPv3",
            other => {
                put!(self, "SNMP [version = {other}]");
                return Ok(());
            }
        };
        if self.options.verbose > 0 {
            put!(self, "{{ {name} ");
        }
        let result = match version {
            3 => self.snmp3(rest),
            _ => self.snmp_community(version == 0, rest),
        };
        self.braced(result)
    }

    fn snmp_community(&mut self, first: bool, bytes: Bytes<'_>) -> Result<(), Odd> {
        let (community, rest) = self.expect(bytes, OCTETS, "comm!=STR")?;
        let community = community.get(0, community.len)?;
        // The usual community is not worth a word.
        if community != b"public" {
            self.text("C=\"");
            self.harmless(community);
            self.text("\" ");
        }
        self.snmp_pdu(Some(first), rest)
    }

    /// `first`: whether the message is of version 1 rather than 2; version 3 is not checked.
    pub(crate) fn snmp_pdu(&mut self, first: Option<bool>, bytes: Bytes<'_>) -> Result<(), Odd> {
        let (pdu, _) = self.item(bytes)?;
        const NAMES: [&str; 9] = [
            "GetRequest",
            "GetNextRequest",
            "GetResponse",
            "SetRequest",
            "Trap",
            "GetBulk",
            "Inform",
            "V2Trap",
            "Report",
        ];
        let name = pdu.tag.checked_sub(0xa0).and_then(|at| NAMES.get(usize::from(at)));
        let Some(name) = name else { return self.odd(&format!("PDU type?{:#04x}", pdu.tag)) };
        let verbose = self.options.verbose > 0;
        put!(self, "{}{name}({}) ", if verbose { "{ " } else { "" }, pdu.value.len);
        match first {
            Some(true) if pdu.tag > TRAP => return self.odd("v2 PDU in v1 message"),
            Some(false) if pdu.tag == TRAP => return self.odd("v1 PDU in v2 message"),
            _ => {}
        }
        let list = match pdu.tag {
            TRAP => self.snmp_trap(pdu.value)?,
            tag => self.snmp_request(tag, pdu.value)?,
        };
        self.snmp_variables(matches!(pdu.tag, GET | NEXT | BULK), list)?;
        if verbose {
            self.text(" } ");
        }
        Ok(())
    }

    fn snmp_request<'b>(&mut self, tag: u8, value: Bytes<'b>) -> Result<Bytes<'b>, Odd> {
        let (id, rest) = self.expect(value, INTEGER, "reqId!=INT")?;
        if self.options.verbose > 0 {
            put!(self, "R={} ", integer(id)?);
        }
        let (error, rest) = self.expect(rest, INTEGER, "error!=INT")?;
        let (index, rest) = self.expect(rest, INTEGER, "index!=INT")?;
        let (error, index) = (integer(error)?, integer(index)?);
        if tag == BULK {
            put!(self, " N={error} M={index}");
            return Ok(rest);
        }
        if error != 0 {
            let name = match usize::try_from(error).ok().and_then(|at| ERRORS.get(at)) {
                Some(name) => (*name).to_owned(),
                None => format!("err={error}"),
            };
            match tag {
                RESPONSE => put!(self, " {name}"),
                _ => put!(self, "[errorStatus({name})!=0]"),
            }
        }
        match (tag, error, index) {
            (RESPONSE, 1.., 0) => self.text("[errorIndex==0]"),
            (_, _, 0) => {}
            (RESPONSE, 0, _) => put!(self, "[errorIndex({index}) w/o errorStatus]"),
            (RESPONSE, ..) => put!(self, "@{index}"),
            _ => put!(self, "[errorIndex({index})!=0]"),
        }
        Ok(rest)
    }

    fn snmp_trap<'b>(&mut self, value: Bytes<'b>) -> Result<Bytes<'b>, Odd> {
        const KINDS: [&str; 7] = [
            "coldStart",
            "warmStart",
            "linkDown",
            "linkUp",
            "authenticationFailure",
            "egpNeighborLoss",
            "enterpriseSpecific",
        ];
        let (enterprise, rest) = self.expect(value, OBJECT, "enterprise!=OID")?;
        self.text(" ");
        self.object(enterprise)?;
        let (agent, rest) = self.expect(rest, ADDRESS, "agent-addr!=INETADDR")?;
        self.text(" ");
        self.ip4_address(agent.ip4(0)?);
        let (kind, rest) = self.expect(rest, INTEGER, "generic-trap!=INT")?;
        let kind = integer(kind)?;
        match usize::try_from(kind).ok().and_then(|at| KINDS.get(at)) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " GenericTrap({kind})"),
        }
        let (specific, rest) = self.expect(rest, INTEGER, "specific-trap!=INT")?;
        if kind == 6 {
            put!(self, " s={}", integer(specific)?);
        }
        let (time, rest) = self.item(rest)?;
        self.text(" ");
        put!(self, "{}", unsigned(time.value)?);
        Ok(rest)
    }

    /// `asked`: values are not there yet.
    fn snmp_variables(&mut self, asked: bool, list: Bytes<'_>) -> Result<(), Odd> {
        let (mut rest, _) = self.expect(list, SEQUENCE, "!SEQ of varbind")?;
        while rest.len > 0 {
            let (variable, next) = self.expect(rest, SEQUENCE, "!varbind")?;
            rest = next;
            self.text(" ");
            let (name, value) = self.expect(variable, OBJECT, "objName!=OID")?;
            self.object(name)?;
            let (value, _) = self.item(value)?;
            if asked && value.tag == NULL {
                continue;
            }
            self.text(if asked { "[objVal!=NULL]" } else { "=" });
            self.snmp_value(&value)?;
        }
        Ok(())
    }

    pub(crate) fn snmp_value(&mut self, item: &Item<'_>) -> Result<(), Odd> {
        let value = item.value;
        match item.tag {
            INTEGER => put!(self, "{}", integer(value)?),
            OCTETS => {
                let data = value.get(0, value.len)?;
                let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0);
                if data.iter().all(printable) {
                    self.text("\"");
                    self.harmless(data);
                    self.text("\"");
                } else {
                    for (at, byte) in data.iter().enumerate() {
                        put!(self, "{}{byte:02x}", if at == 0 { "" } else { "_" });
                    }
                }
            }
            NULL => {}
            OBJECT => self.object(value)?,
            ADDRESS => self.ip4_address(value.ip4(0)?),
            0x41..=0x43 | COUNTER64 | 0x47 => put!(self, "{}", unsigned(value)?),
            0x80 => self.text("[noSuchObject]"),
            0x81 => self.text("[noSuchInstance]"),
            0x82 => self.text("[endOfMibView]"),
            tag => put!(self, "[{tag:#04x}]"),
        }
        Ok(())
    }

    /// Prints an object identifier, each number after a dot.
    fn object(&mut self, bytes: Bytes<'_>) -> Result<(), Odd> {
        let mut number = 0_u32;
        let mut first = true;
        for &byte in bytes.get(0, bytes.len)? {
            number = number.wrapping_shl(7) | u32::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                continue;
            }
            if first {
                let area = (number / 40).min(2);
                put!(self, ".{area}.{}", number - area * 40);
                first = false;
            } else {
                put!(self, ".{number}");
            }
            number = 0;
        }
        Ok(())
    }
}
