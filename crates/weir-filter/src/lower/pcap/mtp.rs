//! Signalling System 7: message transfer part, levels 2 and 3 (ITU-T Q.703, Q.704), little-endian.

use super::condition::Condition;
use super::layers::From;
use super::layers::Link;
use super::{Lowered, Lowering};
use crate::ast::{MtpField, MtpKind};
use crate::graph::{Operation, Relation, ValueId, Width};

impl Lowering<'_> {
    /// Lowers SS7 terms.
    pub(super) fn mtp(&mut self, kind: &MtpKind) -> Lowered {
        if self.layers.link != Link::Mtp {
            return Err(self.cannot("SS7 message contents"));
        }
        match kind {
            MtpKind::Fisu { high_speed } => {
                let length = self.signal_length(*high_speed);
                Ok(self.compare(Relation::Equal, length, 0))
            }
            MtpKind::Lssu { high_speed } => {
                let some = self.longer_than(*high_speed, 0);
                Ok(some.and(self.longer_than(*high_speed, 2).negated()))
            }
            MtpKind::Msu { high_speed } => Ok(self.longer_than(*high_speed, 2)),
            MtpKind::Field { field, high_speed, values } => {
                let at = self.mtp_header + if *high_speed { 3 } else { 0 };
                let (most, offset, width, mask) = match field {
                    MtpField::Sio => (0xff, 3, Width::Byte, u32::MAX),
                    MtpField::Opc => (0x3fff, 4, Width::Word, 0x00c0_ff0f),
                    MtpField::Dpc => (0x3fff, 4, Width::Word, 0xff3f_0000),
                    MtpField::Sls => (0xf, 7, Width::Byte, 0xf0),
                };
                if let Some((_, number)) = values.iter().find(|(_, number)| *number > most) {
                    return Err(format!("{number} exceeds {most}, the largest value of the field"));
                }
                let values: Vec<_> = values
                    .iter()
                    .map(|&(comparison, number)| (comparison, in_header(*field, number)))
                    .collect();
                Ok(self.any_of(&values, |this| {
                    let value = this.load(From::Packet, at + offset, width);
                    this.graph.with(Operation::And, value, mask)
                }))
            }
        }
    }

    /// Returns the length indicator, without shifting it.
    fn signal_length(&mut self, high_speed: bool) -> ValueId {
        let (offset, width, mask) =
            if high_speed { (4, Width::Half, 0xff80) } else { (2, Width::Byte, 0x3f) };
        let value = self.load(From::Packet, self.mtp_header + offset, width);
        self.graph.with(Operation::And, value, mask)
    }

    fn longer_than(&mut self, high_speed: bool, length: u32) -> Condition {
        let value = self.signal_length(high_speed);
        self.compare(Relation::Greater, value, if high_speed { length << 7 } else { length })
    }
}

/// Returns what a number in the header reads as in big-endian byte order.
fn in_header(field: MtpField, number: u32) -> u32 {
    match field {
        MtpField::Sio => number,
        MtpField::Opc => (number << 14).swap_bytes(),
        MtpField::Dpc => number.swap_bytes(),
        MtpField::Sls => number << 4,
    }
}
