//! Rules as the library's users give them.

use std::collections::HashSet;
use std::fmt;

use crate::filter::{FilterError, PortableFilter, Receiver};
use crate::{Error, Filter, Setting};

/// What happens to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Fate {
    /// It goes on.
    Pass,
    /// It goes no further.
    Block,
    /// It goes back, with its MAC addresses exchanged: a received packet leaves through the interface that it came from, and a sent
    /// one is received by the host. No rule is asked about it again.
    Bounce,
    /// It leaves through the interface with this name instead, which is in the same network namespace.
    Reflect(String),
}

/// Writes it as in a rule.
impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Block => f.write_str("block"),
            Self::Bounce => f.write_str("bounce"),
            Self::Reflect(interface) => write!(f, "reflect {interface}"),
        }
    }
}

/// Rules, in order: the first whose filter accepts a packet decides. A packet that none accepts passes.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Rules(pub(super) Vec<Rule>);

/// A rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) filter: Filter,
    pub(super) fate: Fate,
}

impl Rules {
    /// Returns no rules: every packet passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule behind the others, with a name of its own.
    pub fn rule(mut self, name: impl Into<String>, filter: Filter, fate: Fate) -> Self {
        self.0.push(Rule { name: name.into(), filter, fate });
        self
    }

    /// Returns the name of each rule, its filter as shown to people, and its fate.
    pub fn described(&self) -> Vec<RuleInfo> {
        let info = |rule: &Rule| RuleInfo {
            name: rule.name.clone(),
            filter: rule.filter.label(),
            fate: rule.fate.clone(),
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
            let (filter, _) = rule.filter.portable(&[ethernet])?;
            Ok(PortableRule { name: rule.name.clone(), filter, fate: rule.fate.clone() })
        };
        self.0.iter().map(portable).collect::<Result<_, _>>().map(PortableRules)
    }

    /// Returns whether a rule sends packets elsewhere.
    pub(super) fn reflects(&self) -> bool {
        self.0.iter().any(|rule| matches!(rule.fate, Fate::Reflect(_)))
    }

    /// Fails if two rules have the same name.
    pub(super) fn check(&self) -> Result<(), Error> {
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
    /// What happens to its packets.
    pub fate: Fate,
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
    fate: Fate,
}

impl From<PortableRules> for Rules {
    fn from(rules: PortableRules) -> Self {
        let rule =
            |PortableRule { name, filter, fate }: PortableRule| Rule { name, filter: filter.into(), fate };
        Self(rules.0.into_iter().map(rule).collect())
    }
}
