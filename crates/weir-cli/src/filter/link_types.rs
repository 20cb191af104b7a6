//! Link types by tcpdump's names (`-y`).

/// Name, `LINKTYPE_` number and description.
const NAMES: [(&str, u16, &str); 41] = [
    ("EN10MB", 1, "Ethernet"),
    ("LINUX_SLL", 113, "Linux cooked v1"),
    ("LINUX_SLL2", 276, "Linux cooked v2"),
    ("RAW", 101, "Raw IP"),
    ("IPV4", 228, "Raw IPv4"),
    ("IPV6", 229, "Raw IPv6"),
    ("NULL", 0, "BSD loopback"),
    ("LOOP", 108, "OpenBSD loopback"),
    ("PPP", 9, "PPP"),
    ("PPP_SERIAL", 50, "PPP over serial"),
    ("PPP_ETHER", 51, "PPPoE"),
    ("C_HDLC", 104, "Cisco HDLC"),
    ("IEEE802_11", 105, "802.11"),
    ("IEEE802_11_RADIO", 127, "802.11 plus radiotap header"),
    ("PRISM_HEADER", 119, "802.11 plus Prism header"),
    ("IEEE802_11_RADIO_AVS", 163, "802.11 plus AVS radio information header"),
    ("PPI", 192, "Per-Packet Information"),
    ("IEEE802", 6, "Token ring"),
    ("ARCNET", 7, "BSD ARCNET"),
    ("ARCNET_LINUX", 129, "Linux ARCNET"),
    ("FDDI", 10, "FDDI"),
    ("IP_OVER_FC", 122, "RFC 2625 IP-over-Fibre Channel"),
    ("SLIP", 8, "SLIP"),
    ("SLIP_BSDOS", 102, "BSD/OS SLIP"),
    ("PPP_BSDOS", 103, "BSD/OS PPP"),
    ("FRELAY", 107, "Frame Relay"),
    ("MFR", 182, "FRF.16 Frame Relay"),
    ("LTALK", 114, "Localtalk"),
    ("ATM_RFC1483", 100, "RFC 1483 LLC-encapsulated ATM"),
    ("ATM_CLIP", 106, "Linux Classical IP over ATM"),
    ("SUNATM", 123, "Sun raw ATM"),
    ("MTP2", 140, "SS7 MTP2"),
    ("MTP2_WITH_PHDR", 139, "SS7 MTP2 with Pseudo-header"),
    ("ENC", 109, "OpenBSD encapsulated IP"),
    ("PFLOG", 117, "OpenBSD pflog file"),
    ("DOCSIS", 143, "DOCSIS"),
    ("ERF", 197, "Endace ERF header"),
    ("NETANALYZER", 240, "Ethernet with Hilscher netANALYZER pseudo-header"),
    (
        "NETANALYZER_TRANSPARENT",
        241,
        "Ethernet with Hilscher netANALYZER pseudo-header and with preamble and SFD",
    ),
    ("IPNET", 226, "Solaris ipnet"),
    ("BACNET_MS_TP", 165, "BACnet MS/TP"),
];

/// Parses a link type: a name, with or without the prefix `DLT_` or `LINKTYPE_`, or a number.
pub(crate) fn parse(text: &str) -> Result<u16, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("DLT_").or_else(|| name.strip_prefix("LINKTYPE_")).unwrap_or(&name);
    let name = match name {
        "ETHERNET" => "EN10MB",
        "IEEE802_5" => "IEEE802",
        name => name,
    };
    let found = NAMES.iter().find(|(known, ..)| *known == name).map(|&(_, number, _)| number);
    found.ok_or_else(|| {
        let known: Vec<&str> = NAMES.iter().map(|&(name, ..)| name).collect();
        format!("unknown link type; names (use a number for others): {}", known.join(", "))
    })
}

/// Returns the name and description of a link type, in tcpdump's words.
pub(crate) fn name(link_type: u16) -> String {
    let known = NAMES.iter().find(|&&(_, number, _)| number == link_type);
    known.map_or_else(|| format!("link type {link_type}"), |(name, _, words)| format!("{name} ({words})"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// tcpdump prints the link type of the file that it reads.
    #[test]
    fn names_are_those_of_tcpdump() {
        for (name, number, words) in NAMES {
            let mut tcpdump = Command::new("tcpdump")
                .args(["-n", "-r", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("tcpdump");
            let mut header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535].map(u32::to_ne_bytes).concat();
            header.extend(u32::from(number).to_ne_bytes());
            tcpdump.stdin.take().expect("a pipe").write_all(&header).expect("room in the pipe");
            let said = tcpdump.wait_with_output().expect("its end").stderr;
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(said.contains(&format!("link-type {name} ({words})")), "{name}: {said}");
        }
    }

    #[test]
    fn names_come_in_several_ways() {
        for text in ["EN10MB", "en10mb", "DLT_EN10MB", "LINKTYPE_ETHERNET", "1"] {
            assert_eq!(parse(text), Ok(1), "{text}");
        }
        assert!(parse("EN10GB").unwrap_err().contains("LINUX_SLL2"));
        assert_eq!(name(1), "EN10MB (Ethernet)");
        assert_eq!(name(999), "link type 999");
    }
}
