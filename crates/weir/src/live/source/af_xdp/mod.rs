//! The `af_xdp` source: a program before the network stack sends packets to AF_XDP sockets, one per receive queue. For
//! each socket a thread copies them, as records, into the chunks of a pool.
//!
//! ```text
//!   program --> frame, frame, ... --> pump (a thread a queue) --> chunk, chunk, ... --> AfXdp, a Source
//!          <-- frames, when copied --'
//! ```
//!
//! Why packets are copied: a frame takes 2 KiB whatever it contains, so a chunk made of frames would hold 30 times
//! fewer short packets, and its user would have to step over the gaps. With copies, chunks look the same for all
//! sources, the pool buffers bursts, and the few frames stay in the caches.
//!
//! Counters: the program counts the packets that it sees and those that the filter or sampling rejects, the pump counts those that
//! it copies, and the socket counts those for which it has no frame. During the capture, `seen` is the sum of the
//! others, since packets in transit are in none of them. Once stopped, it is the program's count, and the difference
//! was lost in transit.

mod arrival;
mod pump;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use weir_bpf::Strays;
use weir_bpf::af_xdp::{Maps, Met, Options, Program};
use weir_bpf::xdp::Attached;
use weir_ring::{Consumer, Counters, Fill, Gauge, Pool, Producer, Shape};
use weir_sys::CallError;
use weir_sys::bpf::XdpHook;
use weir_sys::bpf::grace::Grace;
use weir_sys::netdev::{self, XdpAbilities};
use weir_sys::packet::Promiscuous;
use weir_sys::xsk::{FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

use self::arrival::RecordEncoder;
use self::pump::{PumpCounters, SocketPump};
use super::losses::Losses;
use super::programmed::{self, AtGateInForce, stamp};
use super::pumped::{Counts, Finished, PumpedQueue};
use super::signals::{Order, Signals};
use super::writers::{self, Native};
use super::{DIRECTION_BYTES, Queue, Source, xdp};
use crate::live::error::{not_loaded, size};
use crate::live::filter_control::Gate;
use crate::live::interface::queues;
use crate::live::interface::{Device, Tags};
use crate::live::request::Settings;
use crate::live::request::memory::{KernelBuffers, Need};
use crate::live::request::sampling::Sampling;
use crate::live::ruled::{InForce, before};
use crate::live::settings::{Delivery, SourceChoice, Timestamps};
use crate::live::wait::Notifier;
use crate::{Error, InterfaceWarning, Unsupported};

/// Bytes of the frames of all queues, if that leaves each at least [`FEWEST_FRAMES`], and unless many interfaces share the
/// memory. They buffer what arrives while a pump is kept off its CPU.
const FRAMES_BYTES: u32 = 32 << 20;
/// Fewest frames per queue.
const FEWEST_FRAMES: u32 = 1024;
/// A packet waits for the pump's thread to run.
const LAG: Duration = Duration::from_millis(10);
/// Bytes that the MTU does not include: an Ethernet header and two VLAN tags.
const LINK_HEADERS: u32 = 14 + 8;
/// With [`Delivery::Active`]: how long a call drives an empty queue, and the most packets it takes from it.
const BUSY_FOR: Duration = Duration::from_micros(20);
const BUSY_BUDGET: u16 = 64;
/// The capabilities needed.
const NEEDS: &str = "cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw,cap_ipc_lock";

#[derive(Debug)]
pub(crate) struct AfXdp {
    maps: Maps,
    /// Held until the source is stopped.
    attached: Option<Arc<Attached>>,
    /// Detached, and the program may still be running.
    detached: bool,
    grace: Grace,
    promiscuous: Option<Arc<Promiscuous>>,
    sockets: Vec<Socket>,
    memory: u64,
    /// The receive queue of the first socket.
    first: u32,
    clock_offset: i64,
    gate: Arc<dyn Gate>,
    /// In the filter's place.
    rules: Option<InForce>,
}

/// The receiver of one queue's packets.
#[derive(Debug)]
struct Socket {
    /// `None` once it is given away.
    queue: Option<Box<PumpedQueue>>,
    gauge: Gauge,
    shared: Arc<Shared>,
    pump: Option<JoinHandle<Finished>>,
    /// The program's final counters, once it is stopped.
    met: Option<Met>,
}

/// Settings shared by all pumps of a source.
#[derive(Clone, Copy, Debug)]
struct How {
    encoder: RecordEncoder,
    stamped: bool,
    active: bool,
    shape: Shape,
}

/// State shared by a pump and the source, beside the pool.
#[derive(Debug)]
struct Shared {
    counts: Counts,
    signals: Arc<Signals>,
}

/// An open source with its description.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) source: AfXdp,
    pub(crate) snap_len: u32,
    pub(crate) detail: String,
    pub(crate) warnings: Vec<InterfaceWarning>,
}

