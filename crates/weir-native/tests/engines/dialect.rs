//! The dialect `pcap` means what libpcap's unoptimised code does; and every machine answers the same.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use weir_filter::cbpf::Program;
use weir_filter::interpret::{Interpreter, Metadata};
use weir_filter::{Beside, Dialect, Error, Filter, Options};
use weir_judge::compiled::{by_libpcap, is_mended, may_be_mended, options};
use weir_judge::ebpf::can_load;
use weir_judge::expressions::{self, Words};
use weir_judge::packets::{self, Captured};
use weir_judge::{Choices, Engines, Kernel, Libpcap, corpus, share};

const ETHERNET: u16 = 1;

fn compile(text: &str, dialect: Dialect, link_type: u16) -> Result<Filter, Error> {
    weir_filter::compile(text, &options(dialect, link_type))
}

/// What libpcap makes of it; none where the dialect `pcap` means something else on purpose.
fn judge(libpcap: &Libpcap, link_type: u16, text: &str) -> Option<Program> {
    let program = by_libpcap(libpcap, text, &options(Dialect::Pcap, link_type), false);
    (!is_mended(link_type, text)).then(|| program.expect("the corpus is valid"))
}

fn on_every_engine(dialect: Dialect, kernel: Kernel) {
    let libpcap = Libpcap::open().expect("libpcap");
    let mut packets: HashMap<u16, Vec<Captured>> = HashMap::new();
    let only_weir = if dialect == Dialect::Weir { corpus::weir() } else { Vec::new() };
    let mut compiled = 0;
    // To load programs takes long; and so does to compile what looks for tags and tunnels everywhere.
    let parts = match (kernel, dialect) {
        (Kernel::Full, Dialect::Weir) => 8,
        (Kernel::Full, _) | (_, Dialect::Weir) => 4,
        _ => 2,
    };
    for entry in share(parts, corpus::pcap().into_iter().chain(only_weir)) {
        // What a dialect leaves out it refuses; how much that may be is the business of the dialect's own tests.
        let Ok(filter) = compile(entry.text, dialect, entry.link_type) else { continue };
        compiled += 1;
        let engines = Engines::new(&filter.lowered, &filter.ast.sets, kernel);
        let judge =
            if dialect == Dialect::Pcap { judge(&libpcap, entry.link_type, entry.text) } else { None };
        for packet in packets.entry(entry.link_type).or_insert_with(|| packets::fixed(entry.link_type, 60)) {
            let verdict =
                engines.verdict(&packet.seen()).unwrap_or_else(|error| panic!("{entry:?}: {error}"));
            if let Some(judge) = &judge {
                assert_eq!(verdict, judge.run(&packet.seen()) != 0, "{entry:?}, libpcap, of {packet:02x?}");
            }
        }
    }
    assert!(compiled > 500 / usize::from(parts), "{compiled}");
}

/// What the receiver tells beside the bytes, and a tag that it took off, which makes no difference.
fn on_every_engine_with_metadata(dialect: Dialect, kernel: Kernel) {
    let beside = ["inbound", "outbound and tcp", "ifindex 2", "not ifindex 1 and vlan 5", "vlan or inbound"];
    let beside = beside.into_iter().filter(|_| dialect == Dialect::Weir);
    let texts = corpus::pcap().into_iter().chain(corpus::weir()).filter(|entry| entry.link_type == ETHERNET);
    let mut choices = Choices::seeded(7);
    let packets = packets::fixed(ETHERNET, 60);
    let (mut stripped, mut accepted) = (0, 0);
    // As above.
    let parts = if kernel == Kernel::Full { 8 } else { 4 };
    for text in share(parts, texts.map(|entry| entry.text)).into_iter().chain(beside) {
        let options = options(dialect, ETHERNET);
        let Ok(live) = weir_filter::compile(text, &Options { metadata: Beside::All, ..options }) else {
            continue;
        };
        let file = weir_filter::compile(text, &options).ok();
        let engines = Engines::new(&live.lowered, &live.ast.sets, kernel);
        for packet in &packets {
            let meta = packets::metadata(&mut choices);
            let agreed = |packet: &Captured, meta| {
                engines.verdict(&packet.with(meta)).unwrap_or_else(|error| panic!("{text}: {error}"))
            };
            let Some((without, tag)) = packet.without_tag() else {
                accepted += u32::from(agreed(packet, meta));
                continue;
            };
            let verdict = agreed(&without, Metadata { vlan: Some(tag), ..meta });
            if let (Some(file), Dialect::Weir) = (&file, dialect) {
                let whole = Interpreter::new(&file.lowered, &file.ast.sets).run(&packet.with(meta)) != 0;
                assert_eq!(verdict, whole, "`{text}`, live and from a file, of {packet:02x?}");
            }
            stripped += 1;
        }
    }
    assert!(stripped > 50 && accepted > 50, "{stripped}, {accepted}");
}

