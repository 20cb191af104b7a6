//! Who takes part.

use std::path::Path;

use tempfile::NamedTempFile;

use crate::contestants::ours;
use crate::experiment::{Role, Series, Turn};
use crate::failure::{Failure, failed};
use crate::program::{Program, WEIR};
use crate::tidy;

/// Where packets go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum To {
    Nowhere,
    Memory,
    Disk,
}

pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) role: Role,
    pub(super) to: To,
    pub(super) program: Program,
}

impl Contestant {
    /// What a user types to capture with 64 MiB for each queue.
    pub(super) fn weir(name: &'static str, title: &'static str, to: To, how: &[&'static str]) -> Self {
        let file = if to == To::Nowhere { "/dev/null" } else { "{file}" };
        let words = [&["capture", "--json", "-B", "64MiB"], how, &["-w", file]].concat();
        Self { name, title, role: Role::Ours, to, program: ours(WEIR, "source ", &words) }
    }

    pub(super) fn peer(name: &'static str, title: &'static str, to: To, program: Program) -> Self {
        Self { name, title, role: Role::Peer, to, program }
    }

    pub(super) fn is_present(&self) -> bool {
        self.program.path().is_some()
    }

    pub(super) fn series(&self) -> Series {
        Series::new(self.name, self.title, self.role)
    }

    /// The file for its packets.
    pub(super) fn file(&self, memory: &Path, disk: &Path) -> Result<Option<NamedTempFile>, Failure> {
        let dir = match self.to {
            To::Nowhere => return Ok(None),
            To::Memory => memory,
            To::Disk => disk,
        };
        let file = tidy::file_in(dir);
        file.map(Some).map_err(failed(format_args!("create a file in {}", dir.display())))
    }
}

/// Those that are not installed, and why they are missing.
pub(super) fn missing(all: &[Contestant]) -> Vec<[String; 2]> {
    all.iter().filter_map(|one| Some([one.title.to_owned(), one.program.missing()?])).collect()
}

/// A turn of each with every size.
pub(super) fn turns(all: &[Contestant], sizes: &[u64]) -> Vec<Turn> {
    let present = all.iter().filter(|contestant| contestant.is_present());
    Turn::each(sizes.iter().copied(), present.map(|one| one.name))
}

/// The one whose turn it is.
pub(super) fn of<'a>(all: &'a [Contestant], turn: &Turn) -> &'a Contestant {
    all.iter().find(|contestant| contestant.name == turn.series).expect("turns are of contestants")
}
