//! PTP version 2 (IEEE 1588-2008), over Ethernet and UDP.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Length of the header.
const HEADER: usize = 34;
/// Length of a time stamp.
const STAMP: usize = 10;

const SYNC: u8 = 0;
const DELAY_REQUEST: u8 = 1;
const PEER_REQUEST: u8 = 2;
const PEER_RESPONSE: u8 = 3;
const FOLLOW_UP: u8 = 8;
const DELAY_RESPONSE: u8 = 9;
const PEER_FOLLOW_UP: u8 = 10;
const ANNOUNCE: u8 = 11;
const SIGNALLING: u8 = 12;
const MANAGEMENT: u8 = 13;

const FLAGS: [(u16, &str); 12] = [
    (1, "l1 61"),
    (2, "l1 59"),
    (4, "utc reasonable"),
    (8, "timescale"),
    (0x10, "time tracable"),
    (0x20, "frequency tracable"),
    (0x100, "alternate master"),
    (0x200, "two step"),
    (0x400, "unicast"),
    (0x1000, "profile specific 1"),
    (0x2000, "profile specific 2"),
    (0x4000, "security mask"),
];
/// tcpdump's name for these bits together.
const UNKNOWN: u16 = 0x18c0;
const CONTROLS: [&str; 6] = ["Sync", "Delay_Req", "Follow_Up", "Delay_Resp", "Management", "Other"];

fn name(kind: u8) -> &'static str {
    match kind {
        SYNC => "sync msg",
        DELAY_REQUEST => "delay req msg",
        PEER_REQUEST => "peer delay req msg",
        PEER_RESPONSE => "peer delay resp msg",
        FOLLOW_UP => "follow up msg",
        DELAY_RESPONSE => "delay resp msg",
        PEER_FOLLOW_UP => "pdelay resp fup msg",
        ANNOUNCE => "announce msg",
        SIGNALLING => "signalling msg",
        MANAGEMENT => "management msg",
        _ => "Reserved",
    }
}

impl Printer<'_> {
    pub(crate) fn ptp(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "ptp";
        self.facts.protocol = Some("ptp");
        if bytes.len < HEADER {
            put!(self, " [length {} < {HEADER}] (invalid)", bytes.len);
            return Ok(());
        }
        let first = bytes.u16(0)?;
        let (kind, version) = (first.to_be_bytes()[0] & 15, first & 0xff);
        put!(self, "PTPv{version}");
        match version {
            1 => self.text(" (not implemented)"),
            2 => self.ptp2(kind, first & 0x1000 != 0, bytes)?,
            _ => {}
        }
        Ok(())
    }

    fn ptp2(&mut self, kind: u8, compatible: bool, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, ", v1 compat : {}", if compatible { "yes" } else { "no" });
        put!(self, ", msg type : {}", name(kind));
        put!(self, ", length : {}", bytes.u16(2)?);
        let domain = bytes.u16(4)?;
        put!(self, ", domain : {}, reserved1 : {}", domain >> 8, domain & 0xff);
        let flags = bytes.u16(6)?;
        self.text(", Flags [");
        self.flag_names(flags, &FLAGS);
        self.text(if flags & UNKNOWN == UNKNOWN { ", unknown]" } else { "]" });
        put!(self, ", NS correction : {}", bytes.u48(8)?);
        put!(self, ", sub NS correction : {}", bytes.u16(14)?);
        put!(self, ", reserved2 : {}", bytes.u32(16)?);
        put!(self, ", clock identity : 0x{:x}", bytes.u64(20)?);
        put!(self, ", port id : {}", bytes.u16(28)?);
        put!(self, ", seq id : {}", bytes.u16(30)?);
        let control = bytes.u8(32)?;
        let word = CONTROLS.get(usize::from(control)).unwrap_or(&"Reserved");
        put!(self, ", control : {control} ({word})");
        put!(self, ", log message interval : {}", bytes.u8(33)?);
        let body = bytes.from(HEADER);
        match kind {
            SYNC | DELAY_REQUEST => self.ptp_stamp("origin", ",", body),
            FOLLOW_UP => self.ptp_stamp("preciseOrigin", ",", body),
            PEER_REQUEST | PEER_FOLLOW_UP => {
                self.ptp_stamp("preciseOrigin", ",", body)?;
                self.ptp_port(body.from(STAMP))
            }
            PEER_RESPONSE | DELAY_RESPONSE => {
                self.ptp_stamp("receive", ",", body)?;
                self.ptp_port(body.from(STAMP))
            }
            ANNOUNCE => {
                self.ptp_stamp("origin", "", body)?;
                self.ptp_announcement(body.from(STAMP))
            }
            SIGNALLING => self.ptp_port(body),
            MANAGEMENT => {
                self.ptp_port(body)?;
                // tcpdump reads none of these fields.
                let byte = body.u8(0)?;
                put!(self, ", , start boundary hops  {byte}, , boundary hops  {byte}");
                put!(self, ", , flags  0x{byte:x}, , reserved  0x{byte:x}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn ptp_stamp(&mut self, what: &str, after: &str, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, ", {what}TimeStamp :");
        put!(self, " {} seconds{after}", bytes.u48(0)?);
        put!(self, " {} nanoseconds", bytes.u32(6)?);
        Ok(())
    }

    fn ptp_port(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, ", port identity : 0x{:x}", bytes.u64(0)?);
        put!(self, ", port id : {}", bytes.u16(8)?);
        Ok(())
    }

    /// Prints what a clock says about the best one it knows.
    fn ptp_announcement(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        put!(self, ", origin cur utc :{}", bytes.u16(0)?);
        put!(self, ", rsvd : {}", bytes.u8(2)?);
        put!(self, ", gm priority_1 : {}", bytes.u8(3)?);
        put!(self, ", gm clock class : {}", bytes.u8(4)?);
        put!(self, ", gm clock accuracy : {}", bytes.u8(5)?);
        put!(self, ", gm clock variance : {}", bytes.u16(6)?);
        put!(self, ", gm priority_2 : {}", bytes.u8(8)?);
        put!(self, ", gm clock id : 0x{:x}", bytes.u64(9)?);
        put!(self, ", steps removed : {}", bytes.u16(17)?);
        put!(self, ", time source : 0x{:x}", bytes.u8(19)?);
        Ok(())
    }
}
