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
