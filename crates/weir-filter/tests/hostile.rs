//! Texts made to harm: an answer comes, and soon, whatever is asked.

mod common;

use std::sync::LazyLock;

use common::{Files, options};
use proptest::prelude::*;
use weir_filter::ast::Ast;
use weir_filter::emit::cbpf::{EmitError, Target, emit};
use weir_filter::parse::parse;
use weir_filter::{Beside, Dialect, Error};
use weir_judge::ebpf::can_load;
use weir_judge::{Engines, Kernel, corpus, packets, share};

fn both(text: &str) -> [Result<Ast, Error>; 2] {
    static NAMES: LazyLock<Files> = LazyLock::new(Files::read);
    [Dialect::Weir, Dialect::Pcap].map(|dialect| parse(text, &options(dialect, 1, &*NAMES)))
}

/// What every answer keeps: errors have a place in the text, trees have operands first.
fn check(text: &str) {
    for answer in both(text) {
        match answer {
            Ok(ast) => {
                assert!(ast.terms.iter().all(|term| text.get(term.span.clone()).is_some()), "{text:?}");
            }
            Err(error) => {
                assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error:?}");
                assert!(error.render(text).contains('^'), "{text:?}");
            }
        }
    }
}

/// What is opened again and again, what is inside, and what closes it.
const NESTS: [(&str, &str, &str); 11] = [
    ("(", "tcp", ")"),
    ("not ", "tcp", ""),
    ("!(", "port 80", ")"),
    ("tcp and (", "udp", ")"),
    ("port 80 or (", "81", ")"),
    ("(", "len", ") > 1"),
    ("-", "1 = 1", ""),
    ("ip[", "0", "]"),
    ("1 + (", "1", ")"),
    ("1 / (", "1", ")"),
    ("len & ", "1 = 1", ""),
];

fn nested((open, inside, close): (&str, &str, &str), depth: usize) -> String {
    let text = format!("{}{inside}{}", open.repeat(depth), close.repeat(depth));
    if text.contains("ip[") || text.contains("1 ") && !text.contains('=') { text + " = 1" } else { text }
}

#[test]
fn nesting_is_bounded_by_the_text_alone() {
    const DEPTH: usize = 10_000;
    for nest in NESTS {
        let text = nested(nest, DEPTH);
        let [weir, _] = both(&text);
        assert!(weir.is_ok() || nest == ("(", "len", ") > 1"), "{nest:?}: {:?}", weir.err());
        check(&text[..text.len() - 1]);
        check(&text[..text.len() / 2]);
    }
    assert!(both(&format!("{}tcp{}", "inner(".repeat(DEPTH), ")".repeat(DEPTH)))[0].is_ok());
}

/// What a text may be made of, again and again.
const PARTS: &[&str] = &[
    ")",
    "not ",
    "port 80 and ",
    "ip[",
    "-",
    "- ",
    "a:",
    "::",
    "1:2:",
    "[",
    "\\",
    "\\a ",
    "/",
    "*/",
    "10.1.",
    "1-",
    "@a ",
    "{",
    "{}",
    "in {",
    "let a = ",
    "/*",
    "#",
    "$",
    "é",
    "\u{0}",
    "vlan (",
    "vci (1 or ",
    "1 % ",
    "ip[0] = 1 or ",
    "inner(",
    "net ::/0 and ",
    "portrange 1-2 or ",
    "ether host 1:2:3:4:5:6 or ",
    "let a = tcp; ",
    "host in {1} or ",
];

#[test]
fn long_texts_get_an_answer() {
    const LENGTH: usize = 1 << 16;
    PARTS.iter().for_each(|part| check(&part.repeat(LENGTH / part.len())));
}

#[test]
fn a_megabyte_gets_an_answer() {
    const LENGTH: usize = 1 << 20;
    ["(", "tcp or ", "1 + "].iter().for_each(|part| check(&part.repeat(LENGTH / part.len())));
    check(&format!("port in {{{}}}", "0-65535 ".repeat(LENGTH / 8)));
    check(&format!("host in {{{}}}", "10.0.0.1,".repeat(LENGTH / 9)));
    check(&format!("host {}", "a".repeat(LENGTH)));
    check(&"9".repeat(LENGTH));
}

#[test]
fn names_within_names_stay_within_bounds() {
    let double = |depth: usize| {
        let step = |index: usize| format!("let a{} = a{index} or a{index}; ", index + 1);
        format!("let a0 = tcp; {}a{depth}", (0..depth).map(step).collect::<String>())
    };
    assert!(both(&double(10))[0].is_ok());
    let error = both(&double(64))[0].clone().expect_err("it would have 2^64 terms");
    assert!(error.message.contains("terms"), "{error}");
}

