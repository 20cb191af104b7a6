//! Fields of LLDP that IEEE 802.1 defines for data centres: DCBX (802.1Qaz, 802.1Qbb, 802.1Qau) and EVB (802.1Qbg).

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

const AGGREGATION: [(u16, &str); 2] = [(1, "supported"), (2, "enabled")];
const MODES: [&str; 4] =
    ["Not Supported", "EVB Bridge", "EVB Station", "Reserved for future Standardization"];

impl Printer<'_> {
    /// Prints a field; returns whether it is known. Of one that is too short, only the name is printed.
    pub(crate) fn lldp_data_center(&mut self, number: u8, field: Bytes<'_>) -> Result<bool, Cut> {
        let shortest = match number {
            7 => 5,
            8 | 11 => 2,
            9 | 10 => 21,
            12 => 1,
            13 => 5,
            14 => 4,
            _ => return Ok(false),
        };
        if field.len < shortest {
            return Ok(true);
        }
        let first = field.u8(0)?;
        match number {
            7 => {
                self.text("\n\t    aggregation status ");
                self.lldp_bits(first.into(), &AGGREGATION);
                put!(self, ", aggregation port ID {}", field.u32(1)?);
            }
            8 => {
                self.text("\n\t    Pre-Priority CNPV Indicator");
                self.lldp_priorities(first);
                self.text("\n\t    Pre-Priority Ready Indicator");
                self.lldp_priorities(field.u8(1)?);
            }
            9 | 10 => {
                match number {
                    9 => {
                        let (shaper, reserved) = (first >> 6 & 2, first >> 3 & 7);
                        put!(self, "\n\t    Willing:{}, CBS:{shaper}, RES:{reserved}", first >> 7);
                        put!(self, ", Max TCs:{}", first & 7);
                    }
                    _ => put!(self, "\n\t    RES: {first}"),
                }
                self.lldp_classes(field)?;
            }
            11 => {
                let (bypass, reserved) = (first >> 6 & 1, first >> 4 & 3);
                put!(self, "\n\t    Willing: {}, MBC: {bypass}, RES: {reserved}", first >> 7);
                put!(self, ", PFC cap:{} \n\t    PFC Enable", first & 15);
                self.lldp_priorities(field.u8(1)?);
            }
            12 => {
                put!(self, "\n\t    RES: {first}");
                let table = field.len - 1;
                if table > 0 && table.is_multiple_of(3) {
                    self.text("\n\t    Application Priority Table");
                    for at in (1..=table).step_by(3) {
                        let (bits, protocol) = (field.u8(at)?, field.u16(at + 1)?);
                        put!(self, "\n\t      Priority: {}, RES: {}", bits >> 5, bits >> 3 & 3);
                        put!(self, ", Sel: {}, Protocol ID: {protocol}", bits & 7);
                    }
                }
            }
            13 => self.lldp_virtual_bridging(field)?,
            _ => {
                let (reserved, component) = (first >> 4 & 7, first >> 3 & 1);
                put!(self, "\n\t    Role: {}, RES: {reserved}, Scomp: {component} ", first >> 7);
                put!(self, "ChnCap: {}", field.u16(2)? & 0xfff);
                let table = field.len - 4;
                if table.is_multiple_of(3) {
                    for at in (4..4 + table).step_by(3) {
                        let both = field.u24(at)?;
                        put!(self, "\n\t    SCID: {}, SVID: {}", both >> 12, both & 0xfff);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Prints a bit for each priority.
    fn lldp_priorities(&mut self, bits: u8) {
        self.text("\n\t     Priority : 0  1  2  3  4  5  6  7\n\t     Value    : ");
        for priority in 0..8 {
            put!(self, "{}  ", bits >> priority & 1);
        }
    }

    /// Prints the class of each priority, and the share and the algorithm of each class.
    fn lldp_classes(&mut self, field: Bytes<'_>) -> Result<(), Cut> {
        const NUMBERS: &str = "0   1   2   3   4   5   6   7";
        let classes = field.get(1, 4)?;
        let (shares, algorithms) = (field.get(5, 8)?, field.get(13, 8)?);
        let classes: [u8; 8] = std::array::from_fn(|index| classes[index / 2] >> (4 * (1 - index % 2)) & 15);
        put!(self, "\n\t    Priority Assignment Table\n\t     Priority : {NUMBERS}\n\t     Value    : ");
        self.lldp_row(&classes);
        put!(self, "\n\t    TC Bandwidth Table\n\t     TC%   : {NUMBERS}\n\t     Value : ");
        self.lldp_row(shares);
        put!(self, "\n\t    TSA Assignment Table\n\t     Traffic Class: {NUMBERS}\n\t     Value        : ");
        self.lldp_row(algorithms);
        Ok(())
    }

    fn lldp_row(&mut self, values: &[u8]) {
        for (number, value) in values.iter().enumerate() {
            put!(self, "{}{value:<3}", if number > 0 { " " } else { "" });
        }
    }

    fn lldp_virtual_bridging(&mut self, field: Bytes<'_>) -> Result<(), Cut> {
        let [bridge, station, retries, mode, alive] = field.get(0, 5)? else { return Err(Cut) };
        put!(self, "\n\t    EVB Bridge Status\n\t      RES: {}, BGID: {}", bridge >> 3, bridge >> 2 & 1);
        put!(self, ", RRCAP: {}, RRCTR: {}", bridge >> 1 & 1, bridge & 1);
        put!(self, "\n\t    EVB Station Status\n\t      RES: {}, SGID: {}", station >> 4, station >> 3 & 1);
        put!(self, ", RRREQ: {},RRSTAT: {}", station >> 2 & 1, station & 3);
        let name = MODES[usize::from(mode >> 6)];
        put!(self, "\n\t    R: {}, RTE: {}, EVB Mode: {name} [{}]", retries >> 5, retries & 31, mode >> 6);
        put!(self, "\n\t    ROL: {}, RWD: {}", mode >> 5 & 1, mode & 31);
        put!(self, ", RES: {}, ROL: {}, RKA: {}", alive >> 6, alive >> 5 & 1, alive & 31);
        Ok(())
    }
}
