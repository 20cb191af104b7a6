//! What can be chosen for a capture.

use std::time::Duration;

use crate::SourceKind;

/// Chunks per queue, unless many queues or interfaces would make that too much memory.
pub const DEFAULT_CHUNKS: u32 = 64;
/// Bytes of a chunk, not counting the extra room for one largest frame.
pub const DEFAULT_CHUNK_SIZE: u32 = 1 << 20;

/// The source that captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceChoice {
    /// The one that suits the interface: [`Xdp`](Self::Xdp) on a mirror port, a card without addresses that receives and hardly
    /// sends; otherwise [`Tc`](Self::Tc), which sees both directions. [`crate::Interface::why`] gives the reason.
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
    /// thread passes packets on; and 30 ms with af_packet, which delivers blocks. The longest applies. A single queue of xdp
    /// or tc is in order by itself: its packets are not held back.
    #[default]
    Usual,
    /// A fixed time.
    Of(Duration),
}

/// Requested pool sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolSize {
    pub(crate) chunks: Option<u32>,
    pub(crate) chunk_size: Option<u32>,
    /// The most bytes that all pools may use together: those of a capture or, once [divided](shares), those of an
    /// interface.
    pub(crate) memory: Option<u64>,
    /// The most bytes that an interface may use beside pools whose size is asked for.
    pub(crate) buffers: Option<u64>,
}
