//! A page of metrics in the Prometheus text format: <https://prometheus.io/docs/practices/naming/> for names,
//! <https://prometheus.io/docs/instrumenting/exposition_formats/> for the format, or OpenMetrics 1.0 on request.

use std::fmt::{self, Display, Write as _};

use weir::statistics::Counts;

/// The format of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpositionFormat {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
}

impl ExpositionFormat {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// An account that metrics are made of.
pub trait Measured: fmt::Debug + Send + Sync {
    /// Writes the metrics.
    fn put(&self, page: &mut Page);
}

/// Names and values.
pub type Labels<'a> = &'a [(&'static str, &'a dyn Display)];
/// Labels of their own.
pub type OwnLabels<'a> = Vec<(&'static str, &'a dyn Display)>;

/// A page of metrics. Each name is described once, and its samples follow.
#[derive(Debug)]
pub struct Page {
    text: String,
    format: ExpositionFormat,
}

impl Page {
    pub(crate) fn new(format: ExpositionFormat) -> Self {
        Self { text: String::new(), format }
    }

    /// Returns the text.
    pub(crate) fn finish(mut self) -> String {
        if self.format == ExpositionFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Describes a gauge: its samples follow.
    pub fn gauge(&mut self, name: &str, help: &str) {
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
    }

    /// Describes a counter, whose `name` lacks `_total`, which OpenMetrics omits here: its samples follow.
    pub fn counter(&mut self, name: &str, help: &str) {
        let total = if self.format == ExpositionFormat::Prometheus { "_total" } else { "" };
        self.put(format_args!("# HELP {name}{total} {help}\n# TYPE {name}{total} counter\n"));
    }

    /// Writes a sample of a counter; `name` lacks `_total`.
    pub fn count(&mut self, name: &str, labels: Labels<'_>, value: u64) {
        self.sample(&format!("{name}_total"), labels, value);
    }

    /// Writes two counters, `name`_packets and `name`_bytes, of `what`, with a sample for each direction of each row.
    pub fn counts(&mut self, name: &str, what: &str, rows: &[(OwnLabels<'_>, &Counts)]) {
        for (unit, title) in [("packets", "Packets"), ("bytes", "Bytes")] {
            let name = format!("{name}_{unit}");
            self.counter(&name, &format!("{title} {what}"));
            for (labels, counts) in rows {
                for (direction, count) in [("received", counts.received), ("sent", counts.sent)] {
                    let labels = [&labels[..], &[("direction", &direction)]].concat();
                    self.count(&name, &labels, if unit == "packets" { count.packets } else { count.bytes });
                }
            }
        }
    }

    /// Writes a sample.
    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.put(format_args!("{name}"));
        for (place, (label, value)) in labels.iter().enumerate() {
            let value = value.to_string().replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            self.put(format_args!("{}{label}=\"{value}\"", if place == 0 { '{' } else { ',' }));
        }
        self.put(format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes everything");
    }
}
