//! Rules (`rules.h`): each packet is counted for the first rule that it meets, and goes where that says.

mod actions;
mod generated;
mod laid;
mod log;
mod maps;
mod memory;
mod tc;
mod xdp;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Program};
use weir_classify::{Direction, Kind, MOST_CONDITIONS, MOST_TAGS, PROTOCOLS, TAG_IS_CUT, Tables};
use weir_filter::emit::ebpf::{self, Context};
use weir_filter::graph::Graph;
use weir_filter::regions::Region;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::program::{self, ProgramKind};

pub use self::actions::{Besides, Capture, Learn, LimitKey, Over};
use self::generated::types::rule_counter;
use self::laid::Laid;
pub use self::log::{Log, LogReader, LogRecord, Logging};
use self::maps::{Contents, Maps};
use self::memory::{Buckets, Flows};
pub use self::memory::{Exact, ExactEntry, ExactRule, ExactRules, Memory, Unkept};
use crate::filter::link::{Code, Mark};
use crate::filter::{Behind, FilterError, Sets};
use crate::layout::{continuing, direction, get, rule_kind, rule_tables};
use crate::log::logged;

// The numbers that both sides have.
const _: () = {
    assert!(Kind::Other as u32 == rule_kind::KIND_OTHER.0);
    assert!(Kind::Ipv4 as u32 == rule_kind::KIND_IPV4.0);
    assert!(Kind::Ipv6 as u32 == rule_kind::KIND_IPV6.0);
    assert!(Kind::Arp as u32 == rule_kind::KIND_ARP.0);
    assert!(Kind::ReverseArp as u32 == rule_kind::KIND_RARP.0);
    assert!(Direction::Received as u32 == direction::RECEIVED.0);
    assert!(Direction::Sent as u32 == direction::SENT.0);
    assert!(PROTOCOLS == rule_tables::KIND_PROTOCOLS.0 as usize);
    assert!(TAG_IS_CUT as u32 == rule_tables::TAG_IS_CUT.0);
    assert!(MOST_TAGS == rule_tables::MOST_RULE_TAGS.0 as usize);
    let words = rule_tables::MOST_SUMMARIES.0 * rule_tables::SUMMARY.0;
    assert!(MOST_CONDITIONS == words as usize * 64);
};

/// The most rules that [continue](Besides::continues).
pub const MOST_CONTINUING: usize = continuing::MOST_CONTINUING.0 as usize;

/// The program's name in the kernel's lists.
const NAME: &str = "weir_rules";

/// Rules that are not loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Their conditions are too many, or need too much memory.
    #[error("{0}")]
    Tables(#[from] weir_classify::Error),
    /// Too many rules continue.
    #[error("{0} rules continue, but the kernel takes at most {MOST_CONTINUING}: let some of them decide")]
    Continuing(usize),
    /// A filter or the program is refused.
    #[error("{0}")]
    Filter(#[from] FilterError),
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    Pass,
    /// It goes no further.
    Block,
    /// It goes back, with its MAC addresses swapped: a received packet leaves through the interface that it came from, and a sent
    /// one is received by the host. No rule of these is asked about it again.
    Bounce,
    /// It leaves through the interface with this index instead, unchanged. No rule of these is asked about it again.
    Reflect(u32),
}

/// A rule of many.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// The filter that its packets meet, compiled for packets whose outer VLAN tag may be beside them
    /// ([`Beside::All`](weir_filter::Beside::All)), whatever the place: where it never is, the kernel removes what asks for it.
    pub filter: (&'a Graph, &'a [Set]),
    /// Where such packets are. In an exact region, the filter is not asked.
    pub regions: &'a [Region],
    /// What happens to its packets.
    pub fate: Fate,
    /// What else it does.
    pub besides: Besides,
}

/// The sizes of what loaded rules need.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most bytes of tables.
    pub tables: usize,
    /// The most exact rules; one for both directions counts twice. There is room for them only if a rule learns, or for `inserts`:
    /// about 170 bytes for each.
    pub exact: u32,
    /// Whether exact rules can be inserted though no rule learns.
    pub inserts: bool,
    /// The most addresses and flows that have a limit. There is room for them only if a rule has a limit: about 130 bytes for each.
    pub buckets: u32,
    /// The most flows of which the first packets are captured, of each rule. There is room for them only if there is such a rule: about
    /// 110 bytes for each.
    pub flows: u32,
    /// After such a silence, in nanoseconds, a flow begins anew.
    pub flow_idle: u64,
    /// Packets are logged.
    pub log: Option<Logging>,
    /// Every packet goes on. Rules count, learn, limit and log as if it had its fate.
    pub dry_run: bool,
    /// For tests: the programs' clock is [set](Memory::set_clock).
    #[doc(hidden)]
    pub clock_is_given: bool,
}

