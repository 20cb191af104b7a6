//! Statistics: packets and bytes by filter, counted in the kernel. No packet is copied.
//!
//! One program per direction runs all filters, one after another, and adds to counters of its CPU. Reading them is one
//! call per direction, however many packets there are.

mod hook;

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use weir_bpf::stat;
pub use weir_bpf::stat::MOST_FILTERS;
use weir_sys::CallError;
use weir_sys::bpf::grace::Grace;

use self::hook::Hooked;
use crate::live::request::Wanted;
use crate::live::settings::SourceChoice;
use crate::live::source::programmed::off;
use crate::live::watched::Watched;
use crate::{Error, Event, Filter, InterfaceWarning, Mode, Namespace, NicCounters, Setting, SourceKind};

/// A builder for [`Statistics`]; see [`Statistics::on`].
#[derive(Clone, Debug)]
#[must_use]
pub struct StatisticsBuilder {
    wanted: Wanted,
    source: SourceChoice,
    mode: Mode,
    promiscuous: bool,
    tc_filters: bool,
    filters: Vec<(String, Filter)>,
}

/// Counts the packets of an interface in the kernel, in total and by filter. All packets continue on their way, unless
/// [`StatisticsBuilder::mode`] says otherwise.
///
/// ```no_run
/// # fn main() -> Result<(), weir::Error> {
/// # use weir::{Filter, Statistics};
/// let mut statistics = Statistics::on("eth0")
///     .filter("dns", Filter::new("port 53"))
///     .filter("web", Filter::new("tcp port 443"))
///     .start()?;
/// std::thread::sleep(std::time::Duration::from_secs(1));
/// let reading = statistics.read()?;
/// for filter in &reading.filters {
///     println!("{}: {} packets", filter.name, filter.counts.total().packets);
/// }
/// statistics.stop()
/// # }
/// ```
///
/// Counting ends when this is dropped or the process ends, however that happens. Other programs on the interface stay.
#[derive(Debug)]
pub struct Statistics {
    watched: Watched,
    info: StatisticsInfo,
    hooked: Hooked,
    grace: Grace,
    events: Vec<Event>,
    began: Instant,
    ended: Option<Instant>,
}

/// How packets are counted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StatisticsInfo {
    /// The interface; `NAMESPACE/NAME` if a namespace was named.
    pub name: String,
    /// [`Tc`](SourceKind::Tc): packets in both directions; [`Xdp`](SourceKind::Xdp): received ones.
    pub source: SourceKind,
    /// How the program is attached, in words.
    pub detail: String,
    /// Why this source was chosen.
    pub why: String,
    /// What is missing from the counts, if anything.
    pub warnings: Vec<InterfaceWarning>,
    /// The names of the filters, with the filters as shown to people.
    pub filters: Vec<(String, String)>,
}

/// What was counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Time since the start, until the end.
    pub elapsed: Duration,
    /// All packets that the interface has received and sent.
    pub total: Counts,
    /// The packets that match each filter, in the order in which the filters were added. A packet may match several.
    pub filters: Vec<FilterCounts>,
    /// Packets whose driver could not tell whether it stripped a VLAN tag.
    pub untold_tags: u64,
    /// Received packets that the device or its driver has dropped, which nothing could count.
    pub nic: NicCounters,
}

/// The packets that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterCounts {
    /// The name of the filter.
    pub name: String,
    /// The packets.
    pub counts: Counts,
}

/// Packets by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Received packets.
    pub received: Count,
    /// Sent packets; none with XDP, which does not see them, and on loopback, which receives what it sends.
    pub sent: Count,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Packets. A super-frame built by offloads counts as one.
    pub packets: u64,
    /// Their bytes: whole frames without checksum, with a VLAN tag that the device has stripped.
    pub bytes: u64,
}

impl std::ops::Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::Sub for Count {
    type Output = Self;

    /// Returns the growth since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

impl Counts {
    /// Returns the packets of both directions.
    pub fn total(&self) -> Count {
        self.received + self.sent
    }
}

impl std::ops::Sub for Counts {
    type Output = Self;

    /// Returns the growth since `before`.
    fn sub(self, before: Self) -> Self {
        Self { received: self.received - before.received, sent: self.sent - before.sent }
    }
}

impl StatisticsBuilder {
    /// Sets the network namespace of the interface; `None`: that of the calling thread.
    pub fn namespace(mut self, namespace: Option<&Namespace>) -> Self {
        self.wanted.namespace = namespace.cloned();
        self
    }

