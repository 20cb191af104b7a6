//! Rows as plain values, for `--json`, `--csv` and the tables: what was counted, by filter, key, size and gap.
//!
//! Scripts rely on field names: they may be added to, not changed.

use std::borrow::Cow;
use std::iter::repeat;

use serde::Serialize;
use serde_json::{Map, Value};
use weir::statistics::{Bucket, Counts, Key, KeyField, Reading};

use super::top::{self, Choice, Grown, Top};
use crate::live::rate;

/// What was counted on one interface, or on several together.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rows<T> {
    /// All packets.
    pub(super) total: T,
    /// By filter.
    pub(super) filters: Vec<T>,
    /// By key; absent without `--by`.
    #[serde(flatten)]
    pub(super) keyed: Option<Keyed<T>>,
    /// By size and gap.
    #[serde(flatten)]
    pub(super) spread: Spread<T>,
}

/// A row for a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a, T> {
    /// The interface, or [`SUM`]; `None`: there is only one.
    pub(super) interface: Option<&'a str>,
    /// The key, if it has one.
    pub(super) key: Option<&'a Key>,
    pub(super) row: &'a T,
}

/// Stands for all interfaces together.
pub(super) const SUM: &str = "(sum)";

/// What is shown of keys, sizes and gaps.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The fields of keys.
    pub(super) fields: Vec<KeyField>,
    pub(super) choice: Choice,
    /// Those of several interfaces are shown for each, not summed up.
    pub(super) apart: bool,
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
    /// The expression of the filter; absent in intervals, and for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
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
        Self { name, filter: None, packets: total.packets, bytes: total.bytes, counts }
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

    fn none() -> Self {
        Self { sizes: Vec::new(), gaps: Vec::new(), first: None }
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

impl<'a, T> Line<'a, T> {
    pub(super) fn map<U>(self, of: impl FnOnce(&'a T) -> &'a U) -> Line<'a, U> {
        Line { interface: self.interface, key: self.key, row: of(self.row) }
    }
}

impl<T> Rows<T> {
    /// Makes rows of what grew from one reading to the next; `details`: of keys, sizes and gaps, too.
    fn between(
        before: &Reading,
        now: &Reading,
        view: &View,
        details: bool,
        make: impl Fn(Name, Grown) -> T,
    ) -> Self {
        let filters = now.filters.iter().enumerate().map(|(number, filter)| {
            let before = before.filters.get(number).map(|filter| filter.counts).unwrap_or_default();
            make(Name::Filter(filter.name.clone()), Grown::between(before, filter.counts))
        });
        let filters = filters.collect();
        let keyed = || Keyed::new(view.choice.top(before, now), &view.fields, &make);
        Self {
            total: make(Name::All, Grown::between(before.total, now.total)),
            filters,
            keyed: (details && !view.fields.is_empty()).then(keyed),
            spread: if details { Spread::between(before, now, &make) } else { Spread::none() },
        }
    }

    /// Returns the rows: filters, keys, the rest and the others, sizes, gaps, all packets.
    pub(super) fn lines<'a>(&'a self, interface: Option<&'a str>) -> impl Iterator<Item = Line<'a, T>> {
        let keyed = || self.keyed.iter();
        let keys = keyed().flat_map(|keyed| keyed.keys.iter().map(|of| (Some(&of.key), &of.counts)));
        let rest = keyed().flat_map(|keyed| [&keyed.rest, &keyed.others]);
        let buckets = self.spread.sizes.iter().chain(&self.spread.gaps).map(|bucket| &bucket.counts);
        let details = rest.chain(buckets).chain(&self.spread.first).chain([&self.total]);
        let rows = self.filters.iter().map(|row| (None, row)).chain(keys);
        let rows = rows.chain(details.map(|row| (None, row)));
        rows.map(move |(key, row)| Line { interface, key, row })
    }
}

impl Rows<Growth> {
    /// Computes the growth from one reading to the next.
    pub(super) fn grown(before: &Reading, now: &Reading, view: &View, details: bool) -> Self {
        let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
        Self::between(before, now, view, details, |name, grown| Growth::new(name, grown, seconds))
    }
}

impl Rows<Row> {
    /// Returns what was counted since the start.
    pub(super) fn whole(now: &Reading, filters: &[(String, String)], view: &View, details: bool) -> Self {
        let row = |name, grown: Grown| Row::new(name, grown.to);
        let mut rows = Self::between(&Reading::default(), now, view, details, row);
        for (row, (_, expression)) in rows.filters.iter_mut().zip(filters) {
            row.filter = Some(expression.clone());
        }
        rows
    }
}
