//! What several files contain together, such as those of a ring.

use std::time::Duration;

use serde::Serialize;
use weir_render::rfc3339;

use super::gather::{Loss, Summary};

/// The sum of several files. Scripts rely on field names: they may be added to, not changed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Total {
    /// Always `total`; the object of a file has no such field.
    r#type: &'static str,
    pub(crate) files: u64,
    /// Sizes of the files in bytes; absent if one is a pipe.
    size: Option<u64>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    captured_bytes: u64,
    /// Time of the earliest packet, in RFC 3339.
    first: Option<String>,
    /// Time of the latest packet.
    last: Option<String>,
    duration_seconds: Option<f64>,
    /// `none`, `some`, or `unknown` if no file records losses and not all say that there were none.
    loss: Loss,
    /// Packets lost; absent if this is unknown of a file.
    pub(crate) lost: Option<u64>,
    #[serde(skip)]
    pub(crate) times: Option<(u64, u64)>,
}

impl Total {
    pub(crate) fn new() -> Self {
        Self { r#type: "total", size: Some(0), lost: Some(0), ..Self::default() }
    }

    pub(crate) fn add(&mut self, file: &Summary) {
        self.files += 1;
        self.size = self.size.zip(file.size).map(|(sum, size)| sum + size);
        self.packets += file.packets;
        self.bytes += file.bytes;
        self.captured_bytes += file.captured_bytes;
        self.times = match (self.times, file.times) {
            (Some((first, last)), Some((from, to))) => Some((first.min(from), last.max(to))),
            (times, None) | (None, times) => times,
        };
        self.first = self.times.and_then(|(first, _)| rfc3339(first));
        self.last = self.times.and_then(|(_, last)| rfc3339(last));
        self.duration_seconds =
            self.times.map(|(first, last)| Duration::from_nanos(last - first).as_secs_f64());
        self.lost = self.lost.zip(file.lost).map(|(sum, lost)| sum + lost);
        self.loss = match (self.loss, file.loss) {
            (Loss::Some, _) | (_, Loss::Some) => Loss::Some,
            (Loss::Unknown, _) | (_, Loss::Unknown) => Loss::Unknown,
            (Loss::None, Loss::None) => Loss::None,
        };
    }
}

impl<'a> FromIterator<&'a Summary> for Total {
    fn from_iter<I: IntoIterator<Item = &'a Summary>>(files: I) -> Self {
        let mut total = Self::new();
        files.into_iter().for_each(|file| total.add(file));
        total
    }
}
