//! IEEE 802.11: the header of a frame, control frames, and data.

mod codes;
mod management;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const MANAGEMENT: u8 = 0;
const CONTROL: u8 = 1;
const DATA: u8 = 2;

/// Subtypes of control frames.
const WRAPPER: u8 = 7;
const BLOCK_REQUEST: u8 = 8;
const BLOCK: u8 = 9;
const POLL: u8 = 10;
const REQUEST_TO_SEND: u8 = 11;
const CLEAR_TO_SEND: u8 = 12;
const ACKNOWLEDGEMENT: u8 = 13;
const CONTENTION_END: u8 = 14;

/// Bits in the subtype of a data frame.
const ACKNOWLEDGES: u8 = 1;
const POLLS: u8 = 2;
const NO_DATA: u8 = 4;
const QUALITY: u8 = 8;

/// Bits of the flags.
const TO_DISTRIBUTION: u8 = 1;
const FROM_DISTRIBUTION: u8 = 2;
pub(crate) const PROTECTED: u8 = 0x40;
/// In the order in which they are printed.
const FLAGS: [(u8, &str); 6] = [
    (0x20, "More Data "),
    (4, "More Fragments "),
    (0x10, "Pwr Mgmt "),
    (8, "Retry "),
    (0x80, "Strictly Ordered "),
    (PROTECTED, "Protected "),
];

/// What is known about a frame from the radio.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// The header is padded to a multiple of four bytes.
    pub(crate) padded: bool,
    /// The frame ends in a checksum.
    pub(crate) checksum: bool,
}

/// The first two bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub(crate) subtype: u8,
    pub(crate) flags: u8,
}

impl Control {
    /// Whether it is on its way to the distribution system.
    fn enters(self) -> bool {
        self.flags & TO_DISTRIBUTION != 0
    }

    /// Whether it comes from the distribution system.
    fn leaves(self) -> bool {
        self.flags & FROM_DISTRIBUTION != 0
    }

    /// Returns the source and destination of data.
    fn ends(self, bytes: Bytes<'_>) -> Result<([u8; 6], [u8; 6]), Cut> {
        let (source, destination) = match (self.enters(), self.leaves()) {
            (false, false) => (10, 4),
            (false, true) => (16, 4),
            (true, false) => (10, 16),
            (true, true) => (24, 16),
        };
        Ok((bytes.mac(source)?, bytes.mac(destination)?))
    }
}

