//! DNS, TLS, HTTP, SIP and DHCP in objects: what real programs and scapy send, judged by tshark.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;
use weir_lab::{Network, Veth, root_test};

use crate::support::{Guarded, Place, judge, record, succeeds, until};

const SERVER: &str = "10.77.0.2";

/// Opens what answers in the receiving namespace.
fn listen<T: Send>(
    network: &Network,
    port: u16,
    bind: impl Fn(SocketAddr) -> std::io::Result<T> + Sync,
) -> T {
    let address = SocketAddr::new(SERVER.parse().expect("an address"), port);
    network.rx().run(|| bind(address)).expect("a socket")
}

/// Runs a client in the sending namespace and returns what it prints.
fn client(network: &Network, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = network.tx().spawn(&mut command);
    let child = child.unwrap_or_else(|error| panic!("{program}: {error}; `scripts/setup test` installs it"));
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Answers a query: an alias and two addresses of other names, or that there is no such name. `short`: what does not fit into
/// a datagram is to be asked for again over TCP.
fn answer(query: &[u8], short: bool) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|&byte| byte == 0).expect("a name") + 1;
    let (name, kind) = (&query[12..end], query[end + 1]);
    let cut = short && name.starts_with(b"\x04long");
    let flags = match name.starts_with(b"\x07missing") {
        true => [0x81, 0x83],
        false => [0x81 | u8::from(cut) << 1, 0x80],
    };
    let records = flags == [0x81, 0x80] && kind != 28;
    let mut message = [&query[..2], &flags, &[0, 1, 0, 3 * u8::from(records), 0, 0, 0, 0]].concat();
    message.extend(&query[12..end + 4]);
    if records {
        message.extend(b"\xc0\x0c\0\x05\0\x01\0\0\x01\x2c\0\x08\x05other\xc0");
        // The name after the first label of the question.
        message.push(12 + 1 + name[0]);
        let other = u8::try_from(end + 4 + 12).expect("short");
        for last in [8, 9] {
            message.extend([0xc0, other, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last]);
        }
    }
    message
}

fn name_server(network: &Network) {
    let datagrams = listen(network, 53, UdpSocket::bind);
    let streams = listen(network, 53, TcpListener::bind);
    thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((len, from)) = datagrams.recv_from(&mut query) {
            datagrams.send_to(&answer(&query[..len], true), from).expect("an answer");
        }
    });
    thread::spawn(move || {
        for mut stream in streams.incoming().flatten() {
            let mut len = [0; 2];
            while stream.read_exact(&mut len).is_ok() {
                let mut query = vec![0; u16::from_be_bytes(len).into()];
                stream.read_exact(&mut query).expect("a query");
                let answer = answer(&query, false);
                let len = u16::try_from(answer.len()).expect("short").to_be_bytes();
                stream.write_all(&[&len[..], &answer].concat()).expect("an answer");
            }
        }
    });
}

const RESPONSE: &[u8] =
    b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain; charset=utf-8\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone";

fn web_server(network: &Network) {
    let listener = listen(network, 80, TcpListener::bind);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _len = stream.read(&mut request).expect("a request");
            stream.write_all(RESPONSE).expect("a response");
        }
    });
}

/// Starts `openssl s_server` with a certificate of its own.
fn tls_server(network: &Network, place: &Place) -> Guarded {
    let [key, certificate] = ["key.pem", "cert.pem"].map(|name| place.path(name).display().to_string());
    let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=www.example.test"];
    judge("openssl", &[&request[..], &["-keyout", &key, "-out", &certificate]].concat(), &[]);
    let mut server = Command::new("openssl");
    server.args(["s_server", "-quiet", "-www", "-alpn", "http/1.1", "-accept", "10.77.0.2:443"]);
    server.args(["-key", &key, "-cert", &certificate]).stdin(Stdio::null()).stdout(Stdio::null());
    let server = network.rx().spawn(server.stderr(Stdio::null())).map(Guarded).expect("openssl");
    until("openssl s_server", || {
        network.rx().run(|| TcpStream::connect((SERVER, 443))).map(drop).map_err(|error| error.to_string())
    });
    server
}

