//! Cases where weir and libpcap disagree, or libpcap disagrees with itself, and the right answer.

use std::collections::HashMap;
use std::fmt;

use crate::packets::Captured;

/// The answer of a filter for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet matches.
    Yes,
    /// The packet does not match.
    No,
    /// There is no filter: the compiler rejects the expression.
    Refused,
}

/// An expression and a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// A `LINKTYPE_` number.
    pub link_type: u16,
    /// The expression.
    pub text: &'static str,
    /// Name of the packet.
    pub name: &'static str,
    /// The packet, with its length on the wire.
    pub packet: Captured,
    /// Whether the packet comes from an interface, where the receiver strips the outer VLAN tag.
    pub live: bool,
    /// Answer of the dialect `weir`.
    pub weir: Verdict,
    /// Answer of the dialect `pcap`.
    pub pcap: Verdict,
    /// Answer of libpcap without its optimiser.
    pub libpcap: Verdict,
    /// Answer of libpcap with its optimiser.
    pub optimised: Verdict,
    /// The right answer.
    pub right: Verdict,
    /// The reason.
    pub because: &'static str,
}

impl Verdict {
    /// Converts the answer of a filter; `None`: it did not compile.
    pub fn of(answer: Option<bool>) -> Self {
        match answer {
            None => Self::Refused,
            Some(true) => Self::Yes,
            Some(false) => Self::No,
        }
    }

    fn parse(word: &str) -> Self {
        match word {
            "yes" => Self::Yes,
            "no" => Self::No,
            "refused" => Self::Refused,
            _ => panic!("`{word}` is no verdict"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Refused => "refused",
        })
    }
}

/// Returns all cases.
///
/// # Panics
///
/// If the file is malformed (corpus/cases.txt, which documents its format).
pub fn all() -> Vec<Case> {
    let (mut bytes, mut link_type, mut cases) = (HashMap::new(), None, Vec::new());
    let lines = include_str!("../corpus/cases.txt").lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (number, _name) = header.split_once(' ').expect("a section has a number and a name");
            link_type = Some(number.parse().expect("a section begins with a number"));
        } else if let Some(text) = line.strip_prefix("? ") {
            let mut next = || lines.next().unwrap_or_else(|| panic!("`{text}` is the beginning of a case"));
            let link_type = link_type.expect("a section comes first");
            cases.push(case(link_type, text, [next(), next(), next()], &bytes));
        } else {
            let (name, pieces) = line.split_once(" = ").unwrap_or_else(|| panic!("what is `{line}`?"));
            let pieces = pieces
                .split_whitespace()
                .flat_map(|piece| bytes.get(piece).cloned().unwrap_or_else(|| hexadecimal(piece)));
            let pieces = pieces.collect();
            assert!(bytes.insert(name.trim(), pieces).is_none(), "`{name}` is there twice");
        }
    }
    cases
}

fn case(
    link_type: u16,
    text: &'static str,
    [asked, verdicts, right]: [&'static str; 3],
    bytes: &HashMap<&str, Vec<u8>>,
) -> Case {
    let (name, live) = asked.strip_suffix(" live").map_or((asked, false), |name| (name, true));
    let data = bytes.get(name).unwrap_or_else(|| panic!("there is no packet `{name}`")).clone();
    let length = u32::try_from(data.len()).expect("packets are short");
    let given: HashMap<&str, &str> = verdicts.split(", ").filter_map(|each| each.split_once(": ")).collect();
    let of = |who: &str| Verdict::parse(given.get(who).unwrap_or_else(|| panic!("`{verdicts}` of `{text}`")));
    let (right, because) = right.split_once(": ").unwrap_or_else(|| panic!("why `{right}` of `{text}`?"));
    Case {
        link_type,
        text,
        name,
        packet: Captured { data, length },
        live,
        weir: of("weir"),
        pcap: of("pcap"),
        libpcap: of("libpcap"),
        optimised: of("optimised"),
        right: Verdict::parse(right),
        because,
    }
}

fn hexadecimal(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "`{text}` is half a byte, or a name that is not there");
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16);
    let bytes = (0..text.len()).step_by(2).map(byte).collect::<Result<_, _>>();
    bytes.unwrap_or_else(|_| panic!("`{text}` is neither bytes nor a name"))
}