impl Printer<'_> {
    pub(crate) fn wlan(&mut self, bytes: Bytes<'_>, tail: Tail) -> Result<(), Cut> {
        self.protocol = "802.11";
        self.facts.protocol = Some("802.11");
        let end = if tail.checksum { bytes.len.checked_sub(4).ok_or(Cut)? } else { bytes.len };
        let bytes = bytes.first(end);
        let (first, flags) = (bytes.u8(0)?, bytes.u8(1)?);
        let (kind, control) = (first >> 2 & 3, Control { subtype: first >> 4, flags });
        let mut header: usize = match kind {
            MANAGEMENT => 24,
            CONTROL => match control.subtype {
                CLEAR_TO_SEND | ACKNOWLEDGEMENT | BLOCK => 10,
                WRAPPER | POLL | REQUEST_TO_SEND | CONTENTION_END.. => 16,
                BLOCK_REQUEST => 20,
                subtype => {
                    put!(self, "unknown 802.11 ctrl frame subtype ({subtype})");
                    return Ok(());
                }
            },
            DATA => {
                let fourth = if control.enters() && control.leaves() { 6 } else { 0 };
                24 + fourth + if control.subtype & QUALITY != 0 { 2 } else { 0 }
            }
            _ => {
                put!(self, "unknown 802.11 frame type ({kind})");
                return Ok(());
            }
        };
        if tail.padded {
            header = header.next_multiple_of(4);
        }
        bytes.get(0, header)?;
        self.header(header);
        if self.options.link {
            self.wlan_header(kind, control, bytes)?;
        }
        let body = bytes.from(header);
        match kind {
            MANAGEMENT => {
                let (source, destination) = (bytes.mac(10)?, bytes.mac(4)?);
                self.facts.mac_source.get_or_insert(source);
                self.facts.mac_destination.get_or_insert(destination);
                self.wlan_management(control, source, body)
            }
            CONTROL => self.wlan_control(control.subtype, bytes),
            _ if control.subtype & NO_DATA != 0 => Ok(()),
            _ if control.flags & PROTECTED != 0 => {
                self.text("Data");
                self.wlan_encrypted(body)
            }
            _ => {
                let (source, destination) = control.ends(bytes)?;
                self.facts.mac_source.get_or_insert(source);
                self.facts.mac_destination.get_or_insert(destination);
                self.llc(body, Some((source, destination)))
            }
        }
    }

    fn wlan_header(&mut self, kind: u8, control: Control, bytes: Bytes<'_>) -> Result<(), Cut> {
        if self.options.verbose > 0 {
            for (_, name) in FLAGS.iter().filter(|(bit, _)| control.flags & bit != 0) {
                self.text(name);
            }
            if (kind, control.subtype) != (CONTROL, POLL) {
                put!(self, "{}us ", bytes.le16(2)?);
            }
        }
        if kind == DATA {
            self.wlan_data_kind(control.subtype);
        }
        let names: &[&str] = match (kind, control.subtype) {
            (MANAGEMENT, _) => {
                let (first, second, third) = (bytes.mac(4)?, bytes.mac(10)?, bytes.mac(16)?);
                for (name, address) in [("BSSID:", third), ("DA:", first), ("SA:", second)] {
                    self.text(name);
                    self.mac(address);
                    self.text(" ");
                }
                return Ok(());
            }
            (CONTROL, BLOCK_REQUEST) => return self.wlan_block_request(bytes),
            (CONTROL, REQUEST_TO_SEND) => &["RA:", "TA:"],
            (CONTROL, POLL) => &["BSSID:", "TA:"],
            (CONTROL, CLEAR_TO_SEND | ACKNOWLEDGEMENT | BLOCK) => &["RA:"],
            (CONTROL, CONTENTION_END..) => &["RA:", "BSSID:"],
            (CONTROL, _) => &[],
            _ => match (control.enters(), control.leaves()) {
                (false, false) => &["DA:", "SA:", "BSSID:"],
                (false, true) => &["DA:", "BSSID:", "SA:"],
                (true, false) => &["BSSID:", "SA:", "DA:"],
                (true, true) => &["RA:", "TA:", "DA:", "SA:"],
            },
        };
        // Before the fourth address is the sequence number.
        let places = &[4, 10, 16, 24][..names.len()];
        places.iter().try_for_each(|at| bytes.mac(*at).map(drop))?;
        for (name, at) in names.iter().zip(places) {
            self.text(name);
            self.mac(bytes.mac(*at)?);
            self.text(" ");
        }
        Ok(())
    }

    fn wlan_data_kind(&mut self, subtype: u8) {
        if subtype & (ACKNOWLEDGES | POLLS | QUALITY) == 0 {
            return;
        }
        self.text("CF ");
        self.text(match (subtype & ACKNOWLEDGES != 0, subtype & POLLS != 0) {
            (true, true) => "Ack/Poll",
            (true, false) => "Ack",
            (false, true) => "Poll",
            (false, false) => "",
        });
        self.text(if subtype & QUALITY != 0 { "+QoS " } else { " " });
    }

    fn wlan_block_request(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let (receiver, sender, control, sequence) =
            (bytes.mac(4)?, bytes.mac(10)?, bytes.le16(16)?, bytes.le16(18)?);
        self.text(" RA:");
        self.mac(receiver);
        self.text(" TA:");
        self.mac(sender);
        put!(self, " CTL({control:x}) SEQ({sequence}) ");
        Ok(())
    }

    fn wlan_control(&mut self, subtype: u8, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.text(match subtype {
            WRAPPER => "Control Wrapper",
            BLOCK_REQUEST => "BAR",
            BLOCK => "BA",
            POLL => "Power Save-Poll",
            REQUEST_TO_SEND => "Request-To-Send",
            CLEAR_TO_SEND => "Clear-To-Send",
            ACKNOWLEDGEMENT => "Acknowledgment",
            CONTENTION_END => "CF-End",
            _ => "CF-End+CF-Ack",
        });
        if subtype == POLL {
            put!(self, " AID({:x})", bytes.le16(2)?);
        }
        // With the header, the addresses have been printed.
        if self.options.link {
            return Ok(());
        }
        match subtype {
            WRAPPER | POLL => {}
            BLOCK_REQUEST => self.wlan_block_request(bytes)?,
            REQUEST_TO_SEND => {
                self.text(" TA:");
                self.mac(bytes.mac(10)?);
                self.text(" ");
            }
            _ => {
                self.text(" RA:");
                self.mac(bytes.mac(4)?);
                self.text(" ");
            }
        }
        Ok(())
    }

    /// Prints what WEP puts before encrypted data.
    pub(crate) fn wlan_encrypted(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        let word = bytes.le32(0)?;
        put!(self, " IV:{:3x} Pad {:x} KeyID {:x}", word & 0xff_ffff, word >> 24 & 0x3f, word >> 30);
        Ok(())
    }
}
