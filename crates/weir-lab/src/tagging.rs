//! VLAN tags as metadata of frames, without VLAN interfaces.

use weir_sys::bpf::{AttachPosition, TcxHook, TcxLink};

use crate::programs::tag::Tag;
use crate::{Error, Port};

/// Tags everything that a port's stack sends, until it is dropped. As with a VLAN interface, the tag is metadata of the
/// frame, and to the receiving end it looks like a tag stripped by the device.
#[derive(Debug)]
pub struct Tagging {
    _link: TcxLink,
}

impl Tagging {
    /// Starts tagging with this protocol (0x8100 or 0x88a8) and control information.
    ///
    /// # Errors
    ///
    /// Missing privileges, or a kernel without tcx (6.6).
    pub fn on(port: &Port, protocol: u16, tci: u16) -> Result<Self, Error> {
        Self::at(port, protocol, tci, AttachPosition::Last)
    }

    /// Does what [`on`](Self::on) does, before existing programs such as a capture.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on).
    pub fn in_front(port: &Port, protocol: u16, tci: u16) -> Result<Self, Error> {
        Self::at(port, protocol, tci, AttachPosition::First)
    }

    fn at(port: &Port, protocol: u16, tci: u16, position: AttachPosition) -> Result<Self, Error> {
        let tag = Tag::load(protocol, tci)?;
        let attach = || TcxLink::attach(tag.program(), port.index, TcxHook::Egress, position);
        Ok(Self { _link: port.netns.run(attach)? })
    }

    /// Starts removing the tags of packets that arrive at a port, so that its stack accepts them. Runs after existing
    /// and future captures.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on).
    pub fn off(port: &Port) -> Result<Self, Error> {
        let untag = Tag::load_untagging()?;
        let attach = || TcxLink::attach(untag.program(), port.index, TcxHook::Ingress, AttachPosition::Last);
        Ok(Self { _link: port.netns.run(attach)? })
    }
}
