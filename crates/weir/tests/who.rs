//! Following sockets: processes of this program, each with a part to play, make sockets of all kinds, use them and hand them over,
//! and write down who did what. The tracker has to say the same, and the register of each packet that was captured.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use weir::SourceChoice;
use weir::who::{Cause, Certainty, News, Question, Side, Sighting, SocketKind, Tracker, TrackerSettings};
use weir_lab::{Call, NetNs, Network, Veth, refuse, root_test};

#[path = "common/mod.rs"]
mod common;

use common::{drain, wait_until};

/// The environment's name for the part.
const PART: &str = "WEIR_WHO_PART";
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// What a process says about a socket: its protocol, address and port.
type Name = (u8, IpAddr, u16);

/// Where a part begins. Without one, this tests that there is no other.
#[test]
fn the_part_of_a_process() {
    let Ok(part) = env::var(PART) else {
        let output = part("nobody", Stdio::null()).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("a part that there is"), "{said}");
        return;
    };
    let words: Vec<&str> = part.split(' ').collect();
    match words[..] {
        ["server", v4, v6] => server([v4, v6].map(|address| address.parse().unwrap())),
        ["client", ref servers @ ..] => client(servers),
        ["heir", to] => heir(to.parse().unwrap()),
        _ => panic!("a part that there is"),
    }
}

fn part(part: &str, stdin: Stdio) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "the_part_of_a_process", "--nocapture"]).env(PART, part);
    command.stdin(stdin).stdout(Stdio::piped());
    command
}

/// Answers on sockets of all kinds, until its input ends.
fn server(addresses: [IpAddr; 2]) {
    for address in addresses {
        let listener = TcpListener::bind((address, 0)).unwrap();
        tell_name(TCP, listener.local_addr().unwrap(), std::process::id());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut byte = [0];
                while stream.read(&mut byte).unwrap_or(0) > 0 {
                    stream.write_all(&byte).unwrap();
                }
            }
        });
        let datagrams = UdpSocket::bind((address, 0)).unwrap();
        tell_name(UDP, datagrams.local_addr().unwrap(), std::process::id());
        std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while let Ok((length, from)) = datagrams.recv_from(&mut bytes) {
                datagrams.send_to(&bytes[..length], from).unwrap();
            }
        });
    }
    tell("READY");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Talks to servers: `PROTOCOL=ADDRESS:PORT`, once for each kind of socket.
fn client(servers: &[&str]) {
    let own = std::process::id();
    let raw = raw_socket();
    let mut connected = Vec::new();
    for server in servers {
        let (protocol, to) = server.split_once('=').unwrap();
        let to: SocketAddr = to.parse().unwrap();
        if protocol == "6" {
            let mut stream = TcpStream::connect(to).unwrap();
            tell_name(TCP, stream.local_addr().unwrap(), own);
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            continue;
        }
        let unbound = unbound(to);
        unbound.send_to(b"a", to).unwrap();
        unbound.recv(&mut [0; 9]).unwrap();
        tell_name(UDP, unbound.local_addr().unwrap(), own);
        let bound = UdpSocket::bind((unspecified(to), 0)).unwrap();
        bound.send_to(b"b", to).unwrap();
        bound.recv(&mut [0; 9]).unwrap();
        tell_name(UDP, bound.local_addr().unwrap(), own);
        let socket = self::unbound(to);
        socket.connect(to).unwrap();
        socket.send(b"c").unwrap();
        socket.recv(&mut [0; 9]).unwrap();
        tell_name(UDP, socket.local_addr().unwrap(), own);
        connected.push(socket);
        let left = self::unbound(to);
        let socket = OwnedFd::from(left.try_clone().unwrap());
        let heir = part(&format!("heir {to}"), Stdio::from(socket)).spawn().unwrap();
        let number = heir.id();
        assert!(heir.wait_with_output().unwrap().status.success());
        tell_name(UDP, left.local_addr().unwrap(), number);
    }
    tell("READY");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    drop((raw, connected));
}

