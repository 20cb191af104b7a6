//! What is worse on an interface than it could be.

use std::fmt;

use crate::SourceKind;

/// What is worse on an interface than it could be; see [`Interface::warnings`](crate::Interface). The text says how to
/// fix it, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterfaceWarning {
    /// [`SourceChoice::Auto`](crate::SourceChoice) uses a slower source, because a faster one failed.
    Slower {
        /// The faster source.
        failed: SourceKind,
        /// Why it failed.
        why: String,
        /// The capabilities it takes, if they were missing.
        needs: Option<&'static str>,
    },
    /// The filter runs in the process instead of the kernel, which is slower.
    FilterInProcess {
        /// Why the kernel does not run it.
        why: String,
    },
    /// VLAN tags may be missing: the device can strip them, and the source does not get those. Whether packets had some is not
    /// known.
    TagsLost {
        /// The command that keeps them.
        keep: String,
    },
}

impl fmt::Display for InterfaceWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slower { failed, why, needs } => {
                write!(f, "slower than it could be, as source {failed} failed: {why}")?;
                needs.map_or(Ok(()), |needs| write!(f, "; run as root, or with the capabilities {needs}"))
            }
            Self::FilterInProcess { why } => {
                write!(f, "the filter runs in the process, which is slower: {why}")
            }
            Self::TagsLost { keep } => write!(
                f,
                "VLAN tags may be missing: the device can strip them and does not report them to XDP; to keep them: {keep}"
            ),
        }
    }
}
