//! Intervals and the account as plain values, for `--json`, `--csv` and the tables.
//!
//! Scripts rely on field names: they may be added to, not changed.

use std::borrow::Cow;
use std::iter::repeat;

use serde::Serialize;
use serde_json::{Map, Value};
use weir::NicCounters;
use weir::statistics::{Bucket, Counts, Key, KeyField, Reading, StatisticsInfo};
use weir_service::Stop;
use weir_service::confine::Confinement;
use weir_service::control::Told;
use weir_service::metrics::Measured;

use super::top::{self, Choice, Grown, Top};
use crate::live::rate;

/// What was counted in an interval.
#[derive(Debug, Serialize)]
pub(super) struct Interval {
    /// Always `interval`.
    r#type: &'static str,
    /// Time since the start.
    pub(super) elapsed_seconds: f64,
    /// Length of this interval.
    pub(super) seconds: f64,
    /// All packets.
    pub(super) total: Growth,
    /// By filter.
    pub(super) filters: Vec<Growth>,
    /// By key; absent without `--by`.
    #[serde(flatten)]
    pub(super) keyed: Option<Keyed<Growth>>,
    /// By size and gap.
    #[serde(flatten)]
    pub(super) spread: Spread<Growth>,
}

/// Packets by size and gap; what was not asked for is absent.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Spread<T> {
    /// By bytes on the wire, with checksum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sizes: Vec<InBucket<T>>,
    /// By nanoseconds since the packet before; without those to which nothing has belonged so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) gaps: Vec<InBucket<T>>,
    /// Packets without one before on their CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<T>,
}

/// The packets in a range of sizes or gaps.
#[derive(Clone, Debug, Serialize)]
pub(super) struct InBucket<T> {
    from: u64,
    /// Null if there is no limit.
    to: Option<u64>,
    #[serde(flatten)]
    pub(super) counts: T,
}

/// Packets by key.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Keyed<T> {
    /// The busiest keys.
    pub(super) keys: Vec<OfKey<T>>,
    /// All other keys that have counters.
    rest: T,
    /// Packets whose key found no room for counters.
    pub(super) others: T,
}

/// The packets of a key.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfKey<T> {
    /// The fields that were asked for; null if the packets lack them.
    #[serde(rename = "key")]
    fields: Map<String, Value>,
    /// For tables.
    #[serde(skip)]
    pub(super) key: Key,
    #[serde(flatten)]
    pub(super) counts: T,
}

/// The packets of an interval that match a filter.
#[derive(Debug, Serialize)]
pub(super) struct Growth {
    #[serde(flatten)]
    pub(super) row: Row,
    pub(super) packets_per_second: f64,
    pub(super) bits_per_second: f64,
    /// Since the start.
    #[serde(skip)]
    pub(super) total: Counts,
}

/// Packets that match a filter, or have something else in common.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Name of the filter; null for all packets, absent for others.
    #[serde(skip_serializing_if = "Name::is_detail")]
    pub(super) name: Name,
    /// In both directions.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Name {
    /// The filter with this name.
    Filter(String),
    /// All packets.
    All,
    /// A key.
    Key,
    /// The keys that are not shown.
    Rest,
    /// Packets whose key had no room.
    Others,
    /// Sizes.
    Size(u64, u64),
    /// Gaps.
    Gap(u64, u64),
    /// Packets without a gap.
    First,
}

/// The account of a whole run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    /// Always `statistics`, which distinguishes it from the accounts of captures.
    r#type: &'static str,
    version: &'static str,
    pub(super) interface: String,
    source: &'static str,
    detail: String,
    why: String,
    pub(super) elapsed_seconds: f64,
    pub(super) total: Row,
    pub(super) filters: Vec<Counted>,
    /// By key, over the whole run; absent without `--by`.
    #[serde(flatten)]
    pub(super) keyed: Option<Keyed<Row>>,
    /// By size and gap, over the whole run.
    #[serde(flatten)]
    pub(super) spread: Spread<Row>,
    /// Packets that may have lost a VLAN tag, because the driver did not report it.
    pub(super) untold_tags: u64,
    /// Received packets that the card or its driver has dropped, which nothing could count.
    nic: NicCounters,
    /// Reason for the end; null while it runs.
    stopped_by: Option<Stop>,
    /// The error; null if there is none.
    error: Option<String>,
    /// The restrictions of the process; null with `--no-confine`.
    pub(super) confinement: Option<Confinement>,
    /// The fields of keys, for the table.
    #[serde(skip)]
    pub(super) fields: Vec<KeyField>,
}

