//! What can be told of a flow: the information elements of IPFIX (RFC 7012, IANA's registry), and what NetFlow v9 has for them.

/// The enterprise number of elements for the other direction (RFC 5103).
pub const REVERSE: u32 = 29_305;
/// ntop's enterprise number: nProbe has elements for what IANA has none.
pub const NTOP: u32 = 35_632;
/// What a template says instead of a length: each value says its own.
pub(super) const VARIABLE: u16 = u16::MAX;

/// An information element.
///
/// A value that a flow does not have is 0, or an empty string. Strings are cut after 254 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its name: IANA's, nProbe's, or that of RFC 5103 for the other direction.
    pub name: &'static str,
    /// Its number in IPFIX.
    pub number: u16,
    /// Who has given the number: 0 (IANA), [`REVERSE`] or [`NTOP`].
    pub enterprise: u32,
    /// Bytes of a value in IPFIX; 65535: each value says its own length.
    pub length: u16,
    /// Number and bytes in NetFlow v9 (RFC 3954, Cisco's or nProbe's extensions); `None`: v9 cannot tell it.
    pub netflow9: Option<(u16, u16)>,
    pub(super) value: Value,
    pub(super) flows: Flows,
}

/// Which records an element is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flows {
    All,
    V4,
    V6,
    /// Records of both directions.
    Biflows,
}

/// One side of a flow: what the source has sent, or the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forth,
    Back,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    /// NTP's format (RFC 7011, 6.1.9): seconds since 1900, and 2^-32 of them.
    Nanoseconds,
    /// Milliseconds since the exporter was started, as NetFlow has them.
    Uptime,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Address(Way),
    Port(Way),
    Mac(Way),
    Packets(Way),
    Bytes(Way),
    Shortest(Way),
    Longest(Way),
    LeastTtl(Way),
    MostTtl(Way),
    Tos(Way),
    TcpFlags(Way),
    TcpSequence(Way),
    Retransmissions(Way),
    First(Unit),
    Last(Unit),
    Version,
    Protocol,
    EndReason,
    Icmp,
    Interface,
    Vlan,
    Tunnel,
    BiflowDirection,
    Application,
    HttpHost,
    TlsServer,
    DnsName,
}

const fn iana(name: &'static str, number: u16, length: u16, value: Value) -> Element {
    Element { name, number, enterprise: 0, length, netflow9: None, value, flows: Flows::All }
}

const fn reverse(name: &'static str, number: u16, length: u16, value: Value) -> Element {
    Element { enterprise: REVERSE, flows: Flows::Biflows, ..iana(name, number, length, value) }
}

/// Of nProbe: its number in v9 is 57472 more than the one in IPFIX.
const fn ntop(name: &'static str, number: u16, length: u16, value: Value) -> Element {
    Element { enterprise: NTOP, ..iana(name, number, length, value) }
}

