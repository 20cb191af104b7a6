//! A packet socket and its ring.

use std::ffi::c_int;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use weir::parts::as_in_the_kernel;
use weir_filter::cbpf::{self, Program as Classic, Rules};
use weir_filter::interpret::{Metadata, Packet as Seen};
use weir_sys::CallError;
use weir_sys::packet::{
    FilterPlace, Instruction, PacketRing, Promiscuous, RingOptions, SocketFilter, Statistics,
};

use super::link_header::LinkHeader;
use super::{IN, OUT, time};
use crate::abi::*;
use crate::filter::Filter;
use crate::savefile::Packet;

/// A packet socket, and the packet that C has from it.
pub(super) struct Socket {
    ring: PacketRing,
    place: FilterPlace,
    _promiscuous: Option<Promiscuous>,
    link_header: LinkHeader,
    snap_len: usize,
    pub(super) nanoseconds: bool,
    /// Whether the reader wants only the lengths of packets.
    pub(super) counting: bool,
    /// `PCAP_D_` number.
    pub(super) direction: c_int,
    /// The EtherType of all packets, if they are to have one, as in the frame: received ones only.
    protocol: Option<[u8; 2]>,
    /// Whether the kernel runs the filter, for packets from this block on.
    filtered_from: Option<u64>,
    /// Whether a filter was set.
    filters: bool,
    /// Packets that are not for C.
    rejected: u64,
    /// Packets that C got.
    delivered: u64,
    /// The bytes of the packet that C has.
    data: Vec<u8>,
}

impl Socket {
    pub(super) fn open(
        options: &RingOptions,
        promiscuous: bool,
        link_type: c_int,
        nanoseconds: bool,
        protocol: Option<[u8; 2]>,
    ) -> Result<Self, CallError> {
        let ring = PacketRing::open(options)?;
        let interface = options.interface.filter(|_| promiscuous);
        Ok(Self {
            place: ring.filter_place()?,
            ring,
            _promiscuous: interface.map(Promiscuous::new).transpose()?,
            link_header: LinkHeader::of(link_type),
            snap_len: options.snap_len as usize,
            nanoseconds,
            counting: false,
            direction: 0,
            protocol,
            filtered_from: None,
            filters: false,
            rejected: 0,
            delivered: 0,
            data: Vec::new(),
        })
    }

    /// Takes the next packet that `filter` accepts into `to`; returns whether there was one in the
    /// block that is read. Looks at one block only, so that a flood of others does not keep it here.
    #[inline]
    pub(super) fn next(&mut self, filter: Option<&Filter>, to: &mut Packet) -> bool {
        let mut found = false;
        let Some(block) = self.ring.ready() else { return false };
        let Self {
            ring,
            link_header,
            snap_len,
            nanoseconds,
            counting,
            direction,
            protocol,
            filtered_from,
            rejected,
            delivered,
            data,
            ..
        } = self;
        let wanted = if *counting { 0 } else { *snap_len };
        let filter = filter.filter(|_| filtered_from.is_none_or(|from| block.number < from));
        ring.walk(|packet| {
            if found {
                return ControlFlow::Break(());
            }
            let there = match *direction {
                IN => !packet.sent(),
                OUT => packet.sent(),
                _ => true,
            };
            let other = |protocol| packet.sent() || protocol != packet.origin.protocol();
            if !there || protocol.is_some_and(other) {
                *rejected += 1;
                return ControlFlow::Continue(());
            }
            // A filter sees a frame as in the kernel, with the stripped tag beside it.
            if *link_header == LinkHeader::Own
                && filter.is_some_and(|filter| !filter.accepts(&as_in_the_kernel(packet)))
            {
                *rejected += 1;
                return ControlFlow::Continue(());
            }
            if *link_header != LinkHeader::Own
                && let Some(filter) = filter
            {
                let length = link_header.lay_for_filter(packet, data);
                if !filter.accepts(&Seen { data, length, meta: Metadata::default() }) {
                    *rejected += 1;
                    return ControlFlow::Continue(());
                }
            }
            let length = link_header.lay(packet, wanted, data);
            to.header = PcapPkthdr {
                ts: time(packet.timestamp, *nanoseconds),
                caplen: u32::try_from(data.len()).unwrap_or(u32::MAX),
                len: length,
            };
            found = true;
            *delivered += 1;
            ControlFlow::Continue(())
        });
        to.data = self.data.as_ptr();
        found
    }

    /// Has the kernel run the filter, if it can; otherwise it accepts every packet.
    pub(super) fn set_filter(&mut self, program: Option<&Classic>) {
        self.filters = true;
        let takes =
            |program: &&Classic| self.link_header == LinkHeader::Own && program.check(Rules::Kernel).is_ok();
        let there = program.filter(takes).map(|program| {
            let instructions = program.instructions.iter();
            let one =
                |one: &cbpf::Instruction| Instruction { code: one.code, jt: one.jt, jf: one.jf, k: one.k };
            instructions.map(one).collect::<Vec<_>>()
        });
        if let Some(there) = there
            && self.place.put(SocketFilter::Classic(&there)).is_ok()
        {
            // The kernel may have put packets into the block that is open before it had the filter.
            self.filtered_from = Some(self.ring.look_ahead(0).1 + 1);
            return;
        }
        self.filtered_from = None;
        // If even this fails, the previous filter stays, and the new one cannot get back what it rejects.
        let _ = self.place.put(SocketFilter::All);
    }

    pub(super) fn set_link_type(&mut self, link_type: c_int) {
        self.link_header = LinkHeader::of(link_type);
    }

    /// Returns whether a filter runs here, because the kernel does not take it.
    pub(super) fn filters_here(&self) -> bool {
        self.filters && self.filtered_from.is_none()
    }

    pub(super) fn has_metadata(&self) -> bool {
        self.link_header == LinkHeader::Own
    }

    pub(super) fn counts(&mut self) -> Result<Statistics, String> {
        self.ring.statistics().map_err(|error| error.to_string())
    }

    /// Counts what became of each packet.
    pub(super) fn all_counts(&mut self) -> Result<Counts, String> {
        let Statistics { packets, drops } = self.counts()?;
        let (rejected, delivered) = (self.rejected, self.delivered);
        let captured = packets.saturating_sub(drops);
        Ok(Counts { seen: packets, lost: drops, captured, rejected, delivered, ..Counts::default() })
    }

    pub(super) fn health(&self) -> Result<(), CallError> {
        self.ring.health()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
