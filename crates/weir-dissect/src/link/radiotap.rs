//! What the radio knows about a frame of 802.11 (radiotap.org), in front of it.

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;
use crate::link::wlan::Tail;

/// Numbers of fields.
const CHANNEL: u32 = 3;
const EXTENDED_CHANNEL: u32 = 18;
const MCS: u32 = 19;
/// Bits that mean the same in every word of bits.
const RADIOTAP: u32 = 1 << 29;
const VENDOR: u32 = 1 << 30;
const MORE: u32 = 1 << 31;
const FIELDS: u32 = RADIOTAP - 1;

const CHECKSUM: u8 = 0x10;
const PADDED: u8 = 0x20;
const FLAGS: [(u8, &str); 5] =
    [(1, "cfp "), (2, "short preamble "), (4, "wep "), (8, "fragmented "), (0x40, "bad-fcs ")];

/// Rates of 802.11n by MCS index, in units of 6.5 Mbit/s: at 20 MHz, with a long guard interval.
const RATES: [u16; 77] = [
    1, 2, 3, 4, 6, 8, 9, 10, 2, 4, 6, 8, 12, 16, 18, 20, 3, 6, 9, 12, 18, 24, 27, 30, 4, 8, 12, 16, 24, 32,
    36, 40, 0, 6, 8, 10, 9, 12, 15, 8, 10, 10, 12, 14, 14, 16, 12, 15, 15, 18, 21, 21, 24, 10, 12, 14, 12,
    14, 16, 18, 16, 18, 20, 20, 22, 15, 18, 21, 18, 21, 24, 27, 24, 27, 30, 30, 33,
];
/// The index of the rate that exists at 40 MHz only.
const DUPLICATE: u8 = 32;

const HT_WIDTHS: [&str; 4] = ["20 MHz", "40 MHz", "20 MHz (L)", "20 MHz (U)"];
/// Index 21 is LUU, which tcpdump calls UUU.
const VHT_WIDTHS: [&str; 26] = [
    "20 MHz",
    "40 MHz",
    "20 MHz (L)",
    "20 MHz (U)",
    "80 MHz",
    "80 MHz (L)",
    "80 MHz (U)",
    "80 MHz (LL)",
    "80 MHz (LU)",
    "80 MHz (UL)",
    "80 MHz (UU)",
    "160 MHz",
    "160 MHz (L)",
    "160 MHz (U)",
    "160 MHz (LL)",
    "160 MHz (LU)",
    "160 MHz (UL)",
    "160 MHz (UU)",
    "160 MHz (LLL)",
    "160 MHz (LLU)",
    "160 MHz (LUL)",
    "160 MHz (UUU)",
    "160 MHz (ULL)",
    "160 MHz (ULU)",
    "160 MHz (UUL)",
    "160 MHz (UUU)",
];

/// Reads fields, each of which is aligned to its size.
struct Fields<'a> {
    header: Bytes<'a>,
    at: usize,
}

impl Fields<'_> {
    fn take(&mut self, len: usize) -> Result<usize, Cut> {
        let at = self.at.next_multiple_of(len);
        self.header.get(at, len)?;
        self.at = at + len;
        Ok(at)
    }

    fn u8(&mut self) -> Result<u8, Cut> {
        self.take(1).and_then(|at| self.header.u8(at))
    }

    fn u16(&mut self) -> Result<u16, Cut> {
        self.take(2).and_then(|at| self.header.le16(at))
    }

    fn u32(&mut self) -> Result<u32, Cut> {
        self.take(4).and_then(|at| self.header.le32(at))
    }

    fn u64(&mut self) -> Result<u64, Cut> {
        self.take(8).and_then(|at| self.header.le64(at))
    }

    fn skip(&mut self, len: usize) -> Result<(), Cut> {
        self.header.get(self.at, len)?;
        self.at += len;
        Ok(())
    }
}

/// Why no more fields can be read.
enum Stop {
    Cut,
    /// The size of a field is unknown.
    Unknown,
}

impl From<Cut> for Stop {
    fn from(_: Cut) -> Self {
        Self::Cut
    }
}

