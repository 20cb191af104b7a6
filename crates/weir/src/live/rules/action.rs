//! What a rule does with a packet.

use std::fmt;
use std::time::Duration;

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

/// What a rule does with the packets that its filter accepts. A [`Fate`] alone is one, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Action {
    /// What a capture does with them, if the rules are [in front of one](crate::Builder::rules).
    #[cfg_attr(feature = "serde", serde(default))]
    pub capture: CaptureAction,
    /// What happens to them.
    pub fate: Fate,
    /// Only to packets beyond this limit; the others pass.
    pub over: Option<Limit>,
    /// Which exact rule is made of them.
    pub learn: Option<Learn>,
    /// The rule decides nothing: it counts its packets and may learn and log, and the next rules are asked, too.
    pub continues: bool,
    /// Whether its packets are logged, if the guard has a [log](crate::guard::GuardBuilder::log).
    pub log: Option<LogAction>,
}

/// What a capture does with packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CaptureAction {
    /// It takes none.
    #[default]
    Ignore,
    /// It takes all.
    Capture,
    /// It takes the first of every so many that a processor has met.
    Sample(u64),
    /// It takes so many of each flow, both directions together, and all that belong to no flow. After five minutes of silence a flow
    /// begins anew.
    First(u64),
}

impl CaptureAction {
    pub(crate) fn engine(self) -> weir_bpf::rules::Capture {
        use weir_bpf::rules::Capture;
        match self {
            Self::Ignore => Capture::Ignore,
            Self::Capture => Capture::All,
            Self::Sample(every) => Capture::Sample(every),
            Self::First(most) => Capture::First(most),
        }
    }
}

/// An exact rule that is made of a packet's flow. It is in force from the next packet on, and asked before all other rules. It has
/// the VLAN, the protocol, both addresses and both ports of one direction of the flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Learn {
    /// Whether a capture takes the packets of the flow.
    #[cfg_attr(feature = "serde", serde(default))]
    pub capture: bool,
    /// What happens to them.
    pub fate: Fate,
    /// How long.
    pub lasting: Duration,
    /// Whether that time begins anew with each of their packets, so that the rule ends when there was none for so long. Each direction ends by itself.
    #[cfg_attr(feature = "serde", serde(default))]
    pub idle: bool,
    /// Whether there is one for the other direction, too.
    pub both: bool,
    /// Only packets beyond this limit make one.
    pub over: Option<Limit>,
}

/// Logs packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LogAction {
    /// Only packets beyond this limit.
    pub over: Option<Limit>,
}

/// A limit. Each address or flow has a bucket of a second's worth of packets, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Limit {
    /// As many packets, at least one,
    pub packets: u64,
    /// in this time.
    pub period: Duration,
    /// Which packets share it.
    pub by: LimitKey,
}

/// Which packets share a limit. Those that are not IP share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LimitKey {
    /// Those with the same source address.
    Source,
    /// Those with the same destination address.
    Destination,
    /// Those of the same flow, in both directions.
    Flow,
}

impl From<Fate> for Action {
    fn from(fate: Fate) -> Self {
        Self { capture: CaptureAction::Ignore, fate, over: None, learn: None, continues: false, log: None }
    }
}

impl Action {
    /// Decides nothing: the rule counts its packets and may learn and log, and the next rules are asked, too. At most 16 rules can do so.
    pub fn continuing() -> Self {
        Self { continues: true, ..Self::from(Fate::Pass) }
    }

    /// Has a capture take packets.
    #[must_use]
    pub fn capture(self, capture: CaptureAction) -> Self {
        Self { capture, ..self }
    }

    /// Lets packets within a limit pass.
    #[must_use]
    pub fn over(self, limit: Limit) -> Self {
        Self { over: Some(limit), ..self }
    }

    /// Makes exact rules.
    #[must_use]
    pub fn learn(self, learn: Learn) -> Self {
        Self { learn: Some(learn), ..self }
    }

    /// Logs packets.
    #[must_use]
    pub fn log(self, log: LogAction) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Returns the fates that a packet may have by it.
    pub(crate) fn fates(&self) -> impl Iterator<Item = &Fate> {
        std::iter::once(&self.fate).chain(self.learn.as_ref().map(|learn| &learn.fate))
    }
}

impl Learn {
    /// Makes an exact rule of every packet's flow, for this time.
    pub fn new(fate: Fate, lasting: Duration) -> Self {
        Self { capture: false, fate, lasting, idle: false, both: false, over: None }
    }

    /// Has a capture take the packets of the flow.
    #[must_use]
    pub fn capture(self) -> Self {
        Self { capture: true, ..self }
    }

    /// Has exact rules end when no packet has met them for that time, instead of that time after they were made.
    #[must_use]
    pub fn idle(self) -> Self {
        Self { idle: true, ..self }
    }

    /// Makes one for the other direction, too.
    #[must_use]
    pub fn both(self) -> Self {
        Self { both: true, ..self }
    }

    /// Makes exact rules only of packets beyond a limit.
    #[must_use]
    pub fn over(self, limit: Limit) -> Self {
        Self { over: Some(limit), ..self }
    }
}

impl LogAction {
    /// Logs every packet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Logs only packets beyond a limit.
    #[must_use]
    pub fn over(self, limit: Limit) -> Self {
        Self { over: Some(limit) }
    }
}

impl Limit {
    /// Makes a limit of so many packets, at least one, in this time.
    pub fn new(packets: u64, period: Duration, by: LimitKey) -> Self {
        Self { packets: packets.max(1), period, by }
    }
}

impl CaptureAction {
    /// Returns it in the words of the reference evaluator.
    pub(crate) fn reference(self) -> weir_rules::CaptureAction {
        match self {
            Self::Ignore => weir_rules::CaptureAction::Ignore,
            Self::Capture => weir_rules::CaptureAction::Capture,
            Self::Sample(every) => weir_rules::CaptureAction::Sample(every.max(1)),
            Self::First(most) => weir_rules::CaptureAction::First(most),
        }
    }
}

/// Writes it as in a rule.
impl fmt::Display for CaptureAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reference().fmt(f)
    }
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

/// Writes it as in a rule: `100/s by src`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            LimitKey::Source => "src",
            LimitKey::Destination => "dst",
            LimitKey::Flow => "flow",
        };
        match self.period.as_secs() {
            1 => write!(f, "{}/s by {by}", self.packets),
            60 => write!(f, "{}/min by {by}", self.packets),
            3600 => write!(f, "{}/h by {by}", self.packets),
            _ => write!(f, "{}/{:?} by {by}", self.packets, self.period),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_in_rules() {
        let text = |seconds, by| Limit::new(5, Duration::from_secs(seconds), by).to_string();
        assert_eq!(text(1, LimitKey::Source), "5/s by src");
        assert_eq!(text(60, LimitKey::Destination), "5/min by dst");
        assert_eq!(text(3600, LimitKey::Flow), "5/h by flow");
        assert_eq!(text(7, LimitKey::Flow), "5/7s by flow");
    }
}
