//! Lengths, counts and sequence numbers, and what does not fit.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use weir_flows::export::{
    Account, Element, Encoder, Error, Exported, Fields, Format, Interface, Missed, Sampling, Settings,
};
use weir_flows::{EndReason, Flow, Icmp, Names, Side, Tcp};
use weir_packet::Endpoint;

use crate::decode::{Message, Reader, SCOPE, big};
use crate::made::{DAY, NOW, SECOND, all, echo, large, messages, one_way};

const REVERSE: u32 = 29_305;

fn read(messages: &[Vec<u8>]) -> Vec<Message> {
    let mut reader = Reader::default();
    messages.iter().map(|message| reader.read(message)).collect()
}

#[test]
fn a_message_of_ipfix_is_these_bytes() {
    let fields = "protocolIdentifier,reversePacketDeltaCount,applicationName".parse().expect("known");
    let settings = Settings { fields, domain: 0x0102_0304, message: 600, ..Settings::default() };
    let found = messages(Format::Ipfix, &settings, &[(large(), NOW)]);
    let [message] = &found[..] else { panic!("{found:?}") };
    let template = |id| [0, id, 0, 3, 0, 4, 0, 1, 0x80, 2, 0, 8, 0, 0, 0x72, 0x79, 0, 96, 0xff, 0xff];
    let options = [
        [1, 4, 0, 11],
        [0, 1, 0, 149],
        [0, 4, 0, 41],
        [0, 8, 0, 40],
        [0, 8, 0, 42],
        [0, 8, 0, 163],
        [0, 8, 0, 86],
        [0, 8, 0, 164],
        [0, 8, 0, 135],
        [0, 8, 0, 166],
        [0, 8, 0, 167],
        [0, 8, 0, 168],
    ];
    let expected = [
        &[0, 10, 0, 131, 0x65, 0x53, 0xf1, 0, 0, 0, 0, 0, 1, 2, 3, 4][..],
        &[0, 2, 0, 44],
        &with_one(template(0)),
        &with_one(template(1)),
        &[0, 3, 0, 54],
        options.as_flattened(),
        &[0, 8],
        &[1, 0, 0, 17, 6, 0, 0, 0, 0, 0xb2, 0xd0, 0x5e, 0, 3],
        b"tls",
    ]
    .concat();
    assert_eq!(message, &expected);
}

/// IDs of templates begin at 256.
fn with_one(mut template: [u8; 20]) -> [u8; 20] {
    template[0] = 1;
    template
}

#[test]
fn templates_come_first_and_again_and_the_sequence_counts_what_it_should() {
    // A flow each second; a message has room for a few.
    let flows: Vec<_> =
        (0..200).map(|index| (all()[index % 5].clone(), NOW + index as u64 * SECOND)).collect();
    for (format, repeat) in [
        (Format::Ipfix, None),
        (Format::Ipfix, Some(Duration::from_secs(50))),
        (Format::Netflow9, None),
        (Format::Netflow9, Some(Duration::from_secs(50))),
    ] {
        let interface =
            |index| Interface { index, name: format!("eth{index}"), description: "up".repeat(90) };
        let settings = Settings {
            fields: Fields::all(),
            interfaces: vec![interface(3), interface(4)],
            sampling: Some(Sampling::FlowsOneIn(NonZeroU32::new(4).expect("not 0"))),
            message: 1400,
            repeat,
            ..Settings::default()
        };
        let messages = messages(format, &settings, &flows);
        assert!(messages.iter().all(|message| message.len() <= 1400));
        let read = read(&messages);
        let with_templates = read.iter().filter(|message| message.templates > 0).count();
        match repeat {
            None => assert_eq!((with_templates, read[0].templates), (1, 5), "{format}"),
            Some(_) => assert!((3..=8).contains(&with_templates), "{format}: {with_templates}"),
        }
        let mut expected = 0;
        for message in &read {
            assert_eq!(message.words[if format == Format::Ipfix { 1 } else { 2 }], expected, "{format}");
            expected += if format == Format::Ipfix { message.records.len() as u64 } else { 1 };
        }
        let options: Vec<_> = read[0].records.iter().filter(|record| record.template >= 258).collect();
        let [first, second, sampling] = &options[..] else { panic!("{options:?}") };
        let scope = if format == Format::Ipfix { (0, 10) } else { (SCOPE, 2) };
        assert_eq!([first, second].map(|record| record.number(scope.0, scope.1)), [3, 4]);
        assert!(first.bytes(0, 82).is_some_and(|name| name.starts_with(b"eth3")));
        if format == Format::Ipfix {
            assert_eq!((sampling.number(0, 149), sampling.number(0, 390)), (0, 4));
            assert_eq!(sampling.bytes(0, 311), Some(&0.25_f64.to_be_bytes()[..]));
            assert_eq!(first.bytes(0, 83).map(<[u8]>::len), Some(180));
        } else {
            assert_eq!((sampling.number(0, 34), sampling.number(0, 35)), (4, 2));
            assert_eq!(first.bytes(0, 83), Some("up".repeat(32).as_bytes()));
        }
    }
}

