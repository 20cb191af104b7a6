//! SIP and DHCP where tshark cannot judge them: cuts, odd notations, segments; and where the values of all protocols are.
#![forbid(unsafe_code)]

use std::ops::Range;

use proptest::prelude::*;
use weir_packet::Endpoint;
use weir_packet::protocol::{TCP, UDP};
use weir_parse::bytes::Bytes;
use weir_parse::{Dhcp, Dhcp6, Found, Message, Placed, Reader, Segment, Sip};

/// A segment to a port; in TCP, it is at this place of the connection.
fn segment(protocol: u8, port: u16, at: usize, payload: &[u8], len: usize) -> Segment<'_> {
    let end = |port| Endpoint { address: [10, 0, 0, 1].into(), port };
    let sequence = Some(u32::try_from(at).expect("short")).filter(|_| protocol == TCP);
    let payload = Bytes::new(payload, len);
    Segment { protocol, source: end(40000), destination: end(port), sequence, payload }
}

fn found(protocol: u8, port: u16, payload: &[u8]) -> Option<Found> {
    Reader::default().read(&segment(protocol, port, 0, payload, payload.len()))
}

fn text(placed: Option<&Placed<String>>) -> Option<&str> {
    placed.map(|placed| &*placed.value)
}

const INVITE: &str = concat!(
    "INVITE sip:bob@b.test;transport=udp SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.9\r\nTo : \"Bob \\\" <x>\" <sip:bob@b.test;a=b>;c=d\r\n",
    "FROM: sip:alice@a.test;tag=19\r\nCall-ID: a84b@10.0.0.9\r\nCSeq:\t314159  INVITE\r\nUser-Agent: probe/1\r\n",
    "Content-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0"
);
const RINGING: &str = concat!(
    "SIP/2.0 180 Ringing now\r\nVia: SIP/2.0/UDP 10.0.0.9\r\nt:\r\n <sip:bob@b.test>\r\nf:  Alice\r\n\t<sip:alice@a.test>;tag=19\r\n",
    "i: a84b@10.0.0.9\r\nCSeq: 314159\r\n INVITE\r\nserver: one \r\n  \r\n\t two\r\nc: text/plain\r\nl: 0\r\n\r\n"
);

fn sip(payload: &str) -> Option<Sip> {
    match found(UDP, 5060, payload.as_bytes())?.message {
        Message::Sip(sip) => Some(sip),
        other => panic!("{other:?}"),
    }
}

/// All texts of a head, in the order of the type.
fn texts(sip: &Sip) -> Vec<&Placed<String>> {
    let all = [&sip.method, &sip.uri, &sip.reason, &sip.from, &sip.to, &sip.call_id];
    let more = [&sip.cseq_method, &sip.user_agent, &sip.server, &sip.content_type];
    all.into_iter().chain(more).flatten().collect()
}

#[test]
fn sip_is_read_with_long_and_compact_names_and_folded_lines() {
    let invite = sip(INVITE).expect("a request");
    let expected = ["INVITE", "sip:bob@b.test;transport=udp", "sip:alice@a.test", "sip:bob@b.test;a=b"];
    let more = ["a84b@10.0.0.9", "INVITE", "probe/1", "application/sdp"];
    let values: Vec<&str> = texts(&invite).iter().map(|text| &*text.value).collect();
    assert_eq!(values, [expected, more].concat());
    assert_eq!((invite.status, invite.cseq.as_deref()), (None, Some(&314159)));
    let ringing = sip(RINGING).expect("a response");
    let expected = ["Ringing now", "sip:alice@a.test", "sip:bob@b.test", "a84b@10.0.0.9", "INVITE"];
    let values: Vec<&str> = texts(&ringing).iter().map(|text| &*text.value).collect();
    assert_eq!(values, [&expected[..], &["one two", "text/plain"]].concat());
    assert_eq!((ringing.status, ringing.cseq.as_deref()), (Some(180), Some(&314159)));
    // Where they are; a folded one with the ends of its lines.
    for (head, sip) in [(INVITE, &invite), (RINGING, &ringing)] {
        assert_eq!(&head[sip.cseq.clone().expect("a number").at], "314159");
        for text in texts(sip) {
            let there = head[text.at.clone()].replace("one \r\n  \r\n\t two", "one two");
            assert_eq!(there, text.value);
        }
    }
}

