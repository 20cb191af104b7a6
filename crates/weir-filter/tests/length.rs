//! How long classic BPF is, beside what libpcap's optimiser makes: over the corpus, and expression by expression.

mod common;

use weir_filter::cbpf::{Instruction, Opcode, Program};
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::graph::{Relation, Width};
use weir_filter::interpret::Packet;
use weir_filter::{Dialect, compile};
use weir_judge::{Libpcap, Setup, corpus};

/// Longer by more than a tenth, although libpcap's optimiser gives the verdicts of its compiler, and why; `*` is any.
const LONGER: [(&str, &str); 7] = [
    ("* protochain", "libpcap's loop, which the kernel does not take, is unrolled"),
    ("1 1 << ip[8] = 0", "the kernel takes five bits of a shift's distance, so that it needs a factor"),
    ("1 byte 0 & 1", "libpcap's compiler forgets to load the byte"),
    ("1 byte 0 | 1", "libpcap's compiler forgets to load the byte"),
    ("127 ip", "the padding behind a header is added on each way, by libpcap in memory that it writes again"),
    (
        "119 tcp port 80",
        "the length of a header may be any number, and large ones are something else to the kernel",
    ),
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
    let program = libpcap.compile(text, &setup).ok()?;
    let instruction = |(code, jt, jf, k)| Instruction { code, jt, jf, k };
    Some(Program { instructions: program.instructions().into_iter().map(instruction).collect() })
}

fn ours(text: &str, link_type: u16, names: &common::Files) -> Program {
    let options = common::options(Dialect::Pcap, link_type, names);
    let filter = compile(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    emit(&filter.graph, &filter.ast.sets, Target::Kernel).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The same numbers each time (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Whether the two answer otherwise for some packet: one that has what `plain` asks for, cut anywhere.
fn differ(plain: &Program, optimised: &Program) -> bool {
    let asked: Vec<(usize, usize, u32)> = plain
        .instructions
        .windows(2)
        .filter(|pair| matches!(pair[1].opcode(), Some(Opcode::Branch(Relation::Equal, _))))
        .filter_map(|pair| match pair[0].opcode() {
            Some(Opcode::LoadAbsolute(width)) => Some((pair[0].k as usize, width as usize, pair[1].k)),
            Some(Opcode::LoadIndirect(width)) => Some((pair[0].k as usize + 20, width as usize, pair[1].k)),
            _ => None,
        })
        .collect();
    let mut random = Random(1);
    (0..2000).any(|_| {
        let mut data: Vec<u8> = (0..100).map(|_| random.below(256).try_into().expect("a byte")).collect();
        data[14] = 0x45;
        data[20..22].fill(0);
        for _ in 0..asked.len().min(8) {
            let (offset, width, number) = asked[random.below(asked.len())];
            if let Some(place) = data.get_mut(offset..).and_then(|rest| rest.get_mut(..width)) {
                place.copy_from_slice(&number.to_be_bytes()[Width::Word as usize - width..]);
            }
        }
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
