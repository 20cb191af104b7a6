//! What an interface takes.

use weir_sys::link::{Link, Links};

use super::error::SendReason;
use crate::live::interface::{link_type, unknown};
use crate::live::namespace::context::inside;
use crate::live::request::Wanted;
use crate::{Error, SendRefusal, Unsupported};

/// The header of an Ethernet frame, and of a VLAN tag in it.
const ETHERNET: u32 = 14;
const TAG: u32 = 4;

/// An interface as a sender sees it; from [`SenderBuilder::find`](super::SenderBuilder::find).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destination {
    /// Its name; `NAMESPACE/NAME` in another namespace.
    pub name: String,
    /// Its index in its namespace.
    pub index: u32,
    /// `LINKTYPE_*` of the packets it takes: 1 Ethernet, 101 raw IP.
    pub link_type: u16,
    /// Its MTU: the longest packet, without the link-layer header.
    pub mtu: u32,
    /// Its own MAC address; `None`: it has none.
    pub address: Option<[u8; 6]>,
}

impl Destination {
    /// Finds an interface that is up.
    pub(super) fn find(wanted: &Wanted) -> Result<Self, Error> {
        let name = wanted.label();
        let refused = |refusal, otherwise| Error::Unsupported {
            name: name.clone(),
            cause: Unsupported::Sending(refusal),
            sources: &[],
            otherwise,
        };
        let links = inside(wanted.namespace.as_ref(), || Links::open().and_then(|links| links.all()))??;
        let Some(link) = links.iter().find(|link| link.name == wanted.name) else {
            return Err(unknown(wanted, &links));
        };
        let Some(link_type) = link_type(link.hardware) else {
            let refusal = SendRefusal::LinkLayer { hardware: link.hardware };
            return Err(refused(refusal, "send on an Ethernet, loopback or tun interface"));
        };
        if !link.is_up() {
            return Err(Error::InterfaceDown { name });
        }
        if !link.has_carrier() {
            return Err(refused(SendRefusal::NoCarrier, "plug in the cable, or bring up its other end"));
        }
        let Link { index, mtu, ref address, .. } = *link;
        Ok(Self { name, index, link_type, mtu, address: address.as_slice().try_into().ok() })
    }

    /// Whether packets begin with an Ethernet header.
    fn is_ethernet(&self) -> bool {
        self.link_type == 1
    }

    /// Returns the length of the link-layer header.
    pub fn header(&self) -> u32 {
        if self.is_ethernet() { ETHERNET } else { 0 }
    }

    /// Returns the length of the longest packet that the interface takes, with its link-layer header and without VLAN
    /// tags. One tag (802.1Q) may be added.
    pub fn longest(&self) -> u32 {
        self.mtu.saturating_add(self.header())
    }

    /// Returns the bytes that a sender needs for any packet.
    pub(super) fn room(&self) -> usize {
        self.longest().saturating_add(TAG) as usize
    }

    /// Checks the length of a packet.
    ///
    /// # Errors
    ///
    /// It is too long for the MTU, or shorter than the link-layer header.
    pub fn check(&self, packet: &[u8]) -> Result<(), SendReason> {
        const VLAN: &[u8] = &[0x81, 0];
        let tag = if self.is_ethernet() && packet.get(12..14) == Some(VLAN) { TAG } else { 0 };
        let most = self.longest().saturating_add(tag) as usize;
        let least = self.header().max(1) as usize;
        match packet.len() {
            bytes if bytes > most => {
                Err(SendReason::TooLong { bytes, most, mtu: self.mtu as usize + (bytes - most) })
            }
            bytes if bytes < least => Err(SendReason::TooShort { bytes, least }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_does_not_count() {
        let to =
            |link_type| Destination { name: "eth0".into(), index: 1, link_type, mtu: 1500, address: None };
        let frame = |bytes, ethertype: [u8; 2]| {
            let mut frame = vec![0; bytes];
            frame[12..14].copy_from_slice(&ethertype);
            frame
        };
        let ethernet = to(1);
        assert_eq!(ethernet.check(&frame(1514, [8, 0])), Ok(()));
        assert_eq!(
            ethernet.check(&frame(1515, [8, 0])),
            Err(SendReason::TooLong { bytes: 1515, most: 1514, mtu: 1501 })
        );
        assert_eq!(ethernet.check(&frame(1518, [0x81, 0])), Ok(()));
        assert_eq!(
            ethernet.check(&frame(1519, [0x81, 0])),
            Err(SendReason::TooLong { bytes: 1519, most: 1518, mtu: 1501 })
        );
        assert_eq!(ethernet.check(&[0; 13]), Err(SendReason::TooShort { bytes: 13, least: 14 }));
        assert_eq!(to(101).check(&[0x45; 1500]), Ok(()));
        assert_eq!(
            to(101).check(&frame(1502, [0x81, 0])),
            Err(SendReason::TooLong { bytes: 1502, most: 1500, mtu: 1502 })
        );
        assert_eq!(to(101).check(&[]), Err(SendReason::TooShort { bytes: 0, least: 1 }));
    }
}
