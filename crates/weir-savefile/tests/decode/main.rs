//! What the decoder finds in blocks and records made by hand, in both byte orders: each field, and each limit of what is
//! accepted. Whole files are read by the tests of `weir`.
#![forbid(unsafe_code)]

mod classic;
mod foreign;
mod pcapng;
mod plausible;

use weir_savefile::ByteOrder;
use weir_savefile::decode::{Decoder, Fault, Found, Step};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// Bytes with numbers in one byte order.
#[derive(Clone, Debug)]
struct Bytes(ByteOrder, Vec<u8>);

impl Bytes {
    fn new(order: ByteOrder) -> Self {
        Self(order, Vec::new())
    }

    fn number<const N: usize>(mut self, big: [u8; N]) -> Self {
        match self.0 {
            ByteOrder::Big => self.1.extend(big),
            ByteOrder::Little => self.1.extend(big.iter().rev()),
        }
        self
    }

    fn u16(self, number: u16) -> Self {
        self.number(number.to_be_bytes())
    }

    fn u32(self, number: u32) -> Self {
        self.number(number.to_be_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.number(number.to_be_bytes())
    }

    fn words<const N: usize>(self, words: [u32; N]) -> Self {
        words.into_iter().fold(self, Self::u32)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.1.extend(bytes);
        self
    }

    fn padded(mut self, bytes: &[u8]) -> Self {
        self.1.extend(bytes);
        self.1.resize(self.1.len().next_multiple_of(4), 0);
        self
    }

    fn option(self, code: u16, value: &[u8]) -> Self {
        self.u16(code).u16(u16::try_from(value.len()).expect("a short option")).padded(value)
    }

    /// Makes it the body of a block.
    fn block(self, kind: u32) -> Vec<u8> {
        let length = u32::try_from(self.1.len() + 12).expect("a short block");
        Self::new(self.0).words([kind, length]).bytes(&self.1).u32(length).1
    }
}

/// Takes the item that is all of `bytes`.
fn step<'a>(decoder: &mut Decoder, bytes: &'a [u8]) -> Result<Found<'a>, Fault> {
    match decoder.step(bytes)? {
        Step::Found { used, found } => {
            assert_eq!(used, bytes.len());
            Ok(found)
        }
        Step::Need(need) => panic!("{need} bytes instead of {}", bytes.len()),
    }
}

/// Checks that each beginning of `item` needs more bytes, and never more than the item has.
fn needs_all_of(decoder: &Decoder, item: &[u8]) {
    for end in 0..item.len() {
        match decoder.clone().step(&item[..end]) {
            Ok(Step::Need(need)) => assert!((end + 1..=item.len()).contains(&need), "{need} after {end}"),
            other => panic!("{other:?} after {end} of {} bytes", item.len()),
        }
    }
}
