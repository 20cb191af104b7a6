//! Link types by tcpdump's names (`-y`).

use weir_savefile::link_types::LinkType;

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
    LinkType::from_name(name).map(|known| known.number).ok_or_else(|| {
        "unknown link type: give a name such as EN10MB, LINUX_SLL2 or RAW, or a number \
         (https://www.tcpdump.org/linktypes.html)"
            .to_owned()
    })
}

/// Returns the name and description of a link type, in tcpdump's words.
pub(crate) fn name(link_type: u16) -> String {
    LinkType::from_number(link_type).map_or_else(
        || format!("link type {link_type}"),
        |known| format!("{} ({})", known.name(), known.description()),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use weir_savefile::link_types::LINK_TYPES;

    use super::*;

    /// tcpdump prints the link type of the file that it reads.
    #[test]
    fn names_are_those_of_tcpdump() {
        for known in LINK_TYPES {
            let mut tcpdump = Command::new("tcpdump")
                .args(["-n", "-r", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("tcpdump");
            let mut header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535].map(u32::to_ne_bytes).concat();
            header.extend(u32::from(known.number).to_ne_bytes());
            tcpdump.stdin.take().expect("a pipe").write_all(&header).expect("room in the pipe");
            let said = tcpdump.wait_with_output().expect("its end").stderr;
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(said.contains(&format!("link-type {}", name(known.number))), "{known:?}: {said}");
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
