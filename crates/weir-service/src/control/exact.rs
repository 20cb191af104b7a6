//! What clients order about exact rules, and what became of it.

use serde::{Deserialize, Serialize};
use weir::guard::{ExactEntry, ExactFlow, ExactRule};

/// The most rules in a message, which has a limit of its own.
pub const MOST_EXACT: usize = 10_000;

/// What a client orders about exact rules.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExactOrder {
    /// Add these rules. Those of one vector are added together or not at all.
    Add(Vec<Vec<ExactRule>>),
    /// Remove those for these packets. Each vector counts as one rule.
    Remove(Vec<Vec<ExactFlow>>),
    /// List those in force; at most [`MOST_EXACT`], and behind these packets.
    List {
        /// The last of the previous answer; `None`: from the beginning.
        behind: Option<ExactFlow>,
    },
    /// Remove all, learned and added.
    Flush,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExactDone {
    /// So many were added or removed.
    Changed {
        /// How many.
        rules: usize,
        /// Which ones were not, by their place in the order, and why not.
        failed: Vec<(usize, String)>,
    },
    /// Those in force, in the order of their flows; none: there are no more.
    Listed(Vec<ExactEntry>),
}
