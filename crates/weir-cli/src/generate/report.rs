//! What was sent, for people and programs.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use weir::send::Sent;

use super::schedule::Schedule;
use crate::sending::{Amount, Asked, Off};
use crate::{style, units};

/// The summary of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Null: frames were written to `file`.
    pub(super) interface: Option<String>,
    pub(super) file: Option<String>,
    pub(super) backend: Option<String>,
    pub(super) stream: u16,
    /// Null: frames were made from a description.
    pub(super) templates: Option<usize>,
    /// Templates left out, as they have no room for a signature.
    pub(super) unsigned: usize,
    /// Null: these are templates.
    pub(super) flows: Option<u32>,
    pub(super) seed: Option<u64>,
    #[serde(flatten)]
    amount: Amount,
    #[serde(flatten)]
    asked: Asked,
    /// Null without gaps.
    pub(super) gaps: Option<Off>,
    /// Frames made in the kernel for which the driver had no room.
    pub(super) refused: u64,
    /// A signal ended it.
    pub(super) stopped: bool,
    /// Null: everything was sent, unless it was stopped.
    pub(super) error: Option<String>,
}

impl Summary {
    /// `elapsed`: the time that it took; `None` for a file.
    pub(super) fn new(sent: Sent, elapsed: Option<Duration>, schedule: &Schedule) -> Self {
        let (packets_per_second, bits_per_second) = schedule.asked();
        let reached = elapsed.and_then(|elapsed| schedule.is_reached(elapsed));
        Self {
            interface: None,
            file: None,
            backend: None,
            stream: 0,
            templates: None,
            unsigned: 0,
            flows: None,
            seed: None,
            amount: Amount::new(sent, elapsed),
            asked: Asked { packets_per_second, bits_per_second, reached },
            gaps: None,
            refused: 0,
            stopped: false,
            error: None,
        }
    }

    /// Returns the summary as lines.
    pub(super) fn text(&self) -> String {
        let place = self.interface.as_deref().or(self.file.as_deref()).unwrap_or_default();
        let mut what = if self.file.is_some() { "written to " } else { "sent on " }.to_owned();
        what += &style::visible(place);
        if let Some(backend) = &self.backend {
            what += &format!(" ({backend})");
        }
        let mut text = if self.file.is_some() { self.amount.brief(&what) } else { self.amount.text(&what) };
        text.push('\n');
        text += &self.gaps.as_ref().map(Off::text).unwrap_or_default();
        text += &self.asked.text();
        let note = style::stderr().cyan("note");
        if self.refused > 0 && self.error.is_none() {
            text += &format!("{note}: {} more found no room in the driver\n", units::packets(self.refused));
        }
        if self.stopped {
            text += &format!("{note}: stopped by a signal\n");
        }
        text
    }
}

/// Returns a path as text.
pub(super) fn named(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard output".to_owned() } else { path.display().to_string() }
}