/// A filter with its packets.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Counted {
    #[serde(flatten)]
    pub(super) row: Row,
    /// The expression.
    filter: String,
}

impl Name {
    fn is_detail(&self) -> bool {
        !matches!(self, Self::Filter(_) | Self::All)
    }

    /// Returns it for people.
    pub(super) fn text(&self) -> Cow<'_, str> {
        let range = |from: u64, to: u64| match to {
            u64::MAX => format!("{from} or more"),
            _ if from == to => from.to_string(),
            _ => format!("{from}-{to}"),
        };
        Cow::Borrowed(match *self {
            Self::Filter(ref name) => name,
            Self::All => "(all)",
            Self::Key => "(key)",
            Self::Rest => "(rest)",
            Self::Others => "(others)",
            Self::First => "(first)",
            Self::Size(from, to) => return format!("({} bytes)", range(from, to)).into(),
            Self::Gap(from, to) => return format!("(gap {} ns)", range(from, to)).into(),
        })
    }
}

impl<T> InBucket<T> {
    /// Returns the smallest and the greatest as text.
    pub(super) fn limits(&self) -> (String, String) {
        (self.from.to_string(), self.to.map_or_else(|| "+Inf".to_owned(), |to| to.to_string()))
    }
}

impl Row {
    fn new(name: Name, counts: Counts) -> Self {
        let total = counts.total();
        Self { name, packets: total.packets, bytes: total.bytes, counts }
    }
}

impl Growth {
    fn new(name: Name, grown: Grown, seconds: f64) -> Self {
        let row = Row::new(name, grown.by);
        Self {
            packets_per_second: rate(0, row.packets, seconds),
            bits_per_second: rate(0, row.bytes, seconds) * 8.0,
            total: grown.to,
            row,
        }
    }
}

impl<T> Keyed<T> {
    fn new(top: Top, fields: &[KeyField], make: impl Fn(Name, Grown) -> T) -> Self {
        let of_key = |(key, grown): (Key, Grown)| {
            let value = |&field: &KeyField| (field.as_str().to_owned(), top::json(&key, field));
            OfKey { fields: fields.iter().map(value).collect(), key, counts: make(Name::Key, grown) }
        };
        Self {
            keys: top.keys.into_iter().map(of_key).collect(),
            rest: make(Name::Rest, top.rest),
            others: make(Name::Others, top.others),
        }
    }
}

impl<T> Spread<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.sizes.is_empty() && self.first.is_none()
    }

    fn between(before: &Reading, now: &Reading, make: impl Fn(Name, Grown) -> T) -> Self {
        let buckets = |before: &[Bucket], now: &[Bucket], name: fn(u64, u64) -> Name| {
            let earlier = before.iter().map(|bucket| bucket.counts).chain(repeat(Counts::default()));
            let grown = now.iter().zip(earlier).map(|(bucket, before)| {
                let counts = make(name(bucket.from, bucket.to), Grown::between(before, bucket.counts));
                InBucket { from: bucket.from, to: (bucket.to != u64::MAX).then_some(bucket.to), counts }
            });
            grown.collect::<Vec<_>>()
        };
        let gaps = buckets(&before.gaps, &now.gaps, Name::Gap).into_iter().zip(&now.gaps);
        let met = |(gap, now): (_, &Bucket)| (now.counts.total().packets > 0).then_some(gap);
        let first = || make(Name::First, Grown::between(before.first, now.first));
        Self {
            sizes: buckets(&before.sizes, &now.sizes, Name::Size),
            gaps: gaps.filter_map(met).collect(),
            first: (!now.gaps.is_empty()).then(first),
        }
    }
}