#[test]
fn only_what_is_sip_is_sip() {
    for text in [
        "",
        "\0",
        "\r\n",
        "\r\n\r\n",
        "INVITE sip:b SIP/2.0",
        "INVITE sip:b SIP/3.0\r\n",
        "INVITE sip:b HTTP/1.1\r\n\r\n",
        "INVITE  SIP/2.0\r\n",
        "invite sip:b SIP/2.0\r\n",
        "SIP/2.0 18 Ringing\r\n",
        "SIP/2.0 1800 Ringing\r\n",
        "SIP/2.0 180x\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        assert_eq!(sip(text), None, "{text:?}");
    }
    let odd =
        sip("\r\n\r\nX-ODD any:thing sip/2.0\nFrom: one\nf: two\nCSeq: many\nCSeq: 7\nTo: <cut\n: \n\n");
    let odd = odd.expect("a request");
    assert_eq!((text(odd.method.as_ref()), text(odd.uri.as_ref())), (Some("X-ODD"), Some("any:thing")));
    assert_eq!((text(odd.from.as_ref()), text(odd.to.as_ref())), (Some("one"), Some("cut")));
    assert_eq!((odd.cseq.as_deref(), odd.cseq_method), (Some(&7), None));
    let short = sip("SIP/2.0 200 \r\n\r\nTo: body\r\n").expect("a response");
    assert_eq!((short.status, short.reason, short.to), (Some(200), None, None));
    // Elsewhere, its first words decide, also behind an empty line. Those of HTTP are not changed by a word of SIP.
    for (protocol, port, head, protocol_name) in [
        (UDP, 5062, INVITE, Some("sip")),
        (UDP, 5062, RINGING, Some("sip")),
        (UDP, 5062, "GET / HTTP/1.1\r\n\r\n", None),
        (TCP, 5060, INVITE, Some("sip")),
        (TCP, 80, RINGING, Some("sip")),
        (TCP, 5060, "OPTIONS SIPS:b SIP/2.0\r\n\r\n", Some("sip")),
        (TCP, 5060, "\r\n\r\nINFO tel:1 SIP/2.0\r\n\r\n", Some("sip")),
        (TCP, 5060, "\r\n\r\n", None),
        (TCP, 5060, "OPTIONS / HTTP/1.1\r\n\r\n", Some("http")),
        (TCP, 5060, "HTTP/1.1 200 OK\r\n\r\n", Some("http")),
        (TCP, 5060, "CONNECT sip.test:443 HTTP/1.1\r\n\r\n", Some("http")),
        (TCP, 5060, "\r\nGET / HTTP/1.1\r\n\r\n", None),
    ] {
        let found = found(protocol, port, head.as_bytes());
        assert_eq!(found.map(|found| found.protocol), protocol_name, "{port} {head}");
    }
}

/// A field that may go on in the next line is told when that has begun; HTTP knows no such lines.
#[test]
fn a_cut_head_of_sip_has_the_fields_that_have_ended() {
    for head in [INVITE, RINGING] {
        let whole = sip(head).expect("SIP");
        let mut before = 0;
        for cut in 0..head.len() {
            let found = Reader::default().read(&segment(UDP, 5060, 0, &head.as_bytes()[..cut], head.len()));
            let first = head.find('\n').expect("a line");
            assert_eq!(found.is_some(), cut > first, "{cut}");
            let Some(Found { message: Message::Sip(sip), whole: ended, .. }) = found else { continue };
            assert_eq!(ended, cut >= head.find("\r\n\r\n").expect("its end") + 4);
            let (known, all) = (texts(&sip), texts(&whole));
            assert!(known.iter().all(|text| all.contains(text)), "{cut}: {known:?}");
            assert!(known.len() >= before);
            before = known.len();
        }
        assert_eq!(before, texts(&whole).len());
    }
    let found = found(TCP, 80, b"GET / HTTP/1.1\r\nHost: a\r\n b\r\nUser-Agent: me\r\n").expect("a request");
    let Message::Http(http) = found.message else { panic!("HTTP") };
    assert_eq!((text(http.host.as_ref()), text(http.user_agent.as_ref())), (Some("a"), Some("me")));
}