#[test]
fn a_new_session_begins_with_templates_and_the_account_says_what_was_not_sent() {
    for format in [Format::Ipfix, Format::Netflow9] {
        let settings = Settings { repeat: None, domain: 7, ..Settings::default() };
        let mut encoder = Encoder::new(format, &settings).expect("right");
        let mut files = vec![Vec::new()];
        for file in 0..2 {
            files.push(Vec::new());
            let is_sent = file == 0;
            let mut send = |message: &[u8]| {
                files[file].push(message.to_vec());
                is_sent
            };
            encoder.add(&large(), NOW, &mut send);
            encoder.restart(NOW, &mut send);
        }
        let missed = Missed { flows: 1, packets: 2, bytes: 100 };
        let account = Account { flows: 5, packets: 9, ignored_packets: 6, lost_packets: 7, missed };
        let mut send = |message: &[u8]| {
            files[2].push(message.to_vec());
            true
        };
        encoder.account(&account, NOW, &mut send);
        encoder.flush(NOW, &mut send);
        for file in &files[..3] {
            let read = read(file);
            assert_eq!((read.len(), read[0].templates, read[0].records.last().map(|_| ())), (1, 3, Some(())));
            assert_eq!(read[0].words[if format == Format::Ipfix { 1 } else { 2 }], 0);
        }
        assert_eq!(files[0], files[1], "one file is as the other");
        let Exported { sent, unsent, .. } = encoder.exported();
        let records = if format == Format::Ipfix { 1 } else { 2 };
        assert_eq!((unsent.messages, unsent.records, unsent.packets), (1, records, large().packets()));
        assert_eq!((sent.messages, sent.records, sent.bytes), (2, records, large().bytes()));
        let last = &read(&files[2])[0].records[0];
        let told = |number| last.number(0, number);
        assert_eq!([40, 41, 42].map(told), [files[0][0].len() as u64, 1, records], "{format}");
        if format == Format::Ipfix {
            assert_eq!([149, 163, 86, 164, 135].map(told), [7, 5, 9, 6, 7]);
            assert_eq!([166, 167, 168].map(told), [2, large().packets() + 2, large().bytes() + 100]);
        }
    }
}

#[test]
fn what_waits_when_a_session_breaks_is_in_the_next_behind_the_templates() {
    let settings = Settings { repeat: None, message: 65_535, ..Settings::default() };
    let mut encoder = Encoder::new(Format::Ipfix, &settings).expect("right");
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut send = |message: &[u8]| {
        first.push(message.to_vec());
        true
    };
    encoder.resume(NOW, &mut send);
    encoder.add(&large(), NOW, &mut send);
    encoder.flush(NOW, &mut send);
    encoder.add(&large(), NOW, &mut send);
    let mut send = |message: &[u8]| {
        second.push(message.to_vec());
        true
    };
    encoder.resume(NOW, &mut send);
    encoder.add(&large(), NOW, &mut send);
    encoder.flush(NOW, &mut send);
    assert_eq!(first[0], second[0], "templates, from sequence 0");
    // One flow in the first session, two in the second; templates once in each.
    let told = |messages: &[Vec<u8>]| {
        read(messages)
            .iter()
            .map(|message| (message.templates, message.records.len(), message.words[1]))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&first), [(3, 0, 0), (0, 1, 0)]);
    assert_eq!(told(&second), [(3, 0, 0), (0, 2, 0)]);
    assert_eq!((encoder.exported().sent.records, encoder.exported().unsent.records), (3, 0));
}

