//! What is in the table: from the counts of this process, or from the account of another one, which `weir ctl rules show` asks for.

use serde::Deserialize;

use weir_service::rules::{Beyond, Packets, RuleRow, RulesCounted};

/// The counts of rules.
#[derive(Debug, Deserialize)]
pub(crate) struct Shown {
    /// What rules say does not happen.
    #[serde(default)]
    pub(super) dry_run: bool,
    pub(super) rules: Vec<ShownRow>,
    pub(super) replaced: ShownPackets,
    pub(super) exact: ShownPackets,
    pub(super) no_rule: ShownPackets,
    pub(super) total: ShownPackets,
    /// Those that a capture was to take.
    #[serde(rename = "captured")]
    pub(super) all_captured: Option<u64>,
    pub(super) unkept: ShownUnkept,
    #[serde(default)]
    pub(super) log_lost: u64,
    /// They say what is captured.
    #[serde(skip)]
    pub(super) captures: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownRow {
    pub(super) name: String,
    /// What a capture does with the packets.
    pub(super) capture: Option<String>,
    pub(super) captured: Option<u64>,
    pub(super) fate: String,
    #[serde(rename = "continue")]
    pub(super) continues: bool,
    pub(super) over: Option<String>,
    /// Those beyond that limit.
    pub(super) beyond: Option<Beyond>,
    /// The fate that it has learned.
    pub(super) learns: Option<String>,
    pub(super) learned: Option<ShownPackets>,
    #[serde(flatten)]
    pub(super) packets: ShownPackets,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ShownPackets {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// When the last one came, in seconds since the epoch.
    last: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ShownUnkept {
    pub(super) learned: u64,
    pub(super) no_flow: u64,
    pub(super) buckets: u64,
    pub(super) flows: u64,
}

impl ShownPackets {
    fn of(packets: &Packets) -> Self {
        Self { packets: packets.packets, bytes: packets.bytes, last: packets.last.clone() }
    }

    /// Returns the others of these packets, and `some` of them.
    pub(super) fn divided(&self, some: Beyond) -> [Self; 2] {
        let last = self.last.clone();
        let within = self.packets.saturating_sub(some.packets);
        let beyond = Self { packets: some.packets, bytes: some.bytes, last: None };
        [Self { packets: within, bytes: self.bytes.saturating_sub(some.bytes), last }, beyond]
    }

    /// Returns when the last one came, in nanoseconds since the epoch.
    pub(super) fn last_at(&self) -> Option<u64> {
        let (seconds, nanoseconds) = self.last.as_deref()?.split_once('.')?;
        let seconds: u64 = seconds.parse().ok()?;
        seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds.parse().ok()?)
    }
}

impl Shown {
    /// Returns whether a rule captures packets.
    pub(crate) fn captures(&self) -> bool {
        self.rules.iter().any(|rule| rule.capture.is_some())
    }

    /// Has the table say what is captured.
    pub(crate) fn capturing(self) -> Self {
        Self { captures: true, ..self }
    }

    pub(crate) fn of(counted: &RulesCounted, dry_run: bool, log_lost: u64) -> Self {
        let row = |row: &RuleRow| ShownRow {
            name: row.name.clone(),
            capture: row.capture.clone(),
            captured: row.captured,
            fate: row.fate.clone(),
            continues: row.action.continues,
            over: row.over.clone(),
            beyond: row.beyond,
            learns: row.learns.clone(),
            learned: row.learned.as_ref().map(ShownPackets::of),
            packets: ShownPackets::of(&row.packets),
        };
        let unkept = counted.unkept;
        Self {
            dry_run,
            rules: counted.rules.iter().map(row).collect(),
            replaced: ShownPackets::of(&counted.replaced),
            exact: ShownPackets::of(&counted.exact),
            no_rule: ShownPackets::of(&counted.no_rule),
            total: ShownPackets::of(&counted.total),
            all_captured: counted.captured,
            unkept: ShownUnkept {
                learned: unkept.learned,
                no_flow: unkept.no_flow,
                buckets: unkept.buckets,
                flows: unkept.flows,
            },
            log_lost,
            captures: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_last_packet_is_read() {
        let at = |last: &str| ShownPackets { packets: 1, bytes: 60, last: Some(last.to_owned()) }.last_at();
        assert_eq!(at("1700000000.000000001"), Some(1_700_000_000_000_000_001));
        assert_eq!((at("soon"), at("99999999999999999999.0")), (None, None));
    }
}
