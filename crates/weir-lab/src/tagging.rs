//! VLAN tags beside the frames, without VLAN interfaces.

use weir_bpf::tag::Tag;
use weir_sys::bpf::{Place, TcxHook, TcxLink};

use crate::{Error, Port};

/// Tags everything that a port's stack sends, as a VLAN interface would: the tag travels beside the frame, and the
/// receiving end meets it as one that its device has stripped. Ends when dropped.
#[derive(Debug)]
pub struct Tagging {
    _link: TcxLink,
}

impl Tagging {
    /// Begins to tag with this protocol (0x8100 or 0x88a8) and control information.
    ///
    /// # Errors
    ///
    /// No privilege, or a kernel without tcx (6.6).
    pub fn on(port: &Port, protocol: u16, tci: u16) -> Result<Self, Error> {
        Self::at(port, protocol, tci, Place::Last)
    }

    /// The same in front of programs that are there already, such as a capture.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on).
    pub fn in_front(port: &Port, protocol: u16, tci: u16) -> Result<Self, Error> {
        Self::at(port, protocol, tci, Place::First)
    }

    fn at(port: &Port, protocol: u16, tci: u16, place: Place) -> Result<Self, Error> {
        let tag = Tag::load(protocol, tci)?;
        let attach = || TcxLink::attach(tag.program(), port.index, TcxHook::Egress, place);
        Ok(Self { _link: port.netns.run(attach)? })
    }

    /// Begins to take the tags off what arrives at a port, so that its stack takes it; behind captures that are there
    /// and those that come.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on).
    pub fn off(port: &Port) -> Result<Self, Error> {
        let untag = Tag::load_untagging()?;
        let attach = || TcxLink::attach(untag.program(), port.index, TcxHook::Ingress, Place::Last);
        Ok(Self { _link: port.netns.run(attach)? })
    }
}
