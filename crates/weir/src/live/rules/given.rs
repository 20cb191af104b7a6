//! Rules as the library's users give them.

use std::collections::HashSet;

use super::action::{Action, CaptureAction, Fate};
use crate::filter::{FilterError, PortableFilter, Receiver};
use crate::live::settings::Mode;
use crate::{Error, Filter, Setting};

/// Rules, in order: the first whose filter accepts a packet decides. A packet that none accepts passes.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Rules(pub(crate) Vec<Rule>);

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) filter: Filter,
    pub(crate) action: Action,
}

impl Rules {
    /// Returns no rules: every packet passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule behind the others, with a name of its own.
    pub fn rule(mut self, name: impl Into<String>, filter: Filter, action: impl Into<Action>) -> Self {
        self.0.push(Rule { name: name.into(), filter, action: action.into() });
        self
    }

    /// Returns the name of each rule, its filter as shown to people, and what it does.
    pub fn described(&self) -> Vec<RuleInfo> {
        let info = |rule: &Rule| RuleInfo {
            name: rule.name.clone(),
            filter: rule.filter.label(),
            action: rule.action.clone(),
        };
        self.0.iter().map(info).collect()
    }

    /// Resolves the names in the filters, for the process of the guard.
    ///
    /// # Errors
    ///
    /// An expression is invalid.
    pub fn portable(&self) -> Result<PortableRules, FilterError> {
        // The guard puts in the netmask of its interface.
        let netmask = Some(u32::MAX << 8);
        let ethernet = Receiver { link_type: 1, metadata: true, swapped: false, netmask, tags_lost: false };
        let portable = |rule: &Rule| {
            let filter = rule.filter.portable_behind_fields(ethernet)?;
            Ok(PortableRule { name: rule.name.clone(), filter, action: rule.action.clone() })
        };
        self.0.iter().map(portable).collect::<Result<_, _>>().map(PortableRules)
    }

    /// Returns why XDP in this driver is not for these rules, if so.
    pub(crate) fn against_xdp(&self, driver: Option<&str>) -> Option<&'static str> {
        let bounces = || self.fates().any(|fate| *fate == Fate::Bounce);
        if self.reflects() {
            Some("rules reflect packets to any driver")
        } else if driver == Some("veth") && bounces() {
            // veth_xdp_flush (drivers/net/veth.c)
            Some("veth holds packets back that XDP bounces, unless a program is at its other end")
        } else {
            None
        }
    }

    fn fates(&self) -> impl Iterator<Item = &Fate> {
        self.0.iter().flat_map(|rule| rule.action.fates())
    }

    /// Returns whether a rule sends packets elsewhere.
    pub(crate) fn reflects(&self) -> bool {
        self.fates().any(|fate| matches!(fate, Fate::Reflect(_)))
    }

    /// Fails if a rule captures packets that do not end there, where captured packets always do.
    pub(crate) fn check_exclusive(&self) -> Result<(), Error> {
        let goes_on = |rule: &&Rule| {
            let action = &rule.action;
            let captured = action.capture != CaptureAction::Ignore
                && (action.fate != Fate::Block || action.over.is_some());
            let learned =
                action.learn.as_ref().is_some_and(|learn| learn.capture && learn.fate != Fate::Block);
            captured || learned
        };
        match self.0.iter().find(goes_on) {
            Some(Rule { name, .. }) => {
                let why = format!(
                    "cannot let captured packets of the rule `{name}` go on in exclusive mode: try `capture, block` there, or pass \
                     mode"
                );
                Err(Error::conflict(Setting::Mode(Mode::Exclusive), Setting::Rules, why))
            }
            None => Ok(()),
        }
    }

    /// Fails if two rules have the same name.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut names = HashSet::new();
        match self.0.iter().find(|rule| !names.insert(&rule.name)) {
            Some(Rule { name, .. }) => {
                let why = format!("cannot have two rules called `{name}`: try a name for each");
                Err(Error::setting(Setting::Rules, why))
            }
            None => Ok(()),
        }
    }
}

/// A rule, as shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RuleInfo {
    /// Its name.
    pub name: String,
    /// Its filter, on one line; empty: every packet.
    pub filter: String,
    /// What it does with its packets.
    pub action: Action,
}

/// [`Rules`] with resolved names, which another process compiles without reading files or sending queries.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PortableRules(Vec<PortableRule>);

#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct PortableRule {
    name: String,
    filter: PortableFilter,
    action: Action,
}

impl From<PortableRules> for Rules {
    fn from(rules: PortableRules) -> Self {
        let rule = |PortableRule { name, filter, action }: PortableRule| Rule {
            name,
            filter: filter.into(),
            action,
        };
        Self(rules.0.into_iter().map(rule).collect())
    }
}