#[test]
fn messages_are_as_full_as_the_limit_allows() {
    let flows: Vec<_> = (0..60).map(|_| (large(), NOW)).collect();
    for format in [Format::Ipfix, Format::Netflow9] {
        let align = if format == Format::Ipfix { 1 } else { 4 };
        for limit in 300..330 {
            let settings = Settings { uniflow: true, message: limit, ..Settings::default() };
            let messages = messages(format, &settings, &flows);
            let read = read(&messages);
            let mut full = 0;
            for (message, read) in messages.iter().zip(&read).take(messages.len() - 1) {
                assert!(message.len() <= limit);
                if read.templates == 0 {
                    let records = read.records.len();
                    let length: usize = read.records[0].values.iter().map(|(_, value)| value.len()).sum();
                    let header = if format == Format::Ipfix { 16 } else { 20 };
                    let of = |records: usize| header + (4 + records * length).next_multiple_of(align);
                    assert_eq!(message.len(), of(records));
                    assert!(of(records + 1) > limit, "{format}, {limit}");
                    full += 1;
                }
            }
            assert!(full > 5);
        }
    }
}

#[test]
fn padding_is_not_taken_for_records() {
    for fields in ["ipVersion", "ipVersion,vlanId", "ipVersion,vlanId,protocolIdentifier"] {
        let fields = fields.parse().expect("known");
        let settings = Settings { fields, message: 130, ..Settings::default() };
        let flows: Vec<_> = all().into_iter().map(|flow| (flow, NOW)).collect();
        let records: usize = read(&messages(Format::Netflow9, &settings, &flows))
            .iter()
            .map(|message| message.records.len())
            .sum();
        assert_eq!(records, 9);
    }
}

/// Reads NetFlow v5: the header's words, and packets, bytes, times, addresses of each record.
fn read5(message: &[u8]) -> (Vec<u64>, Vec<[u64; 6]>) {
    let count = big(&message[2..4]);
    assert_eq!((big(&message[..2]), message.len() as u64), (5, 24 + 48 * count));
    let record = |record: &[u8]| [16, 20, 24, 28, 0, 4].map(|at| big(&record[at..at + 4]));
    (message[4..20].chunks(4).map(big).collect(), message[24..].chunks(48).map(record).collect())
}

#[test]
fn v5_splits_counts_beyond_32_bits_and_refuses_ipv6() {
    let mut huge = large();
    (huge.sides[1].packets, huge.sides[1].bytes) = (9, 300 * u64::from(u32::MAX) + 1);
    let mut encoder = Encoder::new(Format::Netflow5, &Settings::default()).expect("right");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut send = |message: &[u8]| {
        messages.push(message.to_vec());
        true
    };
    for flow in [one_way(), huge.clone(), echo(true)] {
        encoder.add(&flow, NOW, &mut send);
    }
    encoder.flush(NOW, &mut send);
    let refused = encoder.exported().refused;
    assert_eq!((refused.records, refused.packets), (3, 2 + 6));
    assert_eq!(refused.bytes, 200 + 504 + 44 * u64::from(u32::MAX) + 1);
    let mut sums = [[0; 3]; 2];
    let mut sequence = 0;
    for message in &messages {
        let (words, records) = read5(message);
        assert_eq!(words[3], sequence);
        sequence += records.len() as u64;
        for [packets, bytes, _, _, from, _] in records {
            let sum = &mut sums[usize::from(from != 0xc000_0201)];
            *sum = [sum[0] + 1, sum[1] + packets, sum[2] + bytes];
        }
    }
    let [forth, back] = huge.sides.map(|side| [side.packets, side.bytes]);
    assert_eq!(sums[0], [forth[1].div_ceil(u32::MAX.into()), forth[0], forth[1]]);
    assert_eq!(sums[1], [256, back[0], 256 * u64::from(u32::MAX)]);
    assert_eq!(encoder.exported().sent.records, sequence);
}

