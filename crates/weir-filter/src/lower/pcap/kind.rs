//! Tests of the protocol in the link layer's payload.
//!
//! Protocols are identified by EtherTypes or, up to 1500, by LLC service access points (IEEE 802.2).

use super::condition::Condition;
use super::layers::Link;
use super::layers::{From, NOWHERE};
use super::{Lowered, Lowering};
use crate::Beside;
use crate::graph::{Relation, Width};

/// Largest length in an IEEE 802.3 header; larger numbers are EtherTypes.
const LONGEST: u32 = 1500;

pub(super) const IP: u32 = 0x0800;
pub(super) const ARP: u32 = 0x0806;
pub(super) const RARP: u32 = 0x8035;
pub(super) const IP6: u32 = 0x86dd;
pub(super) const DECNET: u32 = 0x6003;
pub(super) const APPLETALK: u32 = 0x809b;
pub(super) const AARP: u32 = 0x80f3;
pub(super) const MPLS: u32 = 0x8847;
pub(super) const PPPOE_DISCOVERY: u32 = 0x8863;
pub(super) const PPPOE_SESSION: u32 = 0x8864;
pub(super) const TRANSPARENT_BRIDGING: u32 = 0x6558;
const IPX_TYPE: u32 = 0x8137;
const XNS: u32 = 0x0600;

pub(super) const ISO_SAP: u32 = 0xfe;
pub(super) const SPANNING_TREE_SAP: u32 = 0x42;
pub(super) const IPX_SAP: u32 = 0xe0;
pub(super) const NETBEUI_SAP: u32 = 0xf0;
const IP_SAP: u32 = 0x06;

/// Network layer protocol identifiers of ISO protocols (ISO/IEC TR 9577).
pub(super) const CLNP: u32 = 0x81;
pub(super) const ESIS: u32 = 0x82;
pub(super) const ISIS: u32 = 0x83;

