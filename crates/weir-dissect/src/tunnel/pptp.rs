//! PPTP's control connection (RFC 2637).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header of a message.
const HEADER: usize = 12;
const COOKIE: u32 = 0x1a2b_3c4d;
const CONTROL: u16 = 1;
const MANAGEMENT: u16 = 2;
/// Bytes of a name or number.
const TEXT: usize = 64;
const STATISTICS: usize = 128;

const ERRORS: &[&str] =
    &["None", "Not-Connected", "Bad-Format", "Bad-Value", "No-Resource", "Bad-Call-ID", "PAC-Error"];
const REASONS: &[&str] = &["?", "None", "Stop-Protocol", "Stop-Local-Shutdown"];
const STARTED: &[&str] = &[
    "?",
    "Successful channel establishment",
    "General error",
    "Command channel already exists",
    "Requester is not authorized to establish a command channel",
    "The protocol version of the requester is not supported",
];
const DONE: &[&str] = &["?", "OK", "General Error"];
const CALLED: &[&str] =
    &["?", "Connected", "General Error", "No Carrier", "Busy", "No Dial Tone", "Time-out", "Do Not Accept"];
const ANSWERED: &[&str] = &["?", "Connect", "General Error", "Do Not Accept"];
const HUNG_UP: &[&str] = &["?", "Lost Carrier", "General Error", "Admin Shutdown", "Request"];

