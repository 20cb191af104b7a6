//! Generated packets for every link type in pcap-filter(7): mostly whole and well formed, with the addresses, ports and
//! numbers that the expressions of the corpus test.

mod cooked;
mod ethernet;
mod network;
mod signalling;
mod transport;
mod values;
mod wireless;

use weir_filter::interpret::{Metadata, Packet, VlanTag};

use crate::choices::Choices;

/// A captured packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The captured bytes.
    pub data: Vec<u8>,
    /// Length on the wire.
    pub length: u32,
}

impl Captured {
    /// Returns the filter's view of the packet, with metadata.
    pub fn with(&self, meta: Metadata) -> Packet<'_> {
        Packet { data: &self.data, length: self.length, meta }
    }

    /// Returns the filter's view of the packet, without metadata.
    pub fn seen(&self) -> Packet<'_> {
        self.with(Metadata::default())
    }

    /// Returns the Ethernet frame as seen by a receiver that strips the outer VLAN tag; `None` if it has no tag.
    pub fn without_tag(&self) -> Option<(Self, VlanTag)> {
        let half = |at: usize| Some(u16::from_be_bytes([*self.data.get(at)?, *self.data.get(at + 1)?]));
        let (protocol, tci) = (half(12)?, half(14)?);
        let data = [&self.data[..12], &self.data[16..]].concat();
        let tagged = [0x8100, 0x88a8, 0x9100].contains(&protocol);
        tagged.then_some((Self { data, length: self.length - 4 }, VlanTag { protocol, tci }))
    }
}

/// Returns metadata as from a receiver, without a tag.
pub fn metadata(choices: &mut Choices<'_>) -> Metadata {
    let (packet_type, interface) = (choices.pick(&[0, 4, 1, 2, 3]), choices.pick(&[1, 2, 3]));
    Metadata { protocol: choices.pick(&[0x0800, 0x86dd, 0x0806, 4]), packet_type, interface, vlan: None }
}

/// The number of tunnels that may still be nested.
#[derive(Clone, Copy)]
struct Depth(u8);

impl Depth {
    const OUTERMOST: Self = Self(3);

    fn inside(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

/// Returns a packet of `link_type`, a `LINKTYPE_` number; any bytes for an unknown link type.
pub fn packet(link_type: u16, choices: &mut Choices<'_>) -> Captured {
    let frame = frame(link_type, choices);
    let length = u32::try_from(frame.len()).expect("packets are short");
    let data =
        if choices.one_in(8) { frame[..choices.half() as usize % (frame.len() + 1)].to_vec() } else { frame };
    Captured { data, length }
}

/// Returns `count` packets of `link_type`, always the same ones.
pub fn fixed(link_type: u16, count: u64) -> Vec<Captured> {
    (0..count).map(|seed| packet(link_type, &mut Choices::seeded(seed))).collect()
}

fn frame(link_type: u16, choices: &mut Choices<'_>) -> Vec<u8> {
    match link_type {
        0 => cooked::null(choices, u32::to_ne_bytes),
        1 => ethernet::frame(choices, Depth::OUTERMOST),
        6 => ethernet::token_ring(choices),
        7 | 129 => ethernet::arcnet(choices, link_type == 129),
        8 => cooked::slip(choices),
        9 | 50 => cooked::ppp(choices),
        10 => ethernet::fddi(choices),
        51 => cooked::pppoe(choices),
        12 | 14 | 101 => network::ip(choices, Depth::OUTERMOST).1,
        19 | 100 => network::llc(choices, Depth::OUTERMOST),
        104 => cooked::cisco_hdlc(choices),
        105 => wireless::frame(choices),
        107 => cooked::frame_relay(choices),
        108 => cooked::null(choices, u32::to_be_bytes),
        113 => cooked::sll(choices),
        119 => wireless::prism(choices),
        122 => ethernet::fibre_channel(choices),
        123 => signalling::sun_atm(choices),
        127 => wireless::radiotap(choices),
        139 => signalling::mtp2_with_header(choices),
        140 => signalling::mtp2(choices),
        163 => wireless::avs(choices),
        192 => wireless::ppi(choices),
        228 => network::ipv4(choices, Depth::OUTERMOST),
        229 => network::ipv6(choices, Depth::OUTERMOST),
        240 | 241 => ethernet::analyser(choices),
        276 => cooked::sll2(choices),
        _ => {
            let length = choices.below(100);
            choices.bytes(length)
        }
    }
}