/// Sends on the socket that is its standard input, which somebody else has made.
fn heir(to: SocketAddr) {
    let socket = UdpSocket::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    for _ in 0..2 {
        socket.send_to(b"d", to).unwrap();
        socket.recv(&mut [0; 9]).unwrap();
    }
}

fn raw_socket() -> OwnedFd {
    socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).unwrap()
}

/// A datagram socket without a port.
fn unbound(to: SocketAddr) -> UdpSocket {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    UdpSocket::from(socket(family, SocketType::DGRAM, None).unwrap())
}

fn unspecified(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { [0; 4].into() } else { [0_u8; 16].into() }
}

/// Tells the test who uses a socket.
fn tell_name(protocol: u8, local: SocketAddr, process: u32) {
    tell(&format!("NAME {protocol} {} {} {process}", local.ip(), local.port()));
}

fn tell(line: &str) {
    // In front of it is what the test's harness writes.
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format!("\nWHO {line}\n").as_bytes()).unwrap();
}

/// Takes in all that was told until now. A report that is being written, of another process, holds up those behind it.
fn take_in(tracker: &mut Tracker, news: &mut Vec<News>) {
    let marker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = marker.local_addr().unwrap().port();
    let is_marker = |news: &News| {
        matches!(news, News::Sighting(sighting) if sighting.cause == Cause::Bound && sighting.local.port == port
            && sighting.process.as_ref().is_some_and(|process| process.id.number == std::process::id()))
    };
    let came = || {
        tracker.poll().unwrap();
        let new = tracker.take_news();
        let came = new.iter().any(is_marker);
        news.extend(new);
        came
    };
    wait_until(came, || "a socket of this process is not told of".to_owned());
}

/// A process with a part.
struct Actor {
    child: Child,
    stdin: ChildStdin,
    /// Open until it ends: it may write more.
    stdout: BufReader<ChildStdout>,
    names: HashMap<Name, u32>,
}

impl Actor {
    /// Starts it, and waits until it has done its part.
    fn start(namespace: &NetNs, what: &str) -> Self {
        let mut child = namespace.spawn(&mut part(what, Stdio::piped())).unwrap();
        let mut names = HashMap::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        loop {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "{what} has ended: {:?}", child.wait());
            match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
                ["WHO", "NAME", protocol, address, port, process] => {
                    let name = (protocol.parse().unwrap(), address.parse().unwrap(), port.parse().unwrap());
                    names.insert(name, process.parse().unwrap());
                }
                ["WHO", "READY"] => break,
                _ => {}
            }
        }
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, stdout, names }
    }

    fn end(mut self) {
        self.stdin.write_all(b"\n").unwrap();
        drop(self.stdin);
        self.stdout.read_to_end(&mut Vec::new()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Returns the ends of a packet of TCP or UDP.
fn ends(frame: &[u8]) -> Option<[Name; 2]> {
    let (protocol, addresses, rest): (u8, [IpAddr; 2], usize) = match frame[12..14] {
        [8, 0] => {
            let address = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&frame[at..at + 4]).unwrap());
            (frame[23], [address(26), address(30)], 14 + usize::from(frame[14] & 15) * 4)
        }
        [0x86, 0xdd] => {
            let address = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap());
            (frame[20], [address(22), address(38)], 54)
        }
        _ => return None,
    };
    let port = |at: usize| u16::from_be_bytes([frame[rest + at], frame[rest + at + 1]]);
    [TCP, UDP]
        .contains(&protocol)
        .then(|| [(protocol, addresses[0], port(0)), (protocol, addresses[1], port(2))])
}

