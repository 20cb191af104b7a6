//! Packets without a socket, and raw ones.

use super::frames::*;
use super::*;

#[test]
fn what_is_not_ip() {
    let story = Story::at_home();
    let arp = ethernet(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1]);
    assert_eq!(story.sender(1, &arp), "Kernel");
    assert_eq!(story.receiver(1, &arp), "Kernel");
    let tagged = ethernet(0x8100, &[&[0, 7, 8, 6][..], &arp[14..]].concat());
    assert_eq!(story.sender(1, &tagged), "Kernel");
    for kind in [0x88cc, 0x0026, 0x8035] {
        assert_eq!(story.sender(1, &ethernet(kind, &[0; 46])), "Unknown", "{kind:x}");
    }
    assert_eq!(story.sender(1, &[]), "Unknown");
    let question = Question { at: 1, namespace: None, link_type: 147, frame: &arp };
    assert_eq!(said(&story.register.owner(&question, Side::Sender)), "Unknown");
}

#[test]
fn echoes_are_of_the_socket_with_their_identifier() {
    let mut story = Story::at_home();
    let (us, them) = ("10.0.0.1", "10.0.0.2");
    let (request, reply) = (|id| icmp(us, them, 8, &[0, id, 0, 1]), |id| icmp(them, us, 0, &[0, id, 0, 1]));
    story.saw(10, Socket::ping(1).at("0.0.0.0:9"), Cause::Bound, 4).saw(
        11,
        Socket::ping(2).at("10.0.0.1:8").to("10.0.0.2:77"),
        Cause::Connecting,
        5,
    );
    for (id, process) in [(9, "p4"), (8, "p5")] {
        assert_eq!(story.sender(20, &request(id)), format!("Certain {process}"));
        assert_eq!(story.receiver(20, &reply(id)), format!("Certain {process}"));
    }
    assert_eq!(story.sender(20, &request(7)), "Unknown");
    assert_eq!(story.receiver(20, &reply(7)), "Kernel");
    // The kernel answers others.
    assert_eq!(story.receiver(20, &icmp(them, us, 8, &[0, 9, 0, 1])), "Kernel");
    assert_eq!(story.sender(20, &icmp(us, them, 0, &[0, 9, 0, 1])), "Kernel");
    // Raw sockets have no identifier.
    story.saw(30, Socket::raw(3, protocol::ICMP), Cause::Created, 6);
    assert_eq!(story.sender(31, &request(7)), "Certain p6");
    assert_eq!(story.receiver(31, &reply(7)), "Certain p6");
    assert_eq!(story.sender(31, &request(9)), "Certain p4");
    assert_eq!(story.receiver(31, &icmp(them, us, 8, &[0, 9, 0, 1])), "Kernel");
    assert_eq!(story.sender(31, &icmp(us, them, 0, &[0, 9, 0, 1])), "Kernel");
    story.saw(40, Socket::raw(4, protocol::ICMP), Cause::Created, 7);
    assert_eq!(story.sender(41, &request(7)), "Several p6 p7");
    assert_eq!(story.receiver(41, &reply(7)), "Several p6 p7");
    // Version 6.
    let six = Socket { protocol: protocol::ICMPV6, ..Socket::ping(5) };
    story.saw(50, six.at("[::]:9"), Cause::Bound, 8);
    assert_eq!(story.sender(51, &icmp("fd00::1", "fd00::2", 128, &[0, 9, 0, 1])), "Certain p8");
    assert_eq!(story.receiver(51, &icmp("fd00::2", "fd00::1", 129, &[0, 9, 0, 1])), "Certain p8");
    assert_eq!(story.receiver(51, &icmp("fd00::2", "fd00::1", 128, &[0, 9, 0, 1])), "Kernel");
}

/// The head of a packet that an error is about, cut behind its ports.
fn quoted(frame: &[u8]) -> Vec<u8> {
    [&[0; 4][..], &frame[14..frame.len().min(14 + 28)]].concat()
}

