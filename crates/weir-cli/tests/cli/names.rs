//! Names instead of numbers (`--names`), with hosts and a DNS server of the test's own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{Network, root_test};

use crate::confine::{one_beside, status, wait_for_the_end_of};
use crate::harness::{Ended, Mounts, Running, directory, network, output, path, until};

/// An /etc with these hosts, where the DNS server is on this host.
fn etc(hosts: &str) -> Mounts {
    Mounts::with(&format!(
        "mount -t tmpfs none /run && mount -t tmpfs none /mnt && printf '{hosts}' > /mnt/hosts && echo nameserver 127.0.0.1 > /mnt/resolv.conf && \
         mount --bind /mnt/hosts /etc/hosts && mount --bind /mnt/resolv.conf /etc/resolv.conf"
    ))
}

/// A name as labels on the wire.
fn labels(name: &str) -> Vec<Vec<u8>> {
    name.split('.').map(|label| label.as_bytes().to_vec()).collect()
}

/// A DNS server in the receiving namespace. `find` returns the labels of the name of what is asked for, such as
/// `1.0.0.127.in-addr.arpa`; `None`: there is no answer at all. Returns the number of questions so far.
fn serve(
    network: &Network,
    mut find: impl FnMut(&str) -> Option<Vec<Vec<u8>>> + Send + 'static,
) -> Arc<AtomicU64> {
    let socket = network.rx().run(|| UdpSocket::bind("127.0.0.1:53")).expect("nobody else serves there");
    let questions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&questions);
    // Ends with the process of the test.
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((len, client)) = socket.recv_from(&mut buffer) {
            counted.fetch_add(1, Ordering::SeqCst);
            let query = &buffer[..len];
            let (mut name, mut at) = (Vec::new(), 12);
            while query[at] > 0 {
                let end = at + 1 + usize::from(query[at]);
                name.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
                at = end;
            }
            let Some(found) = find(&name.join(".")) else { continue };
            let mut reply = query.to_vec();
            // A reply with one answer, or that there is no such name.
            let known = !found.is_empty();
            reply[2..8].copy_from_slice(&[0x81, if known { 0x80 } else { 0x83 }, 0, 1, 0, known.into()]);
            if known {
                let mut data = Vec::new();
                for label in found {
                    data.push(u8::try_from(label.len()).expect("a label"));
                    data.extend(label);
                }
                data.push(0);
                let len = u16::try_from(data.len()).expect("short");
                reply.extend([0xc00c, 12, 1, 0, 60, len].into_iter().flat_map(u16::to_be_bytes));
                reply.extend(data);
            }
            let _gone = socket.send_to(&reply, client);
        }
    });
    questions
}

/// A pcap file: its header, then packets.
struct Pcap(Vec<u8>);

impl Pcap {
    fn new(link_type: u32) -> Self {
        let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link_type];
        Self(header.iter().flat_map(|word: &u32| word.to_le_bytes()).collect())
    }

    fn add(&mut self, data: &[u8], original_len: u32) {
        let len = u32::try_from(data.len()).expect("short");
        self.0.extend([1_700_000_000, 0, len, original_len].iter().flat_map(|word| word.to_le_bytes()));
        self.0.extend(data);
    }

    /// A datagram without payload from 10.1.x.y to 10.0.0.1.
    fn datagram(&mut self, from: u16) {
        let [x, y] = from.to_be_bytes();
        let mut data = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, x, y, 10, 0, 0, 1];
        data.extend([5000_u16, 6000, 8, 0].into_iter().flat_map(u16::to_be_bytes));
        self.add(&data, 28);
    }
}

const RAW: u32 = 101;

/// What `weir read` prints of a file, with `letters`.
fn read(network: &Network, etc: &Mounts, file: &str, letters: &[&str]) -> Ended {
    Running::spawn(network, &mut etc.weir(&[&["read", "-t", file], letters].concat())).wait().succeeded()
}

fn text(ended: &Ended) -> String {
    String::from_utf8(ended.stdout.clone()).expect("UTF-8")
}

/// `weir read --names` prints `expected`. On a busy machine a name may be late, and a number in its place, but not always.
fn prints(network: &Network, etc: &Mounts, file: &str, letters: &[&str], expected: &str) {
    until("these lines", || {
        let found = text(&read(network, etc, file, &[letters, &["--names"]].concat()));
        let mut pairs = found.lines().zip(expected.lines());
        match pairs.find(|(found, expected)| found != expected) {
            Some((found, expected)) => Err(format!("`{found}`, not `{expected}`")),
            None if found.lines().count() == expected.lines().count() => Ok(()),
            None => Err(found),
        }
    });
}

