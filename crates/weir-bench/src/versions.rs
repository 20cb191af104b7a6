//! Versions of the programs of others.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::find;

const PEERS: [&str; 5] = ["tcpdump", "dumpcap", "netsniff-ng", "iperf3", "tcpreplay"];
const LIBPCAP: &str = "libpcap";

/// Of those that are installed. libpcap's is that on which tcpdump runs.
pub(super) fn of_peers() -> BTreeMap<&'static str, String> {
    let mut versions = BTreeMap::new();
    for name in PEERS {
        let Some(said) = find(name).and_then(|path| said(&path)) else { continue };
        if let Some(version) = after(&said, "libpcap version") {
            versions.insert(LIBPCAP, version);
        }
        versions.insert(name, number(&said).unwrap_or_else(|| "unknown".to_owned()));
    }
    versions
}

fn said(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned())
}

fn after(text: &str, words: &str) -> Option<String> {
    number(text.split_once(words)?.1)
}

/// The first word that is a version's number.
fn number(text: &str) -> Option<String> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("tcpdump version 4.99.3\nlibpcap version 1.10.3 (with TPACKET_V3)", "4.99.3"),
            ("Dumpcap (Wireshark) 4.0.17 (Git v4.0.17 packaged as 4.0.17-0+deb12u3).", "4.0.17"),
            ("netsniff-ng 0.6.8 (polygon window), Git id: (none)", "0.6.8"),
            ("iperf 3.12 (cJSON 1.7.15)", "3.12"),
            ("tcpreplay version: 4.4.3 (build git:v4.4.3) (debug)", "4.4.3"),
        ] {
            assert_eq!(number(said).as_deref(), Some(version));
        }
        assert_eq!(number("no such option"), None);
        let tcpdump = "tcpdump version 4.99.3\nlibpcap version 1.10.3, with TPACKET_V3";
        assert_eq!(after(tcpdump, "libpcap version").as_deref(), Some("1.10.3"));
    }
}
