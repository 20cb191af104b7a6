//! How a capture is asked for.

use std::time::Duration;

use crate::memory::PoolSize;
use crate::steering::Steering;
use crate::{Capture, Error, Filter, Namespace, Steer};

/// Chunks of one queue, unless many queues or interfaces make that a lot of memory.
pub const DEFAULT_CHUNKS: u32 = 64;
/// Bytes of a chunk in which records begin.
pub const DEFAULT_CHUNK_SIZE: u32 = 1 << 20;
/// Bytes kept of a packet: what tcpdump keeps.
pub const DEFAULT_SNAP_LEN: u32 = 262_144;

/// The longest [`Window`] that can be asked for: more than any source takes.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);

/// Which source captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceChoice {
    /// The one that fits the interface; [`crate::Interface::why`] says why.
    #[default]
    Auto,
    /// An XDP program (Linux 6.1): fastest, sees what arrives.
    Xdp,
    /// Programs between the interface and the stack (Linux 6.1): both directions, any driver.
    Tc,
    /// What arrives by [`Xdp`](Self::Xdp), what is sent by [`Tc`](Self::Tc), each with a pool of its own.
    XdpTc,
    /// A packet socket with `TPACKET_V3`: any driver, both directions.
    AfPacket,
    /// AF_XDP sockets, one for each receive queue: what arrives, taken away from the host ([`Mode::Exclusive`]), and written
    /// by the card itself where its driver can (zero-copy).
    AfXdp,
}

/// What becomes of a packet after it was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It goes on to the host's stack.
    #[default]
    Pass,
    /// It ends in the pool: the host does not see it. Only xdp and af_xdp can do that.
    Exclusive,
}

/// Where a packet's time stamp comes from. All are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// The kernel's clock, read for each packet.
    #[default]
    Kernel,
    /// The same, but at more than 64 packets in a tick of the kernel's timer (1 to 10 ms) one reading serves 32
    /// packets: never out of order, late by at most a tick. The af_packet source reads the clock for each.
    Batch,
    /// None: time stamps are 0. The af_packet source has them anyway.
    None,
}

/// Which packets, as seen from the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Those that arrive.
    In,
    /// Those that are sent.
    Out,
    /// Both, as far as the source sees them.
    #[default]
    Both,
}

/// When captured packets are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// At once when there are few, in batches when there are many: a lone packet within a millisecond, a full stream
    /// with some thousand wake-ups a second, and no processor time when there is nothing.
    #[default]
    Adaptive,
    /// Once a queue has `min_bytes` of records, or the oldest has waited for `timeout`.
    Batched {
        /// Bytes of records that are worth a wake-up.
        min_bytes: u32,
        /// Longest wait.
        timeout: Duration,
    },
    /// At once, without ever sleeping: one processor is busy all the time, and with [`SourceChoice::AfXdp`] another for each queue,
    /// whose thread then drives the card itself (`SO_PREFER_BUSY_POLL`; the device's `napi_defer_hard_irqs` and
    /// `gro_flush_timeout` keep its interrupts off meanwhile).
    Active,
}

/// How long packets are held back, so that older ones of other queues can go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// As long as it takes the sources to show what they have stamped, on a machine with a processor to spare: 2 ms with xdp
    /// and tc, which stamp a packet microseconds before they show it, 10 ms more with [`Timestamps::Batch`]; 10 ms with
    /// af_xdp, whose packets a thread takes over, and 30 ms with af_packet, where they come in blocks. The longest counts.
    #[default]
    Usual,
    /// As long as this.
    Of(Duration),
}

/// An interface that is being opened: [`Builder::open_telling`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many are open.
    pub before: usize,
    /// How many were asked for.
    pub all: usize,
}

/// Asks for a capture: [`Capture::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    interfaces: Vec<Wanted>,
    settings: Settings,
}

/// An interface that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// `None`: that of the calling thread.
    pub(crate) namespace: Option<Namespace>,
    pub(crate) name: String,
}

impl Wanted {
    /// As accounts, files and errors call it.
    pub(crate) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/{}", namespace.name(), self.name),
            None => self.name.clone(),
        }
    }

    /// All interfaces of the namespace, rather than one.
    pub(crate) fn is_any(&self) -> bool {
        self.name == ANY
    }
}