#[test]
fn sip_over_tcp_may_lie_in_several_segments() {
    let head = ["\r\n\r\n", INVITE].concat();
    let whole = found(TCP, 5060, head.as_bytes()).expect("a message").message;
    for cut in 15..head.find("\r\n\r\nv=0").expect("a body") + 4 {
        let (first, second) = head.as_bytes().split_at(cut);
        let mut reader = Reader::default();
        let early = reader.read(&segment(TCP, 5060, 0, first, first.len()));
        assert!(early.is_none_or(|found| !found.whole && found.protocol == "sip"), "{cut}");
        let found = reader.read(&segment(TCP, 5060, cut, second, second.len())).expect("its end");
        assert_eq!((found.message, found.at, found.whole), (whole.clone(), None, true), "{cut}");
    }
}

/// A message of DHCP with these options; `sname` and `file` have those others.
fn dhcp_message(options: &[u8], sname: &[u8], file: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..8].copy_from_slice(&[2, 1, 6, 0, 0x12, 0x34, 0x56, 0x78]);
    message[12..28].copy_from_slice(&[10, 0, 0, 8, 10, 0, 0, 9, 0, 0, 0, 0, 10, 0, 0, 4]);
    message[28..34].copy_from_slice(&[2, 0, 0, 0, 0, 0xaa]);
    message[44..44 + sname.len()].copy_from_slice(sname);
    message[108..108 + file.len()].copy_from_slice(file);
    [&message, &[0x63, 0x82, 0x53, 0x63][..], options].concat()
}

fn dhcp(message: &[u8]) -> Option<Dhcp> {
    match found(UDP, 67, message)?.message {
        Message::Dhcp(dhcp) => Some(dhcp),
        other => panic!("{other:?}"),
    }
}

const OPTIONS: &[u8] = concat!(
    "\x35\x01\x05\0\0\x0c\x07printer\x0f\x0bexample.org\x3c\x04MSFT\x51\x11\0\0\0p.example.test\x32\x04\x0a\0\0\x09",
    "\x36\x04\x0a\0\0\x01\x33\x04\0\0\x0e\x10\x01\x04\x0a\0\0\0\x03\x08\x0a\0\0\x01\x0a\0\0\x02\x06\x04\x0a\0\0\x35"
)
.as_bytes();

#[test]
fn dhcp_is_read_as_far_as_it_is_there() {
    let message = dhcp_message(OPTIONS, &[], &[]);
    let all = dhcp(&message).expect("DHCP");
    assert_eq!(all.kind.as_deref().map(|kind| &**kind), Some("ACK"));
    assert_eq!((all.id, all.response, all.next_server.is_none()), (0x1234_5678, true, true));
    assert_eq!(all.lease_seconds.as_deref(), Some(&3600));
    let texts = [&all.host_name, &all.domain, &all.vendor_class, &all.fqdn];
    assert_eq!(
        texts.map(|placed| text(placed.as_ref())),
        ["printer", "example.org", "MSFT", "p.example.test"].map(Some)
    );
    for text in texts.into_iter().flatten() {
        assert_eq!(&message[text.at.clone()], text.as_bytes());
    }
    let some = [&all.client_address, &all.your_address, &all.relay, &all.requested_address, &all.server_id];
    let addresses: Vec<_> =
        some.into_iter().flatten().chain([&all.subnet_mask].into_iter().flatten()).collect();
    let lists: Vec<_> = all.routers.iter().chain(&all.name_servers).collect();
    let last: Vec<u8> = addresses.iter().chain(&lists).map(|placed| placed.octets()[3]).collect();
    assert_eq!(last, [8, 9, 4, 9, 1, 0, 1, 2, 0x35]);
    for address in addresses.iter().chain(&lists) {
        assert_eq!(message[address.at.clone()], address.octets());
    }
    let mac = all.client_mac.clone().expect("an address");
    assert_eq!(message[mac.at], mac.value);
    // Each value is right or missing, and there when its bytes are.
    for cut in 0..message.len() {
        let found = Reader::default().read(&segment(UDP, 67, 0, &message[..cut], message.len()));
        let Some(Found { message: Message::Dhcp(dhcp), whole, .. }) = found else {
            assert!(cut < 8, "{cut}");
            continue;
        };
        assert!(!whole);
        let is_there = |at: &Range<usize>| cut >= at.end;
        for (ours, theirs) in [(&dhcp.host_name, &all.host_name), (&dhcp.fqdn, &all.fqdn)] {
            assert_eq!(ours, &theirs.clone().filter(|text| is_there(&text.at)), "{cut}");
        }
        assert_eq!(dhcp.relay, all.relay.clone().filter(|address| is_there(&address.at)), "{cut}");
        assert_eq!(dhcp.kind, all.kind.clone().filter(|kind| is_there(&kind.at)), "{cut}");
        assert_eq!(dhcp.routers.is_empty(), !is_there(&all.routers[1].at), "{cut}");
    }
    // No cookie; not long enough on the wire; neither request nor reply; a hardware address of 17 bytes.
    let bootp = dhcp(&message[..236]).expect("BOOTP");
    assert_eq!((bootp.kind, bootp.host_name, bootp.id), (None, None, 0x1234_5678));
    assert_eq!(dhcp(&message[..235]), None);
    for (at, byte) in [(0, 0), (0, 3), (2, 17)] {
        let mut other = message.clone();
        other[at] = byte;
        assert_eq!(dhcp(&other), None);
    }
}