/// What tcpdump prints without `-n`, but without the manufacturers that it adds to MAC addresses.
fn judge(network: &Network, etc: &Mounts, file: &str, letters: &[&str]) -> String {
    let mut command = etc.program("tcpdump");
    let judged = output(network, command.args(["-t", "-r", file]).args(letters));
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
    let text = String::from_utf8(judged.stdout).expect("UTF-8");
    let mut parts = text.split(" (oui ");
    let first = parts.next().expect("a part").to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').expect("it ends").1)
}

#[root_test]
fn root_names_are_those_of_tcpdump() {
    let (network, directory) = (network(), directory());
    let etc =
        etc(r"10.0.0.1 one.example uno\n10.0.0.1 later\n2001:db8::1 six.example\n127.0.0.1 localhost\n");
    let questions = serve(&network, |name| {
        Some(match name {
            "2.0.0.10.in-addr.arpa" => labels("two.example.org"),
            _ if name.starts_with("1.0.0.0.") && name.ends_with(".d.f.ip6.arpa") => {
                labels("Unique-1.local_net")
            }
            _ => Vec::new(),
        })
    });
    let mut files = std::collections::BTreeMap::new();
    for line in
        include_str!("../../../weir-dissect/tests/frames.txt").lines().filter(|line| !line.starts_with('#'))
    {
        let fields: Vec<&str> = line.split(' ').collect();
        let hex: Vec<u8> = fields[2].bytes().filter(u8::is_ascii_hexdigit).collect();
        let digits = hex.chunks(2).map(|pair| str::from_utf8(pair).expect("hex"));
        let data: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect();
        let link_type: u32 = fields[0].parse().expect("a number");
        let file = files.entry(link_type).or_insert_with(|| Pcap::new(link_type));
        file.add(&data, fields[1].parse().expect("a number"));
    }
    assert!(files.len() > 3);
    for (link_type, pcap) in files {
        let file = path(&directory, &format!("{link_type}.pcap"));
        fs::write(&file, pcap.0).expect("room");
        for letters in [&[][..], &["-e"], &["-q"]] {
            let theirs = judge(&network, &etc, &file, letters);
            prints(&network, &etc, &file, letters, &theirs);
            if link_type == 1 {
                let some = [
                    "one.example.1234 > two.example.org.http",
                    "Unique-1.local_net.4000",
                    "two.example.org.domain",
                ];
                assert!(letters == ["-q"] || some.iter().all(|some| theirs.contains(some)), "{theirs}");
            }
        }
    }
    assert!(questions.load(Ordering::SeqCst) > 0);
    // An object contains numbers, and nobody is asked.
    let before = questions.load(Ordering::SeqCst);
    let objects = text(&read(&network, &etc, &path(&directory, "1.pcap"), &["--names", "--json"]));
    assert!(
        objects.contains("10.0.0.1.1234 > 10.0.0.2.80") && !objects.contains("example.1234"),
        "{objects}"
    );
    assert_eq!(questions.load(Ordering::SeqCst), before);
}

#[root_test]
fn root_what_is_no_name_is_not_printed() {
    let (network, directory) = (network(), directory());
    let long = || vec![b'a'; 63];
    let names: Vec<Vec<Vec<u8>>> = vec![
        vec![b"\x1b[31mred".to_vec(), b"example".to_vec()],
        vec!["\u{202e}evil".as_bytes().to_vec()],
        vec![b"two\nlines".to_vec()],
        vec![b"a b".to_vec()],
        vec![b"a > b".to_vec()],
        vec![b"\xff\xfe".to_vec()],
        vec![b"a\0b".to_vec()],
        // As a name, not longer than the protocol allows.
        vec![long(), long(), long(), vec![b'a'; 61]],
        // Longer.
        vec![long(), long(), long(), long()],
        Vec::new(),
        labels("well"),
    ];
    let mut pcap = Pcap::new(RAW);
    (0..names.len()).for_each(|number| pcap.datagram(number.try_into().expect("few")));
    let file = path(&directory, "a.pcap");
    fs::write(&file, pcap.0).expect("room");
    let count = names.len();
    serve(&network, move |name| {
        let number: usize = name.split('.').next()?.parse().ok()?;
        Some(names.get(number).cloned().unwrap_or_default())
    });
    let etc = etc(r"10.0.0.1 \033[31mone\n10.0.0.1 \342\200\256two\n");
    let longest = [&"a".repeat(63)[..], &"a".repeat(63), &"a".repeat(63), &"a".repeat(61)].join(".");
    let expected = (0..count).map(|number| {
        let name = match number {
            7 => longest.clone(),
            10 => "well".to_owned(),
            _ => format!("10.1.0.{number}"),
        };
        // The address of the other end is asked for at `1.0.0.10.in-addr.arpa`, and gets a bad name, too.
        format!("IP {name}.5000 > 10.0.0.1.6000: UDP, length 0\n")
    });
    prints(&network, &etc, &file, &[], &expected.collect::<String>());
}