/// What stands for all interfaces of a namespace where a name is asked for.
const ANY: &str = "any";

/// All that a source needs to know.
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
    /// Whether records tell the direction; `both`: both are captured.
    pub(crate) fn tells_direction(&self, both: bool) -> bool {
        both || self.direction_in_records
    }

    /// Queues that this many writers fill: one, or one for each target.
    pub(crate) fn queues_of(&self, writers: u32) -> u32 {
        writers.saturating_mul(self.targets().unwrap_or(1))
    }

    /// Targets that packets are steered to, if they are.
    pub(crate) fn targets(&self) -> Option<u32> {
        self.steering.map(|steering| steering.targets)
    }
}

impl Settings {
    fn checked(self) -> Result<Self, Error> {
        if let Some(Window::Of(window)) = self.by_time
            && window > LONGEST_WINDOW
        {
            let longest = LONGEST_WINDOW.as_secs();
            return Err(Error::Options(format!("packets can be held back for {longest} s at most")));
        }
        if self.by_time.is_some() && self.timestamps == Timestamps::None {
            return Err(Error::Options("sorting by time needs timestamps".into()));
        }
        if self.pool.chunks.is_some() && self.pool.memory.is_some() {
            let why = "choose either a number of chunks or a total amount of memory";
            return Err(Error::Options(why.into()));
        }
        if self.snap_len == 0 {
            return Err(Error::Options("a snap length of 0 keeps nothing: 1 is the least".into()));
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

    /// Adds an interface, by name, in the network namespace of the thread that calls [`open`](Self::open). They are
    /// numbered in this order.
    ///
    /// `any` stands for all interfaces of the namespace, those that come later too: packets of all of them in one queue,
    /// with a "Linux cooked" header (`LINKTYPE_LINUX_SLL2`) that tells the interface by its index. A frame that passes
    /// several interfaces that stand on each other is taken at the lowest; see [`stacked`](Self::stacked).
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.interfaces.push(Wanted { namespace: None, name: name.into() });
        self
    }

    /// Adds an interface of another network namespace, or `any` for all that it has. It is called `NAMESPACE/NAME`.
    pub fn interface_in(mut self, namespace: &Namespace, name: impl Into<String>) -> Self {
        self.interfaces.push(Wanted { namespace: Some(namespace.clone()), name: name.into() });
        self
    }

    /// Which source captures.
    pub fn source(mut self, source: SourceChoice) -> Self {
        self.settings.source = source;
        self
    }

    /// What becomes of a packet after it was captured.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Where time stamps come from.
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.settings.timestamps = timestamps;
        self
    }

    /// Bytes kept of a packet, at least 1; [`DEFAULT_SNAP_LEN`] unless set.
    pub fn snap_len(mut self, bytes: u32) -> Self {
        self.settings.snap_len = bytes;
        self
    }

    /// Chunks a queue, at least 2. Unless set, [`DEFAULT_CHUNKS`], or fewer where there are many queues or
    /// [memory](Self::memory) is short.
    pub fn chunks(mut self, chunks: u32) -> Self {
        self.settings.pool.chunks = Some(chunks);
        self
    }

    /// Bytes of a chunk, from 4 KiB to 1 GiB; unless set, [`DEFAULT_CHUNK_SIZE`], or less where [memory](Self::memory) is
    /// short. Room for one largest frame is added.
    pub fn chunk_size(mut self, bytes: u32) -> Self {
        self.settings.pool.chunk_size = Some(bytes);
        self
    }

