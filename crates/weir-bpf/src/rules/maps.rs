//! The maps of the programs, which those of both directions share, and their constants.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_classify::{AddressTables, Shape, Tables, ValueTable};

use super::xdp::skeleton::types::{address_tables, rule_counter, shape, value_table};
use super::{Fate, number};
use crate::layout::{rule_fate, same, set};

same!(AddressTables, address_tables: roots, starts, classes, vectors, absent, used);
same!(ValueTable, value_table: classes, vectors, absent, used);
same!(Shape, shape: addresses, ports, kinds, conditions, rest, words, summaries, last);

/// What is in the maps.
pub(super) struct Contents<'a> {
    pub(super) tables: &'a Tables,
    /// The rule of each condition.
    pub(super) numbers: &'a [u32],
    /// The fate of each rule.
    pub(super) fates: Vec<Fate>,
}

/// The maps.
pub(super) struct Maps {
    pub(super) tables: MapHandle,
    pub(super) rules: MapHandle,
    pub(super) candidates: Option<MapHandle>,
    pub(super) counters: MapHandle,
}

impl Contents<'_> {
    pub(super) fn has_rest(&self) -> bool {
        self.tables.shape().rest != 0
    }

    /// Fills new maps.
    pub(super) fn fill(&self, maps: &Maps) -> Result<(), libbpf_rs::Error> {
        maps.tables.update(&0_u32.to_ne_bytes(), self.tables.bytes(), MapFlags::ANY)?;
        for (condition, rule) in self.numbers.iter().enumerate() {
            maps.rules.update(&number(condition).to_ne_bytes(), &rule.to_ne_bytes(), MapFlags::ANY)?;
        }
        let processors = libbpf_rs::num_possible_cpus()?;
        for (rule, fate) in self.fates.iter().chain([&Fate::Pass]).enumerate() {
            let (fate, interface) = code(*fate);
            let mut value = vec![0; size_of::<rule_counter>()];
            set!(&mut value, rule_counter.fate = fate);
            set!(&mut value, rule_counter.interface = interface);
            let values = vec![value; processors];
            maps.counters.update_percpu(&number(rule).to_ne_bytes(), &values, MapFlags::ANY)?;
        }
        Ok(())
    }
}

/// Returns a fate as programs have it, and its interface.
fn code(fate: Fate) -> (u32, u32) {
    match fate {
        Fate::Pass => (rule_fate::FATE_PASS.0, 0),
        Fate::Block => (rule_fate::FATE_BLOCK.0, 0),
        Fate::Bounce => (rule_fate::FATE_BOUNCE.0, 0),
        Fate::Reflect(interface) => (rule_fate::FATE_REFLECT.0, interface),
    }
}

/// Sets the constants of a program, and the sizes of its maps; with `shared`, it has those instead. Returns the constants.
macro_rules! prepare {
    ($open:expr, $contents:expr, $shared:expr) => {{
        let contents: &$crate::rules::maps::Contents<'_> = $contents;
        let shared: Option<&$crate::rules::maps::Maps> = $shared;
        $crate::leave_out_all($open.open_object_mut())?;
        let maps = &mut $open.maps;
        for map in [&mut maps.tables, &mut maps.rules, &mut maps.rule_counters, &mut maps.rodata] {
            map.set_autocreate(true)?;
        }
        maps.candidates.set_autocreate(contents.has_rest())?;
        match shared {
            Some(shared) => {
                let candidates = shared.candidates.as_ref().map(|map| (&mut maps.candidates, map));
                let others = [
                    (&mut maps.tables, &shared.tables),
                    (&mut maps.rules, &shared.rules),
                    (&mut maps.rule_counters, &shared.counters),
                ];
                for (ours, map) in others.into_iter().chain(candidates) {
                    ours.reuse_fd(std::os::fd::AsFd::as_fd(map))?;
                }
            }
            None => {
                maps.tables.set_value_size($crate::rules::number(contents.tables.bytes().len()))?;
                maps.rules.set_max_entries($crate::rules::number(contents.numbers.len()).max(1))?;
                maps.rule_counters.set_max_entries($crate::rules::number(contents.fates.len() + 1))?;
            }
        }
        let constants = maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.no_rule = $crate::rules::number(contents.fates.len());
        constants.shape = $crate::rules::maps::shape_of!(contents.tables.shape());
        constants
    }};
}
pub(super) use prepare;

/// Returns the dimensions of tables as the constants of the program in whose module this is.
macro_rules! shape_of {
    ($shape:expr) => {{
        use skeleton::types::{address_tables, shape, value_table};
        let of: &weir_classify::Shape = $shape;
        let addresses = of.addresses.map(|one| address_tables {
            roots: one.roots,
            starts: one.starts,
            classes: one.classes,
            vectors: one.vectors,
            absent: one.absent,
            used: one.used,
        });
        let values = |one: weir_classify::ValueTable| value_table {
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
    }};
}
pub(super) use shape_of;

/// Returns the maps that a program was loaded with.
macro_rules! keep {
    ($loaded:expr, $contents:expr) => {{
        let contents: &$crate::rules::maps::Contents<'_> = $contents;
        let candidates =
            contents.has_rest().then(|| libbpf_rs::MapHandle::try_from(&$loaded.maps.candidates));
        $crate::rules::maps::Maps {
            tables: libbpf_rs::MapHandle::try_from(&$loaded.maps.tables)?,
            rules: libbpf_rs::MapHandle::try_from(&$loaded.maps.rules)?,
            candidates: candidates.transpose()?,
            counters: libbpf_rs::MapHandle::try_from(&$loaded.maps.rule_counters)?,
        }
    }};
}
pub(super) use keep;