impl Opened {
    fn without_tags(mut self, device: &Device) -> Self {
        self.warnings.push(xdp::without_tags(device));
        self
    }

    fn note(mut self, note: &str) -> Self {
        self.detail = format!("{}; {note}", self.detail);
        self
    }
}

/// Opens the source on `device`: in the driver if possible, otherwise in the stack.
pub(crate) fn open(device: &Device, id: u32, settings: &Settings) -> Result<Opened, Error> {
    if device.link.xdp_program.is_some() {
        return Err(xdp::busy(device));
    }
    // Bound to the device, the program can ask its driver for stripped tags.
    let native = |tags| open_at(device, id, settings, XdpHook::Native, tags);
    let without = || {
        xdp::keep_vlans(device, settings, false)?;
        native(false).map(|opened| opened.without_tags(device))
    };
    let native = match (writers::native(device), device.tags) {
        (Native::Processors(why) | Native::Nowhere(why), _) => Err(Error::Unsupported {
            name: device.link.name.clone(),
            cause: Unsupported::NativeXdp { why },
            sources: &[],
            otherwise: "",
        }),
        // The kernel's own rings of a socket serve one context at a time, so unknown drivers can be trusted with them.
        (Native::Queues | Native::Unknown, Tags::InFrame) => native(false),
        (Native::Queues | Native::Unknown, Tags::Unreported(_)) => without(),
        // Such a program has no rules in front.
        (Native::Queues | Native::Unknown, Tags::Told(_)) if settings.rules.is_some() => without(),
        (Native::Queues | Native::Unknown, Tags::Told(_)) => match native(true) {
            Err(Error::Load { source, .. }) if !source.is_permission() && !source.is_memory() => without(),
            other => other,
        },
    };
    match native {
        Err(Error::Unsupported { cause, .. }) => {
            if device.tags != Tags::InFrame {
                xdp::keep_vlans(device, settings, false)?;
            }
            let opened = open_at(device, id, settings, XdpHook::Generic, false)?;
            let opened = opened.note(&format!("not native: {cause}"));
            Ok(if device.tags == Tags::InFrame { opened } else { opened.without_tags(device) })
        }
        other => other,
    }
}

/// Returns the longest packet that the program gets.
fn largest(device: &Device, hook: XdpHook) -> u32 {
    match hook {
        XdpHook::Native => device.link.mtu.saturating_add(LINK_HEADERS),
        // In the stack, packets as large as offloads make them arrive whatever the MTU is.
        XdpHook::Generic => device.largest_frame(),
    }
}

/// Returns the size in bytes of the frames of all queues.
fn frame_bytes(queues: u32, frames: UmemOptions) -> u64 {
    u64::from(queues) * u64::from(frames.frames) * u64::from(frames.frame_size.bytes())
}

/// Returns the memory needed, assuming that a card fills the frames.
pub(crate) fn need(device: &Device, settings: &Settings, hook: XdpHook) -> Need {
    let (queues, largest) = (device.queues().1, largest(device, hook));
    let snap_len = settings.snap_len.min(largest);
    Need {
        queues,
        largest: snap_len + DIRECTION_BYTES,
        buffers: buffers(queues, frames(queues, largest, true)),
    }
}

