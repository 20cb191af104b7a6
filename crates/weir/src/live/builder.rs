//! Options of a capture.

use std::time::Duration;

use crate::live::memory::PoolSize;
use crate::live::steering::Steering;
use crate::{Capture, DEFAULT_SNAP_LEN, Direction, Error, Filter, Namespace, Setting, SourceKind, Steer};

/// Chunks per queue, unless many queues or interfaces would make that too much memory.
pub const DEFAULT_CHUNKS: u32 = 64;
/// Bytes of a chunk, not counting the extra room for one largest frame.
pub const DEFAULT_CHUNK_SIZE: u32 = 1 << 20;

/// The longest [`Window`] accepted: more than any source needs.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);

/// The source that captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceChoice {
    /// The one that suits the interface; [`crate::Interface::why`] gives the reason.
    #[default]
    Auto,
    /// An XDP program (Linux 6.1): the fastest source, for received packets only.
    Xdp,
    /// Programs between interface and stack (Linux 6.1): both directions, any driver.
    Tc,
    /// [`Xdp`](Self::Xdp) for received packets and [`Tc`](Self::Tc) for sent ones, each with its own pool.
    XdpTc,
    /// A packet socket with `TPACKET_V3`: any driver, both directions.
    AfPacket,
    /// One AF_XDP socket per receive queue: received packets only. They are taken away from the host
    /// ([`Mode::Exclusive`]), and the card writes them itself if its driver can (zero-copy).
    AfXdp,
}

impl SourceChoice {
    /// Returns its name: `auto`, or that of the [`SourceKind`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Xdp => SourceKind::Xdp.as_str(),
            Self::Tc => SourceKind::Tc.as_str(),
            Self::XdpTc => SourceKind::XdpTc.as_str(),
            Self::AfPacket => SourceKind::AfPacket.as_str(),
            Self::AfXdp => SourceKind::AfXdp.as_str(),
        }
    }
}

/// What happens to a packet after it is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// It continues to the host's stack.
    #[default]
    Pass,
    /// It ends in the pool, and the host does not see it. Only xdp and af_xdp can do that.
    Exclusive,
}

/// The origin of timestamps, which are in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timestamps {
    /// The kernel's clock, read for each packet.
    #[default]
    Kernel,
    /// As `Kernel`, but above 64 packets per tick of the kernel's timer (1 to 10 ms) one clock reading serves 32
    /// packets. Timestamps are never out of order, and at most one tick old. The af_packet source reads the clock for
    /// each packet.
    Batch,
    /// No timestamps: all are 0. The af_packet source provides them anyway.
    None,
}

/// When captured packets are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// Immediately at low rates, in batches at high rates. A lone packet is delivered within a millisecond, a full
    /// stream causes a few thousand wake-ups per second, and an idle capture uses no CPU time.
    #[default]
    Adaptive,
    /// Once a queue holds `min_bytes` of records, or the oldest record has waited for `timeout`.
    Batched {
        /// Bytes of records that justify a wake-up.
        min_bytes: u32,
        /// The longest wait.
        timeout: Duration,
    },
    /// Immediately, without ever sleeping. This keeps one CPU busy all the time, and with [`SourceChoice::AfXdp`] one
    /// more per queue, whose thread then drives the card itself (`SO_PREFER_BUSY_POLL`; the device's
    /// `napi_defer_hard_irqs` and `gro_flush_timeout` keep its interrupts off meanwhile).
    Active,
}

/// How long packets are held back so that older ones from other queues can go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// As long as the sources take to deliver a packet after its timestamp, provided that a CPU is idle. That is 2 ms
    /// with xdp and tc, which need microseconds, and 10 ms more with [`Timestamps::Batch`]; 10 ms with af_xdp, where a
    /// thread passes packets on; and 30 ms with af_packet, which delivers blocks. The longest applies.
    #[default]
    Usual,
    /// A fixed time.
    Of(Duration),
}

/// An interface that is about to be opened; see [`Builder::open_telling`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// How many interfaces are open already.
    pub before: usize,
    /// How many interfaces were requested.
    pub all: usize,
}

/// A builder for a [`Capture`]; see [`Capture::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(crate) interfaces: Vec<Wanted>,
    pub(crate) settings: Settings,
}

/// A requested interface.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// `None`: the calling thread's namespace.
    pub(crate) namespace: Option<Namespace>,
    pub(crate) name: String,
}

impl Wanted {
    /// Returns the name used in accounts, files and errors.
    pub(crate) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/{}", namespace.name(), self.name),
            None => self.name.clone(),
        }
    }

    /// Whether this stands for all interfaces of the namespace.
    pub(crate) fn is_any(&self) -> bool {
        self.name == ANY
    }
}

/// The name that stands for all interfaces of a namespace.
const ANY: &str = "any";

