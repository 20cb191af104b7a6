//! What rules do besides, as numbers.

use super::Fate;
use super::generated::types::{limit, rule_actions};
use crate::layout::{limit_key, limited, rule_capture, rule_fate, set};

/// What a rule does with its packets besides their [`Fate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Besides {
    /// The rule decides nothing, and has [`Fate::Pass`]: it counts its packets, may learn and log, and the next rules are asked.
    pub continues: bool,
    /// What a capture does with them, if the rules are in front of one.
    pub capture: Capture,
    /// Beyond which limit packets have that fate; otherwise they pass.
    pub fate_over: Option<Over>,
    /// Which exact rule is made of a packet.
    pub learn: Option<Learn>,
    /// Whether a packet is logged, if there is a [`Log`](super::Log).
    pub log: bool,
    /// Beyond which limit it is.
    pub log_over: Option<Over>,
}

/// What a capture does with packets of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// It takes none.
    #[default]
    Ignore,
    /// It takes all.
    All,
    /// It takes the first of so many packets that a processor has met: 0 is 1.
    Sample(u64),
    /// It takes so many of each flow, and all that belong to none.
    First(u64),
}

/// Makes an exact rule of a packet's flow, in force from the next packet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learn {
    /// What happens to the exact rule's packets.
    pub fate: Fate,
    /// Whether a capture takes them.
    pub capture: bool,
    /// How long it is in force, in nanoseconds.
    pub lasting: u64,
    /// Whether that time begins anew with each of its packets.
    pub idle: bool,
    /// Whether there is one for the other direction, too.
    pub both: bool,
    /// Beyond which limit packets make one.
    pub over: Option<Over>,
}

/// A limit. Each address or flow has a bucket of a second's worth of packets, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// As many packets, at least one,
    pub packets: u64,
    /// in as many nanoseconds.
    pub period: u64,
    /// Which packets share it.
    pub by: LimitKey,
}

/// Which packets share a limit. Those that are not IP share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKey {
    /// Those with the same source address.
    Source,
    /// Those with the same destination address.
    Destination,
    /// Those of the same flow, in both directions.
    Flow,
}

impl Over {
    /// Returns what a full bucket holds.
    pub(super) fn size(self) -> u64 {
        self.packets.saturating_mul(1_000_000_000).max(self.period)
    }

    /// Returns after how many nanoseconds any bucket is full.
    fn filled(self) -> u64 {
        (self.size() / self.packets.max(1)).saturating_add(1)
    }
}

impl Besides {
    /// Returns the limits of all actions, in the order of `enum limited`.
    pub(super) fn limits(&self) -> [Option<Over>; limited::LIMITED.0 as usize] {
        let mut limits = [None; limited::LIMITED.0 as usize];
        limits[limited::LIMITED_FATE.0 as usize] = self.fate_over;
        limits[limited::LIMITED_LEARN.0 as usize] = self.learn.and_then(|learn| learn.over);
        limits[limited::LIMITED_LOG.0 as usize] = self.log_over;
        limits
    }

    /// Returns the bytes of a `struct rule_actions`.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut value = vec![0; size_of::<rule_actions>()];
        if let Some(learn) = self.learn {
            let (fate, interface) = code(learn.fate);
            set!(&mut value, rule_actions.lasting = learn.lasting);
            set!(&mut value, rule_actions.idle = u32::from(learn.idle));
            set!(&mut value, rule_actions.fate = fate);
            set!(&mut value, rule_actions.interface = interface);
            set!(&mut value, rule_actions.capture = u32::from(learn.capture));
            set!(&mut value, rule_actions.both = u32::from(learn.both));
        }
        set!(&mut value, rule_actions.logs = u32::from(self.log));
        for (action, over) in self.limits().into_iter().enumerate() {
            let at = std::mem::offset_of!(rule_actions, limits) + action * size_of::<limit>();
            let Some(over) = over else { continue };
            let to = &mut value[at..];
            set!(to, limit.packets = over.packets);
            set!(to, limit.period = over.period);
            set!(to, limit.size = over.size());
            set!(to, limit.filled = over.filled());
            let key = match over.by {
                LimitKey::Source => limit_key::LIMIT_SOURCE,
                LimitKey::Destination => limit_key::LIMIT_DESTINATION,
                LimitKey::Flow => limit_key::LIMIT_FLOW,
            };
            set!(to, limit.key = key.0);
        }
        value
    }
}

impl Capture {
    /// Returns it as programs have it, and its number.
    pub(super) fn code(self) -> (u32, u64) {
        match self {
            Self::Ignore => (rule_capture::CAPTURE_IGNORE.0, 0),
            Self::All => (rule_capture::CAPTURE_ALL.0, 0),
            Self::Sample(number) => (rule_capture::CAPTURE_SAMPLE.0, number),
            Self::First(number) => (rule_capture::CAPTURE_FIRST.0, number),
        }
    }
}

/// Returns a fate as programs have it, and its interface.
pub(super) fn code(fate: Fate) -> (u32, u32) {
    match fate {
        Fate::Pass => (rule_fate::FATE_PASS.0, 0),
        Fate::Block => (rule_fate::FATE_BLOCK.0, 0),
        Fate::Bounce => (rule_fate::FATE_BOUNCE.0, 0),
        Fate::Reflect(interface) => (rule_fate::FATE_REFLECT.0, interface),
    }
}

/// Returns the fate that programs have so.
pub(super) fn fate_of(code: u32, interface: u32) -> Fate {
    match rule_fate(code) {
        rule_fate::FATE_BLOCK => Fate::Block,
        rule_fate::FATE_BOUNCE => Fate::Bounce,
        rule_fate::FATE_REFLECT => Fate::Reflect(interface),
        _ => Fate::Pass,
    }
}
