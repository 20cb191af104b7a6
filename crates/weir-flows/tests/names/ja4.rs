//! Fingerprints of clients.

use crate::made::{extension, flows, hello, record, segment, server};

const CIPHERS: [u16; 15] = [
    0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d,
    0x002f, 0x0035,
];

/// The example of JA4's specification, with other numbers that mean nothing (RFC 8701) in all lists.
fn example(has_server: bool) -> Vec<u8> {
    let ciphers = [&[0x3a3a][..], &CIPHERS].concat();
    let versions = extension(0x2b, &[6, 0x5a, 0x5a, 3, 4, 3, 3]);
    let algorithms = extension(0x0d, &[0, 18, 4, 3, 8, 4, 0xfa, 0xfa, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6, 6, 1]);
    let alpn = extension(0x10, b"\0\x0c\x02h2\x08http/1.1");
    let empty = |kind| extension(kind, &[]);
    let mut extensions = vec![
        empty(0x6a6a),
        empty(0x1b),
        empty(0x33),
        alpn,
        empty(0x4469),
        empty(0x17),
        empty(0x2d),
        algorithms,
        empty(0x05),
        empty(0x23),
        empty(0x12),
        versions,
        empty(0xff01),
        empty(0x0b),
        empty(0x0a),
        empty(0x15),
        empty(0xeaea),
    ];
    if has_server {
        extensions.insert(3, server("a.example"));
    }
    record(&hello(&ciphers, &extensions))
}

fn of(payload: &[u8]) -> Option<String> {
    let flows = flows(&[(0, &segment(true, 24, 1, payload))]);
    flows.into_iter().find_map(|flow| flow.names?.ja4)
}

#[test]
fn the_example_of_the_specification_has_its_fingerprint() {
    assert_eq!(of(&example(true)).as_deref(), Some("t13d1516h2_8daaf6152771_e5627efa2ab1"));
    assert_eq!(of(&example(false)).as_deref(), Some("t13i1515h2_8daaf6152771_e5627efa2ab1"));
    let old = record(&hello(&CIPHERS[..1], &[]));
    assert_eq!(of(&old).as_deref(), Some("t12i010000_0f2cb44170f4_000000000000"));
    let many = record(&hello(&[7; 120], &[[0xff, 1, 0, 0].repeat(100)]));
    assert_eq!(of(&many).map(|ja4| ja4[..10].to_owned()).as_deref(), Some("t12i999900"));
}

#[test]
fn a_hello_that_ends_early_or_lies_has_no_wrong_fingerprint() {
    let whole = example(true);
    for end in 0..whole.len() {
        assert_eq!(of(&whole[..end]), None, "{end}");
    }
    // The first of a connection counts, as it is behind a request to try again.
    let other = record(&hello(&CIPHERS[..1], &[]));
    let first = segment(true, 24, 1, &whole);
    let second = segment(true, 24, 1 + u32::try_from(whole.len()).expect("short"), &other);
    let flows = flows(&[(0, &first), (0, &second)]);
    let names = flows[0].names.as_ref().expect("a hello");
    assert_eq!(names.ja4.as_deref(), Some("t13d1516h2_8daaf6152771_e5627efa2ab1"));
    // Any byte can be wrong.
    for place in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut wrong = whole.clone();
            wrong[place] = value;
            assert!(of(&wrong).is_none_or(|ja4| ja4.len() == 36), "{place}");
        }
    }
}