    /// Bytes that the whole capture takes for packets at most. Interfaces that would take more all together get as much as one
    /// another, but never less than 8 chunks of 64 KiB a queue. Unless set, it is an eighth of what is available, to the
    /// machine and to the control groups of the process.
    ///
    /// Where [`chunks`](Self::chunks) says how many, the capture takes what they take. Whatever is asked for, a sixteenth of
    /// all memory is left to others: at least 256 MiB, or a quarter of it where that is less.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.pool.memory = Some(bytes);
        self
    }

    /// Which packets.
    pub fn direction(mut self, direction: Direction) -> Self {
        self.settings.direction = direction;
        self
    }

    /// Whether each record tells which way its packet went (`epb_flags`, 12 bytes). Unless this says so that is done where both
    /// ways are captured. Chunks tell it in any case ([`Packet::direction`](crate::Packet)); who reads a file of packets that all
    /// went one way knows it from the records alone.
    pub fn direction_in_records(mut self, tell: bool) -> Self {
        self.settings.direction_in_records = tell;
        self
    }

    /// Whether frames for other stations are captured too; they are unless this says no.
    pub fn promiscuous(mut self, promiscuous: bool) -> Self {
        self.settings.promiscuous = promiscuous;
        self
    }

    /// Whether `any` takes a frame also at each bridge, bond, VLAN or macvlan that stands on the interface where it is
    /// taken. Unless this says so, those are counted as filtered.
    pub fn stacked(mut self, stacked: bool) -> Self {
        self.settings.stacked = stacked;
        self
    }

    /// When packets are handed over.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.settings.delivery = delivery;
        self
    }

    /// Packets of all queues and interfaces are handed over in the order of their time stamps, to one thread
    /// ([`Capture::next`]), where else each queue is in order by itself. A [`Chunk`](crate::Chunk) is then as many packets
    /// of one queue as come next, in the memory where they are: nothing is copied.
    ///
    /// A packet waits for a [`Window`], in which older ones may come; one that comes later than that goes next, and is
    /// counted as late ([`crate::TimeOrder`]). A queue without packets delays nobody beyond that, and where a pool is more
    /// than half in use nothing waits: those count as early.
    ///
    /// All sources stamp by the same clock, in all namespaces. With [`Timestamps::Batch`] packets of different queues are in
    /// order as far as their time stamps tell; with [`Timestamps::None`] there is nothing to order by.
    pub fn by_time(mut self, window: Window) -> Self {
        self.settings.by_time = Some(window);
        self
    }

    /// Whether TCP super-frames, which offloads build, are captured as the segments that the wire carries, and checksums
    /// that are left to the device are filled in. The tc source can do that.
    pub fn segment(mut self, segment: bool) -> Self {
        self.settings.segment = segment;
        self
    }

    /// Which packets are wanted: the others are counted as filtered and go on as if nobody looked, in mode exclusive too.
    ///
    /// The kernel asks before it copies: with xdp and tc an eBPF program, with af_packet a filter of the socket. Where the
    /// socket gets classic BPF, for want of the capability to load a program, nobody counts what it refuses
    /// ([`crate::Tally::filtered`]). The packets of `any`, and filters that are too long for classic BPF, are asked about
    /// before they are copied into the pool.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.settings.filter = Some(filter);
        self
    }

    /// Has the source spread packets over `targets` targets, 1 to [`MOST_TARGETS`](crate::MOST_TARGETS), each of which is for one handler
    /// ([`Capture::handlers`]): whoever writes has a queue for each target. The sources xdp and tc can do that. Packets that
    /// the filter does not want have no target, and are counted with the first.
    pub fn steer(mut self, by: Steer, targets: u32) -> Self {
        self.settings.steering = Some(Steering::new(by, targets));
        self
    }

    /// Whether the tc source attaches as filters of a `clsact` discipline even where the kernel has tcx: for tests of what
    /// older kernels get.
    #[doc(hidden)]
    pub fn tc_filters(mut self, filters: bool) -> Self {
        self.settings.tc_filters = filters;
        self
    }

    /// What was asked for, where the interfaces follow from something else.
    pub(crate) fn into_settings(self) -> Result<Settings, Error> {
        match self {
            Self { interfaces, .. } if !interfaces.is_empty() => {
                Err(Error::Options("the copy of what is forwarded has its interfaces from that".into()))
            }
            Self { settings: Settings { filter: Some(_), .. }, .. } => {
                Err(Error::Options("the copy of what is forwarded has its filter from that".into()))
            }
            Self { settings, .. } => settings.checked(),
        }
    }

    /// Begins the capture.
    ///
    /// # Errors
    ///
    /// An interface that is unknown, named twice or down; options that contradict each other; a lack of privilege, of
    /// memory or of kernel support: each says what to do. Nothing is left attached.
    pub fn open(self) -> Result<Capture, Error> {
        self.open_telling(|_| {})
    }

    /// The same, and tells before it opens an interface: their memory takes its time, which many interfaces make seconds.
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
