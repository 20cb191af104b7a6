//! Files are read back with the reader of the crate `parquet`; weir-cli's tests have DuckDB read them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::Bytes;
use parquet::basic::{Repetition, Type};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use weir::flows::{EndReason, Endpoint, Flow, Names, Side, Tcp};
use weir_columns::{Columns, Encoder, ROWS, Values};

fn side(address: impl Into<IpAddr>, port: u16, packets: u64) -> Side {
    Side {
        end: Endpoint { address: address.into(), port },
        mac: None,
        packets,
        bytes: packets * 100,
        lengths: [40, 1500],
        ttls: [63, 64],
        tos: 8,
    }
}

fn flow(number: u64) -> Flow {
    let low = u8::try_from(number % 250).expect("a byte");
    Flow {
        interface: 0,
        sides: [side([10, 0, 0, low], 4000, number), side([10, 0, 1, 1], 53, 1)],
        protocol: 17,
        vlan: None,
        tunnel: None,
        first: 1_700_000_000_123_456_789 + number,
        last: 1_700_000_001_000_000_000 + number,
        lost: number,
        reason: EndReason::Idle,
        icmp: None,
        tcp: None,
        names: None,
    }
}

fn with_everything() -> Flow {
    let mac = |low| Some([2, 0, 0, 0, 0, low]);
    let [one, other] = [side([0xfe80, 0, 0, 0, 0, 0, 0, 1], 0, 1), side([0_u16; 8], 0, 0)];
    Flow {
        interface: 1,
        sides: [
            Side { mac: mac(1), packets: u64::MAX, bytes: 7, ..one },
            Side { mac: mac(2), bytes: 0, ..other },
        ],
        protocol: 6,
        vlan: Some(4095),
        tunnel: Some(u32::MAX),
        lost: u64::MAX,
        reason: EndReason::NoRoom,
        tcp: Some(Tcp {
            flags: [0x1b, 0x12],
            initial_sequences: [Some(5), None],
            retransmissions: [u32::MAX, 0],
            zero_windows: [0, u16::MAX],
            handshake: [Some(1500), None],
        }),
        names: Some(Box::new(Names {
            protocol: "tls",
            name: Some("\u{1b}ex\u{e4}mple".to_owned()),
            ja4: Some("t13d0203h2_000000000000_000000000000".to_owned()),
        })),
        ..flow(0)
    }
}

fn read(bytes: Vec<u8>) -> SerializedFileReader<Bytes> {
    SerializedFileReader::new(Bytes::from(bytes)).expect("a file of Parquet")
}

fn of<'a>(row: &'a Row, name: &str) -> &'a Field {
    row.get_column_iter().find(|(column, _)| *column == name).expect("a column").1
}

#[test]
fn two_row_groups_have_all_flows() {
    let names = vec!["eth0".to_owned()];
    let mut encoder = Encoder::new("weir", Columns::All).expect("a file");
    let mut bytes = Vec::new();
    let flows: Vec<_> = (0..ROWS as u64 + 10).map(flow).collect();
    let (mut handed, mut steps) = (0, 0);
    for some in flows.chunks(1000) {
        let before = bytes.len();
        encoder.add(some, &names, &mut bytes).expect("room");
        steps += usize::from(bytes.len() > before);
        handed += some.len();
    }
    // The first group was handed over when it was full.
    assert_eq!((handed, steps), (flows.len(), 1));
    encoder.finish(&mut bytes).expect("room");
    let each = bytes.len() / flows.len();
    assert!(each < 60, "{each} bytes for a flow");
    // What docs/flows-at-scale.md has measured of traffic holds for these.
    let mut basic = Vec::new();
    let mut encoder = Encoder::new("weir", Columns::Basic).expect("a file");
    encoder.add(&flows, &names, &mut basic).and_then(|()| encoder.finish(&mut basic)).expect("room");
    let each = basic.len() / flows.len();
    assert!(each < 25, "{each} bytes for a flow");
    let file = read(bytes);
    assert_eq!(file.metadata().num_row_groups(), 2);
    let (mut count, mut packets) = (0, 0);
    for (row, flow) in file.get_row_iter(None).expect("rows").zip(&flows) {
        let row = row.expect("a row");
        let Field::Long(number) = of(&row, "packets") else { panic!("{row}") };
        assert_eq!(of(&row, "src"), &Field::Str(flow.sides[0].end.address.to_string()));
        assert_eq!(of(&row, "first_ns"), &Field::Long(flow.first.cast_signed()));
        count += 1;
        packets += number.cast_unsigned();
    }
    assert_eq!(count, flows.len());
    assert_eq!(packets, flows.iter().map(Flow::packets).sum::<u64>());
}

