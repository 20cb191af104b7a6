//! Any text is an error or a filter, in both dialects. A filter has one verdict: before and behind the passes, in native code and
//! as classic BPF, which the kernel would take; live and from a file, in the dialect `weir`; and that of libpcap's unoptimised
//! code, in the dialect `pcap`.
//!
//! The text ends at the first zero byte; packets, and what lies beside them, are made of what follows, and those bytes are one,
//! too.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use weir_filter::interpret::Metadata;
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_judge::compiled::{by_libpcap, may_be_mended, options};
use weir_judge::packets::{self, Captured};
use weir_judge::{Choices, Engines, Kernel, Libpcap};

const ETHERNET: u16 = 1;
const LINK_TYPES: [u16; 8] = [ETHERNET, 113, 276, 101, 0, 9, 105, 127];

/// Without it this would not be the test that it is said to be.
fn libpcap() -> &'static Libpcap {
    static LIBPCAP: OnceLock<Libpcap> = OnceLock::new();
    LIBPCAP.get_or_init(|| Libpcap::open().unwrap_or_else(|error| panic!("the judge is missing: {error}")))
}

fuzz_target!(init: { libpcap(); }, |bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let Ok(text) = std::str::from_utf8(&bytes[..end]) else { return };
    let rest = bytes.get(end + 1..).unwrap_or_default();
    let link_type = LINK_TYPES[rest.first().map_or(0, |&byte| usize::from(byte)) % LINK_TYPES.len()];
    let mut choices = Choices::of(rest);
    let plain = Captured { data: rest.to_vec(), length: rest.len().try_into().expect("a short input") };
    let packets = [packets::packet(link_type, &mut choices), plain];
    let meta = packets::metadata(&mut choices);
    for dialect in [Dialect::Weir, Dialect::Pcap] {
        let file = options(dialect, link_type);
        match weir_filter::compile(text, &file) {
            Ok(filter) => {
                let verdicts = verdicts(&filter, packets.each_ref().map(|packet| (packet, Metadata::default())));
                match dialect {
                    Dialect::Pcap => judge(&filter, &file, &packets, verdicts),
                    Dialect::Weir if link_type == ETHERNET => live(&filter, &packets, meta),
                    Dialect::Weir => {}
                }
            }
            Err(error) => assert!(text.get(error.span).is_some(), "an error is at a place in the text"),
        }
    }
});

fn verdicts<const N: usize>(filter: &Filter, packets: [(&Captured, Metadata); N]) -> [bool; N] {
    let engines = Engines::new(&filter.lowered, &filter.ast.sets, Kernel::No);
    packets.map(|(packet, meta)| {
        engines.verdict(&packet.with(meta)).unwrap_or_else(|error| panic!("{}: {error}", filter.text))
    })
}

/// libpcap says the same. What weir refuses it is not asked: it would look names up.
fn judge(filter: &Filter, options: &Options<'_>, packets: &[Captured; 2], verdicts: [bool; 2]) {
    if may_be_mended(options.link_type, &filter.text) {
        return;
    }
    let Ok(program) = by_libpcap(libpcap(), &filter.text, options, false) else { return };
    for (packet, verdict) in packets.iter().zip(verdicts) {
        let judged = program.run(&packet.seen()) != 0;
        assert_eq!(verdict, judged, "`{}`, libpcap, of {packet:02x?}", filter.text);
    }
}

/// A receiver that takes the tag off makes no difference.
fn live(file: &Filter, packets: &[Captured; 2], meta: Metadata) {
    let options = Options { metadata: Beside::All, ..options(Dialect::Weir, ETHERNET) };
    let live =
        weir_filter::compile(&file.text, &options).expect("what compiles for files does for interfaces");
    for packet in packets {
        let [wanted] = verdicts(file, [(packet, meta)]);
        let [found] = match packet.without_tag() {
            Some((without, tag)) => verdicts(&live, [(&without, Metadata { vlan: Some(tag), ..meta })]),
            None => verdicts(&live, [(packet, meta)]),
        };
        assert_eq!(found, wanted, "`{}`, live, of {packet:02x?}", file.text);
    }
}
