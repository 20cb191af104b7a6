//! Any text is an error or a filter, in both dialects; and a filter has one verdict, before and after the passes and as
//! classic BPF, which the kernel would take.
//!
//! The text ends at the first zero byte; a packet is made of what follows, and those bytes are one, too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_filter::cbpf::Rules;
use weir_filter::emit::cbpf::{Target, emit};
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::names::NoNames;
use weir_filter::{Dialect, Filter, Options};
use weir_judge::Choices;
use weir_judge::packets::{self, Captured};

const LINK_TYPES: [u16; 8] = [1, 113, 276, 101, 0, 9, 105, 127];

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return };
    let rest = bytes.get(end + 1..).unwrap_or_default();
    let link_type = LINK_TYPES[rest.first().map_or(0, |&byte| usize::from(byte)) % LINK_TYPES.len()];
    for dialect in [Dialect::Weir, Dialect::Pcap] {
        let options = Options {
            dialect,
            link_type,
            snap_len: 262_144,
            metadata: false,
            swapped: false,
            netmask: None,
            names: &NoNames,
        };
        match weir_filter::compile(text, &options) {
            Ok(filter) => {
                let made = packets::packet(link_type, &mut Choices::of(rest));
                let plain =
                    Captured { data: rest.to_vec(), length: rest.len().try_into().expect("a short input") };
                agree(&filter, &[made, plain]);
            }
            Err(error) => assert!(text.get(error.span).is_some(), "an error is at a place in the text"),
        }
    }
});

fn agree(filter: &Filter, packets: &[Captured]) {
    let sets = &filter.ast.sets;
    filter.lowered.check(sets).expect("the lowered graph keeps the rules");
    filter.graph.check(sets).expect("the optimised graph keeps the rules");
    let classic = emit(&filter.graph, sets, Target::Kernel).ok();
    if let Some(classic) = &classic {
        classic.check(Rules::Kernel).expect("the kernel takes it");
    }
    for packet in packets {
        let packet = Packet { data: &packet.data, length: packet.length, ..Packet::default() };
        let verdict = Interpreter::new(&filter.lowered, sets).run(&packet);
        assert_eq!(Interpreter::new(&filter.graph, sets).run(&packet), verdict, "{}", filter.text);
        if let Some(classic) = &classic {
            assert_eq!(classic.run(&packet), verdict, "{}", filter.text);
        }
    }
}