#[test]
fn the_header_of_v5_names_its_engine_and_the_sampling() {
    for (sampling, bytes) in [
        (Sampling::OneIn(NonZeroU32::new(100).expect("not 0")), [0x40, 100]),
        (Sampling::FlowsOneIn(NonZeroU32::new(16_383).expect("not 0")), [0xbf, 0xff]),
        (Sampling::Probability(0.03), [0x80, 33]),
        (Sampling::Probability(1.0), [0x80, 1]),
    ] {
        let settings = Settings { domain: 0x0102, sampling: Some(sampling), ..Settings::default() };
        let found = messages(Format::Netflow5, &settings, &[(echo(false), NOW)]);
        assert_eq!(found[0][20..24], [0, 2, bytes[0], bytes[1]]);
    }
    let sampling = Some(Sampling::OneIn(NonZeroU32::new(16_384).expect("not 0")));
    let error = Encoder::new(Format::Netflow5, &Settings { sampling, ..Settings::default() });
    assert_eq!(error.err(), Some(Error::Sampling { interval: 16_384 }));
}

#[test]
fn what_a_format_cannot_do_is_refused_with_advice() {
    let error =
        |format, settings: &Settings| Encoder::new(format, settings).expect_err("too much").to_string();
    for format in Format::ALL {
        let small = Settings { message: 70, ..Settings::default() };
        assert!(error(format, &small).starts_with("cannot export in messages of 70 bytes: one needs up to "));
        // What the error says is right.
        let Err(Error::MessageTooSmall { least, .. }) = Encoder::new(format, &small) else { panic!() };
        let exact = Settings { message: least, ..small.clone() };
        let flows: Vec<_> = all().into_iter().map(|flow| (flow, NOW)).collect();
        let messages = messages(format, &exact, &flows);
        assert!(messages.iter().all(|message| message.len() <= least));
        assert!(Encoder::new(format, &Settings { message: least - 1, ..small }).is_err());
    }
    let fields = "flowEndReason".parse().expect("known");
    let none = Settings { fields, ..Settings::default() };
    assert!(error(Format::Netflow9, &none).ends_with("it has none of them; try IPFIX"));
    let fields = "reverseOctetDeltaCount,biflowDirection".parse().expect("known");
    let reverse = Settings { fields, ..Settings::default() };
    assert!(Encoder::new(Format::Ipfix, &reverse).is_ok());
    let uniflow = Settings { uniflow: true, ..reverse };
    assert!(error(Format::Ipfix, &uniflow).starts_with("cannot export these fields for one direction: "));
    let rare = Settings { sampling: Some(Sampling::Probability(1e-5)), ..Settings::default() };
    assert!(error(Format::Netflow5, &rare).contains("one in 100000 packets"));
    assert!(Encoder::new(Format::Netflow9, &rare).is_ok());
    let beyond: Vec<_> = Fields::basic().beyond_netflow9().map(|element| element.name).collect();
    assert_eq!(beyond, ["flowEndReason"]);
}

fn side(is_v6: bool) -> impl Strategy<Value = Side> {
    let address = any::<[u8; 16]>().prop_map(move |bytes| match is_v6 {
        true => IpAddr::from(bytes),
        false => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
    });
    // Counts of any size, not only of the largest; sums of them fit into 64 bits.
    let count = || (any::<u64>(), 8_u32..64).prop_map(|(number, shift)| number >> shift);
    let rest = (any::<Option<[u8; 6]>>(), any::<[u16; 2]>(), any::<[u8; 2]>(), any::<u8>());
    (address, any::<u16>(), count(), count(), rest).prop_map(
        |(address, port, packets, bytes, (mac, lengths, ttls, tos))| Side {
            end: Endpoint { address, port },
            mac,
            packets,
            bytes: if packets == 0 { 0 } else { bytes },
            lengths,
            ttls,
            tos,
        },
    )
}

