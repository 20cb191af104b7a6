//! Names of numbers, as tcpdump prints them.

use weir_packet::ethertype;

pub(crate) const IP4: u16 = ethertype::IPV4;
pub(crate) const ARP: u16 = ethertype::ARP;
pub(crate) const RARP: u16 = 0x8035;
pub(crate) const IP6: u16 = ethertype::IPV6;
pub(crate) const VLAN: u16 = ethertype::VLAN;
pub(crate) const QINQ: u16 = ethertype::SERVICE_VLAN;
pub(crate) const MPLS: u16 = ethertype::MPLS;
pub(crate) const MPLS_MULTICAST: u16 = ethertype::MPLS_UPSTREAM;
pub(crate) const PPPOE_DISCOVERY: u16 = 0x8863;
pub(crate) const PPPOE_SESSION: u16 = ethertype::PPPOE;
pub(crate) const ETHERNET: u16 = ethertype::BRIDGED;
pub(crate) const SLOW: u16 = 0x8809;
pub(crate) const EAPOL: u16 = 0x888e;
pub(crate) const LLDP: u16 = 0x88cc;
pub(crate) const MACSEC: u16 = 0x88e5;
pub(crate) const NSH: u16 = 0x894f;
pub(crate) const PTP: u16 = 0x88f7;
pub(crate) const PPP: u16 = 0x880b;
pub(crate) const MPCP: u16 = 0x8808;
pub(crate) const AOE: u16 = 0x88a2;
pub(crate) const CTP: u16 = 0x9000;

/// Returns tcpdump's name of an EtherType.
pub(crate) fn ethertype(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0200 => "PUP",
        0x0500 => "Sprite",
        IP4 => "IPv4",
        VLAN => "802.1Q",
        0x9100 => "802.1Q-9100",
        0x9200 => "802.1Q-9200",
        QINQ => "802.1Q-QinQ",
        MACSEC => "802.1AE MACsec",
        IP6 => "IPv6",
        ARP => "ARP",
        RARP => "Reverse ARP",
        0x809b => "Appletalk",
        0x80f3 => "Appletalk ARP",
        ETHERNET => "TEB",
        0x0600 => "NS",
        0x0707 => "GeoNet (old)",
        0x1000 => "Trail",
        0x1111 => "CALM FAST",
        0x6001 => "MOP DL",
        0x6002 => "MOP RC",
        0x6003 => "DN",
        0x6004 => "LAT",
        0x6007 => "SCA",
        0x8038 => "Lanbridge",
        0x803c => "DEC DNS",
        0x803e => "DEC DTS",
        0x805b => "VEXP",
        0x805c => "VPROD",
        0x8137 => "IPX",
        0x886f => "MS NLB heartbeat",
        0x8899 => "Realtek protocols",
        0x88ca => "TIPC",
        0x893a => "IEEE1905.1",
        0xd28b => "Arista Vendor Specific Protocol",
        0x8947 => "GeoNet",
        0xabcd => "CFM (old)",
        0xfefe => "OSI",
        MPCP => "MPCP",
        SLOW => "Slow Protocols",
        PPP => "PPP",
        MPLS => "MPLS unicast",
        MPLS_MULTICAST => "MPLS multicast",
        PPPOE_DISCOVERY => "PPPoE D",
        PPPOE_SESSION => "PPPoE S",
        EAPOL => "EAPOL",
        LLDP => "LLDP",
        NSH => "NSH",
        PTP => "PTP",
        0x8902 => "CFM",
        AOE => "AoE",
        CTP => "Loopback",
        _ => return None,
    })
}

/// Returns the short name of an EtherType whose payload is not dissected.
pub(crate) fn unread(ethertype: u16) -> Option<&'static str> {
    Some(match ethertype {
        0x8902 => "CFM",
        _ => return None,
    })
}

/// Returns the name of an IP protocol, as in tcpdump's `-v`.
pub(crate) fn ip_protocol(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "Options",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPIP",
        6 => "TCP",
        9 => "IGRP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6",
        43 => "Routing",
        44 => "Fragment",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        55 => "Mobile IP",
        58 => "ICMPv6",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        108 => "Compressed IP",
        112 => "VRRP",
        113 => "PGM",
        132 => "SCTP",
        135 => "Mobility",
        _ => return None,
    })
}

/// Returns the name of an organization that IEEE has given a number (OUI); `Unknown` if there is none.
pub(crate) fn organization(number: u32) -> &'static str {
    match number {
        0x0000 => "Ethernet",
        0x000c => "Cisco",
        0x005e => "IANA",
        0x0081 => "Nortel Networks SONMP",
        0x00f8 => "Cisco bridged",
        0x049f => "Freescale",
        0x04ea => "HP-Labs",
        0x1018 => "Broadcom",
        0x120f => "IEEE 802.3 Private",
        0x12bb => "ANSI/TIA",
        0x15ad => "Netronome",
        0x1b21 => "DCBX",
        0x2320 => "Nicira Networks",
        0x2481 => "HP",
        0x80c2 => "Ethernet bridged",
        0x9069 => "Juniper",
        0xa03e => "ATM Forum",
        0xe004 => "PMC-Sierra",
        0xe02f => "DOCSIS Spanning Tree",
        0x8_0007 => "Appletalk",
        _ => "Unknown",
    }
}

/// Returns the name of an enterprise that IANA has given a number.
pub(crate) fn enterprise(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "IETF (reserved)",
        5 => "ACC",
        9 => "Cisco",
        11 => "Hewlett Packard",
        42 => "Sun Microsystems",
        61 => "Merit",
        74 => "AT&T",
        161 => "Motorola",
        166 => "Shiva",
        193 => "Ericsson AB",
        255 => "Cisco VPN 5000",
        307 => "Livingston",
        311 => "Microsoft",
        429 => "3Com",
        529 => "Ascend",
        1584 => "Bay Networks",
        1991 => "Foundry",
        2180 => "Versanet",
        2352 => "Redback",
        2636 => "Juniper Networks",
        2637 => "Aptis",
        2937 => "Deutsche Telekom AG",
        3054 => "Ixia Communications",
        3076 => "Cisco VPN 3000",
        3085 => "CoSine Communications",
        3199 => "Shasta",
        3224 => "Netscreen",
        3309 => "Nomadix",
        3414 => "T-Mobile",
        3561 => "The Broadband Forum",
        3902 => "ZTE",
        4329 => "Siemens",
        4491 => "CableLabs",
        4874 => "Unisphere Networks",
        5263 => "Cisco BBSM",
        5535 => "3rd Generation Partnership Project 2 (3GPP2)",
        5806 => "SK Telecom",
        5925 => "ipUnplugged",
        5948 => "Issanni Communications",
        5951 => "Netscaler",
        6490 => "T-Mobile",
        6618 => "Quintum",
        6728 => "Interlink",
        7951 => "CNCTC",
        8164 => "Starent Networks",
        8744 => "Colubris",
        10415 => "3GPP",
        10529 => "Gemtek-Systems",
        10704 => "Barracuda Networks",
        10923 => "Ericsson AB - Packet Core Networks",
        11665 => "dacom",
        11862 => "Columbia University",
        12356 => "Fortinet",
        12951 => "Verizon Wireless",
        13745 => "Plixer",
        14122 => "Wi-Fi Alliance",
        16787 => "T-Systems Nova",
        20942 => "China Telecom - Guangzhou Research Institute",
        26866 => "Gigamon Systems",
        32622 => "CACE Technologies",
        35632 => "ntop",
        46098 => "Ericsson Canada",
        _ => return None,
    })
}
