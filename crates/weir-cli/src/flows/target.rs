//! Where flows go, as the command line says it: to a collector, to files, or to Kafka.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::collector::Collector;
use super::folder::Folder;
use super::kafka::{Kafka, SCHEME};

/// A value of `--to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Collector(Collector),
    Folder(Folder),
    Kafka(Kafka),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(place) = text.strip_prefix("file:") {
            place.parse().map(Self::Folder)
        } else if let Some(place) = text.strip_prefix(SCHEME) {
            place.parse().map(Self::Kafka)
        } else {
            let others = "or file:DIR, or kafka://HOST:PORT/TOPIC";
            text.parse().map(Self::Collector).map_err(|wrong: String| format!("{wrong}; {others}"))
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collector(collector) => collector.fmt(f),
            Self::Folder(folder) => folder.fmt(f),
            Self::Kafka(kafka) => kafka.fmt(f),
        }
    }
}