fn flow() -> impl Strategy<Value = Flow> {
    let sides = any::<bool>().prop_flat_map(|is_v6| [side(is_v6), side(is_v6)]);
    let time = prop_oneof![0..400 * DAY, Just(u64::MAX), Just(0)];
    let names = proptest::option::of((prop_oneof![Just("http"), Just("tls"), Just("dns")], "\\PC{0,300}"));
    let tcp = proptest::option::of((any::<[u8; 2]>(), any::<[Option<u32>; 2]>(), any::<[u32; 2]>()));
    let numbers = (any::<u16>(), any::<u8>(), any::<Option<u16>>(), any::<Option<u32>>());
    (sides, numbers, time.clone(), time, names, tcp, any::<Option<(u8, u8)>>()).prop_map(
        |(sides, (interface, protocol, vlan, tunnel), first, last, names, tcp, icmp)| Flow {
            interface,
            sides,
            protocol,
            vlan,
            tunnel,
            first,
            last,
            lost: 0,
            reason: EndReason::Idle,
            icmp: icmp.map(|(kind, code)| Icmp { kind, code }),
            tcp: tcp.map(|(flags, initial_sequences, retransmissions)| Tcp {
                flags,
                initial_sequences,
                retransmissions,
                zero_windows: [0; 2],
                handshake: [None; 2],
            }),
            names: names.map(|(protocol, name)| Box::new(Names { protocol, name: Some(name), ja4: None })),
        },
    )
}

fn fields() -> impl Strategy<Value = Fields> {
    let names: Vec<_> = Element::ALL.iter().map(|element| element.name).collect();
    // Always something that v9 has, and that is counted here.
    proptest::sample::subsequence(names, 0..Element::ALL.len()).prop_map(|names| {
        let counts = "packetDeltaCount,octetDeltaCount,reversePacketDeltaCount,reverseOctetDeltaCount";
        format!("{counts},{}", names.join(",")).trim_end_matches(',').parse().expect("known")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_flows_become_messages_whose_lengths_and_sums_add_up(
        flows in prop::collection::vec((flow(), 0..400 * DAY), 1..20),
        fields in fields(),
        message in 1330_usize..3000,
        uniflow: bool,
        format in prop_oneof![Just(Format::Ipfix), Just(Format::Netflow9), Just(Format::Netflow5)],
    ) {
        let repeat = Some(Duration::from_secs(5));
        let settings = Settings { fields, message, uniflow, repeat, ..Settings::default() };
        let mut encoder = Encoder::new(format, &settings).expect("right");
        let mut messages: Vec<Vec<u8>> = Vec::new();
        let mut send = |message: &[u8]| {
            messages.push(message.to_vec());
            true
        };
        for (flow, now) in &flows {
            encoder.add(flow, *now, &mut send);
        }
        encoder.flush(0, &mut send);
        prop_assert!(messages.iter().all(|bytes| bytes.len() <= message));
        let (mut packets, mut bytes, mut records) = (0, 0, 0);
        let mut reader = Reader::default();
        for message in &messages {
            if format == Format::Netflow5 {
                for record in read5(message).1 {
                    (records, packets, bytes) = (records + 1, packets + record[0], bytes + record[1]);
                }
                continue;
            }
            for record in reader.read(message).records.iter().filter(|record| record.template < 258) {
                records += 1;
                packets += record.number(0, 2) + record.number(REVERSE, 2);
                bytes += record.number(0, 1) + record.number(REVERSE, 1);
            }
        }
        let Exported { sent, refused, .. } = encoder.exported();
        prop_assert_eq!((sent.records, sent.packets, sent.bytes), (records, packets, bytes));
        let all = flows.iter().fold((0, 0), |(packets, bytes), (flow, _)| {
            (packets + flow.packets(), bytes + flow.bytes())
        });
        prop_assert_eq!((packets + refused.packets, bytes + refused.bytes), all);
    }
}
