//! SNMP version 3 (RFC 3412) with the user-based security model (RFC 3414).

use crate::Printer;
use crate::application::snmp::{INTEGER, OCTETS, Odd, SEQUENCE, integer};
use crate::base::bytes::Bytes;
use crate::base::text::put;

const USER_BASED: i64 = 3;
/// Flags of a message: authenticated, encrypted, to be answered.
const FLAGS: [(u8, &str); 3] = [(1, "a"), (2, "p"), (4, "r")];

impl Printer<'_> {
    pub(crate) fn snmp3(&mut self, bytes: Bytes<'_>) -> Result<(), Odd> {
        let verbose = self.options.verbose > 0;
        let (header, rest) = self.expect(bytes, SEQUENCE, "!message SEQ")?;
        let (_, fields) = self.expect(header, INTEGER, "msgID!=INT")?;
        let (_, fields) = self.expect(fields, INTEGER, "msgMaxSize!=INT")?;
        if verbose {
            self.text("{ ");
        }
        let (flags, fields) = self.expect(fields, OCTETS, "msgFlags!=INT")?;
        if flags.len != 1 {
            return self.odd(&format!("msgFlags size {}", flags.len));
        }
        let flags = flags.u8(0)?;
        if flags > 7 {
            return self.odd(&format!("msgFlags=0x{flags:02X}"));
        }
        self.text("F=");
        for (bit, letter) in FLAGS {
            if flags & bit != 0 {
                self.text(letter);
            }
        }
        self.text(" ");
        let (model, _) = self.expect(fields, INTEGER, "msgSecurityModel!=INT")?;
        self.braced(Ok(()))?;
        let model = integer(model)?;
        if model != USER_BASED {
            return self.odd(&format!("security model {model}"));
        }
        let (security, rest) = self.expect(rest, OCTETS, "msgSecurityParameters!=STR")?;
        if verbose {
            self.text("{ USM ");
        }
        let result = self.snmp_user(security);
        self.braced(result)?;
        if verbose {
            self.text("{ ScopedPDU ");
        }
        let result = self.snmp_scoped(rest);
        self.braced(result)
    }

    fn snmp_user(&mut self, bytes: Bytes<'_>) -> Result<(), Odd> {
        let (fields, _) = self.expect(bytes, SEQUENCE, "!usm")?;
        let (_, fields) = self.expect(fields, OCTETS, "msgAuthoritativeEngineID!=STR")?;
        let (boots, fields) = self.expect(fields, INTEGER, "msgAuthoritativeEngineBoots!=INT")?;
        let (time, fields) = self.expect(fields, INTEGER, "msgAuthoritativeEngineTime!=INT")?;
        if self.options.verbose > 0 {
            put!(self, "B={} T={} ", integer(boots)?, integer(time)?);
        }
        let (user, _) = self.expect(fields, OCTETS, "msgUserName!=STR")?;
        self.text("U=\"");
        self.harmless(user.get(0, user.len)?);
        self.text("\" ");
        Ok(())
    }

    fn snmp_scoped(&mut self, bytes: Bytes<'_>) -> Result<(), Odd> {
        // An encrypted one is a string.
        let (fields, _) = self.expect(bytes, SEQUENCE, "!scoped PDU")?;
        let (engine, fields) = self.expect(fields, OCTETS, "contextEngineID!=STR")?;
        self.text("E=");
        for byte in engine.get(0, engine.len)? {
            put!(self, "_{byte:02x}");
        }
        self.text(" ");
        let (context, rest) = self.expect(fields, OCTETS, "contextName!=STR")?;
        self.text("C=\"");
        self.harmless(context.get(0, context.len)?);
        self.text("\" ");
        self.snmp_pdu(None, rest)
    }
}
