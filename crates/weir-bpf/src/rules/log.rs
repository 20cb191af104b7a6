//! Logged packets, which the programs write into a ring buffer.

use std::io;
use std::mem::take;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use weir_sys::CallError;

use super::Fate;
use super::actions::fate_of;
use crate::layout::{direction, get, log_record, log_sizes, no_number};

/// What is logged, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logging {
    /// Bytes of records that wait to be read; rounded up to a power of two. A record has 128, 1600 or 9728.
    pub bytes: u32,
    /// The most bytes of a packet that are kept.
    pub snap: u32,
    /// Whether all packets are logged that do not go on, besides those of rules that say so.
    pub others: bool,
}

impl Logging {
    /// Returns the size of the ring buffer.
    pub(super) fn ring(self) -> u32 {
        /// A multiple of any page's size, and room for a few of the largest records.
        const LEAST: u32 = 1 << 16;
        const MOST: u32 = 1 << 30;
        self.bytes.clamp(LEAST, MOST).next_power_of_two()
    }

    /// Returns how many bytes of a packet a record has room for.
    pub(super) fn most(self) -> u32 {
        let room = log_sizes::LOG_LARGE.0 as usize - size_of::<log_record>();
        self.snap.min(u32::try_from(room).expect("a few pages"))
    }
}

/// The log of loaded rules.
#[derive(Debug)]
pub struct Log(pub(super) MapHandle);

/// It is readable, for `poll(2)`, when something is logged.
impl AsFd for Log {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A logged packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The rule that logs it, or has decided on it; `None`: an inserted exact rule.
    pub rule: Option<usize>,
    /// Whether an exact rule has decided on it, which `rule` has learned.
    pub by_learned: bool,
    /// What happens to it by this rule.
    pub fate: Fate,
    /// Whether it is sent.
    pub sent: bool,
    /// When it came, by `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// Its length on the wire.
    pub length: u32,
    /// Its bytes from the Ethernet header on, with a VLAN tag that was beside it.
    pub bytes: Vec<u8>,
}

impl Log {
    /// Returns a reader. There can be one at a time.
    ///
    /// # Errors
    ///
    /// Memory is short.
    pub fn reader(&self) -> Result<LogReader, CallError> {
        let read = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&read);
        let mut builder = RingBufferBuilder::new();
        let added = builder.add(&self.0, move |bytes: &[u8]| {
            to.lock().unwrap_or_else(PoisonError::into_inner).push(LogRecord::from_bytes(bytes));
            0
        });
        added.map_err(failed)?;
        Ok(LogReader { ring: Mutex::new(builder.build().map_err(failed)?), read })
    }
}

/// Reads what is logged.
#[derive(Debug)]
pub struct LogReader {
    /// For [`Sync`] only.
    ring: Mutex<RingBuffer<'static>>,
    read: Arc<Mutex<Vec<LogRecord>>>,
}

impl LogReader {
    /// Waits until something is logged, but no longer than `timeout`, and returns it in order.
    ///
    /// # Errors
    ///
    /// `EINTR`: a signal came.
    pub fn read(&mut self, timeout: Duration) -> Result<Vec<LogRecord>, CallError> {
        self.ring.get_mut().unwrap_or_else(PoisonError::into_inner).poll(timeout).map_err(failed)?;
        Ok(self.taken())
    }

    /// Returns what is logged, in order, but no more than `most` packets. Does not wait.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the log.
    pub fn take(&mut self, most: usize) -> Result<Vec<LogRecord>, CallError> {
        let taken = self.ring.get_mut().unwrap_or_else(PoisonError::into_inner).consume_raw_n(most);
        if taken < 0 {
            let error = io::Error::from_raw_os_error(-taken);
            return Err(CallError::new("read the log of rules", error));
        }
        Ok(self.taken())
    }

    fn taken(&mut self) -> Vec<LogRecord> {
        take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn failed(error: libbpf_rs::Error) -> CallError {
    CallError::new("read the log of rules", io::Error::other(error))
}

impl LogRecord {
    fn from_bytes(record: &[u8]) -> Self {
        /// Before a VLAN tag.
        const ADDRESSES: usize = 12;
        let rule = get!(record, log_record.rule);
        let captured = get!(record, log_record.captured) as usize;
        let mut bytes = record[size_of::<log_record>()..][..captured].to_vec();
        let tag = get!(record, log_record.tag);
        if tag >> 32 != 0 && captured >= ADDRESSES {
            let [.., a, b, c, d] = tag.to_be_bytes();
            bytes.splice(ADDRESSES..ADDRESSES, [a, b, c, d]);
        }
        Self {
            rule: (rule != no_number::NO_RULE.0).then_some(rule as usize),
            by_learned: get!(record, log_record.by_exact) != 0,
            fate: fate_of(u32::from(get!(record, log_record.fate)), get!(record, log_record.interface)),
            sent: u32::from(get!(record, log_record.direction)) == direction::SENT.0,
            time: get!(record, log_record.time),
            length: get!(record, log_record.length),
            bytes,
        }
    }
}
