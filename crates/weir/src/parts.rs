//! What only the programs of this workspace need: `weir`, its service, its libpcap, benches and tests.
//!
//! None of this is part of the library's interface. It may change or disappear with any version, without notice.

#[cfg(feature = "live")]
pub use weir_bpf::filter::{Body, Hook};

#[cfg(feature = "live")]
pub use crate::live::{
    capture::builder::tc_filters,
    capture::choose::{Choice, choice, tag_unknown},
    capture::next_or_rest,
    error::command,
    error::holders::holders,
    error::is_root,
    filter_control::{CompiledFilter, CompiledForm, FilterSlot, FilterSlotKind, PoolKind},
    guard::guard_by_tc_filters,
    interface::distance,
    interface::queues::split_name,
    request::memory::pool_of,
    source::af_packet::as_in_the_kernel,
    source::probe,
    statistics::userspace::{buckets, key_of},
    statistics::{by_tc_filters, check_statistics},
};
pub use crate::units::{grouped, packets};
pub use crate::who::owners::renumbered;
pub use crate::writer::broker::{FileBroker, OpenedFile, Purpose};
pub use crate::writer::local_broker::{LocalBroker, can_run};
pub use crate::writer::refusal::Refusal;
pub use crate::writer::template::{Found, Template};

/// Returns the uncompressed bytes of a file that is at its beginning; `None`: the file is not compressed, and still at
/// its beginning.
///
/// # Errors
///
/// The file cannot be read, or this build lacks the format.
#[cfg(feature = "live")]
pub fn unpacked(file: &std::fs::File) -> std::io::Result<Option<Box<dyn std::io::Read + Send>>> {
    crate::reader::unpacked(file)
}

/// Returns a value with some fields set: `with!(WriterOptions::default(), format, fsync = true)`. Other crates
/// cannot write a `#[non_exhaustive]` struct as one expression otherwise.
#[macro_export]
#[doc(hidden)]
macro_rules! with {
    (@set $of:ident, $field:ident, $value:expr) => {
        $of.$field = $value
    };
    (@set $of:ident, $field:ident) => {
        $of.$field = $field
    };
    ($base:expr $(, $field:ident $(= $value:expr)?)+ $(,)?) => {{
        let mut value = $base;
        $($crate::with!(@set value, $field $(, $value)?);)+
        value
    }};
}