#[root_test]
fn root_who_never_answers_does_not_hold_up_lines() {
    let (network, directory) = (network(), directory());
    let questions = serve(&network, |_| None);
    let mut pcap = Pcap::new(RAW);
    (0..3000).for_each(|number| pcap.datagram(number));
    let file = path(&directory, "a.pcap");
    fs::write(&file, pcap.0).expect("room");
    let ended = read(&network, &etc(""), &file, &["--names"]);
    let lines: Vec<String> = text(&ended).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3000);
    for (number, line) in lines.iter().enumerate() {
        let source = format!("10.1.{}.{}", number / 256, number % 256);
        assert_eq!(*line, format!("IP {source}.5000 > 10.0.0.1.6000: UDP, length 0"));
    }
    assert!(questions.load(Ordering::SeqCst) > 1);
}

#[root_test]
fn root_a_late_name_is_in_later_lines() {
    let network = network();
    let (go, gone) = mpsc::channel::<()>();
    serve(&network, move |name| {
        // Waits only once.
        let _go = gone.recv();
        Some(if name.starts_with("7.") { labels("seven.example") } else { Vec::new() })
    });
    let etc = etc("");
    let mut reader = etc.weir(&["read", "-t", "--names", "-"]);
    let mut reader = network
        .rx()
        .run(|| reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())
        .expect("weir starts");
    let mut pipe = reader.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(reader.stdout.take().expect("a pipe"));
    let mut begun = false;
    let mut next = || {
        let mut pcap = Pcap::new(RAW);
        pcap.datagram(7);
        pipe.write_all(&pcap.0[if begun { 24 } else { 0 }..]).expect("it reads");
        begun = true;
        let mut line = String::new();
        assert!(lines.read_line(&mut line).expect("a line") > 0);
        line
    };
    assert_eq!(next(), "IP 10.1.0.7.5000 > 10.0.0.1.6000: UDP, length 0\n");
    drop(go);
    until("the name", || {
        let line = next();
        if line.starts_with("IP seven.example.5000 > ") { Ok(()) } else { Err(line) }
    });
    drop(pipe);
    assert_eq!(reader.wait().expect("it ends").code(), Some(0));
}

#[root_test]
fn root_without_a_server_hosts_have_names() {
    let (network, directory) = (network(), directory());
    let mut pcap = Pcap::new(RAW);
    (1..3).for_each(|number| pcap.datagram(number));
    let file = path(&directory, "a.pcap");
    fs::write(&file, pcap.0).expect("room");
    let lines = "IP one.example.5000 > 10.0.0.1.6000: UDP, length 0\nIP 10.1.0.2.5000 > 10.0.0.1.6000: UDP, length 0\n";
    // Nobody serves there, which the kernel says; then a network to which there is no way.
    let etc = etc(r"10.1.0.1 one.example\n");
    prints(&network, &etc, &file, &[], lines);
    assert_eq!(read(&network, &etc, &file, &["--names"]).stderr, "");
    fs::write(etc.path("/mnt/resolv.conf"), "nameserver 192.0.2.1\n").expect("room");
    prints(&network, &etc, &file, &[], lines);
    read(&network, &etc, &file, &["--names"]).says(
        "note: no DNS server can be asked (192.0.2.1: Network is unreachable (os error 101)): only hosts in /etc/hosts \
         have names",
    );
}