#[test]
fn every_truncation_gets_an_answer() {
    for entry in corpus::pcap().into_iter().chain(corpus::weir()) {
        (0..entry.text.len()).for_each(|end| check(&entry.text[..end]));
    }
}

/// Words that make sense to each other more often than letters do.
fn words() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "tcp",
        "udp",
        "ip",
        "ip6",
        "port",
        "host",
        "net",
        "portrange",
        "proto",
        "src",
        "dst",
        "and",
        "or",
        "not",
        "(",
        ")",
        "[",
        "]",
        "=",
        "!=",
        "<",
        ">",
        "+",
        "-",
        "*",
        "/",
        "%",
        "&",
        "|",
        "^",
        "<<",
        ":",
        "80",
        "10.0.0.1",
        "10.0.0.0/8",
        "::1",
        "1:2:3:4:5:6",
        "ether",
        "vlan",
        "mpls",
        "len",
        "in",
        "{1,2}",
        "@bad",
        "inner(",
        "tunnel",
        "let",
        "a",
        "=",
        ";",
        "#",
        "\n",
        "/*",
        "*/",
        "\\tcp",
        "http",
        "80-90",
        "0",
        "4",
        "mask",
        "255.0.0.0",
        "broadcast",
        "llc",
        "type",
        "subtype",
        "data",
        "vci",
        "opc",
        "byte",
        "less",
    ];
    prop::collection::vec(prop::sample::select(WORDS), 0..30).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_gets_an_answer(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn any_words_get_an_answer(text in words()) {
        check(&text);
    }
}

/// More headers at places that vary, or bytes at such places, than a graph has slots for.
#[test]
fn what_takes_too_many_slots_is_refused() {
    let chains = vec!["ip protochain 6"; 5000].join(" or ");
    let bytes: Vec<String> = (0..35_000).map(|at| format!("ether[ether[{at}]]")).collect();
    let bytes = format!("{} = 1", bytes.join(" + "));
    for (text, dialect, metadata) in
        [(&chains, Dialect::Pcap, Beside::Nothing), (&bytes, Dialect::Weir, Beside::All)]
    {
        let options = weir_filter::Options { metadata, ..options(dialect, 1, &weir_filter::names::NoNames) };
        let error = weir_filter::compile(text, &options).expect_err("it is refused");
        assert!(error.message.starts_with("too many"), "{}", error.message);
    }
}

type Part = fn(usize) -> String;

/// What connects parts, and the parts.
const SHAPES: [(&str, Part); 14] = [
    (" and ", |i| format!("not host 10.0.{}.{}", i / 250, i % 250)),
    (" or ", |i| format!("tcp port {i}")),
    (" or ", |i| format!("(host 10.0.{}.{} and port {i})", i / 250, i % 250)),
    (" or ", |i| format!("(tcp port {i} and not (udp or ip6))")),
    (" and ", |i| format!("not (ip[8] = {} and udp[{}] = {})", i % 256, i % 40, i % 7)),
    (" or ", |i| format!("ether[{i}] & {} = 0", i % 255 + 1)),
    (" or ", |i| format!("ether[ether[{i}]] = {}", i % 256)),
    (" or ", |i| format!("(ip6 host 2001:db8::{i:x} and tcp)")),
    (" or ", |i| format!("portrange {i}-{}", i + 3)),
    (" or ", |i| format!("ip6 protochain {}", i % 256)),
    (" or ", |i| format!("(less {i} and greater {})", i + 3)),
    (" or (", |i| format!("tcp[{i}] = 2 and (udp[{i}] = 1 or port {i})")),
    (" and not ", |i| format!("(vlan {i} or ip)")),
    (" or ", |i| format!("mpls {i}")),
];

/// The same in words that only the dialect `weir` has.
const SHAPES_OF_WEIR: [(&str, Part); 4] = [
    (" or ", |i| format!("host 10.0.{}.{}", i / 250, i % 250)),
    (" or ", |i| format!("inner(port {i} and tcp)")),
    (" or ", |i| format!("(tcp and host in {{10.0.{}.{}, 10.1.1.1}})", i / 250, i % 250)),
    (" ", |i| if i == 0 { "let a = udp[8] = 3; a".to_owned() } else { format!("or (a and ip[8] = {i})") }),
];

