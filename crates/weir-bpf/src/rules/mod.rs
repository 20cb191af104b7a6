//! Rules by XDP (`rules_xdp.bpf.c`): each packet is counted for the first rule that it meets, and goes where that says.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_classify::{AddressTables, Condition, Kind, MOST_CONDITIONS, PROTOCOLS, Shape, Tables, ValueTable};
use weir_filter::emit::ebpf::{self, Candidate, Context};
use weir_filter::graph::Graph;
use weir_filter::regions::Region;
use weir_filter::set::Set;
use weir_sys::CallError;
use weir_sys::bpf::program::{self, ProgramKind};

use self::skeleton::types::{address_tables, rule_counter, shape, value_table};
use crate::filter::link::Code;
use crate::filter::{FilterError, Sets};
use crate::layout::{get, rule_kind, rule_tables, same, set};
use crate::leave_out_all;
use crate::log::logged;
use crate::xdp::HAS_FRAGMENTS;

skeleton!("rules_xdp");

same!(AddressTables, address_tables: roots, starts, classes, vectors, absent, used);
same!(ValueTable, value_table: classes, vectors, absent, used);
same!(Shape, shape: addresses, ports, kinds, conditions, rest, words, summaries, last);

// The numbers that both sides have.
const _: () = {
    assert!(Kind::Other as u32 == rule_kind::KIND_OTHER.0);
    assert!(Kind::Ipv4 as u32 == rule_kind::KIND_IPV4.0);
    assert!(Kind::Ipv6 as u32 == rule_kind::KIND_IPV6.0);
    assert!(Kind::Arp as u32 == rule_kind::KIND_ARP.0);
    assert!(Kind::ReverseArp as u32 == rule_kind::KIND_RARP.0);
    assert!(PROTOCOLS == rule_tables::KIND_PROTOCOLS.0 as usize);
    let words = rule_tables::MOST_SUMMARIES.0 * rule_tables::SUMMARY.0;
    assert!(MOST_CONDITIONS == words as usize * 64);
};

/// The program's name in the kernel's lists.
const NAME: &str = "weir_rules";

/// Rules that are not loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Their conditions are too many, or need too much memory.
    #[error("{0}")]
    Tables(#[from] weir_classify::Error),
    /// A filter or the program is refused.
    #[error("{0}")]
    Filter(#[from] FilterError),
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on, to the host.
    Pass,
    /// It goes no further.
    Block,
    /// It goes back out of the interface that it came from, with its MAC addresses swapped.
    Bounce,
}

/// A rule of many.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// The filter that its packets meet, for frames as on the wire.
    pub filter: (&'a Graph, &'a [Set]),
    /// Where such packets are. In an exact region, the filter is not asked.
    pub regions: &'a [Region],
    /// What happens to its packets.
    pub fate: Fate,
}

/// What was counted for a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Packets.
    pub packets: u64,
    /// Their bytes, from the Ethernet header on.
    pub bytes: u64,
    /// When the last one came, by `CLOCK_MONOTONIC` as of a tick of the kernel, in nanoseconds; 0: there was none.
    pub last: u64,
}

/// A loaded program, to be attached, and its counters.
#[derive(Debug)]
pub struct Rules {
    program: OwnedFd,
    counters: MapHandle,
    rules: usize,
}

impl Rules {
    /// Loads the program for these rules; a packet meets the first that holds. One that meets none passes. `limit`: the most bytes
    /// of tables.
    ///
    /// # Errors
    ///
    /// The rules need more memory, a filter is too long, or privileges or memory are missing.
    pub fn load(rules: &[Rule<'_>], fragments: bool, limit: usize) -> Result<Self, RulesError> {
        let laid = Laid::of(rules);
        let tables = Tables::new(&laid.conditions, &laid.rest, limit)?;
        let sets: Vec<Set> = laid.asked.iter().flat_map(|one| one.sets.iter().cloned()).collect();
        let sets = Sets::new(&sets).map_err(FilterError::from)?;
        let link = |around: &[bpf_insn]| -> Result<OwnedFd, FilterError> {
            let first = ebpf::first(&laid.asked, Context::Xdp { fragments, interface: None })?;
            let words = sets.words(&first, |symbol| unreachable!("it answers by itself, without {symbol}"));
            let kind = ProgramKind::Xdp { fragments, bound_to: None };
            Ok(program::load(kind, NAME, &Code::new(around).with(&words))?)
        };
        let fates: Vec<Fate> = rules.iter().map(|rule| rule.fate).collect();
        let loaded = logged("rules", || load(&tables, &laid.numbers, &fates, fragments, &link));
        let (program, counters) = loaded.map_err(FilterError::from)?;
        Ok(Self { program: program?, counters, rules: rules.len() })
    }

    /// Returns the program.
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Returns what was counted for each rule, and then for packets that met none.
    ///
    /// # Errors
    ///
    /// The kernel does not let this process read the map.
    pub fn counts(&self) -> Result<Vec<RuleCount>, CallError> {
        let of = |rule: usize| {
            let key = number(rule).to_ne_bytes();
            let failed = |error| CallError::new("read counters of rules", io::Error::other(error));
            let values = self.counters.lookup_percpu(&key, MapFlags::ANY).map_err(failed)?;
            let add = |sum: RuleCount, one: Vec<u8>| RuleCount {
                packets: sum.packets + get!(&one, rule_counter.packets),
                bytes: sum.bytes + get!(&one, rule_counter.bytes),
                last: sum.last.max(get!(&one, rule_counter.last)),
            };
            Ok(values.into_iter().flatten().fold(RuleCount::default(), add))
        };
        (0..=self.rules).map(of).collect()
    }
}

/// Rules as tables have them.
struct Laid<'a> {
    /// The conditions of all rules, in order.
    conditions: Vec<Condition>,
    /// Those that are not enough.
    rest: Vec<usize>,
    /// The rule of each condition.
    numbers: Vec<u32>,
    /// The filters of those that are not enough.
    asked: Vec<Candidate<'a>>,
}

