//! What a rule does: types, and how they are written.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::quantity::{self, Rate};

/// What a rule does with the packets that match it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Whether the next rules are asked, too: this one only counts, learns and logs.
    pub continues: bool,
    /// What the capture does with the packet.
    pub capture: CaptureAction,
    /// What happens to the packet.
    pub fate: Fate,
    /// Beyond which rate that happens; otherwise the packet passes.
    pub fate_over: Option<Over>,
    /// Which rule is made of the packet.
    pub learn: Option<Learn>,
    /// Whether the packet is logged.
    pub log: Option<Log>,
}

/// What the capture does with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureAction {
    /// It is not captured.
    #[default]
    Ignore,
    /// It is captured.
    Capture,
    /// The first of every so many is captured.
    Sample(u64),
    /// So many of each flow are captured.
    First(u64),
}

/// What happens to a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It goes on.
    #[default]
    Pass,
    /// It is dropped.
    Block,
    /// It leaves unchanged through this interface instead.
    Reflect(Arc<str>),
    /// It goes back through the interface that it came from, its MAC addresses exchanged.
    Bounce,
}

/// Makes an exact rule of a packet's flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learn {
    /// What the exact rule does.
    pub shortcut: Shortcut,
    /// How long it is in force.
    pub lasting: Duration,
    /// Whether that time begins anew with each packet that matches it.
    pub idle: bool,
    /// Whether packets of the other direction match it, too.
    pub both: bool,
    /// Beyond which rate packets make a rule.
    pub over: Option<Over>,
}

/// What a learned rule does. It names one of the two decisions, and the other is what it is without a word: ignore, pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortcut {
    /// Packets are captured, and pass.
    Capture,
    /// Packets are not captured, and pass.
    Ignore,
    /// Packets are not captured.
    Fate(Fate),
}

/// Writes to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// Beyond which rate.
    pub over: Option<Over>,
}

/// A limit: an action applies only to packets beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// The limit.
    pub rate: Rate,
    /// What it is a limit for.
    pub key: Key,
}

/// Which packets share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Those with the same source address.
    Source,
    /// Those with the same destination address.
    Destination,
    /// Those of the same flow, in both directions.
    Flow,
}

impl Shortcut {
    /// Returns both decisions: whether packets are captured, and what happens to them.
    pub fn decisions(&self) -> (bool, Fate) {
        match self {
            Self::Capture => (true, Fate::Pass),
            Self::Ignore => (false, Fate::Pass),
            Self::Fate(fate) => (false, fate.clone()),
        }
    }
}

impl fmt::Display for CaptureAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignore => f.write_str("ignore"),
            Self::Capture => f.write_str("capture"),
            Self::Sample(every) => write!(f, "sample 1/{every}"),
            Self::First(count) => write!(f, "first {count} of each flow"),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Block => f.write_str("block"),
            Self::Reflect(interface) => write!(f, "reflect {interface}"),
            Self::Bounce => f.write_str("bounce"),
        }
    }
}

impl fmt::Display for Shortcut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture => f.write_str("capture"),
            Self::Ignore => f.write_str("ignore"),
            Self::Fate(fate) => fate.fmt(f),
        }
    }
}

impl fmt::Display for Learn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let both = if self.both { " in both directions" } else { "" };
        write!(f, "learn {} {}{both}", self.shortcut, quantity::lasting_text(self.lasting, self.idle))?;
        self.over.iter().try_for_each(|over| write!(f, " {over}"))
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("log")?;
        self.over.iter().try_for_each(|over| write!(f, " {over}"))
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = match self.key {
            Key::Source => "src",
            Key::Destination => "dst",
            Key::Flow => "flow",
        };
        write!(f, "if over {} by {key}", quantity::rate_text(self.rate))
    }
}

/// Writes all actions, as they are read.
impl fmt::Display for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.continues {
            true => f.write_str("continue")?,
            false => write!(f, "{}, {}", self.capture, self.fate)?,
        }
        self.fate_over.iter().try_for_each(|over| write!(f, " {over}"))?;
        self.learn.iter().try_for_each(|learn| write!(f, ", {learn}"))?;
        self.log.iter().try_for_each(|log| write!(f, ", {log}"))
    }
}
