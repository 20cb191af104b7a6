//! What payloads say, where real programs rarely say it: odd names, damaged messages, packets that end early.
#![forbid(unsafe_code)]

use weir_packet::Endpoint;
use weir_parse::bytes::Bytes;
use weir_parse::{Dns, Found, Message, Placed, Reader, Segment, Tls, segments};

/// Puts a payload into a packet (raw IP) from a client's port.
fn packet(protocol: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let port = port.to_be_bytes();
    let header = match protocol {
        6 => [&[0x9c, 0x40][..], &port, &[0; 8], &[0x50, 16, 0, 1, 0, 0, 0, 0]].concat(),
        _ => [&[0x9c, 0x40][..], &port, &short(8 + payload.len()), &[0, 0]].concat(),
    };
    let len = short(20 + header.len() + payload.len());
    let ip = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &header, payload].concat()
}

fn short(len: usize) -> [u8; 2] {
    u16::try_from(len).expect("short").to_be_bytes()
}

/// Returns what a text says.
fn text(placed: Option<&Placed<String>>) -> Option<&str> {
    placed.map(|placed| &*placed.value)
}

const RAW: u16 = weir_packet::link_type::RAW;

/// Returns what the packet says, of which some was cut.
fn read(packet: &[u8], original_len: usize) -> Option<Found> {
    let original_len = u32::try_from(original_len).expect("short");
    let mut reader = Reader::default();
    segments(RAW, packet, original_len).find_map(|segment| reader.read(&segment))
}

fn message(protocol: u8, port: u16, payload: &[u8]) -> Option<Message> {
    let packet = packet(protocol, port, payload);
    read(&packet, packet.len()).map(|found| found.message)
}

fn dns(protocol: u8, payload: &[u8]) -> Option<Dns> {
    match message(protocol, 53, payload)? {
        Message::Dns(dns) => Some(dns),
        other => panic!("{other:?}"),
    }
}

fn tls(payload: &[u8]) -> Option<Tls> {
    match message(6, 4433, payload)? {
        Message::Tls(tls) => Some(tls),
        other => panic!("{other:?}"),
    }
}

/// A response to a query for `example.org`, A, with records that begin with a pointer to that name.
fn response(records: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = vec![0xab, 0xcd, 0x81, 0x80, 0, 1];
    message.extend(short(records.len()));
    message.extend(b"\0\0\0\0\x07example\x03org\0\0\x01\0\x01");
    for (kind, data) in records {
        message.extend([0xc0, 12]);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1, 0, 0, 0x0e, 0x10]);
        message.extend(short(data.len()));
        message.extend(*data);
    }
    message
}

