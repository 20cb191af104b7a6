//! Link types.

use super::layers::{Layers, Link, NOWHERE, Place};

impl Link {
    /// Returns whether it is 802.11, with or without a header in front.
    pub(super) fn is_wlan(self) -> bool {
        self.has_wlan_types() || self == Self::Ppi
    }

    /// Returns whether libpcap knows 802.11 frame types and tags for it, which excludes PPI.
    pub(super) fn has_wlan_types(self) -> bool {
        matches!(self, Self::Wlan | Self::Radiotap | Self::Prism | Self::Avs)
    }

    /// Returns whether it is Ethernet, with or without a header in front.
    pub(super) fn is_ethernet(self) -> bool {
        matches!(self, Self::Ethernet | Self::NetAnalyzer)
    }

    /// Returns whether a radio header, which contains its own length, precedes 802.11.
    pub(super) fn has_radio_header(self) -> bool {
        matches!(self, Self::Radiotap | Self::Prism | Self::Avs | Self::Ppi)
    }
}

/// Returns the places of headers in packets of `link_type`, or `None` if it is unknown: `kind`, `payload`, `network`,
/// and the network header without SNAP. For headers of variable length, the caller provides slots.
pub(super) fn layers(link_type: u16) -> Option<Layers> {
    use Link as L;
    const NO: u32 = NOWHERE;
    let (link, header, kind, payload, network, bare) = match link_type {
        0 => (L::Null, 0, 0, 4, 0, 0),
        1 => (L::Ethernet, 0, 12, 14, 0, 3),
        6 => (L::TokenRing, 0, 14, 14, 8, 3),
        7 => (L::ArcNet, 0, 2, 6, 0, 0),
        129 => (L::ArcNet, 0, 4, 8, 0, 0),
        8 => (L::Slip, 0, NO, 16, 0, 0),
        15 | 102 => (L::Raw, 0, NO, 24, 0, 0),
        9 => (L::Ppp, 0, 2, 4, 0, 0),
        166 => (L::PppWithDirection, 0, 2, 4, 0, 0),
        50 => (L::PppSerial, 0, 2, 4, 0, 0),
        51 => (L::PppEther, 0, 6, 8, 0, 0),
        16 | 103 => (L::PppBsdOs, 0, 5, 24, 0, 0),
        104 | 112 => (L::CiscoHdlc, 0, 2, 4, 0, 0),
        10 => (L::Fddi, 0, 13, 13, 8, 3),
        11 | 100 => (L::Rfc1483, 0, 0, 0, 8, 3),
        19 | 106 => (L::AtmClip, 0, 0, 0, 8, 3),
        123 => (L::SunAtm, 0, 4, 4, 8, 3),
        12 | 14 | 101 => (L::Raw, 0, NO, 0, 0, 0),
        228 => (L::Ipv4, 0, NO, 0, 0, 0),
        229 => (L::Ipv6, 0, NO, 0, 0, 0),
        99 => (L::Typed, 0, 6, 44, 0, 0),
        138 => (L::Typed, 0, 16, 18, 0, 0),
        105 => (L::Wlan, 0, 24, 0, 8, 3),
        119 => (L::Prism, 0, 24, 0, 8, 3),
        127 => (L::Radiotap, 0, 24, 0, 8, 3),
        163 => (L::Avs, 0, 24, 0, 8, 3),
        192 => (L::Ppi, 0, 24, 0, 8, 3),
        107 => (L::FrameRelay, 0, NO, 0, 0, 0),
        182 => (L::MultilinkFrameRelay, 0, NO, 0, 4, 0),
        108 => (L::Loop, 0, 0, 4, 0, 0),
        109 => (L::Enc, 0, 0, 12, 0, 0),
        113 => (L::Sll, 0, 14, 16, 0, 0),
        276 => (L::Sll2, 0, 0, 20, 0, 0),
        114 => (L::LocalTalk, 0, NO, 0, 0, 0),
        117 => (L::Pflog, 0, 0, 0, 0, 0),
        122 => (L::IpOverFibreChannel, 0, 16, 16, 8, 3),
        139 | 140 | 197 => (L::Mtp, 0, NO, NO, NO, NO),
        130 | 131 | 134 | 179 | 180 | 181 => (L::Juniper, 0, 4, 4, 0, NO),
        132 => (L::Juniper, 0, 6, NO, NO, NO),
        133 => (L::Juniper, 0, 6, 12, 0, NO),
        135 => (L::Juniper, 0, 8, 8, 0, 10),
        136 => (L::Juniper, 0, 12, NO, NO, NO),
        137 => (L::Juniper, 0, 4, 4, 0, 10),
        164 => (L::Juniper, 0, 12, 12, 0, NO),
        167 | 178 => (L::Juniper, 0, 16, 14, 18, 21),
        168 => (L::Juniper, 0, 4, 6, 0, NO),
        183 | 200 => (L::Juniper, 0, 18, NO, NO, NO),
        194 | 232 | 233 | 234 | 238 => (L::Juniper, 0, 8, NO, NO, NO),
        165 => (L::BacnetMsTp, 0, NO, NO, NO, NO),
        226 => (L::Ipnet, 0, 1, 24, 0, NO),
        240 => (L::NetAnalyzer, 4, 16, 18, 0, 3),
        241 => (L::NetAnalyzer, 12, 24, 26, 0, 3),
        246 => (L::Other, 0, NO, 4, 0, 0),
        104.. => (L::Other, 0, NO, NO, NO, NO),
        _ => return None,
    };
    Some(Layers {
        link,
        previous_link: link,
        link_header: Place::at(header),
        previous_link_header: Place::at(header),
        outermost: header,
        kind: Place::at(kind),
        payload: Place::at(payload),
        network,
        network_without_snap: bare,
        labels: 0,
        tags: 0,
        tunnel: false,
    })
}