/// Returns the memory for frames of all queues, of which each needs at least [`FEWEST_FRAMES`].
fn buffers(queues: u32, frames: UmemOptions) -> KernelBuffers {
    let of = |number| frame_bytes(queues, UmemOptions { frames: number, ..frames });
    KernelBuffers { usual: of(frames.frames), least: of(FEWEST_FRAMES) }
}

/// Returns how many frames of each queue take `bytes` together.
fn frames_within(queues: u32, bytes: u64, frames: UmemOptions) -> u32 {
    let one = u64::from(queues) * u64::from(frames.frame_size.bytes());
    u32::try_from(bytes / one).map_or(frames.frames, |number| number.min(frames.frames))
}

fn open_at(
    device: &Device,
    id: u32,
    settings: &Settings,
    hook: XdpHook,
    tags: bool,
) -> Result<Opened, Error> {
    let name = &device.link.name;
    let (first, queues) = device.queues();
    let largest = largest(device, hook);
    let (snap_len, directions) = (settings.snap_len.min(largest), settings.tells_direction(false));
    let encoder = RecordEncoder { interface: id, snap_len, directions };
    // If the kernel cannot report zero-copy support, any driver except veth's may belong to a card.
    let tells = |all: Vec<XdpAbilities>| {
        let mut all = all.into_iter();
        all.any(|abilities| abilities.interface == device.link.index && abilities.zero_copy())
    };
    let card = hook == XdpHook::Native
        && netdev::xdp_abilities()?.map_or_else(|| device.driver.as_deref() != Some("veth"), tells);
    let mut frames = frames(queues, largest, card);
    // Before Linux 6.6 a packet has one frame. GSO packets of the host itself are longer.
    let longest = device.link.mtu.saturating_add(LINK_HEADERS);
    let mut notes: Vec<String> = queues::note(device).into_iter().collect();
    if frames.segments && longest <= frames.frame_size.room() && !takes_segments(device, frames)? {
        frames.segments = false;
        notes.push(format!(
            "packets longer than {} bytes (from offloads) are lost and counted; Linux 6.6 captures them",
            frames.frame_size.room()
        ));
    }
    let need = Need { queues, largest: snap_len + DIRECTION_BYTES, buffers: buffers(queues, frames) };
    let planned = settings.pool.plan(name, need)?;
    let shape = planned.shape;
    frames.frames = frames_within(queues, planned.buffers, frames);

    let (program, maps) = Program::load(&Options {
        queues,
        chosen: device.chosen,
        stamp: stamp(settings),
        sampling: settings.sampling.map(Sampling::for_program),
        ethernet: device.is_ethernet(),
        fragments: hook == XdpHook::Generic || xdp::takes_fragments(device),
        native_on: (hook == XdpHook::Native).then(|| device.driven()),
        tags_of: tags.then_some(device.link.index),
        rules: settings.rules.is_some(),
    })
    .map_err(|error| not_loaded(name, error))?;
    let in_force = AtGateInForce::default();
    programmed::put_first(name, maps.gate(), &in_force, device, settings.filter.as_ref())?;
    let rules = settings.rules.as_ref().map(|rules| {
        let (namespace, gates) = (settings.namespace.as_ref(), vec![Arc::clone(maps.gate())]);
        before::put(device, namespace, rules, gates, device.tags != Tags::InFrame)
    });
    let rules = rules.transpose()?;
    let gate = programmed::gate_of(name, maps.gate(), &in_force);

    let failed = |error| CallError::new(format!("create the pool for `{name}`"), error);
    let (producers, consumers) = Pool::private(shape).map_err(failed)?;
    let promiscuous = settings.promiscuity().map(|shared| shared.include(device.link.index)).transpose();
    let promiscuous = promiscuous.map_err(|error| refused(name, error))?;
    let (attached, sockets, clock_offset) = (None, Vec::new(), 0);
    let grace = Grace::new();
    let memory = planned.bytes();
    let mut source = AfXdp {
        maps,
        attached,
        detached: false,
        grace,
        promiscuous,
        sockets,
        memory,
        first,
        clock_offset,
        gate,
        rules,
    };
    source.tick()?;
    let how = How {
        encoder,
        stamped: settings.timestamps != Timestamps::None,
        active: settings.delivery == Delivery::Active,
        shape,
    };
    let mut zero_copy = true;
    for ((place, producer), consumer) in (0..queues).zip(producers).zip(consumers) {
        // Each queue has its own memory: what one holds is not missing in the others.
        let umem = Umem::new(frames)?;
        let mut socket = bind(&umem, device, first + place)?;
        if how.active {
            socket.poll_busily(BUSY_FOR, BUSY_BUDGET)?;
        }
        zero_copy &= socket.zero_copy();
        let inserted = source.maps.insert(place, &socket).map_err(std::io::Error::other);
        inserted.map_err(|error| CallError::new(format!("redirect packets from `{name}`"), error))?;
        source.sockets.push(Socket::start(name, (socket, umem), (producer, consumer), how)?);
    }
    let attached = program.attach(device.link.index, hook);
    source.attached = Some(attached.map_err(|error| xdp::refused(device, error))?);

    let detail = format!(
        "{} XDP to AF_XDP sockets, {}{}, {queues} {} of {} frames of {} and {} chunks of {}",
        if hook == XdpHook::Native { "native" } else { "generic" },
        if zero_copy { "zero-copy" } else { "copied by the kernel (no zero-copy)" },
        if how.active { ", busy polling" } else { "" },
        if queues == 1 { "queue" } else { "queues" },
        frames.frames,
        size::binary(frames.frame_size.bytes().into()),
        shape.chunks(),
        size::binary(shape.limit().into()),
    );
    let opened = Opened { source, snap_len: encoder.snap_len, detail, warnings: Vec::new() };
    Ok(notes.iter().fold(opened, |opened, note| opened.note(note)))
}

