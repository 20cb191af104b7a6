//! The maps of the programs, which those of both directions share, and their constants.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use weir_classify::{AddressTables, Shape, Tables, ValueTable};

use super::actions::{Besides, Capture, code};
use super::generated::types::{address_tables, rule_counter, shape, value_table};
use super::log::Logging;
use super::{Fate, Rule, Settings, number};
use crate::layout::{key_field, same, set};

same!(AddressTables, address_tables: roots, starts, classes, vectors, absent, used);
same!(ValueTable, value_table: classes, vectors, absent, used);
same!(Shape, shape: addresses, ports, kinds, directed, tags, conditions, rest, words, summaries, last);

/// What is in the maps.
pub(super) struct Contents<'a> {
    pub(super) tables: &'a Tables,
    /// The rule of each condition.
    pub(super) numbers: &'a [u32],
    /// The rules that continue.
    pub(super) continuing: &'a [u32],
    /// What each rule does.
    pub(super) actions: Vec<(Fate, Besides)>,
    /// The most exact rules, if there can be any.
    pub(super) exact: Option<u32>,
    /// The most buckets, if there are limits.
    pub(super) buckets: Option<u32>,
    /// The most flows, if the first packets of some are captured.
    pub(super) flows: Option<u32>,
    /// After such a silence, in nanoseconds, a flow begins anew.
    pub(super) flow_idle: u64,
    /// There is a capture behind.
    pub(super) captures: bool,
    pub(super) log: Option<Logging>,
    pub(super) dry_run: bool,
    pub(super) clock_is_given: bool,
}

/// The maps.
pub(super) struct Maps {
    pub(super) tables: MapHandle,
    pub(super) rules: MapHandle,
    pub(super) candidates: Option<MapHandle>,
    pub(super) counters: MapHandle,
    pub(super) actions: Option<MapHandle>,
    pub(super) passages: Option<MapHandle>,
    pub(super) unkept: Option<MapHandle>,
    pub(super) exact: Option<MapHandle>,
    pub(super) buckets: Option<MapHandle>,
    pub(super) flows: Option<MapHandle>,
    pub(super) log: Option<MapHandle>,
    pub(super) continued: Option<MapHandle>,
}

impl<'a> Contents<'a> {
    pub(super) fn new(
        tables: &'a Tables,
        numbers: &'a [u32],
        continuing: &'a [u32],
        rules: &[Rule<'_>],
        settings: &Settings,
        captures: bool,
    ) -> Self {
        let learns = settings.inserts || rules.iter().any(|rule| rule.besides.learn.is_some());
        let limits = rules.iter().any(|rule| rule.besides.limits().iter().any(Option::is_some));
        let firsts = rules.iter().any(|rule| matches!(rule.besides.capture, Capture::First(_)));
        Self {
            tables,
            numbers,
            continuing,
            flows: (captures && firsts).then_some(settings.flows),
            flow_idle: settings.flow_idle,
            captures,
            actions: rules.iter().map(|rule| (rule.fate, rule.besides)).collect(),
            exact: learns.then_some(settings.exact),
            buckets: limits.then_some(settings.buckets),
            log: settings.log,
            dry_run: settings.dry_run,
            clock_is_given: settings.clock_is_given,
        }
    }

    /// Whether rules do more than to count packets and to have a fate for them.
    pub(super) fn remembers(&self) -> bool {
        self.exact.is_some() || self.buckets.is_some() || self.log.is_some() || self.flows.is_some()
    }

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
        let none = (Fate::Pass, Besides::default());
        for (rule, (fate, besides)) in self.actions.iter().chain([&none]).enumerate() {
            let (fate, interface) = code(*fate);
            let mut value = vec![0; size_of::<rule_counter>()];
            set!(&mut value, rule_counter.fate = fate);
            set!(&mut value, rule_counter.interface = interface);
            let (capture, of) = besides.capture.code();
            set!(&mut value, rule_counter.capture = capture);
            set!(&mut value, rule_counter.number = of);
            let values = vec![value; processors];
            maps.counters.update_percpu(&number(rule).to_ne_bytes(), &values, MapFlags::ANY)?;
        }
        let Some(actions) = &maps.actions else { return Ok(()) };
        for (rule, (_, besides)) in self.actions.iter().enumerate() {
            actions.update(&number(rule).to_ne_bytes(), &besides.bytes(), MapFlags::ANY)?;
        }
        Ok(())
    }
}

/// The fields of a packet that rules remember it by.
pub(super) fn fields_of_exact() -> u32 {
    let fields = [
        key_field::BY_VLAN,
        key_field::BY_PROTOCOL,
        key_field::BY_SOURCE,
        key_field::BY_SOURCE_PORT,
        key_field::BY_DESTINATION,
        key_field::BY_DESTINATION_PORT,
    ];
    fields.into_iter().fold(0, |bits, field| bits | field.0)
}

