//! weir's engine: eBPF programs fill a pool, from which this thread takes chunks.

use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use weir::filter_control::FilterControl;
use weir::parts::next_or_rest;
use weir::parts::{CompiledFilter, CompiledForm};
use weir::{
    Capture, Chunk, Direction, Error, ErrorKind, InterfaceWarning, Next, SocketCookie, SourceChoice, Window,
};
use weir_filter::interpret::{Metadata, Packet as Seen, VlanTag};
use weir_packet::ethertype::TAGS_OF_LINUX;
use weir_sys::packet::{Sender, Statistics};

use super::engine::Wish;
use super::maker::Maker;
use super::{GONE, IN, OUT, time};
use crate::abi::*;
use crate::cancel::held;
use crate::filter::Filter;
use crate::savefile::Packet;
use crate::settings::Settings;

/// Bytes of packets that the pool may hold, unless the program says otherwise.
const BUFFER: u64 = 64 << 20;

/// A capture, and the chunk that C has a packet of.
pub(super) struct Pool {
    capture: Capture,
    filter_control: FilterControl,
    /// `None`: the process has threads, and makes its filters itself.
    maker: Option<Maker>,
    /// Where the filter runs, for the report.
    filtered: Filtered,
    /// From this time on, packets have met it in the kernel: nanoseconds since 1970.
    filtered_since: Option<u64>,
    index: u32,
    /// Sends packets.
    pub(super) sender: Sender,
    chunk: Option<Chunk>,
    /// Where the next record of the chunk begins.
    place: usize,
    /// Whether the program waits for the descriptor itself.
    pub(super) polled: bool,
    /// The next chunk, or error, which was met when the last packet of this one was taken.
    ahead: Option<Result<Chunk, String>>,
    /// Packets of other protocols, and those that the filter has rejected here.
    rejected: u64,
    /// Packets of the other direction.
    skipped: u64,
    /// Packets that C got.
    delivered: u64,
    nanoseconds: bool,
    /// Whether packets begin with an Ethernet header.
    ethernet: bool,
    /// `PCAP_D_` number.
    pub(super) direction: c_int,
    /// The EtherType of all packets, if they are to have one: received ones only.
    protocol: Option<u16>,
    /// A tagged frame as the kernel shows it to filters: without the tag.
    untagged: Vec<u8>,
}

/// How many there are in this process.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

