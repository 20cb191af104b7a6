//! Selects packets and their lengths: `-c`, `--from`, `--to`, `-s`.

use std::borrow::Cow;

use weir::reader::Meter;
use weir::{FileInterface, Packet};

use super::when::{self, When};

/// What is selected; by default, everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Number of packets.
    pub(crate) count: Option<u64>,
    pub(crate) from: Option<When>,
    pub(crate) to: Option<When>,
    pub(crate) snap_len: Option<u32>,
}

/// Decides on each packet.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Number of packets still to be selected.
    left: Option<u64>,
    from: Option<When>,
    to: Option<When>,
    /// Meters of all files, which know the time of the first packet even if the filter rejected it.
    meters: Vec<Meter>,
    /// Nanoseconds since the epoch, set at the first packet.
    window: Option<(u64, u64)>,
    /// Times of the earliest and latest packet, if they are compared with a window.
    span: Option<(u64, u64)>,
    /// Whether any packet was in the window.
    any: bool,
    snap_len: Option<u32>,
}

/// The decision on a packet.
#[derive(Debug)]
pub(crate) enum Verdict<'a> {
    /// Selected.
    Take(Packet<'a>),
    /// Selected, as the last one.
    Last(Packet<'a>),
    /// Not selected.
    Leave,
}

impl Choice {
    /// `meters`: those of all files.
    pub(crate) fn new(limits: Limits, meters: Vec<Meter>) -> Self {
        let Limits { count, from, to, snap_len } = limits;
        Self { left: count, from, to, meters, window: None, span: None, any: false, snap_len }
    }

    /// Returns the times of the earliest and latest packet, if there were packets but none in the window.
    pub(crate) fn missed(&self) -> Option<(u64, u64)> {
        self.span.filter(|_| !self.any)
    }

    /// Returns whether the window ends before it begins.
    pub(crate) fn is_empty(&self) -> bool {
        self.window.is_some_and(|(from, to)| to <= from)
    }

    /// Returns whether as many packets are selected as were wanted.
    pub(crate) fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns whether a packet came after the window: in a file that grows, those in it have come, too.
    pub(crate) fn is_past(&self) -> bool {
        matches!((self.window, self.span), (Some((_, to)), Some((_, latest))) if latest >= to)
    }

    /// Returns whether every packet is selected.
    pub(crate) fn takes_all(&self) -> bool {
        self.left.is_none() && self.from.is_none() && self.to.is_none()
    }

    /// Returns whether every packet is selected, with all its bytes.
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
            // Files may be unsorted, so the first packet after the window does not end it.
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

    /// Returns the interface with the requested snap length, as its packets will have.
    pub(crate) fn described<'a>(&self, interface: &'a FileInterface) -> Cow<'a, FileInterface> {
        match self.snap_len {
            Some(len) if interface.snap_len != len => {
                Cow::Owned(weir::with!(interface.clone(), snap_len = len))
            }
            _ => Cow::Borrowed(interface),
        }
    }
}
