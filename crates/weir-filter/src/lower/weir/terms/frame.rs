//! Protocols other than IP, by EtherType, LLC and SNAP (IEEE 802.2).

use super::Site;
use crate::ast::{ByteOperator, Direction, LlcKind, Protocol};
use crate::graph::{Operation, Relation, Width};
use crate::lower::weir::formula::Formula;
use crate::lower::weir::link::Numbers;
use crate::lower::weir::place::{NO_LINK, Place};
use crate::lower::weir::stage::Kind;

/// Largest length in an Ethernet header.
const LONGEST: u32 = 1500;

/// LLC service access points.
const SAP_IP: u32 = 0x06;
const SAP_STP: u32 = 0x42;
const SAP_IPX: u32 = 0xe0;
const SAP_NETBEUI: u32 = 0xf0;
const SAP_ISO: u32 = 0xfe;

const IPX: u32 = 0x8137;
const APPLETALK: u32 = 0x809b;
const AARP: u32 = 0x80f3;
const DECNET: u32 = 0x6003;

/// IS-IS PDU types (ISO/IEC 10589).
const LAN_HELLO: [u32; 2] = [15, 16];
const HELLO: u32 = 17;
const LINK_STATE: [u32; 2] = [18, 20];
const COMPLETE: [u32; 2] = [24, 25];
const PARTIAL: [u32; 2] = [26, 27];
/// Bits of the byte that hold the type.
const PDU_TYPE: u32 = 0x1f;

