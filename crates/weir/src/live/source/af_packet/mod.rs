//! The `af_packet` source: the kernel puts packets into a ring of blocks (`TPACKET_V3`), and a thread copies them, as
//! records, into the chunks of a pool.
//!
//! ```text
//!   kernel --> block, block, ... --> pump (a thread) --> chunk, chunk, ... --> AfPacket, a Source
//! ```
//!
//! The thread works while nobody asks for chunks. A lone packet must be delivered within about a millisecond, so the
//! kernel has to close a block after that time. A ring of n blocks then lasts for n milliseconds, at any packet rate.
//! So it is the pool that buffers bursts, and a thread has to fill it.
//!
//! Counters: the kernel counts packets that it has put into the ring and packets that it has dropped. Packets in the
//! ring are counted as seen once they are copied.

mod gate;
mod pump;
mod pump_filter;
mod record_encoder;
mod sampler;
mod shared;
mod stack;

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use weir_bpf::filter::Refusals;
use weir_ring::{Counters, Fill, Gauge};
use weir_sys::CallError;
use weir_sys::packet::{self, PacketRing, Promiscuous, RingOptions, Traffic};

use self::gate::{ENOMEM, InKernel, SocketGate};
use self::pump::RingPump;
use self::pump_filter::PumpFilter;
pub use self::pump_filter::as_in_the_kernel;
use self::record_encoder::RecordEncoder;
use self::sampler::Sampler;
use self::shared::Shared;
use self::stack::Stack;
use super::losses::Losses;
use super::pumped::{Finished, PumpedQueue, private_pool};
use super::signals::{Order, Signals};
use super::{DIRECTION_BYTES, Queue, Source};
use crate::live::error::size;
use crate::live::filter_control::sets::{self, Labelled, labelled};
use crate::live::filter_control::{Gate, classic, counting, for_the_kernel};
use crate::live::interface::Device;
use crate::live::request::Settings;
use crate::live::request::memory::{KernelBuffers, Need, Planned};
use crate::live::ruled::{InForce, InProcess};
use crate::live::settings::Delivery;
use crate::live::wait::Notifier;
use crate::{DEFAULT_SNAP_LEN, Direction, Error, InterfaceWarning};

/// Size of the ring in bytes, unless many interfaces share the memory. A capture may use 64 MiB in addition to the pool.
const RING: u32 = 32 << 20;
/// A ring has this many blocks, or fewer if packets are too long for such small ones. With more blocks the pump may be
/// kept off its CPU for longer: 128 blocks last 128 ms. With larger blocks less space is wasted: three GSO packets of 64
/// KiB fit into one of the usual 256 KiB.
const BLOCKS: u32 = 128;
/// The fewest blocks of a ring.
const FEWEST_BLOCKS: u32 = 8;
/// More than the headers of a block and of a packet take.
const BLOCK_OVERHEAD: u32 = 256;
/// The largest link-layer header in bytes (`LL_MAX_HEADER`, linux/netdevice.h).
const LONGEST_HEADER: u32 = 128;

/// The kernel closes a block that is not full once two timer periods have ended while it was in use. A period is at
/// most [`SOON`] if packets are delivered in timestamp order. After that, the packet waits for the pump's thread to
/// run.
const LAG: Duration = Duration::from_millis(30);
const SOON: Duration = Duration::from_millis(10);

/// The capability needed.
const NEEDS: &str = "cap_net_raw";

#[derive(Debug)]
pub(crate) struct AfPacket {
    /// `None` once it is given away.
    queue: Option<Box<PumpedQueue>>,
    gauge: Gauge,
    memory: u64,
    shared: Arc<Shared>,
    pump: Option<JoinHandle<Finished>>,
    /// Held until the source is stopped.
    promiscuous: Option<Arc<Promiscuous>>,
    gate: Arc<SocketGate>,
    /// In the filter's place.
    rules: Option<InForce>,
}

