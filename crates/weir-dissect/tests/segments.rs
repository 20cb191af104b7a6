//! The payloads that a line comes by are those that a walk finds without printing.
#![forbid(unsafe_code)]

#[allow(dead_code, reason = "the comparison with tcpdump needs the rest")]
mod lines;

use std::collections::BTreeSet;

use lines::Frame;
use weir_dissect::{Dissector, Names, Options};
use weir_parse::segments;

/// What a walk does otherwise: words of the line, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("l2tp:", "a walk enters no L2TP"),
    ("VXLAN-GPE", "a walk enters no VXLAN-GPE"),
    ("GREv1", "a walk enters no GRE of PPTP"),
    ("rtaf=", "a walk enters no GRE that is routed by its source"),
    ("NSH", "a walk looks behind no service header"),
    ("macsec", "a walk looks behind no MACsec, though some of it is only authenticated"),
    ("AH(", "in IPv4, an authentication header is a protocol for a walk, as it is for filters"),
    ("RT6", "a line has the last destination, of which a checksum is made"),
    ("PPPoE", "a walk takes no PPP whose protocol is in one byte, or that carries MPLS, from PPPoE"),
    ("(invalid)", "a walk believes the EtherType, whatever version a header says"),
    ("[|nflog]", "a line wants the whole attribute"),
    ("MPLS (label 16", "tcpdump enters no pseudowire that begins with a control word"),
    ("V.0 DLT UNKNOWN", "for tcpdump, PPI is in front of fewer link types"),
    ("unknown PPP protocol", "in HDLC's frame, tcpdump knows no protocol of PPP in one byte"),
];

#[test]
fn a_line_comes_by_the_segments_that_a_walk_finds() {
    let texts = [
        include_str!("cuts.txt"),
        include_str!("frames.txt"),
        include_str!("payloads.txt"),
        include_str!("recorded.txt"),
        include_str!("routers.txt"),
        include_str!("systems.txt"),
    ];
    let mut met = BTreeSet::new();
    for Frame { link_type, original_len, data } in texts.into_iter().flat_map(lines::frames) {
        let (mut line, mut printed) = (Vec::new(), Vec::new());
        let facts = Dissector::new(Options::default()).packet_with_segments(
            &Names::new(),
            link_type,
            &data,
            original_len,
            &mut line,
            &mut |segment| {
                printed.push(format!("{segment:?}"));
                None
            },
        );
        let walked: Vec<_> =
            segments(link_type, &data, original_len).map(|segment| format!("{segment:?}")).collect();
        if printed == walked {
            continue;
        }
        let line = String::from_utf8(line).expect("text");
        let is_macsec = facts.ethertype.is_some() && data.get(12..14) == Some(&[0x88, 0xe5]);
        let listed = |(words, _): &&(&str, &str)| line.contains(words) || *words == "macsec" && is_macsec;
        let Some((words, _)) = DIFFERENCES.iter().find(listed) else {
            panic!("{link_type} {data:02x?}\n{line}\nprinted {printed:#?}\nwalked {walked:#?}")
        };
        met.insert(*words);
    }
    let stale: Vec<_> = DIFFERENCES.iter().filter(|(words, _)| !met.contains(words)).collect();
    assert!(stale.is_empty(), "no longer true: {stale:?}");
}
