//! Which packets are taken, and how much of each: `-c`, `--from`, `--to`, `-s`.

use std::borrow::Cow;

use weir::reader::Meter;
use weir::{FileInterface, Packet};

use super::ReadArgs;
use super::when::{self, When};

/// Judges packets.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Packets still to be taken.
    left: Option<u64>,
    from: Option<When>,
    to: Option<When>,
    /// Of all files: they know when the first packet was, also if a filter did not want it.
    meters: Vec<Meter>,
    /// Nanoseconds since the epoch; known from the first packet on.
    window: Option<(u64, u64)>,
    /// Times of the earliest and the latest packet, if they are compared with a window.
    span: Option<(u64, u64)>,
    /// One was in the window.
    any: bool,
    snap_len: Option<u32>,
}

/// What becomes of a packet.
#[derive(Debug)]
pub(crate) enum Verdict<'a> {
    /// It is wanted.
    Take(Packet<'a>),
    /// It is wanted, and no other after it.
    Last(Packet<'a>),
    /// It is not wanted.
    Leave,
}

impl Choice {
    /// `meters`: of the files whose packets are judged.
    pub(crate) fn new(args: &ReadArgs, meters: Vec<Meter>) -> Self {
        let snap_len = args.snap_len;
        Self {
            left: args.count,
            from: args.from,
            to: args.to,
            meters,
            window: None,
            span: None,
            any: false,
            snap_len,
        }
    }

    /// Times of the earliest and the latest packet, where there were some and none was in the window.
    pub(crate) fn missed(&self) -> Option<(u64, u64)> {
        self.span.filter(|_| !self.any)
    }

    /// Every packet is taken.
    pub(crate) fn takes_all(&self) -> bool {
        self.left.is_none() && self.from.is_none() && self.to.is_none()
    }

    /// Every packet is taken, with all its bytes.
    pub(crate) fn takes_whole(&self) -> bool {
        self.takes_all() && self.snap_len.is_none()
    }

    #[inline]
    pub(crate) fn judge<'a>(&mut self, mut packet: Packet<'a>) -> Verdict<'a> {
        if self.from.is_some() || self.to.is_some() {
            let (from, to) = *self.window.get_or_insert_with(|| {
                let first = self.meters.iter().filter_map(Meter::began).min().unwrap_or(packet.timestamp);
                when::window(self.from, self.to, first)
            });
            let (earliest, latest) = self.span.get_or_insert((packet.timestamp, packet.timestamp));
            (*earliest, *latest) = ((*earliest).min(packet.timestamp), (*latest).max(packet.timestamp));
            // Files need not be in order of time, so the first packet behind the window does not end it.
            if packet.timestamp < from || packet.timestamp >= to {
                return Verdict::Leave;
            }
            self.any = true;
        }
        if let Some(len) = self.snap_len {
            packet.data = &packet.data[..packet.data.len().min(len as usize)];
        }
        match &mut self.left {
            None => Verdict::Take(packet),
            Some(left) => {
                *left -= 1;
                if *left == 0 { Verdict::Last(packet) } else { Verdict::Take(packet) }
            }
        }
    }

    /// An interface as its packets will be: with the snap length that was asked for.
    pub(crate) fn described<'a>(&self, interface: &'a FileInterface) -> Cow<'a, FileInterface> {
        match self.snap_len {
            Some(len) if interface.snap_len != len => {
                Cow::Owned(FileInterface { snap_len: len, ..interface.clone() })
            }
            _ => Cow::Borrowed(interface),
        }
    }
}