impl Settings {
    /// Returns the usual ones, for this many bytes of tables.
    pub fn new(tables: usize) -> Self {
        Self {
            tables,
            exact: 1 << 20,
            inserts: false,
            buckets: 1 << 20,
            flows: 1 << 20,
            flow_idle: 300_000_000_000,
            log: None,
            dry_run: false,
            clock_is_given: false,
        }
    }
}

/// What was counted for a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Packets that met it.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// Packets that exact rules decided on, which it has learned. For packets that met no rule: those of inserted rules.
    pub learned_packets: u64,
    /// Their bytes.
    pub learned_bytes: u64,
    /// Those of `packets` that a capture was to take.
    pub captured: u64,
    /// Those of `packets` beyond the limit of the rule's fate.
    pub over_packets: u64,
    /// Their bytes.
    pub over_bytes: u64,
    /// When the last one came, by `CLOCK_MONOTONIC` as of a tick of the kernel, in nanoseconds; 0: there was none.
    pub last: u64,
}

/// What meets received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// XDP, before the stack.
    Xdp {
        /// Packets may span several buffers.
        fragments: bool,
        /// Index of the interface that all packets come from, if it must not be read from the packet
        /// ([`Hook::Xdp`](crate::filter::Hook)).
        interface: Option<u32>,
    },
    /// tc, at ingress. What the stack has joined to one packet (GRO) is one.
    Tc,
}

/// Which packets of an interface meet the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Received ones.
    pub received: Option<Received>,
    /// Sent ones, by tc at egress. What a device is to cut into several packets (GSO) is one.
    pub sent: bool,
    /// Received ones of another interface, by XDP.
    pub back: Option<Received>,
}

/// Loaded programs, to be attached, and their counters.
#[derive(Debug)]
pub struct Rules {
    /// For received packets.
    pub received: Option<OwnedFd>,
    /// For sent packets.
    pub sent: Option<OwnedFd>,
    /// For packets of the other interface.
    pub back: Option<OwnedFd>,
    /// What both count.
    pub counters: RuleCounters,
    /// What both remember.
    pub memory: Memory,
    /// What both log, if it was asked for.
    pub log: Option<Log>,
}

/// The counters of loaded programs.
#[derive(Debug)]
pub struct RuleCounters {
    map: MapHandle,
    rules: usize,
}