#[test]
fn an_error_is_for_who_sent_what_it_is_about() {
    let mut story = Story::at_home();
    story.saw(10, Socket::udp(1).at("0.0.0.0:5000").to("10.0.0.2:53"), Cause::Connecting, 4);
    let error = |quote: &[u8]| icmp("10.0.0.9", "10.0.0.1", 3, quote);
    assert_eq!(story.receiver(20, &error(&quoted(&udp("10.0.0.1:5000", "10.0.0.2:53")))), "Certain p4");
    assert_eq!(story.receiver(20, &error(&quoted(&udp("10.0.0.1:5001", "10.0.0.2:53")))), "Unknown");
    assert_eq!(story.receiver(20, &error(&quoted(&icmp("10.0.0.1", "10.0.0.2", 0, &[0; 4])))), "Kernel");
    for length in [0, 3, 4, 10, 24, 27] {
        let whole = quoted(&udp("10.0.0.1:5000", "10.0.0.2:53"));
        assert_eq!(story.receiver(20, &error(&whole[..length])), "Unknown", "{length}");
    }
    // An error about an error.
    let inner = icmp("10.0.0.1", "10.0.0.2", 3, &quoted(&udp("10.0.0.2:1", "10.0.0.1:2")));
    assert_eq!(story.receiver(20, &error(&quoted(&inner))), "Kernel");
    // Who sends errors is the kernel.
    let sent = icmp("10.0.0.1", "10.0.0.2", 3, &quoted(&udp("10.0.0.2:53", "10.0.0.1:5000")));
    assert_eq!(story.sender(20, &sent), "Kernel");
    let six = icmp("fd00::1", "fd00::2", 1, &[0; 44]);
    assert_eq!(story.sender(20, &six), "Kernel");
    assert_eq!(story.receiver(20, &icmp("10.0.0.9", "10.0.0.8", 3, &quoted(&sent))), "Forwarded");
    // Another host's kernel.
    assert_eq!(story.sender(20, &error(&quoted(&sent))), "Unknown");
}

#[test]
fn the_kernel_keeps_house() {
    let mut story = Story::at_home();
    story.has("fe80::1");
    let group = "ff02::1:ff00:1";
    for (kind, to) in [
        (131, group),
        (132, group),
        (143, "ff02::16"),
        (133, "ff02::2"),
        (135, group),
        (136, "fe80::2"),
        (137, "fe80::2"),
    ] {
        assert_eq!(story.sender(1, &icmp("fe80::1", to, kind, &[0; 20])), "Kernel", "{kind}");
        assert_eq!(story.receiver(1, &icmp("fe80::2", "fe80::1", kind, &[0; 20])), "Kernel", "{kind}");
    }
    // A host that looks whether anybody has its address.
    assert_eq!(story.sender(1, &icmp("::", group, 135, &[0; 20])), "Kernel");
    assert_eq!(story.sender(1, &plain("10.0.0.1", "224.0.0.22", protocol::IGMP, &[0x22, 0, 0, 0])), "Kernel");
    // Programs send what the kernel receives.
    let query = plain("10.0.0.1", "224.0.0.1", protocol::IGMP, &[0x11, 0, 0, 0]);
    let advertised = icmp("fe80::1", "ff02::1", 134, &[0; 12]);
    assert_eq!([&query, &advertised].map(|frame| story.sender(1, frame)), ["Unknown"; 2]);
    assert_eq!([&query, &advertised].map(|frame| story.receiver(1, frame)), ["Kernel"; 2]);
    story.saw(10, Socket::raw(1, protocol::IGMP), Cause::Created, 4).saw(
        10,
        Socket::raw(2, protocol::ICMPV6).at("[::]:0"),
        Cause::Created,
        5,
    );
    assert_eq!([&query, &advertised].map(|frame| story.sender(11, frame)), ["Certain p4", "Certain p5"]);
    assert_eq!([&query, &advertised].map(|frame| story.receiver(11, frame)), ["Kernel"; 2]);
    assert_eq!(story.receiver(11, &plain("10.0.0.2", "224.0.0.1", protocol::IGMP, &[])), "Unknown");
}

#[test]
fn raw_sockets_send_and_receive_their_protocol() {
    let mut story = Story::at_home();
    let (out, back) = (
        plain("10.0.0.1", "224.0.0.5", protocol::OSPF, &[2]),
        plain("10.0.0.2", "224.0.0.5", protocol::OSPF, &[2]),
    );
    assert_eq!([story.sender(1, &out), story.receiver(1, &back)], ["Unknown"; 2]);
    let ospf = Socket::raw(1, protocol::OSPF);
    story.saw(10, ospf, Cause::Created, 4);
    assert_eq!([story.sender(10, &out), story.receiver(10, &back)], ["Certain p4"; 2]);
    assert_eq!(story.sender(9, &out), "Unknown");
    // IPPROTO_RAW sends any, and receives none.
    story.saw(20, Socket::raw(2, 255), Cause::Created, 5);
    assert_eq!(story.sender(21, &out), "Several p4 p5");
    assert_eq!(story.receiver(21, &back), "Certain p4");
    assert_eq!(story.sender(21, &flagged("10.0.0.1:99", "10.0.0.2:80", SYN)), "Certain p5");
    assert_eq!(story.sender(21, &flagged("10.0.0.1:99", "10.0.0.2:80", RST)), "Kernel");
    // Only what has its address.
    story.saw(30, ospf, Cause::Closed, 4).saw(
        31,
        Socket::raw(3, protocol::OSPF).at("10.0.0.7:0"),
        Cause::Bound,
        6,
    );
    assert_eq!(story.sender(40, &out), "Certain p5");
    assert_eq!(story.receiver(40, &back), "Unknown");
}