/// An open source with its description.
pub(crate) struct Opened {
    pub(crate) source: AfPacket,
    pub(crate) snap_len: u32,
    pub(crate) detail: String,
    pub(crate) warnings: Vec<InterfaceWarning>,
}

/// Returns the bytes kept of each packet.
fn snap_len(device: &Device, settings: &Settings) -> u32 {
    settings.snap_len.min(DEFAULT_SNAP_LEN).min(device.largest_frame())
}

/// Returns the memory needed.
pub(crate) fn need(device: &Device, settings: &Settings) -> Need {
    let buffers = KernelBuffers { usual: RING.into(), least: smallest_ring(device).into() };
    Need { queues: 1, largest: snap_len(device, settings) + DIRECTION_BYTES, buffers }
}

/// Returns the size of a block of a ring of `ring` bytes: a power of two, to which the kernel rounds it anyway.
fn block_bytes(device: &Device, ring: u32) -> u32 {
    // A later filter may run in this process, on whole packets.
    let largest = device.largest_frame().min(DEFAULT_SNAP_LEN);
    (largest + BLOCK_OVERHEAD).next_power_of_two().max(ring / BLOCKS)
}

/// Returns the size of the smallest ring to use if memory is short.
fn smallest_ring(device: &Device) -> u32 {
    (block_bytes(device, 0) * FEWEST_BLOCKS).min(RING)
}

