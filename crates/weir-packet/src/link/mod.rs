//! What the header of the link layer says about the packet behind it.
//!
//! Here: Ethernet, whose packet is at a fixed place, and those like it; and what may be between the link layer and IP. A file
//! each: `ppp`, `frame_relay`, `wlan` (802.11), `radiotap` and `ppi`, which come in front of others, `nflog`, and `llc`
//! (802.2), which some of them carry.

mod frame_relay;
pub(crate) mod llc;
mod nflog;
pub(crate) mod ppi;
mod ppp;
mod radiotap;
mod wlan;

use crate::bytes::{be16, byte};
use crate::ip::Ip;
use crate::numbers::{ethertype, link_type as types, most, ppp as protocols};

/// A packet behind headers that say what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Its EtherType.
    pub kind: u16,
    /// Where it begins.
    pub at: usize,
}

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Where its contents are.
    pub at: usize,
    /// The EtherType that announces it.
    pub protocol: u16,
    /// Priority (3 bits), drop eligibility (1 bit), VLAN ID (12 bits).
    pub contents: u16,
}

impl Tag {
    /// Returns the VLAN ID.
    pub fn id(self) -> u16 {
        self.contents & 0xfff
    }
}

/// Returns whether [`payload`] knows this link type.
pub fn is_known(link_type: u16) -> bool {
    header(link_type).is_some() || search(link_type).is_some()
}

/// The header of the link layer is not there as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut;

/// A packet, if there is one that can be told.
type Found = Result<Option<Payload>, Cut>;

/// How a link type begins whose packet is at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// An EtherType at `kind`, the packet at `packet`.
    Kind { kind: usize, packet: usize },
    /// So many bytes, then IP.
    Ip(usize),
}

fn header(link_type: u16) -> Option<Header> {
    Some(match link_type {
        types::ETHERNET => Header::Kind { kind: 12, packet: 14 },
        types::COOKED => Header::Kind { kind: 14, packet: 16 },
        types::COOKED_2 => Header::Kind { kind: 0, packet: 20 },
        types::RAW | types::RAW_12 | types::RAW_14 | types::IPV4 | types::IPV6 => Header::Ip(0),
        // The IP version says the same as the address family, whose numbers and byte order differ.
        types::NULL | types::LOOP => Header::Ip(4),
        _ => return None,
    })
}

/// Returns how the packet is found in frames of the other link types that are known.
fn search(link_type: u16) -> Option<fn(&[u8]) -> Found> {
    Some(match link_type {
        types::PPP => ppp::frame,
        types::PPP_HDLC => ppp::serial,
        types::CISCO_HDLC => ppp::cisco,
        types::WLAN => wlan::frame,
        types::FRAME_RELAY => frame_relay::frame,
        types::RADIOTAP => radiotap::frame,
        types::PPI => ppi::frame,
        types::NFLOG => nflog::frame,
        _ => return None,
    })
}

/// Not in line: what is asked for all the time is Ethernet.
#[cold]
#[inline(never)]
fn searched(link_type: u16, frame: &[u8]) -> Found {
    search(link_type).map_or(Ok(None), |search| search(frame))
}

/// Returns whether the header of a frame, of a link type that [`is_known`], is not there as a whole.
pub(crate) fn is_cut(link_type: u16, frame: &[u8]) -> bool {
    match header(link_type) {
        Some(Header::Kind { kind, .. }) => frame.len() < kind + 2,
        Some(Header::Ip(at)) => frame.len() <= at,
        None => searched(link_type, frame).is_err(),
    }
}

/// Returns the packet in a frame, in front of all VLAN tags: its EtherType may be that of a tag.
#[inline]
pub fn payload(link_type: u16, frame: &[u8]) -> Option<Payload> {
    // What is asked for all the time comes first, and costs no look into a table.
    if link_type == types::ETHERNET {
        return Some(Payload { kind: be16(frame, 12)?, at: 14 });
    }
    match header(link_type) {
        Some(Header::Kind { kind, packet }) => Some(Payload { kind: be16(frame, kind)?, at: packet }),
        Some(Header::Ip(at)) => by_version(frame, at),
        None => searched(link_type, frame).ok()?,
    }
}

/// Returns the IP packet at `at`, by the version in its first four bits.
#[inline]
pub(crate) fn by_version(bytes: &[u8], at: usize) -> Option<Payload> {
    let kind = match byte(bytes, at)? >> 4 {
        4 => ethertype::IPV4,
        6 => ethertype::IPV6,
        _ => return None,
    };
    Some(Payload { kind, at })
}