impl Lowering<'_> {
    /// Tests whether the payload is of `protocol`.
    pub(super) fn carries(&mut self, protocol: u32) -> Lowered {
        if self.layers.labels > 0 {
            return self.carries_in_mpls(protocol);
        }
        Ok(match self.layers.link {
            Link::Ethernet | Link::NetAnalyzer => {
                let carries = self.carries_in_ethernet(protocol);
                if self.layers.tunnel {
                    return Ok(carries);
                }
                self.in_frame(carries)
            }
            Link::CiscoHdlc if protocol == ISO_SAP => self.kind(ISO_SAP << 8 | ISO_SAP),
            link if link.is_wlan() => self.is_wlan_data().and(self.carries_in_llc(protocol)),
            Link::Fddi | Link::TokenRing | Link::Rfc1483 | Link::AtmClip | Link::IpOverFibreChannel => {
                self.carries_in_llc(protocol)
            }
            Link::SunAtm => self.atm_is_llc().and(self.carries_in_llc(protocol)),
            Link::Sll => self.carries_in_sll(protocol),
            Link::Slip | Link::Raw => match protocol {
                IP => self.masked((From::Link, 0, Width::Byte), 0xf0, 0x40),
                IP6 => self.masked((From::Link, 0, Width::Byte), 0xf0, 0x60),
                _ => Condition::Always(false),
            },
            Link::Ipv4 => Condition::Always(protocol == IP),
            Link::Ipv6 => Condition::Always(protocol == IP6),
            // IP may be compressed by Van Jacobson's method.
            Link::PppBsdOs if protocol == IP => self.kind(0x21).or(self.kind(0x2d)).or(self.kind(0x2f)),
            Link::Ppp | Link::PppWithDirection | Link::PppSerial | Link::PppEther | Link::PppBsdOs => {
                self.kind(in_ppp(protocol))
            }
            Link::Null | Link::Loop | Link::Enc => match protocol {
                IP => self.family(2),
                // The number depends on the operating system, and a file may come from any.
                IP6 if self.options.metadata != Beside::All => {
                    self.family(30).or(self.family(24)).or(self.family(28))
                }
                IP6 => self.family(10),
                _ => Condition::Always(false),
            },
            Link::Pflog => match protocol {
                IP => self.field(From::Link, 1, Width::Byte, 2),
                IP6 => self.field(From::Link, 1, Width::Byte, 10),
                _ => Condition::Always(false),
            },
            Link::ArcNet => self.carries_in_arcnet(protocol),
            Link::LocalTalk => Condition::Always(protocol == APPLETALK),
            Link::FrameRelay => match protocol {
                IP => self.frame_relay(0xcc),
                IP6 => self.frame_relay(0x8e),
                ISO_SAP => self.frame_relay(CLNP).or(self.frame_relay(ESIS)).or(self.frame_relay(ISIS)),
                _ => Condition::Always(false),
            },
            Link::Juniper => self.masked((From::Link, 0, Width::Word), 0xffff_ff00, 0x4d47_4300),
            Link::BacnetMsTp => self.masked((From::Link, 0, Width::Word), 0xffff_0000, 0x55ff_0000),
            Link::Ipnet => match protocol {
                IP => self.field(From::Kind, 0, Width::Byte, 2),
                IP6 => self.field(From::Kind, 0, Width::Byte, 26),
                _ => Condition::Always(false),
            },
            _ if self.layers.kind.constant != NOWHERE => self.kind(protocol),
            _ => return Err(self.cannot("the protocol of the payload")),
        })
    }

    /// Tests the half word that identifies the protocol.
    fn kind(&mut self, number: u32) -> Condition {
        self.field(From::Kind, 0, Width::Half, number)
    }

    /// Tests whether that half word is a length, so that LLC follows.
    pub(super) fn is_length(&mut self) -> Condition {
        let kind = self.load(From::Kind, 0, Width::Half);
        self.compare(Relation::Greater, kind, LONGEST).negated()
    }

    /// Tests both LLC access points.
    pub(super) fn access_points(&mut self, number: u32) -> Condition {
        self.field(From::Payload, 0, Width::Half, number)
    }

    /// Tests an LLC/SNAP header: organisation and protocol (RFC 1042).
    fn snap(&mut self, organisation: u32, protocol: u32) -> Condition {
        let [_, o1, o2, o3] = organisation.to_be_bytes();
        let [_, _, p1, p2] = protocol.to_be_bytes();
        self.bytes(From::Payload, 0, &[0xaa, 0xaa, 0x03, o1, o2, o3, p1, p2])
    }

    /// Tests for AppleTalk or AARP over LLC.
    fn apple_snap(&mut self, protocol: u32) -> Condition {
        self.snap(if protocol == APPLETALK { 0x08_0007 } else { 0 }, protocol)
    }

    fn carries_in_ethernet(&mut self, protocol: u32) -> Condition {
        match protocol {
            ISO_SAP | IP_SAP | NETBEUI_SAP => {
                self.is_length().and(self.access_points(protocol << 8 | protocol))
            }
            IPX_SAP => Condition::Any(vec![
                self.kind(IPX_TYPE),
                self.is_length().and(Condition::Any(vec![
                    self.snap(0, IPX_TYPE),
                    self.field(From::Payload, 0, Width::Byte, IPX_SAP),
                    self.access_points(0xffff),
                ])),
            ]),
            APPLETALK | AARP => self.kind(protocol).or(self.is_length().and(self.apple_snap(protocol))),
            0..=LONGEST => self.is_length().and(self.field(From::Kind, 2, Width::Byte, protocol)),
            _ => self.kind(protocol),
        }
    }

    fn carries_in_sll(&mut self, protocol: u32) -> Condition {
        // Linux's protocol numbers for frames with LLC, and for Novell's without (linux/if_ether.h).
        const LLC: u32 = 4;
        const NOVELL: u32 = 1;
        match protocol {
            ISO_SAP | IP_SAP | NETBEUI_SAP => {
                self.kind(LLC).and(self.access_points(protocol << 8 | protocol))
            }
            IPX_SAP => Condition::Any(vec![
                self.kind(IPX_TYPE),
                self.kind(NOVELL),
                self.kind(LLC).and(Condition::Any(vec![
                    self.field(From::Payload, 0, Width::Byte, IPX_SAP),
                    self.snap(0, IPX_TYPE),
                ])),
            ]),
            APPLETALK | AARP => self.kind(protocol).or(self.kind(LLC).and(self.apple_snap(protocol))),
            0..=LONGEST => {
                let payload = self.layers.payload.constant;
                self.kind(LLC).and(self.field(From::Link, payload, Width::Byte, protocol))
            }
            _ => self.kind(protocol),
        }
    }

    fn carries_in_llc(&mut self, protocol: u32) -> Condition {
        match protocol {
            ISO_SAP | IP_SAP | NETBEUI_SAP => self.access_points(protocol << 8 | protocol),
            APPLETALK => self.apple_snap(APPLETALK),
            0..=LONGEST => self.field(From::Payload, 0, Width::Byte, protocol),
            // Assumes a SNAP header.
            _ => self.field(From::Payload, 6, Width::Half, protocol),
        }
    }

    /// Tests the packet after the last label, which can be identified only as IPv4 or IPv6.
    fn carries_in_mpls(&mut self, protocol: u32) -> Lowered {
        let version = match protocol {
            IP => 0x40,
            IP6 => 0x60,
            _ => return Err("after `mpls`, only `ip` and `ip6` can be tested".to_owned()),
        };
        let last = self.masked((From::Network, 2u32.wrapping_neg(), Width::Byte), 1, 1);
        Ok(last.and(self.masked((From::Network, 0, Width::Byte), 0xf0, version)))
    }

    fn carries_in_arcnet(&mut self, protocol: u32) -> Condition {
        // The numbers of RFC 1201 and, for IP and ARP, also of RFC 1051.
        let numbers: &[u32] = match protocol {
            IP => &[212, 240],
            ARP => &[213, 241],
            RARP => &[214],
            IP6 => &[196],
            APPLETALK => &[221],
            _ => &[],
        };
        Condition::Any(numbers.iter().map(|&number| self.field(From::Kind, 0, Width::Byte, number)).collect())
    }

    /// Tests the control field for unnumbered information, and a protocol (RFC 2427).
    pub(super) fn frame_relay(&mut self, protocol: u32) -> Condition {
        self.field(From::Link, 2, Width::Half, 0x0300 | protocol)
    }

    /// Tests the address family, which is in the capturing host's byte order except in `LINKTYPE_LOOP`.
    fn family(&mut self, number: u32) -> Condition {
        let number = match self.layers.link {
            Link::Loop => number,
            _ if self.options.swapped => number.swap_bytes().to_be(),
            _ => number.to_be(),
        };
        self.field(From::Link, 0, Width::Word, number)
    }

    /// Restricts a condition on an Ethernet header to packets that have one: not other payloads of a tunnel, nor control
    /// frames of ATM's LAN emulation.
    pub(super) fn in_frame(&mut self, condition: Condition) -> Condition {
        if self.layers.tunnel {
            let (header, payload) = (self.layers.link_header, self.layers.payload);
            let ends = (self.base(header), self.base(payload));
            if let (Some(header), Some(payload)) = ends {
                return Condition::Compare(Relation::Equal, header, payload).negated().and(condition);
            }
        }
        if self.layers.previous_link == Link::SunAtm {
            return self.field(From::PreviousLink, 4, Width::Half, 0xff00).negated().and(condition);
        }
        condition
    }
}

/// Returns PPP's number for a protocol (RFC 1661 and others).
fn in_ppp(protocol: u32) -> u32 {
    match protocol {
        IP => 0x21,
        IP6 => 0x57,
        DECNET => 0x27,
        APPLETALK => 0x29,
        XNS => 0x25,
        ISO_SAP => 0x23,
        SPANNING_TREE_SAP => 0x31,
        IPX_SAP => 0x2b,
        _ => protocol,
    }
}