    /// Counts only what arrives on these receive queues, which only [`Xdp`](SourceChoice::Xdp) knows.
    /// [`Auto`](SourceChoice::Auto) takes xdp then.
    pub fn queues(mut self, queues: RangeInclusive<u32>) -> Self {
        self.wanted.queues = Some(queues);
        self
    }

    /// Sets where packets are counted: [`Tc`](SourceChoice::Tc), between driver and stack, in both directions; or
    /// [`Xdp`](SourceChoice::Xdp), before the stack, received packets only.
    /// [`Auto`](SourceChoice::Auto), the default, takes tc, and xdp where the kernel has no tc programs.
    pub fn source(mut self, source: SourceChoice) -> Self {
        self.source = source;
        self
    }

    /// Sets what happens to received packets once they are counted. [`Pass`](Mode::Pass) is the default.
    /// [`Exclusive`](Mode::Exclusive) drops all of them, whether they match a filter or not: for mirror ports, whose
    /// packets nothing on the host waits for. Only [`Xdp`](SourceChoice::Xdp) can do that;
    /// [`Auto`](SourceChoice::Auto) takes it then.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether frames for other stations are received and counted (promiscuous mode). The default is yes.
    pub fn promiscuous(mut self, promiscuous: bool) -> Self {
        self.promiscuous = promiscuous;
        self
    }

    /// Adds a filter, at most [`MOST_FILTERS`], with a name of its own. Filters may overlap.
    pub fn filter(mut self, name: impl Into<String>, filter: Filter) -> Self {
        self.filters.push((name.into(), filter));
        self
    }

    /// Starts to count.
    ///
    /// # Errors
    ///
    /// The interface is unknown or down, a filter is invalid, another XDP program is attached (with xdp), or privileges
    /// or kernel support are missing. Each error says what to do. Nothing stays attached.
    pub fn start(self) -> Result<Statistics, Error> {
        self.check()?;
        let mut watched = Watched::find(&self.wanted, 0)?;
        if !watched.device.link.is_up() {
            return Err(Error::InterfaceDown { name: watched.name().to_owned() });
        }
        let (hooked, how) = hook::attach(&watched, &self)?;
        if self.promiscuous {
            watched.make_promiscuous()?;
        }
        let labels = self.filters.into_iter().map(|(name, filter)| (name, filter.label()));
        let info = StatisticsInfo {
            name: watched.name().to_owned(),
            source: how.source,
            detail: how.detail,
            why: how.why,
            warnings: how.warnings,
            filters: labels.collect(),
        };
        let events = watched.first_event().into_iter().collect();
        Ok(Statistics {
            watched,
            info,
            hooked,
            grace: Grace::new(),
            events,
            began: Instant::now(),
            ended: None,
        })
    }

    /// Checks what needs no look at the machine.
    fn check(&self) -> Result<(), Error> {
        let refused = |why: String| Err(Error::setting(Setting::Filters, why));
        if self.wanted.is_any() {
            let why =
                "cannot count on `any`: a program attaches to one interface; try the name of an interface";
            return Err(Error::setting(Setting::Interface, why));
        }
        if !matches!(self.source, SourceChoice::Auto | SourceChoice::Tc | SourceChoice::Xdp) {
            let source = self.source.as_str();
            let why = format!(
                "cannot count with the {source} source: it runs no program that could; try tc or xdp"
            );
            return Err(Error::setting(Setting::Source(self.source), why));
        }
        if self.wanted.queues.is_some() && self.source == SourceChoice::Tc {
            let why = "cannot count by receive queue with the tc source, which does not know them; try the xdp source";
            return Err(Error::conflict(Setting::Queues, Setting::Source(self.source), why));
        }
        if self.mode == Mode::Exclusive && self.source == SourceChoice::Tc {
            let why = "cannot keep packets from the host with the tc source, which lets them pass; try the xdp source";
            return Err(Error::conflict(Setting::Mode(self.mode), Setting::Source(self.source), why));
        }
        let given = self.filters.len();
        if given > MOST_FILTERS {
            return refused(format!(
                "cannot count {given} filters: a program has room for {MOST_FILTERS}; try several programs, or \
                 join filters with `or`"
            ));
        }
        for (number, (name, _)) in self.filters.iter().enumerate() {
            if self.filters[..number].iter().any(|(other, _)| other == name) {
                return refused(format!("cannot count two filters called `{name}`: try a name for each"));
            }
        }
        Ok(())
    }
}

/// Sets whether tc attaches as `clsact` filters even if the kernel has tcx, to test what older kernels use.
pub fn by_tc_filters(mut builder: StatisticsBuilder, filters: bool) -> StatisticsBuilder {
    builder.tc_filters = filters;
    builder
}

impl Statistics {
    /// Prepares statistics of an interface, by default in the network namespace of the thread that calls
    /// [`StatisticsBuilder::start`].
    pub fn on(interface: impl Into<String>) -> StatisticsBuilder {
        StatisticsBuilder {
            wanted: Wanted { namespace: None, name: interface.into(), queues: None },
            source: SourceChoice::Auto,
            mode: Mode::Pass,
            promiscuous: true,
            tc_filters: false,
            filters: Vec::new(),
        }
    }

