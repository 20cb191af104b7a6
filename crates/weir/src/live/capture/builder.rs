//! Options of a capture.

use std::num::NonZeroU32;
use std::ops::{ControlFlow, RangeInclusive};
#[cfg(feature = "flows")]
use std::time::Duration;

use super::Capture;
#[cfg(feature = "flows")]
use crate::live::request::counting::Counting;
use crate::live::request::sampling::{Sample, Sampling};
use crate::live::request::steering::{Steer, Steering};
use crate::live::request::{Opening, Settings, Wanted};
use crate::live::rules::Rules;
use crate::live::settings::{Delivery, Mode, SourceChoice, Timestamps, Window};
use crate::live::statistics::with_capture;
use crate::{Direction, Error, Filter, Namespace, Setting, Statistics};

/// A builder for a [`Capture`]; see [`Capture::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    pub(crate) interfaces: Vec<Wanted>,
    /// Queues were chosen before there was an interface.
    queues_of_none: bool,
    /// Filters of statistics.
    pub(crate) statistics: Vec<(String, Filter)>,
    pub(crate) settings: Settings,
}

impl Capture {
    /// Returns a builder with the default options.
    pub fn builder() -> Builder {
        Builder {
            interfaces: Vec::new(),
            queues_of_none: false,
            statistics: Vec::new(),
            settings: Settings::default(),
        }
    }
}

/// Identifies a socket among all of this host: `SO_COOKIE` (getsockopt, Linux 4.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketCookie(pub u64);