impl Payload {
    /// Returns its bytes, as far as they are there.
    #[inline]
    pub fn bytes<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        frame.get(self.at..).unwrap_or_default()
    }

    /// Reads the header of an IP packet, and returns the packet with it. `None`: it is cut, or this is another one.
    #[inline]
    pub fn ip<'a>(&self, frame: &'a [u8]) -> Option<(Ip, &'a [u8])> {
        let packet = self.bytes(frame);
        let ip = match self.kind {
            ethertype::IPV4 => Ip::v4(packet)?,
            ethertype::IPV6 => Ip::v6(packet)?,
            _ => return None,
        };
        Some((ip, packet))
    }

    /// Steps over a VLAN tag, if this is one.
    #[inline]
    pub fn tag(self, bytes: &[u8]) -> Option<(Tag, Self)> {
        if !ethertype::is_tag(self.kind) {
            return None;
        }
        let (contents, kind) = (be16(bytes, self.at)?, be16(bytes, self.at + 2)?);
        let tag = Tag { at: self.at, protocol: self.kind, contents };
        Some((tag, Self { kind, at: self.at + 4 }))
    }

    /// Steps over all VLAN tags. If they are cut, or more than [`most::TAGS`], this is still one.
    #[inline]
    pub fn behind_tags(mut self, bytes: &[u8]) -> Self {
        for _ in 0..most::TAGS {
            let Some((_, behind)) = self.tag(bytes) else { break };
            self = behind;
        }
        self
    }

    /// Steps over a stack of MPLS labels, if this is one. Returns how many there are, and what is behind the last.
    #[inline]
    pub(crate) fn labels(self, bytes: &[u8]) -> Option<(usize, usize)> {
        const LABEL: usize = 4;
        if !matches!(self.kind, ethertype::MPLS | ethertype::MPLS_UPSTREAM) {
            return None;
        }
        let labels = bytes.get(self.at..)?.chunks_exact(LABEL).take(most::LABELS.into());
        let count = labels.clone().position(|label| label[2] & 1 == 1)? + 1;
        Some((count, self.at + count * LABEL))
    }

    /// Steps over the header of a PPPoE session, if this is one. Returns its number, and the packet that PPP carries.
    #[inline]
    pub(crate) fn session(self, bytes: &[u8]) -> Option<(u16, Option<Self>)> {
        if self.kind != ethertype::PPPOE || be16(bytes, self.at)? != 0x1100 {
            return None;
        }
        let kind = match be16(bytes, self.at + 6)? {
            protocols::IPV4 => Some(ethertype::IPV4),
            protocols::IPV6 => Some(ethertype::IPV6),
            _ => None,
        };
        Some((be16(bytes, self.at + 2)?, kind.map(|kind| Self { kind, at: self.at + 8 })))
    }

    /// Steps over all that may be between the link layer and IP: VLAN tags, then labels of MPLS or the header of a PPPoE
    /// session. `None`: what comes then is not IP.
    #[inline]
    pub fn find_ip(self, bytes: &[u8]) -> Option<Self> {
        let behind = self.behind_tags(bytes);
        match behind.kind {
            ethertype::IPV4 | ethertype::IPV6 => Some(behind),
            ethertype::MPLS | ethertype::MPLS_UPSTREAM => by_version(bytes, behind.labels(bytes)?.1),
            ethertype::PPPOE => behind.session(bytes)?.1,
            _ => None,
        }
    }
}

/// Returns where the outermost IP packet in a frame is, behind VLAN tags, MPLS and PPPoE.
#[inline]
pub fn outermost_ip(link_type: u16, frame: &[u8]) -> Option<Payload> {
    payload(link_type, frame)?.find_ip(frame)
}

/// Returns where the frame of IEEE 802.11 begins: behind what radiotap or PPI puts in front of it.
pub fn begin_of_wlan(link_type: u16, frame: &[u8]) -> Option<usize> {
    match link_type {
        types::WLAN => Some(0),
        types::RADIOTAP => radiotap::length(frame).ok()?,
        types::PPI => {
            let (inner, at) = ppi::inside(frame).ok()??;
            Some(at + begin_of_wlan(inner, frame.get(at..)?)?)
        }
        _ => None,
    }
}

/// Returns who sent a data frame of 802.11 and who is to have it, behind any number of access points.
pub fn ends_of_wlan(link_type: u16, frame: &[u8]) -> Option<[[u8; 6]; 2]> {
    wlan::ends(frame, begin_of_wlan(link_type, frame)?)
}

/// Returns the outermost VLAN tag of a frame, even if what it carries is cut.
#[inline]
pub fn outermost_tag(link_type: u16, frame: &[u8]) -> Option<Tag> {
    let Payload { kind, at } = payload(link_type, frame)?;
    if !ethertype::is_tag(kind) {
        return None;
    }
    Some(Tag { at, protocol: kind, contents: be16(frame, at)? })
}
