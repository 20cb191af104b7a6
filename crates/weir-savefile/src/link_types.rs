//! Link types by number and name.

use std::ffi::CStr;

/// A link type. The texts are also for C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType {
    /// `LINKTYPE_` number, as in files (<https://www.tcpdump.org/linktypes.html>).
    pub number: u16,
    /// tcpdump's name (`tcpdump -L`), without `DLT_`.
    pub c_name: &'static CStr,
    /// Description.
    pub c_description: &'static CStr,
}

/// The link types that have a name in libpcap 1.10, by number.
pub const LINK_TYPES: [LinkType; 152] = [
    known(0, c"NULL", c"BSD loopback"),
    known(1, c"EN10MB", c"Ethernet"),
    known(6, c"IEEE802", c"Token ring"),
    known(7, c"ARCNET", c"BSD ARCNET"),
    known(8, c"SLIP", c"SLIP"),
    known(9, c"PPP", c"PPP"),
    known(10, c"FDDI", c"FDDI"),
    known(50, c"PPP_SERIAL", c"PPP over serial"),
    known(51, c"PPP_ETHER", c"PPPoE"),
    known(99, c"SYMANTEC_FIREWALL", c"Symantec Firewall"),
    known(100, c"ATM_RFC1483", c"RFC 1483 LLC-encapsulated ATM"),
    known(101, c"RAW", c"Raw IP"),
    known(102, c"SLIP_BSDOS", c"BSD/OS SLIP"),
    known(103, c"PPP_BSDOS", c"BSD/OS PPP"),
    known(104, c"C_HDLC", c"Cisco HDLC"),
    known(105, c"IEEE802_11", c"802.11"),
    known(106, c"ATM_CLIP", c"Linux Classical IP over ATM"),
    known(107, c"FRELAY", c"Frame Relay"),
    known(108, c"LOOP", c"OpenBSD loopback"),
    known(109, c"ENC", c"OpenBSD encapsulated IP"),
    known(113, c"LINUX_SLL", c"Linux cooked v1"),
    known(114, c"LTALK", c"Localtalk"),
    known(117, c"PFLOG", c"OpenBSD pflog file"),
    known(119, c"PRISM_HEADER", c"802.11 plus Prism header"),
    known(122, c"IP_OVER_FC", c"RFC 2625 IP-over-Fibre Channel"),
    known(123, c"SUNATM", c"Sun raw ATM"),
    known(127, c"IEEE802_11_RADIO", c"802.11 plus radiotap header"),
    known(129, c"ARCNET_LINUX", c"Linux ARCNET"),
    known(130, c"JUNIPER_MLPPP", c"Juniper Multi-Link PPP"),
    known(131, c"JUNIPER_MLFR", c"Juniper Multi-Link Frame Relay"),
    known(132, c"JUNIPER_ES", c"Juniper Encryption Services PIC"),
    known(133, c"JUNIPER_GGSN", c"Juniper GGSN PIC"),
    known(134, c"JUNIPER_MFR", c"Juniper FRF.16 Frame Relay"),
    known(135, c"JUNIPER_ATM2", c"Juniper ATM2 PIC"),
    known(136, c"JUNIPER_SERVICES", c"Juniper Advanced Services PIC"),
    known(137, c"JUNIPER_ATM1", c"Juniper ATM1 PIC"),
    known(138, c"APPLE_IP_OVER_IEEE1394", c"Apple IP-over-IEEE 1394"),
    known(139, c"MTP2_WITH_PHDR", c"SS7 MTP2 with Pseudo-header"),
    known(140, c"MTP2", c"SS7 MTP2"),
    known(141, c"MTP3", c"SS7 MTP3"),
    known(142, c"SCCP", c"SS7 SCCP"),
    known(143, c"DOCSIS", c"DOCSIS"),
    known(144, c"LINUX_IRDA", c"Linux IrDA"),
    known(163, c"IEEE802_11_RADIO_AVS", c"802.11 plus AVS radio information header"),
    known(164, c"JUNIPER_MONITOR", c"Juniper Passive Monitor PIC"),
    known(165, c"BACNET_MS_TP", c"BACnet MS/TP"),
    known(166, c"PPP_PPPD", c"PPP for pppd, with direction flag"),
    known(167, c"JUNIPER_PPPOE", c"Juniper PPPoE"),
    known(168, c"JUNIPER_PPPOE_ATM", c"Juniper PPPoE/ATM"),
    known(169, c"GPRS_LLC", c"GPRS LLC"),
    known(170, c"GPF_T", c"GPF-T"),
    known(171, c"GPF_F", c"GPF-F"),
    known(174, c"JUNIPER_PIC_PEER", c"Juniper PIC Peer"),
    known(175, c"ERF_ETH", c"Ethernet with Endace ERF header"),
    known(176, c"ERF_POS", c"Packet-over-SONET with Endace ERF header"),
    known(177, c"LINUX_LAPD", c"Linux vISDN LAPD"),
    known(178, c"JUNIPER_ETHER", c"Juniper Ethernet"),
    known(179, c"JUNIPER_PPP", c"Juniper PPP"),
    known(180, c"JUNIPER_FRELAY", c"Juniper Frame Relay"),
    known(181, c"JUNIPER_CHDLC", c"Juniper C-HDLC"),
    known(182, c"MFR", c"FRF.16 Frame Relay"),
    known(183, c"JUNIPER_VP", c"Juniper Voice PIC"),
    known(184, c"A429", c"Arinc 429"),
    known(185, c"A653_ICM", c"Arinc 653 Interpartition Communication"),
    known(186, c"USB_FREEBSD", c"USB with FreeBSD header"),
    known(187, c"BLUETOOTH_HCI_H4", c"Bluetooth HCI UART transport layer"),
    known(188, c"IEEE802_16_MAC_CPS", c"IEEE 802.16 MAC Common Part Sublayer"),
    known(189, c"USB_LINUX", c"USB with Linux header"),
    known(190, c"CAN20B", c"Controller Area Network (CAN) v. 2.0B"),
    known(191, c"IEEE802_15_4_LINUX", c"IEEE 802.15.4 with Linux padding"),
    known(192, c"PPI", c"Per-Packet Information"),
    known(193, c"IEEE802_16_MAC_CPS_RADIO", c"IEEE 802.16 MAC Common Part Sublayer plus radiotap header"),
    known(194, c"JUNIPER_ISM", c"Juniper Integrated Service Module"),
    known(195, c"IEEE802_15_4", c"IEEE 802.15.4 with FCS"),
    known(196, c"SITA", c"SITA pseudo-header"),
    known(197, c"ERF", c"Endace ERF header"),
    known(198, c"RAIF1", c"Ethernet with u10 Networks pseudo-header"),
    known(199, c"IPMB_KONTRON", c"IPMB with Kontron pseudo-header"),
    known(200, c"JUNIPER_ST", c"Juniper Secure Tunnel"),
    known(201, c"BLUETOOTH_HCI_H4_WITH_PHDR", c"Bluetooth HCI UART transport layer plus pseudo-header"),
    known(202, c"AX25_KISS", c"AX.25 with KISS header"),
    known(209, c"IPMB_LINUX", c"IPMB with Linux/Pigeon Point pseudo-header"),
    known(215, c"IEEE802_15_4_NONASK_PHY", c"IEEE 802.15.4 with non-ASK PHY data"),
    known(216, c"LINUX_EVDEV", c"Linux evdev events"),
    known(219, c"MPLS", c"MPLS with label as link-layer header"),
    known(220, c"USB_LINUX_MMAPPED", c"USB with padded Linux header"),
    known(221, c"DECT", c"DECT"),
    known(222, c"AOS", c"AOS Space Data Link protocol"),
    known(223, c"WIHART", c"Wireless HART"),
    known(224, c"FC_2", c"Fibre Channel FC-2"),
    known(225, c"FC_2_WITH_FRAME_DELIMS", c"Fibre Channel FC-2 with frame delimiters"),
    known(226, c"IPNET", c"Solaris ipnet"),
    known(227, c"CAN_SOCKETCAN", c"CAN-bus with SocketCAN headers"),
    known(228, c"IPV4", c"Raw IPv4"),
    known(229, c"IPV6", c"Raw IPv6"),
    known(230, c"IEEE802_15_4_NOFCS", c"IEEE 802.15.4 without FCS"),
    known(231, c"DBUS", c"D-Bus"),
    known(232, c"JUNIPER_VS", c"Juniper Virtual Server"),
    known(233, c"JUNIPER_SRX_E2E", c"Juniper SRX E2E"),
    known(234, c"JUNIPER_FIBRECHANNEL", c"Juniper Fibre Channel"),
    known(235, c"DVB_CI", c"DVB-CI"),
    known(236, c"MUX27010", c"MUX27010"),
    known(237, c"STANAG_5066_D_PDU", c"STANAG 5066 D_PDUs"),
    known(238, c"JUNIPER_ATM_CEMIC", c"Juniper ATM CEMIC"),
    known(239, c"NFLOG", c"Linux netfilter log messages"),
    known(240, c"NETANALYZER", c"Ethernet with Hilscher netANALYZER pseudo-header"),
    known(
        241,
        c"NETANALYZER_TRANSPARENT",
        c"Ethernet with Hilscher netANALYZER pseudo-header and with preamble and SFD",
    ),
    known(242, c"IPOIB", c"RFC 4391 IP-over-Infiniband"),
    known(243, c"MPEG_2_TS", c"MPEG-2 transport stream"),
    known(244, c"NG40", c"ng40 protocol tester Iub/Iur"),
    known(245, c"NFC_LLCP", c"NFC LLCP PDUs with pseudo-header"),
    known(246, c"PFSYNC", c"Packet filter state syncing"),
    known(247, c"INFINIBAND", c"InfiniBand"),
    known(248, c"SCTP", c"SCTP"),
    known(249, c"USBPCAP", c"USB with USBPcap header"),
    known(250, c"RTAC_SERIAL", c"Schweitzer Engineering Laboratories RTAC packets"),
    known(251, c"BLUETOOTH_LE_LL", c"Bluetooth Low Energy air interface"),
    known(253, c"NETLINK", c"Linux netlink"),
    known(254, c"BLUETOOTH_LINUX_MONITOR", c"Bluetooth Linux Monitor"),
    known(255, c"BLUETOOTH_BREDR_BB", c"Bluetooth Basic Rate/Enhanced Data Rate baseband packets"),
    known(256, c"BLUETOOTH_LE_LL_WITH_PHDR", c"Bluetooth Low Energy air interface with pseudo-header"),
    known(257, c"PROFIBUS_DL", c"PROFIBUS data link layer"),
    known(258, c"PKTAP", c"Apple DLT_PKTAP"),
    known(259, c"EPON", c"Ethernet with 802.3 Clause 65 EPON preamble"),
    known(260, c"IPMI_HPM_2", c"IPMI trace packets"),
    known(261, c"ZWAVE_R1_R2", c"Z-Wave RF profile R1 and R2 packets"),
    known(262, c"ZWAVE_R3", c"Z-Wave RF profile R3 packets"),
    known(
        263,
        c"WATTSTOPPER_DLM",
        c"WattStopper Digital Lighting Management (DLM) and Legrand Nitoo Open protocol",
    ),
    known(264, c"ISO_14443", c"ISO 14443 messages"),
    known(265, c"RDS", c"IEC 62106 Radio Data System groups"),
    known(266, c"USB_DARWIN", c"USB with Darwin header"),
    known(267, c"OPENFLOW", c"OpenBSD DLT_OPENFLOW"),
    known(268, c"SDLC", c"IBM SDLC frames"),
    known(269, c"TI_LLN_SNIFFER", c"TI LLN sniffer frames"),
    known(271, c"VSOCK", c"Linux vsock"),
    known(272, c"NORDIC_BLE", c"Nordic Semiconductor Bluetooth LE sniffer frames"),
    known(273, c"DOCSIS31_XRA31", c"Excentis XRA-31 DOCSIS 3.1 RF sniffer frames"),
    known(274, c"ETHERNET_MPACKET", c"802.3br mPackets"),
    known(275, c"DISPLAYPORT_AUX", c"DisplayPort AUX channel monitoring data"),
    known(276, c"LINUX_SLL2", c"Linux cooked v2"),
    known(278, c"OPENVIZSLA", c"OpenVizsla USB"),
    known(279, c"EBHSCR", c"Elektrobit High Speed Capture and Replay (EBHSCR)"),
    known(280, c"VPP_DISPATCH", c"VPP graph dispatch tracer"),
    known(281, c"DSA_TAG_BRCM", c"Broadcom tag"),
    known(282, c"DSA_TAG_BRCM_PREPEND", c"Broadcom tag (prepended)"),
    known(283, c"IEEE802_15_4_TAP", c"IEEE 802.15.4 with pseudo-header"),
    known(284, c"DSA_TAG_DSA", c"Marvell DSA"),
    known(285, c"DSA_TAG_EDSA", c"Marvell EDSA"),
    known(286, c"ELEE", c"ELEE lawful intercept packets"),
    known(287, c"Z_WAVE_SERIAL", c"Z-Wave serial frames between host and chip"),
    known(288, c"USB_2_0", c"USB 2.0/1.1/1.0 as transmitted over the cable"),
    known(289, c"ATSC_ALP", c"ATSC Link-Layer Protocol packets"),
];