/// Returns the frames of one queue. `card`: a card may fill them itself.
///
/// A card writes to buffers that its driver cuts out of frames, and some drivers use less than a whole frame (igb:
/// whole KiB). Of a 2 KiB frame they use 1024 bytes, and deliver a longer packet in two parts that look like packets.
/// So a card gets frames of 4 KiB. It fills them itself only if a packet fits into 3 KiB, or if the kernel ensures that
/// the driver can chain frames.
fn frames(queues: u32, largest: u32, card: bool) -> UmemOptions {
    let small = largest <= FrameSize::TwoKib.room() && !card;
    let frame_size = if small { FrameSize::TwoKib } else { FrameSize::FourKib };
    let frames = (FRAMES_BYTES / frame_size.bytes() / queues).max(FEWEST_FRAMES).next_power_of_two();
    let segments = largest > frame_size.room();
    UmemOptions { frames, frame_size, zero_copy: segments || largest <= CARD_ROOM, segments }
}

/// Bytes of a 4 KiB frame that every card's driver uses: the whole KiB that the headroom leaves.
const CARD_ROOM: u32 = 3 << 10;

/// Whether the kernel accepts packets of several frames, tested with minimal memory on the first of its queues.
fn takes_segments(device: &Device, frames: UmemOptions) -> Result<bool, Error> {
    let umem = Umem::new(UmemOptions { frames: 1, zero_copy: false, ..frames })?;
    match XskSocket::bind(&umem, device.link.index, device.queues().0, XskOptions { receive: 1, send: 0 }) {
        Ok(_) => Ok(true),
        Err(error) if error.errno() == Errno::INVAL.raw_os_error() => Ok(false),
        Err(error) => Err(refused(&device.link.name, error)),
    }
}

