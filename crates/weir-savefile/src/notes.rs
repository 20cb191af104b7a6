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
                self.put(option.code, option.value, list);
            }
        }
        self.moved(list)
    }

    /// Returns the same notes with the process that the packet belongs to (`epb_processid_threadid`, without a thread), put into
    /// `list`; with the same notes in it if they name one already.
    pub fn with_process<'b>(&self, process: u32, list: &'b mut Vec<u8>) -> Notes<'b> {
        let mut has = false;
        self.only(|code| (has |= code == PROCESS, true).1, list);
        if !has {
            self.put(PROCESS, &[self.order.u32(process.to_ne_bytes()).to_ne_bytes(), [0; 4]].concat(), list);
        }
        self.moved(list)
    }

    /// Returns the same notes with one more comment, put into `list`. A comment that is too long is truncated.
    pub fn with_comment<'b>(&self, text: &str, list: &'b mut Vec<u8>) -> Notes<'b> {
        self.only(|_| true, list);
        let longest = text.len().min(usize::from(u16::MAX));
        let end = (0..=longest).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.put(options::COMMENT, &text.as_bytes()[..end], list);
        self.moved(list)
    }

    /// Returns the number of the process that the packet belongs to, if the file says so.
    pub fn process(&self) -> Option<u32> {
        let mut options = Options::in_order(self.order, self.list).map_while(Result::ok);
        self.order.u32_at(options.find(|option| option.code == PROCESS)?.value, 0)
    }

    /// Appends an option in the byte order of the notes. The value is at most as long as an option can be.
    fn put(&self, code: u16, value: &[u8], list: &mut Vec<u8>) {
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        let head = [code, len].map(|number| self.order.u16(number.to_ne_bytes()).to_ne_bytes());
        list.extend_from_slice(&head.concat());
        list.extend_from_slice(value);
        list.resize(list.len() + padding(value.len()), 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_a_comment_are_added_in_the_order_of_the_notes() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
            let notes = Notes::new(order, &[]).with_comment("one", &mut first);
            assert_eq!(notes.process(), None);
            let notes = notes.with_process(4711, &mut second);
            assert_eq!((notes.comments().collect::<Vec<_>>(), notes.process()), (vec!["one"], Some(4711)));
            assert_eq!(notes.with_process(812, &mut third).process(), Some(4711), "what was there stays");
            // As it is written.
            let mut native = Vec::new();
            notes.append_to(&mut native);
            let native = Notes::new(ByteOrder::NATIVE, &native);
            assert_eq!((native.comments().next(), native.process()), (Some("one"), Some(4711)), "{order}");
            let process = Options::new(native.list).map(Result::unwrap).find(|option| option.code == PROCESS);
            assert_eq!(process.unwrap().value, [4711u32.to_ne_bytes(), [0; 4]].concat());
        }
    }
}
