//! Rules by XDP (`rules_xdp.bpf.c`): each packet is counted for the first rule that it meets, and goes where that says.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_classify::{AddressTables, Shape, Tables, ValueTable};
use weir_sys::CallError;

use self::skeleton::types::{address_tables, rule_counter, shape, value_table};
use crate::layout::{get, same, set};
use crate::leave_out_all;
use crate::log::{LoadError, logged};
use crate::xdp::HAS_FRAGMENTS;

skeleton!("rules_xdp");

same!(AddressTables, address_tables: roots, starts, classes, vectors, absent, used);
same!(ValueTable, value_table: classes, vectors, absent, used);
same!(Shape, shape: addresses, ports, kinds, conditions, words, summaries, last);

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

/// A rule of many: its conditions, of which one suffices, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How many conditions it has.
    pub conditions: u32,
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
    /// Loads the program for rules whose conditions are in `tables`, those of the first rule first. A packet that meets none passes.
    ///
    /// # Errors
    ///
    /// Privileges or memory are missing.
    pub fn load(tables: &Tables, rules: &[Rule], fragments: bool) -> Result<Self, LoadError> {
        logged("rules", || load(tables, rules, fragments))
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

fn load(tables: &Tables, rules: &[Rule], fragments: bool) -> Result<Rules, libbpf_rs::Error> {
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::RulesXdpSkelBuilder::default().open(&mut storage)?;
    leave_out_all(open.open_object_mut())?;
    let maps = &mut open.maps;
    for map in [&mut maps.tables, &mut maps.rules, &mut maps.rule_counters, &mut maps.rodata] {
        map.set_autocreate(true)?;
    }
    maps.tables.set_value_size(size(tables.bytes().len()))?;
    let numbers: Vec<u32> =
        (0..).zip(rules).flat_map(|(number, rule)| (0..rule.conditions).map(move |_| number)).collect();
    maps.rules.set_max_entries(size(numbers.len()).max(1))?;
    maps.rule_counters.set_max_entries(size(rules.len() + 1))?;
    let constants = maps.rodata_data.as_deref_mut().expect("the program has constants");
    constants.fragments = fragments;
    constants.no_rule = number(rules.len());
    constants.shape = shape_of(tables.shape());
    open.progs.rules_xdp.set_autoload(true);
    open.progs.rules_xdp.set_flags(if fragments { HAS_FRAGMENTS } else { 0 });
    let loaded = open.load()?;
    loaded.maps.tables.update(&0_u32.to_ne_bytes(), tables.bytes(), MapFlags::ANY)?;
    for (condition, rule) in numbers.iter().enumerate() {
        loaded.maps.rules.update(&number(condition).to_ne_bytes(), &rule.to_ne_bytes(), MapFlags::ANY)?;
    }
    let processors = libbpf_rs::num_possible_cpus()?;
    for (rule, fate) in rules.iter().map(|rule| rule.fate).chain([Fate::Pass]).enumerate() {
        let mut value = vec![0; size_of::<rule_counter>()];
        set!(&mut value, rule_counter.action = action(fate));
        loaded.maps.rule_counters.update_percpu(
            &number(rule).to_ne_bytes(),
            &vec![value; processors],
            MapFlags::ANY,
        )?;
    }
    Ok(Rules {
        program: loaded.progs.rules_xdp.as_fd().try_clone_to_owned()?,
        counters: MapHandle::try_from(&loaded.maps.rule_counters)?,
        rules: rules.len(),
    })
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
