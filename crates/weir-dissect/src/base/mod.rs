//! What all protocols use.

pub(crate) mod checksum;
pub(crate) mod facts;
pub(crate) mod hex;
pub(crate) mod names;
pub(crate) mod segment;
pub(crate) mod streams;
pub(crate) mod text;

pub(crate) use weir_parse::bytes;