/// Asks the server in the receiving namespace for the name of 127.0.0.1, as anybody may.
fn ask(network: &Network) {
    let socket = network.rx().run(|| UdpSocket::bind("127.0.0.1:0")).expect("a socket");
    socket.connect("127.0.0.1:53").expect("connected");
    let name = b"\x011\x010\x010\x03127\x07in-addr\x04arpa\0\0\x0c\0\x01";
    socket.send(&[b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0", &name[..]].concat()).expect("sent");
    let len = socket.recv(&mut [0; 512]).expect("a reply");
    assert!(len > 12);
}

#[root_test]
fn root_own_queries_are_counted_and_those_of_others_are_printed() {
    let network = network();
    let questions = serve(&network, |_| Some(labels("here.example")));
    let etc = etc("");
    for source in ["af_packet", "tc"] {
        let before = questions.load(Ordering::SeqCst);
        let args = [
            "capture", "-i", "lo", "-B", "4MiB", "--source", source, "-Q", "out", "-t", "--names", "port",
            "53",
        ];
        let running = Running::spawn(&network, &mut etc.weir(&args));
        running.wait_until_open();
        // Not only queries for the same address, but the same queries.
        let mut asked = 0;
        until("a name", || {
            ask(&network);
            asked += 1;
            running.wait_for_lines(2 * asked);
            let lines = running.stdout();
            if lines.contains("here.example.domain: 4660+") { Ok(()) } else { Err(lines) }
        });
        // A query and a reply; more only if the reply takes seconds.
        let own = until("the account", || {
            let told = output(&network, &mut etc.weir(&["ctl", "status"])).stdout;
            let told: Value = serde_json::from_slice(&told).map_err(|error| error.to_string())?;
            told["own_queries"].as_u64().filter(|own| *own >= 2).ok_or_else(|| told.to_string())
        });
        let ended = running.interrupt().succeeded();
        let lines = text(&ended);
        assert_eq!(lines.lines().count(), 2 * asked, "{lines}");
        for (number, line) in lines.lines().enumerate() {
            let line =
                line.replace("IP 127.0.0.1.", "IP here.example.").replace("> 127.0.0.1.", "> here.example.");
            let (from, to) = line.strip_prefix("IP ").expect("IP").split_once(" > ").expect("two ends");
            let is_right = if number % 2 == 0 {
                from.starts_with("here.example.") && to.starts_with("here.example.domain: 4660+ PTR? ")
            } else {
                from == "here.example.domain" && to.contains(": 4660 1/0/0 PTR here.example.")
            };
            assert!(is_right, "{line}");
        }
        assert!(questions.load(Ordering::SeqCst) - before > asked as u64);
        ended.says(&format!("{own} packets not printed: queries for --names, and replies"));
        ended.captured_all(2 * asked as u64 + own);
    }
}

#[root_test]
fn root_who_finds_names_has_no_rights_and_ends_with_the_capture() {
    let network = network();
    let etc = etc("");
    for signal in [Signal::INT, Signal::KILL] {
        let args = ["capture", "-i", "rx0", "-B", "4MiB", "--source", "af_packet", "--names"];
        let running = Running::spawn(&network, &mut etc.weir(&args));
        running.wait_until_open();
        let names = one_beside(running.id(), "weir-names");
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(status(names, set), [0], "{set}");
        }
        assert_eq!((status(names, "NoNewPrivs:"), status(names, "Seccomp:")), (vec![1], vec![2]));
        assert!(status(names, "Uid:").iter().all(|uid| *uid != 0), "another user than root");
        // Neither packets nor memory with packets: a socket to the capture, another to the server, and what everybody has.
        let open = fs::read_dir(format!("/proc/{names}/fd")).expect("it runs").flatten();
        let links: Vec<_> = open.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        let are = |kind: &str| links.iter().filter(|link| link.to_string_lossy().starts_with(kind)).count();
        assert_eq!((are("socket:"), are("anon_inode:")), (2, 0), "{links:?}");
        for standard in 0..=2 {
            let link = fs::read_link(format!("/proc/{names}/fd/{standard}")).expect("it is open");
            assert_eq!(link.to_str(), Some("/dev/null"));
        }
        let packet = fs::read_to_string(format!("/proc/{names}/net/packet")).expect("it is there");
        assert!(packet.lines().count() > 1, "the capture has one");
        let maps = fs::read_to_string(format!("/proc/{names}/maps")).expect("it runs");
        assert!(!maps.contains("socket:") && !maps.contains("bpf"), "{maps}");
        running.signal(signal);
        wait_for_the_end_of(names);
        running.wait();
    }
}