#[test]
fn every_engine_agrees_on_the_dialect_pcap() {
    on_every_engine(Dialect::Pcap, Kernel::Classic);
    on_every_engine_with_metadata(Dialect::Pcap, Kernel::Classic);
}

#[test]
fn root_ebpf_agrees_on_the_dialect_pcap() {
    if can_load("root_ebpf_agrees_on_the_dialect_pcap") {
        on_every_engine(Dialect::Pcap, Kernel::Full);
        on_every_engine_with_metadata(Dialect::Pcap, Kernel::Full);
    }
}

#[test]
fn every_engine_agrees_on_the_dialect_weir() {
    on_every_engine(Dialect::Weir, Kernel::Classic);
    on_every_engine_with_metadata(Dialect::Weir, Kernel::Classic);
}

#[test]
fn root_ebpf_agrees_on_the_dialect_weir() {
    if can_load("root_ebpf_agrees_on_the_dialect_weir") {
        on_every_engine(Dialect::Weir, Kernel::Full);
        on_every_engine_with_metadata(Dialect::Weir, Kernel::Full);
    }
}

#[test]
fn each_beginning_of_an_expression_is_an_error_or_a_program() {
    let mut beginnings = BTreeSet::new();
    for entry in corpus::pcap().into_iter().chain(corpus::weir()) {
        let ends = entry.text.char_indices().map(|(end, _)| end);
        beginnings.extend(ends.map(|end| (entry.link_type, &entry.text[..end])));
    }
    let packet = packets::fixed(1, 1).swap_remove(0);
    let (mut programs, mut errors) = (0, 0);
    for (link_type, text) in beginnings {
        for dialect in [Dialect::Pcap, Dialect::Weir] {
            match compile(text, dialect, link_type) {
                Ok(filter) => {
                    Interpreter::new(&filter.graph, &filter.ast.sets).run(&packet.seen());
                    programs += 1;
                }
                Err(error) => {
                    assert!(
                        error.span.end <= text.len() && error.span.start <= error.span.end,
                        "{text}: {error:?}"
                    );
                    errors += 1;
                }
            }
        }
    }
    assert!(programs > 1000 && errors > 1000, "{programs} programs, {errors} errors");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(share::cases(400)))]

    #[test]
    fn expressions_made_at_random_mean_what_libpcap_says(
        words in prop::collection::vec(any::<u8>(), 0..60),
        seeds in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..12),
    ) {
        let libpcap = Libpcap::open().expect("libpcap");
        let text = expressions::expression(Words::Pcap, &mut Choices::of(&words));
        prop_assume!(!may_be_mended(ETHERNET, &text));
        let theirs = by_libpcap(&libpcap, &text, &options(Dialect::Pcap, ETHERNET), false);
        let ours = compile(&text, Dialect::Pcap, ETHERNET);
        prop_assert_eq!(theirs.is_ok(), ours.is_ok(), "{}: {:?}, {:?}", text, theirs.err(), ours.err());
        if let (Ok(theirs), Ok(ours)) = (theirs, ours) {
            let engines = Engines::new(&ours.lowered, &ours.ast.sets, Kernel::Classic);
            for seed in &seeds {
                let packet = packets::packet(ETHERNET, &mut Choices::of(seed));
                let verdict = engines.verdict(&packet.seen()).map_err(TestCaseError::fail)?;
                let judged = theirs.run(&packet.seen()) != 0;
                prop_assert_eq!(verdict, judged, "{} for {:02x?}", text, packet);
            }
        }
    }
}

proptest! {
    // Fewer, which are larger: fuzzing (`fuzz_targets/filter.rs`) does the same all the time.
    #![proptest_config(ProptestConfig::with_cases(share::cases(150)))]

    #[test]
    fn every_engine_agrees_on_expressions_made_at_random(
        words in prop::collection::vec(any::<u8>(), 0..60),
        seeds in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..12),
    ) {
        let text = expressions::expression(Words::Weir, &mut Choices::of(&words));
        if let Ok(ours) = compile(&text, Dialect::Weir, ETHERNET) {
            let engines = Engines::new(&ours.lowered, &ours.ast.sets, Kernel::Classic);
            for seed in &seeds {
                let packet = packets::packet(ETHERNET, &mut Choices::of(seed));
                engines.verdict(&packet.seen()).map_err(|report| TestCaseError::fail(format!("{text}: {report}")))?;
            }
        }
    }
}