/// Sets the constants of a program, and the sizes of its maps; with `shared`, it has those instead. `behind`: what it is in front of.
/// Returns the constants.
macro_rules! prepare {
    ($open:expr, $contents:expr, $shared:expr, $behind:expr) => {{
        let contents: &$crate::rules::maps::Contents<'_> = $contents;
        let shared: Option<&$crate::rules::maps::Maps> = $shared;
        $crate::leave_out_all($open.open_object_mut())?;
        let maps = &mut $open.maps;
        for map in [&mut maps.tables, &mut maps.rules, &mut maps.rule_counters, &mut maps.rodata] {
            map.set_autocreate(true)?;
        }
        maps.candidates.set_autocreate(contents.has_rest())?;
        for map in [&mut maps.rule_actions, &mut maps.passages, &mut maps.unkept] {
            map.set_autocreate(contents.remembers())?;
        }
        maps.exact_rules.set_autocreate(contents.exact.is_some())?;
        maps.buckets.set_autocreate(contents.buckets.is_some())?;
        maps.flows.set_autocreate(contents.flows.is_some())?;
        maps.continued.set_autocreate(!contents.continuing.is_empty())?;
        maps.log_records.set_autocreate(contents.log.is_some())?;
        match shared {
            Some(shared) => {
                let all = [
                    (&mut maps.tables, Some(&shared.tables)),
                    (&mut maps.rules, Some(&shared.rules)),
                    (&mut maps.rule_counters, Some(&shared.counters)),
                    (&mut maps.candidates, shared.candidates.as_ref()),
                    (&mut maps.rule_actions, shared.actions.as_ref()),
                    (&mut maps.passages, shared.passages.as_ref()),
                    (&mut maps.unkept, shared.unkept.as_ref()),
                    (&mut maps.exact_rules, shared.exact.as_ref()),
                    (&mut maps.buckets, shared.buckets.as_ref()),
                    (&mut maps.flows, shared.flows.as_ref()),
                    (&mut maps.log_records, shared.log.as_ref()),
                    (&mut maps.continued, shared.continued.as_ref()),
                ];
                for (ours, map) in all.into_iter().filter_map(|(ours, map)| Some((ours, map?))) {
                    ours.reuse_fd(std::os::fd::AsFd::as_fd(map))?;
                }
            }
            None => {
                maps.tables.set_value_size($crate::rules::number(contents.tables.bytes().len()))?;
                maps.rules.set_max_entries($crate::rules::number(contents.numbers.len()).max(1))?;
                let rules = $crate::rules::number(contents.actions.len());
                maps.rule_counters.set_max_entries(rules + 1)?;
                maps.rule_actions.set_max_entries(rules.max(1))?;
                maps.exact_rules.set_max_entries(contents.exact.unwrap_or_default().max(1))?;
                maps.buckets.set_max_entries(contents.buckets.unwrap_or_default().max(1))?;
                maps.flows.set_max_entries(contents.flows.unwrap_or_default().max(1))?;
                if let Some(log) = contents.log {
                    maps.log_records.set_max_entries(log.ring())?;
                }
            }
        }
        let behind: Option<$crate::filter::Behind<'_>> = $behind;
        if let Some(behind) = behind {
            for (ours, map) in [(&mut maps.outcomes, behind.outcomes), (&mut maps.rulings, behind.rulings)] {
                ours.set_autocreate(true)?;
                ours.reuse_fd(map)?;
            }
        }
        let constants = maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.forwards = behind.is_some_and(|behind| behind.forwards);
        constants.captures = contents.captures;
        constants.firsts = contents.flows.is_some();
        constants.flow_idle = contents.flow_idle;
        constants.no_rule = $crate::rules::number(contents.actions.len());
        constants.continuing = $crate::rules::number(contents.continuing.len());
        for (constant, rule) in constants.continuing_rules.iter_mut().zip(contents.continuing) {
            *constant = *rule;
        }
        constants.learns = contents.exact.is_some();
        constants.limits = contents.buckets.is_some();
        if let Some(log) = contents.log {
            constants.logs = true;
            constants.log_snap = log.most();
            constants.log_others = log.others;
        }
        constants.dry_run = contents.dry_run;
        constants.clock_is_given = contents.clock_is_given;
        if contents.remembers() {
            constants.key_fields = $crate::rules::maps::fields_of_exact();
        }
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
            directed: of.directed,
            tags: values(of.tags),
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
        use libbpf_rs::MapHandle;
        let contents: &$crate::rules::maps::Contents<'_> = $contents;
        let maps = &$loaded.maps;
        let remembers = contents.remembers();
        $crate::rules::maps::Maps {
            tables: MapHandle::try_from(&maps.tables)?,
            rules: MapHandle::try_from(&maps.rules)?,
            candidates: contents.has_rest().then(|| MapHandle::try_from(&maps.candidates)).transpose()?,
            counters: MapHandle::try_from(&maps.rule_counters)?,
            actions: remembers.then(|| MapHandle::try_from(&maps.rule_actions)).transpose()?,
            passages: remembers.then(|| MapHandle::try_from(&maps.passages)).transpose()?,
            unkept: remembers.then(|| MapHandle::try_from(&maps.unkept)).transpose()?,
            exact: contents.exact.map(|_| MapHandle::try_from(&maps.exact_rules)).transpose()?,
            buckets: contents.buckets.map(|_| MapHandle::try_from(&maps.buckets)).transpose()?,
            flows: contents.flows.map(|_| MapHandle::try_from(&maps.flows)).transpose()?,
            log: contents.log.map(|_| MapHandle::try_from(&maps.log_records)).transpose()?,
            continued: contents
                .continuing
                .first()
                .map(|_| MapHandle::try_from(&maps.continued))
                .transpose()?,
        }
    }};
}
pub(super) use keep;