impl Site<'_> {
    /// Tests for a protocol that is not carried over IP, by its keyword.
    pub(super) fn frame_word(&mut self, protocol: Protocol) -> Formula {
        let of_level =
            |index: usize| [LAN_HELLO[index], HELLO, LINK_STATE[index], COMPLETE[index], PARTIAL[index]];
        match protocol {
            Protocol::AppleTalk => self.frame_protocol(APPLETALK),
            Protocol::Aarp => self.frame_protocol(AARP),
            Protocol::DecNet => self.frame_protocol(DECNET),
            Protocol::Lat => self.frame_protocol(0x6004),
            Protocol::Sca => self.frame_protocol(0x6007),
            Protocol::Mopdl => self.frame_protocol(0x6001),
            Protocol::Moprc => self.frame_protocol(0x6002),
            Protocol::Iso => self.frame_protocol(SAP_ISO),
            Protocol::Stp => self.frame_protocol(SAP_STP),
            Protocol::Ipx => self.frame_protocol(SAP_IPX),
            Protocol::NetBeui => self.frame_protocol(SAP_NETBEUI),
            Protocol::Clnp => self.iso(0x81),
            Protocol::Esis => self.iso(0x82),
            Protocol::Isis => self.iso(0x83),
            Protocol::IsisL1 => self.isis(&of_level(0)),
            Protocol::IsisL2 => self.isis(&of_level(1)),
            Protocol::IsisIih => self.isis(&[LAN_HELLO[0], LAN_HELLO[1], HELLO]),
            Protocol::IsisLsp => self.isis(&LINK_STATE),
            Protocol::IsisSnp => self.isis(&[COMPLETE, PARTIAL].concat()),
            Protocol::IsisCsnp => self.isis(&COMPLETE),
            Protocol::IsisPsnp => self.isis(&PARTIAL),
            other => unreachable!("{other:?} was refused or is over IP"),
        }
    }

    /// Tests whether the frame carries the protocol of this EtherType or, up to 1500, of this service access point.
    pub(super) fn frame_protocol(&mut self, number: u32) -> Formula {
        if self.kind() != Kind::Other {
            return self.is_kind(number);
        }
        let llc = self.llc_header();
        let byte = llc.load(self.graph, 0, Width::Byte);
        let half = llc.load(self.graph, 0, Width::Half);
        let has_llc =
            matches!(self.level.link.numbers, Numbers::EtherType | Numbers::Cooked) && self.has_llc();
        match number {
            _ if !has_llc => self.is_kind(number),
            SAP_ISO | SAP_IP | SAP_NETBEUI => {
                let both = Formula::equals(self.graph, half, number << 8 | number);
                Formula::all(vec![self.is_llc(), both])
            }
            SAP_IPX => {
                let novell = self.is_novell(llc);
                let sap = Formula::equals(self.graph, byte, SAP_IPX);
                let snap = self.snap(llc, 0, IPX);
                let llc = Formula::all(vec![self.is_llc(), Formula::any(vec![sap, snap])]);
                Formula::any(vec![self.is_kind(IPX), novell, llc])
            }
            APPLETALK | AARP => {
                let organisation = if number == APPLETALK { 0x08_0007 } else { 0 };
                let snap = self.snap(llc, organisation, number);
                Formula::any(vec![self.is_kind(number), Formula::all(vec![self.is_llc(), snap])])
            }
            0..=LONGEST => {
                let sap = Formula::equals(self.graph, byte, number);
                Formula::all(vec![self.is_llc(), sap])
            }
            _ => self.is_kind(number),
        }
    }

    /// Returns whether frames of this link type may have an LLC header.
    fn has_llc(&self) -> bool {
        self.level.link.has_tags()
    }

    /// Returns the start of the LLC header, if there is one.
    fn llc_header(&mut self) -> Place {
        match self.level.link.wlan {
            Some(_) => Place::noted(self.graph, self.level.slots.llc),
            None => self.network(),
        }
    }

    /// Tests whether an LLC header follows.
    fn is_llc(&mut self) -> Formula {
        if self.level.link.wlan.is_some() {
            let place = self.llc_header().value(self.graph);
            return Formula::equals(self.graph, place, NO_LINK).not();
        }
        let kind = self.level.kind(self.graph, self.stage);
        match self.level.link.numbers {
            Numbers::Cooked => Formula::equals(self.graph, kind, 4),
            _ => {
                let longest = self.graph.constant(LONGEST);
                Formula::compare(Relation::Greater, kind, longest).not()
            }
        }
    }

    /// Tests for Novell's raw 802.3: IPX without LLC.
    fn is_novell(&mut self, llc: Place) -> Formula {
        match self.level.link.numbers {
            Numbers::Cooked => {
                let kind = self.level.kind(self.graph, self.stage);
                Formula::equals(self.graph, kind, 1)
            }
            _ => {
                let checksum = llc.load(self.graph, 0, Width::Half);
                Formula::all(vec![self.is_llc(), Formula::equals(self.graph, checksum, 0xffff)])
            }
        }
    }

    /// Tests for a SNAP header of this organisation and protocol.
    fn snap(&mut self, llc: Place, organisation: u32, protocol: u32) -> Formula {
        let first = llc.load(self.graph, 0, Width::Word);
        let second = llc.load(self.graph, 4, Width::Word);
        Formula::all(vec![
            Formula::equals(self.graph, first, 0xaaaa_0300 | organisation >> 16),
            Formula::equals(self.graph, second, (organisation & 0xffff) << 16 | protocol),
        ])
    }

    /// Tests for an LLC frame of this kind.
    pub(super) fn llc(&mut self, kind: LlcKind) -> Formula {
        let wlan = self.level.link.wlan.is_some();
        if self.kind() != Kind::Other && !wlan {
            return Formula::Never;
        }
        let header = self.llc_header();
        let mut all = vec![self.is_llc()];
        if self.level.link.numbers != Numbers::Cooked && !wlan {
            let half = header.load(self.graph, 0, Width::Half);
            all.push(Formula::equals(self.graph, half, 0xffff).not());
        }
        let control = header.load(self.graph, 2, Width::Byte);
        let mut masked = |mask, value| Formula::masked(self.graph, control, mask, value);
        match kind {
            LlcKind::Any => {}
            LlcKind::Information => all.push(masked(1, 0)),
            LlcKind::Supervisory => all.push(masked(3, 1)),
            LlcKind::Unnumbered => all.push(masked(3, 3)),
            LlcKind::SupervisoryKind(function) => {
                all.extend([masked(3, 1), masked(0x0c, u32::from(function) & 0x0c)]);
            }
            LlcKind::UnnumberedKind(function) => {
                all.extend([masked(3, 3), masked(0xef, u32::from(function) & 0xef)]);
            }
        }
        Formula::all(all)
    }

    /// Returns the place of the first byte of an ISO network protocol, after LLC if there is any.
    fn iso_header(&mut self) -> Place {
        match self.level.link.numbers {
            _ if self.has_llc() => self.llc_header().plus(3),
            Numbers::Hdlc => self.network().plus(1),
            _ => self.network(),
        }
    }

    /// Tests for an ISO protocol, by its number in ISO/IEC TR 9577.
    pub(super) fn iso(&mut self, number: u32) -> Formula {
        let iso = self.frame_protocol(SAP_ISO);
        if iso.known().is_some() {
            return iso;
        }
        let first = self.iso_header().load(self.graph, 0, Width::Byte);
        Formula::all(vec![iso, Formula::equals(self.graph, first, number)])
    }

    /// Tests for IS-IS packets of any of these PDU types.
    pub(super) fn isis(&mut self, types: &[u32]) -> Formula {
        let isis = self.iso(0x83);
        if isis.known().is_some() {
            return isis;
        }
        let kind = self.iso_header().load(self.graph, 4, Width::Byte);
        let kind = self.graph.with(Operation::And, kind, PDU_TYPE);
        Formula::all(vec![isis, Formula::one_of(self.graph, kind, types)])
    }

    /// Tests for a DECnet node, in the long or short header of a routed packet, with or without a byte of padding
    /// before it.
    pub(super) fn decnet_host(&mut self, direction: Direction, address: u16) -> Formula {
        let decnet = self.frame_protocol(DECNET);
        if decnet.known().is_some() {
            return decnet;
        }
        // First come a length of two bytes, perhaps padding, and a byte of flags. Numbers are little-endian.
        let (header, address) = (self.network().plus(2), u32::from(address.swap_bytes()));
        let padded = header.load(self.graph, 0, Width::Half);
        let flags = header.load(self.graph, 0, Width::Byte);
        let mut any = Vec::new();
        for (format, [source, destination]) in [(0x06, [15, 7]), (0x02, [3, 1])] {
            for (padding, value, mask, wanted) in
                [(1, padded, 0xff07, 0x8100 | format), (0, flags, 0x07, format)]
            {
                let is_format = Formula::masked(self.graph, value, mask, wanted);
                let mut at = |offset: u32| {
                    let node = header.load(self.graph, offset + padding, Width::Half);
                    Formula::equals(self.graph, node, address)
                };
                let node = match direction {
                    Direction::Source => at(source),
                    Direction::Destination => at(destination),
                    Direction::And => Formula::all(vec![at(source), at(destination)]),
                    _ => Formula::any(vec![at(source), at(destination)]),
                };
                any.push(Formula::all(vec![is_format, node]));
            }
        }
        Formula::all(vec![decnet, Formula::any(any)])
    }

    /// Tests `byte INDEX OP VALUE`.
    pub(super) fn byte(&mut self, index: u32, operator: ByteOperator, value: u32) -> Formula {
        let (guard, frame) = self.frame();
        let byte = frame.load(self.graph, index, Width::Byte);
        let number = self.graph.constant(value);
        let asked = match operator {
            ByteOperator::Equal => Formula::compare(Relation::Equal, byte, number),
            ByteOperator::Less => Formula::compare(Relation::AtLeast, byte, number).not(),
            ByteOperator::Greater => Formula::compare(Relation::Greater, byte, number),
            ByteOperator::And => Formula::compare(Relation::AnyBit, byte, number),
            ByteOperator::Or => {
                let either = self.graph.binary(Operation::Or, byte, number);
                Formula::equals(self.graph, either, 0).not()
            }
        };
        Formula::all(vec![guard, asked])
    }
}
