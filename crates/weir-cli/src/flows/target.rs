//! Where flows go, as the command line says it: to a collector, or to files.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::collector::Collector;
use super::folder::Folder;

/// A value of `--to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Collector(Collector),
    Folder(Folder),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some(place) => place.parse().map(Self::Folder),
            None => {
                text.parse().map(Self::Collector).map_err(|wrong: String| format!("{wrong}; or file:DIR"))
            }
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collector(collector) => collector.fmt(f),
            Self::Folder(folder) => folder.fmt(f),
        }
    }
}
