//! The option list at the end of a pcapng block (draft, section 3.5).

use crate::{ByteOrder, padding};

/// Ends a list. Writers must include it; readers must also accept the end of the block instead.
pub const END: u16 = 0;
/// `opt_comment`, a comment in any block.
pub const COMMENT: u16 = 1;

/// `epb_flags`, 4 bytes: bits 0 and 1 hold the direction, [`INBOUND`](crate::record::INBOUND) or [`OUTBOUND`](crate::record::OUTBOUND).
pub const FLAGS: u16 = 2;
/// `epb_dropcount`, 8 bytes: packets lost on this interface and queue since the previous record.
pub const DROP_COUNT: u16 = 4;
/// `epb_queue`, 4 bytes: the receive queue of the packet.
pub const QUEUE: u16 = 6;

/// The bits of `epb_flags` that hold the direction.
pub const DIRECTION: u32 = 0b11;

/// Custom options, of any block (draft, section 3.5.1): text or bytes after the number of the organisation that defined
/// them. Each has a variant that must not be copied to another file.
const CUSTOM_TEXT: u16 = 2988;
const CUSTOM_BYTES: u16 = 2989;
const CUSTOM_STAYS: [u16; 2] = [19372, 19373];

/// Length of the code and length fields in front of every value, two bytes each.
const HEAD: usize = 4;

/// An option, its value without the padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Option code. All codes but [`END`] and [`COMMENT`] depend on the block type.
    pub code: u16,
    /// The bytes in the block.
    pub value: &'a [u8],
}

/// An option is longer than the rest of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an option is longer than its block")]
pub struct Overrun;

/// An iterator over an option list. It ends at [`END`], at the end of the bytes or after an error.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Options<'a> {
    /// Walks `bytes`, the part of a block between its fixed part and its trailing length.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::in_order(ByteOrder::NATIVE, bytes)
    }

    /// Walks a list of this byte order. Values are not converted.
    #[inline]
    pub fn in_order(order: ByteOrder, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, order }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<RawOption<'a>, Overrun>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        let Some((&[c0, c1, l0, l1], rest)) = rest.split_first_chunk::<HEAD>() else {
            return Some(Err(Overrun));
        };
        let code = self.order.u16([c0, c1]);
        if code == END {
            return None;
        }
        let len = usize::from(self.order.u16([l0, l1]));
        let Some((value, rest)) = rest.split_at_checked(len) else {
            return Some(Err(Overrun));
        };
        let Some((_, rest)) = rest.split_at_checked(padding(len)) else {
            return Some(Err(Overrun));
        };
        self.rest = rest;
        Some(Ok(RawOption { code, value }))
    }
}

/// Appends an option. A value that is too long is truncated.
pub(crate) fn append(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&code.to_ne_bytes());
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + padding(value.len()), 0);
}

/// Appends an option in native byte order, if it may be copied to another file. If its own byte order differs, only
/// known options can be converted: those in `bytes` have no byte order, and those in `numbers` are byte-swapped.
pub(crate) fn append_copy(
    out: &mut Vec<u8>,
    order: ByteOrder,
    RawOption { code, value }: RawOption<'_>,
    bytes: &[u16],
    numbers: &[u16],
) {
    match code {
        _ if CUSTOM_STAYS.contains(&code) => {}
        _ if order == ByteOrder::NATIVE || code == COMMENT || bytes.contains(&code) => {
            append(out, code, value)
        }
        CUSTOM_TEXT => {
            let (maker, text) = value.split_at(value.len().min(4));
            append_turned(out, code, &[], maker, text);
        }
        CUSTOM_BYTES => {}
        _ if numbers.contains(&code) => append_turned(out, code, &[], value, &[]),
        _ => {}
    }
}

/// Appends an option with a number that has to be byte-swapped.
pub(crate) fn append_turned(out: &mut Vec<u8>, code: u16, before: &[u8], number: &[u8], behind: &[u8]) {
    let number: Vec<u8> = number.iter().rev().copied().collect();
    append(out, code, &[before, &number, behind].concat());
}

/// Returns the comments in a native-order list that are valid UTF-8.
pub fn comments(list: &[u8]) -> impl Iterator<Item = &str> {
    let options = Options::new(list).map_while(Result::ok).filter(|option| option.code == COMMENT);
    options.filter_map(|option| std::str::from_utf8(option.value).ok())
}

/// Appends a comment to a native-order list. A comment that is too long is truncated.
pub fn append_comment(list: &mut Vec<u8>, text: &str) {
    append_text(list, COMMENT, Some(text));
}

/// Appends a text, if there is one. A text that is too long is truncated between two characters.
pub(crate) fn append_text(out: &mut Vec<u8>, code: u16, text: Option<&str>) {
    if let Some(text) = text {
        let longest = text.len().min(usize::from(u16::MAX));
        let end = (0..=longest).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        append(out, code, &text.as_bytes()[..end]);
    }
}

/// Appends the mark that ends a list.
pub(crate) fn append_end(out: &mut Vec<u8>) {
    append(out, END, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(bytes: &[u8]) -> Vec<Result<u16, Overrun>> {
        Options::new(bytes).map(|option| option.map(|o| o.code)).collect()
    }

    #[test]
    fn values_come_back_without_their_padding() {
        let mut bytes = Vec::new();
        append(&mut bytes, 9, &[1, 2, 3, 4, 5]);
        append(&mut bytes, 10, &[]);
        append_end(&mut bytes);
        append(&mut bytes, 11, b"behind the end");
        let found: Vec<_> = Options::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(
            found,
            [RawOption { code: 9, value: &[1, 2, 3, 4, 5] }, RawOption { code: 10, value: &[] }]
        );
    }

    #[test]
    fn a_list_may_end_with_its_block() {
        let mut bytes = Vec::new();
        append(&mut bytes, 9, &[1, 2, 3, 4]);
        assert_eq!(codes(&bytes), [Ok(9)]);
    }

    #[test]
    fn a_list_stops_after_an_overrun() {
        let mut bytes = Vec::new();
        append(&mut bytes, 9, &[1; 4]);
        append(&mut bytes, 10, &[1; 6]);
        for cut in 1..12 {
            assert_eq!(codes(&bytes[..bytes.len() - cut]), [Ok(9), Err(Overrun)], "{cut} bytes missing");
        }
    }

    #[test]
    fn comments_are_the_texts_among_the_options() {
        let mut list = Vec::new();
        append_comment(&mut list, "one");
        append(&mut list, 9, b"other");
        append(&mut list, COMMENT, &[0xff]);
        append_comment(&mut list, "two");
        assert_eq!(comments(&list).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn long_values_are_cut() {
        let mut bytes = Vec::new();
        append(&mut bytes, 9, &[1; 65_536]);
        append(&mut bytes, 10, &[2; 3]);
        let lengths: Vec<usize> = Options::new(&bytes).map(|option| option.unwrap().value.len()).collect();
        assert_eq!(lengths, [65_535, 3]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "é".repeat(40_000);
        let mut bytes = Vec::new();
        append_text(&mut bytes, COMMENT, Some(&text));
        let option = Options::new(&bytes).next().unwrap().unwrap();
        assert_eq!(option.value.len(), 65_534);
        assert!(std::str::from_utf8(option.value).is_ok());
    }
}