/// Opens the source on `device`.
pub(crate) fn open(device: &Device, id: u32, settings: &Settings) -> Result<Opened, Error> {
    let name = &device.link.name;
    let snap_len = snap_len(device, settings);
    let Planned { shape, buffers } = settings.pool.plan(name, need(device, settings))?;
    let ring_bytes = u32::try_from(buffers).map_or(RING, |bytes| bytes.min(RING));
    let retire = match settings.delivery {
        Delivery::Adaptive | Delivery::Active => Duration::from_millis(1),
        Delivery::Batched { timeout, .. } if settings.by_time.is_some() => {
            timeout.clamp(Duration::from_millis(1), SOON)
        }
        Delivery::Batched { timeout, .. } => timeout.clamp(Duration::from_millis(1), Duration::from_secs(1)),
    };
    let traffic = match settings.direction {
        Direction::Out => Traffic::Sent,
        Direction::In => Traffic::Received,
        Direction::Both => Traffic::Both,
    };
    // If only sent packets are captured, the program would also reject, and count, received ones.
    let countable = !device.any && traffic != Traffic::Sent;
    let refusals = countable.then(Refusals::new).and_then(Result::ok);
    let wanted = RingOptions {
        interface: (!device.any).then_some(device.link.index),
        traffic,
        snap_len,
        block_bytes: block_bytes(device, ring_bytes),
        blocks: 0,
        retire_ms: u32::try_from(retire.as_millis()).expect("at most a second"),
    };
    // Sampling by flow happens in this process and needs whole headers, wherever they end.
    let by_flow = settings.sampling.is_some_and(|sampling| sampling.is_by_flow());
    let needed_len = if by_flow { DEFAULT_SNAP_LEN } else { snap_len };
    let (mut in_kernel, not_taken) = in_kernel(device, needed_len, refusals.as_ref())?;
    let slower = |why| InterfaceWarning::FilterInProcess { why };
    let mut warnings: Vec<InterfaceWarning> = not_taken.map(slower).into_iter().collect();
    if let Some((filter, _)) = &in_kernel
        && packet::try_filter(&wanted, filter.program()).is_err_and(|error| error.errno() == ENOMEM)
    {
        in_kernel = None;
        warnings.push(slower(gate::no_room(name)));
    }
    let rules =
        settings.rules.as_ref().map(|rules| InProcess::new(name, device.receiver()?, rules)).transpose()?;
    let in_pump = device.any || rules.is_some() || device.filter.is_some() && in_kernel.is_none();
    let pump_filter = device.filter.as_ref().filter(|_| in_pump).map(PumpFilter::new);
    let interpreted = pump_filter.as_ref().and_then(PumpFilter::why_interpreted);
    let interpreted = interpreted.map(|why| format!(", filter interpreted (slower): {why}"));
    // Filters see packets before they are cut. `any` replaces each link-layer header, which may be longer than the
    // cooked one.
    let kept_len = if device.any { needed_len.saturating_add(LONGEST_HEADER) } else { needed_len };
    let asked_len = if pump_filter.is_some() || rules.is_some() { DEFAULT_SNAP_LEN } else { kept_len };
    let wanted = RingOptions { snap_len: asked_len, ..wanted };
    let front = in_kernel.as_ref().map_or(packet::SocketFilter::All, |(filter, _)| filter.program());
    let (ring, options) =
        open_ring(device, ring_bytes, wanted, front).map_err(|error| refused(name, error))?;
    let ring_bytes = options.blocks * options.block_bytes;

    // There is no promiscuous mode for all interfaces at once.
    let promiscuous = settings.promiscuity().filter(|_| !device.any);
    let promiscuous = promiscuous
        .map(|shared| shared.include(device.link.index))
        .transpose()
        .map_err(|error| refused(name, error))?;
    let stack = (device.any && !settings.stacked).then(Stack::open).transpose()?;
    let failed = |error| CallError::new(format!("create the pool for `{name}`"), error);
    let (producer, consumer) = private_pool(shape).map_err(failed)?;
    let shared = Arc::new(Shared::new()?);
    if matches!(in_kernel, Some((InKernel::Classic(_), _))) {
        shared.stop_counting();
    }
    let link_type = device.link_type()?;
    let in_force = sets::InForce::default();
    in_force.replace(in_kernel.unwrap_or_default());
    let gate = Arc::new(SocketGate {
        name: name.clone(),
        socket: ring.filter_place()?.keeping(kept_len),
        shared: Arc::clone(&shared),
        snap_len: needed_len,
        refusals,
        in_pump: in_pump.into(),
        in_force,
    });
    let pump = RingPump {
        ring,
        producer,
        encoder: RecordEncoder {
            interface: id,
            snap_len: snap_len as usize,
            directions: settings.tells_direction(settings.direction == Direction::Both),
            cooked: device.any,
        },
        stack,
        filter: pump_filter,
        rules: rules.clone(),
        saved: Vec::new(),
        sampler: settings.sampling.map(|sampling| Sampler::new(sampling, link_type)),
        losses: Losses::new(options.blocks),
        shared: Arc::clone(&shared),
        shape,
        ring_bytes,
        blocks: options.blocks,
        retire,
        counters: pump::PumpCounters::default(),
    };
    let pump = pump.start().map_err(|error| CallError::new(format!("start a thread for `{name}`"), error))?;
    let detail = format!(
        "TPACKET_V3, ring of {}, pool of {} chunks of {}{}",
        size::binary(ring_bytes.into()),
        shape.chunks(),
        size::binary(shape.limit().into()),
        interpreted.unwrap_or_default(),
    );
    let gauge = consumer.gauge();
    let queue = PumpedQueue::new(name, consumer, Arc::clone(&shared.signals), refused);
    let (queue, pump) = (Some(Box::new(queue)), Some(pump));
    let memory = shape.data_bytes() + u64::from(ring_bytes);
    let rules = rules.zip(settings.rules.as_ref()).map(|(rules, given)| InForce::in_process(rules, given));
    let source = AfPacket { queue, gauge, memory, shared, pump, promiscuous, gate, rules };
    Ok(Opened { source, snap_len, detail, warnings })
}

/// A filter that the kernel runs, with its sets.
type WithSets = (InKernel, Vec<Labelled>);