/// Each program once.
fn traffic(network: &Network, place: &Place) {
    let resolver = place.path("resolv.conf");
    fs::write(&resolver, format!("nameserver {SERVER}\noptions attempts:1\n")).expect("room");
    let resolver = resolver.display();
    for (name, found) in
        [("www.example.test", true), ("missing.example.test", false), ("long.example.test", true)]
    {
        let script =
            format!("mount --bind {resolver} /etc/resolv.conf && exec getent -s dns ahostsv4 {name}");
        let said = client(network, "unshare", &["-m", "sh", "-c", &script]);
        assert_eq!(said.contains("192.0.2.9"), found, "{name}: {said}");
    }
    // Else an ICMP error would quote it, and tshark reads quotations too.
    let _receiver = listen(network, 5353, UdpSocket::bind);
    let mdns = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x0bB\xc3\xbcro. 2\x1b[m\x04_ipp\x04_tcp\x05local\0\0\x21\0\x01";
    let sent = network.tx().run(|| UdpSocket::bind(("10.77.0.1", 0))?.send_to(mdns, (SERVER, 5353)));
    assert_eq!(sent.expect("a datagram"), mdns.len());

    let request = ["-s", "--max-time", "20", "-A", "probe/1 (test)"];
    let web = ["http://10.77.0.2/a/b?c=%20d", "-H", "Host: www.example.test", "-d", "x=1"];
    assert_eq!(client(network, "curl", &[&request[..], &web].concat()), "none");
    let tls = ["-k", "--resolve", "www.example.test:443:10.77.0.2", "https://www.example.test/"];
    let said = client(network, "curl", &[&request[..], &tls].concat());
    assert!(said.contains("TLSv1.3"), "{said}");
    let old = ["s_client", "-tls1_2", "-servername", "old.example.test", "-connect", "10.77.0.2:443"];
    let said = client(network, "openssl", &old);
    assert!(said.contains("TLSv1.2"), "{said}");
}

/// Fields of tshark, and the same of an object as tshark writes them.
type Field = (&'static str, fn(&Value) -> Option<String>);

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}

fn joined(list: &Value, field: impl Fn(&Value) -> Option<String>) -> Option<String> {
    Some(list.as_array()?.iter().filter_map(field).collect::<Vec<_>>().join("|"))
}

fn answers_of(object: &Value, kind: &str) -> Option<String> {
    let data =
        joined(&object["dns"]["answers"], |answer| text(&answer["data"]).filter(|_| answer["type"] == kind));
    data.filter(|data| !data.is_empty())
}

/// The numbers of names (IANA).
fn number(name: &Value, names: &[(&str, u16)]) -> Option<String> {
    let name = name.as_str()?;
    let known = names.iter().find(|(known, _)| *known == name);
    Some(known.unwrap_or_else(|| panic!("{name}")).1.to_string())
}

const TYPES: [(&str, u16); 4] = [("A", 1), ("CNAME", 5), ("AAAA", 28), ("SRV", 33)];

const FIELDS: [Field; 19] = [
    ("dns.id", |object| Some(format!("0x{:04x}", object["dns"]["id"].as_u64()?))),
    ("dns.flags.response", |object| object["dns"]["response"].as_bool().map(|yes| u8::from(yes).to_string())),
    ("dns.flags.rcode", |object| number(&object["dns"]["rcode"], &[("NOERROR", 0), ("NXDOMAIN", 3)])),
    // tshark does not tell dots in labels from dots between them.
    ("dns.qry.name", |object| {
        text(&object["dns"]["query"]).map(|name| name.replace(r"\.", ".").replace('\x1b', r"\033"))
    }),
    ("dns.qry.type", |object| number(&object["dns"]["query_type"], &TYPES)),
    ("dns.resp.name", |object| joined(&object["dns"]["answers"], |answer| text(&answer["name"]))),
    ("dns.resp.type", |object| joined(&object["dns"]["answers"], |answer| number(&answer["type"], &TYPES))),
    ("dns.resp.ttl", |object| joined(&object["dns"]["answers"], |answer| text(&answer["ttl"]))),
    ("dns.a", |object| answers_of(object, "A")),
    ("dns.cname", |object| answers_of(object, "CNAME")),
    ("tls.handshake.extensions_server_name", |object| text(&object["tls_server_name"])),
    ("tls.handshake.extensions_alpn_str", |object| joined(&object["alpn"], text)),
    ("http.request.method", |object| text(&object["http"]["method"])),
    ("http.request.uri", |object| text(&object["http"]["path"])),
    ("http.host", |object| text(&object["http"]["host"])),
    ("http.response.code", |object| text(&object["http"]["status"])),
    ("http.response.phrase", |object| text(&object["http"]["reason"])),
    ("http.user_agent", |object| text(&object["http"]["user_agent"])),
    ("http.content_type", |object| text(&object["http"]["content_type"])),
];

fn objects(file: &Path) -> Vec<Value> {
    let text = succeeds(&["read", "--json"], &[file]);
    assert!(!text.contains('\x1b'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[root_test]
fn root_payloads_are_what_tshark_sees() {
    let network = Network::new(Veth::default().ipv4()).expect("a private network");
    let place = Place::new();
    let file = place.path("payloads.pcap");
    name_server(&network);
    web_server(&network);
    let _server = tls_server(&network, &place);
    record(&network, &file, || traffic(&network, &place));

    let objects = agree(&file, &FIELDS);
    versions(&file, &objects);
}

/// Compares the objects of a file with what tshark reads of each packet. Each field must be somewhere.
fn agree(file: &Path, fields: &[Field]) -> Vec<Value> {
    let objects = objects(file);
    let mut args = vec!["-n", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|"];
    args.extend(["-o", "tcp.desegment_tcp_streams:FALSE"]);
    fields.iter().for_each(|(field, _)| args.extend(["-e", field]));
    args.push("-r");
    let judged = judge("tshark", &args, &[file]);
    assert_eq!(judged.lines().count(), objects.len());
    let mut seen = vec![0; fields.len()];
    for (object, line) in objects.iter().zip(judged.lines()) {
        for (at, ((field, ours), theirs)) in fields.iter().zip(line.split('\t')).enumerate() {
            let ours = ours(object).unwrap_or_default();
            seen[at] += u32::from(!ours.is_empty());
            assert_eq!(ours, theirs, "{field}: {object}");
        }
    }
    for ((field, _), seen) in fields.iter().zip(seen) {
        assert!(seen > 0, "{field}");
    }
    objects
}

/// The highest version in the extension, or else the one in the header.
fn versions(file: &Path, objects: &[Value]) {
    let fields = ["tls.handshake.extensions.supported_version", "tls.handshake.version"];
    let args = ["-n", "-T", "fields", "-E", "aggregator=|", "-e", fields[0], "-e", fields[1], "-r"];
    let judged = judge("tshark", &args, &[file]);
    let mut seen = Vec::new();
    for (object, line) in objects.iter().zip(judged.lines()) {
        let (extension, header) = line.split_once('\t').expect("two fields");
        let highest = extension.split('|').filter(|version| !version.is_empty()).max().unwrap_or(header);
        let expected = match highest {
            "" => None,
            "0x0303" => Some("TLS 1.2"),
            "0x0304" => Some("TLS 1.3"),
            other => panic!("{other}"),
        };
        assert_eq!(object["tls_version"].as_str(), expected, "{object}");
        seen.extend(expected);
    }
    assert_eq!(seen, ["TLS 1.3", "TLS 1.3", "TLS 1.2", "TLS 1.2"]);
}

/// Writes the messages of a lease with DHCP and DHCPv6, and of a call.
const SCAPY: &str = r#"
import sys
from scapy.all import Ether, IP, IPv6, UDP, TCP, Raw, wrpcap
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.dhcp6 import *

ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
ip = IP(src="10.0.0.9", dst="10.0.0.1")
client = dict(chaddr=bytes.fromhex("0200000000aa"), xid=0x12345678)
request = ether/ip/UDP(sport=68, dport=67)/BOOTP(op=1, **client)
reply = ether/ip/UDP(sport=67, dport=68)/BOOTP(
    op=2, ciaddr="10.0.0.8", yiaddr="10.0.0.9", siaddr="10.0.0.3", giaddr="10.0.0.4", **client)
lease = [("lease_time", 3600), ("subnet_mask", "255.255.255.0"), ("router", "10.0.0.1", "10.0.0.2"),
    ("name_server", "10.0.0.53", "10.0.0.54"), ("domain", "example.org"), ("server_id", "10.0.0.1"), "end"]
wanted = [("hostname", "printer"), ("requested_addr", "10.0.0.9"), ("vendor_class_id", "MSFT 5.0")]
names = [b"\4\0\0\7printer\7example\3org\0", b"\0\0\0printer.example.org"]
packets = [request/DHCP(options=[("message-type", kind)] + wanted + [(81, name), "end"])
    for kind, name in zip(("discover", "request"), names)]
packets += [reply/DHCP(options=[("message-type", kind)] + lease) for kind in ("offer", "ack")]
packets += [request/DHCP(options=[("message-type", kind), "end"]) for kind in ("decline", "nak", "release", "inform")]
packets.append(ether/ip/UDP(sport=68, dport=67)/BOOTP(op=1, options=b"", **client)/Raw(bytes(64)))
elsewhere = BOOTP(op=2, file=b"\x0c\4host\xff", sname=b"\x0f\3lan\xff", **client)
packets.append(ether/ip/UDP(sport=67, dport=68)/elsewhere/DHCP(options=[("message-type", "offer"), (52, b"\3"), "end"]))

def message(kind):
    address = DHCP6OptIAAddress(addr="2001:db8::9", preflft=100, validlft=200)
    prefix = DHCP6OptIAPrefix(prefix="2001:db8:1::", plen=56)
    return (kind(trid=0xabcdef)/DHCP6OptClientId(duid=DUID_LL(lladdr="02:00:00:00:00:aa"))
        /DHCP6OptIA_NA(iaid=1, ianaopts=[address])/DHCP6OptIA_PD(iaid=2, iapdopt=[prefix])
        /DHCP6OptDNSServers(dnsservers=["2001:db8::53", "2001:db8::54"])
        /DHCP6OptClientFQDN(fqdn="printer.example.org"))

datagram = ether/IPv6(src="fe80::1", dst="fe80::2")/UDP(sport=546, dport=547)
packets += [datagram/message(kind) for kind in (DHCP6_Solicit, DHCP6_Advertise, DHCP6_Request, DHCP6_Reply)]
relayed = DHCP6OptRelayMsg(message=message(DHCP6_Renew))
packets.append(datagram/DHCP6_RelayForward(linkaddr="2001:db8::1", peeraddr="fe80::9")/relayed)

invite = b"\r\n".join([b"INVITE sip:bob@b.example;transport=udp SIP/2.0", b"Via: SIP/2.0/UDP 10.0.0.9:5060;branch=z9hG4bK776",
    b'To: "Bob <x>" <sip:bob@b.example>', b"From: Alice <sip:alice@a.example>;tag=19", b"Call-ID: a84b@10.0.0.9",
    b"CSeq: 314159 INVITE", b"User-Agent: probe/1", b"Content-Type: application/sdp", b"Content-Length: 3", b"", b"v=0"])
ringing = b"\r\n".join([b"SIP/2.0 180 Ringing", b"v: SIP/2.0/UDP 10.0.0.9:5060;branch=z9hG4bK776",
    b"t: sip:bob@b.example;tag=a6", b"f: <sip:alice@a.example>;tag=19", b"i: a84b@10.0.0.9", b"CSeq: 314159", b" INVITE",
    b"Server: pbx", b"c: text/plain", b"l: 0", b"", b""])
for number, text in enumerate((invite, ringing)):
    call = [UDP(sport=5060, dport=5060), UDP(sport=5060, dport=5062), TCP(sport=40000 + number, dport=5060, flags="PA")]
    packets += [ether/ip/segment/Raw(text) for segment in call]
packets.append(ether/ip/UDP(sport=5060, dport=5060)/Raw(b"\r\n\r\n"))
wrpcap(sys.argv[1], packets)

head, seq = b"GET /a HTTP/1.1\r\nCookie: much\r\nHost: a.example\r\n\r\n", 7
segment = lambda at, end: TCP(sport=40009, dport=80, flags="PA", seq=seq + at)/Raw(head[at:end])
wrpcap(sys.argv[2], [ether/ip/segment(0, 2), ether/ip/segment(2, 30), ether/ip/segment(30, None)])
"#;

const DHCP_TYPES: [(&str, u16); 8] = [
    ("DISCOVER", 1),
    ("OFFER", 2),
    ("REQUEST", 3),
    ("DECLINE", 4),
    ("ACK", 5),
    ("NAK", 6),
    ("RELEASE", 7),
    ("INFORM", 8),
];
const DHCP6_TYPES: [(&str, u16); 5] =
    [("SOLICIT", 1), ("ADVERTISE", 2), ("REQUEST", 3), ("RENEW", 5), ("REPLY", 7)];

/// An address in the header, which tshark tells even if there is none.
fn in_header(object: &Value, key: &str) -> Option<String> {
    let dhcp = object["dhcp"].as_object()?;
    Some(dhcp.get(key).and_then(text).unwrap_or_else(|| "0.0.0.0".to_owned()))
}

const CALLS_AND_LEASES: [Field; 36] = [
    ("dhcp.option.dhcp", |object| number(&object["dhcp"]["type"], &DHCP_TYPES)),
    ("dhcp.id", |object| Some(format!("0x{:08x}", object["dhcp"]["id"].as_u64()?))),
    ("dhcp.type", |object| Some((1 + u8::from(object["dhcp"]["response"].as_bool()?)).to_string())),
    ("dhcp.hw.mac_addr", |object| text(&object["dhcp"]["client_mac"])),
    ("dhcp.ip.client", |object| in_header(object, "client_address")),
    ("dhcp.ip.your", |object| in_header(object, "your_address")),
    ("dhcp.ip.server", |object| in_header(object, "next_server")),
    ("dhcp.ip.relay", |object| in_header(object, "relay")),
    ("dhcp.option.requested_ip_address", |object| text(&object["dhcp"]["requested_address"])),
    ("dhcp.option.dhcp_server_id", |object| text(&object["dhcp"]["server_id"])),
    ("dhcp.option.ip_address_lease_time", |object| text(&object["dhcp"]["lease_seconds"])),
    ("dhcp.option.hostname", |object| text(&object["dhcp"]["host_name"])),
    ("dhcp.fqdn.name", |object| text(&object["dhcp"]["fqdn"])),
    ("dhcp.option.vendor_class_id", |object| text(&object["dhcp"]["vendor_class"])),
    ("dhcp.option.subnet_mask", |object| text(&object["dhcp"]["subnet_mask"])),
    ("dhcp.option.router", |object| joined(&object["dhcp"]["routers"], text)),
    ("dhcp.option.domain_name_server", |object| joined(&object["dhcp"]["name_servers"], text)),
    ("dhcp.option.domain_name", |object| text(&object["dhcp"]["domain"])),
    ("dhcpv6.msgtype", |object| {
        // Here, the relay forwards only this one.
        let relayed = if object["dhcp6"]["type"] == "RENEW" { "12|" } else { "" };
        number(&object["dhcp6"]["type"], &DHCP6_TYPES).map(|kind| relayed.to_owned() + &kind)
    }),
    ("dhcpv6.xid", |object| Some(format!("0x{:06x}", object["dhcp6"]["id"].as_u64()?))),
    ("dhcpv6.duid.bytes", |object| text(&object["dhcp6"]["client_duid"])),
    ("dhcpv6.iaaddr.ip", |object| joined(&object["dhcp6"]["addresses"], text)),
    ("dhcpv6.iaprefix.pref_addr", |object| {
        joined(&object["dhcp6"]["prefixes"], |prefix| text(prefix)?.strip_suffix("/56").map(str::to_owned))
    }),
    ("dhcpv6.client_domain", |object| text(&object["dhcp6"]["fqdn"]).map(|name| name + ".")),
    ("dhcpv6.dns_server", |object| joined(&object["dhcp6"]["name_servers"], text)),
    ("sip.Method", |object| text(&object["sip"]["method"])),
    ("sip.r-uri", |object| text(&object["sip"]["uri"])),
    ("sip.Status-Line", |object| {
        let sip = &object["sip"];
        Some(format!("SIP/2.0 {} {}", text(&sip["status"])?, text(&sip["reason"])?))
    }),
    ("sip.from.addr", |object| text(&object["sip"]["from"])),
    ("sip.to.addr", |object| text(&object["sip"]["to"])),
    ("sip.Call-ID", |object| text(&object["sip"]["call_id"])),
    ("sip.CSeq.seq", |object| text(&object["sip"]["cseq"])),
    ("sip.CSeq.method", |object| text(&object["sip"]["cseq_method"])),
    ("sip.User-Agent", |object| text(&object["sip"]["user_agent"])),
    ("sip.Server", |object| text(&object["sip"]["server"])),
    ("sip.Content-Type", |object| text(&object["sip"]["content_type"])),
];

#[test]
fn calls_and_leases_are_what_tshark_sees() {
    if !Path::new("/usr/lib/python3/dist-packages/scapy").exists() {
        return weir_skip::this_test("python3-scapy is missing (scripts/setup test)");
    }
    let place = Place::new();
    let file = place.path("made.pcap");
    // Debian's, whose packages are there.
    let parts = place.path("parts.pcap");
    judge("/usr/bin/python3", &["-c", SCAPY], &[&file, &parts]);
    // One in several segments: nothing, what is there so far, everything.
    let told =
        |object: &Value| object.get("http").map(|http| (object["incomplete"].clone(), http["host"].clone()));
    let told: Vec<_> = objects(&parts).iter().map(told).collect();
    assert_eq!(told, [None, None, Some((Value::Null, "a.example".into()))]);
    let objects = agree(&file, &CALLS_AND_LEASES);
    let named = |protocol: &str| objects.iter().filter(|object| object["protocol"] == protocol).count();
    assert_eq!(["dhcp", "dhcp6", "sip"].map(named), [10, 5, 7]);
}
