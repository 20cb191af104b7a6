//! The judge of all walks through a packet: each reader says what it finds in the same frames, and must find what
//! weir-packet finds. What it finds otherwise, on purpose, is in [`DIFFERENCES`] with the reason; any other difference fails,
//! and so does an entry that is no longer true.

mod cases;
#[path = "../steer/frames.rs"]
#[allow(dead_code, reason = "the tests of steering need the rest")]
mod frames;
mod readers;

use std::collections::BTreeSet;

use cases::{Case, cases};
use readers::Reader;

/// Any frame that was cut.
const CUT: &str = "cut";

/// What a reader finds differently: which reader, in which frames (all whose names begin with one of these), and why.
/// Of frames that were cut, a reader may find what it finds in the whole frame.
const DIFFERENCES: &[(Reader, &[&str], &str)] = &[
    (
        Reader::Filter,
        &[
            "upstream MPLS label",
            "MPLS with IPv6",
            "MPLS behind a tag",
            "1 MPLS",
            "2 MPLS",
            "8 MPLS",
            "PPPoE with IPv4",
            "PPPoE with IPv6",
            "PPPoE behind a tag",
        ],
        "labels and the header of a session are tunnels, which `inner(...)` enters",
    ),
    (Reader::Filter, &["tag 9200"], "each kind of tag costs a comparison, and nobody has asked for this one"),
    (
        Reader::Filter,
        &["5 tags", "6 tags", "7 tags"],
        "four tags are looked through: the verifier counts each",
    ),
    (Reader::Filter, &["DCCP", "UDP-Lite"], "`port` is a word of libpcap's, for TCP, UDP and SCTP"),
    (Reader::Filter, &[CUT], "a term needs no more of a header than it asks for"),
    (Reader::Filter, &["IPv4 with a header of 16 bytes"], "a term asks for no length that it does not need"),
    (
        Reader::Filter,
        &["authenticated in IPv6* cut", "atomic fragment of IPv6* cut"],
        "`proto` is also true of the number of an extension header",
    ),
    (Reader::FilterInside, &[CUT], "a term needs no more of a header than it asks for"),
    (Reader::FilterInside, &["VXLAN with SNAP"], "filters do not look behind LLC"),
    (
        Reader::Printed,
        &["PPP with TCP's header compressed once"],
        "the protocol in this header is the number of a connection (RFC 1144), and a line shows what there is",
    ),
    (
        Reader::Printed,
        &["PPP in HDLC, compressed"],
        "for tcpdump, the protocol always has two bytes here; RFC 1662 lets them agree on one",
    ),
    (
        Reader::Printed,
        &["802.11 with HT control", "802.11 with a tag"],
        "tcpdump does not know this field, and no tag behind SNAP",
    ),
    (Reader::Printed, &["PPI with frame relay"], "for tcpdump, PPI is not in front of frame relay"),
    (
        Reader::Printed,
        &["NFLOG* cut"],
        "tcpdump wants the attribute with the packet as a whole; a packet that is cut has its headers nevertheless",
    ),
    (Reader::Printed, &["ARP"], "a line has the addresses that ARP tells"),
    (
        Reader::Printed,
        &["8 tags", "9 MPLS labels", "9 extension headers"],
        "a line ends with the packet, not at a limit",
    ),
    (
        Reader::Printed,
        &[
            "GRE",
            "IP in IP",
            "IPv6 in IP",
            "a first fragment with IP",
            "VXLAN in GRE",
            "3 tunnels",
            "8 tunnels",
            "9 tunnels",
        ],
        "a fact is that of the outermost header that has it: here, one inside",
    ),
    (Reader::Printed, &["DCCP", "UDP-Lite"], "facts have the ports that tcpdump prints"),
    (Reader::Printed, &["IPv4 authenticated"], "a line says what the authentication header is in front of"),
    (Reader::Printed, &["a mobility header", "HIP", "Shim6"], "for tcpdump these headers are the last"),
    (
        Reader::Printed,
        &["authenticated in IPv6* cut at 54", "atomic fragment of IPv6* cut at 54"],
        "a field that is cut is not told in part",
    ),
    (
        Reader::Rewritten,
        &["DCCP", "SCTP", "UDP-Lite"],
        "ports of TCP and UDP are replaced, as the option says",
    ),
    (
        Reader::Rewritten,
        &["a mobility header", "HIP"],
        "these headers have a checksum of their own, which must fit",
    ),
    (
        Reader::Rewritten,
        &[
            "9 extension headers",
            "IPv4 with all options* cut",
            "authenticated in IPv6* cut",
            "atomic fragment of IPv6* cut",
        ],
        "headers that are cut or too many stay as they are, and are counted",
    ),
];

/// How many frames there have to be.
const ENOUGH: usize = 400;

#[test]
fn every_reader_finds_the_same_in_a_packet() {
    let cases = cases();
    assert!(cases.len() >= ENOUGH, "{}", cases.len());
    let mut used = BTreeSet::new();
    let mut unlisted = Vec::new();
    for reader in Reader::ALL {
        if !reader.is_permitted() {
            continue;
        }
        let mut reads = reader.start();
        for Case { name, link, frame, whole } in cases.iter().filter(|case| reader.reads(case.link)) {
            let (found, expected) = (reads(*link, frame), reader.expected(*link, frame));
            if found == expected {
                continue;
            }
            let in_whole = whole.as_ref().map(|whole| reads(*link, whole));
            let is_listed = |part: &str| match (part, in_whole) {
                (CUT, Some(whole)) => found.is_between(expected, whole),
                _ => name.starts_with(part),
            };
            let parts =
                DIFFERENCES.iter().flat_map(|(one, parts, _)| parts.iter().map(move |part| (*one, *part)));
            let mut listed = parts.filter(|(one, part)| *one == reader && is_listed(part)).peekable();
            if listed.peek().is_none() {
                unlisted.push(format!("{reader:?}: {name}\n  found    {found:?}\n  expected {expected:?}"));
            }
            used.extend(listed.map(|(_, part)| (reader as u8, part)));
        }
    }
    assert!(unlisted.is_empty(), "{} differences:\n{}", unlisted.len(), unlisted.join("\n"));
    let all = DIFFERENCES.iter().flat_map(|(one, parts, _)| parts.iter().map(move |part| (*one, *part)));
    let gone: Vec<_> =
        all.filter(|(one, part)| one.is_permitted() && !used.contains(&(*one as u8, *part))).collect();
    assert!(gone.is_empty(), "no longer different: {gone:?}");
}
