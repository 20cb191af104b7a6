//! What rules decide about a packet, to be printed with it.

use std::fmt;

/// Decisions of a rule set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    /// The rule that decides; `None`: no rule matches.
    pub rule: Option<String>,
    /// Whether an exact rule decides, which `rule` has learned.
    pub by_learned: bool,
    /// Whether the packet is captured.
    pub capture: bool,
    /// What happens to the packet, in the words of rules.
    pub fate: String,
    /// What else is done, in the words of rules.
    pub also: Vec<String>,
}

/// Writes a ruling as lines end with it: `[bad: capture, block]`.
impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule.as_deref().unwrap_or("no rule");
        let learned = if self.by_learned { ", learned" } else { "" };
        let capture = if self.capture { "capture" } else { "ignore" };
        write!(f, "[{rule}{learned}: {capture}, {}", self.fate)?;
        self.also.iter().try_for_each(|action| write!(f, ", {action}"))?;
        f.write_str("]")
    }
}