#[test]
fn what_comes_to_a_port_of_nobody_is_the_kernels() {
    let mut story = Story::at_home();
    let (us, them) = ("10.0.0.1:80", "10.0.0.2:5000");
    for at in [5, 3_000_000_000] {
        assert_eq!(story.receiver(at, &flagged(them, us, SYN)), "Kernel", "{at}");
        assert_eq!(story.receiver(at, &udp(them, us)), "Kernel", "{at}");
        assert_eq!(story.sender(at, &flagged(us, them, RST | ACK)), "Kernel", "{at}");
    }
    // The kernel sends none of these without a socket.
    assert_eq!(story.sender(5, &flagged(us, them, SYN)), "Unknown");
    assert_eq!(story.sender(5, &udp(us, them)), "Unknown");
    // What was missed may have been a socket.
    story.lost(2_500_000_000);
    assert_eq!(story.receiver(5, &udp(them, us)), "Kernel");
    for at in [1_500_000_000, 3_000_000_000] {
        assert_eq!(story.receiver(at, &flagged(them, us, SYN)), "Unknown", "{at}");
        assert_eq!(story.receiver(at, &udp(them, us)), "Unknown", "{at}");
        assert_eq!(story.sender(at, &flagged(us, them, RST)), "Unknown", "{at}");
    }
    assert_eq!(story.sender(3_000_000_000, &ethernet(0x0806, &[0; 28])), "Kernel");
}

#[test]
fn what_is_between_others_is_forwarded() {
    let mut story = Story::new();
    let frame = udp("10.0.0.8:1", "10.0.0.9:2");
    // Nobody has told which addresses are here.
    assert_eq!(story.sender(1, &frame), "Unknown");
    assert_eq!(story.receiver(1, &frame), "Unknown");
    story.has("10.0.0.1");
    for frame in [
        frame,
        tcp("10.0.0.8:1", "10.0.0.9:2"),
        icmp("10.0.0.8", "10.0.0.9", 8, &[0; 4]),
        plain("10.0.0.8", "10.0.0.9", 47, &[]),
    ] {
        assert_eq!([story.sender(1, &frame), story.receiver(1, &frame)], ["Forwarded"; 2]);
    }
    // Always here.
    assert_eq!(story.receiver(1, &udp("127.0.0.1:1", "127.0.0.2:2")), "Kernel");
    assert_eq!(story.receiver(1, &udp("[::1]:1", "[::1]:2")), "Kernel");
    // For all hosts, and from another one.
    assert_eq!(story.sender(1, &udp("10.0.0.8:1", "224.0.0.9:2")), "Unknown");
    let gone =
        News::AddressGone { at: 10, namespace: HOME, address: "10.0.0.1".parse().expect("an address") };
    story.register.learn(&gone);
    assert_eq!(
        [5, 15].map(|at| story.receiver(at, &udp("10.0.0.8:1", "10.0.0.1:2"))),
        ["Kernel", "Forwarded"]
    );
}

#[test]
fn what_is_cut_or_a_later_fragment_is_nobodys() {
    let mut story = Story::at_home();
    story.saw(1, Socket::udp(1).at("0.0.0.0:5000"), Cause::Bound, 4);
    let mut frame = udp("10.0.0.1:5000", "10.0.0.2:53");
    assert_eq!(story.sender(2, &frame[..38]), "Certain p4");
    for length in 0..38 {
        assert_eq!(story.sender(2, &frame[..length]), "Unknown", "{length}");
    }
    frame[20] = 0x20;
    assert_eq!(story.sender(2, &frame), "Certain p4", "the first fragment");
    frame[20] = 0;
    frame[21] = 1;
    assert_eq!([story.sender(2, &frame), story.receiver(2, &frame)], ["Unknown"; 2]);
    // Without its flags, a segment of TCP is none that the kernel sends.
    let reset = flagged("10.0.0.1:80", "10.0.0.2:5000", RST);
    assert_eq!(story.sender(2, &reset[..47]), "Unknown");
    assert_eq!(story.sender(2, &reset[..48]), "Kernel");
}

