//! Compiles rules and loads their programs.

use std::sync::Arc;
use std::time::Duration;

use weir_bpf::filter::{Behind, FilterError as LoadingFailed, Gate, Hook};
use weir_bpf::rules::{
    self as engine, Besides, LogReader, Logging, Over, Places, Received, RulesError, Settings,
};
use weir_filter::BehindFields;
use weir_filter::emit::ebpf::Error::TooLong;
use weir_filter::graph::Graph;
use weir_sys::link::{Link, links};

use crate::filter::Receiver;
use crate::live::error::{self, size};
use crate::live::filter_control;
use crate::live::interface::tags_needed;
use crate::live::interface::unknown;
use crate::live::namespace::context::inside;
use crate::live::request::Wanted;
use crate::live::rules::exact::{self, Table};
use crate::live::rules::{Action, Fate, LOG_SNAP_LEN, Limit, LimitKey, Rule, RuleInfo, Rules};
use crate::live::settings::Mode;
use crate::{Error, Namespace, Setting, TagUse, Unsupported};

/// The most bytes of tables that the conditions of rules may need.
const MOST_BYTES: usize = 256 << 20;

/// What rules are loaded for.
#[derive(Clone, Debug)]
pub(crate) struct Loader {
    /// The interface.
    pub(crate) name: String,
    /// Its namespace; `None`: that of the calling thread, which may be another one than that of the start.
    pub(crate) namespace: Option<Namespace>,
    /// What its packets are.
    pub(crate) receiver: Receiver,
    /// XDP does not get VLAN tags; this command has the interface keep them.
    pub(crate) keep_tags: Option<String>,
    pub(crate) places: Places,
    /// Every packet passes.
    pub(crate) dry_run: bool,
    /// Bytes of memory for logged packets; `None`: nothing is logged.
    pub(crate) log: Option<u32>,
    /// The size of the table of exact rules; `None`: the usual one, if there has to be one.
    pub(crate) exact: Option<u32>,
    /// The gates of programs that the rules are in front of; none: they are attached by themselves.
    pub(crate) behind: Vec<Arc<Gate>>,
}

/// Loaded rules.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) programs: engine::Rules,
    pub(crate) rules: Vec<RuleInfo>,
    /// What they log, if something is.
    pub(crate) log: Option<LogReader>,
}

impl Loader {
    /// Loads rules, with a table of exact rules if they learn, if it was asked for, or if there are `exact` ones to put into it.
    pub(crate) fn load(&self, rules: &Rules, exact: bool) -> Result<Loaded, Error> {
        rules.check()?;
        let compiled = self.compiled(rules)?;
        let links = self.links(rules)?;
        let none = Graph::new(0);
        let all = rules.0.iter().zip(&compiled).map(|(rule, BehindFields { regions, filter })| {
            let asked = filter.as_ref().map(|filter| (&filter.graph, &filter.ast.sets[..]));
            Ok(engine::Rule {
                filter: asked.unwrap_or((&none, &[])),
                regions,
                fate: self.fate(&rule.action.fate, &links)?,
                besides: self.besides(&rule.action, &links)?,
            })
        });
        let all = all.collect::<Result<Vec<_>, Error>>()?;
        let settings = Settings {
            log: self.log.map(|bytes| Logging { bytes, snap: LOG_SNAP_LEN, others: true }),
            dry_run: self.dry_run,
            exact: self.exact_size(),
            inserts: exact || self.exact.is_some(),
            ..Settings::new(MOST_BYTES)
        };
        let programs = match self.behind.is_empty() {
            true => engine::Rules::load_with(&all, self.places, &settings),
            false => engine::Rules::load_before(&all, self.places, &settings, self.behind()),
        };
        let programs = programs.map_err(|error| self.not_loaded(error))?;
        let log = programs.log.as_ref().map(engine::Log::reader).transpose()?;
        Ok(Loaded { programs, rules: rules.described(), log })
    }

    /// Returns what received packets go on with, sent ones, and those of the other interface.
    fn behind(&self) -> [Option<Behind<'_>>; 3] {
        let of = |wanted: fn(&Hook) -> bool| {
            self.behind.iter().filter_map(move |gate| match &**gate {
                Gate::Calls(calls) if calls.hooks().iter().any(wanted) => calls.behind(),
                _ => None,
            })
        };
        let mut received = of(|hook| *hook != Hook::Egress);
        [received.next(), of(|hook| *hook == Hook::Egress).next(), received.next()]
    }

