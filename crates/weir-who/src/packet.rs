//! What is asked of a register.

use weir_packet::Endpoint;

/// Which end of a packet is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who has sent it.
    Sender,
    /// Who gets it.
    Receiver,
}

/// A packet, as far as it matters whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// When it was captured, in nanoseconds since the Unix epoch.
    pub at: u64,
    /// The namespace of the interface that it was captured on; none asks all.
    pub namespace: Option<u64>,
    /// The link type of the interface (`LINKTYPE_*`).
    pub link_type: u16,
    /// The frame, perhaps cut.
    pub frame: &'a [u8],
}

/// A packet's flow, from one end's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) protocol: u8,
    pub(crate) local: Endpoint,
    pub(crate) remote: Endpoint,
}