/// Everything a source needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) source: SourceChoice,
    pub(crate) mode: Mode,
    pub(crate) timestamps: Timestamps,
    pub(crate) snap_len: u32,
    pub(crate) pool: PoolSize,
    pub(crate) direction: Direction,
    pub(crate) direction_in_records: bool,
    pub(crate) promiscuous: bool,
    pub(crate) stacked: bool,
    pub(crate) delivery: Delivery,
    pub(crate) by_time: Option<Window>,
    pub(crate) segment: bool,
    pub(crate) tc_filters: bool,
    pub(crate) filter: Option<Filter>,
    pub(crate) steering: Option<Steering>,
}

impl Settings {
    /// Whether records carry the direction. `both` says whether both directions are captured.
    pub(crate) fn tells_direction(&self, both: bool) -> bool {
        both || self.direction_in_records
    }

    /// Returns the number of queues that `writers` writers fill: one per writer, or one per writer and target.
    pub(crate) fn queues_of(&self, writers: u32) -> u32 {
        writers.saturating_mul(self.targets().unwrap_or(1))
    }

    /// Returns the number of targets, if packets are steered.
    pub(crate) fn targets(&self) -> Option<u32> {
        self.steering.map(|steering| steering.targets)
    }
}

impl Settings {
    pub(crate) fn checked(self) -> Result<Self, Error> {
        if let Some(Window::Of(window)) = self.by_time
            && window > LONGEST_WINDOW
        {
            let longest = LONGEST_WINDOW.as_secs();
            let why = format!("packets can be held back for at most {longest} s");
            return Err(Error::setting(Setting::Window, why));
        }
        if self.by_time.is_some() && self.timestamps == Timestamps::None {
            let why = "sorting by time requires timestamps";
            return Err(Error::conflict(Setting::ByTime, Setting::Timestamps, why));
        }
        if self.pool.chunks.is_some() && self.pool.memory.is_some() {
            let why = "choose either a number of chunks or a total amount of memory";
            return Err(Error::conflict(Setting::Chunks, Setting::Memory, why));
        }
        if self.snap_len == 0 {
            return Err(Error::setting(Setting::SnapLen, "the snap length must be at least 1"));
        }
        self.steering.iter().try_for_each(Steering::check)?;
        Ok(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: SourceChoice::default(),
            mode: Mode::default(),
            timestamps: Timestamps::default(),
            snap_len: DEFAULT_SNAP_LEN,
            pool: PoolSize::default(),
            direction: Direction::default(),
            direction_in_records: false,
            promiscuous: true,
            stacked: false,
            delivery: Delivery::default(),
            by_time: None,
            segment: false,
            tc_filters: false,
            filter: None,
            steering: None,
        }
    }
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { interfaces: Vec::new(), settings: Settings::default() }
    }

    /// Adds an interface, by name, in the network namespace of the thread that calls [`open`](Self::open). Interfaces
    /// are numbered in the order in which they are added.
    ///
    /// `any` stands for all interfaces of the namespace, including those added later. Their packets share one queue and
    /// have a "Linux cooked" header (`LINKTYPE_LINUX_SLL2`), which contains the interface index. A frame that passes
    /// several stacked interfaces is captured at the lowest; see [`stacked`](Self::stacked).
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.interfaces.push(Wanted { namespace: None, name: name.into() });
        self
    }

    /// Adds an interface of another network namespace, or `any` for all interfaces there. The capture calls it
    /// `NAMESPACE/NAME`.
    pub fn interface_in(mut self, namespace: &Namespace, name: impl Into<String>) -> Self {
        self.interfaces.push(Wanted { namespace: Some(namespace.clone()), name: name.into() });
        self
    }

    /// Sets the source that captures.
    pub fn source(mut self, source: SourceChoice) -> Self {
        self.settings.source = source;
        self
    }

    /// Sets what happens to a packet after it is captured.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Sets the origin of timestamps.
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.settings.timestamps = timestamps;
        self
    }

    /// Sets the bytes kept of each packet, at least 1. The default is [`DEFAULT_SNAP_LEN`].
    pub fn snap_len(mut self, bytes: u32) -> Self {
        self.settings.snap_len = bytes;
        self
    }

    /// Sets the number of chunks per queue, at least 2. The default is [`DEFAULT_CHUNKS`], or fewer if there are many
    /// queues or [memory](Self::memory) is short.
    pub fn chunks(mut self, chunks: u32) -> Self {
        self.settings.pool.chunks = Some(chunks);
        self
    }

    /// Sets the size of a chunk in bytes, from 4 KiB to 1 GiB. The default is [`DEFAULT_CHUNK_SIZE`], or less if
    /// [memory](Self::memory) is short. Room for one largest frame is added.
    pub fn chunk_size(mut self, bytes: u32) -> Self {
        self.settings.pool.chunk_size = Some(bytes);
        self
    }

    /// Sets the most bytes that the whole capture may use for packets. If its interfaces would use more, they get equal
    /// shares, but never less than 8 chunks of 64 KiB per queue. The default is one eighth of what is available to the
    /// machine and to the control groups of the process.
    ///
    /// If [`chunks`](Self::chunks) is set, the capture uses what those chunks need. In any case, one sixteenth of all
    /// memory stays in reserve: at least 256 MiB, or a quarter of all memory if that is less.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.pool.memory = Some(bytes);
        self
    }

    /// Sets the direction of the packets to capture.
    pub fn direction(mut self, direction: Direction) -> Self {
        self.settings.direction = direction;
        self
    }

    /// Sets whether each record contains the direction of its packet (`epb_flags`, 12 bytes). By default it does if
    /// both directions are captured. [`Packet::direction`](crate::Packet) is set in any case. In a file with packets of
    /// one direction only, nothing but the records says which.
    pub fn direction_in_records(mut self, tell: bool) -> Self {
        self.settings.direction_in_records = tell;
        self
    }

    /// Sets whether frames for other stations are captured too (promiscuous mode). The default is yes.
    pub fn promiscuous(mut self, promiscuous: bool) -> Self {
        self.settings.promiscuous = promiscuous;
        self
    }

    /// Sets whether `any` captures a frame again at each bridge, bond, VLAN or macvlan on top of the interface where it
    /// is captured first. By default these repetitions are counted as filtered.
    pub fn stacked(mut self, stacked: bool) -> Self {
        self.settings.stacked = stacked;
        self
    }

    /// Sets when packets are delivered.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.settings.delivery = delivery;
        self
    }

    /// Delivers the packets of all queues and interfaces in timestamp order, to one thread ([`Capture::next`]). Without
    /// this, only the packets of each queue are in order. A [`Chunk`](crate::Chunk) then holds consecutive packets of
    /// one queue, up to the point where another queue is next. Nothing is copied.
    ///
    /// Each packet waits for a [`Window`], so that older ones can still arrive. A packet that arrives later than that
    /// is delivered next and counted as late ([`crate::TimeOrder`]). An idle queue delays the others by no more than
    /// the window. If a pool is more than half in use, packets do not wait, and are counted as early.
    ///
    /// All sources use the same clock, in all namespaces. With [`Timestamps::Batch`], packets of different queues are
    /// ordered only as precisely as their timestamps. [`Timestamps::None`] cannot be combined with this.
    pub fn by_time(mut self, window: Window) -> Self {
        self.settings.by_time = Some(window);
        self
    }

    /// Sets whether large TCP packets built by offloads (GSO, GRO) are captured as the segments on the wire, with the
    /// checksums that are left to the device filled in. Only the tc source can do that.
    pub fn segment(mut self, segment: bool) -> Self {
        self.settings.segment = segment;
        self
    }

    /// Sets the filter. Packets that do not match are counted as filtered and pass unaffected, in exclusive mode too.
    ///
    /// The kernel runs the filter before it copies a packet: as part of the eBPF program with xdp and tc, as a socket
    /// filter with af_packet. If the socket gets classic BPF, for lack of the capability to load a program, the packets
    /// it rejects are not counted ([`crate::Tally::filtered`]). For `any`, and if the filter is too long for classic
    /// BPF, it runs before packets are copied into the pool.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.settings.filter = Some(filter);
        self
    }

    /// Spreads packets over `targets` targets, from 1 to [`MOST_TARGETS`](crate::MOST_TARGETS), each with one handler
    /// ([`Capture::handlers`]). Each receive queue or CPU then fills one queue per target. Only the sources xdp and tc
    /// can do that. Packets rejected by the filter have no target, and are counted with the first one.
    pub fn steer(mut self, by: Steer, targets: u32) -> Self {
        self.settings.steering = Some(Steering::new(by, targets));
        self
    }

    /// Starts the capture.
    ///
    /// # Errors
    ///
    /// An interface is unknown, named twice or down; options contradict each other; or privileges, memory or kernel
    /// support are missing. Each error says what to do. Nothing stays attached.
    pub fn open(self) -> Result<Capture, Error> {
        self.open_telling(|_| {})
    }

    /// Starts the capture like [`open`](Self::open), and calls `tell` before it opens each interface. Allocating their
    /// memory takes time: seconds if there are many.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_telling(self, tell: impl FnMut(Opening<'_>)) -> Result<Capture, Error> {
        if self.interfaces.is_empty() {
            return Err(Error::NoInterface);
        }
        Capture::open(&self.interfaces, &self.settings.checked()?, tell)
    }
}

/// Sets whether the tc source attaches as `clsact` filters even if the kernel has tcx, to test what older kernels use.
pub fn tc_filters(mut builder: Builder, filters: bool) -> Builder {
    builder.settings.tc_filters = filters;
    builder
}