impl Element {
    /// All elements, in the order in which they are exported.
    ///
    /// Not among them, because neither IANA nor nProbe has an element that means the same: windows of 0, and the times of the
    /// handshake (nProbe's are halved, and the unit depends on its version).
    pub const ALL: &'static [Self] = &[
        iana("sourceIPv4Address", 8, 4, Value::Address(Way::Forth)).on_v9(8, 4).of(Flows::V4),
        iana("sourceIPv6Address", 27, 16, Value::Address(Way::Forth)).on_v9(27, 16).of(Flows::V6),
        iana("destinationIPv4Address", 12, 4, Value::Address(Way::Back)).on_v9(12, 4).of(Flows::V4),
        iana("destinationIPv6Address", 28, 16, Value::Address(Way::Back)).on_v9(28, 16).of(Flows::V6),
        iana("sourceTransportPort", 7, 2, Value::Port(Way::Forth)).on_v9(7, 2),
        iana("destinationTransportPort", 11, 2, Value::Port(Way::Back)).on_v9(11, 2),
        iana("protocolIdentifier", 4, 1, Value::Protocol).on_v9(4, 1),
        iana("ipVersion", 60, 1, Value::Version).on_v9(60, 1),
        iana("packetDeltaCount", 2, 8, Value::Packets(Way::Forth)).on_v9(2, 8),
        iana("octetDeltaCount", 1, 8, Value::Bytes(Way::Forth)).on_v9(1, 8),
        reverse("reversePacketDeltaCount", 2, 8, Value::Packets(Way::Back)),
        reverse("reverseOctetDeltaCount", 1, 8, Value::Bytes(Way::Back)),
        iana("flowStartMilliseconds", 152, 8, Value::First(Unit::Milliseconds)).on_v9(22, 4),
        iana("flowEndMilliseconds", 153, 8, Value::Last(Unit::Milliseconds)).on_v9(21, 4),
        iana("flowStartNanoseconds", 156, 8, Value::First(Unit::Nanoseconds)).on_v9(22, 4),
        iana("flowEndNanoseconds", 157, 8, Value::Last(Unit::Nanoseconds)).on_v9(21, 4),
        iana("flowEndReason", 136, 1, Value::EndReason),
        iana("biflowDirection", 239, 1, Value::BiflowDirection).of(Flows::Biflows),
        iana("ingressInterface", 10, 4, Value::Interface).on_v9(10, 4),
        iana("vlanId", 58, 2, Value::Vlan).on_v9(58, 2),
        iana("sourceMacAddress", 56, 6, Value::Mac(Way::Forth)).on_v9(56, 6),
        iana("destinationMacAddress", 80, 6, Value::Mac(Way::Back)).on_v9(80, 6),
        // As long as RFC 7125 lets it be where there are no more than these eight flags: nfacctd reads only the first octet.
        iana("tcpControlBits", 6, 1, Value::TcpFlags(Way::Forth)).on_v9(6, 1),
        reverse("reverseTcpControlBits", 6, 1, Value::TcpFlags(Way::Back)),
        iana("tcpSequenceNumber", 184, 4, Value::TcpSequence(Way::Forth)),
        reverse("reverseTcpSequenceNumber", 184, 4, Value::TcpSequence(Way::Back)),
        iana("icmpTypeCodeIPv4", 32, 2, Value::Icmp).on_v9(32, 2).of(Flows::V4),
        iana("icmpTypeCodeIPv6", 139, 2, Value::Icmp).on_v9(32, 2).of(Flows::V6),
        iana("ipClassOfService", 5, 1, Value::Tos(Way::Forth)).on_v9(5, 1),
        reverse("reverseIpClassOfService", 5, 1, Value::Tos(Way::Back)),
        iana("minimumIpTotalLength", 25, 8, Value::Shortest(Way::Forth)).on_v9(25, 2),
        iana("maximumIpTotalLength", 26, 8, Value::Longest(Way::Forth)).on_v9(26, 2),
        reverse("reverseMinimumIpTotalLength", 25, 8, Value::Shortest(Way::Back)),
        reverse("reverseMaximumIpTotalLength", 26, 8, Value::Longest(Way::Back)),
        iana("minimumTTL", 52, 1, Value::LeastTtl(Way::Forth)).on_v9(52, 1),
        iana("maximumTTL", 53, 1, Value::MostTtl(Way::Forth)).on_v9(53, 1),
        reverse("reverseMinimumTTL", 52, 1, Value::LeastTtl(Way::Back)),
        reverse("reverseMaximumTTL", 53, 1, Value::MostTtl(Way::Back)),
        iana("applicationName", 96, VARIABLE, Value::Application),
        iana("httpRequestHost", 460, VARIABLE, Value::HttpHost),
        ntop("TLS_SERVER_NAME", 188, VARIABLE, Value::TlsServer),
        ntop("DNS_QUERY", 205, VARIABLE, Value::DnsName),
        // IANA's layer2SegmentId wants to know which kind of tunnel it is, and has room for 24 bits.
        ntop("UPSTREAM_TUNNEL_ID", 106, 4, Value::Tunnel).on_v9(57_578, 4),
        ntop("RETRANSMITTED_IN_PKTS", 109, 4, Value::Retransmissions(Way::Forth)).on_v9(57_581, 4),
        ntop("RETRANSMITTED_OUT_PKTS", 110, 4, Value::Retransmissions(Way::Back)).of(Flows::Biflows),
    ];

    const fn on_v9(self, number: u16, length: u16) -> Self {
        Self { netflow9: Some((number, length)), ..self }
    }

    const fn of(self, flows: Flows) -> Self {
        Self { flows, ..self }
    }

    /// Returns the element with this name, in any case.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|element| element.name.eq_ignore_ascii_case(name))
    }
}
