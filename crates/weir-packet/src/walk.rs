//! The walk: the layers of a packet, one after the other.

use crate::ip::{Extent, Ip};
use crate::link::{Cut, Payload, Tag, by_version, is_cut, llc, payload as link_payload, ppi};
use crate::numbers::{ethertype, link_type, most};
use crate::tunnel::{Entry, enter};

/// A layer of a packet. Each `at` is an offset in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// An Ethernet header: that of the frame, or inside a tunnel. A length in it is followed by LLC (IEEE 802.2), which is
    /// looked through if it says what it carries by an EtherType (SNAP), or that it is IP.
    Ethernet {
        /// Where it begins.
        at: usize,
    },
    /// A VLAN tag.
    Tag(Tag),
    /// A stack of MPLS labels.
    Labels {
        /// Where the first one is.
        at: usize,
        /// How many there are.
        count: usize,
    },
    /// The header of a PPPoE session.
    Session {
        /// Where it begins.
        at: usize,
        /// The session's number.
        number: u16,
    },
    /// An IP header, with the extension headers of IPv6.
    Ip {
        /// Where it begins; offsets in `ip` count from there.
        at: usize,
        /// What it says.
        ip: Ip,
    },
    /// The header of a tunnel, with that of UDP if it has one. What follows is inside.
    Tunnel {
        /// Where it begins.
        at: usize,
        /// What it says.
        entry: Entry,
    },
    /// What the walk does not look into; the last layer.
    Rest {
        /// Where it begins, perhaps beyond what is there.
        at: usize,
        /// What it is.
        what: What,
        /// How far its headers could be followed. A tunnel whose header is cut or malformed is not entered, and `Complete`.
        extent: Extent,
    },
}

impl Layer {
    /// Returns where the layer begins.
    pub fn at(&self) -> usize {
        match *self {
            Self::Ethernet { at }
            | Self::Tag(Tag { at, .. })
            | Self::Labels { at, .. }
            | Self::Session { at, .. }
            | Self::Ip { at, .. }
            | Self::Tunnel { at, .. }
            | Self::Rest { at, .. } => at,
        }
    }
}

/// What the last layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The payload of IP, by protocol.
    Protocol(u8),
    /// Another packet, by EtherType; a length (IEEE 802.3) if it is less than [`ethertype::FIRST`], or [`ethertype::LLC`].
    Kind(u16),
    /// Nothing says.
    Unknown,
}

/// Steps over the layers of a packet from the outermost inwards. The last is [`Layer::Rest`].
///
/// ```text
/// Ethernet -> Tag* -> (Labels | Session)? -> Ip -> Tunnel -> Ethernet -> ... -> Rest
/// ```
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    frame: &'a [u8],
    next: Next,
    /// Tags passed since the last Ethernet header.
    tags: u8,
    /// Tunnels and pseudowires entered.
    depth: u8,
    /// Whether LLC is looked through behind Ethernet, VLAN tags and a cooked header. (Behind 802.11 it always is.)
    passes_llc: bool,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Ethernet(usize),
    Payload(Payload),
    /// Behind labels, which do not say what they carry.
    Labelled(usize),
    /// The payload at `at` of a packet with this header.
    Carried {
        at: usize,
        ip: Ip,
    },
    Rest {
        at: usize,
        what: What,
        extent: Extent,
    },
    Nothing,
}

impl<'a> Walk<'a> {
    /// Begins at the link layer of a frame; `link` is its type ([`link_type`]).
    #[inline]
    pub fn new(link: u16, frame: &'a [u8]) -> Self {
        Self::begin(link, frame, true)
    }

    /// The same, but LLC is not looked through: programs in the kernel do not, either.
    pub(crate) fn without_llc(link: u16, frame: &'a [u8]) -> Self {
        Self::begin(link, frame, false)
    }

    #[inline]
    fn begin(link: u16, frame: &'a [u8], passes_llc: bool) -> Self {
        let next =
            if link == link_type::ETHERNET { Next::Ethernet(0) } else { other(link, frame, passes_llc) };
        Self { frame, next, tags: 0, depth: 0, passes_llc }
    }

    /// Goes on with what is behind an Ethernet header or a tag: if that has a length, behind LLC.
    #[inline]
    fn go_on(&mut self, payload: Payload) {
        self.next = Next::Payload(payload);
        if payload.kind <= ethertype::LAST_LENGTH {
            self.skip_llc(payload);
        }
    }

    #[cold]
    fn skip_llc(&mut self, payload: Payload) {
        if self.passes_llc {
            // What comes behind so many bytes is no part of the packet.
            let end = payload.at + usize::from(payload.kind);
            self.frame = self.frame.get(..end).unwrap_or(self.frame);
            self.next = behind_llc(self.frame, payload);
        }
    }

    fn rest(&mut self, at: usize, what: What, extent: Extent) -> Layer {
        self.next = Next::Nothing;
        Layer::Rest { at, what, extent }
    }

    fn ethernet(&mut self, at: usize) -> Layer {
        let Some(payload) = self.frame.get(at..).and_then(|frame| link_payload(link_type::ETHERNET, frame))
        else {
            return self.rest(at, What::Unknown, Extent::Cut);
        };
        self.tags = 0;
        self.go_on(Payload { at: at + payload.at, ..payload });
        Layer::Ethernet { at }
    }