impl Drop for Pool {
    fn drop(&mut self) {
        NUMBER.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a filter runs.
#[derive(Debug)]
enum Filtered {
    NoFilter,
    InKernel,
    /// In this process, and why.
    Here(String),
}

impl Pool {
    /// Opens a capture on the interface with this index.
    ///
    /// # Errors
    ///
    /// The source cannot be used; the error says why.
    pub(super) fn open(
        wish: &Wish,
        source: SourceChoice,
        index: u32,
        settings: &Settings,
        snap_len: u32,
        nanoseconds: bool,
    ) -> Result<Self, Error> {
        let name = wish.device.to_string_lossy();
        let sender = Sender::new(index)?;
        // A packet socket does not receive what it sends, either.
        let own = sender.cookie()?;
        let builder = || {
            let builder = Capture::builder().leave_out(SocketCookie(own)).interface(&*name);
            let builder = match &wish.queues {
                Some(queues) => builder.queues(queues.clone()),
                None => builder,
            };
            builder
                .source(source)
                .mode(wish.mode)
                .snap_len(snap_len)
                .promiscuous(settings.promiscuous)
                .by_time(Window::Usual)
        };
        let wanted = u64::try_from(settings.buffer).ok().filter(|&bytes| bytes > 0);
        let capture = match (wish.chunks, wanted) {
            (Some(chunks), _) => builder().chunks(chunks).open(),
            (None, None) => builder().memory(BUFFER).open(),
            (None, Some(bytes)) => match builder().memory(bytes).open() {
                // Not even the smallest pools fit. A program that wants less gets more, as from libpcap.
                Err(error) if error.kind() == ErrorKind::MemoryLimit && bytes < BUFFER => {
                    builder().memory(BUFFER).open()
                }
                opened => opened,
            },
        }?;
        let ethernet = capture.interfaces()[0].link_type == 1;
        let filter_control = capture.filter_control();
        let mut pool = Self {
            maker: Maker::start(&filter_control).ok(),
            filter_control,
            filtered: Filtered::NoFilter,
            filtered_since: None,
            index,
            capture,
            sender,
            chunk: None,
            place: 0,
            polled: false,
            ahead: None,
            rejected: 0,
            skipped: 0,
            delivered: 0,
            nanoseconds,
            ethernet,
            direction: 0,
            protocol: settings.only(),
            untagged: Vec::new(),
        };
        NUMBER.fetch_add(1, Ordering::Relaxed);
        // So the descriptor is not readable at first without a packet, except once a second, when the capture has work to do
        // that a program with a thread of ours would not notice: `Capture::check`.
        pool.ahead = ahead(next_or_rest(&mut pool.capture));
        Ok(pool)
    }

    /// Returns how many pools this process has.
    pub(super) fn number() -> usize {
        NUMBER.load(Ordering::Relaxed)
    }

    /// Takes the next chunk, if there is one. If not, the descriptor is no longer readable: so, if the
    /// program waits for it, this happens as soon as C has the last packet, and not when it asks for another.
    fn look_ahead(&mut self) {
        self.ahead = ahead(held(|| self.capture.try_next()));
    }

    /// Takes the next packet that `filter` accepts into `to`; returns whether there was one in the chunk that is read.
    /// Looks at one chunk only, as [`Socket::next`](super::socket::Socket::next) does.
    #[inline]
    pub(super) fn next(&mut self, filter: Option<&Filter>, to: &mut Packet) -> Result<bool, String> {
        if self.beside(filter, to) {
            return Ok(true);
        }
        self.chunk = None;
        if self.ahead.is_none() {
            self.look_ahead();
        }
        let Some(ahead) = self.ahead.take() else { return Ok(false) };
        (self.chunk, self.place) = (Some(ahead?), 0);
        let found = self.beside(filter, to);
        if !found {
            self.chunk = None;
        }
        Ok(found)
    }

    /// Like [`Self::next`], but the packets taken before stay: only from the same chunk.
    #[inline]
    pub(super) fn beside(&mut self, filter: Option<&Filter>, to: &mut Packet) -> bool {
        loop {
            let Some(chunk) = &self.chunk else { return false };
            let Some((packet, next)) = chunk.packet_from(self.place) else { return false };
            self.place = next;
            let sent = packet.direction == Some(Direction::Out);
            if self.direction == IN && sent || self.direction == OUT && !sent {
                self.skipped += 1;
                continue;
            }
            // Cut to the snap length, a packet may lack what the filter in the kernel has seen.
            let filter = filter.filter(|_| self.filtered_since.is_none_or(|since| packet.timestamp < since));
            if filter.is_some() || self.protocol.is_some() {
                let seen = match self.ethernet {
                    true => seen(&packet, sent, self.index, &mut self.untagged),
                    false => bare(&packet, sent, self.index),
                };
                let other = self.protocol.is_some_and(|only| sent || seen.meta.protocol != only);
                if other || filter.is_some_and(|filter| !filter.accepts(&seen)) {
                    self.rejected += 1;
                    continue;
                }
            }
            to.header = PcapPkthdr {
                ts: time(packet.timestamp, self.nanoseconds),
                caplen: u32::try_from(packet.data.len()).unwrap_or(u32::MAX),
                len: packet.original_len,
            };
            // The chunk stays until a packet of another is taken.
            to.data = packet.data.as_ptr();
            self.delivered += 1;
            if self.polled && next == chunk.bytes().len() {
                self.look_ahead();
            }
            return true;
        }
    }

    /// Has the kernel run the filter, if it can; otherwise it accepts every packet. Packets that it has accepted before
    /// are still there.
    pub(super) fn set_filter(&mut self, filter: &Filter) {
        let put = self.made(filter).and_then(|program| {
            let loaded = program.form == CompiledForm::Programs;
            self.filter_control.put(&[program]).map_err(|error| error.to_string())?;
            Ok(loaded)
        });
        self.filtered_since = match put {
            Ok(true) if self.filter_control.settle().is_ok() => Some(now()),
            _ => None,
        };
        self.filtered = match put {
            Ok(true) => Filtered::InKernel,
            Ok(false) => Filtered::Here("this source has no other place".to_owned()),
            Err(why) => {
                // If even this fails, the previous filter stays, and the new one cannot get back what it rejects.
                let _ = self.filter_control.put(&[every(0)]);
                Filtered::Here(why)
            }
        };
    }

    /// Makes a program: where the right to do so is, or here, which takes a thread of ours for a moment.
    fn made(&self, filter: &Filter) -> Result<CompiledFilter, String> {
        let places = self.filter_control.slots().map_err(|error| error.to_string())?;
        let place = places.first().ok_or("nothing is captured any more")?;
        let there = |program| match &self.maker {
            Some(maker) => maker.make(program),
            None => Err("no process makes filters for this capture".to_owned()),
        };
        let program = filter.program().ok_or_else(|| "it is too long for classic BPF".to_owned());
        match filter {
            Filter::Program(_) => {
                let program = program?;
                there(program).or_else(|_| place.make_classic(program).map_err(|error| error.to_string()))
            }
            // Only here does it keep its sets.
            Filter::Expression(expression) => {
                place.make(Some(&expression.filter)).or_else(|_| there(program?))
            }
        }
    }

    /// Counts packets as libpcap does: received are those that match, and those that found no room in the pool.
    pub(super) fn counts(&self) -> Result<Statistics, String> {
        let account = self.capture.stats().map_err(|error| error.to_string())?;
        let total = account.total();
        Ok(Statistics {
            packets: (total.captured + total.lost).saturating_sub(self.rejected),
            drops: total.lost,
        })
    }

    /// Counts what became of each packet.
    pub(super) fn all_counts(&self) -> Result<Counts, String> {
        let account = self.capture.stats().map_err(|error| error.to_string())?;
        let total = account.total();
        Ok(Counts {
            device_lost: 0,
            seen: total.seen,
            filtered: total.filtered.unwrap_or(0) + total.sampled_out,
            lost: total.lost,
            errors: total.errors,
            captured: total.captured,
            rejected: self.rejected + self.skipped,
            delivered: self.delivered,
        })
    }

    /// Returns the command that makes the device leave VLAN tags to the source, if they are missing.
    pub(super) fn keep_tags(&self) -> Option<&str> {
        self.capture.interfaces()[0].warnings.iter().find_map(|warning| match warning {
            InterfaceWarning::TagsLost { keep } => Some(keep.as_str()),
            _ => None,
        })
    }

    /// Returns the source, how it runs, and where the filter does.
    pub(super) fn about(&self) -> String {
        let interface = &self.capture.interfaces()[0];
        let filtered = match &self.filtered {
            Filtered::NoFilter => "no filter".to_owned(),
            Filtered::InKernel => "filter in the kernel".to_owned(),
            Filtered::Here(why) => format!("filter in the process ({why})"),
        };
        format!("{}, {}; {filtered}", interface.source, interface.detail)
    }
}

/// Returns a chunk, or an error, as a program meets it.
fn ahead(next: Result<Next<Chunk>, Error>) -> Option<Result<Chunk, String>> {
    match next {
        Ok(next) => next.taken().map(Ok),
        Err(error) if error.kind() == ErrorKind::InterfaceGone => Some(Err(GONE.to_owned())),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// Returns the time in nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The program for this interface that accepts every packet.
fn every(interface: u32) -> CompiledFilter {
    let (sets, descriptors) = (Vec::new(), Vec::new());
    CompiledFilter { interface, form: CompiledForm::All, is_never: false, sets, descriptors }
}

impl AsFd for Pool {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.capture.as_fd()
    }
}

/// Returns a packet without a link-layer header as a filter in the kernel sees it.
fn bare<'a>(packet: &weir::Packet<'a>, sent: bool, index: u32) -> Seen<'a> {
    let protocol = match packet.data.first().map(|first| first >> 4) {
        Some(4) => 0x800,
        Some(6) => 0x86dd,
        _ => 0,
    };
    let packet_type = if sent { libc::PACKET_OUTGOING } else { libc::PACKET_HOST };
    let meta = Metadata { packet_type, protocol, interface: index, vlan: None };
    Seen { data: packet.data, length: packet.original_len, meta }
}

/// Returns a frame as a filter in the kernel sees it: the outer tag is beside the frame. `room` gets such a frame.
#[inline]
fn seen<'a>(packet: &weir::Packet<'a>, sent: bool, index: u32, room: &'a mut Vec<u8>) -> Seen<'a> {
    let plain = Seen { data: packet.data, length: packet.original_len, meta: Metadata::default() };
    let Some((addresses, rest)) = packet.data.split_first_chunk::<12>() else { return plain };
    let half = |at: usize| rest.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let packet_type = match addresses {
        _ if sent => libc::PACKET_OUTGOING,
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => libc::PACKET_BROADCAST,
        [first, ..] if first & 1 == 1 => libc::PACKET_MULTICAST,
        _ => libc::PACKET_HOST,
    };
    let protocol = |at| match (half(at), half(at + 2)) {
        (..0x600, 0xffff) => ETH_P_802_3,
        (..0x600, _) => ETH_P_802_2,
        (ether_type, _) => ether_type,
    };
    let meta = Metadata { packet_type, protocol: protocol(0), interface: index, vlan: None };
    if !TAGS_OF_LINUX.contains(&half(0)) || rest.len() < 4 {
        return Seen { meta, ..plain };
    }
    room.clear();
    room.extend_from_slice(addresses);
    room.extend_from_slice(&rest[4..]);
    let vlan = Some(VlanTag { protocol: half(0), tci: half(2) });
    let meta = Metadata { vlan, protocol: protocol(4), ..meta };
    Seen { data: room, length: packet.original_len.saturating_sub(4), meta }
}

/// What the kernel takes for the EtherType of a frame that has a length instead: with an IPX header, and any other.
const ETH_P_802_3: u16 = 1;
const ETH_P_802_2: u16 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(data: &[u8]) -> weir::Packet<'_> {
        weir::with!(weir::Packet::new(0, data), original_len = 100)
    }

    #[test]
    fn filters_see_the_outer_tag_beside_the_frame() {
        let inner = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 7];
        let tagged = [&inner[..12], &[0x81, 0, 0x20, 5], &inner[12..]].concat();
        let mut room = Vec::new();
        let plain = seen(&packet(&inner), false, 1, &mut room);
        assert_eq!(
            (plain.data, plain.length, plain.meta.protocol, plain.meta.vlan),
            (&inner[..], 100, 0x800, None)
        );
        let without = seen(&packet(&tagged), true, 1, &mut room);
        assert_eq!((without.data, without.length, without.meta.protocol), (&inner[..], 96, 0x800));
        assert_eq!(without.meta.vlan, Some(VlanTag { protocol: 0x8100, tci: 0x2005 }));
        assert_eq!(without.meta.packet_type, libc::PACKET_OUTGOING);
        for (behind, protocol) in
            [([0, 9, 0x42, 0x42], 4), ([5, 0xff, 0xff, 0xff], 1), ([6, 0, 0xff, 0xff], 0x600)]
        {
            let plain = [&inner[..12], &behind].concat();
            assert_eq!(seen(&packet(&plain), false, 1, &mut room).meta.protocol, protocol);
            let tagged = [&tagged[..16], &behind].concat();
            assert_eq!(seen(&packet(&tagged), false, 1, &mut room).meta.protocol, protocol);
        }
        for short in [&tagged[..15], &tagged[..13], &tagged[..3]] {
            assert_eq!(seen(&packet(short), false, 1, &mut room).data, short);
        }
        let all = [&[0xff; 6][..], &inner[6..]].concat();
        assert_eq!(seen(&packet(&all), false, 1, &mut room).meta.packet_type, libc::PACKET_BROADCAST);
    }
}
