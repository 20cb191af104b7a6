//! Which number leads to which parser.
//!
//! | module | numbers |
//! |---|---|
//! | `link_types` | what a capture file says |
//! | `ethertypes`, `llc`, `osi`, `ppp` | link layers |
//! | `protocols` | IP |
//! | `applications` | TCP and UDP |
//! | `payloads` | names instead of ports |

pub(crate) mod applications;
pub(crate) mod ethertypes;
mod link_types;
pub(crate) mod llc;
pub(crate) mod osi;
pub(crate) mod payloads;
pub(crate) mod ppp;
pub(crate) mod protocols;

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};

/// Prints a payload.
pub(crate) type Read = fn(&mut Printer<'_>, Bytes<'_>) -> Result<(), Cut>;
