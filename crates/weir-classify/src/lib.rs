#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - `fields`: what a packet says, and how it is found.
//! - `condition`: what is asked.
//! - `dimension`: the classes of a field.
//! - `tables`: the block of memory, and the search in it.

#![forbid(unsafe_code)]

mod condition;
mod dimension;
mod fields;
mod tables;

pub use self::condition::{Condition, Directions, Kinds, PROTOCOLS, Prefix, TAG_IS_CUT, Tags};
pub use self::fields::{Direction, Fields, Kind, MOST_TAGS, Tag};
pub use self::tables::{AddressTables, Error, Shape, Tables, ValueTable};

/// The most conditions of [`Tables`].
pub const MOST_CONDITIONS: usize = 1 << 14;