    /// Returns the table of exact rules of loaded ones.
    pub(crate) fn table<'a>(&self, loaded: &'a Loaded) -> Table<'a> {
        let exact = loaded.programs.memory.exact.as_ref();
        Table { exact, size: self.exact_size() }
    }

    fn exact_size(&self) -> u32 {
        self.exact.unwrap_or(exact::USUAL)
    }

    /// Returns the interfaces of the namespace, if rules name some.
    fn links(&self, rules: &Rules) -> Result<Vec<Link>, Error> {
        if !rules.reflects() {
            return Ok(Vec::new());
        }
        if matches!(self.places.received, Some(Received::Xdp { .. })) {
            let why = "cannot reflect packets with the xdp source: the driver of the other interface might drop them unseen; try \
                       the tc source";
            return Err(Error::setting(Setting::Rules, why));
        }
        Ok(inside(self.namespace.as_ref(), links)??)
    }

    /// Returns the fate as programs have it. Interfaces have to be there in a dry run, too.
    fn fate(&self, fate: &Fate, links: &[Link]) -> Result<engine::Fate, Error> {
        Ok(match fate {
            Fate::Pass => engine::Fate::Pass,
            Fate::Block => engine::Fate::Block,
            Fate::Bounce => engine::Fate::Bounce,
            Fate::Reflect(name) => {
                let link = links.iter().find(|link| link.name == *name);
                engine::Fate::Reflect(link.ok_or_else(|| self.unknown(name, links))?.index)
            }
        })
    }

    fn besides(&self, action: &Action, links: &[Link]) -> Result<Besides, Error> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let over = |limit: Limit| Over {
            packets: limit.packets,
            period: nanoseconds(limit.period),
            by: match limit.by {
                LimitKey::Source => engine::LimitKey::Source,
                LimitKey::Destination => engine::LimitKey::Destination,
                LimitKey::Flow => engine::LimitKey::Flow,
            },
        };
        let learn = action.learn.as_ref().map(|learn| {
            Ok::<_, Error>(engine::Learn {
                fate: self.fate(&learn.fate, links)?,
                capture: learn.capture,
                lasting: nanoseconds(learn.lasting),
                idle: learn.idle,
                both: learn.both,
                over: learn.over.map(over),
            })
        });
        // Without a log, its limits need no memory.
        let log = action.log.filter(|_| self.log.is_some());
        Ok(Besides {
            capture: action.capture.engine(),
            fate_over: action.over.map(over),
            learn: learn.transpose()?,
            continues: action.continues,
            log: log.is_some(),
            log_over: log.and_then(|log| log.over).map(over),
        })
    }

    fn unknown(&self, name: &str, links: &[Link]) -> Error {
        unknown(&Wanted { namespace: self.namespace.clone(), name: name.to_owned(), queues: None }, links)
    }

    fn compiled(&self, rules: &Rules) -> Result<Vec<BehindFields>, Error> {
        rules.0.iter().map(|rule| self.compiled_rule(rule)).collect()
    }

    fn compiled_rule(&self, rule: &Rule) -> Result<BehindFields, Error> {
        let behind = match rule.action.continues {
            // No fields are asked for it.
            true => {
                let filter = rule.filter.compile(self.receiver).map(Some);
                filter.map(|filter| BehindFields { regions: Vec::new(), filter })
            }
            false => rule.filter.compile_behind_fields(self.receiver),
        };
        let behind = behind.map_err(|error| error.on(&self.name))?;
        match &self.keep_tags {
            Some(keep) if behind.asks_for_tags() => {
                let needed = TagUse::Filter { name: Some(rule.name.clone()) };
                Err(tags_needed(self.name.clone(), keep.clone(), needed, Mode::Pass))
            }
            _ => Ok(behind),
        }
    }

    fn not_loaded(&self, error: RulesError) -> Error {
        match error {
            RulesError::Tables(error) => {
                let why =
                    format!("cannot load the rules: {error}; try fewer rules, or sets instead of many terms");
                Error::setting(Setting::Rules, why)
            }
            RulesError::Continuing(_) => {
                Error::setting(Setting::Rules, format!("cannot load the rules: {error}"))
            }
            RulesError::Filter(LoadingFailed::Emit(TooLong(_))) => too_much(),
            RulesError::Filter(error) if error.is_too_much() => too_much(),
            RulesError::Filter(LoadingFailed::Load(error))
                if error.is_memory() && self.exact > Some(exact::USUAL) =>
            {
                let (exact, size) = (self.exact_size(), size::binary(u64::from(self.exact_size()) * 170));
                let why = format!(
                    "cannot have room for {exact} exact rules: there is no memory for them, about {size}; try fewer"
                );
                Error::setting(Setting::Rules, why)
            }
            RulesError::Filter(LoadingFailed::Load(error)) if error.is_permission() || error.is_memory() => {
                error::not_loaded(&self.name, error)
            }
            RulesError::Filter(LoadingFailed::Load(error)) => Error::Unsupported {
                name: self.name.clone(),
                cause: Unsupported::Program(error),
                sources: &[],
                otherwise: "",
            },
            RulesError::Filter(error) => filter_control::not_loaded(&self.name, error),
        }
    }
}

/// Returns the error of rules with too many filters, or too long ones.
fn too_much() -> Error {
    let why = "cannot load the rules: together their filters are too much for this kernel's verifier; try fewer rules \
               that need a filter (`weir rules check` says which), or sets instead of many terms";
    Error::setting(Setting::Rules, why)
}
