//! Expressions for all tests and benchmarks.

/// An expression of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A `LINKTYPE_` number.
    pub link_type: u16,
    /// The expression.
    pub text: &'static str,
}

/// Returns expressions of pcap-filter(7), all of them valid for libpcap 1.10.3.
pub fn pcap() -> Vec<Entry> {
    entries(include_str!("../corpus/pcap.txt"))
}

/// Returns expressions that only the dialect `weir` accepts.
pub fn weir() -> Vec<Entry> {
    entries(include_str!("../corpus/weir.txt"))
}

fn entries(text: &'static str) -> Vec<Entry> {
    let mut link_type = None;
    let mut entries = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (number, _name) = header.split_once(' ').expect("a section has a number and a name");
            link_type = Some(number.parse().expect("a section begins with a number"));
        } else {
            entries.push(Entry { link_type: link_type.expect("a section comes first"), text: line });
        }
    }
    entries
}
