//! SNMP (RFC 1157, RFC 3416, RFC 3412), in BER (X.690).

use crate::Printer;
use crate::bytes::{Bytes, Cut};
use crate::text::put;

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const NULL: u8 = 0x05;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const ADDRESS: u8 = 0x40;
const COUNTER64: u8 = 0x46;
const BULK: u8 = 0xa5;
const TRAP: u8 = 0xa4;

/// A value with its tag.
struct Item<'a> {
    tag: u8,
    value: Bytes<'a>,
}

/// Why a message cannot be read further.
enum Odd {
    Cut,
    /// tcpdump's words for it.
    Text(String),
}

impl From<Cut> for Odd {
    fn from(Cut: Cut) -> Self {
        Self::Cut
    }
}

/// Returns the item at the start, and the rest.
fn item<'a>(bytes: Bytes<'a>) -> Result<(Item<'a>, Bytes<'a>), Odd> {
    if bytes.len == 0 {
        return Err(Odd::Text("[nothing to parse]".to_owned()));
    }
    let tag = bytes.u8(0)?;
    if bytes.len < 2 {
        return Err(Odd::Text("[no asnlen]".to_owned()));
    }
    let short = bytes.u8(1)?;
    let (mut len, mut at) = (usize::from(short), 2);
    if short & 0x80 != 0 {
        let count = usize::from(short & 0x7f);
        if count > 4 || count + 2 > bytes.len {
            return Err(Odd::Text(format!("[asnlen? {}<{count}]", bytes.len - 2)));
        }
        len = bytes.get(2, count)?.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
        at += count;
    }
    if at + len > bytes.len {
        return Err(Odd::Text(format!("[len{}<asnlen{len}]", bytes.len - at)));
    }
    let value = bytes.from(at).first(len);
    Ok((Item { tag, value }, bytes.from(at + len)))
}

/// Returns the value at the start if it has the tag `tag`, and the rest.
fn expect<'a>(bytes: Bytes<'a>, tag: u8, what: &str) -> Result<(Bytes<'a>, Bytes<'a>), Odd> {
    let (item, rest) = item(bytes)?;
    match item.tag == tag {
        true => Ok((item.value, rest)),
        false => Err(Odd::Text(format!("[{what}!={:#04x}]", item.tag))),
    }
}

/// Returns a signed number.
fn integer(bytes: Bytes<'_>) -> Result<i64, Odd> {
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
            Ok(()) => Ok(()),
            Err(Odd::Cut) => Err(Cut),
            Err(Odd::Text(text)) => {
                self.text(&text);
                Ok(())
            }
        }
    }

    fn snmp_message(&mut self, bytes: Bytes<'_>) -> Result<(), Odd> {
        let (message, _) = expect(bytes, SEQUENCE, "!init SEQ")?;
        let (version, rest) = expect(message, INTEGER, "version!=INT")?;
        let verbose = self.options.verbose > 0;
        let name = match integer(version)? {
            0 => "SNMPv1",
            1 => "SNMPv2c",
            3 => return Err(Odd::Text("SNMPv3".to_owned())),
            other => return Err(Odd::Text(format!("SNMP [version = {other}]"))),
        };
        if verbose {
            put!(self, "{{ {name} ");
        }
        let (community, rest) = expect(rest, OCTETS, "comm!=STR")?;
        let community = community.get(0, community.len)?;
        // The usual community is not worth a word.
        if community != b"public" {
            self.text("C=\"");
            self.harmless(community);
            self.text("\" ");
        }
        let (pdu, _) = item(rest)?;
        self.snmp_pdu(&pdu)?;
        if verbose {
            self.text(" } ");
        }
        Ok(())
    }

    fn snmp_pdu(&mut self, pdu: &Item<'_>) -> Result<(), Odd> {
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
        let name = name.ok_or_else(|| Odd::Text(format!("[PDU type?{:#04x}]", pdu.tag)))?;
        let verbose = self.options.verbose > 0;
        put!(self, "{}{name}({}) ", if verbose { "{ " } else { "" }, pdu.value.len);
        let list = match pdu.tag {
            TRAP => self.snmp_trap(pdu.value)?,
            tag => self.snmp_request(tag, pdu.value)?,
        };
        self.snmp_variables(list)?;
        if verbose {
            self.text(" }");
        }
        Ok(())
    }

    fn snmp_request<'b>(&mut self, tag: u8, value: Bytes<'b>) -> Result<Bytes<'b>, Odd> {
        let (id, rest) = expect(value, INTEGER, "reqId!=INT")?;
        if self.options.verbose > 0 {
            put!(self, "R={} ", integer(id)?);
        }
        let (error, rest) = expect(rest, INTEGER, "error!=INT")?;
        let (index, rest) = expect(rest, INTEGER, "index!=INT")?;
        let (error, index) = (integer(error)?, integer(index)?);
        if tag == BULK {
            if error != 0 || index != 0 {
                put!(self, " N={error} M={index}");
            }
            return Ok(rest);
        }
        if error != 0 {
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
            match usize::try_from(error).ok().and_then(|at| ERRORS.get(at)) {
                Some(name) => put!(self, " {name}"),
                None => put!(self, " ErrorStatus({error})"),
            }
            put!(self, "@{index}");
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
        let (enterprise, rest) = expect(value, OBJECT, "enterprise!=OID")?;
        self.text(" ");
        self.object(enterprise)?;
        let (agent, rest) = expect(rest, ADDRESS, "agent-addr!=INETADDR")?;
        self.text(" ");
        self.ip4_address(agent.ip4(0)?);
        let (kind, rest) = expect(rest, INTEGER, "generic-trap!=INT")?;
        let kind = integer(kind)?;
        match usize::try_from(kind).ok().and_then(|at| KINDS.get(at)) {
            Some(name) => put!(self, " {name}"),
            None => put!(self, " GenericTrap({kind})"),
        }
        let (specific, rest) = expect(rest, INTEGER, "specific-trap!=INT")?;
        if kind == 6 {
            put!(self, " s={}", integer(specific)?);
        }
        let (time, rest) = item(rest)?;
        self.text(" ");
        put!(self, "{}", unsigned(time.value)?);
        Ok(rest)
    }

    fn snmp_variables(&mut self, list: Bytes<'_>) -> Result<(), Odd> {
        let (mut rest, _) = expect(list, SEQUENCE, "!SEQ of varbind")?;
        while rest.len > 0 {
            let (variable, next) = expect(rest, SEQUENCE, "!varbind")?;
            rest = next;
            let (name, value) = expect(variable, OBJECT, "objName!=OID")?;
            self.text(" ");
            self.object(name)?;
            let (value, _) = item(value)?;
            if value.tag != NULL {
                self.text("=");
                self.snmp_value(&value)?;
            }
        }
        Ok(())
    }

    fn snmp_value(&mut self, item: &Item<'_>) -> Result<(), Odd> {
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