/// The numbers that differ between programs (`DLT_`, from which systems once chose differently) and files: those of Linux.
const DLT: [(u16, u16); 5] = [(11, 100), (12, 101), (15, 102), (16, 103), (19, 106)];

impl LinkType {
    /// Returns the link type with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        let at = LINK_TYPES.binary_search_by_key(&number, |known| known.number).ok()?;
        Some(LINK_TYPES[at])
    }

    /// Returns the link type with this name, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        LINK_TYPES.into_iter().find(|known| known.name().eq_ignore_ascii_case(name))
    }

    /// Returns the link type that programs on Linux know as `DLT_` number `dlt`.
    pub fn from_dlt(dlt: u16) -> Option<Self> {
        Self::from_number(number_of_dlt(dlt)).filter(|known| known.dlt() == dlt)
    }

    /// Returns tcpdump's name (`tcpdump -L`), without `DLT_`.
    pub fn name(self) -> &'static str {
        self.c_name.to_str().unwrap_or_default()
    }

    /// Returns the description.
    pub fn description(self) -> &'static str {
        self.c_description.to_str().unwrap_or_default()
    }

    /// Returns the `DLT_` number on Linux.
    pub fn dlt(self) -> u16 {
        dlt_of_number(self.number)
    }
}

/// Returns the `LINKTYPE_` number for a `DLT_` number on Linux.
pub fn number_of_dlt(dlt: u16) -> u16 {
    DLT.iter().find(|(known, _)| *known == dlt).map_or(dlt, |&(_, number)| number)
}

/// Returns the `DLT_` number on Linux for a `LINKTYPE_` number.
pub fn dlt_of_number(number: u16) -> u16 {
    DLT.iter().find(|(_, known)| *known == number).map_or(number, |&(dlt, _)| dlt)
}

const fn known(number: u16, c_name: &'static CStr, c_description: &'static CStr) -> LinkType {
    LinkType { number, c_name, c_description }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_type_is_found_by_each_key() {
        assert!(LINK_TYPES.is_sorted_by(|one, next| one.number < next.number));
        for known in LINK_TYPES {
            assert_eq!(LinkType::from_number(known.number), Some(known));
            assert!(!known.name().is_empty() && !known.description().is_empty());
            assert_eq!(LinkType::from_name(&known.name().to_ascii_lowercase()), Some(known));
            assert_eq!(LinkType::from_dlt(known.dlt()), Some(known));
        }
    }

    #[test]
    fn raw_ip_has_another_number_in_programs() {
        assert_eq!((number_of_dlt(12), dlt_of_number(101)), (101, 12));
        assert_eq!((number_of_dlt(1), dlt_of_number(1)), (1, 1));
        // 101 is no number for programs on Linux.
        assert_eq!(LinkType::from_dlt(101), None);
    }
}