#[test]
fn values_are_those_of_the_flow_or_null() {
    let names = ["eth0", "eth1"].map(str::to_owned);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new("weir 1", Columns::All).expect("a file");
    let icmp = Flow { protocol: 1, ..flow(4) };
    encoder.add(&[with_everything(), flow(3), icmp], &names, &mut bytes).expect("room");
    encoder.finish(&mut bytes).expect("room");
    let file = read(bytes);
    assert_eq!(file.metadata().file_metadata().created_by(), Some("weir 1"));
    let rows: Vec<_> = file.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
    let text = |text: &str| Field::Str(text.to_owned());
    for (name, [all, few]) in [
        (
            "first",
            [Field::TimestampMicros(1_700_000_000_123_456), Field::TimestampMicros(1_700_000_000_123_456)],
        ),
        ("first_ns", [Field::Long(1_700_000_000_123_456_789), Field::Long(1_700_000_000_123_456_792)]),
        ("interface", [text("eth1"), text("eth0")]),
        ("reason", [text("no_room"), text("idle")]),
        ("proto", [Field::Int(6), Field::Int(17)]),
        ("vlan", [Field::Int(4095), Field::Null]),
        ("tunnel", [Field::Long(0xffff_ffff), Field::Null]),
        ("src", [text("fe80::1"), text("10.0.0.3")]),
        ("dst", [text("::"), text("10.0.1.1")]),
        ("sport", [Field::Null, Field::Int(4000)]),
        ("dport", [Field::Null, Field::Int(53)]),
        ("src_mac", [text("02:00:00:00:00:01"), Field::Null]),
        // More than a signed number can say.
        ("packets", [Field::Long(i64::MAX), Field::Long(4)]),
        ("bytes", [Field::Long(7), Field::Long(400)]),
        ("lost", [Field::Long(i64::MAX), Field::Long(3)]),
        ("dst_to_src_packets", [Field::Long(0), Field::Long(1)]),
        ("src_to_dst_tos", [Field::Int(8), Field::Int(8)]),
        ("src_to_dst_tcp_flags", [text("FSP."), Field::Null]),
        ("src_to_dst_retransmissions", [Field::Long(0xffff_ffff), Field::Null]),
        ("dst_to_src_zero_windows", [Field::Long(65535), Field::Null]),
        ("server_seconds", [Field::Double(0.0015), Field::Null]),
        ("client_seconds", [Field::Null, Field::Null]),
        ("icmp_type", [Field::Null, Field::Null]),
        ("application", [text("tls"), Field::Null]),
        ("name", [text("\u{1b}ex\u{e4}mple"), Field::Null]),
        ("ja4", [text("t13d0203h2_000000000000_000000000000"), Field::Null]),
        ("community_id", [with_everything(), flow(3)].map(|flow| text(&flow.community_id().expect("ports")))),
    ] {
        assert_eq!([of(&rows[0], name), of(&rows[1], name)], [&all, &few], "{name}");
    }
    assert_eq!(of(&rows[2], "community_id"), &Field::Null, "no type is known");
}

