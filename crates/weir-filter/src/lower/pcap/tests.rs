//! Terms made by hand, compared with what libpcap compiles of the same words.

use weir_judge::{Libpcap, Setup};

use super::lower;
use crate::ast::{
    Arith, ArithId, Ast, Comparison, Direction, Expr, ExprId, Network, Primitive, Protocol, Term,
};
use crate::interpret::{Interpreter, Packet};
use crate::names::NoNames;
use crate::{Dialect, Options};

const ETHERNET: u16 = 1;

/// An expression of these terms, all of which, or one of which, must hold.
fn ast(terms: Vec<Primitive>, arithmetic: Vec<Arith>, all: bool) -> Ast {
    let mut nodes: Vec<Expr> = (0..).take(terms.len()).map(Expr::Term).collect();
    let ids: Vec<ExprId> = (0..).take(terms.len()).map(ExprId).collect();
    let root = if terms.len() == 1 {
        ids[0]
    } else {
        nodes.push(if all { Expr::And(ids) } else { Expr::Or(ids) });
        ExprId(u32::try_from(nodes.len() - 1).expect("there are few terms"))
    };
    let terms = terms.into_iter().map(|primitive| Term { span: 0..0, primitive }).collect();
    Ast { nodes, arithmetic, terms, sets: Vec::new(), root: Some(root) }
}

/// Frames that the terms of the tests are about: tagged and not, of both families, TCP and UDP, labelled, ARP.
fn frames() -> Vec<Vec<u8>> {
    let ipv4 = |protocol, fragment: u8| {
        let mut packet =
            vec![0x46, 0, 0, 60, 0, 0, 0, fragment, 64, protocol, 0, 0, 10, 1, 2, 3, 10, 9, 8, 7];
        packet.extend([1, 1, 1, 1, 0, 80, 0x1f, 0x90, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 2, 0, 0]);
        packet
    };
    let ipv6 = |next| {
        let mut packet = vec![0x60, 0, 0, 0, 0, 20, next, 64];
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend([0x1f, 0x90, 0, 80, 6, 0, 0, 0, 0, 0, 0, 0]);
        packet
    };
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0];
    arp.extend([10, 9, 8, 7]);
    let payloads = [
        (0x0800_u16, ipv4(6, 0)),
        (0x0800, ipv4(17, 0)),
        (0x0800, ipv4(6, 1)),
        (0x86dd, ipv6(6)),
        (0x86dd, ipv6(44)),
        (0x0806, arp),
        (0x0026, vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
    ];
    let mut frames = Vec::new();
    for (kind, payload) in payloads {
        let mac = [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4];
        let label = [0x88, 0x47, 0, 1, 0x91, 64];
        for tags in [&[][..], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5]] {
            frames.push([&mac[..], tags, &kind.to_be_bytes(), &payload].concat());
            frames.push([&mac[..], tags, &label, &payload].concat());
        }
    }
    frames
}

/// Whether both agree on all frames, however long the part of them is that was captured.
fn agree(text: &str, terms: Vec<Primitive>, arithmetic: Vec<Arith>, all: bool) {
    let libpcap = match Libpcap::open() {
        Ok(libpcap) => libpcap,
        Err(error) => return println!("SKIP: {error}"),
    };
    let program = libpcap.compile(text, &Setup::new(ETHERNET)).expect("libpcap compiles it");
    let ast = ast(terms, arithmetic, all);
    let options = Options {
        dialect: Dialect::Pcap,
        link_type: ETHERNET,
        snap_len: 262_144,
        metadata: false,
        swapped: false,
        netmask: None,
        names: &NoNames,
    };
    let graph = lower(&ast, &options).expect("it is compiled here, too");
    graph.check(&[]).expect("the graph keeps the rules");
    let interpreter = Interpreter::new(&graph, &[]);
    let mut accepted = 0;
    for frame in frames() {
        let length = u32::try_from(frame.len()).expect("frames are short");
        for captured in 0..=frame.len() {
            let data = &frame[..captured];
            let answer = interpreter.run(&Packet { data, length, ..Packet::default() });
            assert_eq!(answer, libpcap.run(&program, length, data), "{text}: {data:02x?}\n{graph}");
            accepted += u32::from(answer != 0);
        }
    }
    assert_ne!(accepted, 0, "{text}: no frame is accepted, so nothing was compared");
}

fn host(address: u32) -> Primitive {
    let networks = vec![Network::V4(address, u32::MAX)];
    Primitive::Host { protocol: None, direction: Direction::Default, net: false, networks }
}

fn port(protocol: Option<Protocol>, direction: Direction, first: u16, last: u16) -> Primitive {
    Primitive::Port { protocol, direction, first, last, range: first != last }
}

#[test]
fn addresses_and_ports() {
    agree("host 10.9.8.7", vec![host(0x0a09_0807)], vec![], true);
    agree("port 80", vec![port(None, Direction::Default, 80, 80)], vec![], true);
    let tcp = port(Some(Protocol::Tcp), Direction::And, 80, 9000);
    agree("tcp src and dst portrange 80-9000", vec![tcp], vec![], true);
    let networks = vec![Network::V6([0x2001_0db8, 0, 0, 0], [u32::MAX, 0, 0, 0])];
    let net = Primitive::Host { protocol: None, direction: Direction::Source, net: true, networks };
    agree("src net 2001:db8::/32", vec![net], vec![], true);
    let mac = Primitive::Mac { direction: Direction::Source, addresses: vec![[4; 6]] };
    agree("ether src 4:4:4:4:4:4", vec![mac], vec![], true);
}

#[test]
fn headers_move_for_all_later_terms() {
    let [ip, tcp, ip6] = [Protocol::Ip, Protocol::Tcp, Protocol::Ip6].map(Primitive::Protocol);
    agree("vlan 5 or tcp", vec![Primitive::Vlan(Some(5)), tcp.clone()], vec![], false);
    agree("ip or vlan or ip", vec![ip.clone(), Primitive::Vlan(None), ip.clone()], vec![], false);
    let both = vec![Primitive::Vlan(Some(7)), Primitive::Vlan(Some(5)), tcp];
    agree("vlan 7 and vlan 5 and tcp", both, vec![], true);
    agree("mpls 25 and ip6", vec![Primitive::Mpls(Some(25)), ip6], vec![], true);
}

#[test]
fn accessors_on_the_far_left_imply_their_protocols() {
    let arithmetic = |number| {
        let index = ArithId(0);
        vec![
            Arith::Number(12),
            Arith::Accessor { protocol: Protocol::Tcp, index, size: 1 },
            Arith::Number(number),
        ]
    };
    let [left, right] = [ArithId(1), ArithId(2)];
    let relation = Primitive::Relation { left, comparison: Comparison::Equal, right };
    agree("tcp[12] = 80", vec![relation], arithmetic(80), true);
    let relation = Primitive::Relation { left: right, comparison: Comparison::NotEqual, right: left };
    agree("81 != tcp[12]", vec![relation], arithmetic(81), true);
}
