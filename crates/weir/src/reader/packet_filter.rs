//! Which packets of a file are returned.

use std::sync::Arc;

use weir_filter::interpret::{Metadata, Packet};
use weir_savefile::ByteOrder;
use weir_savefile::record::Record;

use crate::filter::{FileFilter, FilterError, Matcher};
use crate::{Direction, FileInterface};

/// The filter of a file, by interface.
#[derive(Debug)]
pub(super) struct PacketFilter {
    filter: FileFilter,
    /// Indexed by interface; created with its first packet.
    by_interface: Vec<Option<InterfaceFilter>>,
    /// Packets that did not match.
    pub(super) filtered: u64,
}

#[derive(Debug)]
struct InterfaceFilter {
    matcher: Arc<Matcher>,
    /// Packets lost before packets that did not match; reported with the next match.
    lost: u64,
}

impl PacketFilter {
    pub(super) fn new(filter: FileFilter) -> Self {
        Self { filter, by_interface: Vec::new(), filtered: 0 }
    }

    /// Returns whether a packet matches; `None`: call [`prepare`](Self::prepare) for its interface first. Interface
    /// numbers continue across sections.
    #[inline]
    pub(super) fn wants(&mut self, packet: &Record<'_>) -> Option<bool> {
        let entry = self.by_interface.get_mut(packet.interface as usize)?.as_mut()?;
        let direction = packet.flags.and_then(Direction::of_flags);
        let meta = Metadata::of_direction(direction.map(|direction| direction == Direction::Out));
        let asked = Packet { data: packet.data, length: packet.original_len, meta };
        let wanted = entry.matcher.matches(&asked);
        if !wanted {
            entry.lost += packet.dropcount;
            self.filtered += 1;
        }
        Some(wanted)
    }

    /// Takes the number of packets lost before packets of this interface that did not match.
    #[inline]
    pub(super) fn take_lost(&mut self, interface: u32) -> u64 {
        let entry = self.by_interface.get_mut(interface as usize).and_then(Option::as_mut);
        entry.map_or(0, |entry| std::mem::take(&mut entry.lost))
    }

    /// Returns whether [`take_lost`](Self::take_lost) would return any.
    #[inline]
    pub(super) fn has_lost(&self, interface: u32) -> bool {
        matches!(self.by_interface.get(interface as usize), Some(Some(entry)) if entry.lost > 0)
    }

    /// Compiles the filter for the interface `number` of `interfaces`. Returns whether none of its packets can match.
    #[cold]
    pub(super) fn prepare(
        &mut self,
        number: u32,
        interfaces: &[FileInterface],
        order: ByteOrder,
    ) -> Result<bool, FilterError> {
        let number = number as usize;
        if self.by_interface.len() <= number {
            self.by_interface.resize_with(number + 1, || None);
        }
        self.filter.expect(interfaces.iter().map(|interface| interface.link_type));
        let interface = &interfaces[number];
        let matcher = self.filter.program(interface.link_type, order != ByteOrder::NATIVE);
        let named = |error: FilterError| match &interface.name {
            Some(name) => error.on(name),
            None => error,
        };
        let matcher = matcher.map_err(named)?;
        let never = matcher.never_matches();
        self.by_interface[number] = Some(InterfaceFilter { matcher, lost: 0 });
        Ok(never)
    }
}
