//! The numbers by which headers say what follows them, and the limits of a walk: each once, for Rust and for C.

/// Defines constants, and lists them for the C header.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: $kind = $value;)*

        pub(super) const ALL: &[(&str, u64)] = &[$((stringify!($name), $value as u64)),*];
    };
}

/// Link types: the numbers of capture files (<https://www.tcpdump.org/linktypes.html>).
pub mod link_type {
    numbers! {
        /// BSD loopback: an address family in the byte order of the host that captured.
        NULL: u16 = 0;
        /// Ethernet.
        ETHERNET: u16 = 1;
        /// PPP, perhaps with the address and control fields of HDLC (RFC 1661, 1662).
        PPP: u16 = 9;
        /// Raw IP, as some systems number it.
        RAW_12: u16 = 12;
        /// Raw IP, as others number it.
        RAW_14: u16 = 14;
        /// PPP in frames of HDLC (RFC 1662), or what Cisco puts there.
        PPP_HDLC: u16 = 50;
        /// Raw IP; its first four bits are the version.
        RAW: u16 = 101;
        /// Cisco's HDLC: address, control, an EtherType.
        CISCO_HDLC: u16 = 104;
        /// IEEE 802.11.
        WLAN: u16 = 105;
        /// Frame relay (ITU-T Q.922).
        FRAME_RELAY: u16 = 107;
        /// OpenBSD loopback: an address family in network byte order.
        LOOP: u16 = 108;
        /// Linux cooked capture, version 1: 16 bytes in front of the packet.
        COOKED: u16 = 113;
        /// Radiotap (<https://www.radiotap.org>), then IEEE 802.11.
        RADIOTAP: u16 = 127;
        /// PPI, then a packet of the link type in its header.
        PPI: u16 = 192;
        /// Raw IPv4.
        IPV4: u16 = 228;
        /// Raw IPv6.
        IPV6: u16 = 229;
        /// What netfilter logged: attributes, one of which is the packet.
        NFLOG: u16 = 239;
        /// Linux cooked capture, version 2: 20 bytes in front of the packet.
        COOKED_2: u16 = 276;
    }
}

/// EtherTypes (IEEE, <https://www.iana.org/assignments/ieee-802-numbers>).
pub mod ethertype {
    numbers! {
        /// IEEE 802.2, as Linux numbers it where no length says so (`ETH_P_802_2`, linux/if_ether.h).
        LLC: u16 = 0x0004;
        /// The largest length (IEEE 802.3).
        LAST_LENGTH: u16 = 0x05dc;
        /// IPv4.
        IPV4: u16 = 0x0800;
        /// ARP.
        ARP: u16 = 0x0806;
        /// Reverse ARP (RFC 903).
        RARP: u16 = 0x8035;
        /// Ethernet as the payload of a tunnel (RFC 7637).
        BRIDGED: u16 = 0x6558;
        /// VLAN tag of a customer (IEEE 802.1Q).
        VLAN: u16 = 0x8100;
        /// IPv6.
        IPV6: u16 = 0x86dd;
        /// MPLS (RFC 3032).
        MPLS: u16 = 0x8847;
        /// MPLS with labels that the sender has assigned (RFC 5332).
        MPLS_UPSTREAM: u16 = 0x8848;
        /// A PPPoE session (RFC 2516).
        PPPOE: u16 = 0x8864;
        /// VLAN tag of a service provider (IEEE 802.1ad).
        SERVICE_VLAN: u16 = 0x88a8;
        /// VLAN tag of a service provider, before 802.1ad gave it a number.
        OLD_SERVICE_VLAN: u16 = 0x9100;
        /// A second number from before 802.1ad.
        OLD_SERVICE_VLAN_2: u16 = 0x9200;
        /// The smallest EtherType (IEEE 802.3). Numbers up to 1500 are lengths, or the kernel's own; those between are neither.
        FIRST: u16 = 0x0600;
    }

    /// The tags that Linux knows, strips and inserts (`eth_type_vlan`, linux/if_vlan.h).
    pub const TAGS_OF_LINUX: [u16; 2] = [VLAN, SERVICE_VLAN];

    /// The tags that libpcap 1.10 knows (`gen_vlan`, gencode.c).
    pub const TAGS_OF_LIBPCAP: [u16; 3] = [VLAN, SERVICE_VLAN, OLD_SERVICE_VLAN];

    /// Returns whether what follows is a VLAN tag: two bytes of contents, and the next EtherType.
    #[inline]
    pub const fn is_tag(ethertype: u16) -> bool {
        matches!(ethertype, VLAN | SERVICE_VLAN | OLD_SERVICE_VLAN | OLD_SERVICE_VLAN_2)
    }
}