/// Binds a socket to `queue` and gives it all frames of `umem`.
fn bind(umem: &Umem, device: &Device, queue: u32) -> Result<XskSocket, Error> {
    let UmemOptions { frames, segments, .. } = umem.options();
    let options = XskOptions { receive: frames, send: 0 };
    let mut socket = XskSocket::bind(umem, device.link.index, queue, options).map_err(|error| {
        if segments && error.errno() == Errno::INVAL.raw_os_error() {
            return Error::Unsupported {
                name: device.link.name.clone(),
                cause: Unsupported::LongPackets { mtu: device.link.mtu, answer: error },
                sources: &[SourceChoice::Xdp],
                otherwise: "",
            };
        }
        refused(&device.link.name, error)
    })?;
    let mut all = Vec::new();
    umem.take(frames as usize, &mut all);
    socket.refill(&mut all);
    Ok(socket)
}

/// Translates the kernel's error.
fn refused(name: &str, error: CallError) -> Error {
    let name = name.to_owned();
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::NOBUFS => Error::Privilege {
            operation: format!("capture on `{name}`: cannot {}", error.operation),
            needs: NEEDS,
        },
        Errno::BUSY => Error::QueueBusy { name, source: error },
        Errno::AFNOSUPPORT => Error::Unsupported {
            name,
            cause: Unsupported::AfXdp,
            sources: &[SourceChoice::Xdp],
            otherwise: "",
        },
        Errno::NODEV => Error::InterfaceGone { name },
        _ => error.into(),
    }
}

impl Socket {
    /// Starts the pump.
    fn start(
        name: &str,
        (socket, umem): (XskSocket, Umem),
        (producer, consumer): (Producer, Consumer),
        how: How,
    ) -> Result<Self, CallError> {
        let shared = Arc::new(Shared { counts: Counts::default(), signals: Arc::new(Signals::new()?) });
        let pump = SocketPump {
            losses: Losses::new(umem.options().frames),
            socket,
            umem,
            producer,
            encoder: how.encoder,
            stamped: how.stamped,
            active: how.active,
            shared: Arc::clone(&shared),
            shape: how.shape,
            counters: PumpCounters::default(),
        };
        let pump = pump.start();
        let pump = pump.map_err(|error| CallError::new(format!("start a thread for `{name}`"), error))?;
        let gauge = consumer.gauge();
        let queue = PumpedQueue::new(name, consumer, Arc::clone(&shared.signals), refused);
        Ok(Self { queue: Some(Box::new(queue)), gauge, shared, pump: Some(pump), met: None })
    }

