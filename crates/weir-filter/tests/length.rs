//! How long classic BPF is, beside what libpcap's optimiser makes: over the corpus, and expression by expression.

mod common;
#[path = "common/packets.rs"]
mod packets;

use packets::{Random, answer};
use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::interpret::Packet;
use weir_filter::{Dialect, compile};
use weir_judge::{Libpcap, Setup, corpus};

/// Longer by more than a tenth, although libpcap's optimiser gives the verdicts of its compiler, and why; `*` is any.
const LONGER: [(&str, &str); 6] = [
    ("* protochain", "libpcap's loop, which the kernel does not take, is unrolled"),
    ("1 1 << ip[8] = 0", "the kernel takes five bits of a shift's distance, so that it needs a factor"),
    ("1 byte 0 & 1", "libpcap's compiler forgets to load the byte"),
    ("1 byte 0 | 1", "libpcap's compiler forgets to load the byte"),
    ("127 ip", "the padding behind a header is added on each way, by libpcap in memory that it writes again"),
    (
        "163 type data",
        "the length of a header may be any number, and large ones are something else to the kernel",
    ),
];

fn reason(link_type: u16, text: &str) -> Option<&'static str> {
    let listed = |part: &str| match part.strip_prefix("* ") {
        Some(part) => text.contains(part),
        None => part == format!("{link_type} {text}"),
    };
    LONGER.iter().find(|(part, _)| listed(part)).map(|(_, reason)| *reason)
}

/// What libpcap compiles; nothing, if it says that nothing matches.
fn libpcap(libpcap: &Libpcap, text: &str, link_type: u16, optimise: bool) -> Option<Program> {
    let setup = Setup { optimise, ..Setup::new(link_type) };
    Some(libpcap.compile(text, &setup).ok()?.classic())
}

fn ours(text: &str, link_type: u16, names: &common::Files) -> Program {
    let options = common::options(Dialect::Pcap, link_type, names);
    let filter = compile(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    emit(&filter.graph, &filter.ast.sets, Target::Kernel).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether the two answer otherwise for some packet: one that has what `plain` asks for, cut anywhere.
fn differ(plain: &Program, optimised: &Program) -> bool {
    let mut random = Random(1);
    (0..2000).any(|_| {
        let mut data = random.bytes(100);
        data[14] = 0x45;
        data[20..22].fill(0);
        answer(plain, &mut data, &mut random);
        (0..=data.len()).any(|length| {
            let packet = Packet { data: &data[..length], length: 100, ..Packet::default() };
            plain.run(&packet) != optimised.run(&packet)
        })
    })
}

#[test]
fn programs_are_no_longer_than_those_of_libpcaps_optimiser() {
    let (judge, names) = (Libpcap::open().unwrap(), common::Files::read());
    let (mut total, mut total_theirs, mut count) = (0, 0, 0);
    let mut unexplained = Vec::new();
    for corpus::Entry { link_type, text } in corpus::pcap() {
        let Some(optimised) = libpcap(&judge, text, link_type, true) else { continue };
        let program = ours(text, link_type, &names);
        let (length, theirs) = (program.len(), optimised.len());
        total += length;
        total_theirs += theirs;
        count += 1;
        if let Some(reason) = reason(link_type, text) {
            println!("{length:4} {theirs:4}  {link_type:3} {text}: {reason}");
            if reason == LONGER[0].1 {
                total -= length;
                total_theirs -= theirs;
                count -= 1;
            } else {
                assert!(length * 10 > theirs * 11, "{link_type} {text} needs no reason any more");
            }
            continue;
        }
        if length * 10 > theirs * 11 {
            let plain = libpcap(&judge, text, link_type, false).expect("it compiles");
            let wrong = differ(&plain, &optimised);
            println!(
                "{length:4} {theirs:4}  {link_type:3} {text}: libpcap's optimiser is {}",
                if wrong { "wrong" } else { "right" }
            );
            if !wrong {
                unexplained.push((link_type, text));
            }
        }
    }
    println!("{count} expressions: {total} instructions, libpcap's {total_theirs}");
    assert!(count >= 300, "{count} expressions");
    assert!(total <= total_theirs, "{total} instructions, libpcap's {total_theirs}");
    assert_eq!(unexplained, []);
}