impl Rules {
    /// Loads the programs of these `places`, with the usual [`Settings`]. `limit`: the most bytes of tables.
    ///
    /// # Errors
    ///
    /// As for [`Rules::load_with`].
    pub fn load(rules: &[Rule<'_>], places: Places, limit: usize) -> Result<Self, RulesError> {
        Self::load_with(rules, places, &Settings::new(limit))
    }

    /// Loads the programs of these `places`, which have all maps in common: tables, counters, and what is remembered. An exact rule
    /// that is in force for a packet decides on it; otherwise the first rule that holds. A packet that meets none passes.
    ///
    /// Packets begin with an Ethernet header.
    ///
    /// # Errors
    ///
    /// The rules need more memory, a filter is too long, or privileges or memory are missing.
    pub fn load_with(rules: &[Rule<'_>], places: Places, settings: &Settings) -> Result<Self, RulesError> {
        Self::load_all(rules, places, settings, None)
    }

    /// Loads programs that take the place of filters: each goes on with one of the programs `behind` it, for received packets, for
    /// sent ones, and for those of the other interface. Those of tc have the same behind them.
    ///
    /// # Errors
    ///
    /// As for [`Rules::load_with`].
    pub fn load_before(
        rules: &[Rule<'_>],
        places: Places,
        settings: &Settings,
        behind: [Option<Behind<'_>>; 3],
    ) -> Result<Self, RulesError> {
        Self::load_all(rules, places, settings, Some(behind))
    }

    fn load_all(
        rules: &[Rule<'_>],
        places: Places,
        settings: &Settings,
        behind: Option<[Option<Behind<'_>>; 3]>,
    ) -> Result<Self, RulesError> {
        let laid = Laid::of(rules);
        let tables = Tables::new(&laid.conditions, &laid.rest, settings.tables)?;
        if laid.continuing.len() > MOST_CONTINUING {
            return Err(RulesError::Continuing(laid.continuing.len()));
        }
        let asked: Vec<Set> = laid.asked.iter().flat_map(|one| one.sets.iter().cloned()).collect();
        let asked = Sets::new(&asked).map_err(FilterError::from)?;
        let continued: Vec<Set> = laid.continued.iter().flat_map(|(_, sets)| sets.iter().cloned()).collect();
        let continued = Sets::new(&continued).map_err(FilterError::from)?;
        let link = |context: Context, kind: ProgramKind, program: &Program<'_>| {
            let words = |sets: &Sets<'_>, code: &ebpf::Program| {
                sets.words(code, |symbol| unreachable!("it answers by itself, without {symbol}"))
            };
            let mut places = Vec::new();
            if !laid.asked.is_empty() {
                places.push((Mark::PLACE, words(&asked, &ebpf::first(&laid.asked, context)?)));
            }
            if !laid.continued.is_empty() {
                let counting = ebpf::counting(&laid.continued, context)?;
                places.push((Mark::OTHER_PLACE, words(&continued, &counting)));
            }
            if places.is_empty() {
                let failed = |error| CallError::new("duplicate a program's descriptor", error);
                return Ok(program.as_fd().try_clone_to_owned().map_err(failed)?);
            }
            let (marks, filters): (Vec<Mark>, Vec<&[u64]>) =
                places.iter().map(|(mark, words)| (*mark, &words[..])).unzip();
            Ok(program::load(kind, NAME, &Code::new(program.insns(), &marks).with(&filters))?)
        };
        let contents =
            Contents::new(&tables, &laid.numbers, &laid.continuing, rules, settings, behind.is_some());
        let behind = behind.unwrap_or_default();
        let loaded = logged("rules", || load(places, &contents, behind, &link));
        let (programs, maps) = loaded.map_err(FilterError::from)?;
        let [received, sent, back] = programs?;
        let limits = rules.iter().map(|rule| rule.besides.limits()).collect();
        let failed = |error| FilterError::from(CallError::new("take a map of rules", error));
        let memory = Memory {
            exact: maps.exact.map(ExactRules::new).transpose().map_err(failed)?,
            buckets: maps.buckets.map(|map| Buckets::new(&map, limits)).transpose().map_err(failed)?,
            flows: maps.flows.map(|map| Flows::new(&map, settings.flow_idle)).transpose().map_err(failed)?,
            unkept: maps.unkept,
            passages: maps.passages,
        };
        let counters = RuleCounters { map: maps.counters, rules: rules.len() };
        Ok(Self { received, sent, back, counters, memory, log: maps.log.map(Log) })
    }
}

impl RuleCounters {
    /// Returns what was counted for each rule, and then for packets that met none, in both directions together.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the map.
    pub fn counts(&self) -> Result<Vec<RuleCount>, CallError> {
        let of = |rule: usize| {
            let key = number(rule).to_ne_bytes();
            let failed = |error| CallError::new("read counters of rules", io::Error::other(error));
            let values = self.map.lookup_percpu(&key, MapFlags::ANY).map_err(failed)?;
            let add = |sum: RuleCount, one: Vec<u8>| RuleCount {
                packets: sum.packets + get!(&one, rule_counter.packets),
                bytes: sum.bytes + get!(&one, rule_counter.bytes),
                learned_packets: sum.learned_packets + get!(&one, rule_counter.learned_packets),
                learned_bytes: sum.learned_bytes + get!(&one, rule_counter.learned_bytes),
                captured: sum.captured + get!(&one, rule_counter.captured),
                over_packets: sum.over_packets + get!(&one, rule_counter.over_packets),
                over_bytes: sum.over_bytes + get!(&one, rule_counter.over_bytes),
                last: sum.last.max(get!(&one, rule_counter.last)),
            };
            Ok(values.into_iter().flatten().fold(RuleCount::default(), add))
        };
        (0..=self.rules).map(of).collect()
    }
}

/// Makes a program of one that was loaded without filters.
type Link<'a> = &'a dyn Fn(Context, ProgramKind, &Program<'_>) -> Result<OwnedFd, FilterError>;

/// Programs, whose filters may be refused, and their maps.
type Loaded<T> = (Result<T, FilterError>, Maps);

/// Loads the programs for received packets, for sent ones and for those of another interface, each without filters, and has them linked.
fn load(
    places: Places,
    contents: &Contents<'_>,
    [received, sent, back]: [Option<Behind<'_>>; 3],
    link: Link<'_>,
) -> Result<Loaded<[Option<OwnedFd>; 3]>, libbpf_rs::Error> {
    if !matches!(places.received, Some(Received::Xdp { .. })) {
        let wanted = [places.received.is_some(), places.sent];
        let (programs, maps) = tc::load(wanted, contents, None, received.or(sent), link)?;
        contents.fill(&maps)?;
        return Ok((programs.map(|[received, sent]| [received, sent, None]), maps));
    }
    let xdp = |place: Option<Received>, shared: Option<&Maps>, behind| match place {
        Some(Received::Xdp { fragments, interface }) => {
            xdp::load(fragments, interface, contents, shared, behind, link).map(Some)
        }
        Some(Received::Tc) | None => Ok(None),
    };
    let (first, maps) = xdp(places.received, None, received)?.expect("it is XDP");
    contents.fill(&maps)?;
    let programs = match first {
        Ok(received) => {
            let sent = match places.sent {
                true => tc::load([false, true], contents, Some(&maps), sent, link)?.0.map(|[_, sent]| sent),
                false => Ok(None),
            };
            let back = xdp(places.back, Some(&maps), back)?.map(|(program, _)| program).transpose();
            sent.and_then(|sent| Ok([Some(received), sent, back?]))
        }
        Err(error) => Err(error),
    };
    Ok((programs, maps))
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("there are few rules, and tables have a limit")
}
