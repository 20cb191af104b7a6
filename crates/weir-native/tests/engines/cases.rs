//! Disagreements of the past (`weir_judge::cases`): everybody is asked again, on every machine.

use weir_filter::interpret::{Metadata, Packet};
use weir_filter::{Beside, Dialect, Options};
use weir_judge::cases::{self, Case, Verdict};
use weir_judge::compiled::{by_libpcap, by_libpcap_live, options};
use weir_judge::ebpf::can_load;
use weir_judge::{Engines, Kernel, Libpcap};

/// What weir says, on every machine.
fn ours(case: &Case, dialect: Dialect, packet: &Packet<'_>, kernel: Kernel) -> Verdict {
    let metadata = if case.live { Beside::All } else { Beside::Nothing };
    let options = Options { metadata, ..options(dialect, case.link_type) };
    let filter = weir_filter::compile(case.text, &options).ok();
    Verdict::of(filter.map(|filter| {
        let engines = Engines::new(&filter.lowered, &filter.ast.sets, kernel);
        engines.verdict(packet).unwrap_or_else(|error| panic!("{}: {error}", case.text))
    }))
}

/// What libpcap says. Its programs are run here because they may ask for what lies beside the bytes, and walk in a circle.
fn theirs(case: &Case, packet: &Packet<'_>, optimise: bool) -> Verdict {
    let program = if case.live {
        by_libpcap_live(case.text, optimise)
    } else {
        let libpcap = Libpcap::open().expect("libpcap");
        by_libpcap(&libpcap, case.text, &options(Dialect::Pcap, case.link_type), optimise)
    };
    Verdict::of(program.ok().map(|program| program.run(packet) != 0))
}

fn ask(live: bool, kernel: Kernel) {
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| case.live == live).collect();
    assert!(!cases.is_empty());
    let mut wrong = Vec::new();
    for case in &cases {
        let without = if live { case.packet.without_tag() } else { None };
        let packet = match &without {
            Some((without, tag)) => without.with(Metadata { vlan: Some(*tag), ..Metadata::default() }),
            None => case.packet.seen(),
        };
        for (who, told, found) in [
            ("the dialect weir", case.weir, ours(case, Dialect::Weir, &packet, kernel)),
            ("the dialect pcap", case.pcap, ours(case, Dialect::Pcap, &packet, kernel)),
            ("libpcap", case.libpcap, theirs(case, &packet, false)),
            ("libpcap, optimised", case.optimised, theirs(case, &packet, true)),
        ] {
            if told != found {
                wrong.push(format!("`{}` of {}: {who} says {found}, not {told}", case.text, case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_was_disputed_is_as_the_cases_tell() {
    ask(false, Kernel::Classic);
}

#[test]
fn root_what_was_disputed_is_as_the_cases_tell_on_interfaces() {
    if can_load("root_what_was_disputed_is_as_the_cases_tell_on_interfaces") {
        ask(false, Kernel::Full);
        ask(true, Kernel::Full);
    }
}

#[test]
fn cases_are_disagreements_in_which_weir_is_right() {
    for case in cases::all() {
        let Case { text, weir, pcap, libpcap, optimised, right, because, .. } = case;
        assert_eq!(weir, right, "`{text}`");
        assert!(
            [pcap, libpcap, optimised].iter().any(|verdict| *verdict != right),
            "`{text}`: all are right"
        );
        assert!(
            pcap == libpcap || pcap == right || libpcap == Verdict::Refused,
            "`{text}`: libpcap, parted from for worse"
        );
        assert!(because.len() > 5, "`{text}`: {because}");
    }
}