impl Builder {
    /// Adds an interface, by name, in the network namespace of the thread that calls [`open`](Self::open). Interfaces
    /// are numbered in the order in which they are added.
    ///
    /// `any` stands for all interfaces of the namespace, including those added later. Their packets share one queue and
    /// have a "Linux cooked" header (`LINKTYPE_LINUX_SLL2`), which contains the interface index. A frame that passes
    /// several stacked interfaces is captured at the lowest; see [`stacked`](Self::stacked).
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.interfaces.push(Wanted { namespace: None, name: name.into(), queues: None });
        self
    }

    /// Adds an interface of another network namespace, or `any` for all interfaces there. The capture calls it
    /// `NAMESPACE/NAME`.
    pub fn interface_in(mut self, namespace: &Namespace, name: impl Into<String>) -> Self {
        self.interfaces.push(Wanted { namespace: Some(namespace.clone()), name: name.into(), queues: None });
        self
    }

    /// Captures only on these receive queues of the interface added last. Packets on others pass unaffected, in exclusive
    /// mode too, and are counted nowhere. Only the sources [`Xdp`](SourceChoice::Xdp) and [`AfXdp`](SourceChoice::AfXdp)
    /// know the queues; [`Auto`](SourceChoice::Auto) takes xdp then.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), weir::Error> {
    /// let capture = weir::Capture::builder().interface("eth0").queues(0..=3).open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn queues(mut self, queues: RangeInclusive<u32>) -> Self {
        match self.interfaces.last_mut() {
            Some(interface) => interface.queues = Some(queues),
            None => self.queues_of_none = true,
        }
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

    /// Sets the bytes kept of each packet, at least 1. The default is [`DEFAULT_SNAP_LEN`](crate::DEFAULT_SNAP_LEN).
    pub fn snap_len(mut self, bytes: u32) -> Self {
        self.settings.snap_len = bytes;
        self
    }

    /// Sets the number of chunks per queue, at least 2. The default is [`DEFAULT_CHUNKS`](crate::DEFAULT_CHUNKS), or fewer if there are many
    /// queues or [memory](Self::memory) is short.
    pub fn chunks(mut self, chunks: u32) -> Self {
        self.settings.pool.chunks = Some(chunks);
        self
    }

    /// Sets the size of a chunk in bytes, from 4 KiB to 1 GiB. The default is [`DEFAULT_CHUNK_SIZE`](crate::DEFAULT_CHUNK_SIZE), or less if
    /// [memory](Self::memory) is short. Room for one largest frame is added.
    pub fn chunk_size(mut self, bytes: u32) -> Self {
        self.settings.pool.chunk_size = Some(bytes);
        self
    }

    /// Sets the most bytes that the whole capture may use for packets. If its interfaces would use more, they get equal
    /// shares, but never less than 8 chunks of 64 KiB per queue. The default is one eighth of what is available to the
    /// machine and to the control groups of the process.
    ///
    /// If [`chunks`](Self::chunks) is set, the capture uses what those chunks need; only the memory that the kernel needs
    /// beside them, with af_packet and af_xdp, shrinks where there are many interfaces. In any case, one sixteenth of all
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

    /// Leaves out packets that a socket sends, by its [cookie](SocketCookie): those of a program that answers what
    /// it captures. They count nowhere. Only the sources that capture sent packets with tc do this:
    /// [`Tc`](crate::SourceChoice::Tc) and [`XdpTc`](crate::SourceChoice::XdpTc).
    pub fn leave_out(mut self, socket: SocketCookie) -> Self {
        self.settings.left_out = Some(socket.0);
        self
    }

    /// Leaves out packets with this mark (`SO_MARK`, socket(7)), such as those that weir sends
    /// ([`send::MARK`](crate::send::MARK)). They count as filtered and pass unaffected.
    ///
    /// Only the sources [`Tc`](crate::SourceChoice::Tc) and, for sent packets, [`XdpTc`](crate::SourceChoice::XdpTc) see
    /// marks; others are refused, and [`Auto`](crate::SourceChoice::Auto) takes tc. The kernel clears the mark when a packet
    /// leaves the network namespace, so packets that another namespace or host has sent are captured.
    pub fn leave_out_mark(mut self, mark: NonZeroU32) -> Self {
        self.settings.left_out_mark = Some(mark);
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

    /// With [`Builder::by_time`], prefers packets out of order to lost ones: once a pool is more than half in use because
    /// sorting takes too long, and until nothing waits, whole chunks are delivered as they come, which takes no time for each packet. Their packets are counted as
    /// early; [`Capture::unsorted`] tells which are not in order.
    ///
    /// A capture of a single queue is delivered as without [`Builder::by_time`]: it is in order anyway, but for packets that two
    /// processors have put into one packet socket at the same time.
    pub fn or_unsorted(mut self) -> Self {
        self.settings.or_unsorted = true;
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
    /// it rejects are not counted ([`crate::PacketCounters::filtered`]). For `any`, and if the filter is too long for classic
    /// BPF, it runs before packets are copied into the pool.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.settings.filter = Some(filter);
        self
    }

    /// Sets rules, which take the filter's place: the first one whose filter accepts a packet says whether it is captured
    /// ([`Action::capture`](crate::guard::Action::capture)), and whether it goes on. A packet that meets none is not captured, and goes on.
    /// Packets that are not captured count as filtered. See [`Capture::rules`].
    ///
    /// The sources xdp, tc, xdp+tc and af_xdp apply them in the kernel, on interfaces with Ethernet headers; xdp and af_xdp without VLAN tags
    /// that the device strips. With af_packet this process applies them, and every packet goes on: other fates are refused. In [exclusive](Mode::Exclusive) mode a captured packet goes no further, which rules then have to say. What rules
    /// [log](crate::guard::Action::log) is not kept.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), weir::Error> {
    /// use weir::Filter;
    /// use weir::guard::{Action, CaptureAction, Fate, Rules};
    /// let bulk = Action::from(Fate::Pass).capture(CaptureAction::First(20));
    /// let rules = Rules::new().rule("bulk", Filter::new("tcp port 443"), bulk);
    /// let capture = weir::Capture::builder().interface("eth0").rules(rules).open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn rules(mut self, rules: Rules) -> Self {
        self.settings.rules = Some(rules);
        self
    }

    /// Counts the packets that match `filter`, under this `name`, in the kernel, and all packets: see
    /// [`Capture::statistics`]. At most [`MOST_FILTERS`](crate::statistics::MOST_FILTERS); they may overlap.
    ///
    /// tc counts every packet, received or sent, that gets there, whatever becomes of it in the capture: its filter, sample
    /// and direction do not matter. The tc source captures at the same place; with xdp, GRO may have joined received packets
    /// before. In [exclusive](Mode::Exclusive) mode packets do not get there, so it is refused, as are `any` and
    /// [`queues`](Self::queues).
    pub fn statistics(mut self, name: impl Into<String>, filter: Filter) -> Self {
        self.statistics.push((name.into(), filter));
        self
    }

    /// Captures only a sample of the packets that match the filter. The others count as sampled out
    /// ([`crate::PacketCounters::sampled_out`]) and pass unaffected, in exclusive mode too.
    ///
    /// With xdp, tc and af_xdp the kernel selects packets before it copies them; with af_packet, and for `any`, they are
    /// selected in this process, before they are copied into the pool. If large packets are cut
    /// ([`segment`](Self::segment)), each segment is a packet.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), weir::Error> {
    /// let capture = weir::Capture::builder().interface("eth0").sample("flow:1/100".parse()?).open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample(mut self, sample: Sample) -> Self {
        self.settings.sampling = Some(Sampling::new(sample));
        self
    }

    /// Counts most packets of flows in the kernel, and does not capture them: of each direction of a flow, the first eight are captured, and
    /// those that open or close a connection, and besides all that is no plain TCP or UDP in IP, such as fragments and tunnels.
    /// [`Capture::take_counted`] hands out what was counted, for a [`Table`](crate::flows::Table).
    ///
    /// There is room for at least `ways` directions of flows on each interface, 128 bytes each; packets of flows that find none are captured; a flow that was silent for a second makes room. After the
    /// silence `idle` a flow begins anew. Only the xdp source can do that, without steering or sampling. The packets count as
    /// [`counted`](crate::PacketCounters::counted).
    #[cfg(feature = "flows")]
    pub fn count_flows(mut self, ways: u32, idle: Duration) -> Self {
        self.settings.counting = Some(Counting::new(ways, idle));
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
        self.open_telling(|_| ControlFlow::Continue(()))
    }

    /// Starts the capture like [`open`](Self::open), and calls `tell` on this thread before it opens each interface, and again before
    /// it counts there ([`statistics`](Self::statistics)): many take seconds, although several are opened at a time.
    /// [`ControlFlow::Break`] ends the start.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), and [`Error::Interrupted`] if `tell` has ended it. Nothing stays attached.
    pub fn open_telling(
        self,
        mut tell: impl FnMut(Opening<'_>) -> ControlFlow<()>,
    ) -> Result<Capture, Error> {
        if self.interfaces.is_empty() {
            return Err(Error::NoInterface);
        }
        if self.queues_of_none {
            let why = "cannot choose receive queues: no interface was added before; try the other order";
            return Err(Error::setting(Setting::Queues, why));
        }
        let settings = self.settings.checked()?;
        if self.statistics.is_empty() {
            return Capture::open(&self.interfaces, &settings, tell);
        }
        let statistics = with_capture::builders(&self.interfaces, &settings, &self.statistics)?;
        let mut capture = Capture::open(&self.interfaces, &settings, &mut tell)?;
        capture.statistics = Statistics::start_all_telling(statistics, tell)?;
        Ok(capture)
    }
}

/// Sets whether the tc source attaches as `clsact` filters even if the kernel has tcx, to test what older kernels use.
pub fn tc_filters(mut builder: Builder, filters: bool) -> Builder {
    builder.settings.tc_filters = filters;
    builder
}