impl<'a> Laid<'a> {
    fn of(rules: &[Rule<'a>]) -> Self {
        let mut laid =
            Self { conditions: Vec::new(), rest: Vec::new(), numbers: Vec::new(), asked: Vec::new() };
        for (index, &Rule { filter: (graph, sets), regions, .. }) in rules.iter().enumerate() {
            let (exact, rest): (Vec<_>, Vec<_>) = regions.iter().partition(|region| region.exact);
            let begin = laid.conditions.len() + exact.len();
            laid.conditions.extend(exact.iter().chain(&rest).map(|region| region.condition.clone()));
            laid.numbers.resize(laid.conditions.len(), number(index));
            if !rest.is_empty() {
                laid.rest.extend(begin..laid.conditions.len());
                laid.asked.push(Candidate { graph, sets, bits: (number(begin), number(rest.len())) });
            }
        }
        laid
    }
}

/// The program, of which the filters may be refused, and its counters.
type Loaded = (Result<OwnedFd, FilterError>, MapHandle);

fn load(
    tables: &Tables,
    numbers: &[u32],
    fates: &[Fate],
    fragments: bool,
    link: &dyn Fn(&[bpf_insn]) -> Result<OwnedFd, FilterError>,
) -> Result<Loaded, libbpf_rs::Error> {
    let has_rest = tables.shape().rest != 0;
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::RulesXdpSkelBuilder::default().open(&mut storage)?;
    leave_out_all(open.open_object_mut())?;
    let maps = &mut open.maps;
    for map in [&mut maps.tables, &mut maps.rules, &mut maps.rule_counters, &mut maps.rodata] {
        map.set_autocreate(true)?;
    }
    maps.candidates.set_autocreate(has_rest)?;
    maps.tables.set_value_size(size(tables.bytes().len()))?;
    maps.rules.set_max_entries(size(numbers.len()).max(1))?;
    maps.rule_counters.set_max_entries(size(fates.len() + 1))?;
    let constants = maps.rodata_data.as_deref_mut().expect("the program has constants");
    constants.fragments = fragments;
    constants.no_rule = number(fates.len());
    constants.shape = shape_of(tables.shape());
    open.progs.rules_xdp.set_autoload(true);
    open.progs.rules_xdp.set_flags(if fragments { HAS_FRAGMENTS } else { 0 });
    let loaded = open.load()?;
    loaded.maps.tables.update(&0_u32.to_ne_bytes(), tables.bytes(), MapFlags::ANY)?;
    fill(&loaded.maps.rules, numbers.iter().map(|rule| rule.to_ne_bytes().to_vec()))?;
    let processors = libbpf_rs::num_possible_cpus()?;
    for (rule, fate) in fates.iter().chain([&Fate::Pass]).enumerate() {
        let mut value = vec![0; size_of::<rule_counter>()];
        set!(&mut value, rule_counter.action = action(*fate));
        let values = vec![value; processors];
        loaded.maps.rule_counters.update_percpu(&number(rule).to_ne_bytes(), &values, MapFlags::ANY)?;
    }
    let program = if has_rest {
        link(loaded.progs.rules_xdp.insns())
    } else {
        loaded
            .progs
            .rules_xdp
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| FilterError::from(CallError::new("duplicate a program's descriptor", error)))
    };
    Ok((program, MapHandle::try_from(&loaded.maps.rule_counters)?))
}

/// Sets the values of an array.
fn fill(map: &impl MapCore, values: impl Iterator<Item = Vec<u8>>) -> Result<(), libbpf_rs::Error> {
    let mut at = 0..;
    values
        .zip(&mut at)
        .try_for_each(|(value, at): (_, u32)| map.update(&at.to_ne_bytes(), &value, MapFlags::ANY))
}

/// `enum xdp_action` of linux/bpf.h.
fn action(fate: Fate) -> u64 {
    match fate {
        Fate::Block => 1,
        Fate::Pass => 2,
        Fate::Bounce => 3,
    }
}

fn shape_of(of: &Shape) -> shape {
    let addresses = of.addresses.map(|one| address_tables {
        roots: one.roots,
        starts: one.starts,
        classes: one.classes,
        vectors: one.vectors,
        absent: one.absent,
        used: one.used,
    });
    let values = |one: ValueTable| value_table {
        classes: one.classes,
        vectors: one.vectors,
        absent: one.absent,
        used: one.used,
    };
    shape {
        addresses,
        ports: of.ports.map(values),
        kinds: values(of.kinds),
        conditions: of.conditions,
        rest: of.rest,
        words: of.words,
        summaries: of.summaries,
        last: of.last,
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("there are few rules")
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("tables have a limit")
}
