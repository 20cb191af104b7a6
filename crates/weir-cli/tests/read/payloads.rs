//! DNS, TLS and HTTP in objects: what real programs send, judged by tshark.

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

    let objects = objects(&file);
    let mut args = vec!["-n", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|"];
    args.extend(["-o", "tcp.desegment_tcp_streams:FALSE"]);
    FIELDS.iter().for_each(|(field, _)| args.extend(["-e", field]));
    args.push("-r");
    let judged = judge("tshark", &args, &[&file]);
    assert_eq!(judged.lines().count(), objects.len());
    let mut seen = [0; FIELDS.len()];
    for (object, line) in objects.iter().zip(judged.lines()) {
        for (at, ((field, ours), theirs)) in FIELDS.iter().zip(line.split('\t')).enumerate() {
            let ours = ours(object).unwrap_or_default();
            seen[at] += u32::from(!ours.is_empty());
            assert_eq!(ours, theirs, "{field}: {object}");
        }
    }
    versions(&file, &objects);
    for ((field, _), seen) in FIELDS.iter().zip(seen) {
        assert!(seen > 0, "{field}");
    }
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