#[root_test]
fn root_each_socket_has_its_process_and_so_has_each_packet() {
    let network = Network::new(Veth::default().ipv4().ipv6()).unwrap();
    let (near, far) = (&network.pair().tx, &network.pair().rx);
    let (v4, v6) = (far.ipv4.unwrap(), far.ipv6.unwrap());
    let early = Actor::start(network.rx(), &format!("server {v4} {v6}"));
    let settings = TrackerSettings { news: 100_000, arguments: true, ..TrackerSettings::default() };
    let mut tracker = Tracker::start(&settings).unwrap();
    let refused: Vec<_> = tracker.hooks().iter().filter(|hook| hook.refused.is_some()).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let here = network.tx().run(|| tracker.namespace(None)).unwrap();
    let there = network.rx().run(|| tracker.namespace(None)).unwrap();
    let late = Actor::start(network.rx(), &format!("server {v4} {v6}"));
    let mut capture = network
        .tx()
        .run(|| common::capture().interface(&near.name).source(SourceChoice::AfPacket).open().unwrap());
    let servers = early.names.iter().chain(&late.names);
    let servers: Vec<_> = servers
        .map(|(&(protocol, address, port), _)| format!("{protocol}={}", SocketAddr::from((address, port))))
        .collect();
    let client = Actor::start(network.tx(), &format!("client {}", servers.join(" ")));
    let own = client.child.id();
    let mut frames = Vec::new();
    drain(&mut capture, |chunk| {
        frames.extend(chunk.packets().map(|packet| (packet.timestamp, packet.data.to_vec())));
    });

    let mut news = Vec::new();
    take_in(&mut tracker, &mut news);
    let unsettled = |tracker: &Tracker| {
        let questions =
            frames.iter().map(|(at, frame)| Question { at: *at, namespace: None, link_type: 1, frame });
        questions.filter(|question| tracker.register().is_unsettled(question)).count()
    };
    assert!(unsettled(&tracker) > 0, "UDP is connected before it has a port");
    tracker.look().unwrap();
    assert_eq!(unsettled(&tracker), 0);
    let addresses = [near.ipv4.unwrap().into(), near.ipv6.unwrap().into()];
    let mut expected = early.names.clone();
    expected.extend(&late.names);
    for (&(protocol, address, port), &process) in &client.names {
        let own = addresses.into_iter().find(|own: &IpAddr| own.is_ipv4() == address.is_ipv4()).unwrap();
        expected.insert((protocol, own, port), process);
    }
    let mut asked = 0;
    for (at, frame) in &frames {
        let Some(ends) = ends(frame) else { continue };
        for (side, name) in [Side::Sender, Side::Receiver].into_iter().zip(ends) {
            let owner =
                tracker.register().owner(&Question { at: *at, namespace: None, link_type: 1, frame }, side);
            let numbers: Vec<_> = owner.processes.iter().map(|process| process.id.number).collect();
            assert_eq!(numbers, [expected[&name]], "{side:?} {name:?}: {owner:?}");
            let is_old = early.names.contains_key(&name);
            let allowed: &[Certainty] = match (name.0, is_old) {
                (_, true) => &[Certainty::Before, Certainty::Listener, Certainty::Certain],
                (TCP, false) => &[Certainty::Listener, Certainty::Certain],
                _ => &[Certainty::Certain],
            };
            assert!(allowed.contains(&owner.certainty), "{side:?} {name:?}: {owner:?}");
            asked += 1;
        }
    }
    // 4 connections of at least 9 packets, 4 times 5 datagrams and their answers.
    assert!(asked >= 2 * (4 * 9 + 4 * 5 * 2), "{asked} of {} packets", frames.len());

    let names = client.names.clone();
    client.end();
    take_in(&mut tracker, &mut news);
    let sightings: Vec<&Sighting> = news
        .iter()
        .filter_map(|news| match news {
            News::Sighting(sighting) => Some(sighting),
            _ => None,
        })
        .collect();
    let of = |process: u32, cause: Cause| -> Vec<&Sighting> {
        let by = |sighting: &&&Sighting| {
            sighting.cause == cause
                && sighting.process.as_ref().is_some_and(|other| other.id.number == process)
        };
        sightings.iter().filter(by).copied().collect()
    };
    // Of each datagram server: one without a port, one bound, one connected, one for an heir.
    let created = of(own, Cause::Created);
    let kinds = |kind, protocol| {
        created.iter().filter(|sighting| (sighting.kind, sighting.protocol) == (kind, protocol)).count()
    };
    assert_eq!(
        [kinds(SocketKind::Stream, TCP), kinds(SocketKind::Datagram, UDP), kinds(SocketKind::Raw, ICMP)],
        [4, 16, 1],
        "{created:#?}"
    );
    assert!(created.iter().all(|sighting| sighting.namespace == here));
    assert_eq!(of(own, Cause::Bound).len(), 4);
    let connecting = of(own, Cause::Connecting);
    assert_eq!(connecting.len(), 8);
    for sighting in &connecting {
        let remote = sighting.remote.unwrap();
        assert!(servers.contains(&format!(
            "{}={}",
            sighting.protocol,
            SocketAddr::from((remote.address, remote.port))
        )));
        let local = (TCP, sighting.local.address, sighting.local.port);
        assert!(if sighting.protocol == TCP { names.contains_key(&local) } else { sighting.local.port == 0 });
    }
    let is_ours = |sighting: &&&Sighting| {
        let local = (TCP, sighting.local.address, sighting.local.port);
        sighting.cause == Cause::Established && sighting.namespace == here && names.contains_key(&local)
    };
    assert_eq!(sightings.iter().filter(is_ours).count(), 4);
    // Twice the heir sends, and tells it once.
    assert_eq!(of(own, Cause::Sent).len(), 8);
    for heir in names.values().filter(|&&process| process != own) {
        assert_eq!(of(*heir, Cause::Sent).len(), 1);
        assert_eq!(of(*heir, Cause::Created).len(), 0);
    }
    let closed = of(own, Cause::Closed);
    assert_eq!(closed.len(), 21);
    let with_ports = closed.iter().filter(|sighting| sighting.local.port != 0).count();
    assert!(with_ports >= 16, "UDP's ports are known at the latest when it is closed: {closed:#?}");
    // The server that was there before is found, as are its listening sockets' connections.
    let early_process = early.child.id();
    assert_eq!((of(early_process, Cause::Found).len(), of(early_process, Cause::Accepted).len()), (4, 2));
    let late_process = late.child.id();
    let count = |cause| of(late_process, cause).iter().filter(|sighting| sighting.namespace == there).count();
    assert_eq!([Cause::Created, Cause::Bound, Cause::Listening, Cause::Accepted].map(count), [4, 4, 2, 2]);

    let program = env::current_exe().unwrap();
    let process = created[0].process.as_ref().unwrap();
    assert_eq!(process.program.as_deref(), program.to_str());
    assert_eq!((process.parent, process.user), (std::process::id(), 0));
    assert!(process.arguments.as_ref().unwrap().contains(&"--exact".to_owned()));
    assert!(process.name.starts_with("the_part_of") || process.name.starts_with("who-"), "{process:?}");
    assert!(process.cgroup.is_some());
    let is_described = |news: &News| matches!(news, News::Executed { process, .. } if process.id.number == own && process.program.as_deref() == program.to_str());
    assert!(news.iter().any(is_described), "it was told that it runs this program");
    assert_eq!(tracker.lost().unwrap(), 0);
    late.end();
    early.end();
}

#[root_test]
fn root_what_the_kernel_refuses_is_told_and_open_sockets_are_found_without() {
    let network = NetNs::new().unwrap();
    network.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        refuse(Call::LinkCreate);
        let mut tracker = Tracker::start(&TrackerSettings { news: 1000, ..TrackerSettings::default() }).unwrap();
        for hook in tracker.hooks() {
            // The older way to attach stays for these.
            let is_traced = hook.name.starts_with("tp_btf/");
            assert!(is_traced || hook.refused.as_ref().is_some_and(|why| !why.is_empty()), "{hook:?}");
            assert!(!hook.costs.is_empty());
        }
        let port = socket.local_addr().unwrap().port();
        let found = |news: Vec<News>| {
            news.into_iter().any(|news| {
                matches!(news, News::Sighting(sighting) if sighting.cause == Cause::Found && sighting.local.port == port
                    && sighting.process.as_ref().is_some_and(|process| process.id.number == std::process::id()))
            })
        };
        assert!(found(tracker.take_news()));
        // Once is enough.
        tracker.look().unwrap();
        assert!(!found(tracker.take_news()));
    });
}