/// Returns the filter of `device` in a form that the kernel can run, or the reason why there is none.
fn in_kernel(
    device: &Device,
    snap_len: u32,
    refusals: Option<&Refusals>,
) -> Result<(Option<WithSets>, Option<String>), Error> {
    let Some(filter) = device.filter.as_ref().filter(|_| !device.any) else { return Ok((None, None)) };
    if let Some(counting) = refusals.and_then(|refusals| counting(filter, snap_len, refusals.as_fd()).ok()) {
        let (program, sets) = counting.into_parts();
        return Ok((Some((InKernel::Counting(program), labelled(&sets)?)), None));
    }
    Ok(match classic(filter) {
        Ok(program) => (Some((InKernel::Classic(for_the_kernel(&program)), Vec::new())), None),
        Err(error) => (None, Some(error.to_string())),
    })
}

/// Opens the largest ring of up to `bytes` for which there is memory, and returns its dimensions.
fn open_ring(
    device: &Device,
    mut bytes: u32,
    mut options: RingOptions,
    front: packet::SocketFilter<'_>,
) -> Result<(PacketRing, RingOptions), CallError> {
    loop {
        options.block_bytes = block_bytes(device, bytes);
        options.blocks = bytes / options.block_bytes;
        match PacketRing::open_behind(&options, front) {
            Err(error) if error.errno() == ENOMEM && bytes > smallest_ring(device) => bytes /= 2,
            ring => return Ok((ring?, options)),
        }
    }
}

/// Translates the kernel's error.
fn refused(name: &str, error: CallError) -> Error {
    let name = name.to_owned();
    match error.errno() {
        EPERM => Error::Privilege {
            operation: format!("capture on `{name}`: cannot {}", error.operation),
            needs: NEEDS,
        },
        ENETDOWN => Error::InterfaceDown { name },
        ENODEV => Error::InterfaceGone { name },
        _ => error.into(),
    }
}

const EPERM: i32 = Errno::PERM.raw_os_error();
const ENETDOWN: i32 = Errno::NETDOWN.raw_os_error();
const ENODEV: i32 = Errno::NODEV.raw_os_error();

impl AfPacket {
    /// Gives the pump its last order and waits until it has ended.
    fn end(&mut self, order: Order) -> Option<Finished> {
        let pump = self.pump.take()?;
        self.shared.signals.give(order);
        Some(pump.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Source for AfPacket {
    fn queues(&self) -> u32 {
        1
    }

    fn give_queues(&mut self) -> Vec<Box<dyn Queue>> {
        self.queue.take().into_iter().map(|queue| queue as Box<dyn Queue>).collect()
    }

    fn notifiers(&self) -> Vec<Arc<dyn Notifier>> {
        vec![Arc::<Signals>::clone(&self.shared.signals)]
    }

    fn detach(&mut self) -> Result<(), Error> {
        self.promiscuous = None;
        if self.pump.is_some() {
            self.shared.signals.give(Order::Finish);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        let Some(finished) = self.end(Order::Finish) else { return Ok(()) };
        self.shared.signals.leave_rest(finished.rest);
        Ok(finished.result?)
    }

    fn counters(&self, _queue: u32) -> Counters {
        self.shared.counters()
    }

    fn fill(&self, _queue: u32) -> Fill {
        self.gauge.fill()
    }

    fn memory(&self) -> u64 {
        self.memory
    }

    fn rules(&mut self) -> Option<&mut InForce> {
        self.rules.as_mut()
    }

    fn gate(&self) -> Arc<dyn Gate> {
        Arc::<SocketGate>::clone(&self.gate)
    }

    fn filtered(&self) -> Option<u64> {
        Some(self.shared.filtered()? + self.gate.refused_in_kernel()?)
    }

    fn lag(&self) -> Duration {
        LAG
    }

    fn tick(&mut self) -> Result<(), Error> {
        if self.pump.as_ref().is_some_and(JoinHandle::is_finished) {
            self.end(Order::Leave); // continues the pump's panic
        }
        Ok(())
    }
}

impl Drop for AfPacket {
    fn drop(&mut self) {
        if let Some(pump) = self.pump.take() {
            self.shared.signals.give(Order::Leave);
            let _ = pump.join(); // the panic was printed already; do not panic in drop
        }
    }
}
