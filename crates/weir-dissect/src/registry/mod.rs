//! Which number leads to which parser.

pub(crate) mod payload;
mod payloads;
pub(crate) mod ports;
pub(crate) mod protocols;
