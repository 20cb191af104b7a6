//! EAPOL (IEEE 802.1X) and EAP (RFC 3748).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut, until_zero};
use crate::base::text::put;

const EAP: u8 = 0;
/// Length of the header of EAPOL, and of EAP.
const HEADER: usize = 4;
const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
const TLS: u8 = 13;
const TLS_FLAGS: [(u8, &str); 3] = [(0x80, "L bit"), (0x40, "More fragments bit"), (0x20, "Start bit")];

/// Returns the name of a way to authenticate.
fn method(kind: u8) -> &'static str {
    match kind {
        0 => "No proposed",
        1 => "Identity",
        2 => "Notification",
        3 => "Nak",
        4 => "MD5-challenge",
        5 => "OTP",
        6 => "GTC",
        TLS => "TLS",
        18 => "SIM",
        21 => "TTLS",
        23 => "AKA",
        43 => "FAST",
        254 => "Expanded types",
        255 => "Experimental",
        _ => "unknown",
    }
}

/// Returns the name of a message of SIM or AKA (RFC 4186, RFC 4187).
fn message(kind: u8) -> &'static str {
    match kind {
        1 => "Challenge",
        2 => "Auth reject",
        4 => "Sync failure",
        5 => "Identity",
        10 => "Start",
        11 => "Challenge",
        12 => "Notification",
        13 => "Reauth",
        14 => "Client error",
        _ => "unknown",
    }
}

impl Printer<'_> {
    pub(crate) fn eapol(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "eap";
        self.facts.protocol = Some("eapol");
        let (version, kind, len) = (bytes.u8(0)?, bytes.u8(1)?, bytes.u16(2)?);
        let name = match kind {
            EAP => "EAP packet",
            1 => "EAPOL start",
            2 => "EAPOL logoff",
            3 => "EAPOL key",
            4 => "Encapsulated ASF alert",
            _ => "unknown",
        };
        put!(self, "{name} ({kind}) v{version}, len {len}");
        if kind != EAP || self.options.verbose == 0 {
            return Ok(());
        }
        if len == 0 {
            return Err(Cut);
        }
        self.text(", ");
        self.eap(usize::from(len), bytes.from(HEADER))
    }

    /// `given`: the length of the message according to the header before it.
    pub(crate) fn eap(&mut self, given: usize, bytes: Bytes<'_>) -> Result<(), Cut> {
        let (code, id, len) = (bytes.u8(0)?, bytes.u8(1)?, usize::from(bytes.u16(2)?));
        if len != given {
            self.text("EAP fragment?");
            return Ok(());
        }
        let name = match code {
            REQUEST => "Request",
            RESPONSE => "Response",
            3 => "Success",
            4 => "Failure",
            _ => "unknown",
        };
        put!(self, "{name} ({code}), id {id}, len {len}");
        if len < HEADER {
            self.text(" (too short for EAP header)");
            return Ok(());
        }
        bytes.get(0, len)?;
        if !matches!(code, REQUEST | RESPONSE) {
            return Ok(());
        }
        if len <= HEADER {
            self.text(" (too short for EAP request/response)");
            return Ok(());
        }
        let message = bytes.first(len);
        let kind = message.u8(HEADER)?;
        put!(self, "\n\t\t Type {} ({kind})", method(kind));
        self.eap_method(kind, message.from(HEADER + 1))
    }

    fn eap_method(&mut self, kind: u8, data: Bytes<'_>) -> Result<(), Cut> {
        let family = if kind == 43 { "FAST" } else { "TLS/TTLS" };
        match kind {
            1 | 2 if data.len > 0 => {
                put!(self, ", {}: ", method(kind));
                self.harmless(until_zero(data.data));
            }
            2 => self.text(" (too short for EAP Notification request/response)"),
            3 if data.len == 0 => self.text(" (too short for EAP Legacy NAK request/response)"),
            // The ways that the sender would rather use.
            3 => {
                let mut before = " ";
                for at in 0..data.len {
                    let wanted = data.u8(at)?;
                    put!(self, "{before}{} ({wanted})", method(wanted));
                    before = ", ";
                }
            }
            TLS | 21 | 43 if data.len == 0 => put!(self, " (too short for EAP {family} request/response)"),
            TLS | 21 | 43 => {
                let flags = data.u8(0)?;
                if kind != TLS {
                    put!(self, " {}v{}", method(kind), flags & 7);
                }
                self.text(" flags [");
                self.flag_names(flags, &TLS_FLAGS);
                put!(self, "] 0x{flags:02x}");
                match data.u32(1) {
                    _ if flags & 0x80 == 0 => {}
                    Ok(len) => put!(self, ", len {len}"),
                    Err(Cut) => put!(self, " (too short for EAP {family} request/response with length)"),
                }
            }
            18 | 23 if data.len == 0 => self.text(" (too short for EAP SIM/AKA request/response)"),
            18 | 23 => {
                let kind = data.u8(0)?;
                put!(self, " subtype [{}] 0x{kind:02x}", message(kind));
            }
            _ => {}
        }
        Ok(())
    }
}