#[test]
fn options_of_dhcp_may_be_split_and_elsewhere() {
    // The domain begins among the options and goes on in `file` and `sname`; the end marks of both are obeyed.
    let options =
        b"\x35\x01\x02\x0f\x04exam\x34\x01\x03\x03\x06\x0a\0\0\x01\x0a\0\x03\x02\0\x02\xff\x0c\x01x";
    let (sname, file) = (b"\x0f\x03org\xff\x0c\x01y", b"\0\x0f\x04ple.\x0c\x05host\0\xff\x0c\x01z");
    let message = dhcp_message(options, sname, file);
    let split = dhcp(&message).expect("DHCP");
    assert_eq!(
        (text(split.domain.as_ref()), text(split.host_name.as_ref())),
        (Some("example.org"), Some("host"))
    );
    assert_eq!(&message[split.domain.expect("a domain").at], b"exam");
    assert_eq!(&message[split.host_name.expect("a name").at], b"host");
    let routers: Vec<String> = split.routers.iter().map(|router| router.to_string()).collect();
    assert_eq!(routers, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(message[split.routers[1].at.clone()], [10, 0]);
    // Without the option, these fields are the names of a host and a file.
    let plain = dhcp(&dhcp_message(b"\x35\x01\x02\xff", sname, file)).expect("DHCP");
    assert_eq!((plain.domain, plain.host_name), (None, None));
    let cases: [(&[u8], Option<&str>); 6] = [
        (b"\x51\x14\x04\0\0\x07printer\x07example\0", Some("printer.example")),
        (b"\x51\x0b\x04\0\0\x07printer", Some("printer")),
        (b"\x51\x0a\0\0\0printer", Some("printer")),
        (b"\x51\x0b\x04\0\0\x09printer", None),
        (b"\x51\x04\x04\0\0\0", None),
        (b"\x51\x03\0\0\0", None),
    ];
    for (option, name) in cases {
        let dhcp = dhcp(&dhcp_message(option, &[], &[])).expect("DHCP");
        assert_eq!(text(dhcp.fqdn.as_ref()), name, "{option:?}");
    }
    for (number, name) in [(1, "DISCOVER"), (9, "FORCERENEW"), (18, "TLS"), (0, "TYPE0"), (19, "TYPE19")] {
        let dhcp = dhcp(&dhcp_message(&[53, 1, number], &[], &[])).expect("DHCP");
        assert_eq!(dhcp.kind.as_deref().map(|kind| &**kind), Some(name));
    }
    let long = [&[3, 200][..], &[1; 200]].concat();
    assert_eq!(dhcp(&dhcp_message(&long, &[], &[])).expect("DHCP").routers.len(), 32);
}

fn option6(code: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).expect("short");
    [&code.to_be_bytes()[..], &len.to_be_bytes(), value].concat()
}

/// A message of DHCPv6 with everything that is read; `relays` carry it.
fn dhcp6_message(relays: usize) -> Vec<u8> {
    let address = |last| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[last]].concat();
    let association =
        |code, fixed: usize, inner: &[u8]| option6(code, &[&vec![0; fixed][..], inner].concat());
    let given = |last| option6(5, &[&address(last)[..], &[0; 8]].concat());
    let prefix = option6(26, &[&[0; 8][..], &[56], &address(0)].concat());
    let message = [
        &[7, 0xab, 0xcd, 0xef][..],
        &option6(1, &[0, 3, 0, 1, 2, 0, 0, 0, 0, 0xaa]),
        &association(3, 12, &[given(1), given(2)].concat()),
        &association(4, 4, &given(3)),
        &association(25, 12, &prefix),
        &option6(39, b"\0\x01p\x04test\0"),
        &option6(23, &[address(0x53), address(0x54)].concat()),
        &option6(23, &address(0x55)),
    ];
    let carried = |inner: Vec<u8>, _| {
        let header = [&[13, 0][..], &[0; 32]].concat();
        [header, option6(18, b"eth0"), option6(9, &inner)].concat()
    };
    (0..relays).fold(message.concat(), carried)
}