/// Returns the rows: filters, keys, the rest and the others, sizes, gaps, all packets; each with its key, if it has one.
fn rows<'a, T>(
    filters: impl Iterator<Item = &'a T> + 'a,
    keyed: Option<&'a Keyed<T>>,
    spread: &'a Spread<T>,
    total: &'a T,
) -> impl Iterator<Item = (Option<&'a Key>, &'a T)> {
    let keys = keyed.into_iter().flat_map(|keyed| keyed.keys.iter().map(|of| (Some(&of.key), &of.counts)));
    let rest = keyed.into_iter().flat_map(|keyed| [&keyed.rest, &keyed.others]);
    let buckets = spread.sizes.iter().chain(&spread.gaps).map(|bucket| &bucket.counts);
    let details = rest.chain(buckets).chain(&spread.first).chain([total]);
    filters.map(|row| (None, row)).chain(keys).chain(details.map(|row| (None, row)))
}

impl Interval {
    /// Computes the growth from one reading to the next.
    pub(super) fn between(before: &Reading, now: &Reading, fields: &[KeyField], choice: Choice) -> Self {
        let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
        let filters = now.filters.iter().enumerate().map(|(number, filter)| {
            let before = before.filters.get(number).map(|filter| filter.counts).unwrap_or_default();
            let name = Name::Filter(filter.name.clone());
            Growth::new(name, Grown::between(before, filter.counts), seconds)
        });
        let growth = |name, grown| Growth::new(name, grown, seconds);
        let keyed = || Keyed::new(choice.top(before, now), fields, growth);
        Self {
            r#type: "interval",
            elapsed_seconds: now.elapsed.as_secs_f64(),
            seconds,
            total: Growth::new(Name::All, Grown::between(before.total, now.total), seconds),
            filters: filters.collect(),
            keyed: (!fields.is_empty()).then(keyed),
            spread: Spread::between(before, now, growth),
        }
    }

    /// Returns the rows, all packets last, with their keys.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Option<&Key>, &Growth)> {
        rows(self.filters.iter(), self.keyed.as_ref(), &self.spread, &self.total)
    }
}

impl Summary {
    pub(super) fn new(info: &StatisticsInfo, reading: &Reading, choice: Choice) -> Self {
        let counted = |((name, filter), counts): (&(String, String), Counts)| Counted {
            row: Row::new(Name::Filter(name.clone()), counts),
            filter: filter.clone(),
        };
        let counts = reading.filters.iter().map(|filter| filter.counts);
        let top = || choice.top(&Reading::default(), reading);
        let row = |name, grown: Grown| Row::new(name, grown.to);
        let keyed = || Keyed::new(top(), &info.fields, row);
        Self {
            r#type: "statistics",
            version: env!("CARGO_PKG_VERSION"),
            interface: info.name.clone(),
            source: info.source.as_str(),
            detail: info.detail.clone(),
            why: info.why.clone(),
            elapsed_seconds: reading.elapsed.as_secs_f64(),
            total: Row::new(Name::All, reading.total),
            filters: info.filters.iter().zip(counts).map(counted).collect(),
            keyed: (!info.fields.is_empty()).then(keyed),
            spread: Spread::between(&Reading::default(), reading, row),
            untold_tags: reading.untold_tags,
            nic: reading.nic,
            stopped_by: None,
            error: None,
            confinement: None,
            fields: info.fields.clone(),
        }
    }

    /// Returns the rows, all packets last, with their keys.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Option<&Key>, &Row)> {
        rows(self.filters.iter().map(|counted| &counted.row), self.keyed.as_ref(), &self.spread, &self.total)
    }

    /// Returns the packets that the card or its driver had no room for.
    pub(super) fn nic_lost(&self) -> u64 {
        self.nic.missed + self.nic.fifo_errors
    }

    /// Adds the reason for the end.
    pub(super) fn close(&mut self, result: Result<Stop, &str>) {
        self.stopped_by = Some(result.unwrap_or(Stop::Error));
        self.error = result.err().map(str::to_owned);
    }
}

impl Told for Summary {
    fn interfaces(&self) -> Vec<String> {
        vec![self.interface.clone()]
    }

    fn filter(&self) -> Option<String> {
        None
    }

    fn file(&self) -> Option<String> {
        None
    }

    fn json(&self) -> serde_json::Result<Box<serde_json::value::RawValue>> {
        serde_json::value::to_raw_value(self)
    }

    fn into_metrics(self) -> Option<Box<dyn Measured>> {
        Some(Box::new(self))
    }
}