#[test]
fn flows_of_a_row_group_are_sorted_by_their_last_packet() {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new("weir", Columns::All).expect("a file");
    // With and without values of optional columns.
    let ends = [5_u64, 1, 4, 2, 3, 9, 0];
    let flows = ends.map(|end| {
        let is_tcp = end % 2 == 0;
        Flow {
            last: 1_700_000_000_000_000_000 + end,
            lost: end,
            vlan: is_tcp.then(|| u16::try_from(end).expect("small")),
            names: is_tcp
                .then(|| Box::new(Names { protocol: "tls", name: Some(format!("name {end}")), ja4: None })),
            ..flow(end)
        }
    });
    encoder
        .add(&flows[..3], &[], &mut bytes)
        .and_then(|()| encoder.add(&flows[3..], &[], &mut bytes))
        .expect("room");
    encoder.finish(&mut bytes).expect("room");
    let file = read(bytes);
    let rows = file.get_row_iter(None).expect("rows").map(|row| row.expect("a row"));
    let mut expected = ends;
    expected.sort_unstable();
    let mut seen = Vec::new();
    for row in rows {
        let Field::Long(end) = *of(&row, "lost") else { panic!("{row}") };
        seen.push(end.cast_unsigned());
        let (vlan, name) = match end % 2 {
            0 => (Field::Int(i32::try_from(end).expect("small")), Field::Str(format!("name {end}"))),
            _ => (Field::Null, Field::Null),
        };
        assert_eq!((of(&row, "vlan"), of(&row, "name")), (&vlan, &name));
        assert_eq!(of(&row, "packets"), &Field::Long(end + 1));
    }
    assert_eq!(seen, expected);
}

#[test]
fn the_documentation_has_every_column_with_its_type() {
    let mut bytes = Vec::new();
    Encoder::new("weir", Columns::All).and_then(|mut encoder| encoder.finish(&mut bytes)).expect("room");
    let file = read(bytes);
    let described: BTreeSet<_> = file
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| {
            let kind = match (column.physical_type(), column.name()) {
                (_, "first" | "last") => "timestamp",
                (Type::INT32, _) => "int32",
                (Type::INT64, _) => "int64",
                (Type::DOUBLE, _) => "double",
                _ => "string",
            };
            let is_optional = column.self_type().get_basic_info().repetition() == Repetition::OPTIONAL;
            (column.name().to_owned(), format!("{kind}{}", if is_optional { ", or null" } else { "" }))
        })
        .collect();
    // `name`, `other` | type | ...; those of both ways are written once.
    let text = include_str!("../../../docs/flows.md");
    let rows = text.split_once("| column |").expect("a table").1.lines().skip(2).map_while(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?, cells.next()?))
    });
    let mut documented = BTreeSet::new();
    for (names, kind) in rows {
        for name in names.split(", ").map(|name| name.trim_matches('`')) {
            let both = ["src_to_dst_", "dst_to_src_"].map(|way| name.replace("WAY_", way));
            documented.extend(both.map(|name| (name, kind.to_owned())));
        }
    }
    assert_eq!(documented, described);
    // What the library says of the columns is what the file has.
    let said = Columns::All.described().map(|column| {
        let kind = match column.values {
            Values::Times => "timestamp",
            Values::Int32 => "int32",
            Values::Int64 => "int64",
            Values::Doubles => "double",
            Values::Texts => "string",
        };
        (column.name.to_owned(), format!("{kind}{}", if column.is_optional { ", or null" } else { "" }))
    });
    assert_eq!(said.collect::<BTreeSet<_>>(), described);
    // `columns=basic` leaves out `name`, `other`.
    let without = text.split_once("`columns=basic` leaves out ").expect("a sentence").1;
    let without = without.split_once(". ").expect("an end").0;
    let mut left = BTreeSet::new();
    for name in without.split(['`', ',', ' ', '\n']).filter(|name| !name.is_empty() && *name != "and") {
        left.extend(["src_to_dst_", "dst_to_src_"].map(|way| name.replace("WAY_", way)));
    }
    let names = |which: Columns| which.described().map(|column| column.name.to_owned());
    let basic: BTreeSet<_> = names(Columns::Basic).collect();
    assert_eq!(names(Columns::All).filter(|name| !basic.contains(name)).collect::<BTreeSet<_>>(), left);
}
