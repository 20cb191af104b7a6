//! Types and addresses of 802.11.

use super::Site;
use super::address::directed;
use crate::ast::Direction;
use crate::graph::Width;
use crate::lower::weir::formula::Formula;
use crate::lower::weir::place::Place;

/// Bits in the first byte of frame control: neither is set in management frames, both are set in extension frames.
const CONTROL: u32 = 0x04;
const DATA: u32 = 0x08;
const TYPE: u32 = CONTROL | DATA;
/// Type and subtype of clear-to-send and acknowledgement frames.
const WITHOUT_TRANSMITTER: [u32; 2] = [0xc4, 0xd4];
/// Bits in the second byte of frame control.
pub(super) const TO_DS: u32 = 0x01;
pub(super) const FROM_DS: u32 = 0x02;

impl Site<'_> {
    /// Tests a byte of the frame under a mask.
    pub(super) fn wlan_byte(&mut self, at: u32, mask: u32, value: u32) -> Formula {
        let byte = self.level.frame(self.graph).load(self.graph, at, Width::Byte);
        Formula::masked(self.graph, byte, mask, value)
    }

    fn has_bit(&mut self, at: u32, bit: u32) -> Formula {
        let byte = self.level.frame(self.graph).load(self.graph, at, Width::Byte);
        Formula::any_bit(self.graph, byte, bit)
    }

    /// Applies `ask` to the addresses that `direction` selects.
    pub(super) fn wlan_addresses(
        &mut self,
        direction: Direction,
        mut ask: impl FnMut(&mut Self, Place) -> Formula,
    ) -> Formula {
        let frame = self.level.frame(self.graph);
        // Addresses 1 to 4; the last one follows the sequence control.
        let address = |number: usize| frame.plus([4, 10, 16, 24][number - 1]);
        let managing = self.wlan_byte(0, TYPE, 0);
        let guard = match direction {
            Direction::Address(1) => Formula::Always,
            Direction::Receiver => managing.not(),
            Direction::Address(2) | Direction::Transmitter => {
                let [clear, acknowledged] =
                    WITHOUT_TRANSMITTER.map(|value| self.wlan_byte(0, 0xf0 | TYPE, value));
                let all = vec![clear.not(), acknowledged.not()];
                let managed =
                    if direction == Direction::Transmitter { managing.not() } else { Formula::Always };
                Formula::all([vec![managed], all].concat())
            }
            Direction::Address(3) => self.has_bit(0, CONTROL).not(),
            Direction::Address(_) => self.wlan_byte(1, TO_DS | FROM_DS, TO_DS | FROM_DS),
            _ => {
                return directed(direction, |of_source| {
                    let data = self.data_address(of_source, address, &mut ask);
                    let other = ask(self, address(if of_source { 2 } else { 1 }));
                    let managing = self.wlan_byte(0, TYPE, 0);
                    let is_data = self.wlan_byte(0, TYPE, DATA);
                    Formula::any(vec![Formula::all(vec![is_data, data]), Formula::all(vec![managing, other])])
                });
            }
        };
        let number = match direction {
            Direction::Address(number) => number.into(),
            Direction::Receiver => 1,
            _ => 2,
        };
        Formula::all(vec![guard, ask(self, address(number))])
    }

    /// Tests the source or destination of a data frame, which may be relayed on either side.
    fn data_address(
        &mut self,
        of_source: bool,
        address: impl Fn(usize) -> Place,
        ask: &mut impl FnMut(&mut Self, Place) -> Formula,
    ) -> Formula {
        let mut ways = |bits: u32, wanted: u32, number: usize| {
            let relayed = self.wlan_byte(1, bits, wanted);
            Formula::all(vec![relayed, ask(self, address(number))])
        };
        let any = if of_source {
            let both = TO_DS | FROM_DS;
            vec![ways(FROM_DS, 0, 2), ways(both, FROM_DS, 3), ways(both, both, 4)]
        } else {
            vec![ways(TO_DS, 0, 1), ways(TO_DS, TO_DS, 3)]
        };
        Formula::any(any)
    }
}
