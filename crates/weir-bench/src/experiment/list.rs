//! All experiments.

use std::io::{self, Write};

use super::{About, Contest, Experiment, Settings};
use crate::failure::Failure;
use crate::table::table;
use crate::{bars, contestants, failed, stat};

/// One that can be run by its name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What it answers.
    pub(crate) question: &'static str,
    pub(crate) make: fn(&Settings) -> Result<Box<dyn Experiment>, Failure>,
}

/// In the order in which they run.
pub(crate) const ALL: &[Entry] = &[
    Entry {
        name: "capture",
        question: "how many packets a second each program captures, beside what the machine can do",
        make: capture,
    },
    Entry {
        name: "stat",
        question: "how fast packets are counted by filter, in the kernel and in user space",
        make: stat::make,
    },
];

/// Prints the table of them.
pub(crate) fn list() -> Result<(), Failure> {
    let rows: Vec<Vec<String>> =
        ALL.iter().map(|entry| vec![entry.name.to_owned(), entry.question.to_owned()]).collect();
    io::stdout().lock().write_all(table(&rows).as_bytes()).map_err(failed("write to standard output"))
}

/// The one of this name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

fn capture(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let about = About {
        name: "capture".to_owned(),
        title: "Capture: packets a second".to_owned(),
        method: "One processor makes frames of one flow and receives them, the other reads. Every reader touches every byte; \
                 bytes and order are checked where nothing was lost. Exclusive captures take packets from the network stack, \
                 as on a mirror port; all others leave them to it."
            .to_owned(),
        versus: contestants::VERSUS.map(|pair| pair.map(str::to_owned)).to_vec(),
        ..About::default()
    };
    let dir = tempfile::tempdir().map_err(failed("create a folder"))?;
    let judge = |samples: &[crate::sample::Sample]| bars::judge(samples, None);
    let contest = Contest::new(settings, about, contestants::all(), &[60, 256, 1514], dir, judge)?;
    Ok(Box::new(contest))
}