    /// Returns how packets are counted.
    pub fn info(&self) -> &StatisticsInfo {
        &self.info
    }

    /// Returns what was counted so far. While packets arrive, numbers may differ by packets that are just being counted;
    /// after [`stop`](Self::stop) they are final and exact.
    ///
    /// # Errors
    ///
    /// The kernel could not be queried.
    pub fn read(&mut self) -> Result<Reading, Error> {
        self.watched.count()?;
        let elapsed = self.ended.unwrap_or_else(Instant::now) - self.began;
        let [received, sent] = self.hooked.counters.read()?;
        let both = received.into_iter().zip(sent);
        let count = |stat::Count { packets, bytes }| Count { packets, bytes };
        let mut counts = both.map(|(received, sent)| Counts { received: count(received), sent: count(sent) });
        let total = counts.next().unwrap_or_default();
        let names = self.info.filters.iter().map(|(name, _)| name.clone());
        let filters = names.zip(counts).map(|(name, counts)| FilterCounts { name, counts }).collect();
        let (untold_tags, nic) = (self.hooked.counters.strays().untold, self.watched.nic());
        Ok(Reading { elapsed, total, filters, untold_tags, nic })
    }

    /// Waits up to `wait` for changes of the interface. Returns early on a signal.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`], after that event was returned. What was counted can still be read.
    pub fn wait(&mut self, wait: Duration) -> Result<Vec<Event>, Error> {
        if self.events.is_empty() {
            if self.watched.is_gone() {
                return Err(Error::InterfaceGone { name: self.info.name.clone() });
            }
            let wait = Timespec::try_from(wait).unwrap_or(FOREVER);
            let mut fds: Vec<_> = self.watched.fd().into_iter().collect();
            match poll(&mut fds, Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(CallError::new("wait for interface events", error).into()),
            }
            self.events = self.watched.listen()?;
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// Stops counting. When this returns, the numbers are final. Further calls do nothing.
    ///
    /// # Errors
    ///
    /// A program cannot be detached.
    pub fn stop(&mut self) -> Result<(), Error> {
        let Some(mut attachment) = self.hooked.attachment.take() else { return Ok(()) };
        let detached = off(attachment.detach());
        // Closing the descriptors detaches the program as well.
        drop(attachment);
        let waited = self.grace.wait();
        self.ended = Some(Instant::now());
        self.watched.calm();
        Ok(detached.and(waited)?)
    }
}

/// Practically infinite.
const FOREVER: Timespec = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_counted_is_told_before_anything_is_attached() {
        let filter = || Filter::new("udp");
        let refused = |builder: StatisticsBuilder| builder.start().expect_err("it cannot be").to_string();
        let many = (0..=MOST_FILTERS).fold(Statistics::on("lo"), |on, n| on.filter(n.to_string(), filter()));
        let table = [
            (many, "cannot count 129 filters: a program has room for 128; try "),
            (
                Statistics::on("lo").filter("a", filter()).filter("a", filter()),
                "two filters called `a`: try ",
            ),
            (Statistics::on("any"), "cannot count on `any`: "),
            (
                Statistics::on("lo").mode(Mode::Exclusive).source(SourceChoice::Tc),
                "cannot keep packets from the host with the tc source",
            ),
            (Statistics::on("lo").source(SourceChoice::AfPacket), "cannot count with the af_packet source: "),
            (Statistics::on("no-such"), "no interface named `no-such`"),
        ];
        for (builder, said) in table {
            let error = refused(builder);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn growth_is_by_direction() {
        let counts =
            |packets| Counts { received: Count { packets, bytes: 60 * packets }, ..Counts::default() };
        assert_eq!(counts(5) - counts(2), counts(3));
        assert_eq!(counts(3).total(), Count { packets: 3, bytes: 180 });
    }
}