fn all_shapes() -> impl Iterator<Item = (Dialect, (&'static str, Part))> {
    let of_weir = SHAPES.into_iter().chain(SHAPES_OF_WEIR).map(|shape| (Dialect::Weir, shape));
    of_weir.chain(SHAPES.map(|shape| (Dialect::Pcap, shape)))
}

fn shaped((joint, part): (&str, Part), parts: usize) -> String {
    let text = (0..parts).map(part).collect::<Vec<_>>().join(joint);
    // What is open is closed.
    let open = text.matches('(').count() - text.matches(')').count();
    text + &")".repeat(open)
}

/// Twice the text takes twice the work. What is made of it is counted: time would depend on the machine.
#[test]
fn graphs_grow_with_the_text() {
    for (dialect, shape) in all_shapes() {
        let size = |parts: usize| {
            let text = shaped(shape, parts);
            let options = options(dialect, 1, &weir_filter::names::NoNames);
            let filter =
                weir_filter::compile(&text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(filter.graph.nodes().len() <= 2 * filter.lowered.nodes().len(), "{text}");
            filter.lowered.nodes().len() + filter.lowered.values().len()
        };
        let [few, more, many] = [25, 50, 100].map(size);
        let steps = (more.saturating_sub(few), many.saturating_sub(more));
        assert!(steps.1 <= 2 * steps.0 + more / 10 + 64, "{dialect:?} {}: {few}, {more}, {many}", shape.1(1));
    }
}

#[test]
fn deep_values_are_shown() {
    const DEPTH: usize = 50_000;
    let text = format!("{}0{} = 1", "ether[".repeat(DEPTH), "]".repeat(DEPTH));
    let options = options(Dialect::Weir, 1, &weir_filter::names::NoNames);
    let filter = weir_filter::compile(&text, &options).expect("it compiles");
    assert!(filter.graph.to_string().contains(&"[".repeat(DEPTH)));
}

/// Every hostile text of which there is a program, of so many parts.
fn hostile(parts: usize) -> Vec<(Dialect, String)> {
    let mut texts: Vec<_> = all_shapes().map(|(dialect, shape)| (dialect, shaped(shape, parts))).collect();
    let doubled = (0..5).map(|index| format!("let a{} = a{index} or not a{index}; ", index + 1));
    texts.push((Dialect::Weir, format!("let a0 = tcp[13] = 2; {}a5", doubled.collect::<String>())));
    let sum = |part: fn(usize) -> String| (0..parts).map(part).collect::<Vec<_>>().join(" + ") + " = 0";
    let sums = [sum(|back| format!("ether[len - {}]", back + 20)), sum(|at| format!("ether[ether[{at}]]"))];
    let deep = format!("{}0{} = 1", "ether[".repeat(parts), "]".repeat(parts));
    let nests = NESTS.map(|nest| nested(nest, parts));
    let more = sums.into_iter().chain([deep]).chain(nests);
    texts.extend(more.flat_map(|text| [(Dialect::Weir, text.clone()), (Dialect::Pcap, text)]));
    texts
}

/// As for files, and as for interfaces, where tags are beside the bytes.
fn through_every_back_end(parts: usize, kernel: Kernel) {
    let packets = packets::fixed(1, 5);
    let mut programs = 0;
    for (dialect, text) in share(2, hostile(parts)) {
        for metadata in [Beside::Nothing, Beside::All] {
            let options = options(dialect, 1, &weir_filter::names::NoNames);
            let options = weir_filter::Options { metadata, ..options };
            let Ok(filter) = weir_filter::compile(&text, &options) else { continue };
            let engines = Engines::new(&filter.lowered, &filter.ast.sets, kernel);
            for packet in &packets {
                engines.verdict(&packet.seen()).unwrap_or_else(|error| panic!("{text:.300}: {error:.3000}"));
            }
            programs += 1;
        }
    }
    assert!(programs > 50, "{programs}");
}

#[test]
fn hostile_texts_go_through_every_back_end() {
    through_every_back_end(20, Kernel::Classic);
}

#[test]
fn root_hostile_texts_go_through_ebpf() {
    if can_load("root_hostile_texts_go_through_ebpf") {
        through_every_back_end(9, Kernel::Full);
    }
}

/// Each term keeps a number of its own until the sum is made.
#[test]
fn sums_of_more_numbers_than_there_is_memory_are_refused() {
    let sum = (0..300).map(|back| format!("ether[len - {}]", back + 20)).collect::<Vec<_>>().join(" + ");
    let options = options(Dialect::Weir, 1, &weir_filter::names::NoNames);
    let options = weir_filter::Options { metadata: Beside::All, ..options };
    let filter = weir_filter::compile(&format!("{sum} = 0"), &options).expect("it compiles");
    for target in [Target::Kernel, Target::Library] {
        assert_eq!(emit(&filter.graph, &filter.ast.sets, target), Err(EmitError::Memory), "{target:?}");
    }
}