#[test]
fn records_are_written_as_in_a_zone_file() {
    let records: [(u16, &[u8], &str, Option<&str>); 17] = [
        (1, &[192, 0, 2, 1], "A", Some("192.0.2.1")),
        (28, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "AAAA", Some("2001:db8::1")),
        (5, b"\x03www\xc0\x0c", "CNAME", Some("www.example.org")),
        (2, b"\0", "NS", Some(".")),
        (15, b"\0\x0a\x04mail\xc0\x0c", "MX", Some("10 mail.example.org")),
        (16, b"\x06v=spf1\x03a\"\\\0", "TXT", Some(r#""v=spf1" "a\"\\" """#)),
        (33, b"\0\x01\0\x02\x01\xbb\x01a\0", "SRV", Some("1 2 443 a")),
        (12, b"\x05a.b\\c\x01d\0", "PTR", Some(r"a\.b\\c.d")),
        (
            6,
            b"\x01a\0\x01b\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05",
            "SOA",
            Some("a b 1 2 3 4 5"),
        ),
        (65, &[0, 1, 0], "HTTPS", Some("1 .")),
        // The notation is dnspython's, but for needless quotes.
        (
            65,
            &[
                &b"\0\x01\0\0\x01\0\x06\x02h2\x02h3\0\x04\0\x08\xc0\0\x02\x01\xc0\0\x02\x02"[..],
                b"\0\x05\0\x07\0\x05\xfe\r\0\x01\0\0\x06\0\x10 \x01\r\xb8\0\0\0\0\0\0\0\0\0\0\0\x01",
            ]
            .concat(),
            "HTTPS",
            Some(r#"1 . alpn="h2,h3" ipv4hint=192.0.2.1,192.0.2.2 ech=AAX+DQABAA== ipv6hint=2001:db8::1"#),
        ),
        (
            64,
            &[
                &b"\0\x10\x03foo\0\0\0\0\x04\0\x01\0\x03\0\x01\0\r\x02h2\x04f,oo\x04b\\ar\0\x02\0\0"[..],
                b"\0\x03\0\x02\x03U\0\x07\0\x08/q{?dns}\x02\x9b\0\x08hello\xd2\"q",
            ]
            .concat(),
            "SVCB",
            Some(concat!(
                r#"16 foo mandatory=alpn,port alpn="h2,f\\,oo,b\\\\ar" no-default-alpn port=853 dohpath="/q{?dns}" "#,
                r#"key667="hello\210\"q""#
            )),
        ),
        (257, b"\x80\x05issueca.example; a=\"b\"", "CAA", Some(r#"128 issue "ca.example; a=\"b\"""#)),
        (43, &[0x09, 0x43, 13, 2, 0x1f, 0x98], "DS", Some("2371 13 2 1F98")),
        (52, &[3, 1, 1, 0, 0xff], "TLSA", Some("3 1 1 00FF")),
        (4711, &[1], "TYPE4711", None),
        // One byte too few.
        (1, &[192, 0, 2], "A", None),
    ];
    let message = response(&records.map(|(kind, data, ..)| (kind, data)));
    for found in [dns(17, &message), dns(6, &[&short(message.len())[..], &message].concat())] {
        let dns = found.expect("DNS");
        assert_eq!((dns.id, dns.response, dns.rcode.as_deref()), (0xabcd, true, Some("NOERROR")));
        assert_eq!(
            (dns.query.as_deref().map(String::as_str), dns.query_type.as_deref()),
            (Some("example.org"), Some("A"))
        );
        assert_eq!(dns.answers.len(), records.len());
        for (answer, (_, _, kind, data)) in dns.answers.iter().zip(&records) {
            assert_eq!((&*answer.name, answer.ttl), ("example.org", 3600));
            assert_eq!((&*answer.kind, answer.data.as_deref()), (*kind, *data));
        }
    }
}

#[test]
fn a_damaged_message_gives_what_comes_before_the_damage() {
    let whole = response(&[(1, &[192, 0, 2, 1]), (1, &[192, 0, 2, 2])]);
    for len in 0..whole.len() {
        let dns = dns(17, &whole[..len]);
        let Some(dns) = dns else {
            assert!(len < 12, "{len}");
            continue;
        };
        assert_eq!(dns.query.is_some(), len >= 27, "{len}");
        assert_eq!(dns.answers.len(), len.saturating_sub(29) / 16, "{len}");
    }
    let mut looped = whole.clone();
    looped[12..14].copy_from_slice(&[0xc0, 12]);
    assert_eq!(dns(17, &looped).expect("a header").query, None);
    // A name of 256 bytes.
    let long =
        [&whole[..12], &[b"\x3f".as_slice(), &[b'a'; 63]].concat().repeat(4), &[0, 0, 1, 0, 1]].concat();
    assert_eq!(dns(17, &long).expect("a header").query, None);
    let mut failed = whole;
    failed[3] = 0x83;
    assert_eq!(dns(17, &failed).expect("DNS").rcode.as_deref(), Some("NXDOMAIN"));
    failed[3] = 0x8f;
    assert_eq!(dns(17, &failed).expect("DNS").rcode.as_deref(), Some("RCODE15"));
}

/// The upper bits of a result are in the OPT record behind the answers; one among the answers says nothing.
#[test]
fn results_of_dns_have_the_bits_of_edns() {
    let opt = |upper: u8| [&[0, 0, 41, 4, 208][..], &[upper, 0, 0, 0, 0, 0]].concat();
    let table = [
        (7, 1, "BADCOOKIE"),
        (0, 1, "BADVERS"),
        (3, 0, "NXDOMAIN"),
        (6, 1, "BADTRUNC"),
        (8, 1, "RCODE24"),
        (15, 255, "RCODE4095"),
    ];
    for (lower, upper, name) in table {
        let mut message = response(&[(1, &[192, 0, 2, 1])]);
        message[3] = 0x80 | lower;
        message[11] = 1;
        message.extend(opt(upper));
        assert_eq!(dns(17, &message).expect("DNS").rcode.as_deref(), Some(name));
        // Without the record's end.
        assert_eq!(dns(17, &message[..message.len() - 5]).expect("DNS").rcode.as_deref(), Some(name));
    }
    let mut answer = response(&[]);
    answer[7] = 1;
    answer.extend(opt(1));
    assert_eq!(dns(17, &answer).expect("DNS").rcode.as_deref(), Some("NOERROR"));
}

#[test]
fn the_number_of_answers_has_a_limit() {
    let record: (u16, &[u8]) = (1, &[192, 0, 2, 1]);
    for (sent, told) in [(31, 31), (32, 32), (33, 32), (2000, 32)] {
        assert_eq!(dns(17, &response(&vec![record; sent])).expect("DNS").answers.len(), told);
    }
}

/// A client's hello with these extensions.
fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let extension =
        |(kind, data): &(u16, &[u8])| [&kind.to_be_bytes()[..], &short(data.len()), data].concat();
    let extensions: Vec<u8> = extensions.iter().flat_map(extension).collect();
    let body =
        [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &short(extensions.len()), &extensions].concat();
    let message = [&[1, 0][..], &short(body.len()), &body].concat();
    [&[22, 3, 1][..], &short(message.len()), &message].concat()
}

#[test]
fn a_hello_that_ends_early_names_the_server_but_not_the_version() {
    let name: &[u8] = b"\0\x09\0\0\x06a.test";
    let whole =
        hello(&[(10, &[0; 8]), (0, name), (16, b"\0\x0c\x02h2\x08http/1.1"), (43, &[4, 0x7a, 0x7a, 3, 4])]);
    let packet = packet(6, 4433, &whole);
    let start = packet.len() - whole.len();
    // Record, message, version, random, five lengths and the lists, the extension before it.
    let named = 5 + 4 + 2 + 32 + 7 + 2 + 12 + 4 + name.len();
    for len in 11..whole.len() {
        let found = read(&packet[..start + len], packet.len()).expect("a hello");
        assert_eq!((found.protocol, found.at, found.whole), ("tls", Some(start), false));
        let Message::Tls(tls) = found.message else { panic!("a hello") };
        assert_eq!(text(tls.server_name.as_ref()), Some("a.test").filter(|_| len >= named), "{len}");
        assert_eq!(tls.version, None, "{len}");
    }
    let told = tls(&whole).expect("a hello");
    assert_eq!((told.version, text(told.server_name.as_ref())), (Some("TLS 1.3"), Some("a.test")));
    let names: Vec<&str> = told.alpn.iter().map(|name| &*name.value).collect();
    assert_eq!(names, ["h2", "http/1.1"]);
    let tls = tls(&hello(&[])).expect("a hello");
    assert_eq!((tls.version, tls.server_name), (Some("TLS 1.2"), None));
}

#[test]
fn only_what_is_http_is_http() {
    let http = |text: &str| match message(6, 8000, text.as_bytes())? {
        Message::Http(http) => Some(http),
        other => panic!("{other:?}"),
    };
    for text in [
        "",
        "GET / HTTP/1.1",
        "GET / HTTP/2.0\r\n",
        "GET /\r\n",
        "get / HTTP/1.1\r\n",
        "GET  HTTP/1.1\r\n",
        " / HTTP/1.1\r\n",
        "HTTP/1.1 20\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1\r\n",
        "+20 HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 +20 OK\r\n",
    ] {
        assert_eq!(http(text), None, "{text:?}");
    }
    let odd =
        http("GET /a b HTTP/1.0\nHOST:\t one \nHost: two\nno colon\nUser-Agent: cut").expect("a request");
    assert_eq!((text(odd.method.as_ref()), text(odd.path.as_ref())), (Some("GET"), Some("/a b")));
    assert_eq!((text(odd.host.as_ref()), odd.user_agent, odd.version), (Some("one"), None, "HTTP/1.0"));
    let short = http("HTTP/1.1 204 \r\n\r\nContent-Type: body\r\n").expect("a response");
    assert_eq!((short.status, short.reason, short.content_type), (Some(204), None, None));
}

/// An ICMP error quotes a packet, whose payload is not its own; the outer of two packets comes first.
#[test]
fn segments_are_of_the_packet_itself() {
    let query = packet(17, 53, &response(&[]));
    let error = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &query].concat();
    let mut quoting = packet(17, 53, &[]);
    quoting.truncate(20);
    quoting.extend(error);
    quoting[9] = 1;
    let len = short(quoting.len());
    quoting[2..4].copy_from_slice(&len);
    assert_eq!(segments(RAW, &quoting, 0).count(), 0);
    let tunnel = |inner: &[u8]| {
        let len = short(20 + inner.len());
        let header = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 4, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
        [&header[..], inner].concat()
    };
    let inner = tunnel(&tunnel(&query));
    let found = read(&inner, inner.len()).expect("a query");
    assert_eq!((found.protocol, found.at), ("dns", Some(20 + 20 + 28)));
    let frame = [&[2; 12][..], &[8, 0], &[0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0], &[1; 8]].concat();
    let datagram = [&frame[..], &[0, 7, 18, 181, 0, 16, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0], &query].concat();
    let all: Vec<usize> = segments(1, &datagram, 0).map(|segment| segment.payload.at).collect();
    assert_eq!(all, [42], "a frame in VXLAN that is cut");
}

/// A segment of a connection that carries this from `at` on.
fn part<'a>(port: u16, at: usize, payload: &'a [u8]) -> Segment<'a> {
    let end = |port| Endpoint { address: [10, 0, 0, 1].into(), port };
    let sequence = 0xffff_ff00_u32.wrapping_add(u32::try_from(at).expect("short"));
    Segment {
        protocol: 6,
        source: end(port),
        destination: end(4433),
        sequence: Some(sequence),
        payload: Bytes::new(payload, payload.len()).from(0),
    }
}

const HEAD: &str = "GET /a HTTP/1.1\r\nCookie: many\r\nHost: a.test\r\nUser-Agent: me\r\n\r\n";

#[test]
fn a_message_in_several_segments_is_told_with_the_last() {
    let name: &[u8] = b"\0\x09\0\0\x06a.test";
    let hello = hello(&[(10, &[0; 300]), (0, name), (43, &[2, 3, 4])]);
    let call = b"INVITE sip:bob@b.test SIP/2.0\r\nf: <sip:a@a.test>\r\nCall-ID: 7\r\n\r\n";
    for whole in [&hello[..], HEAD.as_bytes(), b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n", call] {
        let alone = Reader::default().read(&part(1, 0, whole)).expect("a message");
        assert!(alone.whole && alone.at == Some(0));
        for cut in 1..whole.len() {
            let (first, second) = whole.split_at(cut);
            let mut reader = Reader::default();
            // Nothing that is wrong: the beginning of a method is none.
            let early = reader.read(&part(1, 0, first));
            assert!(early.iter().all(|early| !early.whole && early.at == Some(0)), "{cut}");
            assert!(early.is_some() || cut < 32, "{cut}");
            // Others come between, and what was there comes again.
            let other = reader.read(&part(2, 0, second));
            assert!(cut < 17 || other.is_none_or(|found| !found.whole), "{cut}");
            assert_eq!(
                reader.read(&part(1, 0, first)).map(|found| found.message),
                early.map(|found| found.message)
            );
            assert_eq!(reader.read(&part(1, cut, &[])), None);
            let (third, fourth) = second.split_at(second.len() / 2);
            if !third.is_empty() {
                assert_eq!(reader.read(&part(1, cut, third)), None);
            }
            let found = reader.read(&part(1, cut + third.len(), fourth)).expect("the end");
            assert_eq!((found.message, found.at), (alone.message.clone(), None), "{cut}");
            assert!(found.whole && found.protocol == alone.protocol);
        }
    }
}

#[test]
fn a_message_of_dns_over_tcp_may_lie_in_several_segments() {
    let message = response(&[(1, &[192, 0, 2, 1])]);
    let whole = [&short(message.len())[..], &message].concat();
    let mut reader = Reader::default();
    assert_eq!(reader.read(&part(53, 0, &whole[..20])), None);
    let found = reader.read(&part(53, 20, &whole[20..])).expect("the end");
    assert_eq!((found.protocol, found.at), ("dns", None));
    let Message::Dns(dns) = found.message else { panic!("DNS") };
    assert_eq!((text(dns.query.as_ref()), dns.answers.len()), (Some("example.org"), 1));
}

#[test]
fn a_gap_ends_the_wait() {
    let (first, second) = HEAD.as_bytes().split_at(30);
    let mut reader = Reader::default();
    for elsewhere in [31, 100, 1 << 31] {
        assert!(reader.read(&part(1, 0, first)).is_some());
        assert_eq!(reader.read(&part(1, elsewhere, second)), None);
        assert_eq!(reader.read(&part(1, 30, second)), None);
    }
    // Another connection of the same ends.
    assert!(reader.read(&part(1, 1 << 21, first)).is_some());
    assert!(reader.read(&part(1, 0, first)).is_some());
    assert!(reader.read(&part(1, 30, second)).is_some_and(|found| found.whole));
    // What was not captured is missing.
    let mut cut = part(1, 0, first);
    cut.payload.len += 5;
    assert!(reader.read(&cut).is_some_and(|found| !found.whole));
    assert_eq!(reader.read(&part(1, 35, &second[5..])), None);
}

/// What was sent before may come again: a part of it, all of it, or with more behind it.
#[test]
fn segments_that_come_again_are_known() {
    let whole = HEAD.as_bytes();
    for (again, at) in [(&whole[..20], 0), (&whole[5..30], 5), (&whole[29..30], 29), (&b"GET /old"[..], 0)] {
        let mut reader = Reader::default();
        // The last: from before the message.
        let from = if again == b"GET /old" { 1000 } else { 0 };
        assert!(reader.read(&part(1, from, &whole[..30])).is_some());
        assert!(reader.read(&part(1, at, again)).is_none_or(|found| !found.whole));
        assert!(reader.read(&part(1, from + 30, &whole[30..])).is_some_and(|found| found.whole), "{at}");
    }
    let mut reader = Reader::default();
    assert!(reader.read(&part(1, 0, &whole[..30])).is_some());
    assert!(reader.read(&part(1, 10, &whole[10..])).is_some_and(|found| found.whole && found.at.is_none()));
}

/// Where one message of DNS ends in a stream, the next begins.
#[test]
fn messages_of_dns_follow_each_other() {
    let message = response(&[(1, &[192, 0, 2, 1])]);
    let one = [&short(message.len())[..], &message].concat();
    let three = one.repeat(3);
    for cut in 1..three.len() {
        let mut reader = Reader::default();
        let told = [(0, &three[..cut]), (cut, &three[cut..])]
            .map(|(at, part_of)| reader.read(&part(53, at, part_of)));
        let found: Vec<_> = told.into_iter().flatten().collect();
        assert!(!found.is_empty(), "{cut}");
        for found in found {
            let Message::Dns(dns) = found.message else { panic!("DNS") };
            assert_eq!((text(dns.query.as_ref()), dns.answers.len()), (Some("example.org"), 1), "{cut}");
        }
    }
    // A capture that begins in the midst of one.
    for from in 3..one.len() - 1 {
        let found = Reader::default().read(&part(53, 0, &three[from..]));
        assert_eq!(found, None, "{from}");
    }
}

/// A hello may be spread over records (RFC 8446, section 5.1), and these over segments.
#[test]
fn a_hello_in_several_records_is_put_together() {
    let whole =
        hello(&[(10, &[0; 30]), (0, b"\0\x09\0\0\x06a.test"), (16, b"\0\x03\x02h2"), (43, &[2, 3, 4])]);
    let message = &whole[5..];
    let record = |part: &[u8]| [&[22, 3, 1][..], &short(part.len()), part].concat();
    let alone = tls(&whole).expect("a hello");
    for cut in 6..message.len() {
        let (first, second) = message.split_at(cut);
        let (second, third) = second.split_at(second.len() / 2);
        let stream: Vec<u8> =
            [first, second, third].into_iter().filter(|part| !part.is_empty()).flat_map(record).collect();
        let told = tls(&stream).expect("a hello");
        assert_eq!(text(told.server_name.as_ref()), text(alone.server_name.as_ref()), "{cut}");
        assert_eq!((told.version, told.alpn.len()), (alone.version, alone.alpn.len()), "{cut}");
        let place = &told.server_name.expect("a name").at;
        let there = String::from_utf8_lossy(&stream[place.clone()]).into_owned();
        assert!(there == "a.test" || place.len() > 6, "{cut}: {there:?}");
        let mut reader = Reader::default();
        let early = reader.read(&part(1, 0, &stream[..cut]));
        assert!(early.is_none_or(|early| !early.whole), "{cut}");
        let found = reader.read(&part(1, cut, &stream[cut..])).expect("the end");
        let Message::Tls(told) = found.message else { panic!("a hello") };
        assert_eq!(text(told.server_name.as_ref()), Some("a.test"), "{cut}");
    }
}

#[test]
fn a_message_that_is_cut_says_so() {
    let message = response(&[(1, &[192, 0, 2, 1])]);
    let packet = packet(17, 53, &message);
    let found = read(&packet[..packet.len() - 3], packet.len()).expect("DNS");
    assert!(!found.whole);
    // The first of two fragments.
    let mut first = packet[..packet.len() - 8].to_vec();
    first[6] = 0x20;
    let len = short(first.len());
    first[2..4].copy_from_slice(&len);
    assert!(read(&first, first.len()).is_some_and(|found| !found.whole));
}

#[test]
fn what_is_kept_has_limits() {
    let (first, second) = HEAD.as_bytes().split_at(30);
    let mut reader = Reader::default();
    for port in 5000..8000 {
        assert!(reader.read(&part(port, 0, first)).is_some());
    }
    let found = (5000..8000).filter(|port| reader.read(&part(*port, 30, second)).is_some());
    assert_eq!(found.collect::<Vec<_>>(), (6024..8000).collect::<Vec<_>>());
    // A head without an end is told when so much of it is there.
    let mut at = first.len();
    assert!(reader.read(&part(1, 0, first)).is_some());
    let found = loop {
        let found = reader.read(&part(1, at, &[b'a'; 1000]));
        at += 1000;
        assert!(at < 20_000, "it ends");
        if let Some(found) = found {
            break found;
        }
    };
    assert!(at > 16_000 && found.at.is_none());
    // A message of DNS that is longer than anybody's is not waited for.
    let long = [&[0xff, 0xff][..], &[0; 20_000]].concat();
    assert_eq!(reader.read(&part(53, 0, &long)), None);
    assert_eq!(reader.read(&part(53, long.len(), &[0; 0xffff + 2 - 20_002])), None);
}

/// Any frame has segments inside of it, or none.
#[test]
fn lengths_that_lie_lead_nowhere() {
    let whole = packet(6, 80, HEAD.as_bytes());
    for at in 0..60 {
        for value in 0..=255 {
            let mut frame = whole.clone();
            frame[at] = value;
            for segment in segments(RAW, &frame, 0) {
                let payload = segment.payload;
                let there = frame.get(payload.at..).unwrap_or_default();
                assert!(there.starts_with(payload.data), "byte {at} = {value}");
            }
        }
    }
    let v4 =
        |len: u8, protocol: u8| [&[0x45, 0, 0, len, 0, 0, 0, 0, 64, protocol, 0, 0][..], &[1; 40]].concat();
    for len in 0..=40 {
        for protocol in [6, 17] {
            let _any = segments(RAW, &v4(len, protocol), 0).count();
        }
    }
}

/// What a value says is where its place is.
#[test]
fn places_are_where_the_text_is() {
    let message = response(&[(1, &[192, 0, 2, 1])]);
    let dns = dns(17, &message).expect("DNS");
    assert_eq!(dns.query.expect("a question").at, 12..25);
    assert_eq!(dns.answers[0].at, 29..45);
    let whole = [&short(message.len())[..], &message].concat();
    match self::message(6, 53, &whole) {
        Some(Message::Dns(dns)) => assert_eq!(dns.query.expect("a question").at, 14..27),
        other => panic!("{other:?}"),
    }
    let hello = hello(&[(10, &[0; 8]), (0, b"\0\x09\0\0\x06a.test"), (16, b"\0\x03\x02h2")]);
    let tls = tls(&hello).expect("a hello");
    for text in [&tls.server_name.expect("a name"), &tls.alpn[0]] {
        assert_eq!(&hello[text.at.clone()], text.as_bytes());
    }
    for head in [HEAD, "HTTP/1.0 404 Not Found\nContent-Type:text/html\n\n"] {
        let Some(Message::Http(http)) = self::message(6, 4433, head.as_bytes()) else { panic!("{head}") };
        let all = [http.method, http.path, http.reason, http.host, http.user_agent, http.content_type];
        let texts: Vec<_> = all.into_iter().flatten().collect();
        assert!(texts.len() == if head == HEAD { 4 } else { 2 }, "{texts:?}");
        for text in texts {
            assert_eq!(&head[text.at.clone()], text.value);
        }
    }
}
