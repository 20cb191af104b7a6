//! Link types as this dialect knows them: where the header identifies its payload, and where that begins.

use weir_packet::ethertype;

use super::stage::Kind;
use crate::graph::Width;

/// EtherTypes of VLAN tags: IEEE 802.1Q, 802.1ad, and the one used before 802.1ad.
pub(super) const TAGS: [u32; 3] =
    [ethertype::VLAN as u32, ethertype::SERVICE_VLAN as u32, ethertype::OLD_SERVICE_VLAN as u32];

/// Maximum number of VLAN tags to look through.
pub(super) const MOST_TAGS: u32 = 4;

/// The meaning of the number in a link header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// EtherTypes; up to 1500, the length of an LLC packet.
    EtherType,
    /// EtherTypes; ISO protocols have Cisco's 0xfefe, followed by a byte of padding (`LINKTYPE_C_HDLC`).
    Hdlc,
    /// EtherTypes; 1 is Novell's raw 802.3, 4 is LLC (`LINKTYPE_LINUX_SLL`).
    Cooked,
    /// PPP protocol numbers (RFC 1661), or EtherTypes on lines that use Cisco HDLC.
    Ppp,
    /// BSD address families.
    Family {
        /// Whether loads read them in the wrong byte order.
        swapped: bool,
    },
    /// No number; the packet's first four bits are the IP version.
    Version,
    /// No number; the kind is always the same.
    Only(Kind),
}

/// A link type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Meaning of the number.
    pub(super) numbers: Numbers,
    /// Offset of the number.
    pub(super) kind: u32,
    /// Offset of the payload.
    pub(super) header: u32,
    /// Whether a PPP header may lack the bytes 0xff 0x03 and begin with the number.
    pub(super) unframed: bool,
    /// For 802.11, the header in front of the frame. The number is then that of a SNAP header in the frame's payload,
    /// if there is one.
    pub(super) wlan: Option<Radio>,
}

/// The header in front of an 802.11 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Radio {
    /// None.
    None,
    /// <https://www.radiotap.org>
    Radiotap,
    /// Prism, 144 bytes, or AVS.
    Prism,
    /// AVS.
    Avs,
    /// PPI (per-packet information), which contains the link type of what follows.
    Ppi,
}

/// Ethernet, which tunnels also carry.
pub(super) const ETHERNET: Link = plain(Numbers::EtherType, 12, 14);

const fn plain(numbers: Numbers, kind: u32, header: u32) -> Link {
    Link { numbers, kind, header, unframed: false, wlan: None }
}

const fn wlan(radio: Radio) -> Link {
    Link { wlan: Some(radio), ..plain(Numbers::EtherType, 6, 8) }
}

impl Link {
    /// Returns the description of the `LINKTYPE_` number `link_type`; see <https://www.tcpdump.org/linktypes.html>.
    pub(super) fn of(link_type: u16, swapped: bool) -> Option<Self> {
        Some(match link_type {
            1 => ETHERNET,
            113 => plain(Numbers::Cooked, 14, 16),
            276 => plain(Numbers::Cooked, 0, 20),
            // Some systems use other numbers for DLT_RAW.
            101 | 12 | 14 => plain(Numbers::Version, 0, 0),
            228 => plain(Numbers::Only(Kind::Ip4), 0, 0),
            229 => plain(Numbers::Only(Kind::Ip6), 0, 0),
            0 => plain(Numbers::Family { swapped: cfg!(target_endian = "little") != swapped }, 0, 4),
            108 => plain(Numbers::Family { swapped: false }, 0, 4),
            9 => Self { unframed: true, ..plain(Numbers::Ppp, 2, 4) },
            50 => plain(Numbers::Ppp, 2, 4),
            51 => plain(Numbers::Ppp, 6, 8),
            104 => plain(Numbers::Hdlc, 2, 4),
            105 => wlan(Radio::None),
            119 => wlan(Radio::Prism),
            127 => wlan(Radio::Radiotap),
            163 => wlan(Radio::Avs),
            192 => wlan(Radio::Ppi),
            _ => return None,
        })
    }

    /// Returns whether frames may have VLAN tags that are understood.
    pub(super) fn has_tags(self) -> bool {
        match self.numbers {
            Numbers::EtherType => self.has_addresses(),
            Numbers::Cooked => true,
            _ => false,
        }
    }

    /// Returns whether frames have Ethernet addresses.
    pub(super) fn has_addresses(self) -> bool {
        self == ETHERNET || self.wlan.is_some()
    }

    /// Returns the width of the number.
    pub(super) fn width(self) -> Width {
        match self.numbers {
            Numbers::Family { .. } => Width::Word,
            Numbers::Version => Width::Byte,
            _ => Width::Half,
        }
    }

    /// Returns the offset of the number after `tags` tags.
    pub(super) fn kind_behind(self, tags: u32) -> u32 {
        if tags == 0 { self.kind } else { self.header - 2 + 4 * tags }
    }

    /// Returns the numbers of `kind` in this header, as a load reads them.
    pub(super) fn numbers_of(self, kind: Kind) -> Vec<u32> {
        let ether_type = kind.ether_type().map(u32::from);
        match self.numbers {
            Numbers::EtherType | Numbers::Hdlc | Numbers::Cooked => ether_type.into_iter().collect(),
            Numbers::Ppp => match kind {
                Kind::Ip4 => vec![0x21, 0x0800],
                Kind::Ip6 => vec![0x57, 0x86dd],
                // On lines that use Cisco HDLC.
                Kind::Arp => vec![0x0806],
                Kind::Other => Vec::new(),
            },
            Numbers::Family { swapped } => {
                let families: &[u32] = match kind {
                    Kind::Ip4 => &[2],
                    // NetBSD and OpenBSD, FreeBSD, macOS, and Linux, which writes its own.
                    Kind::Ip6 => &[24, 28, 30, 10],
                    Kind::Arp | Kind::Other => &[],
                };
                families.iter().map(|family| if swapped { family.swap_bytes() } else { *family }).collect()
            }
            Numbers::Version | Numbers::Only(_) => Vec::new(),
        }
    }

    /// Returns the number of `ether_type` in this header, if it has one.
    pub(super) fn number_of(self, ether_type: u32) -> Option<u32> {
        match self.numbers {
            Numbers::Hdlc if ether_type == 0xfe => Some(0xfefe),
            Numbers::EtherType | Numbers::Hdlc | Numbers::Cooked => Some(ether_type),
            // RFC 1661, <https://www.iana.org/assignments/ppp-numbers>.
            Numbers::Ppp if matches!(ether_type, 0x8863 | 0x8864) => None,
            Numbers::Ppp => Some(match ether_type {
                0x0800 => 0x21,
                0x86dd => 0x57,
                0x6003 => 0x27,
                0x809b => 0x29,
                0x0600 => 0x25,
                0xfe => 0x23,
                0x42 => 0x31,
                0xe0 => 0x2b,
                0x8847 => 0x281,
                0x8848 => 0x283,
                other => other,
            }),
            Numbers::Family { .. } | Numbers::Version | Numbers::Only(_) => None,
        }
    }
}

/// Returns the EtherType of a PPP number, for the kinds that frames are distinguished by.
pub(super) fn of_ppp(number: u32) -> Option<u32> {
    match number {
        0x21 => Some(0x0800),
        0x57 => Some(0x86dd),
        _ => None,
    }
}
