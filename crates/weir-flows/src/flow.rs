//! A flow, as it is handed out.

use weir_packet::Endpoint;

/// Packets between two ends, both ways, within some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The index of the interface that its first packet came from.
    pub interface: u16,
    /// Who began, and the other. The side that has sent SYN begins, else the first that was seen.
    pub sides: [Side; 2],
    /// The protocol of IP (IANA), behind extension headers.
    pub protocol: u8,
    /// The ID of the outermost VLAN tag.
    pub vlan: Option<u16>,
    /// The number of the tunnel that the packets are in, or which they carry: of VXLAN, Geneve, GTP-U or GRE.
    pub tunnel: Option<u32>,
    /// Time of its first packet, in nanoseconds since the Unix epoch.
    pub first: u64,
    /// Time of its last packet.
    pub last: u64,
    /// Packets that were lost after its first and before its last packet, of any flow: at most so many are missing in this one.
    /// They are those that [`Table::lost`](crate::Table::lost) was told of before it ended.
    pub lost: u64,
    /// Why it has ended.
    pub reason: EndReason,
    /// The type and code of its first packet, if that is one of ICMP or ICMPv6.
    pub icmp: Option<Icmp>,
    /// What is known of its connection.
    pub tcp: Option<Tcp>,
    /// What its application said.
    pub names: Option<Box<Names>>,
}

/// What one side has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Its address and port. Protocols without ports have 0, as later fragments do whose first was not seen.
    pub end: Endpoint,
    /// Its MAC address, if the frames have some: in the first packet of the flow.
    pub mac: Option<[u8; 6]>,
    /// Packets.
    pub packets: u64,
    /// Bytes of IP, with its header, as it says them.
    pub bytes: u64,
    /// Lengths of the shortest and the longest packet, of at most 65535 bytes each; 0: it has sent nothing.
    pub lengths: [u16; 2],
    /// The smallest and the largest TTL or hop limit.
    pub ttls: [u8; 2],
    /// All values of the type of service or the traffic class, together.
    pub tos: u8,
}

/// A connection of TCP, each array in the order of [`Flow::sides`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// All flags of each side together, as the header has them.
    pub flags: [u8; 2],
    /// Sequence numbers of SYN.
    pub initial_sequences: [Option<u32>; 2],
    /// Segments whose data ends at or before data that was sent: sent again, or overtaken. Packets that come after later ones
    /// are not judged.
    pub retransmissions: [u32; 2],
    /// Segments that announce a window of 0; at most 65535.
    pub zero_windows: [u16; 2],
    /// Microseconds from SYN to SYN and ACK, and from there to ACK: how far away the server and the client are. `None` also where
    /// packets of the flow came after later ones.
    pub handshake: [Option<u32>; 2],
}

/// Which message of ICMP it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// The type.
    pub kind: u8,
    /// The code.
    pub code: u8,
}

/// What the application said in the first packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The protocol: `dns`, `tls`, `quic`, `http`, ...
    pub protocol: &'static str,
    /// Whom the flow is about: the server's name of TLS and QUIC, the host of HTTP, the name that DNS was asked for. As in the packet: it can
    /// contain control characters.
    pub name: Option<String>,
    /// The fingerprint of the client of TLS or QUIC (JA4), if its first hello is there to the end.
    pub ja4: Option<String>,
}

/// Why a flow has ended (`flowEndReason`, RFC 5102).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum EndReason {
    /// It was silent.
    Idle,
    /// It lasted too long; more of it may follow in another flow.
    Active,
    /// Both sides have sent FIN, or one RST.
    Closed,
    /// Somebody asked, or the input is over.
    Forced,
    /// Another flow needed its room.
    NoRoom,
}

impl EndReason {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Active, Self::Closed, Self::Forced, Self::NoRoom];

    /// Returns the number that IPFIX has for it.
    pub fn number(self) -> u8 {
        match self {
            Self::Idle => 1,
            Self::Active => 2,
            Self::Closed => 3,
            Self::Forced => 4,
            Self::NoRoom => 5,
        }
    }

    /// Returns a word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Active => "active",
            Self::Closed => "closed",
            Self::Forced => "forced",
            Self::NoRoom => "no_room",
        }
    }
}

/// What flows are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// Bytes of both sides.
    #[default]
    Bytes,
    /// Packets of both sides.
    Packets,
    /// Bits per second, from the first packet to the last.
    Rate,
    /// Retransmissions of both sides.
    Retransmissions,
}

/// The shortest time that a rate is about: one packet alone has none.
const SHORTEST: u64 = 1_000_000;

/// Returns the bits per second of so many bytes in so many nanoseconds.
pub(crate) fn rate(bytes: u64, time: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(time.max(SHORTEST));
    u64::try_from(bits).unwrap_or(u64::MAX)
}

impl Flow {
    /// Returns by how much it ranks.
    pub fn rank(&self, rank: Rank) -> u64 {
        match rank {
            Rank::Bytes => self.bytes(),
            Rank::Packets => self.packets(),
            Rank::Rate => self.rate(),
            Rank::Retransmissions => {
                self.tcp.map_or(0, |tcp| tcp.retransmissions.iter().copied().map(u64::from).sum())
            }
        }
    }

    /// Returns the bits per second of both sides, from the first packet to the last. Less than a millisecond counts as one.
    pub fn rate(&self) -> u64 {
        rate(self.bytes(), self.last - self.first)
    }

    /// Returns the packets of both sides.
    pub fn packets(&self) -> u64 {
        self.sides.iter().map(|side| side.packets).sum()
    }

    /// Returns the bytes of both sides.
    pub fn bytes(&self) -> u64 {
        self.sides.iter().map(|side| side.bytes).sum()
    }
}