    /// Gives the pump its last order and waits until it has ended.
    fn end(&mut self, order: Order) -> Option<Finished> {
        let pump = self.pump.take()?;
        self.shared.signals.give(order);
        Some(pump.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Source for AfXdp {
    fn queues(&self) -> u32 {
        u32::try_from(self.sockets.len()).expect("a shape counts queues in 32 bits")
    }

    fn first_number(&self) -> u32 {
        self.first
    }

    fn give_queues(&mut self) -> Vec<Box<dyn Queue>> {
        let queues = self.sockets.iter_mut().filter_map(|socket| socket.queue.take());
        queues.map(|queue| queue as Box<dyn Queue>).collect()
    }

    fn notifiers(&self) -> Vec<Arc<dyn Notifier>> {
        let notifier =
            |socket: &Socket| -> Arc<dyn Notifier> { Arc::<Signals>::clone(&socket.shared.signals) };
        self.sockets.iter().map(notifier).collect()
    }

    fn detach(&mut self) -> Result<(), Error> {
        self.promiscuous = None;
        let Some(attached) = self.attached.take() else { return Ok(()) };
        self.detached = true;
        // Closing the descriptor, which follows, detaches the program as well.
        Ok(programmed::off(attached.detach())?)
    }

    fn settle(&self) -> Option<Result<(), CallError>> {
        self.detached.then(|| self.grace.wait())
    }

    fn finish(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.detached) {
            return Ok(());
        }
        let mut result = Ok(());
        for (socket, queue) in self.sockets.iter_mut().zip(0..) {
            if let Some(finished) = socket.end(Order::Finish) {
                socket.shared.signals.leave_rest(finished.rest);
                result = result.and(finished.result);
            }
            socket.met = self.maps.met(queue);
        }
        Ok(result?)
    }

    fn counters(&self, queue: u32) -> Counters {
        let socket = &self.sockets[queue as usize];
        let pumped = socket.shared.counts.pumped();
        let met = socket.met.or_else(|| self.maps.met(queue)).unwrap_or_default();
        let (captured, errors) = (pumped.captured, pumped.errors + met.errors);
        let Met { filtered, sampled_out, .. } = met;
        let others = captured + errors + filtered + sampled_out;
        let lost = match socket.met {
            Some(met) => met.seen.saturating_sub(others).max(pumped.lost),
            None => pumped.lost,
        };
        Counters {
            seen: others + lost,
            captured,
            bytes: pumped.bytes,
            lost,
            errors,
            filtered,
            sampled_out,
            counted: 0,
            orphans: met.orphans,
        }
    }

    fn fill(&self, queue: u32) -> Fill {
        self.sockets[queue as usize].gauge.fill()
    }

    fn memory(&self) -> u64 {
        self.memory
    }

    fn rules(&mut self) -> Option<&mut InForce> {
        self.rules.as_mut()
    }

    fn gate(&self) -> Arc<dyn Gate> {
        Arc::clone(&self.gate)
    }

    fn strays(&self) -> Strays {
        self.maps.strays()
    }

    fn lag(&self) -> Duration {
        LAG
    }

    fn tick(&mut self) -> Result<(), Error> {
        for socket in &mut self.sockets {
            if socket.pump.as_ref().is_some_and(JoinHandle::is_finished) {
                socket.end(Order::Leave); // continues the pump's panic
            }
        }
        let offset = programmed::clock_offset()?;
        if offset != self.clock_offset {
            self.clock_offset = offset;
            let set = self.maps.set_clock_offset(offset).map_err(std::io::Error::other);
            set.map_err(|error| CallError::new("set the clock offset in the program", error))?;
        }
        Ok(())
    }
}

impl Drop for AfXdp {
    fn drop(&mut self) {
        self.attached = None;
        for socket in &mut self.sockets {
            if let Some(pump) = socket.pump.take() {
                socket.shared.signals.give(Order::Leave);
                let _ = pump.join(); // the panic was printed already; do not panic in drop
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_large_as_packets_ask_and_no_more_than_there_is_memory_for() {
        let told = |queues, mtu, card| {
            let frames = frames(queues, mtu + LINK_HEADERS, card);
            (frames.frames, frames.frame_size.bytes(), frames.segments)
        };
        assert_eq!(told(1, 1500, false), (16384, 2048, false));
        assert_eq!(told(3, 1500, false), (8192, 2048, false));
        assert_eq!(told(64, 1500, false), (1024, 2048, false));
        assert_eq!(told(1, 1771, false), (8192, 4096, false));
        assert_eq!(told(1, 3818, false), (8192, 4096, false));
        assert_eq!(told(1, 3819, false), (8192, 4096, true));
        assert_eq!(told(2, 9000, false), (4096, 4096, true));
        // The part of a 2 KiB frame that a card's driver may use is too small.
        assert_eq!(told(1, 1500, true), (8192, 4096, false));
        assert_eq!(told(2, 9000, true), (4096, 4096, true));
    }

    #[test]
    fn a_card_fills_frames_only_where_a_packet_fits_into_one_or_may_have_several() {
        let zero_copy = |largest| frames(1, largest, true).zero_copy;
        assert!(zero_copy(1522) && zero_copy(3072));
        assert!(!zero_copy(3073) && !zero_copy(3840), "a driver that uses whole KiB has no room");
        assert!(zero_copy(3841), "the kernel says whether the driver chains buffers");
    }
}
