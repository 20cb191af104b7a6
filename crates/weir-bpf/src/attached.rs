//! An XDP program that runs.

use std::path::Path;

use weir_sys::CallError;
use weir_sys::bpf::XdpLink;
use weir_sys::netns::NetNs;

/// An attached program; detached when this is dropped.
#[derive(Debug)]
pub struct Attached {
    pub(crate) link: XdpLink,
    /// The interface's namespace, for programs to be bound to it.
    pub(crate) namespace: Option<NetNs>,
}

impl Attached {
    /// Detaches the program.
    ///
    /// # Errors
    ///
    /// The errors of [`XdpLink::detach`].
    pub fn detach(&self) -> Result<(), CallError> {
        self.link.detach()
    }

    /// Pins the link as `path` in a bpffs: the program stays attached until [`detach`](Self::detach), even if this is
    /// dropped or the process ends.
    ///
    /// # Errors
    ///
    /// The errors of [`XdpLink::pin`].
    pub fn pin(&self, path: &Path) -> Result<(), CallError> {
        self.link.pin(path)
    }
}