/// A field of a message. Those of a message follow each other.
#[derive(Clone, Copy)]
enum Field {
    Version,
    Number16(&'static str),
    Number32(&'static str),
    Hex32(&'static str),
    /// One byte, and the names of its values with `-v`.
    Code(&'static str, &'static [&'static str]),
    /// Bits 1 and 0 of four bytes, as letters.
    FrameCapabilities,
    BearerCapabilities,
    /// Four bytes, and their values from 1 on.
    Kind(&'static str, [&'static str; 3]),
    /// Two bytes: the length of a [`Field::Limited`].
    Length(&'static str),
    /// Text that ends with a zero, in a field of this length.
    Text(&'static str, usize),
    /// A number of as many digits as the longer of the last two lengths.
    Limited(&'static str),
    Reserved8,
    Reserved16,
}

use Field::{
    BearerCapabilities, Code, FrameCapabilities, Hex32, Kind, Length, Limited, Number16, Number32, Reserved8,
    Reserved16, Text, Version,
};

const RESULT: &str = "RESULT_CODE";
const ERROR: Field = Code("ERR_CODE", ERRORS);
const FRAMES: Field = Kind("FRAME_TYPE", ["A", "S", "E"]);
const BEARERS: Field = Kind("BEARER_TYPE", ["A", "D", "Any"]);

/// Names and fields of messages, from number 0.
const MESSAGES: [(&str, &[Field]); 16] = [
    ("NOT_DEFINED", &[]),
    (
        "SCCRQ",
        &[
            Version,
            Reserved16,
            FrameCapabilities,
            BearerCapabilities,
            Number16("MAX_CHAN"),
            Number16("FIRM_REV"),
            Text("HOSTNAME", TEXT),
            Text("VENDOR", TEXT),
        ],
    ),
    (
        "SCCRP",
        &[
            Version,
            Code(RESULT, STARTED),
            ERROR,
            FrameCapabilities,
            BearerCapabilities,
            Number16("MAX_CHAN"),
            Number16("FIRM_REV"),
            Text("HOSTNAME", TEXT),
            Text("VENDOR", TEXT),
        ],
    ),
    ("StopCCRQ", &[Code("REASON", REASONS), Reserved8, Reserved16]),
    ("StopCCRP", &[Code(RESULT, DONE), ERROR, Reserved16]),
    ("ECHORQ", &[Number32("ID")]),
    ("ECHORP", &[Number32("ID"), Code(RESULT, DONE), ERROR, Reserved16]),
    (
        "OCRQ",
        &[
            Number16("CALL_ID"),
            Number16("CALL_SER_NUM"),
            Number32("MIN_BPS"),
            Number32("MAX_BPS"),
            BEARERS,
            FRAMES,
            Number16("RECV_WIN"),
            Number16("PROC_DELAY"),
            Length("PHONE_NO_LEN"),
            Reserved16,
            Limited("PHONE_NO"),
            Text("SUB_ADDR", TEXT),
        ],
    ),
    (
        "OCRP",
        &[
            Number16("CALL_ID"),
            Number16("PEER_CALL_ID"),
            Code(RESULT, CALLED),
            ERROR,
            Number16("CAUSE_CODE"),
            Number32("CONN_SPEED"),
            Number16("RECV_WIN"),
            Number16("PROC_DELAY"),
            Number32("PHY_CHAN_ID"),
        ],
    ),
    (
        "ICRQ",
        &[
            Number16("CALL_ID"),
            Number16("CALL_SER_NUM"),
            BEARERS,
            Number32("PHY_CHAN_ID"),
            Length("DIALED_NO_LEN"),
            Length("DIALING_NO_LEN"),
            Limited("DIALED_NO"),
            Limited("DIALING_NO"),
            Text("SUB_ADDR", TEXT),
        ],
    ),
    (
        "ICRP",
        &[
            Number16("CALL_ID"),
            Number16("PEER_CALL_ID"),
            Code(RESULT, ANSWERED),
            ERROR,
            Number16("RECV_WIN"),
            Number16("PROC_DELAY"),
            Reserved16,
        ],
    ),
    (
        "ICCN",
        &[
            Number16("PEER_CALL_ID"),
            Reserved16,
            Number32("CONN_SPEED"),
            Number16("RECV_WIN"),
            Number16("PROC_DELAY"),
            FRAMES,
        ],
    ),
    ("CCRQ", &[Number16("CALL_ID"), Reserved16]),
    (
        "CDN",
        &[
            Number16("CALL_ID"),
            Code(RESULT, HUNG_UP),
            ERROR,
            Number16("CAUSE_CODE"),
            Reserved16,
            Text("CALL_STATS", STATISTICS),
        ],
    ),
    (
        "WEN",
        &[
            Number16("PEER_CALL_ID"),
            Reserved16,
            Number32("CRC_ERR"),
            Number32("FRAMING_ERR"),
            Number32("HARDWARE_OVERRUN"),
            Number32("BUFFER_OVERRUN"),
            Number32("TIMEOUT_ERR"),
            Number32("ALIGN_ERR"),
        ],
    ),
    ("SLI", &[Number16("PEER_CALL_ID"), Reserved16, Hex32("SEND_ACCM"), Hex32("RECV_ACCM")]),
];

impl Printer<'_> {
    pub(crate) fn pptp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "pptp";
        self.facts.protocol = Some("pptp");
        let verbose = self.options.verbose > 0;
        self.text(": pptp");
        let len = bytes.u16(0)?;
        if verbose {
            put!(self, " Length={len}");
        }
        let kind = bytes.u16(2)?;
        if verbose {
            self.text(match kind {
                CONTROL => " CTRL-MSG",
                MANAGEMENT => " MGMT-MSG",
                _ => " UNKNOWN-MSG-TYPE",
            });
        }
        let cookie = bytes.u32(4)?;
        if cookie != COOKIE {
            put!(self, " UNEXPECTED Magic-Cookie!!({cookie:08x})");
        }
        if verbose || cookie != COOKIE {
            put!(self, " Magic-Cookie={cookie:08x}");
        }
        let kind = bytes.u16(8)?;
        let message = MESSAGES.get(usize::from(kind));
        match message {
            Some((name, _)) => put!(self, " CTRL_MSGTYPE={name}"),
            None => put!(self, " UNKNOWN_CTRL_MSGTYPE({kind})"),
        }
        self.pptp_reserved(bytes.u16(10)?);
        let fields = message.map_or(&[][..], |(_, fields)| fields);
        self.pptp_fields(fields, bytes.from(HEADER))
    }

    fn pptp_fields(&mut self, fields: &[Field], mut rest: Bytes<'_>) -> Result<(), Cut> {
        let mut lengths = [0; 2];
        for field in fields {
            let len = match *field {
                Version => {
                    put!(self, " PROTO_VER({}.{})", rest.u16(0)? >> 8, rest.u8(1)?);
                    2
                }
                Number16(name) => {
                    put!(self, " {name}({})", rest.u16(0)?);
                    2
                }
                Number32(name) => {
                    put!(self, " {name}({})", rest.u32(0)?);
                    4
                }
                Hex32(name) => {
                    put!(self, " {name}(0x{:08x})", rest.u32(0)?);
                    4
                }
                Code(name, names) => {
                    let code = rest.u8(0)?;
                    put!(self, " {name}({code}");
                    if self.options.verbose > 0 {
                        put!(self, ":{}", names.get(usize::from(code)).unwrap_or(&"?"));
                    }
                    self.text(")");
                    1
                }
                FrameCapabilities => {
                    self.text(" FRAME_CAP(");
                    let bits = rest.u32(0)?;
                    self.text(if bits & 1 != 0 { "A" } else { "" });
                    self.text(if bits & 2 != 0 { "S" } else { "" });
                    self.text(")");
                    4
                }
                BearerCapabilities => {
                    let bits = rest.u32(0)?;
                    self.text(" BEARER_CAP(");
                    self.text(if bits & 2 != 0 { "D" } else { "" });
                    self.text(if bits & 1 != 0 { "A" } else { "" });
                    self.text(")");
                    4
                }
                Kind(name, values) => {
                    let kind = rest.u32(0)? as usize;
                    put!(self, " {name}({})", values.get(kind.wrapping_sub(1)).unwrap_or(&"?"));
                    4
                }
                Length(name) => {
                    let len = rest.u16(0)?;
                    lengths = [lengths[1], usize::from(len)];
                    put!(self, " {name}({len})");
                    2
                }
                Text(name, len) => {
                    self.pptp_text(name, rest, len)?;
                    len
                }
                Limited(name) => {
                    let len = lengths[0].max(lengths[1]);
                    self.pptp_text(name, rest, len.min(TEXT))?;
                    TEXT
                }
                Reserved8 => {
                    self.pptp_reserved(rest.u8(0)?.into());
                    1
                }
                Reserved16 => {
                    self.pptp_reserved(rest.u16(0)?);
                    2
                }
            };
            rest = rest.from(len);
        }
        Ok(())
    }

    /// Prints text that ends with a zero or after `len` bytes.
    fn pptp_text(&mut self, name: &str, bytes: Bytes<'_>, len: usize) -> Result<(), Cut> {
        put!(self, " {name}(");
        let text = &bytes.data[..len.min(bytes.data.len())];
        let end = text.iter().position(|byte| *byte == 0);
        self.harmless(&text[..end.unwrap_or(text.len())]);
        if end.is_none() && text.len() < len {
            return Err(Cut);
        }
        self.text(")");
        Ok(())
    }

    fn pptp_reserved(&mut self, value: u16) {
        if value != 0 {
            put!(self, " [ERROR: reserved={value} must be zero]");
        }
    }
}