#[test]
fn each_bit_of_a_header_counts() {
    let mut story = Story::at_home();
    for (cookie, us, them) in [(1, "10.0.0.1:5000", "10.0.0.2:80"), (2, "[fd00::1]:5000", "[fd00::2]:80")] {
        for (cookie, socket) in [(cookie, Socket::tcp(cookie)), (cookie + 2, Socket::udp(cookie + 2))] {
            let process = u32::try_from(cookie).expect("small");
            story.saw(1, socket.at(us).to(them), Cause::Connecting, process);
        }
        for frame in [tcp(us, them), udp(us, them)] {
            assert!(story.sender(2, &frame).starts_with("Certain"));
            for bit in 0..8 * frame.len() {
                let mut other = frame.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                // Asking also looks whether the shortest way to an answer leads to the same.
                let answers = [story.sender(2, &other), story.receiver(2, &other)];
                let is_address_or_port = if us.starts_with('[') {
                    (22..58).contains(&(bit / 8))
                } else {
                    (26..38).contains(&(bit / 8))
                };
                if is_address_or_port {
                    assert!(answers.iter().all(|answer| !answer.starts_with("Certain")), "{bit} {answers:?}");
                }
            }
        }
    }
    // Options in front of the ports.
    let mut frame = tcp("10.0.0.1:5000", "10.0.0.2:80");
    frame[14] = 0x46;
    frame[17] += 4;
    frame.splice(34..34, [1, 1, 1, 0]);
    assert_eq!(story.sender(2, &frame), "Certain p1");
}

#[test]
fn namespaces_have_their_own_sockets() {
    let mut story = Story::at_home();
    let (us, them) = ("10.0.0.1:5000", "10.0.0.2:53");
    let socket = Socket::udp(1).at(us).to(them);
    story.saw(1, socket, Cause::Connecting, 4);
    story.within(2).saw(2, Socket { cookie: 2, ..socket }, Cause::Connecting, 5);
    let frame = udp(us, them);
    for (namespace, expected) in
        [(Some(1), "Certain p4"), (Some(2), "Certain p5"), (Some(3), "Unknown"), (None, "Several p4 p5")]
    {
        assert_eq!(story.ask_in(namespace, 5, &frame, Side::Sender), expected, "{namespace:?}");
    }
    // Where the address is not, it is not its packet.
    story.has("10.0.0.7");
    assert_eq!(story.ask_in(None, 5, &frame, Side::Sender), "Certain p4");
    let local = udp("127.0.0.1:9", "127.0.0.1:9");
    story.saw(6, Socket::udp(3).at("0.0.0.0:9"), Cause::Bound, 6);
    assert_eq!(story.ask_in(None, 7, &local, Side::Receiver), "Certain p6");
    assert_eq!(story.ask_in(None, 7, &udp("10.0.0.8:1", "10.0.0.9:1"), Side::Receiver), "Forwarded");
    story.within(3).saw(8, Socket::udp(4).at("0.0.0.0:9"), Cause::Bound, 6);
    // Who knows which addresses that one has?
    assert_eq!(story.ask_in(None, 9, &udp("10.0.0.8:1", "10.0.0.9:1"), Side::Receiver), "Unknown");
    assert_eq!(story.ask_in(None, 9, &plain("10.0.0.1", "10.0.0.9", 47, &[]), Side::Sender), "Unknown");
    story.saw(10, Socket::raw(5, 47), Cause::Created, 7);
    assert_eq!(story.ask_in(None, 11, &plain("10.0.0.1", "10.0.0.9", 47, &[]), Side::Sender), "Certain p7");
    assert_eq!(story.ask_in(None, 11, &udp("10.0.0.8:1", "10.0.0.1:1"), Side::Receiver), "Kernel");
    let question = Question { at: 11, namespace: None, link_type: 1, frame: &frame };
    assert!(!story.register.is_unsettled(&question));
    story.saw(12, Socket::udp(6).to("10.0.0.2:54"), Cause::Connecting, 7);
    let frame = udp("10.0.0.1:99", "10.0.0.2:54");
    assert!(story.register.is_unsettled(&Question { at: 13, frame: &frame, ..question }));
}

#[test]
fn interfaces_have_the_namespace_that_was_told_last() {
    let mut register = Register::new(&Settings::default());
    assert_eq!(register.namespace(3), None);
    for namespace in [8, 9] {
        register.learn(&News::Interface { interface: 3, namespace });
    }
    assert_eq!((register.namespace(3), register.namespace(4)), (Some(9), None));
}
