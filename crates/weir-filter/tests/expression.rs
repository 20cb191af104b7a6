//! A program told as an expression, and compiled again, gives the same verdicts.

mod common;

use weir_filter::Dialect;
use weir_filter::cbpf::{NoExpression, Program};
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::interpret::Packet;
use weir_judge::corpus;

fn program(text: &str, names: &common::Files) -> Program {
    let options = common::options(Dialect::Pcap, 1, names);
    let filter = weir_filter::compile(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    emit(&filter.graph, &filter.ast.sets, Target::Kernel).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn the_words_are_those_that_people_type() {
    let names = common::Files::read();
    let told = |text| program(text, &names).expression().unwrap();
    assert_eq!(told("ip"), "ip");
    assert_eq!(told("not arp"), "not (arp)");
    assert_eq!(told("ip src host 10.1.2.3 or arp"), "(ip and ip src host 10.1.2.3) or (not (ip) and arp)");
    assert_eq!(told("ether[100] = 5 and len > 60"), "ether[100:1] = 5 and len > 0x3c");
    assert_eq!(told(""), "");
    assert!(
        told("ip and tcp dst port 80").ends_with("and tcp dst port 80"),
        "{}",
        told("ip and tcp dst port 80")
    );
}

#[test]
fn what_is_told_is_what_was_meant() {
    let names = common::Files::read();
    let frames = weir_judge::packets::fixed(1, 120);
    let mut told = 0;
    for entry in corpus::pcap().into_iter().filter(|entry| entry.link_type == 1) {
        let before = program(entry.text, &names);
        let text = match before.expression() {
            Ok(text) => text,
            Err(NoExpression::Words { .. }) => continue,
            Err(error) => panic!("{}: {error}", entry.text),
        };
        told += 1;
        let after = program(&text, &names);
        for frame in &frames {
            for length in (0..=frame.data.len().min(100)).rev().step_by(3) {
                let data = &frame.data[..length];
                let packet = Packet { data, length: frame.length, ..Packet::default() };
                assert_eq!(before.run(&packet), after.run(&packet), "{}: {text}: {data:x?}", entry.text);
            }
        }
    }
    assert!(told > 250, "{told}");
}
