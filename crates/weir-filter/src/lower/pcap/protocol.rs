//! Bare protocols, and protocol numbers in other headers.

use super::condition::Condition;
use super::kind::{
    AARP, APPLETALK, ARP, CLNP, DECNET, ESIS, IP, IP6, IPX_SAP, ISIS, ISO_SAP, NETBEUI_SAP, RARP,
    SPANNING_TREE_SAP,
};
use super::layers::From;
use super::layers::Link;
use super::port::{SCTP, TCP, UDP};
use super::{Lowered, Lowering};
use crate::ast::Protocol;
use crate::graph::Width;

/// IS-IS PDU types (ISO/IEC 10589).
const HELLO_L1: u32 = 15;
const HELLO_L2: u32 = 16;
const HELLO_POINT_TO_POINT: u32 = 17;
const LSP_L1: u32 = 18;
const LSP_L2: u32 = 20;
const CSNP_L1: u32 = 24;
const CSNP_L2: u32 = 25;
const PSNP_L1: u32 = 26;
const PSNP_L2: u32 = 27;

impl Lowering<'_> {
    /// Lowers a bare protocol.
    pub(super) fn protocol(&mut self, protocol: Protocol) -> Lowered {
        use Protocol as P;
        match protocol {
            P::Ip => self.carries(IP),
            P::Ip6 => self.carries(IP6),
            P::Arp => self.carries(ARP),
            P::Rarp => self.carries(RARP),
            P::AppleTalk => self.carries(APPLETALK),
            P::Aarp => self.carries(AARP),
            P::DecNet => self.carries(DECNET),
            P::Lat => self.carries(0x6004),
            P::Sca => self.carries(0x6007),
            P::Mopdl => self.carries(0x6001),
            P::Moprc => self.carries(0x6002),
            P::Iso => self.carries(ISO_SAP),
            P::Stp => self.carries(SPANNING_TREE_SAP),
            P::Ipx => self.carries(IPX_SAP),
            P::NetBeui => self.carries(NETBEUI_SAP),
            P::Tcp => self.number_in(None, TCP),
            P::Udp => self.number_in(None, UDP),
            P::Sctp => self.number_in(None, SCTP),
            P::Pim => self.number_in(None, 103),
            P::Ah => self.number_in(None, 51),
            P::Esp => self.number_in(None, 50),
            P::Icmp => self.number_in(Some(P::Ip), 1),
            P::Igmp => self.number_in(Some(P::Ip), 2),
            P::Igrp => self.number_in(Some(P::Ip), 9),
            P::Vrrp | P::Carp => self.number_in(Some(P::Ip), 112),
            P::Icmp6 => self.number_in(Some(P::Ip6), 58),
            P::Clnp => self.number_in(Some(P::Iso), CLNP),
            P::Esis => self.number_in(Some(P::Iso), ESIS),
            P::Isis => self.number_in(Some(P::Iso), ISIS),
            P::IsisL1 => self.isis(&[PSNP_L1, CSNP_L1, LSP_L1, HELLO_L1, HELLO_POINT_TO_POINT]),
            P::IsisL2 => self.isis(&[PSNP_L2, CSNP_L2, LSP_L2, HELLO_L2, HELLO_POINT_TO_POINT]),
            P::IsisIih => self.isis(&[HELLO_POINT_TO_POINT, HELLO_L1, HELLO_L2]),
            P::IsisLsp => self.isis(&[LSP_L1, LSP_L2]),
            P::IsisSnp => self.isis(&[PSNP_L2, PSNP_L1, CSNP_L1, CSNP_L2]),
            P::IsisCsnp => self.isis(&[CSNP_L1, CSNP_L2]),
            P::IsisPsnp => self.isis(&[PSNP_L1, PSNP_L2]),
            P::Link | P::Radio => Err("this protocol cannot be tested by itself".to_owned()),
        }
    }

    /// Tests for IS-IS packets of any of these types.
    fn isis(&mut self, types: &[u32]) -> Lowered {
        let types = types.iter().map(|&number| self.number_in(Some(Protocol::Isis), number));
        types.collect::<Result<_, _>>().map(Condition::Any)
    }

    /// Lowers `proto`: a number in the header of `protocol`, or of IPv4 or IPv6 if it is `None`.
    pub(super) fn number_in(&mut self, protocol: Option<Protocol>, number: u32) -> Lowered {
        match protocol {
            None => {
                let ipv4 = self.number_in(Some(Protocol::Ip), number)?;
                Ok(ipv4.or(self.number_in(Some(Protocol::Ip6), number)?))
            }
            Some(Protocol::Link) => self.carries(number),
            Some(Protocol::Ip) => {
                Ok(self.carries(IP)?.and(self.field(From::Network, 9, Width::Byte, number)))
            }
            Some(Protocol::Ip6) => {
                // Directly, or after a fragment header that comes first.
                let carries = self.carries(IP6)?;
                let direct = self.field(From::Network, 6, Width::Byte, number);
                let fragment = self.field(From::Network, 6, Width::Byte, 44);
                let behind = self.field(From::Network, 40, Width::Byte, number);
                Ok(carries.and(direct.or(fragment.and(behind))))
            }
            Some(Protocol::Iso) => match self.layers.link {
                Link::FrameRelay => Ok(self.frame_relay(number)),
                // A byte of padding comes first.
                Link::CiscoHdlc => {
                    let carries = self.carries(ISO_SAP << 8 | ISO_SAP)?;
                    Ok(carries.and(self.field(From::NetworkWithoutSnap, 1, Width::Byte, number)))
                }
                _ => {
                    let carries = self.carries(ISO_SAP)?;
                    Ok(carries.and(self.field(From::NetworkWithoutSnap, 0, Width::Byte, number)))
                }
            },
            Some(Protocol::Isis) => {
                let isis = self.number_in(Some(Protocol::Iso), ISIS)?;
                Ok(isis.and(self.field(From::NetworkWithoutSnap, 4, Width::Byte, number)))
            }
            Some(_) => Err("`proto` cannot be used with this protocol".to_owned()),
        }
    }
}
