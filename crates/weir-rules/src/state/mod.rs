//! What is remembered of earlier packets. Every table has a size.

pub(crate) mod buckets;
pub(crate) mod flows;
pub(crate) mod key;
pub(crate) mod learned;
mod table;
