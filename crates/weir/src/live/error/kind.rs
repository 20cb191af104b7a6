//! The kinds of errors, which programs can match on.

use rustix::io::Errno;
use weir_sys::CallError;

use crate::Error;

/// What an [`Error`] is about, in terms that a program can act on; see [`Error::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such interface, namespace or forwarding.
    NotFound,
    /// The process lacks privileges.
    PermissionDenied,
    /// Something else has what was requested: another program is attached, or another process is at work.
    Busy,
    /// The kernel, the driver, the interface or the source does not support what was requested.
    Unsupported,
    /// A setting has a value that it cannot have, or two settings contradict each other.
    InvalidSetting,
    /// A filter expression, or a member of its sets, is invalid.
    InvalidFilter,
    /// The capture would need more memory than it may use.
    MemoryLimit,
    /// The kernel has no memory.
    OutOfMemory,
    /// An interface is down.
    InterfaceDown,
    /// An interface has disappeared.
    InterfaceGone,
    /// The program has ended the start.
    Interrupted,
    /// Shared memory is inconsistent.
    Corrupt,
    /// Anything else.
    Other,
}

impl Error {
    /// Returns what the error is about.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoInterface
            | Self::NoSuchInterface { .. }
            | Self::Namespace { .. }
            | Self::NotForwarding(_)
            | Self::NoSuchSet { .. }
            | Self::NoSuchEndpoint { .. } => ErrorKind::NotFound,
            Self::Privilege { .. } => ErrorKind::PermissionDenied,
            Self::Busy { .. }
            | Self::QueueBusy { .. }
            | Self::AlreadyForwarding { .. }
            | Self::ForwardingChanges { .. } => ErrorKind::Busy,
            Self::Unsupported { .. }
            | Self::FilterRefused { .. }
            | Self::Pins(_)
            | Self::Forward(_)
            | Self::ForwardDriver(_)
            | Self::ForwardFaults { .. }
            | Self::ForwardTags { .. }
            | Self::ForwardingHidden { .. } => ErrorKind::Unsupported,
            Self::InterfaceTwice { .. }
            | Self::InterfaceIncluded { .. }
            | Self::NoSuchNumber { .. }
            | Self::Setting { .. }
            | Self::Conflict { .. }
            | Self::Shape(_) => ErrorKind::InvalidSetting,
            Self::Filter(_) | Self::Members { .. } => ErrorKind::InvalidFilter,
            Self::FilterPutBack { source, .. } | Self::SetPartlyChanged { source, .. } => source.kind(),
            Self::Memory { .. } | Self::Budget { .. } => ErrorKind::MemoryLimit,
            Self::InterfaceDown { .. } => ErrorKind::InterfaceDown,
            Self::InterfaceGone { .. } => ErrorKind::InterfaceGone,
            Self::Interrupted { .. } => ErrorKind::Interrupted,
            Self::Load { source, .. } if source.is_permission() => ErrorKind::PermissionDenied,
            Self::Load { source, .. } if source.is_memory() => ErrorKind::OutOfMemory,
            Self::Load { .. } => ErrorKind::Unsupported,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::NoHandlers => ErrorKind::Other,
            Self::Call(error) => of_call(error),
        }
    }
}

/// Returns what the kernel's answer to a call is about.
fn of_call(error: &CallError) -> ErrorKind {
    match Errno::from_raw_os_error(error.errno()) {
        Errno::PERM | Errno::ACCESS => ErrorKind::PermissionDenied,
        Errno::NOENT => ErrorKind::NotFound,
        Errno::BUSY | Errno::EXIST => ErrorKind::Busy,
        Errno::NOMEM => ErrorKind::OutOfMemory,
        Errno::NODEV => ErrorKind::InterfaceGone,
        Errno::OPNOTSUPP | Errno::NOSYS => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::ExpressionError;
    use crate::live::error::Interfaces;
    use crate::{Capture, Filter, Setting};

    #[test]
    fn errors_have_a_kind() {
        let name = || "eth0".to_owned();
        let call = |errno: Errno| Error::Call(CallError::new("try", errno));
        let put_back =
            |source| Error::FilterPutBack { back: Vec::new(), kept: Vec::new(), source: Box::new(source) };
        let filter = Filter::new("udp and").compile_for_file(1, false).expect_err("half an expression");
        let table = [
            (Error::NoInterface, ErrorKind::NotFound),
            (Error::InterfaceDown { name: name() }, ErrorKind::InterfaceDown),
            (Error::InterfaceGone { name: name() }, ErrorKind::InterfaceGone),
            (Error::Privilege { operation: name(), needs: "cap_bpf" }, ErrorKind::PermissionDenied),
            (Error::Busy { name: name(), program: None, program_name: None, holder: None }, ErrorKind::Busy),
            (Error::AlreadyForwarding { from: name(), to: name() }, ErrorKind::Busy),
            (Error::setting(Setting::SnapLen, "no"), ErrorKind::InvalidSetting),
            (Error::conflict(Setting::Segment, Setting::Interface, "no"), ErrorKind::InvalidSetting),
            (
                Error::Members { set: name(), source: ExpressionError::new(name(), 0..1) },
                ErrorKind::InvalidFilter,
            ),
            (filter.into(), ErrorKind::InvalidFilter),
            (
                Error::Budget { interfaces: Interfaces::One(name()), least: 2, budget: 1, enough: 2 },
                ErrorKind::MemoryLimit,
            ),
            (call(Errno::NOMEM), ErrorKind::OutOfMemory),
            (call(Errno::PERM), ErrorKind::PermissionDenied),
            (call(Errno::NODEV), ErrorKind::InterfaceGone),
            (call(Errno::OPNOTSUPP), ErrorKind::Unsupported),
            (call(Errno::INVAL), ErrorKind::Other),
            (put_back(Error::FilterRefused { name: name(), source: name().into() }), ErrorKind::Unsupported),
            (put_back(call(Errno::BUSY)), ErrorKind::Busy),
        ];
        for (error, kind) in table {
            assert_eq!(error.kind(), kind, "{error:?}");
        }
    }

    #[test]
    fn what_cannot_be_opened_has_a_kind() {
        let kind = |builder: crate::Builder| builder.open().expect_err("it cannot be").kind();
        assert_eq!(kind(Capture::builder()), ErrorKind::NotFound);
        assert_eq!(kind(Capture::builder().interface("no-such")), ErrorKind::NotFound);
        assert_eq!(kind(Capture::builder().interface("lo").snap_len(0)), ErrorKind::InvalidSetting);
        assert_eq!(kind(Capture::builder().interface("lo").interface("lo")), ErrorKind::InvalidSetting);
    }
}
