//! `weir-bench NAME`: one experiment as a command, with options of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::run::{Plan, measure, wanted};
use super::{Entry, Settings};
use crate::failure::Failure;
use crate::units;

/// Options of all benchmarks.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// Number of rounds; default: 5, with --quick 1. Four or fewer never show a difference.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Make one short round: whether it works, not how fast it is.
    #[arg(long)]
    quick: bool,

    /// Write all measurements to FILE, in the format of weir-bench run.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write a report with figures to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Options of a benchmark with timed turns.
#[derive(Debug, Args)]
pub(crate) struct Timed {
    #[command(flatten)]
    pub(crate) how: How,

    /// Sending time per contestant and round; default: 1s or 2s, with --quick a twentieth.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,
}

/// Options of one with frames of several sizes.
#[derive(Debug, Args)]
pub(crate) struct Sized {
    #[command(flatten)]
    pub(crate) timed: Timed,

    /// Frame sizes in bytes, without the checksum: 60 to 1514; default: from 60 to 1514, with --quick 60.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(60..=1514))]
    sizes: Option<Vec<u16>>,
}

/// Options of one that writes files.
#[derive(Debug, Args)]
pub(crate) struct Stored {
    #[command(flatten)]
    pub(crate) sized: Sized,

    /// Directory for files; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,
}

impl How {
    pub(crate) fn settings(&self) -> Settings {
        Settings { quick: self.quick, dir: "/dev/shm".into(), ..Settings::default() }
    }

    /// Where the measurements go.
    pub(crate) fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// Measures these of `all`.
    pub(crate) fn run(
        &self,
        settings: Settings,
        names: &[&str],
        all: &'static [Entry],
    ) -> Result<(), Failure> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let (json, html) = (self.json(), self.html.as_deref());
        let plan = Plan { settings, rounds: self.rounds, json, html, resume: false };
        measure(&plan, &wanted(&names, all)?)
    }
}

impl Timed {
    pub(crate) fn settings(&self) -> Settings {
        Settings { duration: self.duration, ..self.how.settings() }
    }
}

impl Sized {
    pub(crate) fn settings(&self) -> Settings {
        Settings { sizes: self.sizes.clone(), ..self.timed.settings() }
    }
}

impl Stored {
    pub(crate) fn settings(&self) -> Settings {
        Settings { dir: self.dir.clone(), ..self.sized.settings() }
    }
}

/// Parts of a benchmark, as named on the command line.
pub(crate) fn names<P: ValueEnum>(parts: &[P]) -> Vec<String> {
    parts.iter().filter_map(|part| Some(part.to_possible_value()?.get_name().to_owned())).collect()
}
