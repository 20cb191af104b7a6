//! Regions of an expression have all packets that it accepts, and exact ones no others.

use weir_classify::{Fields, Kind};
use weir_filter::interpret::Interpreter;
use weir_filter::regions::regions;
use weir_filter::{Dialect, Filter};
use weir_judge::choices::Choices;
use weir_judge::compiled::options;
use weir_judge::expressions::{Words, expression};
use weir_judge::{corpus, packets};

fn compiled(text: &str) -> Option<Filter> {
    weir_filter::compile(text, &options(Dialect::Weir, 1)).ok()
}

#[test]
fn regions_have_all_packets_that_an_expression_accepts() {
    let packets = packets::fixed(1, 1000);
    let fields: Vec<Fields> = packets.iter().map(|packet| Fields::of(&packet.data)).collect();
    let random = (0..300).map(|seed| expression(Words::Weir, &mut Choices::seeded(seed)));
    let known =
        corpus::weir().into_iter().filter(|entry| entry.link_type == 1).map(|entry| entry.text.to_owned());
    let (mut exact, mut all) = (0, 0);
    for text in known.chain(random) {
        let Some(filter) = compiled(&text) else { continue };
        let regions = regions(&filter.ast);
        let interpreter = Interpreter::new(&filter.graph, &filter.ast.sets);
        for (packet, fields) in packets.iter().zip(&fields) {
            let accepted = interpreter.run(&packet.seen()) != 0;
            // A prefix needs no more of a cut address than its first bits; a field needs all of them.
            if fields.kind == Kind::Ipv6 && fields.addresses.contains(&None) {
                continue;
            }
            let mut of = regions.iter().filter(|region| region.condition.holds(fields));
            assert!(!accepted || of.clone().next().is_some(), "{text}: no region has {packet:x?}");
            // Where a field is cut off, an alternative that needs it refuses for the others, too.
            let cut = packet.length as usize > packet.data.len();
            assert!(
                accepted || cut || of.all(|region| !region.exact),
                "{text}: a region has {packet:x?}, {fields:?}"
            );
        }
        all += 1;
        exact += usize::from(regions.iter().all(|region| region.exact));
    }
    assert!(exact > 30, "{exact} of {all} expressions need no filter");
}

#[test]
fn an_expression_behind_fields_is_refused_as_without_and_has_a_filter_where_it_is_asked() {
    let random = (0..300).map(|seed| expression(Words::Weir, &mut Choices::seeded(seed)));
    let known = corpus::weir().into_iter().map(|entry| entry.text.to_owned());
    let wrong =
        ["tcp and udp and ah[0] = 1", "tcp host 10.0.0.1", "addr1 host 10.0.0.1 or udp", "tcp prot 80"];
    let wrong = wrong.map(str::to_owned).into_iter();
    let (mut without, mut refused) = (0, 0);
    for text in known.chain(random).chain(wrong.clone()) {
        let options = options(Dialect::Weir, 1);
        match (weir_filter::compile(&text, &options), weir_filter::compile_behind_fields(&text, &options)) {
            (Ok(filter), Ok(behind)) => {
                assert_eq!(behind.regions, regions(&filter.ast), "{text}");
                let asked = behind.regions.iter().any(|region| !region.exact);
                assert_eq!(behind.filter.is_some(), asked, "{text}");
                without += usize::from(!asked);
            }
            (Err(plain), Err(behind)) => {
                assert_eq!(plain, behind, "{text}");
                refused += 1;
            }
            (plain, behind) => panic!("{text}: {plain:?}, but behind fields {behind:?}"),
        }
    }
    assert!(without > 30 && refused >= wrong.len(), "{without} without a filter, {refused} refused");
    // Regions are of the other dialect, in which `port` and VLAN tags mean something else.
    let of_pcap = weir_filter::compile_behind_fields("port 53", &options(Dialect::Pcap, 1)).expect("valid");
    assert!(of_pcap.filter.is_some() && of_pcap.regions.iter().all(|region| !region.exact));
}
