//! What a file says of a packet beside what everybody asks: comments, hashes, verdicts.

use crate::ByteOrder;
use crate::options::{self, Options};
use crate::record::{DIRECTION, DROP_COUNT, FLAGS, QUEUE};

/// `epb_packetid`, 8 bytes.
const PACKET_ID: u16 = 5;
/// `epb_hash`: the algorithm, then bytes.
const HASH: u16 = 3;
/// `epb_verdict`: who has spoken, then what.
const VERDICT: u16 = 7;
/// Of verdicts, those of eBPF in tc and in XDP: 8 bytes.
const VERDICT_NUMBERS: [u8; 2] = [1, 2];
/// `epb_processid_threadid`, twice 4 bytes.
const PROCESS: u16 = 8;

/// The options of a record, in the byte order of their file, where there are some that a [`Record`](crate::record::Record)
/// has no field for. By them nothing is lost when a record is written anew.
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
    /// Of this list of options.
    #[inline]
    pub fn new(order: ByteOrder, list: &'a [u8]) -> Self {
        Self { list, order, timeless: false }
    }

    /// Of a packet that has no time: a Simple Packet Block.
    pub fn of_no_time() -> Self {
        Self { timeless: true, ..Self::default() }
    }

    /// Whether the file says nothing of the kind.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the packet has no time, rather than one that is 0.
    #[inline]
    pub fn is_timeless(&self) -> bool {
        self.timeless
    }

    /// Bytes of the list.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.list
    }

    /// The same, said by other bytes: a copy of [`as_bytes`](Self::as_bytes).
    #[must_use]
    pub fn moved<'b>(&self, list: &'b [u8]) -> Notes<'b> {
        Notes { list, order: self.order, timeless: self.timeless }
    }

    /// Texts for people, those that are UTF-8.
    #[inline]
    pub fn comments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let options = Options::in_order(self.order, self.list).map_while(Result::ok);
        options
            .filter(|option| option.code == options::COMMENT)
            .filter_map(|option| std::str::from_utf8(option.value).ok())
    }

    /// `epb_flags` without the direction: how the packet was received, and errors of the link layer.
    pub(crate) fn flags(&self) -> u32 {
        let mut options = Options::in_order(self.order, self.list).map_while(Result::ok);
        let flags =
            options.find(|option| option.code == FLAGS).and_then(|option| option.value.try_into().ok());
        flags.map_or(0, |flags| self.order.u32(flags) & !DIRECTION)
    }

    /// Appends all but what [`RecordHeader`](crate::record::RecordHeader) says, in native byte order. What is known to its
    /// maker only is left out, where its bytes would have to be turned.
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