    fn payload(&mut self, payload: Payload) -> Layer {
        let Payload { kind, at } = payload;
        let rest = |walk: &mut Self, extent| walk.rest(at, What::Kind(kind), extent);
        if ethertype::is_tag(kind) {
            if self.tags == most::TAGS {
                return rest(self, Extent::TooMany);
            }
            let Some((tag, behind)) = payload.tag(self.frame) else { return rest(self, Extent::Cut) };
            self.tags += 1;
            self.go_on(behind);
            return Layer::Tag(tag);
        }
        match kind {
            ethertype::IPV4 | ethertype::IPV6 => {
                let Some((ip, _)) = payload.ip(self.frame) else { return rest(self, Extent::Cut) };
                self.next = Next::Carried { at: at + ip.payload, ip };
                Layer::Ip { at, ip }
            }
            ethertype::MPLS | ethertype::MPLS_UPSTREAM => match payload.labels(self.frame) {
                Some((count, behind)) => {
                    self.next = Next::Labelled(behind);
                    Layer::Labels { at, count }
                }
                None => {
                    let there = self.frame.len().saturating_sub(at) / 4;
                    rest(self, if there < most::LABELS.into() { Extent::Cut } else { Extent::TooMany })
                }
            },
            ethertype::PPPOE => match payload.session(self.frame) {
                Some((number, inside)) => {
                    let other = Next::Rest { at: at + 6, what: What::Unknown, extent: Extent::Complete };
                    self.next = inside.map_or(other, Next::Payload);
                    Layer::Session { at, number }
                }
                None => rest(self, if self.frame.len() < at + 8 { Extent::Cut } else { Extent::Complete }),
            },
            _ => rest(self, Extent::Complete),
        }
    }

    fn labelled(&mut self, at: usize) -> Layer {
        if let Some(payload) = by_version(self.frame, at) {
            return self.payload(payload);
        }
        // A pseudowire with a control word (RFC 4385); other payloads cannot be told.
        match self.frame.get(at) {
            Some(first) if first >> 4 == 0 => {
                if self.deeper() {
                    self.ethernet(at + 4)
                } else {
                    self.rest(at, What::Unknown, Extent::TooMany)
                }
            }
            Some(_) => self.rest(at, What::Unknown, Extent::Complete),
            None => self.rest(at, What::Unknown, Extent::Cut),
        }
    }

    /// Enters one more packet, unless too many were.
    fn deeper(&mut self) -> bool {
        self.depth += 1;
        self.depth <= most::TUNNELS
    }

    fn carried(&mut self, at: usize, ip: &Ip) -> Layer {
        let is_whole = ip.extent == Extent::Complete && !ip.is_later();
        let entry = if is_whole { enter(ip.protocol, self.frame, at) } else { None };
        let Some(entry) = entry else { return self.rest(at, What::Protocol(ip.protocol), ip.extent) };
        if !self.deeper() {
            return self.rest(at, What::Protocol(ip.protocol), Extent::TooMany);
        }
        self.next = match entry.inside {
            Payload { kind: ethertype::BRIDGED, at } => Next::Ethernet(at),
            // Tags are between the link layer and a packet; nothing else puts one there.
            Payload { kind, at } if ethertype::is_tag(kind) => {
                Next::Rest { at, what: What::Kind(kind), extent: Extent::Complete }
            }
            packet => Next::Payload(packet),
        };
        Layer::Tunnel { at, entry }
    }
}

/// Goes behind the header of another link type than Ethernet.
#[inline(never)]
fn other(link: u16, frame: &[u8], passes_llc: bool) -> Next {
    let unknown = |extent| Next::Rest { at: 0, what: What::Unknown, extent };
    if link == link_type::PPI
        && let Ok(Some((link_type::ETHERNET, at))) = ppi::inside(frame)
    {
        return Next::Ethernet(at);
    }
    match link_payload(link, frame) {
        Some(payload) if payload.kind == ethertype::LLC && passes_llc => behind_llc(frame, payload),
        Some(payload) => Next::Payload(payload),
        None if is_cut(link, frame) => unknown(Extent::Cut),
        None => unknown(Extent::Complete),
    }
}

fn behind_llc(frame: &[u8], payload: Payload) -> Next {
    let Payload { kind, at } = payload;
    match llc::behind(frame, at) {
        Ok(Payload { kind: ethertype::LLC, .. }) => Next::Payload(payload),
        Ok(packet) => Next::Payload(packet),
        Err(Cut) => Next::Rest { at, what: What::Kind(kind), extent: Extent::Cut },
    }
}

impl Iterator for Walk<'_> {
    type Item = Layer;

    #[inline]
    fn next(&mut self) -> Option<Layer> {
        Some(match self.next {
            Next::Ethernet(at) => self.ethernet(at),
            Next::Payload(payload) => self.payload(payload),
            Next::Labelled(at) => self.labelled(at),
            Next::Carried { at, ip } => self.carried(at, &ip),
            Next::Rest { at, what, extent } => self.rest(at, what, extent),
            Next::Nothing => return None,
        })
    }
}
