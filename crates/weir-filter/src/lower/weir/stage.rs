//! What is known of a packet's headers at a point of the expression, and which step finds out more.
//!
//! Each term is lowered once for each stage in which it can be reached, so that what one term has found no other asks again,
//! and the common packet (no tag, no extension header) has its headers at fixed offsets.

/// What a header's number for the next one says, as far as the expression tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Ip4,
    Ip6,
    Arp,
    /// Anything else, or one of these in which no term is interested.
    Other,
}

impl Kind {
    /// Those that are asked for, in the order of the questions.
    pub(super) const ASKED: [Self; 3] = [Self::Ip4, Self::Ip6, Self::Arp];

    /// The EtherType.
    pub(super) fn ether_type(self) -> Option<u16> {
        match self {
            Self::Ip4 => Some(0x0800),
            Self::Ip6 => Some(0x86dd),
            Self::Arp => Some(0x0806),
            Self::Other => None,
        }
    }
}

/// How much of a packet's headers has been found. Finding more leads from a stage to later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    /// All is in slots, since the terms in between were about the packet inside.
    Kept,
    /// Nothing, not even whether a frame of 802.11 carries data.
    Bare,
    /// Nothing, but that there is a header with an EtherType or what stands for it.
    Unknown,
    /// The link layer's header has no VLAN tag.
    Untagged,
    /// It has one at least.
    Tagged,
    /// The network header, which is where it always is on this link.
    Fixed(Kind),
    /// The network header, where the slot `network` says; its number is in `kind`.
    Moved(Kind),
    /// The same of IPv4 and others, again in front of terms about this packet: all else is in slots, too.
    Held(Kind),
    /// IPv6 without extension headers, at the fixed place: the transport header, too.
    Plain,
    /// IPv6: the transport header, where the slot `transport` says; its number is in `protocol`.
    Chained,
    /// IPv6, a fragment other than the first: no transport header; the number of what is cut in pieces is in `protocol`.
    Later,
}

impl Stage {
    /// All, later ones behind.
    pub(super) const ALL: [Self; 18] = [
        Self::Kept,
        Self::Bare,
        Self::Unknown,
        Self::Untagged,
        Self::Tagged,
        Self::Fixed(Kind::Ip4),
        Self::Fixed(Kind::Ip6),
        Self::Fixed(Kind::Arp),
        Self::Fixed(Kind::Other),
        Self::Moved(Kind::Ip4),
        Self::Moved(Kind::Ip6),
        Self::Moved(Kind::Arp),
        Self::Moved(Kind::Other),
        Self::Held(Kind::Ip4),
        Self::Held(Kind::Other),
        Self::Plain,
        Self::Chained,
        Self::Later,
    ];

    /// Its index in [`Stage::ALL`].
    pub(super) fn index(self) -> usize {
        match self {
            Self::Kept => 0,
            Self::Bare => 1,
            Self::Unknown => 2,
            Self::Untagged => 3,
            Self::Tagged => 4,
            Self::Fixed(kind) => 5 + kind as usize,
            Self::Moved(kind) => 9 + kind as usize,
            Self::Held(Kind::Ip4) => 13,
            Self::Held(_) => 14,
            Self::Plain => 15,
            Self::Chained => 16,
            Self::Later => 17,
        }
    }

    /// What the network header is, once it was found.
    pub(super) fn kind(self) -> Option<Kind> {
        match self {
            Self::Fixed(kind) | Self::Moved(kind) | Self::Held(kind) => Some(kind),
            Self::Plain | Self::Chained | Self::Later => Some(Kind::Ip6),
            Self::Kept | Self::Bare | Self::Unknown | Self::Untagged | Self::Tagged => None,
        }
    }

    /// The step that comes before a term that needs the headers up to `layer`.
    pub(super) fn need(self, layer: Layer, has_tags: bool) -> Option<Find> {
        match (layer, self) {
            (Layer::Frame, _) => None,
            (_, Self::Kept) => Some(Find::Kept),
            (_, Self::Bare) => Some(Find::Payload),
            (Layer::Tags, Self::Unknown) if has_tags => Some(Find::Tags),
            (Layer::Tags, _) => None,
            (_, Self::Unknown | Self::Untagged | Self::Tagged) => Some(Find::Network),
            (Layer::Transport, Self::Fixed(Kind::Ip6) | Self::Moved(Kind::Ip6)) => Some(Find::Transport),
            _ => None,
        }
    }
}

/// Up to where a term needs the headers to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// Fixed places in the frame, or no header at all.
    Frame,
    /// Whether there are VLAN tags.
    Tags,
    /// What the network header is.
    Network,
    /// What the transport header is, behind IPv6 extension headers.
    Transport,
}

/// A step that finds out more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Find {
    Kept,
    Payload,
    Tags,
    Network,
    Transport,
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stages(u32);

impl Stages {
    /// Adds one.
    pub(super) fn insert(&mut self, stage: Stage) {
        self.0 |= 1 << stage.index();
    }

    /// Those that are in it, later ones behind.
    pub(super) fn iter(self) -> impl DoubleEndedIterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |stage| self.contains(*stage))
    }

    /// Whether it is in it.
    pub(super) fn contains(self, stage: Stage) -> bool {
        self.0 & 1 << stage.index() != 0
    }

    /// All of both.
    pub(super) fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
