//! Statistics: packets and bytes by filter and by key, counted in the kernel. No packet is copied.
//!
//! One program per direction runs all filters, one after another, and adds to counters of its CPU. Reading them is one
//! call per direction, however many packets there are; with keys, one more per 1024 keys.

mod hook;
mod reading;
mod several;
mod switch;
pub(crate) mod userspace;
pub(crate) mod with_capture;

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use weir_bpf::stat::Counted;
pub use weir_bpf::stat::{Key, KeyField, MOST_FILTERS};
use weir_sys::bpf::grace::Grace;

use self::hook::Hooked;
pub use self::reading::{Bucket, Count, Counts, FilterCounts, KeyCounts, Reading};
pub use self::switch::Switch;
use crate::live::interface::monitored::MonitoredInterface;
use crate::live::request::Wanted;
use crate::live::settings::SourceChoice;
use crate::live::source::programmed::off;
use crate::{Error, Event, Filter, InterfaceWarning, Mode, Namespace, Setting, SourceKind};

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
    fields: Vec<KeyField>,
    most_keys: u32,
    sizes: bool,
    gaps: bool,
}

/// Keys that are counted unless [`StatisticsBuilder::most_keys`] says otherwise.
const KEYS: u32 = 10_000;
/// The most keys that can be counted: some GiB.
const MOST_KEYS: u32 = 10_000_000;

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
    monitored: MonitoredInterface,
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
    /// The fields of keys, in the order of [`KeyField::ALL`]; empty if packets are not counted by key.
    pub fields: Vec<KeyField>,
    /// Whether packets are counted by size.
    pub sizes: bool,
    /// Whether packets are counted by gap.
    pub gaps: bool,
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

    /// Counts by key as well: by the source address, say, or by the destination address and port. Each packet has a key;
    /// fields that it lacks are missing from that. With a filter, of which there can be only one then, what that accepts
    /// is counted by key, otherwise all packets.
    pub fn by(mut self, fields: impl IntoIterator<Item = KeyField>) -> Self {
        let given: Vec<KeyField> = fields.into_iter().collect();
        self.fields = KeyField::ALL.into_iter().filter(|field| given.contains(field)).collect();
        self
    }

    /// Sets the most keys to count, 10,000 by default. Packets with keys that come later count as
    /// [others](Reading::others). The kernel takes about 100 bytes for each, and 32 for each CPU, at the start.
    pub fn most_keys(mut self, keys: u32) -> Self {
        self.most_keys = keys;
        self
    }

    /// Sets whether packets are counted by [size](Reading::sizes) as well; with a filter, as with [`by`](Self::by).
    pub fn sizes(mut self, sizes: bool) -> Self {
        self.sizes = sizes;
        self
    }

    /// Sets whether packets are counted by the [gaps](Reading::gaps) between them; with a filter, as with
    /// [`by`](Self::by).
    pub fn gaps(mut self, gaps: bool) -> Self {
        self.gaps = gaps;
        self
    }

    /// Starts to count.
    ///
    /// # Errors
    ///
    /// The interface is unknown or down, a filter is invalid, another XDP program is attached (with xdp), or privileges
    /// or kernel support are missing. Each error says what to do. Nothing stays attached.
    pub fn start(self) -> Result<Statistics, Error> {
        self.start_as(0)
    }

    /// Starts to count; events have this number.
    fn start_as(self, number: u32) -> Result<Statistics, Error> {
        self.check()?;
        let mut monitored = MonitoredInterface::find(&self.wanted, number)?;
        if !monitored.device.link.is_up() {
            return Err(Error::InterfaceDown { name: monitored.name().to_owned() });
        }
        let (hooked, how) = hook::attach(&monitored, &self)?;
        if self.promiscuous {
            monitored.make_promiscuous()?;
        }
        let labels = self.filters.into_iter().map(|(name, filter)| (name, filter.label()));
        let info = StatisticsInfo {
            name: monitored.name().to_owned(),
            source: how.source,
            detail: how.detail,
            why: how.why,
            warnings: how.warnings,
            filters: labels.collect(),
            fields: self.fields,
            sizes: self.sizes,
            gaps: self.gaps,
        };
        let events = monitored.first_event().into_iter().collect();
        Ok(Statistics {
            monitored,
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
        if given > 1 && (!self.fields.is_empty() || self.sizes || self.gaps) {
            return refused(format!(
                "cannot count by key, size or gap what {given} filters accept: only what one accepts, or all packets; try \
                 one filter, joined with `or`"
            ));
        }
        if self.most_keys == 0 || self.most_keys > MOST_KEYS {
            let why = format!(
                "cannot count {} keys: their memory is allocated at the start; try 1 to {MOST_KEYS}",
                self.most_keys
            );
            return Err(Error::setting(Setting::MostKeys, why));
        }
        for (number, (name, _)) in self.filters.iter().enumerate() {
            if self.filters[..number].iter().any(|(other, _)| other == name) {
                return refused(format!("cannot count two filters called `{name}`: try a name for each"));
            }
        }
        Ok(())
    }
}

/// Checks what needs no look at the machine.
///
/// # Errors
///
/// Those of [`StatisticsBuilder::start`].
pub fn check_statistics(builder: &StatisticsBuilder) -> Result<(), Error> {
    builder.check()
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
            fields: Vec::new(),
            most_keys: KEYS,
            sizes: false,
            gaps: false,
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
        self.monitored.count()?;
        let elapsed = self.ended.unwrap_or_else(Instant::now) - self.began;
        let Counted { all, filters, keys, others, spread } = self.hooked.counters.read()?;
        let names = self.info.filters.iter().map(|(name, _)| name.clone());
        let filter = |(name, counts): (String, [_; 2])| FilterCounts { name, counts: Counts::of(counts) };
        Ok(Reading {
            elapsed,
            total: Counts::of(all),
            filters: names.zip(filters).map(filter).collect(),
            keys: keys
                .into_iter()
                .map(|(key, counts)| KeyCounts { key, counts: Counts::of(counts) })
                .collect(),
            others: Counts::of(others),
            sizes: if self.info.sizes {
                spread.sizes.into_iter().map(Bucket::of).collect()
            } else {
                Vec::new()
            },
            gaps: if self.info.gaps { spread.gaps.into_iter().map(Bucket::of).collect() } else { Vec::new() },
            first: Counts::of(spread.first),
            tag_unknown: self.hooked.counters.strays().tag_unknown,
            nic: self.monitored.nic(),
        })
    }

    /// Waits up to `wait` for changes of the interface. Returns early on a signal.
    ///
    /// # Errors
    ///
    /// [`Error::InterfaceGone`], after that event was returned. What was counted can still be read.
    pub fn wait(&mut self, wait: Duration) -> Result<Vec<Event>, Error> {
        Self::wait_any(std::slice::from_mut(self), wait)
    }

    /// Returns what switches counting off and on; `None`: with xdp.
    pub fn switch(&self) -> Option<&Switch> {
        self.hooked.switch.as_ref()
    }

    /// Returns whether the interface is gone, so that nothing more is counted.
    pub fn is_gone(&self) -> bool {
        self.monitored.is_gone()
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
        self.monitored.calm();
        Ok(detached.and(waited)?)
    }
}

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
            (
                Statistics::on("lo").filter("a", filter()).filter("b", filter()).by([KeyField::Vlan]),
                "what 2 filters accept: only what one accepts, or all packets; try ",
            ),
            (Statistics::on("lo").most_keys(0), "cannot count 0 keys: "),
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
}
