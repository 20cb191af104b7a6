//! Less common per-packet information in a file: comments, hashes, verdicts.

use crate::options::{self, Options};
use crate::options::{DIRECTION, DROP_COUNT, FLAGS, QUEUE};
use crate::{ByteOrder, padding};

/// `epb_packetid`, 8 bytes.
const PACKET_ID: u16 = 5;
/// `epb_hash`: the algorithm, then the hash.
const HASH: u16 = 3;
/// `epb_verdict`: the kind of verdict, then its value.
const VERDICT: u16 = 7;
/// Kinds of verdict from eBPF in tc and XDP, whose value is an 8-byte number.
const VERDICT_NUMBERS: [u8; 2] = [1, 2];
/// `epb_processid_threadid`, two 4-byte numbers.
const PROCESS: u16 = 8;

/// The options of a record, in the byte order of their file, if some of them have no field in
/// [`Record`](crate::record::Record). They preserve all information when a record is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notes<'a> {
    list: &'a [u8],
    order: ByteOrder,
    timeless: bool,
}

impl Default for Notes<'_> {
    fn default() -> Self {
        Self { list: &[], order: ByteOrder::NATIVE, timeless: false }
    }
}

impl<'a> Notes<'a> {
    /// Wraps a list of options.
    #[inline]
    pub fn new(order: ByteOrder, list: &'a [u8]) -> Self {
        Self { list, order, timeless: false }
    }

    /// Returns the notes of a packet without a timestamp, from a Simple Packet Block.
    pub fn of_no_time() -> Self {
        Self { timeless: true, ..Self::default() }
    }

    /// Returns whether there are no options.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether the packet has no timestamp, as opposed to a timestamp of 0.
    #[inline]
    pub fn is_timeless(&self) -> bool {
        self.timeless
    }

    /// Returns the bytes of the list.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.list
    }

    /// Returns the same notes backed by `list`, a copy of [`as_bytes`](Self::as_bytes).
    #[must_use]
    pub fn moved<'b>(&self, list: &'b [u8]) -> Notes<'b> {
        Notes { list, order: self.order, timeless: self.timeless }
    }

    /// Returns the same notes without some options: `keep` decides by the code. They are put into `list`.
    pub fn only<'b>(&self, mut keep: impl FnMut(u16) -> bool, list: &'b mut Vec<u8>) -> Notes<'b> {
        for option in Options::in_order(self.order, self.list).map_while(Result::ok) {
            if keep(option.code) {
                let len = u16::try_from(option.value.len()).expect("it was read from 16 bits");
                list.extend(
                    [option.code, len]
                        .map(|number| self.order.u16(number.to_ne_bytes()))
                        .map(u16::to_ne_bytes)
                        .concat(),
                );
                list.extend_from_slice(option.value);
                list.resize(list.len() + padding(option.value.len()), 0);
            }
        }
        self.moved(list)
    }

    /// Returns the comments that are valid UTF-8.
    #[inline]
    pub fn comments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let options = Options::in_order(self.order, self.list).map_while(Result::ok);
        options
            .filter(|option| option.code == options::COMMENT)
            .filter_map(|option| std::str::from_utf8(option.value).ok())
    }

    /// Returns `epb_flags` without the direction: how the packet was received, and link-layer errors.
    pub(crate) fn flags(&self) -> u32 {
        let mut options = Options::in_order(self.order, self.list).map_while(Result::ok);
        let flags =
            options.find(|option| option.code == FLAGS).and_then(|option| option.value.try_into().ok());
        flags.map_or(0, |flags| self.order.u32(flags) & !DIRECTION)
    }

    /// Appends all options that [`RecordHeader`](crate::record::RecordHeader) does not cover, in native byte order. If
    /// the byte order differs, options whose layout is private to their writer are left out.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        let turns = self.order != ByteOrder::NATIVE;
        for option in Options::in_order(self.order, self.list).map_while(Result::ok) {
            let (code, value) = (option.code, option.value);
            match (code, value) {
                (FLAGS | DROP_COUNT | QUEUE, _) => {}
                (PROCESS, [process @ .., a, b, c, d]) if turns => {
                    let process: Vec<u8> = process.iter().rev().copied().collect();
                    options::append_turned(out, code, &process, &[*a, *b, *c, *d], &[]);
                }
                (VERDICT, [kind, number @ ..]) if turns && VERDICT_NUMBERS.contains(kind) => {
                    options::append_turned(out, code, &[*kind], number, &[]);
                }
                _ => options::append_copy(out, self.order, option, &[HASH, VERDICT], &[PACKET_ID]),
            }
        }
    }
}