/// Protocol numbers of IP (<https://www.iana.org/assignments/protocol-numbers>).
pub mod protocol {
    numbers! {
        /// Hop-by-hop options (IPv6).
        HOP_BY_HOP: u8 = 0;
        /// ICMP.
        ICMP: u8 = 1;
        /// IGMP.
        IGMP: u8 = 2;
        /// IPv4 in IP (RFC 2003).
        IPV4: u8 = 4;
        /// TCP.
        TCP: u8 = 6;
        /// UDP.
        UDP: u8 = 17;
        /// DCCP.
        DCCP: u8 = 33;
        /// IPv6 in IP (RFC 4213, 2473).
        IPV6: u8 = 41;
        /// Routing header (IPv6).
        ROUTING: u8 = 43;
        /// Fragment header (IPv6).
        FRAGMENT: u8 = 44;
        /// GRE (RFC 2784).
        GRE: u8 = 47;
        /// Authentication header (RFC 4302).
        AUTHENTICATION: u8 = 51;
        /// ICMPv6.
        ICMPV6: u8 = 58;
        /// Nothing follows (IPv6).
        NOTHING: u8 = 59;
        /// Destination options (IPv6).
        DESTINATION: u8 = 60;
        /// OSPF.
        OSPF: u8 = 89;
        /// PIM.
        PIM: u8 = 103;
        /// VRRP.
        VRRP: u8 = 112;
        /// SCTP.
        SCTP: u8 = 132;
        /// Mobility header (RFC 6275).
        MOBILITY: u8 = 135;
        /// UDP-Lite.
        UDP_LITE: u8 = 136;
        /// Host identity protocol (RFC 7401).
        HIP: u8 = 139;
        /// Shim6 (RFC 5533).
        SHIM6: u8 = 140;
    }

    /// Returns whether the header begins with the ports of source and destination, two bytes each.
    #[inline]
    pub const fn has_ports(protocol: u8) -> bool {
        matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
    }
}

/// Ports of UDP at which tunnels end (<https://www.iana.org/assignments/service-names-port-numbers>).
pub mod port {
    numbers! {
        /// GTP-U (3GPP TS 29.281).
        GTP_U: u16 = 2152;
        /// VXLAN (RFC 7348).
        VXLAN: u16 = 4789;
        /// Geneve (RFC 8926).
        GENEVE: u16 = 6081;
        /// VXLAN, as Linux numbered it before the RFC, and still does unless told (`ip link add type vxlan`); flannel and
        /// Cilium do, too.
        LINUX_VXLAN: u16 = 8472;
    }
}

/// Protocol numbers of PPP (<https://www.iana.org/assignments/ppp-numbers>).
pub mod ppp {
    numbers! {
        /// IPv4.
        IPV4: u16 = 0x0021;
        /// IPv6.
        IPV6: u16 = 0x0057;
        /// MPLS.
        MPLS: u16 = 0x0281;
        /// MPLS with labels that the sender has assigned.
        MPLS_UPSTREAM: u16 = 0x0283;
    }
}

/// How far a walk goes. What is behind counts as unknown; a program in the kernel has to end, too.
pub mod most {
    numbers! {
        /// VLAN tags in front of a network header.
        TAGS: u8 = 7;
        /// Labels of MPLS.
        LABELS: u8 = 8;
        /// Extension headers of an IPv6 packet.
        EXTENSIONS: u8 = 8;
        /// Extension headers of GTP-U.
        GTP_EXTENSIONS: u8 = 4;
        /// Tunnels inside one another.
        TUNNELS: u8 = 8;
    }
}

/// Returns a C header that defines all of these: `ETHERTYPE_VLAN`, `PROTOCOL_TCP`, `MOST_TAGS`.
pub fn c_header() -> String {
    let modules = [
        ("LINK_TYPE", link_type::ALL, 0),
        ("ETHERTYPE", ethertype::ALL, 4),
        ("PROTOCOL", protocol::ALL, 0),
        ("PORT", port::ALL, 0),
        ("PPP", ppp::ALL, 4),
        ("MOST", most::ALL, 0),
    ];
    let mut header =
        "/* Made from crates/weir-packet/src/numbers.rs, which has the sources. */\n#pragma once\n"
            .to_owned();
    for (module, numbers, digits) in modules {
        for (name, number) in numbers {
            let number = if digits > 0 { format!("0x{number:0digits$x}") } else { number.to_string() };
            header.push_str(&format!("#define {module}_{name} {number}\n"));
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_gets_the_same_numbers() {
        let header = c_header();
        for line in [
            "#define ETHERTYPE_SERVICE_VLAN 0x88a8\n",
            "#define PROTOCOL_HOP_BY_HOP 0\n",
            "#define PORT_LINUX_VXLAN 8472\n",
            "#define PPP_IPV6 0x0057\n",
            "#define MOST_TAGS 7\n",
        ] {
            assert!(header.contains(line), "{line}{header}");
        }
    }

    #[test]
    fn no_number_stands_twice() {
        for numbers in [link_type::ALL, ethertype::ALL, protocol::ALL, port::ALL, ppp::ALL] {
            let mut values: Vec<u64> = numbers.iter().map(|(_, value)| *value).collect();
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), numbers.len(), "{numbers:?}");
        }
    }
}
