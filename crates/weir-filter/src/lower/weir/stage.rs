//! Stages: what is known of a packet's headers at a point of the expression, and which step finds out more.
//!
//! Each term is lowered once per stage in which it can be reached. No term repeats a search that another has made, and
//! in the common case (no tag, no extension header) headers are at fixed offsets.

/// The kind of a network header, by its number in the header before, as far as the expression distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Ip4,
    Ip6,
    Arp,
    /// Anything else, or a kind that no term tests for.
    Other,
}

impl Kind {
    /// Kinds that can be tested for, in the order of the tests.
    pub(super) const ASKED: [Self; 3] = [Self::Ip4, Self::Ip6, Self::Arp];

    /// Returns the EtherType.
    pub(super) fn ether_type(self) -> Option<u16> {
        match self {
            Self::Ip4 => Some(0x0800),
            Self::Ip6 => Some(0x86dd),
            Self::Arp => Some(0x0806),
            Self::Other => None,
        }
    }
}

/// How many of a packet's headers have been found. Finding more leads to later stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stage {
    /// Everything is in slots: the terms in between were about the inner packet.
    Kept,
    /// Nothing is known, not even whether an 802.11 frame carries data.
    Bare,
    /// Only that there is a header with an EtherType or its equivalent.
    Unknown,
    /// The link header has no VLAN tag.
    Untagged,
    /// The link header has at least one VLAN tag.
    Tagged,
    /// The network header is known, at the usual offset for this link type.
    Fixed(Kind),
    /// The network header is known, at the offset in the slot `network`; its number is in `kind`.
    Moved(Kind),
    /// Like `Moved`, for IPv4 and others, back at terms about this packet: everything else is in slots too.
    Held(Kind),
    /// IPv6 without extension headers, at the fixed offset, so the transport header is known too.
    Plain,
    /// IPv6: the transport header is known, at the offset in the slot `transport`; its number is in `protocol`.
    Chained,
    /// IPv6, a fragment other than the first: there is no transport header; the number of the fragmented protocol is in
    /// `protocol`.
    Later,
}

impl Stage {
    /// All stages, in order.
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

    /// Returns the index in [`Stage::ALL`].
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

    /// Returns the kind of network header, if known.
    pub(super) fn kind(self) -> Option<Kind> {
        match self {
            Self::Fixed(kind) | Self::Moved(kind) | Self::Held(kind) => Some(kind),
            Self::Plain | Self::Chained | Self::Later => Some(Kind::Ip6),
            Self::Kept | Self::Bare | Self::Unknown | Self::Untagged | Self::Tagged => None,
        }
    }

    /// Returns the step to take before a term that needs the headers up to `layer`.
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

/// How many headers a term needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// Fixed offsets in the frame, or no header at all.
    Frame,
    /// Whether there are VLAN tags.
    Tags,
    /// The network header.
    Network,
    /// The transport header, after IPv6 extension headers.
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
    /// Adds a stage.
    pub(super) fn insert(&mut self, stage: Stage) {
        self.0 |= 1 << stage.index();
    }

    /// Iterates over the stages in order.
    pub(super) fn iter(self) -> impl DoubleEndedIterator<Item = Stage> {
        Stage::ALL.into_iter().filter(move |stage| self.contains(*stage))
    }

    /// Returns whether it contains a stage.
    pub(super) fn contains(self, stage: Stage) -> bool {
        self.0 & 1 << stage.index() != 0
    }

    /// Adds all stages of another set.
    pub(super) fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
