//! Regions of an expression have all packets that it accepts, and exact ones no others.

use weir_classify::{Direction, Fields, Kind};
use weir_filter::interpret::{Interpreter, Metadata};
use weir_filter::regions::regions;
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_judge::choices::Choices;
use weir_judge::compiled::options;
use weir_judge::expressions::{Words, expression};
use weir_judge::{corpus, packets};

/// For packets of which some have a direction.
fn of_weir() -> Options<'static> {
    Options { metadata: Beside::Direction, ..options(Dialect::Weir, 1) }
}

fn compiled(text: &str) -> Option<Filter> {
    weir_filter::compile(text, &of_weir()).ok()
}

/// A random expression, every other time joined to a term that fields decide.
fn random(seed: u64) -> String {
    const TERMS: [&str; 16] = [
        "inbound",
        "outbound",
        "not inbound",
        "vlan",
        "not vlan",
        "vlan 5",
        "not vlan 5",
        "vlan 5 and vlan 7",
        "vlan and vlan in {5, 7-9}",
        "(vlan 5 or outbound)",
        "not (inbound and vlan)",
        "not (vlan or not inbound)",
        "not (outbound or udp)",
        "not (inbound and tcp)",
        "not (inbound and not (outbound or ip))",
        "(inbound and ip or outbound and udp)",
    ];
    let mut choices = Choices::seeded(seed);
    let text = expression(Words::Weir, &mut choices);
    if seed.is_multiple_of(2) {
        return text;
    }
    let term = choices.pick(&TERMS);
    match choices.below(4) {
        0 => term.to_owned(),
        1 => format!("{term} or ({text})"),
        2 => format!("{term} and not ({text})"),
        _ => format!("{term} and {text}"),
    }
}

#[test]
fn regions_have_all_packets_that_an_expression_accepts() {
    let packets = packets::fixed(1, 1000);
    let directions = [None, Some(false), Some(true)].into_iter().cycle();
    let fields = |packet: &[u8], outgoing: Option<bool>| {
        let direction = outgoing.map(|sent| if sent { Direction::Sent } else { Direction::Received });
        Fields { direction, ..Fields::of(packet) }
    };
    let seen: Vec<_> = packets
        .iter()
        .zip(directions)
        .map(|(packet, outgoing)| {
            let seen = packet.with(Metadata::of_direction(outgoing));
            (packet, seen, fields(&packet.data, outgoing))
        })
        .collect();
    let random = (0..600).map(random);
    let known =
        corpus::weir().into_iter().filter(|entry| entry.link_type == 1).map(|entry| entry.text.to_owned());
    let (mut exact, mut all) = (0, 0);
    for text in known.chain(random) {
        let Some(filter) = compiled(&text) else { continue };
        let regions = regions(&filter.ast);
        let interpreter = Interpreter::new(&filter.graph, &filter.ast.sets);
        for (packet, seen, fields) in &seen {
            let accepted = interpreter.run(seen) != 0;
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
    assert!(exact > 80, "{exact} of {all} expressions need no filter");
}

#[test]
fn an_expression_behind_fields_is_refused_as_without_and_has_a_filter_where_it_is_asked() {
    let random = (0..400).map(random);
    let known = corpus::weir().into_iter().map(|entry| entry.text.to_owned());
    let wrong =
        ["tcp and udp and ah[0] = 1", "tcp host 10.0.0.1", "addr1 host 10.0.0.1 or udp", "tcp prot 80"];
    let wrong = wrong.map(str::to_owned).into_iter();
    let (mut without, mut refused) = (0, 0);
    for text in known.chain(random).chain(wrong.clone()) {
        let options = of_weir();
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