impl Printer<'_> {
    pub(crate) fn radiotap(&mut self, bytes: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "802.11_radio";
        self.facts.protocol = Some("radiotap");
        bytes.get(0, 8)?;
        let len = usize::from(bytes.le16(2)?);
        if len < 8 || bytes.data.len() < len {
            return Err(Cut);
        }
        let header = bytes.first(len);
        let mut words = 1;
        while header.le32(words * 4)? & MORE != 0 {
            words += 1;
        }
        self.header(len);
        let mut fields = Fields { header, at: 4 + words * 4 };
        let mut flags = 0;
        match self.radiotap_fields(words, &mut fields, &mut flags) {
            Err(Stop::Cut) => self.truncated(),
            Ok(()) | Err(Stop::Unknown) => {}
        }
        let tail = Tail { padded: flags & PADDED != 0, checksum: flags & CHECKSUM != 0 };
        self.wlan(bytes.from(len), tail)
    }

    fn radiotap_fields(&mut self, words: usize, fields: &mut Fields<'_>, flags: &mut u8) -> Result<(), Stop> {
        let mut first = 0;
        // The length of a vendor's fields, of which nothing else is known.
        let mut vendor = None;
        for word in 1..=words {
            let present = fields.header.le32(word * 4)?;
            match vendor {
                // Without an end, there is nothing to say.
                Some(len) => fields.skip(len).map_err(|Cut| Stop::Unknown)?,
                None => {
                    for bit in (0..32).filter(|bit| present & FIELDS & 1 << bit != 0) {
                        self.radiotap_field(first + bit, present, fields, flags)?;
                    }
                }
            }
            match present & (RADIOTAP | VENDOR) {
                0 => {
                    first += 32;
                    if vendor.is_some() {
                        vendor = Some(0);
                    }
                }
                RADIOTAP => (first, vendor) = (0, None),
                VENDOR => {
                    first = 0;
                    fields.at = fields.at.next_multiple_of(2);
                    fields.skip(4)?;
                    vendor = Some(fields.u16()?.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn radiotap_field(
        &mut self,
        number: u32,
        present: u32,
        fields: &mut Fields<'_>,
        flags: &mut u8,
    ) -> Result<(), Stop> {
        match number {
            0 => put!(self, "{}us tsft ", fields.u64()?),
            1 => {
                *flags = fields.u8()?;
                for (_, name) in FLAGS.iter().filter(|(bit, _)| *flags & bit != 0) {
                    self.text(name);
                }
            }
            2 => match fields.u8()? {
                rate @ 0x80..=0x8f => put!(self, "MCS {} ", rate & 0x7f),
                rate => put!(self, "{}.{} Mb/s ", rate / 2, rate % 2 * 5),
            },
            CHANNEL => {
                let (frequency, about) = (fields.u16()?, fields.u16()?);
                if present & 1 << EXTENDED_CHANNEL == 0 {
                    self.radio_channel(frequency, about.into(), present);
                }
            }
            4 => {
                let (set, pattern) = (fields.u8()?, fields.u8()?);
                put!(self, "fhset {set} fhpat {pattern} ");
            }
            5 => put!(self, "{}dBm signal ", fields.u8()?.cast_signed()),
            6 => put!(self, "{}dBm noise ", fields.u8()?.cast_signed()),
            7 => put!(self, "{} sq ", fields.u16()?),
            8 => put!(self, "{} tx power ", -i32::from(fields.u16()?.cast_signed())),
            9 => put!(self, "{}dB tx attenuation ", -i32::from(fields.u8()?.cast_signed())),
            10 => put!(self, "{}dBm tx power ", fields.u8()?.cast_signed()),
            11 => put!(self, "antenna {} ", fields.u8()?),
            12 => put!(self, "{}dB signal ", fields.u8()?),
            13 => put!(self, "{}dB noise ", fields.u8()?),
            14 => drop(fields.u16()?),
            EXTENDED_CHANNEL => {
                let (about, frequency) = (fields.u32()?, fields.u16()?);
                fields.skip(2)?;
                self.radio_channel(frequency, about, present);
            }
            MCS => {
                let (known, about, index) = (fields.u8()?, fields.u8()?, fields.u8()?);
                self.radio_mcs(known, about, index);
            }
            20 => {
                fields.u32()?;
                fields.skip(4)?;
            }
            21 => self.radio_vht(fields)?,
            _ => {
                put!(self, "[bit {number}] ");
                return Err(Stop::Unknown);
            }
        }
        Ok(())
    }

    fn radio_channel(&mut self, frequency: u16, about: u32, present: u32) {
        let has = |bits: u32| about & bits == bits;
        put!(self, "{frequency} MHz");
        let part = match (has(0x4000), has(0x8000)) {
            (true, _) => "/10Mhz",
            (_, true) => "/5Mhz",
            _ => "",
        };
        if present & 1 << MCS != 0 {
            self.text(" 11n");
        } else {
            self.text(if has(0x880) { " FHSS" } else { "" });
            if has(0x140) {
                put!(self, " 11a{part}");
            }
            if has(0xc0) || has(0x480) {
                put!(self, " 11g{part}");
            } else if has(0xa0) {
                self.text(" 11b");
            }
            self.text(if has(0x10) { " Turbo" } else { "" });
        }
        self.text(match (has(0x10000), has(0x40000), has(0x20000)) {
            (true, _, _) => " ht/20 ",
            (_, true, _) => " ht/40- ",
            (_, _, true) => " ht/40+ ",
            _ => " ",
        });
    }

    fn radio_mcs(&mut self, known: u8, about: u8, index: u8) {
        let (width, short) = (about & 3, about & 4 != 0);
        if known & 2 != 0 {
            match ht_rate(index, width == 1, short).filter(|_| known & 5 != 0) {
                Some(tenths) => put!(self, "{}.{} Mb/s MCS {index} ", tenths / 10, tenths % 10),
                None => put!(self, "MCS {index} "),
            }
        }
        if known & 1 != 0 {
            put!(self, "{} ", HT_WIDTHS[usize::from(width)]);
        }
        if known & 4 != 0 {
            self.text(if short { "short GI " } else { "long GI " });
        }
        if known & 8 != 0 {
            self.text(if about & 8 != 0 { "greenfield " } else { "mixed " });
        }
        if known & 0x10 != 0 {
            self.text(if about & 0x10 != 0 { "LDPC FEC " } else { "BCC FEC " });
        }
        if known & 0x20 != 0 {
            put!(self, "RX-STBC{} ", about >> 5 & 3);
        }
    }

    fn radio_vht(&mut self, fields: &mut Fields<'_>) -> Result<(), Cut> {
        let (known, about, width) = (fields.u16()?, fields.u8()?, fields.u8()? & 0x1f);
        let users = [fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?];
        let coding = fields.u8()?;
        fields.skip(1)?;
        fields.u16()?;
        for (number, user) in users.into_iter().enumerate().filter(|(_, user)| user & 15 != 0) {
            let correction = if coding & 1 << number != 0 { "LDPC" } else { "BCC" };
            put!(self, "User {number} MCS {} {correction} FEC ", user >> 4);
        }
        if known & 0x40 != 0 {
            match VHT_WIDTHS.get(usize::from(width)) {
                Some(name) => put!(self, "{name} "),
                None => put!(self, "unknown ({width}) "),
            }
        }
        if known & 4 != 0 {
            self.text(if about & 4 != 0 { "short GI " } else { "long GI " });
        }
        Ok(())
    }
}

/// Returns a rate of 802.11n in units of 100 kbit/s.
fn ht_rate(index: u8, wide: bool, short: bool) -> Option<u32> {
    let steps = RATES.get(usize::from(index)).copied().map(u32::from)?;
    let long = match (index, wide) {
        (DUPLICATE, true) => 60,
        (DUPLICATE, false) => return None,
        (_, true) => steps * 135,
        (_, false) => steps * 65,
    };
    // A symbol lasts for 3.6 µs instead of 4.
    Some(if short { (long * 20 + 9) / 18 } else { long })
}
