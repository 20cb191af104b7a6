//! What both versions of OpenFlow have in common: what a body amounts to, and numbers that mean the same.

use crate::base::bytes::Cut;

pub(crate) const VERSIONS: [&str; 6] = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];

/// A field of bits, and their names.
pub(crate) type Bits = [(u32, &'static str)];

/// The name of a bit that must not be set.
pub(crate) const RESERVED: &str = "RESERVED";

/// The body of a message cannot be right.
pub(crate) struct Invalid;

/// Whether a body, of which nothing is missing, is right.
pub(crate) type Body = Result<Result<(), Invalid>, Cut>;

pub(crate) const RIGHT: Body = Ok(Ok(()));
pub(crate) const WRONG: Body = Ok(Err(Invalid));

/// What a switch does with fragments.
pub(crate) const CONFIGURATION_FLAGS: [&str; 3] = ["FRAG_NORMAL", "FRAG_DROP", "FRAG_REASM"];
/// What happened to a port.
pub(crate) const PORT_CHANGES: [&str; 3] = ["ADD", "DELETE", "MODIFY"];