fn dhcp6(message: &[u8]) -> Option<Dhcp6> {
    match found(UDP, 547, message)?.message {
        Message::Dhcp6(dhcp) => Some(dhcp),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dhcp6_is_read_as_far_as_it_is_there() {
    for relays in [0, 1, 8] {
        let message = dhcp6_message(relays);
        let all = dhcp6(&message).expect("DHCPv6");
        assert_eq!((&*all.kind, all.id, text(all.fqdn.as_ref())), ("REPLY", Some(0xab_cdef), Some("p.test")));
        let duid = all.client_duid.clone().expect("an identifier");
        assert_eq!((duid.value.len(), &message[duid.at]), (10, &duid.value[..]));
        let lists: Vec<_> = all.addresses.iter().chain(&all.name_servers).collect();
        let last: Vec<u8> = lists.iter().map(|placed| placed.octets()[15]).collect();
        assert_eq!(last, [1, 2, 3, 0x53, 0x54, 0x55]);
        for address in lists {
            assert_eq!(message[address.at.clone()], address.octets());
        }
        assert_eq!(all.prefixes[0].to_string(), "2001:db8::/56");
        assert_eq!(message[all.prefixes[0].at.clone()][..3], [56, 0x20, 1]);
        let name = all.fqdn.clone().expect("a name").at;
        assert_eq!(&message[name.clone()], b"\x01p\x04test\0");
        let begins = message.len() - dhcp6_message(0).len();
        for cut in 0..message.len() {
            let found = Reader::default().read(&segment(UDP, 547, 0, &message[..cut], message.len()));
            let Some(Found { message: Message::Dhcp6(dhcp), whole, .. }) = found else {
                assert!(cut == 0 || cut > begins && cut < begins + 4, "{cut}");
                continue;
            };
            assert!(!whole);
            let (kind, id) = if cut > begins { ("REPLY", all.id) } else { ("RELAY-REPL", None) };
            assert_eq!((&*dhcp.kind, dhcp.id), (kind, id), "{cut}");
            assert_eq!(dhcp.fqdn.is_some(), cut >= name.end, "{cut}");
            let count = all.addresses.iter().filter(|address| address.at.end + 8 <= cut).count();
            assert!(dhcp.addresses.len() >= count && all.addresses.starts_with(&dhcp.addresses), "{cut}");
        }
    }
    assert_eq!(dhcp6(&[0; 60]), None);
    assert_eq!(&*dhcp6(&[20, 0x80, 0, 0]).expect("DHCPv6").kind, "DHCPV4-QUERY");
    assert_eq!(dhcp6(&[20, 0x80, 0, 0]).expect("DHCPv6").id, None);
    assert_eq!(dhcp6(&[24, 0, 0, 1]).expect("DHCPv6").kind, "TYPE24");
    // More relays than a message passes.
    assert_eq!(dhcp6(&dhcp6_message(33)).expect("DHCPv6").kind, "RELAY-REPL");
    let many = [&[7, 0, 0, 1][..], &option6(23, &[1; 16 * 40]), &option6(23, &[1; 16])].concat();
    assert_eq!(dhcp6(&many).expect("DHCPv6").name_servers.len(), 32);
}

/// Returns the places of all values.
fn places(message: &Message) -> Vec<Range<usize>> {
    fn of<'a, T: 'a>(all: impl IntoIterator<Item = &'a Placed<T>>) -> Vec<Range<usize>> {
        all.into_iter().map(|placed| placed.at.clone()).collect()
    }
    match message {
        Message::Dns(dns) => [of(&dns.query), of(&dns.answers)].concat(),
        Message::Tls(tls) => [of(&tls.server_name), of(&tls.alpn)].concat(),
        Message::Http(http) => {
            let all =
                [&http.method, &http.path, &http.reason, &http.host, &http.user_agent, &http.content_type];
            of(all.into_iter().flatten())
        }
        Message::Sip(sip) => [of(texts(sip)), of(&sip.cseq)].concat(),
        Message::Dhcp(dhcp) => {
            let texts = [&dhcp.host_name, &dhcp.fqdn, &dhcp.vendor_class, &dhcp.domain];
            let header = [&dhcp.client_address, &dhcp.your_address, &dhcp.next_server, &dhcp.relay];
            let others = [&dhcp.requested_address, &dhcp.server_id, &dhcp.subnet_mask];
            let lists = [of(&dhcp.routers), of(&dhcp.name_servers), of(&dhcp.client_mac)].concat();
            let numbers = [of(&dhcp.kind), of(&dhcp.lease_seconds)].concat();
            [of(texts.into_iter().flatten()), of(header.into_iter().chain(others).flatten()), lists, numbers]
                .concat()
        }
        Message::Dhcp6(dhcp) => {
            let lists = [of(&dhcp.addresses), of(&dhcp.prefixes), of(&dhcp.name_servers)].concat();
            [of(&dhcp.client_duid), of(&dhcp.fqdn), lists].concat()
        }
        other => panic!("{other:?} has no places"),
    }
}

/// A message of each protocol, and who gets it.
fn messages() -> Vec<(u8, u16, Vec<u8>)> {
    let dns = b"\xab\xcd\x81\x80\0\x01\0\x01\0\0\0\0\x07example\x03org\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
    let hello = [
        &b"\x16\x03\x01\0\x4f\x01\0\0\x4b\x03\x03"[..],
        &[7; 32],
        b"\0\0\x02\x13\x01\x01\0\0\x20\0\0\0\x0b\0\x09\0\0\x06a.test\0\x10\0\x05\0\x03\x02h2\0\x2b\0\x03\x02\x03\x04",
    ];
    let http = b"GET /a HTTP/1.1\r\nHost: a.test\r\nUser-Agent: me\r\n\r\n";
    let split = dhcp_message(
        b"\x35\x01\x02\x34\x01\x03\x0f\x04exam\x03\x06\x0a\0\0\x01\x0a\0",
        b"\x03\x02\0\x02",
        b"\x0f\x01.",
    );
    vec![
        (UDP, 53, dns.to_vec()),
        (UDP, 5353, dns.to_vec()),
        (TCP, 53, [&[0, 45][..], dns].concat()),
        (TCP, 4433, hello.concat()),
        (TCP, 80, http.to_vec()),
        (UDP, 5060, INVITE.into()),
        (TCP, 5060, RINGING.into()),
        (UDP, 67, dhcp_message(OPTIONS, &[], &[])),
        (UDP, 68, split),
        (UDP, 547, dhcp6_message(0)),
        (UDP, 546, dhcp6_message(2)),
    ]
}

/// Returns how many values there are.
fn check_places(protocol: u8, port: u16, payload: &[u8], missing: usize) -> usize {
    let segment = segment(protocol, port, 0, payload, payload.len() + missing);
    let Some(found) = Reader::default().read(&segment) else { return 0 };
    let places = places(&found.message);
    for place in &places {
        assert!(
            place.start <= place.end && place.end <= payload.len(),
            "{place:?} of {}: {found:?}",
            payload.len()
        );
    }
    places.len()
}

#[test]
fn every_message_has_values() {
    for (protocol, port, payload) in messages() {
        assert!(check_places(protocol, port, &payload, 0) > 1, "{port}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn places_are_within_the_payload(
        number in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        missing in 0..100_usize,
    ) {
        let (protocol, port, mut payload) = messages().swap_remove(number.index(messages().len()));
        for (at, value) in changes {
            let at = at.index(payload.len());
            payload[at] = value;
        }
        check_places(protocol, port, &payload, 0);
        payload.truncate(cut.index(payload.len() + 1));
        check_places(protocol, port, &payload, missing);
    }

    #[test]
    fn any_bytes_are_taken(
        number in any::<prop::sample::Index>(),
        kept in 0..300_usize,
        more in proptest::collection::vec(any::<u8>(), 0..300),
        missing in 0..100_usize,
    ) {
        // Nothing, or the beginning of a message, in front of them.
        let (protocol, port, message) = messages().swap_remove(number.index(messages().len()));
        check_places(protocol, port, &more, missing);
        check_places(protocol, port, &[&message[..kept.min(message.len())], &more].concat(), missing);
    }
}
